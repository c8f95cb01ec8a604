// Package world is the list of countries: one line for each that has a pack of
// its own, and the generic pack for all others.
//
// It owns the list and nothing else. Law: every country of ISO 3166-1 is in
// it exactly once, and so is the reference authority.
package world

import (
	"fmt"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/generic"
	"tributary/internal/country/mx"
	"tributary/internal/country/pl"
	"tributary/internal/country/xx"
)

// Packs returns every country.
func Packs() ([]country.Pack, error) {
	return complete(
		es.Pack(), // Spain, VERI*FACTU
		mx.Pack(), // Mexico, CFDI 4.0
		pl.Pack(), // Poland, KSeF 2.0
		xx.Pack(), // reference authority
	)
}

// complete adds the generic pack of every country that has no pack of its own.
func complete(own ...country.Pack) ([]country.Pack, error) {
	others, err := generic.Packs()
	if err != nil {
		return nil, fmt.Errorf("listing the countries: %w", err)
	}
	taken := make(map[string]bool, len(own))
	for _, p := range own {
		taken[p.Code] = true
	}
	for _, p := range others {
		if !taken[p.Code] {
			own = append(own, p)
		}
	}
	return own, nil
}
