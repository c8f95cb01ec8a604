package ro

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company. The tokens are worth
// something at the double only, which has no register of persons.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Exemplu Comerț SRL", TaxNumber: "RO18547290", CompanyNumber: "J40/1234/2020",
			Address: transaction.Address{CountryCode: home, Province: "București", City: "Sector 1", PostalCode: "010011",
				AddressLine1: "Calea Victoriei 1"},
		},
		Credentials: country.Credentials{Named: map[string]string{secretRefresh: "demo-refresh-token", secretAccess: "demo-access-token", secretClient: "demo-client",
			secretClientSecret: "demo-secret"}},
		Sale: `{
  "currency_code": "RON",
  "customer": {"legal_name": "Cumpărător SRL", "type": "BUSINESS",
    "tax_information": {"tax_number": "RO14399840"},
    "address": {"country_code": "RO", "province": "Cluj", "city": "Cluj-Napoca", "postal_code": "400001", "address_line_1": "Strada Memorandumului 2"}},
  "items": [{"number": 1, "name": "Cafea boabe, 1 kg", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 21, "regime": "VAT"}]}]
}`,
	}
}
