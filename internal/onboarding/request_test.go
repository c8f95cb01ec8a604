package onboarding_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

func TestWhatTheBodyDecidesIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	w := newWorld(t, dbtest.SQLite(t))
	long := func(n int) string { return strings.Repeat("ñ", n) }
	cases := []struct {
		name string
		body map[string]any
		want []string // none: accepted
	}{
		{"nothing", map[string]any{}, []string{"field_required meta.country_code", "field_required meta.external_id",
			"field_required legal_name",
			"field_required address.country_code", "field_required address.address_line_1", "field_required address.city",
			"field_required tax_information.tax_number"}},
		{"minimal in the reference country", map[string]any{"meta": map[string]any{"country_code": "XX", "external_id": "x"},
			"legal_name": "L",
			"address":    map[string]any{"country_code": "de"}, "tax_information": map[string]any{"tax_number": "X1"}}, nil},
		{"blanks", company("legal_name", "  ", "tax_information.tax_number", "\u00a0"),
			[]string{"field_required legal_name", "field_required tax_information.tax_number"}},
		{"types", company("meta", 1, "legal_name", 2, "address", []int{}, "tax_information", "x", "tax_credentials", 5,
			"settings", true),
			[]string{"field_not_valid meta", "field_not_valid legal_name", "field_not_valid address",
				"field_not_valid tax_information", "field_not_valid tax_credentials", "field_not_valid settings"}},
		{"an unknown country", company("meta.country_code", "zz"), []string{"unsupported_country meta.country_code"}},
		{"no country code", company("meta.country_code", "Spain"), []string{"field_not_valid meta.country_code"}},
		{"language", company("meta.language_code", "e1"), []string{"field_not_valid meta.language_code"}},
		{"address country", company("address.country_code", "ZZ"), []string{"field_not_valid address.country_code"}},
		{"external id at its limit", company("meta.external_id", long(150)), nil},
		{"external id past it", company("meta.external_id", long(151)), []string{"field_not_valid meta.external_id"}},
		{"external id with a blank in front", company("meta.external_id", " x"),
			[]string{"field_not_valid meta.external_id"}},
		{"external id unseen", company("meta.external_id", "a\u200bb"), []string{"field_not_valid meta.external_id"}},
		{"name at its limit", company("legal_name", long(450)), nil},
		{"name past it", company("legal_name", long(451)), []string{"field_not_valid legal_name"}},
		{"company number at its limit", company("company_number", long(100)), nil},
		{"company number past it", company("company_number", long(101)), []string{"field_not_valid company_number"}},
		{"address line at its limit", company("address.address_line_2", long(200)), nil},
		{"address line past it", company("address.address_line_2", long(201)),
			[]string{"field_not_valid address.address_line_2"}},
		{"tax number past its limit", company("tax_information.tax_number", long(51)),
			[]string{"field_not_valid tax_information.tax_number"}},
		{"regime past its limit", company("tax_information.regime", "ABCDEFGHIJK"),
			[]string{"field_not_valid tax_information.regime"}},
		{"control characters", company("legal_name", "a\x00b", "address.city", "a\nb"),
			[]string{"field_not_valid address.city", "field_not_valid legal_name"}},
		{"bidirectional override", company("legal_name", "a\u202eb"), []string{"field_not_valid legal_name"}},
		{"unknown fields", company("trade_name", "T", "address.planet", "Earth"), nil},
		{"garbage base64", company("tax_credentials.certificate_base64", "%%%not base64%%%"),
			[]string{"field_not_valid tax_credentials.certificate_base64"}},
		{"base64 for addresses", company("tax_credentials.certificate_base64", "ab-_"),
			[]string{"field_not_valid tax_credentials.certificate_base64"}},
		{"certificate at its limit", company("tax_credentials.certificate_base64",
			base64.StdEncoding.EncodeToString(make([]byte, onboarding.PKCS12BytesMax))), nil},
		{"certificate past it", company("tax_credentials.certificate_base64",
			base64.StdEncoding.EncodeToString(make([]byte, onboarding.PKCS12BytesMax+1))),
			[]string{"field_not_valid tax_credentials.certificate_base64"}},
		{"password at its limit", company("tax_credentials.certificate_password", long(1000)), nil},
		{"password past it", company("tax_credentials.certificate_password", long(1001)),
			[]string{"field_not_valid tax_credentials.certificate_password"}},
		{"user name past its limit", company("tax_credentials.username", long(201)),
			[]string{"field_not_valid tax_credentials.username"}},
		{"token at its limit", company("tax_credentials.password", long(4000)), nil},
		{"token past it", company("tax_credentials.password", long(4001)),
			[]string{"field_not_valid tax_credentials.password"}},
		{"credentials of another type", company("tax_credentials.password", 5),
			[]string{"field_not_valid tax_credentials.password"}},
		{"settings", company("settings", map[string]any{"software": "UPPER", "level": 1.5, "loud": "yes", "extra": []int{1},
			"office": "east", "colour": "red"}),
			[]string{"unsupported_field settings.colour", "field_not_valid settings.extra", "field_not_valid settings.level",
				"field_not_valid settings.loud", "field_not_valid settings.office", "field_not_valid settings.software"}},
		{"good settings", company("settings",
			map[string]any{"software": "abc", "level": -7, "loud": true, "extra": map[string]any{"a": []any{1, "b", nil}},
				"office": "south"}), nil},
		{"a setting the country needs", company("meta.country_code", "MX", "tax_credentials",
			map[string]any{"certificate_base64": "AAAA", "certificate_password": "p", "username": "u", "password": "s"}),
			[]string{"field_required settings.fiscal_regime"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			defer clean(t, w)
			e, err := w.Create(t.Context(), client, false, encode(c.body))
			if len(c.want) == 0 {
				if err != nil || e.Status != onboarding.Success {
					t.Fatalf("%v", err)
				}
				return
			}
			got := faultsOf(err)
			slices.Sort(got)
			slices.Sort(c.want)
			if fault.KindOf(err) != fault.Invalid || !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for _, f := range err.(*fault.Error).Faults {
				if !strings.HasPrefix(f.Message, f.Field+" ") {
					t.Errorf("the message does not begin with the path: %+v", f)
				}
			}
		})
	}
}

func TestTheReferenceCountryIsNotOfferedWithLiveKeys(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	if _, err := w.Create(t.Context(), client, true,
		encode(company("meta.country_code", "XX"))); !slices.Equal(faultsOf(err),
		[]string{"unsupported_country meta.country_code"}) {
		t.Errorf("%v", err)
	}
}

func TestIgnoredFieldsAreNamedInTheMessage(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	e, err := w.Create(t.Context(), client, false, encode(company("trade_name", "T", "address.planet", "Earth")))
	if err != nil || *e.Message != "The onboarding job was queued. Unknown fields were ignored: address.planet, trade_name." {
		t.Errorf("%v %v", *e.Message, err)
	}
}

func TestBrokenJSONIsRefusedWithItsPosition(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	nested := func(n int) string { return `{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}` }
	for body, want := range map[string]string{
		``:                                   "line 1, column 1",
		`{"a":1`:                             "line 1, column 7 (byte 6): the body ends",
		"{\n\"a\":1,\n\"a\":2}":              "line 3",
		`{"meta":{"x":1,"x":2}}`:             `"x" stands twice`,
		`{"a":"` + "\xff" + `"}`:             "not valid UTF-8",
		`{"a":"\ud800"}`:                     "half of a surrogate pair",
		`{} {}`:                              "line 1, column 4",
		`[]`:                                 "must be an object",
		`{"a":01}`:                           "line 1",
		`{'a':1}`:                            "line 1, column 2",
		nested(onboarding.DepthMax + 1):      "more than 32 deep",
		strings.Repeat(`{"a":`, 20000) + `1`: "line 1",
	} {
		_, err := w.Create(t.Context(), client, false, []byte(body))
		if fault.KindOf(err) != fault.Invalid || !slices.Equal(faultsOf(err), []string{"json_not_valid "}) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", body, err)
		}
	}
	if _, err := w.Create(t.Context(), client, false, []byte(nested(onboarding.DepthMax))); slices.Contains(faultsOf(err),
		"json_not_valid ") {
		t.Errorf("at the limit of depth: %v", err)
	}
	if _, err := w.Create(t.Context(), client, false, make([]byte, 1<<20+1)); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("a large body: %v", err)
	}
}

func TestAHostileBodyListsAHundredFaults(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	settings := map[string]any{}
	for i := range 500 {
		settings[fmt.Sprint("k", i)] = i
	}
	_, err := w.Create(t.Context(), client, false, encode(company("settings", settings)))
	e, _ := err.(*fault.Error)
	if e == nil || len(e.Faults) != onboarding.FaultsMax || !strings.Contains(e.Message, "500 faults") {
		t.Errorf("%v", e.Message)
	}
}

// The order of members, blanks and nulls do not make another body; any value does.
func TestEqualContentIsTheSameBody(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	values := []string{"a", "b", ""}
	rapid.Check(t, func(t *rapid.T) {
		clean(w.t, w)
		name := rapid.SampledFrom(values[:2]).Draw(t, "name")
		number := rapid.SampledFrom(values).Draw(t, "number")
		first := company("legal_name", name, "company_number", number)
		e, err := w.Create(w.t.Context(), client, false, encode(first))
		if err != nil {
			t.Fatal(err)
		}
		second := company("legal_name", rapid.SampledFrom(values[:2]).Draw(t, "name again"), "company_number",
			rapid.SampledFrom(values).Draw(t, "number again"), "note", nil)
		indented, _ := json.MarshalIndent(second, "", "  ")
		again, err := w.Create(w.t.Context(), client, false, indented)
		same := first["legal_name"] == second["legal_name"] && first["company_number"] == second["company_number"]
		if same && (err != nil || again.Data.JobID != e.Data.JobID) || !same && fault.KindOf(err) != fault.Conflict {
			t.Fatalf("same %t: %v", same, err)
		}
	})
}

func FuzzBody(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	f.Add(encode(company()), false)
	f.Add(encode(company("tax_credentials", map[string]any{"certificate_base64": "AAAA", "password": nil})), true)
	f.Add([]byte(`{"meta":{"meta":{}},"settings":[[]],"tax_credentials":null}`), true)
	f.Add([]byte("{\"\\ud800\":1}"), false)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte, patch bool) {
		err := onboarding.ReadBody(body, patch)
		if err == nil && !json.Valid(body) {
			t.Fatal("accepted what is no JSON")
		}
		if err == nil {
			return
		}
		if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.TooLarge || len(faultsOf(err)) == 0 {
			t.Fatalf("%v", err)
		}
	})
}
