// Package world is the list of countries: one line for each that has a pack of
// its own, and the generic pack for all others.
//
// It owns the list and nothing else. Law: every country of ISO 3166-1 is in
// it exactly once, and so is the reference authority.
package world

import (
	"fmt"
	"net/http"

	"tributary/internal/authority/aeat"
	"tributary/internal/authority/reference"
	"tributary/internal/authority/sat"
	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/generic"
	"tributary/internal/country/mx"
	"tributary/internal/country/pl"
	"tributary/internal/country/xx"
	"tributary/internal/transaction"
)

// Packs returns every country. A further pack takes the place of one of ours
// with the same code.
func Packs(further ...country.Pack) ([]country.Pack, error) {
	return complete(append(further,
		paired(es.Pack(), aeat.New), // Spain, VERI*FACTU
		paired(mx.Pack(), sat.New),  // Mexico, CFDI 4.0
		pl.Pack(),                   // Poland, KSeF 2.0
		Reference(transaction.ReferenceCode, country.ByNumber),
	))
}

// Reference is the reference authority under a code, of a class, with its double.
func Reference(code string, class country.Class) country.Pack {
	return paired(xx.Variant(code, class), reference.New)
}

// paired gives a pack the double of its authority. Neither knows the other, so
// that one misreading of a protocol cannot hide on both sides.
func paired(p country.Pack, double func(*country.Desk) http.Handler) country.Pack {
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
	for _, p := range append(own, others...) {
		if !taken[p.Code] {
			taken[p.Code] = true
			all = append(all, p)
		}
	}
	return all, nil
}
