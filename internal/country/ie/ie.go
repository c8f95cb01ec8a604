// Package ie is Ireland: Peppol BIS; the duty to issue begins in 2028.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package ie

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

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
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Liffey Books Limited", CompanyNumber: "123456", TaxNumber: "IE6388047V",
				Address: transaction.Address{CountryCode: "IE", City: "Dublin", PostalCode: "D02 X285", AddressLine1: "5 Example Quay"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Notebook", "quantity": 3, "unit_price": 7570, "tax_breakdowns": [{"rate": 23, "regime": "VAT"}]}],
				"customer": {"legal_name": "Sample Traders Limited", "type": "BUSINESS", "tax_information": {"tax_number": "IE1234567T"},
					"address": {"country_code": "IE", "city": "Cork", "postal_code": "T12 W8KP", "address_line_1": "2 Sample Street"}}}`,
		},
	}
}
