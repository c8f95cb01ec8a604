package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/needs"
)

// A certificate's issuer is named in the certificate's order, which is not the
// one that pkix.Name writes, with everything escaped that RFC 4514 escapes.
// OpenSSL reads the same certificate.
func TestIssuerKeepsTheOrderOfItsNames(t *testing.T) {
	name := func(oid asn1.ObjectIdentifier, value string) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: oid, Value: value}
	}
	subject := pkix.RDNSequence{ // common name first, country in the middle: both unusual
		{name(asn1.ObjectIdentifier{2, 5, 4, 3}, "Centrum, Kwalifikowane")},
		{name(asn1.ObjectIdentifier{2, 5, 4, 6}, "PL")},
		{name(asn1.ObjectIdentifier{2, 5, 4, 11}, "Oddział+1")},
		{name(asn1.ObjectIdentifier{2, 5, 4, 10}, "#Zaufana Trzecia Strona")},
	}
	raw, err := asn1.Marshal(subject)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), RawSubject: raw, NotBefore: time.Now(),
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	const want = `O=\#Zaufana Trzecia Strona,OU=Oddział\+1,C=PL,CN=Centrum\, Kwalifikowane`
	if got := identity.IssuerName(cert); got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if cert.Issuer.String() == want {
		t.Error("the standard library has the same order: the test shows nothing")
	}
	file := filepath.Join(t.TempDir(), "cert.der")
	if err := os.WriteFile(file, der, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(needs.Tool(t, "openssl", "openssl"), "x509", "-inform", "DER", "-in", file, "-noout",
		"-issuer", "-nameopt", "RFC2253,-esc_msb,utf8").Output()
	if err != nil {
		t.Fatalf("openssl: %v", err)
	}
	if got := strings.TrimSpace(strings.TrimPrefix(string(out), "issuer=")); got != want {
		t.Errorf("openssl writes %s instead of %s", got, want)
	}
}
