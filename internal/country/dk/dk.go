// Package dk is Denmark: Peppol BIS, with the CVR number of the seller.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package dk

import "tributary/internal/country/en16931"

// Page is Denmark in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "DK",
		Version: "dk-1",
		Sources: []string{
			"https://nemhandel.dk/",
			"https://www.retsinformation.dk/eli/lta/2022/700",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		// Between Danish parties neither 30 nor 20 is a means of payment (DK-R-005).
		Means:  map[string]string{"TRANSFER": "58", "CHECK": "1"},
		Exempt: "Momsfritaget",
	}
}
