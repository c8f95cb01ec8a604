package hu

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company. Its secrets are worth
// something at the double only, which takes any that have the right shape.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Példa Kereskedelmi Kft.", TaxNumber: "12892312-2-42",
			Address: transaction.Address{CountryCode: "HU", City: "Budapest", PostalCode: "1011", AddressLine1: "Példa utca 1."},
		},
		Credentials: country.Credentials{
			Username: "peldauser123456", Secret: "demo-password",
			Named: map[string]string{secretSignature: "ce-8f5e-215119fa7dd621DLMRHRLH2S", secretExchange: "7893DEMO21DLMR45"},
		},
		Sale: `{
  "currency_code": "HUF",
  "customer": {"legal_name": "Vevő Kft.", "type": "BUSINESS",
    "tax_information": {"tax_number": "13774721-2-41"},
    "address": {"country_code": "HU", "city": "Pécs", "postal_code": "7621", "address_line_1": "Király utca 2."}},
  "items": [{"number": 1, "name": "Tea, 100 g", "quantity": 2, "unit_price": 127000, "tax_breakdowns": [{"rate": 27, "regime": "VAT"}]}]
}`,
	}
}
