package accesspoint

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tributary/internal/xmltree"
)

const (
	spaceMetadata    = "http://busdox.org/serviceMetadata/publishing/1.0/"
	spaceIdentifiers = "http://busdox.org/transport/identifiers/1.0/"
	spaceAddressing  = "http://www.w3.org/2005/08/addressing"
	spaceSignature   = "http://www.w3.org/2000/09/xmldsig#"

	keyBits = 2048
)

// keys are those of the simulated network's registers.
type keys struct {
	trusted []byte // certificate of their authority, PEM
	leaf    []byte // of the register, DER
	own     *rsa.PrivateKey
	other   *rsa.PrivateKey // not the leaf's
}

// keysOf makes the keys once for the process: they are worth nothing outside of it.
var keysOf = sync.OnceValues(newKeys)

func newKeys() (k keys, err error) {
	authority, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return k, fmt.Errorf("making keys: %w", err)
	}
	if k.own, err = rsa.GenerateKey(rand.Reader, keyBits); err != nil {
		return k, fmt.Errorf("making keys: %w", err)
	}
	k.other = authority
	now := time.Now()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject:   pkix.Name{Organization: []string{"Simulated"}, CommonName: "SIMULATED SERVICE METADATA PUBLISHER CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, authority.Public(), authority)
	if err != nil {
		return k, fmt.Errorf("making certificates: %w", err)
	}
	k.trusted = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	smp := &x509.Certificate{SerialNumber: big.NewInt(2),
		Subject: pkix.Name{Organization: []string{"Simulated"}, OrganizationalUnit: []string{"PEPPOL SIMULATED SMP"},
			CommonName: "PSI000001"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature}
	if k.leaf, err = x509.CreateCertificate(rand.Reader, smp, ca, k.own.Public(), authority); err != nil {
		return k, fmt.Errorf("making certificates: %w", err)
	}
	return k, nil
}

// billing are the types of documents that everybody takes, for service groups.
func billing() []string {
	var all []string
	for _, root := range []string{"Invoice", "CreditNote"} {
		all = append(all, "urn:oasis:names:specification:ubl:schema:xsd:"+root+"-2::"+root+"##urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0::2.1")
	}
	return all
}

// group serves the list of what a participant takes.
func (a *accessPoint) group(w http.ResponseWriter, r *http.Request) {
	who := r.PathValue("participant")
	h := a.habitsOf(value(who))
	if h.Unregistered || !participantForm.MatchString(who) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	out := xmltree.NewWriter(2048)
	out.Declare()
	out.Start("ServiceGroup", "xmlns", spaceMetadata, "xmlns:id", spaceIdentifiers)
	out.Leaf("id:ParticipantIdentifier", value(who), "scheme", schemeParticipant)
	out.Start("ServiceMetadataReferenceCollection")
	for _, document := range billing() {
		if h.takes(document) {
			out.Leaf("ServiceMetadataReference", "", "href",
				a.address()+"/smp/"+url.PathEscape(who)+"/services/"+url.PathEscape(schemeDocument+"::"+document))
		}
	}
	out.End()
	out.End()
	writeXML(w, out.Bytes())
}

// metadata serves what a participant takes, signed.
func (a *accessPoint) metadata(w http.ResponseWriter, r *http.Request) {
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	who, what := r.PathValue("participant"), r.PathValue("document")
	h := a.habitsOf(value(who))
	switch {
	case h.Gone:
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	case h.Unregistered || !participantForm.MatchString(who) || !documentForm.MatchString(what) || !h.takes(what):
		w.WriteHeader(http.StatusNotFound)
		return
	}
	text, err := signed(a.service(h, who, what), h.Signature)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		writeXML(w, text)
	}
}

func writeXML(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(text) // a caller that left is nobody to tell
}

// service is the statement that is signed.
func (a *accessPoint) service(h habits, who, what string) []byte {
	out := xmltree.NewWriter(4096)
	out.Start("SignedServiceMetadata", "xmlns", spaceMetadata, "xmlns:id", spaceIdentifiers, "xmlns:wsa", spaceAddressing)
	out.Start("ServiceMetadata")
	if h.Redirected {
		out.Start("Redirect", "href", a.address()+"/smp/"+url.PathEscape(who)+"/services/"+url.PathEscape(what))
		out.Leaf("CertificateUID", "PSI000001")
		out.End()
	} else {
		a.information(out, h, who, what)
	}
	out.End()
	out.End()
	return out.Bytes()
}

func (a *accessPoint) information(out *xmltree.Writer, h habits, who, what string) {
	until := time.Now().AddDate(1, 0, 0)
	if h.Expired {
		until = time.Now().AddDate(0, 0, -1)
	}
	out.Start("ServiceInformation")
	out.Leaf("id:ParticipantIdentifier", value(who), "scheme", schemeParticipant)
	out.Leaf("id:DocumentIdentifier", strings.TrimPrefix(what, schemeDocument+"::"), "scheme", schemeDocument)
	out.Start("ProcessList")
	out.Start("Process")
	process := "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0"
	if strings.HasSuffix(what, responseDocument) {
		process = responseProcess
	}
	out.Leaf("id:ProcessIdentifier", process, "scheme", schemeProcess)
	out.Start("ServiceEndpointList")
	out.Start("Endpoint", "transportProfile", "peppol-transport-as4-v2_0")
	out.Start("wsa:EndpointReference")
	out.Leaf("wsa:Address", "https://c3.example/as4")
	out.End()
	out.Leaf("RequireBusinessLevelSignature", "false")
	out.Leaf("ServiceActivationDate", time.Now().AddDate(-1, 0, 0).UTC().Format(time.RFC3339))
	out.Leaf("ServiceExpirationDate", until.UTC().Format(time.RFC3339))
	out.Leaf("Certificate", "")
	out.Leaf("ServiceDescription", "simulated")
	out.Leaf("TechnicalContactUrl", "https://c3.example/")
	out.End()
	out.End()
	out.End()
	out.End()
	out.End()
}

// signed puts an enveloped signature over the whole document into it, or one
// that does not hold.
func signed(document []byte, flaw string) ([]byte, error) {
	k, err := keysOf()
	if err != nil {
		return nil, err
	}
	doc, err := xmltree.Read(document)
	if err != nil {
		return nil, err
	}
	text := (xmltree.Canonical{Inclusive: true}).Document(doc)
	if flaw == "changed" {
		text = append(text, ' ')
	}
	sum := sha256.Sum256(text)
	info := `<SignedInfo xmlns="` + spaceSignature + `"><CanonicalizationMethod Algorithm="` +
		xmltree.AlgorithmInclusive + `"></CanonicalizationMethod>` +
		`<SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"></SignatureMethod>` +
		`<Reference URI=""><Transforms><Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"></Transform></Transforms>` +
		`<DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"></DigestMethod><DigestValue>` +
		base64.StdEncoding.EncodeToString(sum[:]) + `</DigestValue></Reference></SignedInfo>`
	whole := func(value string) []byte {
		signature := `<Signature xmlns="` + spaceSignature + `">` + strings.Replace(info, ` xmlns="`+spaceSignature+`"`, "", 1) +
			`<SignatureValue>` + value + `</SignatureValue><KeyInfo><X509Data><X509Certificate>` +
			base64.StdEncoding.EncodeToString(k.leaf) + `</X509Certificate></X509Data></KeyInfo></Signature>`
		return []byte(strings.Replace(string(document), "</SignedServiceMetadata>", signature+"</SignedServiceMetadata>", 1))
	}
	// Inclusive forms carry the namespaces around SignedInfo, so it is written where it stands.
	placed, err := xmltree.Read(whole(""))
	if err != nil {
		return nil, err
	}
	sum = sha256.Sum256((xmltree.Canonical{Inclusive: true}).Bytes(placed.Root.At("Signature", "SignedInfo")))
	key := k.own
	if flaw == "wrong" {
		key = k.other
	}
	value, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return append([]byte(xmltree.Declaration), whole(base64.StdEncoding.EncodeToString(value))...), nil
}
