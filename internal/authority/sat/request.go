package sat

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// request asks for one voucher to be cancelled.
type request struct {
	rfc         string
	uuid        string
	motive      string
	replacement string // UUID, with motive 01
}

// readRequest reads a signed cancellation request (Anexo 20, "Estándar del
// servicio de cancelación"). An error with a certificate says that the
// signature is wrong, one without that the request cannot be read.
func readRequest(raw []byte) (request, *x509.Certificate, error) {
	doc, err := readVoucher(raw)
	if err != nil {
		return request{}, nil, err
	}
	root := doc.Root
	if !root.Is(satwire.SpaceCancel, "Cancelacion") || len(root.Children) != 2 {
		return request{}, nil, errors.New("it is no cancellation of one voucher")
	}
	folios, signature := root.Children[0], root.Children[1]
	if !folios.Is(satwire.SpaceCancel, "Folios") || len(folios.Children) != 1 ||
		!folios.Children[0].Is(satwire.SpaceCancel, "Folio") {
		return request{}, nil, errors.New("it names no voucher, or several")
	}
	folio := folios.Children[0]
	r := request{rfc: root.Attr("RfcEmisor"), uuid: folio.Attr("UUID"), motive: folio.Attr("Motivo"),
		replacement: folio.Attr("FolioSustitucion")}
	if !signature.Is(satwire.SpaceSignature, "Signature") {
		return r, nil, errors.New("it is not signed")
	}
	der, err := base64.StdEncoding.DecodeString(joined(signature.Value("KeyInfo", "X509Data", "X509Certificate")))
	if err != nil {
		return r, nil, fmt.Errorf("reading its certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return r, nil, fmt.Errorf("reading its certificate: %w", err)
	}
	return r, leaf, verifyEnveloped(doc, signature, leaf)
}

// verifyEnveloped checks an enveloped XML signature over a whole document, in
// the algorithms that SAT's service takes: RSA-SHA1 over Canonical XML 1.0.
func verifyEnveloped(doc *xmltree.Document, signature *xmltree.Element, leaf *x509.Certificate) error {
	info := signature.At("SignedInfo")
	reference := info.At("Reference")
	transforms := reference.At("Transforms").All("Transform")
	switch {
	case len(info.All("Reference")) != 1 || len(transforms) != 1:
		return errors.New("its signature covers something else than the request")
	case reference.Attr("URI") != "" || transforms[0].Attr("Algorithm") != satwire.SpaceSignature+"enveloped-signature":
		return errors.New("its signature covers something else than the request")
	case info.At("CanonicalizationMethod").Attr("Algorithm") != xmltree.AlgorithmInclusive,
		info.At("SignatureMethod").Attr("Algorithm") != satwire.SpaceSignature+"rsa-sha1",
		reference.At("DigestMethod").Attr("Algorithm") != satwire.SpaceSignature+"sha1":
		return errors.New("its signature uses other algorithms")
	}
	covered := sha1.Sum(xmltree.Canonical{Inclusive: true, Without: signature}.Document(doc))
	if joined(reference.Value("DigestValue")) != base64.StdEncoding.EncodeToString(covered[:]) {
		return errors.New("its digest is not that of its contents")
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok {
		return errors.New("its certificate has no RSA key")
	}
	value, err := base64.StdEncoding.DecodeString(joined(signature.Value("SignatureValue")))
	if err != nil {
		return fmt.Errorf("reading its signature: %w", err)
	}
	signed := sha1.Sum(xmltree.Canonical{Inclusive: true}.Bytes(info))
	return rsa.VerifyPKCS1v15(key, crypto.SHA1, signed[:], value)
}

// joined is base64 without the white space that XML lets stand in it.
func joined(text string) string { return strings.Join(strings.Fields(text), "") }
