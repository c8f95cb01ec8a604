// Package dk is Denmark: Peppol BIS, with the CVR number of the seller.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package dk

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

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
		Means: map[string]string{"TRANSFER": "58", "CHECK": "1"},
		Reasons: map[string]string{"AE": "Omvendt betalingspligt", "K": "Momsfrit salg til et andet EU-land",
			"G": "Momsfri eksport", "O": "Ikke momspligtig"},
		SelfBilled: "Selvfakturering",
		Exempt:     "Momsfritaget",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Eksempel Handel ApS", CompanyNumber: "12345674", TaxNumber: "DK12345674",
				Address: transaction.Address{CountryCode: "DK", City: "København", PostalCode: "1050", AddressLine1: "Eksempelvej 1"}},
			Sale: `{"currency_code": "DKK", "items": [{"number": 1, "name": "Te, 100 g", "quantity": 2, "unit_price": 12500, "tax_breakdowns": [{"rate": 25, "regime": "VAT"}]}],
				"customer": {"legal_name": "Prøve A/S", "type": "BUSINESS", "entity_number": "88146328", "tax_information": {"tax_number": "DK88146328"},
					"address": {"country_code": "DK", "city": "Aarhus", "postal_code": "8000", "address_line_1": "Prøvegade 2"}}}`,
		},
	}
}
