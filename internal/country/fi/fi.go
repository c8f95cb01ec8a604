// Package fi is Finland: Peppol BIS, addressed by the OVT code (scheme 0216).
//
// It owns the page of data and nothing else; the invoice is en16931's.
package fi

import "tributary/internal/country/en16931"

// Page is Finland in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "FI",
		Version: "fi-1",
		Sources: []string{
			"https://www.finlex.fi/fi/laki/ajantasa/2019/20190241",
			"https://www.vero.fi/en/businesses-and-corporations/taxes-and-charges/vat/",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Exempt:  "Veroton",
	}
}
