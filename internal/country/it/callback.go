package it

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// pathMessages is where SdI calls, below our address.
const pathMessages = "/TrasmissioneFatture"

const (
	messageBytesMax     = 4 << 20
	envelopeElementsMax = 1000   // it has a dozen
	noticeElementsMax   = 20_000 // of a list of errors
)

// callerName begins the common name of SdI's own client certificates, in test and
// in production. Its CA issues those of every transmitter as well, so the CA
// alone proves nothing.
const callerName = "SistemaInterscambioFatturaPA"

// readCall understands one message of SdI. The answer is an empty 200: the
// operations are one-way.
func readCall(at country.Endpoint, c country.Call) ([]country.Message, country.CallReply, error) {
	if c.Path != pathMessages && c.Path != pathReceived {
		return nil, country.CallReply{}, fault.New(fault.NotFound, "SdI calls %s and %s only", pathMessages, pathReceived)
	}
	if c.Method != http.MethodPost {
		return nil, country.CallReply{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {http.MethodPost}}}, nil
	}
	if err := known(at, c); err != nil {
		return nil, country.CallReply{}, err
	}
	if c.Path == pathReceived {
		return readReceived(c)
	}
	m, file, err := unpack(c)
	if err != nil {
		return nil, country.CallReply{}, fault.New(fault.Invalid, "the call cannot be read").Because(err)
	}
	said, err := readNotice(m, file)
	if err != nil {
		return nil, country.CallReply{}, fault.New(fault.Invalid, "the message cannot be read").Because(err)
	}
	if roots := signers(at); roots != nil {
		if err := said.verify(roots, c.At); err != nil {
			return nil, country.CallReply{}, fault.New(fault.Forbidden, "the message is not signed by SdI").Because(err)
		}
	}
	return []country.Message{said.message(c.Body)},
		country.CallReply{Status: http.StatusOK, Header: http.Header{"Content-Length": {"0"}}}, nil
}

// known refuses strangers: whoever calls shows a certificate of SdI's CA that
// names SdI. A simulated one, and nobody else, may show it in a header.
func known(at country.Endpoint, c country.Call) error {
	client, name := c.Client, at.Identity.Secrets[secretCaller]
	if client == nil && at.Simulated {
		der, err := base64.StdEncoding.DecodeString(strings.Trim(c.Header.Get(sdiwire.HeaderClient), ":"))
		if err != nil {
			return fault.New(fault.Unauthenticated, "the certificate in the header cannot be read").Because(err)
		}
		shown, err := x509.ParseCertificate(der)
		if err != nil {
			return fault.New(fault.Unauthenticated, "SdI shows a certificate").Because(err)
		}
		_, err = shown.Verify(x509.VerifyOptions{Roots: pool(sdiwire.SimulatedCA), CurrentTime: c.At,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return fault.New(fault.Forbidden, "the certificate is not of the simulated SdI").Because(err)
		}
		return nil
	}
	switch {
	case client == nil:
		return fault.New(fault.Unauthenticated, "SdI shows a certificate")
	case name != "" && client.Subject.CommonName != name,
		name == "" && !strings.HasPrefix(client.Subject.CommonName, callerName):
		return fault.New(fault.Forbidden, "the certificate of %q is not SdI's", client.Subject.CommonName)
	}
	return nil
}

// signers are whose signatures count; nil: nobody said.
func signers(at country.Endpoint) *x509.CertPool {
	switch {
	case at.Identity.Secrets[secretSigner] != "":
		return pool(at.Identity.Secrets[secretSigner])
	case at.Simulated:
		return pool(sdiwire.SimulatedCA)
	}
	return nil
}

func pool(text string) *x509.CertPool {
	out := x509.NewCertPool()
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			out.AddCert(cert)
		}
	}
}

// unpack finds the operation by namespace and SOAPAction together, because other
// services of SdI have operations of the same names, and takes the file out.
func unpack(c country.Call) (sdiwire.Message, []byte, error) {
	packed, err := sdiwire.Open(c.Header.Get("Content-Type"), c.Body)
	if err != nil {
		return sdiwire.Message{}, nil, err
	}
	call, err := soap.Read(packed.Envelope, xmltree.Limits{Bytes: messageBytesMax, Elements: envelopeElementsMax})
	if err != nil {
		return sdiwire.Message{}, nil, err
	}
	action := strings.Trim(c.Header.Get("SOAPAction"), `" `)
	m, ok := sdiwire.MessageCalled(action)
	if !ok || !call.Content.Is(sdiwire.SpaceTypes, m.Element) {
		return m, nil, fmt.Errorf("%q is no operation of TrasmissioneFatture for what the body has", action)
	}
	file, err := packed.File(call.Content.At("File"))
	if err != nil {
		return m, nil, fmt.Errorf("reading the file of %s: %w", m.Operation, err)
	}
	return m, file, nil
}

// notice is a message of SdI about one of our files.
type notice struct {
	kind sdiwire.Kind
	doc  *xmltree.Document
	root *xmltree.Element
	file []byte
	name string // of the invoice's file
	id   string // IdentificativoSdI
	at   time.Time
}

// instant reads a time of SdI. Most have no offset: they are Rome's.
func instant(text string) time.Time {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05", text, rome())
	if err != nil {
		return time.Time{}
	}
	return at
}

// readNotice reads the file inside a call, by SdI's own structures. Samples of
// public messages come without a signature; the structure wants one, so it must be there.
func readNotice(m sdiwire.Message, file []byte) (*notice, error) {
	doc, err := xmltree.Limits{Bytes: messageBytesMax, Elements: noticeElementsMax}.Read(file)
	if err != nil {
		return nil, err
	}
	root := doc.Root
	standard := official.SdIInvoiceMessages
	switch {
	case m.Private != "" && root.Is(sdiwire.SpaceMessages, m.Private):
	case root.Is(sdiwire.SpacePublicMessages, m.Public):
		standard = official.SdIMessages
	default:
		return nil, fmt.Errorf("%s brings {%s}%s", m.Operation, root.Space, root.Local)
	}
	if flaw := standard.Schema().First(root); flaw != nil {
		return nil, flaw
	}
	n := &notice{kind: m.Kind, doc: doc, root: root, file: file, name: strings.TrimSpace(root.Value("NomeFile")),
		id: strings.TrimSpace(root.Value("IdentificativoSdI"))}
	for _, member := range []string{"DataOraConsegna", "DataOraRicezione"} {
		if n.at = instant(root.Value(member)); !n.at.IsZero() {
			break
		}
	}
	if _, ok := sdiwire.ParseName(n.name); !ok {
		return nil, fmt.Errorf("%s speaks of %q, which is no file of ours", m.Operation, n.name)
	}
	return n, nil
}

// message is what SdI says, in the words of the contract. Deliveries repeat: a
// message is known by file, kind and MessageId.
func (n *notice) message(raw []byte) country.Message {
	r := country.Receipt{AuthorityID1: n.id, AuthorityID2: n.name, At: n.at, SHA256: n.hash(), Document: n.file,
		Format: "XML", Raw: n.file}
	switch n.kind {
	case sdiwire.Delivered:
		r.Outcome = country.Accepted
		r.News = n.told("Ricevuta di consegna", country.Info, "the buyer has the invoice")
	case sdiwire.Undelivered, sdiwire.Attested:
		r.Outcome = country.Accepted
		r.News = n.told(map[sdiwire.Kind]string{sdiwire.Undelivered: "Mancata consegna",
			sdiwire.Attested: "Attestazione di avvenuta trasmissione"}[n.kind], country.Caution,
			"the invoice could not be delivered; it lies in the buyer's reserved area")
		r.Faults = []fault.Fault{fault.Warn("", fault.BuyerMustBeTold,
			"%s: the invoice counts as issued and could not be delivered; it lies in the buyer's reserved area at the Agenzia delle Entrate, and the seller must tell the buyer", n.kind)}
	case sdiwire.Refused:
		n.refuse(&r)
	case sdiwire.Outcome:
		r = country.Receipt{News: []country.News{n.esito()}}
	case sdiwire.Expired:
		r = country.Receipt{News: n.told("Decorrenza termini", country.Info, "the buyer said nothing within 15 days")}
	}
	return country.Message{Key: n.key(), Handle: n.name, Receipt: r, Raw: raw}
}

// told is the message as an entry of the life cycle: they come in any order, and
// only the first one ends the operation.
func (n *notice) told(name string, severity country.Severity, words string) []country.News {
	return []country.News{{Key: n.key(), At: n.at, Code: string(n.kind), Name: name, Source: country.FromAuthority,
		Severity: severity, Message: words}}
}

func (n *notice) key() string {
	return string(n.kind) + "/" + n.name + "/" + strings.TrimSpace(n.root.Value("MessageId"))
}

// hash is that of the file of which SdI speaks; "" where it does not say.
func (n *notice) hash() string {
	text := strings.ToLower(strings.TrimSpace(n.root.Value("Hash")))
	if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}
	return text
}

// refuse reads a scarto. One whose only code is 00002 says that the name is
// known: of a file that was sent again it is the echo of the first, which lives
// on; the engine knows whether it was (see [country.Receipt].Duplicate).
func (n *notice) refuse(r *country.Receipt) {
	r.Outcome = country.Rejected
	named := 0
	for _, e := range n.root.At("ListaErrori").All("Errore") {
		code, text := strings.TrimSpace(e.Value("Codice")), strings.TrimSpace(e.Value("Descrizione"))
		f := fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Field: fieldOf(code), Message: code + ": " + text}
		switch code {
		case sdiwire.Duplicate:
			f.Code = fault.AuthorityNumberUsed
		case sdiwire.NameUsed:
			named++
		}
		r.Faults = append(r.Faults, f)
	}
	r.Duplicate = named > 0 && named == len(r.Faults)
}

// fieldOf is what a client looks at when SdI refuses, where one member is it.
func fieldOf(code string) string {
	switch code {
	case sdiwire.Duplicate, sdiwire.NumberWithoutDigit:
		return "transaction_number"
	case sdiwire.BuyerVATUnknown, sdiwire.BuyerNumberMissing, "00324", "00325", "00326":
		return atNumber
	case sdiwire.BuyerCodeUnknown:
		return "customer.tax_information.fiscal_code"
	case "00311", "00312", sdiwire.AddressNotForeign, sdiwire.PECOfSdI, sdiwire.AddressLength:
		return atAddress
	case sdiwire.DateAhead, sdiwire.BeforeOriginal:
		return "transaction_date"
	}
	return ""
}

// esito is what a public buyer says.
func (n *notice) esito() country.News {
	said := n.root.At("EsitoCommittente")
	code := strings.TrimSpace(said.Value("Esito"))
	out := country.News{Key: n.key(), At: n.at, Code: code, Name: "Esito committente", Source: country.FromBuyer,
		Severity: country.Info,
		Message:  strings.TrimSpace("the buyer accepted the invoice. " + said.Value("Descrizione"))}
	if code == sdiwire.EsitoRefused {
		out.Severity = country.Problem
		out.Message = strings.TrimSpace("the buyer refused the invoice: it must be credited and issued anew. " +
			said.Value("Descrizione"))
	}
	return out
}
