// Package transactiontest has what tests of several packages need of request
// bodies: a typical one, a way to change it, and a look at its faults.
package transactiontest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tributary/internal/fault"
)

// Typical is a body of about 1 KB as clients send it: three lines, a customer
// with an address, a payment.
const Typical = `{
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

// Edit returns a body with members set by dotted path; nil deletes one.
func Edit(t testing.TB, body string, changes map[string]any) []byte {
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

// FaultsIn returns the faults of an error that must be the client's to fix.
func FaultsIn(t testing.TB, err error) []fault.Fault {
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

// WantFaults compares faults or warnings with "code field" lines, in order.
func WantFaults(t testing.TB, got []fault.Fault, want ...string) {
	t.Helper()
	var lines []string
	for _, f := range got {
		lines = append(lines, string(f.Code)+" "+f.Field)
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got faults\n%s\nwant\n%s\nin full %+v", strings.Join(lines, "\n"), strings.Join(want, "\n"), got)
	}
}

// ManyItems is the typical body with n lines in descending order.
func ManyItems(n int) []byte {
	var b strings.Builder
	head, tail, _ := strings.Cut(Typical, `"items": [`)
	_, tail, _ = strings.Cut(tail, "],\n  \"supplier\"")
	b.WriteString(head + `"items":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"number":%d,"name":"n","quantity":1,"unit_price":1}`, n-i)
	}
	b.WriteString("],\n  \"supplier\"" + tail)
	return []byte(b.String())
}
