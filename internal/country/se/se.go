// Package se is Sweden: Peppol BIS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package se

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
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
		Reasons: map[string]string{"AE": "Omvänd betalningsskyldighet", "K": "Unionsintern leverans", "G": "Export",
			"O": "Ej momspliktig"},
		SelfBilled: "Självfakturering",
		Exempt:     "Undantag från skatteplikt",
		Settings: []country.Setting{{Key: settingFTax, Type: "boolean", Default: false,
			Description: "the company is approved for F-tax, which its invoices then state"}},
		Seller: func(s *country.Supplier, p *en16931.Party) {
			if approved, _ := s.Settings[settingFTax].(bool); approved {
				p.TaxID = fTax
			}
		},
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Exempel Handel AB", CompanyNumber: "5567321707", TaxNumber: "SE556732170701",
				Address: transaction.Address{CountryCode: "SE", City: "Stockholm", PostalCode: "111 20", AddressLine1: "Exempelgatan 1"}},
			Sale: `{"currency_code": "SEK", "items": [{"number": 1, "name": "Te, 100 g", "quantity": 2, "unit_price": 12500, "tax_breakdowns": [{"rate": 25, "regime": "VAT"}]}],
				"customer": {"legal_name": "Prov AB", "type": "BUSINESS", "entity_number": "5560360793", "tax_information": {"tax_number": "SE556036079301"},
					"address": {"country_code": "SE", "city": "Göteborg", "postal_code": "411 03", "address_line_1": "Provgatan 2"}}}`,
		},
	}
}
