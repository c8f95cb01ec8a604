package pl_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/authority/ksef"
	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/official"
	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
)

// paired is the pack with its double, as country/world has it.
func paired() country.Pack {
	p := pl.Pack()
	p.Simulator = ksef.New
	return p
}

// seed gives a double a key that was made before: making one takes longer than
// a test. Another key takes its place when the double is opened anew.
func seed(d *authority.Desk, key *rsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return d.Write(func(b *authority.Book) {
		b.Put("key", base64.StdEncoding.EncodeToString(der))
		if _, there := b.Get("secret"); !there {
			b.Put("secret", strings.Repeat("5", 64))
		}
	})
}

// conforms says what is wrong with the structure of an invoice.
func conforms(document []byte) string {
	doc, err := xmltree.Read(document)
	if err != nil {
		return err.Error()
	}
	if flaw := official.FA3.Schema().First(doc.Root); flaw != nil {
		return flaw.Error()
	}
	return ""
}

// verified asks the double what it finds wrong with a signed challenge that it
// never gave out: 0 when it is nothing but that.
func verified(t testing.TB, signed []byte) int {
	t.Helper()
	m := newMinistry(t)
	s := stranger{ministry: m}
	got := s.call(http.MethodPost, "/auth/xades-signature", "", signed)
	if got.code == ksefwire.CodeChallenge {
		return 0
	}
	return got.code
}
