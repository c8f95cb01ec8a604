package onboarding

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/country/taxid"
	"tributary/internal/fault"
)

const (
	openFor      = 10 * time.Second // what the limits of readPFX allow takes far less
	rsaBitsMin   = 2048
	ecBitsMin    = 256
	subjectChars = 500
)

// certificate is what is kept and checked of an opened PKCS#12. The key itself
// is forgotten.
type certificate struct {
	leaf        *x509.Certificate
	subject     string
	fingerprint string
	notAfter    time.Time
}

// openCertificate opens a PKCS#12. problem is the client's, err is ours.
//
// Failure policy: opening is computing that cannot be interrupted, so its
// price is read from the file first (readPFX), no more run at a time than there
// are cores, and nobody waits longer than openFor. One that is given up keeps
// its core until it ends, which the limits bound to seconds.
func (c *Companies) openCertificate(ctx context.Context, der []byte, password string) (cert *certificate, problem *fault.Fault, err error) {
	if len(der) > pkcs12BytesMax {
		return nil, credentialFault(fieldCertificate, "is too large"), nil
	}
	der = slices.Clone(der) // one that is given up goes on reading
	file, reason := readPFX(der)
	if reason != "" {
		return nil, credentialFault(fieldCertificate, reason), nil
	}
	select {
	case c.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait to open a certificate: %w", ctx.Err())
	}
	type outcome struct {
		cert    *certificate
		problem *fault.Fault
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-c.opening }()
		defer clear(der)
		cert, problem := file.open(password)
		done <- outcome{cert, problem}
	}()
	timer := time.NewTimer(openFor)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.cert, o.problem, nil
	case <-timer.C:
		return nil, credentialFault(fieldCertificate, "takes too long to open"), nil
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("open a certificate: %w", ctx.Err())
	}
}

func credentialFault(field, reason string) *fault.Fault {
	f := fault.At(field, fault.CredentialsInvalid, "%s", reason)
	return &f
}

// open decrypts the file and finds the certificate that belongs to its key.
// The decoder panics on some malformed files; its words are not repeated.
func (p *pfx) open(password string) (cert *certificate, problem *fault.Fault) {
	defer func() {
		if recover() != nil {
			cert, problem = nil, credentialFault(fieldCertificate, unsupportedSafe)
		}
	}()
	var form []byte
	if p.mac != nil {
		var ok bool
		if form, ok = p.mac.verify(p.safe, password); !ok {
			return nil, credentialFault(fieldPassword, "does not open the certificate")
		}
	} else if password != "" {
		return nil, credentialFault(fieldPassword, "does not open the certificate: it has no password")
	}
	file, err := p.remade(form)
	if err != nil {
		return nil, credentialFault(fieldCertificate, unsupportedSafe)
	}
	key, first, rest, err := pkcs12.DecodeChain(file, password)
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword), errors.Is(err, pkcs12.ErrDecryption):
		return nil, credentialFault(fieldPassword, "does not open the certificate")
	case err != nil:
		return nil, credentialFault(fieldCertificate, "cannot be read: "+plainReason(err))
	}
	leaf := owner(key, append([]*x509.Certificate{first}, rest...))
	if leaf == nil {
		return nil, credentialFault(fieldCertificate, "has a private key that belongs to none of its certificates")
	}
	print := sha256.Sum256(leaf.Raw)
	return &certificate{
		leaf: leaf, subject: subjectText(leaf), fingerprint: hex.EncodeToString(print[:]), notAfter: leaf.NotAfter.UTC(),
	}, nil
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

// owner finds the certificate of a key; programs do not agree on its place in the file.
func owner(key any, certs []*x509.Certificate) *x509.Certificate {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil
	}
	for _, cert := range certs {
		if public.Equal(cert.PublicKey) {
			return cert
		}
	}
	return nil
}

// certificateRules are a country's wishes.
type certificateRules struct {
	country string
	key     string // "RSA", "EC" or any
	number  string // that the subject must carry; empty: need not
}

// check finds everything that hinders the certificate's use.
func (c *certificate) check(now time.Time, rules certificateRules) []fault.Fault {
	var faults []fault.Fault
	refuse := func(format string, args ...any) {
		faults = append(faults, fault.At(fieldCertificate, fault.CredentialsInvalid, format, args...))
	}
	if now.After(c.leaf.NotAfter) {
		refuse("expired on %s", c.leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	if now.Before(c.leaf.NotBefore) {
		refuse("is not valid before %s", c.leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	if usage := c.leaf.KeyUsage; usage != 0 && usage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0 {
		refuse("may not be used to sign: its key usage has neither digitalSignature nor nonRepudiation")
	}
	if reason := c.keyReason(rules.key); reason != "" {
		refuse("%s", reason)
	}
	if rules.number != "" && !c.names(rules.country, rules.number) {
		refuse("does not name the company's tax number in its subject (organizationIdentifier or serialNumber)")
	}
	return faults
}

func (c *certificate) keyReason(wanted string) string {
	var found string
	var bits, least int
	switch key := c.leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		found, bits, least = "RSA", key.N.BitLen(), rsaBitsMin
	case *ecdsa.PublicKey:
		found, bits, least = "EC", key.Curve.Params().BitSize, ecBitsMin
	default:
		return "has a key that is neither RSA nor EC"
	}
	switch {
	case wanted != "" && wanted != found:
		return fmt.Sprintf("has a key of type %s where the country needs %s", found, wanted)
	case bits < least:
		return fmt.Sprintf("has a key of %d bits; at least %d are needed", bits, least)
	}
	return ""
}

var (
	oidSerialNumber           = asn1.ObjectIdentifier{2, 5, 4, 5}
	oidUniqueIdentifier       = asn1.ObjectIdentifier{2, 5, 4, 45}
	oidOrganizationIdentifier = asn1.ObjectIdentifier{2, 5, 4, 97}
)

// names reports whether the subject carries a tax number, as ETSI EN 319 412-1
// section 5.1.4 writes it (VATES-B12345678, IDCES-12345678Z), as Mexico's
// certificates do in x500UniqueIdentifier ("RFC / CURP"), or bare.
func (c *certificate) names(country, number string) bool {
	wanted := map[string]bool{letters(number): true}
	if normal := taxid.Check(country, number).Number; normal != "" {
		wanted[letters(normal)] = true
	}
	for _, name := range c.leaf.Subject.Names {
		if !name.Type.Equal(oidOrganizationIdentifier) && !name.Type.Equal(oidSerialNumber) && !name.Type.Equal(oidUniqueIdentifier) {
			continue
		}
		text, _ := name.Value.(string)
		for _, part := range append(strings.FieldsFunc(text, apart), text) {
			for _, prefix := range []string{"", "VAT" + country, "TIN" + country, "IDC" + country, "NTR" + country, "PNO" + country, country} {
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

// subjectText is the subject for people.
func subjectText(leaf *x509.Certificate) string {
	known := map[string]string{
		"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
		"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.42": "GN", "2.5.4.45": "x500UniqueIdentifier", "2.5.4.97": "organizationIdentifier",
	}
	var parts []string
	for _, name := range leaf.Subject.Names {
		label := known[name.Type.String()]
		text, isText := name.Value.(string)
		if label == "" || !isText {
			continue
		}
		parts = append(parts, label+"="+shown(text))
	}
	text := []rune(strings.Join(parts, ", "))
	return string(text[:min(len(text), subjectChars)])
}

// shown makes a certificate's text fit to be stored and printed.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if _, bad := unfit(string(r)); bad {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
