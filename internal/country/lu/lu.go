// Package lu is Luxembourg: Peppol BIS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package lu

import "tributary/internal/country/en16931"

// Page is Luxembourg in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "LU",
		Version: "lu-1",
		Sources: []string{
			"https://legilux.public.lu/eli/etat/leg/loi/2021/12/13/a869/jo",
			"https://pfi.public.lu/fr/professionnel/tva.html",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Exempt:  "Exonération de la TVA",
	}
}
