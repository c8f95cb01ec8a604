// Package at is Austria: Peppol BIS; the Federation takes it, and businesses may.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package at

import "tributary/internal/country/en16931"

// Page is Austria in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "AT",
		Version: "at-1",
		Sources: []string{
			"https://www.erechnung.gv.at/",
			"https://www.ris.bka.gv.at/GeltendeFassung.wxe?Abfrage=Bundesnormen&Gesetzesnummer=10004873",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL", "ZUGFERD"},
		Offer:   en16931.OverNetwork,
		Exempt:  "Steuerfrei nach § 6 UStG 1994",
	}
}
