package generic

import (
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// examples are invented companies of some countries, so that the demo can show
// documents in their languages.
func examples() map[string]*country.Example {
	at := func(code, city, postal, line string) transaction.Address {
		return transaction.Address{CountryCode: code, City: city, PostalCode: postal, AddressLine1: line}
	}
	of := func(name, number, sale string, a transaction.Address) *country.Example {
		return &country.Example{Company: country.Supplier{LegalName: name, TaxNumber: number, Address: a}, Sale: sale}
	}
	const euros, pounds = `{"currency_code": "EUR", `, `{"currency_code": "GBP", `
	const tea = `"items": [{"number": 1, "name": "Tea, 100 g", "quantity": 2, "unit_price": 12100, "tax_breakdowns": [{"rate": 20, "regime": "VAT"}]}]}`
	return map[string]*country.Example{
		"GB": of("Thames Tea Company Ltd", "GB980780684", pounds+tea, at("GB", "London", "SE1 9SG", "8 Sample Lane")),
		"IT": of("Esempio S.r.l.", "IT12345670785",
			euros+`"items": [{"number": 1, "name": "Tè, 100 g", "quantity": 2, "unit_price": 12200, "tax_breakdowns": [{"rate": 22, "regime": "VAT"}]}]}`, at("IT", "Roma", "00184", "Via Esempio 2")),
	}
}

// taxNumberNames are the names by which everybody in a country knows a
// business's tax number; the others go by the document's language.
func taxNumberNames() map[string]string {
	return map[string]string{"CL": "RUT", "CO": "NIT", "AR": "CUIT", "PE": "RUC", "EC": "RUC", "BR": "CNPJ / CPF"}
}
