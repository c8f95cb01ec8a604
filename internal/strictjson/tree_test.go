package strictjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"tributary/internal/mutate"
	"tributary/internal/strictjson"
)

func TestATreeKeepsEverythingAsItWasSent(t *testing.T) {
	tree, err := strictjson.Parse([]byte(` {"b":"\u00fc\n\ud83d\ude00/","a":[1.50,-0,true,false,null,{}],"":{"c":1e400}} `), bytesMax)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(tree.Names, []string{"b", "a", ""}) {
		t.Errorf("names %q", tree.Names)
	}
	want := map[string]any{
		"b": "ü\n😀/", "": map[string]any{"c": json.Number("1e400")},
		"a": []any{json.Number("1.50"), json.Number("-0"), true, false, nil, map[string]any{}},
	}
	if got := plain(tree); !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v", got)
	}
}

// plain is a tree as the standard library gives it.
func plain(v *strictjson.Value) any {
	switch v.Kind {
	case strictjson.Text:
		return v.Text
	case strictjson.Number:
		return json.Number(v.Text)
	case strictjson.Bool:
		return v.Text == "true"
	case strictjson.Array:
		list := []any{}
		for _, e := range v.Entries {
			list = append(list, plain(e))
		}
		return list
	case strictjson.Object:
		all := map[string]any{}
		for _, name := range v.Names {
			all[name] = plain(v.Members[name])
		}
		return all
	}
	return nil
}

// The standard library is the oracle: what we read it reads alike, and what we
// refuse is no JSON, or breaks one of the rules that this package adds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,{"b":null}],"c":"\u00e9"}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", nested(33), nested(32),
		`[]`, ``, "\ufeff{}", `{"a":1e400}`, `{} x`,
	} {
		f.Add([]byte(seed))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		tree, err := strictjson.Parse(body, bytesMax)
		if err == nil {
			d := json.NewDecoder(bytes.NewReader(body))
			d.UseNumber()
			var want any
			if err := d.Decode(&want); err != nil || !json.Valid(body) || !utf8.Valid(body) {
				t.Fatalf("accepted although %v", err)
			}
			if !reflect.DeepEqual(plain(tree), want) {
				t.Fatalf("read %#v, the standard library %#v", plain(tree), want)
			}
			return
		}
		if !utf8.ValidString(err.Error()) {
			t.Fatalf("%q", err)
		}
		if !json.Valid(body) || !utf8.Valid(body) || len(body) > bytesMax {
			return
		}
		ours := []string{"must be an object", "stands twice in one object", "nested more than 32 deep",
			"half of a surrogate pair"}
		for _, rule := range ours {
			if strings.Contains(err.Error(), rule) {
				return
			}
		}
		t.Fatalf("refused what is JSON: %v", err)
	})
}

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"meta":{"country_code":"ES","external_id":"x-1"},"legal_name":"Müller","address":{"country_code":"ES","city":"Madrid","address_line_1":"Calle 1"},"settings":{"level":1,"loud":true,"list":[1,2,3]}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.Parse(body, bytesMax); err != nil {
			b.Fatal(err)
		}
	}
}
