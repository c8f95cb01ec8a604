package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// reader is an address that reads bodies of a schema, with a body that has
// every member of it.
type reader struct {
	schema, method, path string
	full                 object
}

func readers(t testing.TB, p *program) []reader {
	address := object{"country_code": "IE"}
	for _, name := range []string{"city", "postal_code", "address_line_1", "address_line_2", "province", "region",
		"state", "district", "canton", "city_code", "neighbourhood", "number", "prefix", "suffix"} {
		address[name] = "x"
	}
	issuer := object{"legal_name": "Jane Doe", "trade_name": "JD", "entity_number": "1", "type": "BUSINESS",
		"address": address, "tax_information": object{"tax_number": "IE6388047V", "regime": "VAT"},
		"electronic_address": object{"scheme": "0208", "id": "0123456789"}}
	party := maps.Clone(issuer)
	maps.Copy(party, object{"email": "jane@example.com", "phone": "+353 1 234",
		"tax_information": object{"tax_number": "IE6388047V", "regime": "VAT", "fiscal_code": "RSSMRA85T10A562S",
			"use": "G03"}})
	tax := object{"rate": num("25"), "regime": "VAT", "type": "STANDARD", "code": "E5", "amount": num("4400"),
		"application_mode": "INCLUDED_IN_UNIT_PRICE"}
	item := object{"number": num("1"), "name": "Tea", "quantity": num("3"), "unit": "piece", "unit_price": num("7570"),
		"type": "GOODS", "description": "d", "code": "c", "ean": "1234567890123",
		"classification": []any{object{"scheme": "CPV", "code": "30213100"}}, "discount": object{"amount": num("710")},
		"net_price": num("17600"), "tax_breakdowns": []any{tax}}
	whole := p.sale(t, "schema", object{"language_code": "EN", "customer": party, "issuer": issuer, "items": []any{item},
		"note": "n", "exchange_rate": num("1.5"), "exchange_rate_date": "2026-03-31",
		"due_date": "2026-04-30", "delivery_date": "2026-03-30", "payment_terms": "30 days", "buyer_reference": "b",
		"order_reference": "o", "contract_reference": "c", "project_reference": "p",
		"total_amount": num("22000"), "total_net_amount": num("17600"), "total_tax_amount": num("4400"),
		"payments": []any{object{"type": "CARD", "code": "PUE", "amount": num("22000"), "iban": "DE89370400440532013000",
			"reference": "r"}}})
	with := func(o object, more object) object {
		o = maps.Clone(o)
		maps.Copy(o, more)
		return o
	}
	company := example(t, "company", object{"settings": object{}, "address": address, "tax_credentials": nil,
		"meta": object{"country_code": "ie", "language_code": "en", "external_id": "schema"}})
	return []reader{
		{"Transaction", "POST", "/v1/transactions/validate", whole},
		{"Adjustment", "POST", "/v1/transactions/adjustment",
			with(whole, object{"transaction_id": "schema-a", "reference_transaction_id": "schema"})},
		{"Credit", "POST", "/v1/transactions/credit", example(t, "credit", nil)},
		{"Cancellation", "POST", "/v1/transactions/cancellation", example(t, "cancellation", object{"reason": "01"})},
		{"PaymentReport", "POST", "/v1/transactions/payment",
			example(t, "payment", object{"transaction_number": "1", "note": "n", "exchange_rate": num("1.5"),
				"exchange_rate_date": "2026-03-31"})},
		{"PaymentReport", "POST", "/v1/transactions/payment",
			example(t, "payment", object{"reference_transaction_id": nil,
				"references": []any{object{"transaction_id": "a", "amount": num("116000")}}})},
		{"Backfill", "POST", "/v1/transactions/backfill/reported",
			example(t, "backfill", object{"supplier": whole["supplier"], "customer": party, "currency_code": "EUR",
				"items": whole["items"]})},
		{"Company", "POST", "/onboarding/v2/companies", company},
		{"CompanyPatch", "PATCH", "/onboarding/v2/companies/" + p.Demo().Suppliers["IE"],
			object{"legal_name": "New", "company_number": "1", "address": address, "settings": object{},
				"tax_information": object{"regime": "VAT"}, "meta": object{"language_code": "en"}}},
		{"BatchRequest", "POST", "/lookup/v2/batch-validations", example(t, "batch", nil)},
		{"SingleRequest", "POST", "/lookup/v2/single-validations", example(t, "single", nil)},
	}
}

func num(text string) json.Number { return json.Number(text) }

// variant is a body that differs from a full one in one place.
type variant struct {
	what  string
	value any
	gone  bool
}

// variants are the values that a member is tried with: of every type, and at
// and past every limit that its schema names.
//
// Members alike, such as those of an address, are tried in brief after the
// first: missing, null, another type and the limits.
func variants(s object, brief bool) (all []variant) {
	add := func(what string, value any) { all = append(all, variant{what: what, value: value}) }
	all = append(all, variant{what: "missing", gone: true})
	for what, value := range map[string]any{"null": nil, "true": true, "a number": num("12.5"), "zero": num("0"),
		"text": "x", "empty text": "", "an object": object{}, "an array": []any{}, "a list of null": []any{nil}} {
		if !brief || what == "null" || what == "a number" || what == "text" {
			add(what, value)
		}
	}
	if limit, ok := integer(s["maxLength"]); ok {
		letters := []string{"A", "é", "日"}
		if p, _ := s["pattern"].(string); strings.Contains(p, "A-Z") {
			letters = letters[:1]
		}
		if brief {
			letters = letters[:1]
		}
		for _, letter := range letters {
			add(fmt.Sprintf("%d × %s", limit, letter), strings.Repeat(letter, limit))
			add(fmt.Sprintf("%d × %s", limit+1, letter), strings.Repeat(letter, limit+1))
		}
	}
	if _, ok := s["pattern"]; ok && !brief {
		for _, text := range []string{" x", "x ", "a b", "\t", "a\nb", "a\u2028b", "a\x00b", "a\u0085b", "\u202eabc",
			"a\u2066b", "a\ufdd0b", "a\uffffb", "a\ufffdb", "a-b", "a_b", "ab", "AB", "ABC", "abc", "ÄÖ", "2026-02-30",
			"2026-02-28", "1969-12-31", "2200-01-01",
			"2026-03-31T10:00:00Z", "2026-03-31t10:00:00z", "2026-03-31T10:00:00.123456789+05:30", "2026-03-31T10:00:00",
			"2026-03-31 10:00:00Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-31T24:00:00Z",
			"2026-03-31T10:00:00+24:00", "1969-12-31T23:59:59Z", "2199-12-31T23:59:59Z", "2200-01-01T00:00:00Z",
			"2016-12-31T23:59:60Z", "2017-01-01T00:59:60.5+01:00", "2026-03-31T10:00:60Z", "2026-03-31T10:00:61Z", "aGVsbG8=",
			"ÿ"} {
			add(fmt.Sprintf("%q", text), text)
		}
	}
	values, _ := s["enum"].([]any)
	for _, v := range values {
		if text, ok := v.(string); ok && text != "" && !brief {
			add("value "+text, text)
			add("value "+strings.ToLower(text), strings.ToLower(text))
			add("value "+text+"X", text+"X")
		}
	}
	if (s["minimum"] != nil || s["exclusiveMinimum"] != nil) && !brief {
		for _, text := range []string{"-0", "-1", "1", "0.0", "1.0", "7570.0", "7570.5", "1e2", "1e400", "-1e400", "1e-400",
			"100", "100.0001", "99.9999", "99.99999", "0.000001", "0.0000001", "12.123456", "12.1234567", "9.975",
			"999999999999", "999999999999.999999", "1000000000000", "9007199254740991", "9007199254740992", "-9007199254740991",
			"-9007199254740992", "1." + strings.Repeat("0", 50), "123456789012345678901234567890"} {
			add(text, num(text))
		}
	}
	if limit, ok := integer(s["maxItems"]); ok && limit <= 10 {
		add("too many", make([]any, limit+1))
	}
	return all
}

func integer(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil
}

// each visits every member that a schema describes, by its path.
func each(schemas, schema object, path []string, visit func([]string, object)) {
	if name, ok := schema["$ref"].(string); ok {
		schema = schemas[name[strings.LastIndex(name, "/")+1:]].(object)
	}
	if some, ok := schema["anyOf"].([]any); ok && some[0].(object)["$ref"] != nil {
		each(schemas, some[0].(object), path, visit)
		return
	}
	if len(path) > 0 {
		visit(path, schema)
	}
	if items, ok := schema["items"].(object); ok {
		each(schemas, items, append(slices.Clone(path), "0"), visit)
	}
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		each(schemas, properties[name].(object), append(slices.Clone(path), name), visit)
	}
}

// changed is a body with one place replaced or removed.
func changed(from any, path []string, v variant) any {
	if len(path) == 0 {
		return v.value
	}
	switch from := from.(type) {
	case object:
		out := maps.Clone(from)
		if v.gone && len(path) == 1 {
			delete(out, path[0])
		} else {
			out[path[0]] = changed(from[path[0]], path[1:], v)
		}
		return out
	case []any:
		if v.gone && len(path) == 1 {
			return from[1:]
		}
		out := slices.Clone(from)
		out[0] = changed(from[0], path[1:], v)
		return out
	case nil: // a member that the full body lacks, such as the alias of another
		return changed(object{}, path, v)
	}
	return from
}

// TestBodiesAreAcceptedExactlyWhenTheirSchemaSaysSo tries every member of every
// body with values of every type and at and past every limit. The verdicts of
// schema and server are the same but for two classes that are spelled out:
// what lenient names, and the rules that rule names.
func TestBodiesAreAcceptedExactlyWhenTheirSchemaSaysSo(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	bodies := attempts(t, p)
	var tally verdicts
	inParts(t, len(bodies), func(t *testing.T, i int) { tally.add(bodies[i].try(t, p.as(demoKey))) })
	wholeBodies(t, p)
	t.Logf("%d bodies, %d accepted; refused by rules beyond the schemas: %v", tally.tried, tally.accepted, tally.ruled)
	if tally.tried < 1000 || tally.accepted < tally.tried/10 || tally.accepted > tally.tried*9/10 {
		t.Errorf("%d of %d bodies accepted: the test tries the wrong things", tally.accepted, tally.tried)
	}
}

// attempt is one body for one reader.
type attempt struct {
	reader
	what  string
	value any // of the member that differs
	text  []byte
}

// attempts are the full bodies and every variant of every member.
func attempts(t testing.TB, p *program) (all []attempt) {
	t.Helper()
	schemas, known := describedBy(t, p).doc["components"].(object)["schemas"].(object), map[string]bool{}
	for _, r := range readers(t, p) {
		add := func(what string, value, body any) {
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, attempt{r, what, value, text})
		}
		add("in full", r.full, r.full)
		each(schemas, schemas[r.schema].(object), nil, func(path []string, s object) {
			kind := maps.Clone(s)
			for _, keyword := range []string{"description", "examples", "maxLength"} {
				delete(kind, keyword)
			}
			alike, _ := json.Marshal(kind)
			key := fmt.Sprint(strings.HasPrefix(r.schema, "Company"), string(alike))
			for _, v := range variants(s, known[key]) {
				add(strings.Join(path, ".")+" "+v.what, v.value, changed(r.full, path, v))
			}
			known[key] = true
		})
	}
	return all
}

// try compares the verdicts of schema and server on one body.
func (a attempt) try(t *testing.T, c *caller) (taken bool, ruled string) {
	t.Helper()
	schema := describedBy(t, c.p).schema(t, "/components/schemas/"+a.schema)
	fits := validates(t, schema, a.text)
	got := c.do(t, a.method, a.path, a.text)
	taken = got.status < 300 || got.status == 409 || got.status == 429 // conflicts and limits come after the body was read
	switch {
	case !taken && got.status != 400:
		t.Errorf("%s %s answers %d %.300s", a.schema, a.what, got.status, got.body)
	case taken && !fits && !lenient(a.value):
		t.Errorf("%s %s: accepted, but the schema refuses it: %v", a.schema, a.what, schema.Validate(mustJSON(t, a.text)))
	case !taken && fits:
		if ruled = rule(got.json(t)); ruled == "" {
			t.Errorf("%s %s: the schema allows what is refused: %s", a.schema, a.what, got.body)
		}
	}
	return taken, ruled
}

// verdicts counts what became of the bodies.
type verdicts struct {
	mu              sync.Mutex
	tried, accepted int
	ruled           map[string]int
}

func (v *verdicts) add(taken bool, ruled string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tried++; taken {
		v.accepted++
	}
	if v.ruled == nil {
		v.ruled = map[string]int{}
	}
	if ruled != "" {
		v.ruled[ruled]++
	}
}

// inParts does n things in a few subtests beside each other and returns when all
// are done: one caller alone would mostly wait for the disk. They are no parallel
// subtests, which would wait for those of all other tests first.
func inParts(t *testing.T, n int, do func(t *testing.T, i int)) {
	t.Helper()
	const parts = 8
	var all sync.WaitGroup
	for part := range parts {
		all.Go(func() {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				for i := part; i < n; i += parts {
					do(t, i)
				}
			})
		})
	}
	all.Wait()
}

func mustJSON(t testing.TB, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func validates(t testing.TB, s *jsonschema.Schema, text []byte) bool {
	t.Helper()
	return s.Validate(mustJSON(t, text)) == nil
}

// lenient are values that count as absent; the schemas spell out only the
// commonest forms of that.
func lenient(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return len(v) == 0
	}
	return false
}

// rule names the rule behind a refusal that no schema can tell, or nothing.
func rule(refusal object) string {
	name := ""
	for _, f := range refusal["errors"].([]any) {
		f := f.(object)
		field, message := f["field"].(string), f["message"].(string)
		switch {
		case strings.HasPrefix(field, "payments") && strings.Contains(message, "add up"),
			strings.HasPrefix(field, "payments") && strings.Contains(message, "total"):
			name = "payments add up to the total"
		case strings.HasPrefix(field, "payments.") && strings.HasSuffix(field, ".code") &&
			strings.Contains(message, "form of payment"):
			name = "forms of payment are the country's"
		case field == "reason" && f["code"] == "unsupported_field":
			name = "reasons of a sale are the country's"
		case f["code"] == "unsupported_country",
			strings.HasSuffix(field, "country_code") && strings.Contains(message, "ISO 3166"):
			name = "countries exist"
		case field == "currency_code" && strings.Contains(message, "ISO 4217"):
			name = "currencies exist"
		case field == "transaction_number" && f["code"] == "field_required":
			name = "the country wants a number"
		case f["code"] == "validation_match_invalid":
			name = "two members fit together"
		case strings.Contains(message, "9007199254740991") || strings.Contains(message, "too large"):
			name = "amounts stay exact"
		case strings.Contains(message, "must be an integer in minor units"):
			name = "amounts are written without decimals"
		case strings.HasSuffix(field, ".iban") && strings.Contains(message, "check digits"):
			name = "accounts have the right check digits"
		case strings.HasSuffix(message, " decimals"):
			name = "decimals are few"
		case strings.Contains(message, "identity") || strings.Contains(message, "cannot be changed"):
			name = "identity stays"
		case f["code"] == "field_required" && (field == "address.city" || field == "address.address_line_1"):
			name = "a patched company stays complete"
		case field == "branding.logo_base64" && strings.Contains(message, "image"):
			name = "a logo is a picture"
		case strings.HasPrefix(field, "settings.") || strings.HasPrefix(field, "tax_credentials"):
			name = "the country's settings and credentials"
		default:
			return ""
		}
	}
	return name
}

// wholeBodies tries what no single member shows; schema and server must agree.
func wholeBodies(t *testing.T, p *program) {
	t.Helper()
	c, d := p.as(demoKey), describedBy(t, p)
	items := func(n int) (all []any) {
		for i := range n {
			all = append(all, object{"number": i + 1, "name": "x", "quantity": 1, "unit_price": 1})
		}
		return all
	}
	entries := func(n int) []any {
		return slices.Repeat([]any{object{"country_iso_code": "ie", "tax_identification_number": "1"}}, n)
	}
	taxed := func(item object) []any {
		maps.Copy(item, object{"number": 1, "name": "x", "quantity": 1, "unit_price": 100})
		return []any{item}
	}
	sale := func(changes object) object {
		changes["payments"] = nil
		return p.sale(t, "whole", changes)
	}
	vat := object{"rate": 25, "regime": "VAT"}
	for _, try := range []struct {
		what, schema, path string
		body               object
		good               bool
	}{
		{"5,000 items", "Transaction", "/v1/transactions/validate", sale(object{"items": items(5000)}), true},
		{"5,001 items", "Transaction", "/v1/transactions/validate", sale(object{"items": items(5001)}), false},
		{"an unknown member", "Transaction", "/v1/transactions/validate", sale(object{"colour": object{"deep": []any{1}}}),
			true},
		{"a member of corrections", "Transaction", "/v1/transactions/validate",
			sale(object{"reference_transaction_id": "x"}), false},
		{"a member of cancellations", "Credit", "/v1/transactions/credit", example(t, "credit", object{"reason": "01"}),
			false},
		{"items in a credit", "Credit", "/v1/transactions/credit", example(t, "credit", object{"items": items(1)}), false},
		{"items without a currency", "Backfill", "/v1/transactions/backfill/reported",
			example(t, "backfill", object{"items": items(1)}), false},
		{"the other name of taxes", "Transaction", "/v1/transactions/validate",
			sale(object{"items": taxed(object{"tax_breakdown": []any{vat}})}), true},
		{"both names of taxes", "Transaction", "/v1/transactions/validate",
			sale(object{"items": taxed(object{"tax_breakdown": []any{vat}, "tax_breakdowns": []any{vat}})}), false},
		{"a withholding of its own type", "Transaction", "/v1/transactions/validate",
			sale(object{"items": taxed(object{"tax_breakdowns": []any{object{"rate": 15, "regime": "RET", "type": "IRPF"}}})}),
			true},
		{"a tax of a withholding's type", "Transaction", "/v1/transactions/validate",
			sale(object{"items": taxed(object{"tax_breakdowns": []any{object{"rate": 15, "regime": "VAT", "type": "IRPF"}}})}),
			false},
		{"10,000 numbers", "BatchRequest", "/lookup/v2/batch-validations", object{"validations": entries(10000)}, true},
		{"10,001 numbers", "BatchRequest", "/lookup/v2/batch-validations", object{"validations": entries(10001)}, false},
		{"a company of the reference country without a street", "Company", "/onboarding/v2/companies",
			example(t, "company", object{"meta": object{"country_code": "XX", "external_id": "bare"},
				"address": object{"country_code": "XX"}}), true},
		{"a company of Ireland without a street", "Company", "/onboarding/v2/companies",
			example(t, "company", object{"address": object{"country_code": "IE"}}), false},
	} {
		text, err := json.Marshal(try.body)
		if err != nil {
			t.Fatal(err)
		}
		got := c.do(t, "POST", try.path, text)
		if fits := validates(t, d.schema(t, "/components/schemas/"+try.schema), text); fits != try.good ||
			(got.status < 300 || got.status == 409) != try.good {
			t.Errorf("%s: schema says %t, server %d %.300s, want %t", try.what, fits, got.status, got.body, try.good)
		}
	}
}
