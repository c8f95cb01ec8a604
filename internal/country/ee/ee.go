// Package ee is Estonia: Peppol BIS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package ee

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// Page is Estonia in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "EE",
		Version: "ee-1",
		Sources: []string{
			"https://www.riigiteataja.ee/akt/RPS",
			"https://www.emta.ee/en/business-client/taxes-and-payment/value-added-tax",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Reasons: map[string]string{"AE": "Pöördmaksustamine", "K": "Ühendusesisene käive, 0% käibemaks",
			"G": "Kauba eksport, 0% käibemaks", "O": "Ei ole käibemaksuga maksustatav"},
		SelfBilled: "Endale arve koostamine",
		Exempt:     "Käibemaksuvaba käive",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Näidis OÜ", CompanyNumber: "12345678", TaxNumber: "EE100594102",
				Address: transaction.Address{CountryCode: "EE", City: "Tallinn", PostalCode: "10111", AddressLine1: "Näidise tn 1"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Tee, 100 g", "quantity": 2, "unit_price": 12400, "tax_breakdowns": [{"rate": 24, "regime": "VAT"}]}],
				"customer": {"legal_name": "Mudel AS", "type": "BUSINESS", "entity_number": "10000018",
					"address": {"country_code": "EE", "city": "Tartu", "postal_code": "51003", "address_line_1": "Mudeli tn 2"}}}`,
		},
	}
}
