package ksef

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha512" // SHA-384 and SHA-512 of signatures
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"tributary/internal/official"
	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
)

const (
	algorithmBase64 = "http://www.w3.org/2000/09/xmldsig#base64"
	moreSignatures  = "http://www.w3.org/2001/04/xmldsig-more#"
	moreSignatures2 = "http://www.w3.org/2007/05/xmldsig-more#"
	encryptions     = "http://www.w3.org/2001/04/xmlenc#"
)

// signedChallenge is what a verified AuthTokenRequest says.
type signedChallenge struct {
	challenge string
	nip       string
	leaf      *x509.Certificate
}

// envelope is a signed document: the signature, and where what it signs stands.
// Enveloped signatures stand inside of the request, enveloping ones around it;
// detached ones are refused (ksef-docs, podpis-xades.md).
type envelope struct {
	doc       *xmltree.Document
	signature *xmltree.Element
	request   *xmltree.Element
	around    *xmltree.Element // of an enveloping signature: the ds:Object that holds the request
}

// verifySigned reads a signed AuthTokenRequest and verifies its signature: one,
// over the whole request and over its own properties, which name the
// certificate. Values are read from what was verified. The answer to a flaw is
// KSeF's own.
func verifySigned(body []byte) (signedChallenge, *ksefwire.ProblemError) {
	var out signedChallenge
	doc, err := readStrictly(body, callBytesMax)
	if err != nil {
		return out, &ksefwire.ProblemError{Code: ksefwire.CodeDocument, Description: "Nieprawidłowy dokument.",
			Details: []string{err.Error()}}
	}
	signed, flaw := openEnvelope(doc)
	if flaw != nil {
		return out, flaw
	}
	if out.leaf, err = signed.verify(); err != nil {
		return out, &ksefwire.ProblemError{Code: ksefwire.CodeSignature, Description: "Nieprawidłowy podpis.",
			Details: []string{err.Error()}}
	}
	if err := out.read(signed); err != nil {
		return out, &ksefwire.ProblemError{Code: ksefwire.CodeSchema,
			Description: "Dokument nie jest zgodny ze schemą (xsd).", Details: []string{err.Error()}}
	}
	return out, nil
}

func openEnvelope(doc *xmltree.Document) (envelope, *ksefwire.ProblemError) {
	e := envelope{doc: doc}
	if doc.Root.Is(ksefwire.SpaceSignature, "Signature") {
		e.signature = doc.Root
		return e, nil
	}
	e.request = doc.Root
	count := 0
	for _, c := range doc.Root.Children {
		if c.Is(ksefwire.SpaceSignature, "Signature") {
			e.signature = c
			count++
		}
	}
	switch {
	case count == 0:
		return e, &ksefwire.ProblemError{Code: ksefwire.CodeSignatureMissing, Description: "Brak podpisu."}
	case count > 1:
		return e, &ksefwire.ProblemError{Code: ksefwire.CodeSignatures, Description: "Przekroczona liczba dozwolonych podpisów."}
	}
	return e, nil
}

// read checks the request by its schema and takes its values.
func (s *signedChallenge) read(e envelope) error {
	request := e.request
	if e.around == nil { // the signature inside of it is no part of what the schema describes
		kept := request.Children[:0:0]
		for _, c := range request.Children {
			if c != e.signature {
				kept = append(kept, c)
			}
		}
		request.Children = kept
	}
	// see requestText
	request.Attrs = slices.DeleteFunc(request.Attrs, func(a xmltree.Attr) bool { return a.Space == "" && a.Local == "Id" })
	for n := range request.Walk() {
		if n.Space == ksefwire.SpaceAuthOld { // 2.0, which KSeF still takes, is 2.1 with fewer policies
			n.Space = ksefwire.SpaceAuth
		}
	}
	if !request.Is(ksefwire.SpaceAuth, "AuthTokenRequest") {
		return fmt.Errorf("the root is {%s}%s", request.Space, request.Local)
	}
	if flaw := official.KSeFAuth.Schema().First(request); flaw != nil {
		return flaw
	}
	s.challenge, s.nip = request.Value("Challenge"), request.Value("ContextIdentifier", "Nip")
	if s.nip == "" {
		return errors.New("the context is no Nip")
	}
	return nil
}

// verify verifies digests, signature and certificate.
func (e *envelope) verify() (*x509.Certificate, error) {
	info := e.signature.At("SignedInfo")
	if info == nil {
		return nil, errors.New("there is no SignedInfo")
	}
	leaf, err := certificateOf(e.signature)
	if err != nil {
		return nil, err
	}
	if err := e.verifyReferences(info); err != nil {
		return nil, err
	}
	if err := e.verifyNamed(leaf); err != nil {
		return nil, err
	}
	form, ok := canonicalOf(info.At("CanonicalizationMethod"))
	if !ok {
		return nil, errors.New("SignedInfo is in no canonical form that is known")
	}
	value, err := base64.StdEncoding.DecodeString(squeezed(e.signature.At("SignatureValue")))
	if err != nil {
		return nil, errors.New("SignatureValue is no Base64")
	}
	return leaf, verifyValue(leaf, algorithmOf(info.At("SignatureMethod")), form.Bytes(info), value)
}

// digestOf is a hash by its name in DigestMethod.
func digestOf(name string) (crypto.Hash, bool) {
	switch name {
	case ksefwire.SHA256:
		return crypto.SHA256, true
	case moreSignatures + "sha384":
		return crypto.SHA384, true
	case encryptions + "sha512":
		return crypto.SHA512, true
	}
	return 0, false
}

func hashed(h crypto.Hash, text []byte) []byte {
	sum := h.New()
	sum.Write(text)
	return sum.Sum(nil)
}

func verifyValue(leaf *x509.Certificate, method string, text, value []byte) error {
	wrong := errors.New("the signature is not made with the certificate's key")
	for hash, name := range map[crypto.Hash]string{crypto.SHA256: "sha256", crypto.SHA384: "sha384", crypto.SHA512: "sha512"} {
		sum := hashed(hash, text)
		ok := false
		switch key := leaf.PublicKey.(type) {
		case *rsa.PublicKey:
			switch {
			case key.N.BitLen() < ksefwire.KeyBitsMin:
			case method == moreSignatures+"rsa-"+name:
				ok = rsa.VerifyPKCS1v15(key, hash, sum, value) == nil
			case method == moreSignatures2+name+"-rsa-MGF1":
				ok = rsa.VerifyPSS(key, hash, sum, value, nil) == nil
			}
		case *ecdsa.PublicKey:
			half := len(value) / 2
			ok = method == moreSignatures+"ecdsa-"+name && half > 0 && len(value)%2 == 0 &&
				ecdsa.Verify(key, sum, new(big.Int).SetBytes(value[:half]), new(big.Int).SetBytes(value[half:]))
		}
		if ok {
			return nil
		}
	}
	return wrong
}

// verifyReferences wants exactly two: the request and the signed properties.
func (e *envelope) verifyReferences(info *xmltree.Element) error {
	var requests, properties int
	for _, reference := range info.All("Reference") {
		var text []byte
		var err error
		if reference.Attr("Type") == ksefwire.TypeSignedProperties {
			properties++
			text, err = e.propertiesText(reference)
		} else {
			requests++
			text, err = e.requestText(reference)
		}
		if err != nil {
			return err
		}
		given, err := base64.StdEncoding.DecodeString(squeezed(reference.At("DigestValue")))
		hash, known := digestOf(algorithmOf(reference.At("DigestMethod")))
		if err != nil || !known || !bytes.Equal(given, hashed(hash, text)) {
			return errors.New("a digest does not fit the document")
		}
	}
	if requests != 1 || properties != 1 {
		return fmt.Errorf("there are %d references to the document and %d to the signed properties", requests, properties)
	}
	return nil
}

// properties are the signed properties of the signature; nil where there are
// none, or several.
func (e *envelope) properties() *xmltree.Element {
	var found *xmltree.Element
	for _, o := range e.signature.All("Object") {
		for _, q := range o.All("QualifyingProperties") {
			for _, p := range q.All("SignedProperties") {
				if found != nil {
					return nil
				}
				found = p
			}
		}
	}
	return found
}

func (e *envelope) propertiesText(reference *xmltree.Element) ([]byte, error) {
	signed := e.properties()
	if signed == nil || "#"+signed.Attr("Id") != reference.Attr("URI") {
		return nil, errors.New("the signed properties are not those of the signature")
	}
	form, other, err := transformsOf(reference)
	if err == nil && other != "" {
		err = fmt.Errorf("the transform %q of the signed properties is not taken", other)
	}
	return form.Bytes(signed), err
}

// requestText is what the reference to the request signs: the document without
// its signature, or the object that the signature carries.
func (e *envelope) requestText(reference *xmltree.Element) ([]byte, error) {
	form, other, err := transformsOf(reference)
	if err != nil {
		return nil, err
	}
	uri := reference.Attr("URI")
	if e.request != nil {
		if uri != "" || other != ksefwire.Enveloped {
			return nil, fmt.Errorf("a reference to %q is not expected", uri)
		}
		form.Without = e.signature
		return form.Document(e.doc), nil
	}
	// Its object is signed, or the one element in it, which then has an Id that
	// the schema does not know.
	var signed *xmltree.Element
	for _, o := range e.signature.All("Object") {
		for _, candidate := range append([]*xmltree.Element{o}, o.Children...) {
			if candidate.Attr("Id") == "" || "#"+candidate.Attr("Id") != uri {
				continue
			}
			if signed != nil {
				return nil, errors.New("two objects have one Id")
			}
			signed, e.around = candidate, o
		}
	}
	switch {
	case signed == nil:
		return nil, fmt.Errorf("a reference to %q is not expected", uri)
	case other == algorithmBase64 && signed == e.around:
		return e.packed()
	case other != "" || len(e.around.Children) != 1:
		return nil, errors.New("the signed object is not one request")
	}
	e.request = e.around.Children[0]
	return form.Bytes(signed), nil
}

// packed reads a request that its object carries as Base64.
func (e *envelope) packed() ([]byte, error) {
	text, err := base64.StdEncoding.DecodeString(squeezed(e.around))
	if err != nil {
		return nil, errors.New("the signed object is no Base64")
	}
	doc, err := readStrictly(text, callBytesMax)
	if err != nil {
		return nil, fmt.Errorf("the signed object: %w", err)
	}
	e.request = doc.Root
	return text, nil
}

// transformsOf answers the canonical form of a reference, the inclusive one
// where none is named, and the transform that is none.
func transformsOf(reference *xmltree.Element) (form xmltree.Canonical, other string, err error) {
	form, _ = xmltree.CanonicalBy(xmltree.AlgorithmInclusive)
	transforms := reference.At("Transforms")
	if transforms == nil {
		return form, "", nil
	}
	for _, t := range transforms.All("Transform") {
		if f, ok := canonicalOf(t); ok {
			form = f
			continue
		}
		name := algorithmOf(t)
		if name != ksefwire.Enveloped && name != algorithmBase64 || other != "" {
			return form, "", fmt.Errorf("the transform %q is not taken", name)
		}
		other = name
	}
	return form, other, nil
}

// canonicalOf is the canonical form that a method or a transform names.
func canonicalOf(e *xmltree.Element) (xmltree.Canonical, bool) {
	form, ok := xmltree.CanonicalBy(algorithmOf(e))
	if !ok {
		return form, false
	}
	if named := e.At("InclusiveNamespaces"); named != nil {
		form.Prefixes = strings.Fields(named.Attr("PrefixList"))
	}
	return form, true
}

// verifyNamed wants the signed properties to name the certificate, in either
// edition of the element.
func (e *envelope) verifyNamed(leaf *x509.Certificate) error {
	base := e.properties().At("SignedSignatureProperties")
	if base == nil || squeezed(base.At("SigningTime")) == "" {
		return errors.New("there is no SigningTime")
	}
	for _, name := range []string{"SigningCertificate", "SigningCertificateV2"} {
		named := base.At(name, "Cert", "CertDigest")
		if named == nil {
			continue
		}
		hash, known := digestOf(algorithmOf(named.At("DigestMethod")))
		if known && squeezed(named.At("DigestValue")) == base64.StdEncoding.EncodeToString(hashed(hash, leaf.Raw)) {
			return nil
		}
	}
	return errors.New("the signed properties name another certificate")
}

func certificateOf(signature *xmltree.Element) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(squeezed(signature.At("KeyInfo", "X509Data", "X509Certificate")))
	if err != nil {
		return nil, errors.New("the certificate is no Base64")
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.New("the certificate cannot be read")
	}
	return leaf, nil
}

func algorithmOf(e *xmltree.Element) string {
	if e == nil {
		return ""
	}
	return e.Attr("Algorithm")
}

// squeezed is an element's text without blanks; "" where there is no element.
func squeezed(e *xmltree.Element) string {
	if e == nil {
		return ""
	}
	return strings.Join(strings.Fields(e.Text), "")
}
