package es

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Comercial Ejemplo SL", TaxNumber: "B98602642",
			Address: transaction.Address{CountryCode: "ES", City: "Valencia", PostalCode: "46001", AddressLine1: "Calle Muestra 3"},
		},
		Certificate: true,
		Sale: `{
  "currency_code": "EUR",
  "customer": {"legal_name": "Cliente Uno SA", "type": "BUSINESS",
    "tax_information": {"tax_number": "A58818501"},
    "address": {"country_code": "ES", "city": "Madrid", "postal_code": "28001", "address_line_1": "1"}},
  "items": [{"number": 1, "name": "Té, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 21, "regime": "VAT"}]}]
}`,
	}
}
