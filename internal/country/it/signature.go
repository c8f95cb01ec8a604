package it

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

// enveloped is the other way to leave a signature out of what it signs.
const enveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"

// verify proves that SdI signed the whole message: one signature, a child of the
// root, whose references cover the document and everything else they name, by a
// certificate of one of the roots.
func (n *notice) verify(roots *x509.CertPool, now time.Time) error {
	var signature *xmltree.Element
	for e := range n.root.Walk() {
		if !e.Is(sdiwire.SpaceSignature, "Signature") {
			continue
		}
		if signature != nil || e.Parent != n.root {
			return errors.New("there must be one signature, below the root")
		}
		signature = e
	}
	info := signature.At("SignedInfo")
	if info == nil {
		return errors.New("there is no signature")
	}
	if !n.at.IsZero() && n.at.Before(now) {
		now = n.at // SdI repeats what it said long ago
	}
	leaf, err := signerOf(signature, roots, now)
	if err != nil {
		return err
	}
	whole := false
	for _, reference := range info.All("Reference") {
		text, document, err := n.referred(signature, reference)
		if err != nil {
			return err
		}
		whole = whole || document
		if err := sameDigest(reference, text); err != nil {
			return err
		}
	}
	if !whole {
		return errors.New("the signature does not cover the message")
	}
	form, ok := xmltree.CanonicalBy(info.At("CanonicalizationMethod").Attr("Algorithm"))
	if !ok || info.At("SignatureMethod").Attr("Algorithm") != sdiwire.MethodRSA {
		return errors.New("the signature is of a kind that is not known here")
	}
	return signedBy(leaf, form.Bytes(info), signature.Value("SignatureValue"))
}

func signedBy(leaf *x509.Certificate, text []byte, value string) error {
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	raw, err := decoded(value)
	if !ok || err != nil {
		return errors.New("the signature's value, or its key, is none of RSA")
	}
	sum := sha256.Sum256(text)
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw)
}

func decoded(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}

// signerOf is the certificate in the signature, vouched for by the roots. One that
// has ended may have signed while it was valid; the message's own time says when.
func signerOf(signature *xmltree.Element, roots *x509.CertPool, now time.Time) (*x509.Certificate, error) {
	der, err := decoded(signature.Value("KeyInfo", "X509Data", "X509Certificate"))
	if err != nil {
		return nil, fmt.Errorf("reading the signer's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the signer's certificate: %w", err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, fmt.Errorf("the signer is not vouched for: %w", err)
	}
	return leaf, nil
}

// referred is what a reference signs, and whether that is the whole message.
func (n *notice) referred(signature, reference *xmltree.Element) (text []byte, document bool, err error) {
	form, without := xmltree.Canonical{Inclusive: true}, false // what is canonical where nobody says
	for _, t := range reference.At("Transforms").All("Transform") {
		algorithm := t.Attr("Algorithm")
		switch known, ok := xmltree.CanonicalBy(algorithm); {
		case ok:
			form = known
		case algorithm == enveloped:
			without = true
		case algorithm == sdiwire.SpaceFilter && filtersSignature(t):
			without = true
		default:
			return nil, false, fmt.Errorf("the transform %q is not known here", algorithm)
		}
	}
	uri := reference.Attr("URI")
	if uri == "" {
		if !without {
			return nil, false, errors.New("a signature cannot sign itself")
		}
		form.Without = signature
		return form.Document(n.doc), true, nil
	}
	var found *xmltree.Element
	for e := range n.root.Walk() {
		if id, ok := e.Lookup("", "Id"); ok && "#"+id == uri {
			if found != nil {
				return nil, false, fmt.Errorf("%s names two elements", uri)
			}
			found = e
		}
	}
	if found == nil {
		return nil, false, fmt.Errorf("%s names nothing", uri)
	}
	return form.Bytes(found), false, nil
}

// filtersSignature reports whether a filter takes the signature away and nothing else.
func filtersSignature(t *xmltree.Element) bool {
	paths := t.Children
	return len(paths) == 1 && paths[0].Attr("Filter") == sdiwire.FilterKind &&
		strings.TrimSpace(paths[0].Text) == sdiwire.FilterXPath
}

func sameDigest(reference *xmltree.Element, text []byte) error {
	want, err := decoded(reference.Value("DigestValue"))
	sum := sha256.Sum256(text)
	if err != nil || reference.At("DigestMethod").Attr("Algorithm") != sdiwire.MethodSHA256 ||
		subtle.ConstantTimeCompare(want, sum[:]) != 1 {
		return fmt.Errorf("what %q names is not what was signed", reference.Attr("URI"))
	}
	return nil
}
