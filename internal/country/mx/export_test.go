package mx

import (
	"slices"
	"sync"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/xmltree"
)

// Original is the original string of a voucher in XML.
func Original(raw []byte) ([]byte, error) {
	voucher, err := readXML(raw)
	if err != nil {
		return nil, err
	}
	return original(voucher)
}

// OriginalOfStamp is the original string of the stamp in a voucher.
func OriginalOfStamp(raw []byte) ([]byte, error) {
	s, err := readStamped(raw)
	if err != nil {
		return nil, err
	}
	return originalOfStamp(s.stamp), nil
}

// Reseal seals a voucher again after a test has changed it.
func Reseal(raw []byte, with *identity.Identity) ([]byte, error) {
	v, err := readXML(raw)
	if err != nil {
		return nil, err
	}
	v.Attrs = slices.DeleteFunc(v.Attrs, func(a xmltree.Attr) bool {
		return a.Local == "Sello" || a.Local == "Certificado" || a.Local == "NoCertificado"
	})
	if err := seal(v, with); err != nil {
		return nil, err
	}
	return document(v), nil
}

// Unsealed makes a voucher and its original string, all that Prepare does but the signature.
func Unsealed(in country.Draft) ([]byte, []byte, error) {
	cat := benchCatalog()
	p, err := planOf(cat, &in)
	if err != nil {
		return nil, nil, err
	}
	v := p.voucher()
	v.Set("NoCertificado", "30001000000400002434")
	v.Set("Certificado", "MIIF")
	text, err := original(v)
	return document(v), text, err
}

var benchCatalog = sync.OnceValue(openCatalog)

// Capital is a company's name without the form of its capital; "" where it has none.
func Capital(name string) string {
	if shorter, found := capitalRegime(name); found {
		return shorter
	}
	return ""
}

// Products and Units are the embedded catalogues.
func Products() []uint32          { return benchCatalog().products }
func Units() map[string]bool      { return benchCatalog().units }
func ReadProducts(b []byte) error { _, err := readProducts(b); return err }

// ReadStamped is the reader that fuzzing asks.
func ReadStamped(raw []byte) error { _, err := readStamped(raw); return err }

// Form and Currency, for the comparison with the official catalogue.
func Form(key string) bool      { return paymentForm(key) }
func Currency(code string) bool { return currency(code) }

// Money and Attribute let a property be stated.
func Money(amount int64, decimals int) string { return money(amount, decimals) }

func Attribute(raw []byte, name string) string {
	n, err := readXML(raw)
	if err != nil {
		return err.Error()
	}
	return n.Attr(name)
}
