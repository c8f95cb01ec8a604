package xx

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company.
func example(code string) *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Reference Trading Ltd", TaxNumber: "XX123456789",
			Address: transaction.Address{CountryCode: code, City: "Exampleton", PostalCode: "12345", AddressLine1: "1 Sample Street"},
		},
		Sale: `{
  "currency_code": "EUR",
  "items": [{"number": 1, "name": "Tea, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 25, "regime": "VAT"}]}]
}`,
	}
}
