// Package se is Sweden: Peppol BIS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package se

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
)

// settingFTax says that the company is approved for F-tax, which its invoices
// must state in these very words (SE-R-005).
const (
	settingFTax = "f_tax"
	fTax        = "Godkänd för F-skatt"
)

// Page is Sweden in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "SE",
		Version: "se-1",
		Sources: []string{
			"https://www.digg.se/digitala-tjanster/peppol",
			"https://www.riksdagen.se/sv/dokument-och-lagar/dokument/svensk-forfattningssamling/mervardesskattelag-2023200_sfs-2023-200/",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Exempt:  "Undantag från skatteplikt",
		Settings: []country.Setting{{Key: settingFTax, Type: "boolean", Default: false,
			Description: "the company is approved for F-tax, which its invoices then state"}},
		Seller: func(s *country.Supplier, p *en16931.Party) {
			if approved, _ := s.Settings[settingFTax].(bool); approved {
				p.TaxID = fTax
			}
		},
	}
}
