// Package identity opens the certificates with which suppliers sign and
// identify themselves.
//
// It owns PKCS#12 files: what is read of one before its password is tried, its
// key with the certificate that belongs to it, and the tax numbers in a
// subject. It does not own whether a country takes a certificate, nor where
// one is stored. Law: no file, however made, can cost more than its stated
// limits before it is refused.
package identity

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"strings"
	"unicode"

	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/country/taxid"
)

// Identity is a private key with its certificate.
//
// Failure policy: nothing of this type is logged, stored or returned to a client.
type Identity struct {
	Key   crypto.Signer
	Leaf  *x509.Certificate
	Chain []*x509.Certificate // the other certificates of the file, in its order
}

// TLS is the identity as a TLS client shows it.
func (i *Identity) TLS() tls.Certificate {
	cert := tls.Certificate{Certificate: [][]byte{i.Leaf.Raw}, PrivateKey: i.Key, Leaf: i.Leaf}
	for _, c := range i.Chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	return cert
}

// Problem is why a file cannot be opened, for people: a predicate without a
// subject. Nil: there is none.
type Problem struct {
	Password bool // the password is to blame, not the file
	Reason   string
}

// Open decrypts the file and finds the certificate that belongs to its key.
// The decoder panics on some malformed files; its words are not repeated.
func (p *File) Open(password string) (id *Identity, problem *Problem) {
	defer func() {
		if recover() != nil {
			id, problem = nil, &Problem{Reason: unsupportedSafe}
		}
	}()
	var form []byte
	if p.mac != nil {
		var ok bool
		if form, ok = p.mac.verify(p.safe, password); !ok {
			return nil, &Problem{Password: true, Reason: "does not open the certificate"}
		}
	} else if password != "" {
		return nil, &Problem{Password: true, Reason: "does not open the certificate: it has no password"}
	}
	file, err := p.remade(form)
	if err != nil {
		return nil, &Problem{Reason: unsupportedSafe}
	}
	key, first, rest, err := pkcs12.DecodeChain(file, password)
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword), errors.Is(err, pkcs12.ErrDecryption):
		return nil, &Problem{Password: true, Reason: "does not open the certificate"}
	case err != nil:
		return nil, &Problem{Reason: "cannot be read: " + plainReason(err)}
	}
	if id = owned(key, append([]*x509.Certificate{first}, rest...)); id == nil {
		return nil, &Problem{Reason: "has a private key that belongs to none of its certificates"}
	}
	return id, nil
}

// plainReason tells a client what the decoder could not do. Its texts name
// structures and algorithms, never content.
func plainReason(err error) string {
	var unsupported pkcs12.NotImplementedError
	if errors.As(err, &unsupported) {
		return "its protection or structure is not supported"
	}
	if strings.HasSuffix(err.Error(), "certificate missing") {
		return "it has no certificate"
	}
	return "it is damaged"
}

// owned finds the certificate of a key; programs do not agree on its place in the file.
func owned(key any, certs []*x509.Certificate) *Identity {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil
	}
	var id *Identity
	var chain []*x509.Certificate
	for _, cert := range certs {
		if id == nil && public.Equal(cert.PublicKey) {
			id = &Identity{Key: signer, Leaf: cert}
			continue
		}
		chain = append(chain, cert)
	}
	if id != nil {
		id.Chain = chain
	}
	return id
}

var (
	oidSerialNumber           = asn1.ObjectIdentifier{2, 5, 4, 5}
	oidUniqueIdentifier       = asn1.ObjectIdentifier{2, 5, 4, 45}
	oidOrganizationIdentifier = asn1.ObjectIdentifier{2, 5, 4, 97}
)

// Names reports whether the subject carries a tax number, as ETSI EN 319 412-1
// section 5.1.4 writes it (VATES-B12345678, IDCES-12345678Z), as Mexico's
// certificates do in x500UniqueIdentifier ("RFC / CURP"), or bare.
func Names(leaf *x509.Certificate, countryCode, number string) bool {
	if letters(number) == "" {
		return false
	}
	wanted := map[string]bool{letters(number): true}
	if normal := taxid.Check(countryCode, number).Number; normal != "" {
		wanted[letters(normal)] = true
	}
	prefixes := []string{"", "VAT" + countryCode, "TIN" + countryCode, "IDC" + countryCode, "NTR" + countryCode,
		"PNO" + countryCode, countryCode}
	for _, name := range leaf.Subject.Names {
		if !name.Type.Equal(oidOrganizationIdentifier) && !name.Type.Equal(oidSerialNumber) &&
			!name.Type.Equal(oidUniqueIdentifier) {
			continue
		}
		text, _ := name.Value.(string)
		for _, part := range append(strings.FieldsFunc(text, apart), text) {
			for _, prefix := range prefixes {
				if rest, ok := strings.CutPrefix(letters(part), prefix); ok && wanted[rest] {
					return true
				}
			}
		}
	}
	return false
}

// apart separates the parts of a subject's identifier.
func apart(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '&' }

// letters is a number without what people put between its digits.
func letters(text string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if apart(r) {
			return -1
		}
		return r
	}, text))
}
