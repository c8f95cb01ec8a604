// Package no is Norway: Peppol BIS, known there as EHF Billing 3.0.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package no

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// settingRegister says that the company stands in the Register of Business
// Enterprises, which its invoices must state (NO-R-002).
const settingRegister = "foretaksregisteret"

// Page is Norway in the family of EN 16931.
func Page() en16931.Page {
	return en16931.Page{
		Code:    "NO",
		Version: "no-1",
		Sources: []string{
			"https://anskaffelser.dev/postaward/g3/spec/current/billing-3.0/norway/",
			"https://lovdata.no/dokument/SF/forskrift/2004-12-01-1558",
			"https://docs.peppol.eu/poacc/billing/3.0/",
		},
		Formats: []string{"PEPPOL_UBL"},
		Offer:   en16931.OverNetwork,
		Reasons: map[string]string{"AE": "Omvendt avgiftsplikt", "G": "Avgiftsfri utførsel",
			"O": "Utenfor merverdiavgiftsloven"},
		SelfBilled: "Selvfakturering",
		Exempt:     "Unntatt fra merverdiavgift",
		Settings: []country.Setting{{Key: settingRegister, Type: "boolean", Default: false,
			Description: "the company stands in the Register of Business Enterprises, which its invoices then state"}},
		Seller: func(s *country.Supplier, p *en16931.Party) {
			// the number of the register is BT-30
			if registered, _ := s.Settings[settingRegister].(bool); registered && (p.TaxID == "" || p.VATID == "") {
				p.TaxID = "Foretaksregisteret"
			}
		},
		Example: &country.Example{
			Company: country.Supplier{LegalName: "Eksempel Handel AS", CompanyNumber: "987654325", TaxNumber: "NO987654325MVA",
				Address: transaction.Address{CountryCode: "NO", City: "Oslo", PostalCode: "0150", AddressLine1: "Eksempelgata 1"}},
			Sale: `{"currency_code": "NOK", "items": [{"number": 1, "name": "Te, 100 g", "quantity": 2, "unit_price": 12500, "tax_breakdowns": [{"rate": 25, "regime": "VAT"}]}],
				"customer": {"legal_name": "Prøve AS", "type": "BUSINESS", "entity_number": "974760673", "tax_information": {"tax_number": "NO974760673MVA"},
					"address": {"country_code": "NO", "city": "Bergen", "postal_code": "5003", "address_line_1": "Prøvegata 2"}}}`,
		},
	}
}
