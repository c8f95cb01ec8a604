// Package nl is the Netherlands: Peppol BIS, whose rules between Dutch parties
// are those of NLCIUS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package nl

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

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
		Reasons: map[string]string{"AE": "Btw verlegd", "K": "Intracommunautaire levering", "G": "Uitvoer van goederen",
			"O": "Niet onderworpen aan btw"},
		SelfBilled: "Factuur uitgereikt door afnemer",
		Exempt:     "Vrijgesteld van btw",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Voorbeeld Handel B.V.", CompanyNumber: "12345678", TaxNumber: "NL010000446B01",
				Address: transaction.Address{CountryCode: "NL", City: "Amsterdam", PostalCode: "1011 AB",
					AddressLine1: "Voorbeeldstraat 1"}, Settings: country.Settings{"iban": "NL91ABNA0417164300"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Thee, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 21, "regime": "VAT"}]}],
				"customer": {"legal_name": "Proef B.V.", "type": "BUSINESS", "entity_number": "87654321", "tax_information": {"tax_number": "NL002455799B11"},
					"address": {"country_code": "NL", "city": "Utrecht", "postal_code": "3511 AB", "address_line_1": "Proefweg 2"}}}`,
		},
	}
}
