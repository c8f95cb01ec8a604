package pl

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
)

var challengePattern = regexp.MustCompile(`^\d{8}-CR-[A-F0-9]{10}-[A-F0-9]{10}-[A-F0-9]{2}$`)

// signedChallenge is what a verified AuthTokenRequest says.
type signedChallenge struct {
	challenge string
	nip       string
	leaf      *x509.Certificate
}

// verifySigned reads a signed AuthTokenRequest and verifies its signature: one
// enveloped signature over the whole document and over its own properties,
// which name the certificate. Values are read from the document that was
// verified. The answer to a flaw is KSeF's own.
func verifySigned(body []byte) (signedChallenge, *problemError) {
	var out signedChallenge
	if _, err := parse(body); err != nil {
		return out, &problemError{errDocument, "Nieprawidłowy dokument.", []string{err.Error()}}
	}
	doc := etree.NewDocument()
	if err := doc.ReadFromBytes(body); err != nil || doc.Root() == nil {
		return out, &problemError{errDocument, "Nieprawidłowy dokument.", nil}
	}
	root := doc.Root()
	var signatures []*etree.Element
	for _, child := range root.ChildElements() {
		if child.NamespaceURI() == dsNamespace && child.Tag == "Signature" {
			signatures = append(signatures, child)
		}
	}
	switch {
	case len(signatures) == 0:
		return out, &problemError{errSignatureMissing, "Brak podpisu.", nil}
	case len(signatures) > 1:
		return out, &problemError{errSignatures, "Przekroczona liczba dozwolonych podpisów.", nil}
	}
	leaf, err := verifySignature(root, signatures[0])
	if err != nil {
		return out, &problemError{errSignature, "Nieprawidłowy podpis.", []string{err.Error()}}
	}
	out.leaf = leaf
	if err := out.read(root); err != nil {
		return out, &problemError{errSchema, "Dokument nie jest zgodny ze schemą (xsd).", []string{err.Error()}}
	}
	return out, nil
}

// read checks the request by its schema and takes its values.
func (s *signedChallenge) read(root *etree.Element) error {
	space := root.NamespaceURI()
	if root.Tag != "AuthTokenRequest" || space != authNamespace && space != authNamespaceOld {
		return fmt.Errorf("the root is {%s}%s", space, root.Tag)
	}
	var names []string
	for _, c := range root.ChildElements() {
		if c.NamespaceURI() == space {
			names = append(names, c.Tag)
		}
	}
	order := strings.TrimSuffix(strings.Join(names, " "), " AuthorizationPolicy")
	if order != "Challenge ContextIdentifier SubjectIdentifierType" {
		return fmt.Errorf("the elements are %s", order)
	}
	s.challenge = root.SelectElement("Challenge").Text()
	if !challengePattern.MatchString(s.challenge) {
		return fmt.Errorf("%q is no challenge", s.challenge)
	}
	context := root.SelectElement("ContextIdentifier").ChildElements()
	if len(context) != 1 || context[0].Tag != "Nip" || !nipPattern.MatchString(context[0].Text()) {
		return errors.New("the context is no Nip")
	}
	s.nip = context[0].Text()
	if kind := root.SelectElement("SubjectIdentifierType").Text(); kind != subjectType && kind != "certificateFingerprint" {
		return fmt.Errorf("%q is no type of a subject", kind)
	}
	return nil
}

// verifySignature verifies digests, signature and certificate.
func verifySignature(root, signature *etree.Element) (*x509.Certificate, error) {
	info := path(signature, "SignedInfo")
	if info == nil {
		return nil, errors.New("there is no SignedInfo")
	}
	leaf, err := certificateOf(signature)
	if err != nil {
		return nil, err
	}
	if err := verifyReferences(root, signature, info); err != nil {
		return nil, err
	}
	if err := verifyNamed(signature, leaf); err != nil {
		return nil, err
	}
	if algorithmOf(path(info, "CanonicalizationMethod")) != algExclusive {
		return nil, errors.New("SignedInfo is not in exclusive canonical form")
	}
	text, err := canonical(info)
	if err != nil {
		return nil, err
	}
	value, err := base64.StdEncoding.DecodeString(squeezed(path(signature, "SignatureValue")))
	if err != nil {
		return nil, errors.New("SignatureValue is no Base64")
	}
	return leaf, verifyValue(leaf, algorithmOf(path(info, "SignatureMethod")), text, value)
}

func verifyValue(leaf *x509.Certificate, method string, text, value []byte) error {
	sum := sha256.Sum256(text)
	ok := false
	switch key := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		ok = method == algRSA && key.N.BitLen() >= keyBitsMin && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], value) == nil
	case *ecdsa.PublicKey:
		half := len(value) / 2
		ok = method == algECDSA && half > 0 && len(value)%2 == 0 &&
			ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(value[:half]), new(big.Int).SetBytes(value[half:]))
	}
	if !ok {
		return errors.New("the signature is not made with the certificate's key")
	}
	return nil
}

// verifyReferences wants exactly two: the document without its signature, and
// the signed properties.
func verifyReferences(root, signature, info *etree.Element) error {
	var document, properties int
	for _, reference := range info.SelectElements("Reference") {
		var text []byte
		var err error
		switch uri := reference.SelectAttrValue("URI", "?"); {
		case uri == "":
			document++
			text, err = withoutSignature(root)
		case reference.SelectAttrValue("Type", "") == typeSignedProperties:
			properties++
			signed := path(signature, "Object", "QualifyingProperties", "SignedProperties")
			if signed == nil || "#"+signed.SelectAttrValue("Id", "") != uri {
				return errors.New("the signed properties are not those of the signature")
			}
			text, err = canonical(signed)
		default:
			return fmt.Errorf("a reference to %q is not expected", uri)
		}
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		given, err := base64.StdEncoding.DecodeString(squeezed(path(reference, "DigestValue")))
		if err != nil || algorithmOf(path(reference, "DigestMethod")) != algSHA256 || !bytes.Equal(given, sum[:]) {
			return errors.New("a digest does not fit the document")
		}
	}
	if document != 1 || properties != 1 {
		return fmt.Errorf("there are %d references to the document and %d to the signed properties", document, properties)
	}
	return nil
}

// verifyNamed wants the signed properties to name the certificate.
func verifyNamed(signature *etree.Element, leaf *x509.Certificate) error {
	base := path(signature, "Object", "QualifyingProperties", "SignedProperties", "SignedSignatureProperties")
	if squeezed(path(base, "SigningTime")) == "" {
		return errors.New("there is no SigningTime")
	}
	sum := sha256.Sum256(leaf.Raw)
	if squeezed(path(base, "SigningCertificate", "Cert", "CertDigest", "DigestValue")) != base64.StdEncoding.EncodeToString(sum[:]) {
		return errors.New("the signed properties name another certificate")
	}
	return nil
}

func certificateOf(signature *etree.Element) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(squeezed(path(signature, "KeyInfo", "X509Data", "X509Certificate")))
	if err != nil {
		return nil, errors.New("the certificate is no Base64")
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.New("the certificate cannot be read")
	}
	return leaf, nil
}

// path goes down by local names; nil when a step is missing.
func path(at *etree.Element, names ...string) *etree.Element {
	for _, name := range names {
		var next *etree.Element
		if at != nil {
			for _, c := range at.ChildElements() {
				if c.Tag == name {
					next = c
					break
				}
			}
		}
		if next == nil {
			return nil
		}
		at = next
	}
	return at
}

func algorithmOf(e *etree.Element) string {
	if e == nil {
		return ""
	}
	return e.SelectAttrValue("Algorithm", "")
}

// squeezed is an element's text without blanks; "" where there is no element.
func squeezed(e *etree.Element) string {
	if e == nil {
		return ""
	}
	return strings.Join(strings.Fields(e.Text()), "")
}

// canonical is the exclusive canonical form of an element of a document.
func canonical(e *etree.Element) ([]byte, error) {
	around, err := etreeutils.NSBuildParentContext(e)
	if err != nil {
		return nil, err
	}
	alone, err := etreeutils.NSDetatch(around, e)
	if err != nil {
		return nil, err
	}
	return dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("").Canonicalize(alone)
}

func withoutSignature(root *etree.Element) ([]byte, error) {
	copied := root.Copy()
	for _, c := range copied.ChildElements() {
		if c.Tag == "Signature" {
			copied.RemoveChild(c)
		}
	}
	return canonical(copied)
}
