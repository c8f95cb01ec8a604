package mx

import (
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
)

// Original is the original string of a voucher in XML.
func Original(raw []byte) ([]byte, error) {
	voucher, err := parse(raw)
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
	v, err := parse(raw)
	if err != nil {
		return nil, err
	}
	kept := v.attrs[:0:0]
	kept = append(kept, attr{"xmlns:cfdi", spaceCFDI}, attr{"xmlns:xsi", spaceXSI})
	for _, a := range v.attrs {
		if a.name != "Sello" && a.name != "Certificado" && a.name != "NoCertificado" {
			kept = append(kept, a)
		}
	}
	v.attrs = kept
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
	v.set("NoCertificado", "30001000000400002434")
	v.set("Certificado", "MIIF")
	text, err := original(v)
	return document(v), text, err
}

var benchCatalog = sync.OnceValue(openCatalog)

// Products and Units are the embedded catalogues.
func Products() []uint32          { return benchCatalog().products }
func Units() map[string]bool      { return benchCatalog().units }
func ReadProducts(b []byte) error { _, err := readProducts(b); return err }

// ReadRequest, ReadStamped and Expression are the readers that fuzzing asks.
func ReadRequest(raw []byte) error { _, _, err := readRequest(raw); return err }

func ReadStamped(raw []byte) error { _, err := readStamped(raw); return err }

func Expression(text string) { expression(text) }

// Rewritten reads a document and writes it again.
func Rewritten(raw []byte) ([]byte, error) {
	n, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return n.appendXML(nil), nil
}

// Regimes, Uses and their fits, for the comparison with the official catalogue.
func Regimes() []string         { return regimes() }
func Uses() []string            { return uses() }
func Form(key string) bool      { return paymentForm(key) }
func Currency(code string) bool { return currency(code) }

// CanonicalRequest is what a signed request's digest covers.
func CanonicalRequest(raw []byte) (string, error) {
	r, _, err := readRequest(raw)
	return r.canonical(), err
}

// Money, Attribute and Examined let a property be stated.
func Money(amount int64, decimals int) string { return money(amount, decimals) }

func Attribute(raw []byte, name string) string {
	n, err := parse(raw)
	if err != nil {
		return err.Error()
	}
	return n.attr(name)
}

func Examined(raw []byte, now time.Time) string {
	n, err := parse(raw)
	if err != nil {
		return err.Error()
	}
	o := &office{cat: benchCatalog(), structure: benchStructure()}
	no := o.examine(n, now)
	return strings.TrimSpace(no.code + " " + no.message)
}

var benchStructure = sync.OnceValue(func() *structure { return newStructure(benchCatalog()) })
