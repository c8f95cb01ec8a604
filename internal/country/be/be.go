// Package be is Belgium: Peppol BIS between businesses, by law since 2026.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package be

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// Page is Belgium in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "BE",
		Version: "be-1",
		Sources: []string{
			"https://einvoice.belgium.be/en",
			"https://finance.belgium.be/en/enterprises/vat/declaration/electronic-invoicing",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   offer,
		// Tax may be rounded on the total of the invoice only.
		ByCategory: true,
		Exempt:     "Exempt from VAT, article 44 of the Belgian VAT Code",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Voorbeeld NV", CompanyNumber: "0202239951", TaxNumber: "BE0202239951",
				Address: transaction.Address{CountryCode: "BE", City: "Brussel", PostalCode: "1000", AddressLine1: "Voorbeeldstraat 3"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Thee, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 21, "regime": "VAT"}]}],
				"customer": {"legal_name": "Exemple SA", "type": "BUSINESS", "entity_number": "0403170701", "tax_information": {"tax_number": "BE0403170701"},
					"address": {"country_code": "BE", "city": "Liège", "postal_code": "4000", "address_line_1": "Rue de l'Exemple 1"}}}`,
		},
	}
}

// offer: between Belgian businesses nothing but Peppol BIS will do.
func offer(s en16931.Sale) []en16931.Profile {
	if s.Business && s.Domestic() {
		return []en16931.Profile{en16931.PeppolBIS()}
	}
	return en16931.OverNetwork(s)
}
