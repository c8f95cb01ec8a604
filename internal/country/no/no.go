// Package no is Norway: Peppol BIS, known there as EHF Billing 3.0.
//
// It owns the page of data and nothing else; the invoice is en16931's.
package no

import (
	"tributary/internal/country"
	"tributary/internal/country/en16931"
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
		Exempt:  "Unntatt fra merverdiavgift",
		Settings: []country.Setting{{Key: settingRegister, Type: "boolean", Default: false,
			Description: "the company stands in the Register of Business Enterprises, which its invoices then state"}},
		Seller: func(s *country.Supplier, p *en16931.Party) {
			if registered, _ := s.Settings[settingRegister].(bool); registered && p.TaxID == "" {
				p.TaxID = "Foretaksregisteret"
			}
		},
	}
}
