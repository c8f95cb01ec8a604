package peppol

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Schemes of identifiers (Peppol policy for use of identifiers 4.4).
const (
	schemeParticipant = "iso6523-actorid-upis"
	schemeDocument    = "busdox-docid-qns"
	schemeProcess     = "cenbii-procid-ubl"
)

// participant is a sender or receiver: its scheme and its number there.
type participant struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// value is the identifier without the name of its scheme, as SBDH has it.
func (p participant) value() string { return p.Scheme + ":" + strings.ToLower(p.ID) }

// String is the identifier as interfaces want it.
func (p participant) String() string { return schemeParticipant + "::" + p.value() }

// envelope is what an access point is told beside the document. It is stored
// with the filing: whatever is sent later is made of it and of the stored bytes.
type envelope struct {
	Instance  string        `json:"instance"` // SBDH instance identifier
	Sender    participant   `json:"sender"`
	Receivers []participant `json:"receivers"`
	Document  string        `json:"document"` // type, without the name of its scheme
	Process   string        `json:"process"`  // likewise
	Country   string        `json:"country"`  // of the sender, COUNTRY_C1
	At        time.Time     `json:"at"`

	Rounding   int64 `json:"rounding,omitempty"`
	TaxedBySum bool  `json:"taxed_by_sum,omitempty"`
}

// namespace makes instance identifiers of operation ids (RFC 9562, section 5.5).
// It never changes: an identifier made anew must be the one that was sent.
var namespace = uuid.MustParse("6f2d2e0c-6b0f-5c58-9a6e-2f4a1c1f7d11")

func instanceOf(operationID string) string {
	return uuid.NewSHA1(namespace, []byte(operationID)).String()
}

// seal reads from the document where it comes from, where it goes and what it is.
func seal(d *country.Draft, made *country.Structured) (envelope, *en16931.Invoice, error) {
	invoice, _, err := en16931.Read(made.Content)
	if err != nil {
		return envelope{}, nil, fmt.Errorf("reading the invoice: %w", err)
	}
	e := envelope{Instance: instanceOf(d.OperationID), Country: d.Supplier.CountryCode, At: d.Now.UTC().Truncate(time.Second),
		Sender:   participant{invoice.Seller.Electronic.Scheme, invoice.Seller.Electronic.ID},
		Document: documentType(made.Content, invoice), Process: invoice.Process,
		Rounding: made.Rounding, TaxedBySum: made.TaxedBySum}
	var faults []fault.Fault
	if !onNetwork(invoice.Seller.Electronic) {
		faults = append(faults, fault.At("settings.endpoint_id", fault.FieldRequired,
			"is needed to send over Peppol: the company has no electronic address, and none can be derived from its numbers"))
	}
	if !onNetwork(invoice.Buyer.Electronic) {
		faults = append(faults, fault.At(fieldReceiver, fault.FieldRequired,
			"is needed to send over Peppol: none can be derived from the customer's numbers"))
	}
	if len(faults) > 0 {
		return e, nil, fault.New(fault.Invalid, "the invoice cannot be sent over Peppol").With(faults...)
	}
	e.Receivers = receiversOf(&d.Transaction, invoice.Buyer)
	return e, invoice, nil
}

// onNetwork reports whether an electronic address is one of the network: mail is not.
func onNetwork(id en16931.Identifier) bool {
	return id.ID != "" && len(id.Scheme) == 4
}

// documentType is the identifier of what a document is: its root and its specification.
func documentType(document []byte, invoice *en16931.Invoice) string {
	root, version := "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2::Invoice", "2.1"
	switch {
	case strings.Contains(string(document[:min(len(document), 512)]), "CrossIndustryInvoice"):
		root, version = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100::CrossIndustryInvoice", "D16B"
	case invoice.IsCreditNote():
		root = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2::CreditNote"
	}
	return root + "##" + invoice.Specification + "::" + version
}

// root is namespace and name of the document, and its version.
func (e envelope) root() (space, local, version string) {
	name, rest, _ := strings.Cut(e.Document, "##")
	at := strings.LastIndex(name, "::")
	return name[:at], name[at+2:], rest[strings.LastIndex(rest, "::")+2:]
}

// spaceSBDH is the UN/CEFACT Standard Business Document Header 1.3.
const spaceSBDH = "http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"

// document puts an invoice into its envelope (Peppol Business Message Envelope
// 2.0). Equal envelopes give equal bytes.
func (e envelope) document(invoice []byte, to participant) []byte {
	w := xmltree.NewWriter(len(invoice) + 2048)
	w.Declare()
	w.Start("StandardBusinessDocument", "xmlns", spaceSBDH)
	w.Start("StandardBusinessDocumentHeader")
	w.Leaf("HeaderVersion", "1.0")
	for _, side := range []struct {
		name string
		who  participant
	}{{"Sender", e.Sender}, {"Receiver", to}} {
		w.Start(side.name)
		w.Leaf("Identifier", side.who.value(), "Authority", schemeParticipant)
		w.End()
	}
	space, local, version := e.root()
	w.Start("DocumentIdentification")
	w.Leaf("Standard", space)
	w.Leaf("TypeVersion", version)
	w.Leaf("InstanceIdentifier", e.Instance)
	w.Leaf("Type", local)
	w.Leaf("CreationDateAndTime", e.At.Format(time.RFC3339))
	w.End()
	w.Start("BusinessScope")
	for _, scope := range [][3]string{{"DOCUMENTID", e.Document, schemeDocument}, {"PROCESSID", e.Process, schemeProcess},
		{"COUNTRY_C1", e.Country, ""}} {
		w.Start("Scope")
		w.Leaf("Type", scope[0])
		w.Leaf("InstanceIdentifier", scope[1])
		w.Maybe("Identifier", scope[2])
		w.End()
	}
	w.End()
	w.End()
	w.Raw(withoutDeclaration(invoice))
	w.End()
	return w.Bytes()
}

func withoutDeclaration(document []byte) []byte {
	text := string(document)
	if strings.HasPrefix(text, "<?xml") {
		if end := strings.Index(text, "?>"); end > 0 {
			return []byte(strings.TrimLeft(text[end+2:], "\r\n"))
		}
	}
	return document
}

// opened is the envelope of a stored filing.
func opened(f country.Filing) (e envelope, err error) {
	if err = json.Unmarshal(f.Extra, &e); err == nil && (e.Instance == "" || len(e.Receivers) == 0) {
		err = fmt.Errorf("the filing of %s has no envelope", f.OperationID)
	}
	if err != nil {
		return e, fmt.Errorf("reading the envelope: %w", err)
	}
	return e, nil
}

// structuredOf is the invoice as data of what was sent.
func structuredOf(f *country.Filing) (*country.Structured, error) {
	e, err := opened(*f)
	if err != nil {
		return nil, err
	}
	return &country.Structured{Format: f.Format, Content: f.Report, Rounding: e.Rounding, TaxedBySum: e.TaxedBySum}, nil
}

// filed is the stored form of a prepared document.
func filed(d *country.Draft, e envelope, invoice *en16931.Invoice, made *country.Structured) (country.Filing, error) {
	sum := sha256.Sum256(made.Content)
	extra, err := json.Marshal(e)
	if err != nil {
		return country.Filing{}, fmt.Errorf("writing the envelope: %w", err)
	}
	return country.Filing{OperationID: d.OperationID, Number: invoice.Number, Supplier: e.Sender.value(),
		Kind: kindOf(d.Transaction.Kind), Report: made.Content,
		Format: made.Format, SHA256: hex.EncodeToString(sum[:]), DedupeKey: e.Instance, Extra: extra,
		Aliases: []string{responseHandle(e.Sender, e.Receivers[0], classOf(invoice.TypeCode), invoice.Number)}}, nil
}

func kindOf(k transaction.Kind) transaction.Kind {
	if k == "" {
		return transaction.Invoice
	}
	return k
}
