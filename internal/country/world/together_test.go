package world_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// Four faults of four sorts in one body: of its shape, of the country's facts,
// of the country's own checks, of the money. A client reads all of them at once.
func TestAllFaultsComeInOneAnswer(t *testing.T) {
	atlas := wholeWorld(t)
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	x := &examination{t: t, now: now, terms: country.Terms{Atlas: atlas, Now: now,
		UseCase: func(string) (country.UseCase, bool) {
			return country.Both, true
		}}}
	line := func(rate string) []any {
		return []any{
			body{"number": 0, "name": "Chair", "quantity": 1, "unit_price": 1000,
				"tax_breakdowns": []any{body{"rate": json.Number(rate), "regime": "VAT"}}},
			body{"number": 2, "name": "", "quantity": 1, "unit_price": 1000,
				"tax_breakdowns": []any{body{"rate": json.Number(rate), "regime": "VAT"}}},
		}
	}
	sale := func(code, currency, rate string, more body) body {
		b := body{"country_code": code, "currency_code": currency, "transaction_date": "2026-03-02T11:00:00Z",
			"transaction_number": "2026-1",
			"supplier":           body{"id": strings.Repeat("a", 32)}, "items": line(rate)}
		for name, value := range more {
			b[name] = value
		}
		return b
	}
	for _, c := range []struct {
		name string
		body body
		want string
	}{
		{"Mexico: no id, no number of a line, dollars without a rate, an unknown product, payments that differ", func() body {
			b := sale("MX", "USD", "16", body{"payments": []any{body{"type": "CARD", "code": "PUE", "amount": 1}}})
			x.set(b, "items.*.code", "12345678")
			return b
		}(), "field_not_valid items.0.code, field_not_valid items.0.number, field_not_valid payments, field_required exchange_rate, field_required items.1.name, field_required transaction_id"},
		{"Mexico: too old, a use that is none, PUE beside PPD",
			sale("MX", "MXN", "16", body{"transaction_date": "2026-02-20T11:00:00Z",
				"customer": body{"legal_name": "Acme", "type": "BUSINESS",
					"tax_information": body{"tax_number": "URE180429TM6", "use": "G99"}},
				"payments": []any{body{"type": "CARD", "code": "PUE", "amount": 1000},
					body{"type": "CREDIT", "code": "PPD", "amount": 1000}}}),
			"field_not_valid customer.tax_information.use, field_not_valid items.0.number, field_not_valid transaction_date, field_required customer.address.postal_code, field_required items.1.name, field_required transaction_id, validation_match_invalid payments"},
		{"Spain: a NIF that is none, tomorrow, a number with a quote",
			sale("ES", "EUR", "21", body{"transaction_date": "2026-03-03T11:00:00Z", "transaction_number": `"1"`,
				"customer": body{"legal_name": "Acme", "type": "BUSINESS", "tax_information": body{"tax_number": "A28015866"}}}),
			"field_not_valid customer.tax_information.tax_number, field_not_valid items.0.number, field_not_valid transaction_date, field_not_valid transaction_number, field_required customer.address.address_line_1, field_required items.1.name, field_required transaction_id"},
		{"Poland: euros without a rate, a business without a NIP, a rate that is none, an issuer's NIP",
			sale("PL", "EUR", "19", body{
				"customer": body{"legal_name": "Acme", "type": "BUSINESS"},
				"issuer":   body{"legal_name": "Shop", "type": "BUSINESS", "tax_information": body{"tax_number": "7740001455"}}}),
			"field_not_valid issuer.tax_information.tax_number, field_not_valid items.0.number, field_not_valid items.0.tax_breakdowns.0.rate, field_not_valid items.1.tax_breakdowns.0.rate, field_required customer.address.address_line_1, field_required customer.tax_information.tax_number, field_required exchange_rate, field_required exchange_rate_date, field_required items.1.name, field_required transaction_id"},
		{"Germany: withheld tax, no id", func() body {
			b := sale("DE", "EUR", "19", body{"customer": body{"legal_name": "Acme", "type": "BUSINESS",
				"address": body{"country_code": "DE", "city": "Berlin", "postal_code": "10115", "address_line_1": "1"}}})
			x.set(b, "items.*.tax_breakdowns", []any{body{"rate": 19, "regime": "VAT"}, body{"rate": 15, "regime": "RET"}})
			return b
		}(), "field_not_valid items.0.number, field_required items.1.name, field_required transaction_id, unsupported_field items.0.tax_breakdowns.1.regime"},
	} {
		if found := strings.Join(x.faults(transaction.Invoice, c.body), ", "); found != c.want {
			t.Errorf("%s:\nfound %s\nwant  %s", c.name, found, c.want)
		}
	}
}

// Where the law asks more of an invoice than of what is filed of it, the rule is
// that use case's: published so, and binding those who have us make the invoice.
func TestAnInvoiceNeedsMoreThanARecordOfIt(t *testing.T) {
	atlas := wholeWorld(t)
	const field = "customer.address.address_line_1"
	pack, _ := atlas.Pack("ES")
	if !slices.ContainsFunc(pack.Facts.Required, func(r country.FieldRule) bool {
		return r.Field == field && r.UseCase == country.Invoicing
	}) {
		t.Errorf("%s is not published as a rule of %s", field, country.Invoicing)
	}
	x := &examination{t: t, code: "ES", now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	sold := body{"country_code": "ES", "currency_code": "EUR", "transaction_date": "2026-03-02T11:00:00Z",
		"transaction_id": "t-1", "transaction_number": "A-1",
		"supplier": body{"id": strings.Repeat("a", 32)},
		"customer": body{"legal_name": "Acme", "type": "BUSINESS", "tax_information": body{"tax_number": "A28015865"}},
		"items": []any{body{"number": 1, "name": "Chair", "quantity": 1, "unit_price": 12100,
			"tax_breakdowns": []any{body{"rate": 21, "regime": "VAT"}}}}}
	for use, want := range map[country.UseCase]string{country.Reporting: "", country.Invoicing: "field_required " + field,
		country.Both: "field_required " + field} {
		x.terms = country.Terms{Atlas: atlas, Now: x.now, UseCase: func(string) (country.UseCase, bool) { return use, true }}
		if found := strings.Join(x.faults(transaction.Invoice, sold), ", "); found != want {
			t.Errorf("%s: %q instead of %q", use, found, want)
		}
	}
}
