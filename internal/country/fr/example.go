package fr

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company. The client is worth
// something at the double only, where the buyer approves by itself.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Exemple Commerce SARL", TaxNumber: "FR44732829320", CompanyNumber: "73282932000074",
			Address: transaction.Address{CountryCode: home, City: "Paris", PostalCode: "75001", AddressLine1: "1 rue de l'Exemple"},
		},
		Credentials: country.Credentials{Named: map[string]string{secretClient: "demo-client", secretClientSecret: "demo-secret"}},
		Sale: `{
  "currency_code": "EUR",
  "customer": {"legal_name": "Acheteur SAS", "type": "BUSINESS", "entity_number": "801234568",
    "tax_information": {"tax_number": "FR66801234568"},
    "address": {"country_code": "FR", "city": "Lyon", "postal_code": "69001", "address_line_1": "2 place Bellecour"}},
  "items": [{"number": 1, "name": "Café en grains, 1 kg", "quantity": 2, "unit_price": 12000, "tax_breakdowns": [{"rate": 20, "regime": "VAT"}]}]
}`,
	}
}
