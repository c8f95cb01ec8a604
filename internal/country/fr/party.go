package fr

import (
	"cmp"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// Schemes of identifiers and addresses.
const (
	schemeSIREN   = "0002"
	schemeSIRET   = "0009"
	schemeRouting = "0225"
)

// overseas are the codes of addresses in departments where French VAT law holds
// (art. 294 du CGI), beside FR itself. Guiana and Mayotte charge none for now.
const overseas = "FR GP MQ RE GF YT"

// inFrance reports whether an address is where invoices between businesses are
// electronic. Monaco shares the tax, not the duty.
func inFrance(a *transaction.Address) bool {
	if a == nil {
		return false
	}
	return a.CountryCode != "" && strings.Contains(overseas, strings.ToUpper(a.CountryCode))
}

// register is who somebody is in the register of businesses.
type register struct {
	siren string // nine digits
	siret string // fourteen, of one establishment
}

// registered reads numbers as people write them: the first that is one of the
// register decides.
func registered(numbers ...string) (r register) {
	for _, number := range numbers {
		compact := strings.Map(func(c rune) rune {
			switch {
			case c >= 'a' && c <= 'z':
				return c - 'a' + 'A'
			case c == ' ' || c == '.' || c == '-' || c == '\u00a0' || c == '\u202f':
				return -1
			}
			return c
		}, number)
		vat, ours := strings.CutPrefix(compact, home)
		switch {
		case ours && len(vat) == 11 && en16931.ValidIn(schemeSIREN, vat[2:]):
			compact = vat[2:]
		case len(compact) == 14 && en16931.ValidIn(schemeSIRET, compact):
			if r.siret == "" && (r.siren == "" || r.siren == compact[:9]) {
				r.siret = compact
			}
			compact = compact[:9]
		case !en16931.ValidIn(schemeSIREN, compact):
			continue
		}
		r.siren = cmp.Or(r.siren, compact)
	}
	return r
}

// company is who the supplier is.
func company(s *country.Supplier) register { return registered(s.CompanyNumber, s.TaxNumber) }

// buyer is who a customer is: what the client says, or whom it is sent to.
func buyer(b *transaction.Party) register {
	numbers := []string{b.EntityNumber, b.TaxNumber}
	if e := b.Electronic; e != nil {
		switch e.Scheme {
		case schemeRouting:
			first, rest, _ := strings.Cut(e.ID, "_")
			second, _, _ := strings.Cut(rest, "_")
			numbers = append(numbers, first, second)
		case schemeSIREN, schemeSIRET:
			numbers = append(numbers, e.ID)
		}
	}
	return registered(numbers...)
}

// public reports whether a SIREN is that of a public body, which Chorus Pro
// serves: INSEE gives them numbers that begin with 1 or 2.
func (r register) public() bool {
	return r.siren != "" && (r.siren[0] == '1' || r.siren[0] == '2')
}

// write names a party in a document.
func (r register) write(p *en16931.Party) {
	p.IDs = nil // what stands there is no number of the register
	if r.siren == "" {
		return
	}
	p.LegalID = en16931.Identifier{ID: r.siren, Scheme: schemeSIREN}
	if r.siret != "" {
		p.IDs = []en16931.Identifier{{ID: r.siret, Scheme: schemeSIRET}}
	}
}

// route is what the law makes of a sale.
type route string

const (
	betweenBusinesses route = "B2B"    // an invoice, by the platform
	abroadBusiness    route = "B2BINT" // data of each, by period
	toConsumers       route = "B2C"    // data of days, by period
	toPublic          route = "B2G"    // by Chorus Pro
)

// routeOf reads it from the customer. known is what the directory says of its
// SIREN: one that nobody has registered is told as a consumer's.
func routeOf(t *transaction.Transaction, unlisted bool) route {
	b := t.Customer
	switch {
	case b == nil || b.Type != transaction.Business:
		return toConsumers
	case !inFrance(b.Address):
		return abroadBusiness
	case unlisted:
		return toConsumers
	case buyer(b).public():
		return toPublic
	}
	return betweenBusinesses
}
