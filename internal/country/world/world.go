// Package world is the list of countries: one line for each that has a pack of
// its own, one for each page of the European family, and the generic pack for
// all others.
//
// It owns the list and nothing else. Law: every country of ISO 3166-1 is in
// it exactly once, and so is the reference authority.
package world

import (
	"fmt"

	"github.com/invopop/gobl/l10n"

	"tributary/internal/authority"
	"tributary/internal/authority/accesspoint"
	"tributary/internal/authority/aeat"
	"tributary/internal/authority/anaf"
	"tributary/internal/authority/ksef"
	"tributary/internal/authority/nav"
	"tributary/internal/authority/pa"
	"tributary/internal/authority/reference"
	"tributary/internal/authority/sat"
	"tributary/internal/authority/sdi"
	"tributary/internal/country"
	"tributary/internal/country/at"
	"tributary/internal/country/be"
	"tributary/internal/country/de"
	"tributary/internal/country/dk"
	"tributary/internal/country/ee"
	"tributary/internal/country/en16931"
	"tributary/internal/country/es"
	"tributary/internal/country/fi"
	"tributary/internal/country/fr"
	"tributary/internal/country/generic"
	"tributary/internal/country/hu"
	"tributary/internal/country/ie"
	"tributary/internal/country/it"
	"tributary/internal/country/lu"
	"tributary/internal/country/mx"
	"tributary/internal/country/nl"
	"tributary/internal/country/no"
	"tributary/internal/country/peppol"
	"tributary/internal/country/pl"
	"tributary/internal/country/ro"
	"tributary/internal/country/se"
	"tributary/internal/country/xx"
	"tributary/internal/transaction"
)

// Packs returns every country. A further pack takes the place of one of ours
// with the same code.
func Packs(further ...country.Pack) ([]country.Pack, error) {
	return complete(append(further,
		paired(es.Pack(), aeat.New), // Spain, VERI*FACTU
		paired(fr.Pack(), pa.New),   // France, approved platforms
		paired(hu.Pack(), nav.New),  // Hungary, Online Számla 3.0
		paired(it.Pack(), sdi.New),  // Italy, SdI
		paired(mx.Pack(), sat.New),  // Mexico, CFDI 4.0
		paired(pl.Pack(), ksef.New), // Poland, KSeF 2.0
		paired(ro.Pack(), anaf.New), // Romania, RO e-Factura
		Reference(transaction.ReferenceCode, country.ByNumber),
	))
}

// family are the countries whose invoices are EN 16931, each a page of data.
func family() []en16931.Page {
	return []en16931.Page{
		at.Page(), // Austria
		be.Page(), // Belgium
		de.Page(), // Germany
		dk.Page(), // Denmark
		ee.Page(), // Estonia
		fi.Page(), // Finland
		ie.Page(), // Ireland
		lu.Page(), // Luxembourg
		nl.Page(), // the Netherlands
		no.Page(), // Norway
		se.Page(), // Sweden
	}
}

// Reference is the reference authority under a code, of a class, with its double.
func Reference(code string, class country.Class) country.Pack {
	return paired(xx.Variant(code, class), reference.New)
}

// ReferenceWith is the same with habits that XX by itself does not show.
func ReferenceWith(code string, class country.Class, habits xx.Habits) country.Pack {
	return paired(xx.WithHabits(code, class, habits), reference.New)
}

// Platform is the reference authority under a code that asks for the operator's
// identity, with its double.
func Platform(code string) country.Pack { return paired(xx.Platform(code), reference.Guarded) }

// paired gives a pack the double of its authority. Neither knows the other, so
// that one misreading of a protocol cannot hide on both sides.
func paired(p country.Pack, double authority.Double) country.Pack {
	p.Simulator = double
	return p
}

// complete adds the generic pack of every country that has no pack of its own;
// of two packs with one code the first counts.
func complete(own []country.Pack) ([]country.Pack, error) {
	others, err := generic.Packs()
	if err != nil {
		return nil, fmt.Errorf("listing the countries: %w", err)
	}
	all := make([]country.Pack, 0, len(own)+len(others))
	taken := make(map[string]bool, len(own))
	for _, p := range append(own, extended(others)...) {
		if !taken[p.Code] {
			taken[p.Code] = true
			all = append(all, p)
		}
	}
	return all, nil
}

// extended gives the countries of the family their pages, and the other member
// states a Peppol invoice where a company's settings ask for one.
func extended(packs []country.Pack) []country.Pack {
	pages := map[string]en16931.Page{}
	for _, page := range family() {
		pages[page.Code] = page
	}
	for i, p := range packs {
		if page, member := pages[p.Code]; member {
			packs[i] = paired(peppol.Extend(en16931.Extend(p, page), page), accesspoint.New)
		} else if l10n.Union(l10n.EU).HasMember(l10n.Code(p.Code)) {
			packs[i] = en16931.Extend(p, en16931.Union(p.Code))
		}
	}
	return packs
}
