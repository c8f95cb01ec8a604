package sdi

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

// Names inside a signature, as SdI writes them; the misspelt one is its own.
const (
	idSignature  = "Signature1"
	idProperties = "SignedProperties_1"
	idKey        = "KeyInfoId"
)

// sealed are the values of a signature that are found one after another.
type sealed struct{ document, properties, key, value string }

// signed signs a message: write writes it, and calls sign where the signature stands.
func (k *keyPair) signed(at time.Time, write func(sign func(*xmltree.Writer)) []byte) ([]byte, error) {
	var s sealed
	text := func() []byte {
		return write(func(w *xmltree.Writer) { k.writeSignature(w, at, s) })
	}
	doc, err := xmltree.Read(text())
	if err != nil {
		return nil, fmt.Errorf("reading our own message: %w", err)
	}
	signature := doc.Root.Find(sdiwire.SpaceSignature, "Signature")
	whole := xmltree.Canonical{Inclusive: true, Without: signature}
	part := xmltree.Canonical{Inclusive: true}
	s.document = digest(whole.Document(doc))
	s.properties = digest(part.Bytes(signature.At("Object", "QualifyingProperties", "SignedProperties")))
	s.key = digest(part.Bytes(signature.At("KeyInfo")))
	if doc, err = xmltree.Read(text()); err != nil {
		return nil, fmt.Errorf("reading our own message: %w", err)
	}
	info := xmltree.Canonical{}.Bytes(doc.Root.Find(sdiwire.SpaceSignature, "SignedInfo"))
	sum := sha256.Sum256(info)
	value, err := rsa.SignPKCS1v15(rand.Reader, k.key, crypto.SHA256, sum[:])
	if err != nil {
		return nil, fmt.Errorf("signing a message: %w", err)
	}
	s.value = base64.StdEncoding.EncodeToString(value)
	return text(), nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (k *keyPair) writeSignature(w *xmltree.Writer, at time.Time, s sealed) {
	w.Start("ds:Signature", "xmlns:ds", sdiwire.SpaceSignature, "Id", idSignature)
	w.Start("ds:SignedInfo")
	w.Leaf("ds:CanonicalizationMethod", "", "Algorithm", xmltree.AlgorithmExclusive)
	w.Leaf("ds:SignatureMethod", "", "Algorithm", sdiwire.MethodRSA)
	w.Start("ds:Reference", "Id", "reference-document", "URI", "")
	w.Start("ds:Transforms")
	w.Start("ds:Transform", "Algorithm", sdiwire.SpaceFilter)
	w.Leaf("XPath", sdiwire.FilterXPath, "xmlns", sdiwire.SpaceFilter, "Filter", sdiwire.FilterKind)
	w.End()
	w.End()
	writeDigest(w, s.document)
	w.Start("ds:Reference", "Id", "reference-signedpropeties", "Type", sdiwire.TypeSignedProperties, "URI", "#"+idProperties)
	writeDigest(w, s.properties)
	w.Start("ds:Reference", "Id", "reference-keyinfo", "URI", "#"+idKey)
	writeDigest(w, s.key)
	w.End()
	w.Leaf("ds:SignatureValue", s.value, "Id", "SignatureValue1")
	w.Start("ds:KeyInfo", "Id", idKey)
	w.Start("ds:X509Data")
	w.Leaf("ds:X509Certificate", base64.StdEncoding.EncodeToString(k.leaf.Raw))
	w.End()
	w.End()
	w.Start("ds:Object")
	w.Start("xades:QualifyingProperties", "xmlns:xades", sdiwire.SpaceXAdES, "Target", "#"+idSignature)
	w.Start("xades:SignedProperties", "Id", idProperties)
	w.Start("xades:SignedSignatureProperties")
	w.Leaf("xades:SigningTime", at.UTC().Format(time.RFC3339))
	for range 5 {
		w.End()
	}
}

// writeDigest ends a reference.
func writeDigest(w *xmltree.Writer, value string) {
	w.Leaf("ds:DigestMethod", "", "Algorithm", sdiwire.MethodSHA256)
	w.Leaf("ds:DigestValue", value)
	w.End()
}
