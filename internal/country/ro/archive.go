package ro

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tributary/internal/country"
	"tributary/internal/xmltree"
)

// archive is a ZIP of ANAF's: the document, or its errors, and the ministry's
// signature of it.
type archive struct {
	zip       []byte // whole
	index     string
	content   []byte // {index}.xml
	signature []byte // semnatura_{index}.xml
}

// fetch downloads the archive of an index. An archive of another index is nobody's answer.
func (ch *channel) fetch(ctx context.Context, id, index string, c country.Credentials) (archive, error) {
	if !digits(id) {
		return archive{}, fmt.Errorf("ANAF names no archive of %s: %q", index, id)
	}
	if err := ch.spend(ctx, quotaDownloads, id); err != nil {
		return archive{}, err
	}
	raw, err := ch.call(ctx, country.Request{Method: http.MethodGet, URL: "/descarcare?id=" + url.QueryEscape(id),
		BytesMax: archiveBytesMax}, c)
	if err != nil {
		return archive{}, err
	}
	a, err := unpack(raw, index)
	if err == nil && ch.ministry != nil {
		err = a.verify(ch.ministry)
	}
	if err != nil {
		return archive{}, fmt.Errorf("the archive of %s: %w", index, err)
	}
	return a, nil
}

func unpack(raw []byte, index string) (archive, error) {
	a := archive{zip: raw, index: index}
	files, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		if said, ok := eroare(raw); ok {
			return a, (&refusal{said}).meaning()
		}
		return a, fmt.Errorf("is no ZIP: %w", err)
	}
	for _, f := range files.File {
		var into *[]byte
		switch f.Name {
		case index + ".xml":
			into = &a.content
		case "semnatura_" + index + ".xml":
			into = &a.signature
		default:
			continue
		}
		if *into, err = inflate(f); err != nil {
			return a, err
		}
	}
	if len(a.content) == 0 || len(a.signature) == 0 {
		return a, errors.New("lacks the document or its signature")
	}
	return a, nil
}

func inflate(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, uploadBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if len(text) > uploadBytesMax {
		return nil, fmt.Errorf("%s: %w", f.Name, country.ErrBodyTooLarge)
	}
	return text, nil
}

// holds is the hash of what the archive has: ours where the content is what was
// sent, if need be without what canonical XML does not count.
func (a archive) holds(f country.Filing) string {
	sum := country.SHA256(a.content)
	if sum == f.SHA256 {
		return sum
	}
	theirs, err := xmltree.Limits{Bytes: uploadBytesMax}.Read(a.content)
	if err != nil {
		return sum
	}
	ours, err := xmltree.Limits{Bytes: uploadBytesMax}.Read(f.Report)
	if err != nil {
		return sum
	}
	form, _ := xmltree.CanonicalBy(exclusive)
	if bytes.Equal(form.Document(theirs), form.Document(ours)) {
		return f.SHA256
	}
	return sum
}

// refusals are the errors of an archive; none: it holds a document.
func (a archive) refusals() []string {
	doc, err := xmltree.Limits{Bytes: uploadBytesMax}.Read(a.content)
	if err != nil || !doc.Root.Is(spaceErrors, "header") {
		return nil
	}
	return errorsOf(doc.Root, "Error")
}

const (
	exclusive   = "http://www.w3.org/2001/10/xml-exc-c14n#"
	spaceDSig   = "http://www.w3.org/2000/09/xmldsig#"
	digest256   = "http://www.w3.org/2001/04/xmlenc#sha256"
	rsaSHA256   = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	ecdsaSHA256 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
)

// errSignature says that an archive is not what the ministry signed.
var errSignature = errors.New("is not signed by the ministry's certificate")

// verify holds the signature against the ministry's certificate: the digest of
// the document's bytes, and the key that signed it.
func (a archive) verify(ministry *x509.Certificate) error {
	doc, err := xmltree.Read(a.signature)
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	s := doc.Root
	if !s.Is(spaceDSig, "Signature") {
		if s = doc.Root.Find(spaceDSig, "Signature"); s == nil {
			return fmt.Errorf("%w: there is none", errSignature)
		}
	}
	info := s.At("SignedInfo")
	sum := sha256.Sum256(a.content)
	digest := base64.StdEncoding.EncodeToString(sum[:])
	signed := false
	for _, r := range info.All("Reference") {
		signed = signed || r.At("DigestMethod").Attr("Algorithm") == digest256 && strings.TrimSpace(r.Value("DigestValue")) == digest
	}
	form, known := xmltree.CanonicalBy(info.At("CanonicalizationMethod").Attr("Algorithm"))
	if !signed || !known {
		return fmt.Errorf("%w: it is of another document", errSignature)
	}
	value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s.Value("SignatureValue")), ""))
	if err != nil {
		return fmt.Errorf("%w: %w", errSignature, err)
	}
	hash := sha256.Sum256(form.Bytes(info))
	method := info.At("SignatureMethod").Attr("Algorithm")
	switch key := ministry.PublicKey.(type) {
	case *rsa.PublicKey:
		if method == rsaSHA256 && rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], value) == nil {
			return nil
		}
	case *ecdsa.PublicKey:
		if method == ecdsaSHA256 && ecdsa.VerifyASN1(key, hash[:], value) {
			return nil
		}
	}
	return errSignature
}

// ministryOf reads the certificate that an operator has given; nil: none.
func ministryOf(text string) (*x509.Certificate, error) {
	if text == "" {
		return nil, nil
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the ministry's certificate is no PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the ministry's certificate: %w", err)
	}
	return cert, nil
}
