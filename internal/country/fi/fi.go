// Package fi is Finland: Peppol BIS, addressed by the OVT code (scheme 0216).
//
// It owns the page of data and nothing else; the invoice is en16931's.
package fi

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

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
		Reasons: map[string]string{"AE": "Käännetty verovelvollisuus", "K": "Veroton yhteisömyynti",
			"G": "Veroton vientimyynti", "O": "Ei arvonlisäveron alainen"},
		SelfBilled: "Itselaskutus",
		Exempt:     "Veroton",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Esimerkki Oy", CompanyNumber: "1234567-1", TaxNumber: "FI12345671",
				Address: transaction.Address{CountryCode: "FI", City: "Helsinki", PostalCode: "00100", AddressLine1: "Esimerkkikatu 1"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Tee, 100 g", "quantity": 2, "unit_price": 12550, "tax_breakdowns": [{"rate": 25.5, "regime": "VAT"}]}],
				"customer": {"legal_name": "Malli Oy", "type": "BUSINESS", "entity_number": "0112038-9", "tax_information": {"tax_number": "FI01120389"},
					"address": {"country_code": "FI", "city": "Turku", "postal_code": "20100", "address_line_1": "Mallitie 2"}}}`,
		},
	}
}
