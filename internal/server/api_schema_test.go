package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	for _, name := range []string{"city", "postal_code", "address_line_1", "address_line_2", "province", "region", "state", "district", "canton", "city_code", "neighbourhood", "number", "prefix", "suffix"} {
		address[name] = "x"
	}
	party := object{"legal_name": "Jane Doe", "trade_name": "JD", "entity_number": "1", "type": "BUSINESS", "address": address, "tax_information": object{"tax_number": "IE6388047V", "regime": "VAT"}}
	tax := object{"rate": num("25"), "regime": "VAT", "type": "STANDARD", "code": "E5", "application_mode": "INCLUDED_IN_UNIT_PRICE"}
	item := object{"number": num("1"), "name": "Tea", "quantity": num("3"), "unit": "piece", "unit_price": num("7570"), "type": "GOODS", "description": "d", "code": "c", "ean": "1234567890123", "tax_breakdowns": []any{tax}}
	whole := p.sale(t, "schema", object{"language_code": "EN", "customer": party, "issuer": party, "items": []any{item}, "note": "n", "exchange_rate": num("1.5"), "exchange_rate_date": "2026-03-31",
		"payments": []any{object{"type": "CARD", "code": "PUE", "amount": num("22710")}}})
	with := func(o object, more object) object {
		o = maps.Clone(o)
		maps.Copy(o, more)
		return o
	}
	company := example(t, "company", object{"settings": object{}, "address": address, "tax_credentials": nil, "meta": object{"country_code": "ie", "language_code": "en", "external_id": "schema"}})
	return []reader{
		{"Transaction", "POST", "/v1/transactions/validate", whole},
		{"Adjustment", "POST", "/v1/transactions/adjustment", with(whole, object{"transaction_id": "schema-a", "reference_transaction_id": "schema"})},
		{"Credit", "POST", "/v1/transactions/credit", example(t, "credit", nil)},
		{"Cancellation", "POST", "/v1/transactions/cancellation", example(t, "cancellation", object{"reason": "01"})},
		{"Backfill", "POST", "/v1/transactions/backfill/reported", example(t, "backfill", object{"supplier": whole["supplier"], "customer": party, "currency_code": "EUR", "items": whole["items"]})},
		{"Company", "POST", "/onboarding/v2/companies", company},
		{"CompanyPatch", "PATCH", "/onboarding/v2/companies/" + p.Demo().Suppliers["IE"], object{"legal_name": "New", "company_number": "1", "address": address, "settings": object{}, "tax_information": object{"regime": "VAT"}, "meta": object{"language_code": "en"}}},
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
	for what, value := range map[string]any{"null": nil, "true": true, "a number": num("12.5"), "zero": num("0"), "text": "x", "empty text": "", "an object": object{}, "an array": []any{}, "a list of null": []any{nil}} {
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
		for _, text := range []string{" x", "x ", "a b", "\t", "a\nb", "a\u2028b", "a\x00b", "a\u0085b", "\u202eabc", "a\u2066b", "a\ufdd0b", "a\uffffb", "a\ufffdb", "a-b", "a_b", "ab", "AB", "ABC", "abc", "ÄÖ", "2026-02-30", "2026-02-28", "1969-12-31", "2200-01-01",
			"2026-03-31T10:00:00Z", "2026-03-31T10:00:00.123456789+05:30", "2026-03-31T10:00:00", "2026-03-31 10:00:00Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-31T24:00:00Z", "2026-03-31T10:00:00+24:00", "1969-12-31T23:59:59Z", "2199-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "aGVsbG8=", "ÿ"} {
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
		for _, text := range []string{"-0", "-1", "1", "0.0", "1.0", "7570.0", "7570.5", "1e2", "1e400", "-1e400", "1e-400", "100", "100.0001", "99.9999", "99.99999", "0.000001", "0.0000001", "12.123456", "12.1234567",
			"999999999999", "999999999999.999999", "1000000000000", "9007199254740991", "9007199254740992", "-9007199254740991", "-9007199254740992", "1." + strings.Repeat("0", 50), "123456789012345678901234567890"} {
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
	c, d := p.as(demoKey), describedBy(t, p)
	schemas := d.doc["components"].(object)["schemas"].(object)
	tried, accepted, ruled, known := 0, 0, map[string]int{}, map[string]bool{}
	for _, r := range readers(t, p) {
		schema := d.schema(t, "/components/schemas/"+r.schema)
		try := func(what string, value any, body any) {
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			tried++
			fits := validates(t, schema, text)
			got := c.do(t, r.method, r.path, text)
			taken := got.status < 300 || got.status == 409 || got.status == 429 // conflicts and limits come after the body was read
			if taken {
				accepted++
			}
			switch {
			case !taken && got.status != 400:
				t.Errorf("%s %s answers %d %.300s", r.schema, what, got.status, got.body)
			case taken && !fits && !lenient(value):
				t.Errorf("%s %s: accepted, but the schema refuses it: %v", r.schema, what, schema.Validate(mustJSON(t, text)))
			case !taken && fits:
				if name := rule(got.json(t)); name == "" {
					t.Errorf("%s %s: the schema allows what is refused: %s", r.schema, what, got.body)
				} else {
					ruled[name]++
				}
			}
		}
		try("in full", r.full, r.full)
		each(schemas, schemas[r.schema].(object), nil, func(path []string, s object) {
			alike, _ := json.Marshal(s)
			key := fmt.Sprint(strings.HasPrefix(r.schema, "Company"), string(alike))
			for _, v := range variants(s, known[key]) {
				try(strings.Join(path, ".")+" "+v.what, v.value, changed(r.full, path, v))
			}
			known[key] = true
		})
	}
	t.Logf("%d bodies, %d accepted; refused by rules beyond the schemas: %v", tried, accepted, ruled)
	if tried < 2000 || accepted < tried/10 || accepted > tried*9/10 {
		t.Errorf("%d of %d bodies accepted: the test tries the wrong things", accepted, tried)
	}
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
		case strings.HasPrefix(field, "payments") && strings.Contains(message, "add up"), strings.HasPrefix(field, "payments") && strings.Contains(message, "total"):
			name = "payments add up to the total"
		case f["code"] == "unsupported_country", strings.HasSuffix(field, "country_code") && strings.Contains(message, "ISO 3166"):
			name = "countries exist"
		case field == "currency_code" && strings.Contains(message, "ISO 4217"):
			name = "currencies exist"
		case field == "transaction_number" && f["code"] == "field_required":
			name = "the country wants a number"
		case f["code"] == "validation_match_invalid":
			name = "two members fit together"
		case strings.Contains(message, "9007199254740991") || strings.Contains(message, "too large"):
			name = "amounts stay exact"
		case strings.Contains(message, "identity") || strings.Contains(message, "cannot be changed"):
			name = "identity stays"
		case f["code"] == "field_required" && (field == "address.city" || field == "address.address_line_1"):
			name = "a patched company stays complete"
		case strings.HasPrefix(field, "settings.") || strings.HasPrefix(field, "tax_credentials"):
			name = "the country's settings and credentials"
		default:
			return ""
		}
	}
	return name
}
