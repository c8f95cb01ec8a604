package it

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// example is an everyday sale of an invented company. Neither needs credentials:
// the transmitter's certificate is the operator's, and the double takes anybody.
func example() *country.Example {
	return &country.Example{
		Company: country.Supplier{
			LegalName: "Esempio Commercio S.r.l.", TaxNumber: "12345670785",
			Address: transaction.Address{CountryCode: "IT", City: "Roma", PostalCode: "00184", Province: "RM",
				AddressLine1: "Via Nazionale 1"},
		},
		Sale: `{
  "currency_code": "EUR",
  "customer": {"legal_name": "Cliente S.p.A.", "type": "BUSINESS",
    "tax_information": {"tax_number": "00743110157"},
    "electronic_address": {"scheme": "IT:SDI", "id": "ABC1234"},
    "address": {"country_code": "IT", "city": "Milano", "postal_code": "20121", "province": "MI", "address_line_1": "Via Dante 2"}},
  "items": [{"number": 1, "name": "Tè, 100 g", "quantity": 2, "unit_price": 1220, "tax_breakdowns": [{"rate": 22, "regime": "VAT"}]}]
}`,
	}
}
