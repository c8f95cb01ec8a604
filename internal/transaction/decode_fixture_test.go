package transaction_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// typicalBody is a body of about 1 KB as clients send it: three lines, a customer
// with an address, a payment.
const typicalBody = `{
  "country_code": "ZZ", "language_code": "EN", "currency_code": "EUR",
  "transaction_date": "2026-03-01T12:30:00Z", "transaction_number": "INV-2026-000123", "transaction_id": "7d0f6c1e-order-000123",
  "items": [
    {"number": 1, "name": "Widget, blue", "quantity": 3, "unit": "piece", "unit_price": 7570, "type": "GOODS", "tax_breakdowns": [{"rate": 25, "regime": "VAT"}]},
    {"number": 2, "name": "Consulting", "quantity": 1.5, "unit": "hour", "unit_price": 12000, "type": "SERVICES", "tax_breakdowns": [{"rate": 12.5, "regime": "VAT"}]},
    {"number": 3, "name": "Discount", "quantity": 1, "unit_price": -500, "type": "DISCOUNT", "tax_breakdowns": [{"rate": 25, "regime": "VAT"}]}
  ],
  "supplier": {"id": "3f2a1b4c5d6e7f8091a2b3c4d5e6f708"},
  "customer": {"legal_name": "Müller & Söhne GmbH", "type": "BUSINESS",
    "address": {"country_code": "DE", "city": "Berlin", "postal_code": "10115", "address_line_1": "Invalidenstraße 1"},
    "tax_information": {"tax_number": "DE123456789", "regime": "VAT"}},
  "note": "<p>Thank you</p>",
  "payments": [{"type": "CARD", "amount": 40210}]
}`

// strictCountry has one rule of every sort, none of which the typical body breaks.
func strictCountry() country.Pack {
	return country.Pack{
		Code: "ZZ", Name: "Zedland", Version: "1",
		Facts: country.Facts{
			Currency: "EUR", Languages: []string{"EN"}, TimeZone: "UTC", UseCases: []country.UseCase{country.Invoicing},
			Required: []country.FieldRule{
				{Field: "items.*.tax_breakdowns", Reason: "every line says its tax"},
				{Field: "customer.tax_information.tax_number", BusinessModel: country.B2B, Reason: "law"},
				{Field: "customer.address.city", Reason: "law"},
			},
			Forbidden:   []country.FieldRule{{Field: "issuer", Reason: "no marketplaces"}, {Field: "items.*.ean", UseCase: country.Reporting}},
			Allowed:     []country.ValueRule{{Field: "currency_code", Values: []string{"EUR", "USD"}}, {Field: "payments.*.type", Values: []string{"CARD", "CASH"}}},
			MaxLengths:  []country.LengthRule{{Field: "transaction_number", Max: 20}, {Field: "items.*.name", Max: 100}},
			Regimes:     []string{"VAT"},
			Rates:       []country.Rate{{Regime: "VAT", Type: "STANDARD", Percent: "25"}, {Regime: "VAT", Type: "REDUCED", Percent: "12.5"}},
			StrictRates: true,
			OwnCurrency: true,
			Corrections: []country.Correction{
				{Kind: country.Credit}, {Kind: country.Adjustment},
				{Kind: country.Cancellation, ReasonRequired: true, Reasons: []country.Meaning{{Code: "01"}, {Code: "02"}}},
			},
		},
	}
}

func termsOf(t testing.TB, packs ...country.Pack) transaction.Terms {
	t.Helper()
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	return transaction.Terms{
		Atlas:   atlas,
		UseCase: func(string) (country.UseCase, bool) { return country.Both, true },
		Now:     time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC),
	}
}

// editBody returns a body with members set by dotted path; nil deletes one.
func editBody(t testing.TB, body string, changes map[string]any) []byte {
	t.Helper()
	var root any
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		t.Fatal(err)
	}
	for path, value := range changes {
		root = setMember(t, root, strings.Split(path, "."), value)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func setMember(t testing.TB, at any, steps []string, value any) any {
	t.Helper()
	if len(steps) == 0 {
		return value
	}
	switch node := at.(type) {
	case []any:
		i := int(steps[0][0] - '0')
		for len(node) <= i {
			node = append(node, map[string]any{})
		}
		node[i] = setMember(t, node[i], steps[1:], value)
		return node
	case map[string]any:
		if len(steps) == 1 && value == nil {
			delete(node, steps[0])
			return node
		}
		child, ok := node[steps[0]]
		if !ok && len(steps) > 1 {
			child = map[string]any{}
			if steps[1][0] >= '0' && steps[1][0] <= '9' {
				child = []any{}
			}
		}
		node[steps[0]] = setMember(t, child, steps[1:], value)
		return node
	}
	t.Fatalf("no member %v in %T", steps, at)
	return nil
}

// faultsIn returns the faults of an error that must be the client's to mend.
func faultsIn(t testing.TB, err error) []fault.Fault {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Invalid || len(e.Faults) == 0 || e.Message == "" {
		t.Fatalf("want an invalid request with faults, got %#v", err)
	}
	for _, f := range e.Faults {
		if f.Type != fault.Validation || f.Field != "" && !strings.HasPrefix(f.Message, f.Field+" ") {
			t.Errorf("fault %+v: its message must begin with its field", f)
		}
	}
	return e.Faults
}

// wantFaults compares faults or warnings with "code field" lines, in order.
func wantFaults(t testing.TB, got []fault.Fault, want ...string) {
	t.Helper()
	var lines []string
	for _, f := range got {
		lines = append(lines, string(f.Code)+" "+f.Field)
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got faults\n%s\nwant\n%s\nin full %+v", strings.Join(lines, "\n"), strings.Join(want, "\n"), got)
	}
}
