package mx

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "ESCUELA KEMPER URGATE", TaxNumber: "EKU9003173C9",
			Address: transaction.Address{CountryCode: "MX", City: "Ciudad de México", PostalCode: "06000",
				AddressLine1: "Avenida Muestra 10"},
		},
		Certificate: true,
		Credentials: country.Credentials{Username: "demo", Secret: "demo"}, // the simulated provider takes any
		Reason:      "02",                                                  // issued with errors, not replaced
		Sale: `{
  "currency_code": "MXN",
  "customer": {"legal_name": "UNIVERSIDAD ROBOTICA ESPAÑOLA", "type": "BUSINESS",
    "tax_information": {"tax_number": "URE180429TM6", "regime": "601/G03"},
    "address": {"country_code": "MX", "city": "Ciudad de México", "postal_code": "86991", "address_line_1": "1"}},
  "items": [{"number": 1, "name": "Té, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 16, "regime": "VAT"}]}]
}`,
	}
}
