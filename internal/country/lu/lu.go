// Package lu is Luxembourg: Peppol BIS.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package lu

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// Page is Luxembourg in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "LU",
		Version: "lu-1",
		Sources: []string{
			"https://legilux.public.lu/eli/etat/leg/loi/2021/12/13/a869/jo",
			"https://pfi.public.lu/fr/professionnel/tva.html",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Reasons: map[string]string{"AE": "Autoliquidation", "K": "Livraison intracommunautaire exonérée",
			"G": "Exportation exonérée", "O": "Non soumis à la TVA"},
		SelfBilled: "Autofacturation",
		Exempt:     "Exonération de la TVA",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Exemple S.à r.l.", CompanyNumber: "B123456", TaxNumber: "LU26375245",
				Address: transaction.Address{CountryCode: "LU", City: "Luxembourg", PostalCode: "1009",
					AddressLine1: "1, rue de l'Exemple"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Thé, 100 g", "quantity": 2, "unit_price": 11700, "tax_breakdowns": [{"rate": 17, "regime": "VAT"}]}],
				"customer": {"legal_name": "Modèle S.A.", "type": "BUSINESS", "tax_information": {"tax_number": "LU10000356"},
					"address": {"country_code": "LU", "city": "Esch-sur-Alzette", "postal_code": "4001", "address_line_1": "2, rue du Modèle"}}}`,
		},
	}
}
