package lookup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"tributary/internal/fault"
	"tributary/internal/lookup"
	"tributary/internal/mutate"
)

// said is a refusal as one line per fault: path and code, or the message of a fault without a path.
func said(t testing.TB, err error) (lines []string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no refusal", err)
	}
	for _, f := range e.Faults {
		switch {
		case f.Field == "":
			lines = append(lines, string(f.Code)+" "+f.Message)
		case !strings.HasPrefix(f.Message, f.Field+" "):
			t.Errorf("message %q does not name %q", f.Message, f.Field)
		default:
			lines = append(lines, f.Field+" "+string(f.Code))
		}
	}
	return lines
}

const goodEntry = `{"country_iso_code":"DE","tax_identification_number":"1"}`

func oneEntry(member string) string { return `{"validations":[{` + member + `}]}` }

func TestBatchBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"validations":[` + goodEntry + `],"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for name, c := range map[string]struct{ body, want string }{
		"nothing":        {``, "json_not_valid line 1, column 1 (byte 0)"},
		"cut":            {`{"validations":[`, "json_not_valid line 1"},
		"two values":     {`{} {}`, "json_not_valid line 1, column 4 (byte 3)"},
		"trailing comma": {`{"validations":[` + goodEntry + `,]}`, "json_not_valid"},
		"second line": {"{\n \"a\": nul}",
			"json_not_valid line 2, column 7 (byte 8): found 'n' where a value is expected"},
		"a list": {`[]`, "json_not_valid line 1, column 1 (byte 0): the body must be an object"},
		"null":   {`null`, "json_not_valid line 1, column 1 (byte 0): the body must be an object"},
		"not UTF-8": {"{\"batch_name\":\"\xff\"}",
			"json_not_valid line 1, column 16 (byte 15): the body is not valid UTF-8"},
		"name twice": {`{"batch_name":"a","batch_name":"b"}`,
			`json_not_valid line 1, column 19 (byte 18): the name "batch_name" stands twice`},
		"name twice, escaped": {oneEntry(`"country_iso_code":"DE","country\u005fiso_code":"FR"`), "stands twice"},
		"name twice, unknown": {`{"validations":[],"x":{"y":[{"z":1,"z":2}]}}`, `the name "z" stands twice`},
		"32 deep":             {deep(31), ""},
		"33 deep":             {deep(32), "nested more than 32 deep"},
		"empty":               {`{}`, "validations field_required"},
		"null list":           {`{"validations":null}`, "validations field_required"},
		"empty list":          {`{"validations":[]}`, "validations field_required"},
		"list is an object":   {`{"validations":{"0":` + goodEntry + `}}`, "validations field_not_valid"},
		"list is a text":      {`{"validations":"DE1"}`, "validations field_not_valid"},
		"entries are none": {`{"validations":[1,null,"x",[]]}`,
			"validations.0 field_not_valid|validations.1 field_not_valid|validations.2 field_not_valid|validations.3 field_not_valid"},
		"entry is empty": {`{"validations":[{}]}`,
			"validations.0.country_iso_code field_required|validations.0.tax_identification_number field_required"},
		"blanks": {oneEntry(`"country_iso_code":" ","tax_identification_number":"  "`),
			"validations.0.country_iso_code field_required|validations.0.tax_identification_number field_required"},
		"number is a number": {oneEntry(`"country_iso_code":"DE","tax_identification_number":136695976`),
			"validations.0.tax_identification_number field_not_valid"},
		"number is an object": {oneEntry(`"country_iso_code":"DE","tax_identification_number":{"a":[1]}`),
			"validations.0.tax_identification_number field_not_valid"},
		"country is true": {oneEntry(`"country_iso_code":true,"tax_identification_number":"1"`),
			"validations.0.country_iso_code field_not_valid"},
		"country is a name": {oneEntry(`"country_iso_code":"Germany","tax_identification_number":"1"`),
			"validations.0.country_iso_code field_not_valid"},
		"country is one": {oneEntry(`"country_iso_code":"D","tax_identification_number":"1"`),
			"validations.0.country_iso_code field_not_valid"},
		"country has digits": {oneEntry(`"country_iso_code":"D1","tax_identification_number":"1"`),
			"validations.0.country_iso_code field_not_valid"},
		"country is one rune": {oneEntry(`"country_iso_code":"é","tax_identification_number":"1"`),
			"validations.0.country_iso_code field_not_valid"},
		"NUL": {oneEntry(`"country_iso_code":"DE","tax_identification_number":"1\u0000"`),
			"validations.0.tax_identification_number field_not_valid"},
		"lone surrogate": {oneEntry(`"country_iso_code":"DE","tax_identification_number":"\ud800"`),
			"json_not_valid line 1, column 71 (byte 70): a string has half of a surrogate pair"},
		"number of 50": {oneEntry(`"country_iso_code":"DE","tax_identification_number":"` + strings.Repeat("é", 50) + `"`),
			""},
		"number of 51": {oneEntry(`"country_iso_code":"DE","tax_identification_number":"` + strings.Repeat("1", 51) + `"`),
			"validations.0.tax_identification_number field_not_valid"},
		"name of 150": {`{"batch_name":"` + strings.Repeat("é", 150) + `","validations":[` + goodEntry + `]}`, ""},
		"name of 151": {`{"batch_name":"` + strings.Repeat("x", 151) + `","validations":[` + goodEntry + `]}`,
			"batch_name field_not_valid"},
		"name is a number": {`{"batch_name":7,"validations":[` + goodEntry + `]}`, "batch_name field_not_valid"},
		"name is null":     {`{"batch_name":null,"validations":[` + goodEntry + `]}`, ""},
		"unknown members":  {`{"x":[{}],"validations":[{"x":1.5e9,"country_iso_code":"QQ","tax_identification_number":"?"}]}`, ""},
		"all at once": {`{"batch_name":[],"validations":[` + goodEntry + `,{"country_iso_code":"DEU"}]}`,
			"batch_name field_not_valid|validations.1.country_iso_code field_not_valid|validations.1.tax_identification_number field_required"},
		"1 MiB": {`{"validations":[` + goodEntry + `]}` + strings.Repeat(" ", 1<<20-len(goodEntry)-18), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, entries, err := lookup.DecodeBatch([]byte(c.body))
			if c.want == "" {
				if err != nil || len(entries) != 1 {
					t.Errorf("%d entries, %v", len(entries), err)
				}
				return
			}
			wantKind(t, err, fault.Invalid)
			lines := strings.Join(said(t, err), "|")
			if isJSON := strings.HasPrefix(lines, "json_not_valid"); isJSON && !strings.Contains(lines, c.want) ||
				!isJSON && lines != c.want {
				t.Errorf("%s\nwant %s", lines, c.want)
			}
		})
	}
	_, _, err := lookup.DecodeBatch([]byte(strings.Repeat(" ", 1<<20+1)))
	wantKind(t, err, fault.TooLarge)
}

func TestTenThousandEntriesAreTakenAndOneMoreIsNot(t *testing.T) {
	t.Parallel()
	list := func(n int) []byte {
		return []byte(`{"validations":[` + goodEntry + strings.Repeat(","+goodEntry, n-1) + `]}`)
	}
	if _, entries, err := lookup.DecodeBatch(list(10_000)); err != nil || len(entries) != 10_000 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	_, _, err := lookup.DecodeBatch(list(10_001))
	wantKind(t, err, fault.Invalid)
	if lines := said(t, err); len(lines) != 1 || lines[0] != "validations field_not_valid" ||
		!strings.Contains(err.Error(), "at most 10000 entries, not 10001") {
		t.Errorf("%v", err)
	}
	// Faults beyond the limit are those of nobody's entry, but JSON must still be JSON.
	broken := append(list(10_001)[:len(list(10_001))-2], []byte(`,{"a":1,"a":2}]}`)...)
	_, _, err = lookup.DecodeBatch(broken)
	if !strings.Contains(err.Error(), "stands twice") {
		t.Errorf("%v", err)
	}
}

func TestAHundredFaultsAreListedAndAllAreCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "the request has 1 error", 100: "the request has 100 errors",
		101: "the request has 101 errors, the first 100 are listed"} {
		_, _, err := lookup.DecodeBatch([]byte(`{"validations":[1` + strings.Repeat(",1", n-1) + `]}`))
		var e *fault.Error
		if !errors.As(err, &e) || e.Message != want || len(e.Faults) != min(n, 100) {
			t.Errorf("%d: %v", n, e.Message)
		}
	}
}

func TestSingleBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		goodEntry: "",
		`{"country_iso_code":"el","tax_identification_number":" 1 ","x":{}}`: "",
		`{}`: "country_iso_code field_required|tax_identification_number field_required",
		`{"country_iso_code":7,"tax_identification_number":null}`: "country_iso_code field_not_valid|tax_identification_number field_required",
		`{"validations":[` + goodEntry +
			`]}`: "country_iso_code field_required|tax_identification_number field_required",
	} {
		entry, err := lookup.DecodeSingle([]byte(body))
		if want == "" {
			if err != nil || entry.Number == "" {
				t.Errorf("%s: %+v %v", body, entry, err)
			}
			continue
		}
		if lines := strings.Join(said(t, err), "|"); lines != want {
			t.Errorf("%s: %s", body, lines)
		}
	}
}

// What is accepted says to the standard library what it says to us.
func FuzzDecodeBatch(f *testing.F) {
	for _, seed := range []string{
		`{"batch_name":"a","validations":[` + goodEntry + `]}`, `{"validations":[{}]}`, `{"a":1,"a":2}`, `[]`, ``,
		`{"validations":[{"country_iso_code":"DE","tax_identification_number":"\u0000"}],"x":[[[]]]}`,
	} {
		f.Add([]byte(seed))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		name, entries, err := lookup.DecodeBatch(body)
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Kind != fault.Invalid && e.Kind != fault.TooLarge || len(e.Faults) == 0 ||
				len(e.Faults) > 100 {
				t.Fatalf("%v", err)
			}
			if !utf8.ValidString(err.Error()) {
				t.Fatalf("%q", err)
			}
			return
		}
		var plain map[string]any
		if err := json.Unmarshal(body, &plain); err != nil {
			t.Fatalf("accepted although %v", err)
		}
		if said, _ := plain["batch_name"].(string); said != name {
			t.Fatalf("name %q, the body says %q", name, said)
		}
		list := plain["validations"].([]any)
		got := make([]any, len(entries))
		for i, e := range entries {
			if len(e.Country) != 2 || strings.TrimSpace(e.Number) == "" || utf8.RuneCountInString(e.Number) > 50 ||
				strings.ContainsRune(e.Number, 0) {
				t.Fatalf("%+v", e)
			}
			got[i] = [2]any{e.Country, e.Number}
		}
		want := make([]any, len(list))
		for i, e := range list {
			members := e.(map[string]any)
			want[i] = [2]any{members["country_iso_code"], members["tax_identification_number"]}
		}
		if len(entries) == 0 || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, the body says %v", got, want)
		}
	})
}

func BenchmarkDecodeBatchOf10000(b *testing.B) {
	body := batchBody("", manyEntries(b, 10_000))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, _, err := lookup.DecodeBatch(body); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleCursor() {
	text, _ := json.Marshal([]lookup.Cursor{"v20", ""})
	fmt.Println(string(text))
	// Output: ["v20",null]
}
