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
		// By law since 2026, between businesses that are established in Belgium.
		Network: func(s en16931.Sale) bool { return s.Business && s.Domestic() },
		// Tax may be rounded on the total of the invoice only.
		ByCategory: true,
		Required:   addressed(),
		TaxNumber:  "BE0403170701",
		Reasons: map[string]string{"AE": "Btw verlegd / Autoliquidation",
			"K": "Intracommunautaire levering / Livraison intracommunautaire", "G": "Uitvoer / Exportation",
			"O": "Niet onderworpen aan btw / Non soumis à la TVA"},
		SelfBilled: "Factuur uitgereikt door afnemer / Autofacturation",
		Exempt:     "Vrijgesteld van btw, artikel 44 WBTW / Exempté de la TVA, article 44 CTVA",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Voorbeeld NV", CompanyNumber: "0202239951", TaxNumber: "BE0202239951",
				Address: transaction.Address{CountryCode: "BE", City: "Brussel", PostalCode: "1000", AddressLine1: "Voorbeeldstraat 3"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Thee, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 21, "regime": "VAT"}]}],
				"customer": {"legal_name": "Exemple SA", "type": "BUSINESS", "entity_number": "0403170701", "tax_information": {"tax_number": "BE0403170701"},
					"address": {"country_code": "BE", "city": "Liège", "postal_code": "4000", "address_line_1": "Rue de l'Exemple 1"}}}`,
		},
	}
}

// addressed: a business in Belgium receives invoices under its number, unless
// the transaction says where else.
func addressed() []country.FieldRule {
	return []country.FieldRule{{
		Field: "customer.tax_information.tax_number", BusinessModel: transaction.B2B,
		When: []country.Condition{
			{Field: "customer.address.country_code", Matches: country.Matching("(?i)^BE$")},
			{Field: "customer.electronic_address", Matches: country.Matching("^$")},
			{Field: "customer.entity_number", Unless: country.Matching(`^[ .]*[01]([ .]*[0-9]){9}[ .]*$`)},
		},
		Reason: "a business in Belgium is addressed by its number, where neither electronic_address nor entity_number says how (PEPPOL-EN16931-R010)",
	}}
}

// offer: between Belgian businesses nothing but Peppol BIS will do.
func offer(s en16931.Sale) []en16931.Profile {
	if s.Business && s.Domestic() {
		return []en16931.Profile{en16931.PeppolBIS()}
	}
	return en16931.OverNetwork(s)
}
