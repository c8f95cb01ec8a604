// Package de is Germany: XRechnung to public buyers, ZUGFeRD to businesses,
// a plain document to everybody else.
//
// It owns the page of data and nothing else; the invoice is en16931's. No
// authority is told of a sale: there is nothing to file.
package de

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// Page is Germany in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "DE",
		Version: "de-1",
		Sources: []string{
			"https://www.gesetze-im-internet.de/ustg_1980/__14.html",
			"https://www.gesetze-im-internet.de/erechv/",
			"https://xeinkauf.de/xrechnung/",
			"https://www.ferd-net.de/standards/zugferd",
		},
		Formats:   []string{"XRECHNUNG_UBL", "XRECHNUNG_CII", "ZUGFERD", "PEPPOL_UBL"},
		Offer:     offer,
		Corrected: "384", // a corrected invoice; XRechnung takes it with its original (BR-DE-26)
		// Codes 48, 54 and 55 want card data (BR-DE-24), which a transaction does not have.
		Means: map[string]string{"CARD": "1"},
		Reasons: map[string]string{"AE": "Steuerschuldnerschaft des Leistungsempfängers",
			"K": "Steuerfreie innergemeinschaftliche Lieferung", "G": "Steuerfreie Ausfuhrlieferung", "O": "Nicht steuerbarer Umsatz"},
		SelfBilled: "Gutschrift",
		Exempt:     "Steuerfrei nach § 4 UStG",
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Muster Handel GmbH", CompanyNumber: "HRB 4711", TaxNumber: "DE111111125",
				Address: transaction.Address{CountryCode: "DE", City: "Berlin", PostalCode: "10115", AddressLine1: "Musterstraße 7"}},
			Sale: `{"currency_code": "EUR", "items": [{"number": 1, "name": "Tee, 100 g", "quantity": 2, "unit_price": 11900, "tax_breakdowns": [{"rate": 19, "regime": "VAT"}]}],
				"customer": {"legal_name": "Beispiel AG", "type": "BUSINESS", "tax_information": {"tax_number": "DE129273398"},
					"address": {"country_code": "DE", "city": "Bonn", "postal_code": "53111", "address_line_1": "Am Markt 2"}}}`,
		},
	}
}

// offer: a routing identifier (Leitweg-ID) tells a public buyer, who takes
// nothing but XRechnung. Between businesses the hybrid is read by people and
// machines alike, and is an e-invoice by § 14 UStG.
func offer(s en16931.Sale) []en16931.Profile {
	switch {
	case s.Leitweg:
		return []en16931.Profile{en16931.XRechnung(false)}
	case s.Business:
		return []en16931.Profile{en16931.FacturX()}
	}
	return nil
}
