package main

import (
	"encoding/json"
	"fmt"
)

// crashCountry is a country as kill runs use it: who sells and what.
type crashCountry struct {
	code, name, taxNumber string
	address               map[string]any
	settings              map[string]any
	certificate, login    bool
	currency              string
	sale                  map[string]any // members of every sale besides ids
	credit                bool           // now and then a sale is credited
}

func crashCountries() map[string]crashCountry {
	item := func(rate any, more map[string]any) []any {
		one := map[string]any{"number": 1, "name": "Tea", "quantity": 1, "unit_price": 12100, "tax_breakdowns": []any{map[string]any{"rate": rate, "regime": "VAT"}}}
		for k, v := range more {
			one[k] = v
		}
		return []any{one}
	}
	return map[string]crashCountry{
		"XX": {code: "XX", name: "Crash Tea", taxNumber: "XX-CRASH-1", address: map[string]any{"country_code": "XX"}, currency: "EUR",
			sale: map[string]any{"items": item(25, nil)}, credit: true},
		"ES": {code: "ES", name: "Comercial Ejemplo SL", taxNumber: "B98602642", address: seat("ES", "Valencia", "46001"), certificate: true, currency: "EUR",
			sale: map[string]any{"items": item(21, nil)}, credit: true},
		"MX": {code: "MX", name: "ESCUELA KEMPER URGATE", taxNumber: "EKU9003173C9", address: seat("MX", "Ciudad de México", "06000"), certificate: true, login: true, currency: "MXN",
			sale: map[string]any{"items": item(16, nil)}, credit: true},
		"PL": {code: "PL", name: "Przykład Sp. z o.o.", taxNumber: "5260001246", address: seat("PL", "Warszawa", "00-001"), certificate: true, currency: "PLN",
			sale: map[string]any{"items": item(23, nil)}, credit: true},
	}
}

func seat(code, city, postal string) map[string]any {
	return map[string]any{"country_code": code, "city": city, "postal_code": postal, "address_line_1": "1"}
}

// body is one sale.
func (c crashCountry) body(id, number, supplier, date string) []byte {
	all := map[string]any{
		"country_code": c.code, "currency_code": c.currency, "transaction_date": date, "transaction_id": id, "transaction_number": number,
		"supplier": map[string]any{"id": supplier},
	}
	for k, v := range c.sale {
		all[k] = v
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("encoding a sale: %v", err)) // plain maps always encode
	}
	return text
}

// creditOf takes a whole sale back.
func (c crashCountry) creditOf(original, id, date string) []byte {
	text, err := json.Marshal(map[string]any{
		"country_code": c.code, "transaction_date": date, "transaction_id": id, "transaction_number": id, "reference_transaction_id": original, "note": "returned",
	})
	if err != nil {
		panic(fmt.Sprintf("encoding a credit: %v", err))
	}
	return text
}
