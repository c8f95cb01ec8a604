// Package ie is Ireland: Peppol BIS; the duty to issue begins in 2028.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package ie

import "tributary/internal/country/en16931"

// Page is Ireland in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "IE",
		Version: "ie-1",
		Sources: []string{
			"https://www.revenue.ie/en/vat/vat-modernisation/index.aspx",
			"https://www.irishstatutebook.ie/eli/2019/si/258/made/en/print",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Exempt:  "Exempt from VAT",
	}
}
