// Package at is Austria: Peppol BIS; the Federation takes it, and businesses may.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package at

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// Page is Austria in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "AT",
		Version: "at-1",
		Sources: []string{
			"https://www.erechnung.gv.at/",
			"https://www.ris.bka.gv.at/GeltendeFassung.wxe?Abfrage=Bundesnormen&Gesetzesnummer=10004873",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL", "ZUGFERD"},
		Offer:   en16931.OverNetwork,
		Reasons: map[string]string{"AE": "Übergang der Steuerschuld auf den Leistungsempfänger",
			"K": "Steuerfreie innergemeinschaftliche Lieferung", "G": "Steuerfreie Ausfuhrlieferung", "O": "Nicht steuerbarer Umsatz"},
		SelfBilled: "Gutschrift",
		Exempt:     "Steuerfrei nach § 6 UStG 1994",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Muster Handels GmbH", CompanyNumber: "FN 123456a", TaxNumber: "ATU12345675",
				Address: transaction.Address{CountryCode: "AT", City: "Wien", PostalCode: "1010", AddressLine1: "Musterstraße 1"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Tee, 100 g", "quantity": 2, "unit_price": 12000, "tax_breakdowns": [{"rate": 20, "regime": "VAT"}]}],
				"customer": {"legal_name": "Beispiel AG", "type": "BUSINESS", "tax_information": {"tax_number": "ATU37675002"},
					"address": {"country_code": "AT", "city": "Graz", "postal_code": "8010", "address_line_1": "Beispielgasse 2"}}}`,
		},
	}
}
