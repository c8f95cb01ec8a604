package peppol

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/xmltree"
)

// Namespaces and names of the specification of registers (SMP 1.3).
const (
	spaceMetadata    = "http://busdox.org/serviceMetadata/publishing/1.0/"
	spaceIdentifiers = "http://busdox.org/transport/identifiers/1.0/"
	spaceSignature   = "http://www.w3.org/2000/09/xmldsig#"

	transportAS4 = "peppol-transport-as4-v2_0"

	methodRSA       = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	methodSHA256    = "http://www.w3.org/2001/04/xmlenc#sha256"
	methodEnveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"

	keyBitsMin = 2048
)

// metadata is what a register says of a participant and a type of document, with
// its signature verified.
type metadata struct{ service *xmltree.Element }

// verifySigned reads a register's answer and verifies that a register signed
// the whole of it.
func verifySigned(body []byte, trusted *x509.CertPool, now time.Time) (metadata, error) {
	doc, err := xmltree.Limits{Bytes: metadataMax, Elements: 20_000}.Read(body)
	if err != nil {
		return metadata{}, err
	}
	if !doc.Root.Is(spaceMetadata, "SignedServiceMetadata") {
		return metadata{}, fmt.Errorf("its answer is no signed metadata but %s", doc.Root.Local)
	}
	var service, signature *xmltree.Element
	for _, child := range doc.Root.Children {
		switch {
		case child.Is(spaceMetadata, "ServiceMetadata") && service == nil:
			service = child
		case child.Is(spaceSignature, "Signature") && signature == nil:
			signature = child
		default:
			return metadata{}, fmt.Errorf("its answer has an unexpected %s", child.Local)
		}
	}
	if service == nil || signature == nil {
		return metadata{}, errors.New("its answer is not signed")
	}
	if err := verify(doc, signature, trusted, now); err != nil {
		return metadata{}, fmt.Errorf("its signature does not hold: %w", err)
	}
	return metadata{service}, nil
}

// verify verifies an enveloped signature over a whole document.
func verify(doc *xmltree.Document, signature *xmltree.Element, trusted *x509.CertPool, now time.Time) error {
	info := signature.At("SignedInfo")
	references := info.All("Reference")
	if info == nil || len(references) != 1 || references[0].Attr("URI") != "" {
		return errors.New("it is not over the whole answer")
	}
	form, enveloped := xmltree.Canonical{Inclusive: true}, false
	for _, t := range references[0].At("Transforms").All("Transform") {
		if t.Attr("Algorithm") == methodEnveloped {
			enveloped = true
		} else if named, ok := xmltree.CanonicalBy(t.Attr("Algorithm")); ok && len(t.Children) == 0 {
			form = named
		} else {
			return fmt.Errorf("the transform %q is not taken", t.Attr("Algorithm"))
		}
	}
	if !enveloped || references[0].At("DigestMethod") == nil ||
		references[0].At("DigestMethod").Attr("Algorithm") != methodSHA256 {
		return errors.New("it is not enveloped, or its digest is not SHA-256")
	}
	form.Without = signature
	sum := sha256.Sum256(form.Document(doc))
	if given, err := decoded(references[0].At("DigestValue")); err != nil || !bytes.Equal(given, sum[:]) {
		return errors.New("the answer is not what was signed")
	}
	method, canonical := info.At("SignatureMethod"), info.At("CanonicalizationMethod")
	if method == nil || method.Attr("Algorithm") != methodRSA || canonical == nil {
		return errors.New("it is not made with RSA and SHA-256")
	}
	form, known := xmltree.CanonicalBy(canonical.Attr("Algorithm"))
	if !known || len(canonical.Children) > 0 {
		return errors.New("its canonical form is not known")
	}
	key, err := keyOf(signature, trusted, now)
	if err != nil {
		return err
	}
	value, err := decoded(signature.At("SignatureValue"))
	if err != nil {
		return err
	}
	sum = sha256.Sum256(form.Bytes(info))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], value); err != nil {
		return errors.New("it is not made with its certificate's key")
	}
	return nil
}

// keyOf is the key of the signature's certificate, which must be a register's.
func keyOf(signature *xmltree.Element, trusted *x509.CertPool, now time.Time) (*rsa.PublicKey, error) {
	der, err := decoded(signature.At("KeyInfo", "X509Data", "X509Certificate"))
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.New("its certificate cannot be read")
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, fmt.Errorf("its certificate is not one of a register: %w", err)
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < keyBitsMin {
		return nil, fmt.Errorf("its key is not an RSA key of at least %d bits", keyBitsMin)
	}
	return key, nil
}

func decoded(e *xmltree.Element) ([]byte, error) {
	if e == nil {
		return nil, errors.New("it is incomplete")
	}
	value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(e.Text), ""))
	if err != nil {
		return nil, fmt.Errorf("%s is no Base64", e.Local)
	}
	return value, nil
}

// redirect is the address of another register that has the answer; "": this one has it.
func (m metadata) redirect() string {
	if to := m.service.At("Redirect"); to != nil {
		return to.Attr("href")
	}
	return ""
}

// takes reports why the participant does not take the document; nil: it does.
func (m metadata) takes(to participant, e envelope, now time.Time) error {
	about := m.service.At("ServiceInformation")
	who, what := about.At("ParticipantIdentifier"), about.At("DocumentIdentifier")
	if !who.Is(spaceIdentifiers, "ParticipantIdentifier") || !strings.EqualFold(strings.TrimSpace(who.Text),
		to.value()) || who.Attr("scheme") != schemeParticipant {
		return errors.New("it answers for another participant")
	}
	if !what.Is(spaceIdentifiers, "DocumentIdentifier") || strings.TrimSpace(what.Text) != e.Document ||
		what.Attr("scheme") != schemeDocument {
		return errors.New("it answers for another type of document")
	}
	for _, p := range about.At("ProcessList").All("Process") {
		if p.Value("ProcessIdentifier") != e.Process {
			continue
		}
		for _, end := range p.At("ServiceEndpointList").All("Endpoint") {
			if end.Attr("transportProfile") == transportAS4 && during(end, now) {
				return nil
			}
		}
	}
	return &unwilling{fmt.Sprintf("%s does not take this type of document over AS4 at present", to.value())}
}

// during reports whether an endpoint is in service; an unreadable day is none.
func during(end *xmltree.Element, now time.Time) bool {
	if from, err := time.Parse(time.RFC3339, end.Value("ServiceActivationDate")); err == nil && now.Before(from) {
		return false
	}
	to, err := time.Parse(time.RFC3339, end.Value("ServiceExpirationDate"))
	return err != nil || now.Before(to)
}
