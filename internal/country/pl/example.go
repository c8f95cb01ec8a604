package pl

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Przykład Sp. z o.o.", TaxNumber: "PL5260001246",
			Address: transaction.Address{CountryCode: "PL", City: "Warszawa", PostalCode: "00-001", AddressLine1: "ul. Przykładowa 1"},
		},
		Certificate: true,
		Sale: `{
  "currency_code": "PLN",
  "customer": {"legal_name": "Klient Sp. z o.o.", "type": "BUSINESS",
    "tax_information": {"tax_number": "5265877635"},
    "address": {"country_code": "PL", "city": "Kraków", "postal_code": "30-001", "address_line_1": "1"}},
  "items": [{"number": 1, "name": "Herbata, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 23, "regime": "VAT"}]}]
}`,
	}
}
