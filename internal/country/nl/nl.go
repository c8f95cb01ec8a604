// Package nl is the Netherlands: Peppol BIS, whose rules between Dutch parties
// are those of NLCIUS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package nl

import "tributary/internal/country/en16931"

// Page is the Netherlands in the family of EN 16931. Between Dutch parties the
// rules want an account (settings.iban) and the numbers of the KvK or OIN; a
// document without them is plain EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "NL",
		Version: "nl-1",
		Sources: []string{
			"https://www.peppolautoriteit.nl/",
			"https://wetten.overheid.nl/BWBR0002629/",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Exempt:  "Vrijgesteld van btw",
	}
}
