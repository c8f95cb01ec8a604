package strictjson_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

type inner struct {
	Place string `json:"place"`
}

type outer struct {
	inner
	Name   string                    `json:"name,omitempty"`
	Count  *int                      `json:"count"`
	On     bool                      `json:"on"`
	List   []inner                   `json:"list"`
	By     map[string]inner          `json:"by"`
	Nets   []netip.Prefix            `json:"nets"`
	Raw    []byte                    `json:"raw"`
	Any    any                       `json:"any"`
	Share  float64                   `json:"share"`
	Number json.Number               `json:"number"`
	Hidden string                    `json:"-"`
	Plain  string                    // Plain by its own name
	Deep   map[string]map[string]int `json:"deep"`
	//lint:ignore U1000 a field that cannot be set must not be found by its name
	private string
}

func TestUnmarshalFillsWhatItsTypeHas(t *testing.T) {
	var got outer
	err := strictjson.Unmarshal([]byte(`{"place":"p","name":"n","count":3,"on":true,"list":[{"place":"a"},null],"by":{"x":{"place":"b"}},"nets":["10.0.0.0/8"],
		"raw":"AAE=","any":{"k":[12345678901234567890]},"share":0.5,"number":1e3,"Plain":"q","deep":{"a":{"b":1}}}`), bytesMax, "the thing", &got)
	three := 3
	want := outer{
		inner: inner{"p"}, Name: "n", Count: &three, On: true, List: []inner{{"a"}, {}}, By: map[string]inner{"x": {"b"}},
		Nets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Raw: []byte{0, 1},
		Any: map[string]any{"k": []any{json.Number("12345678901234567890")}}, Share: 0.5, Number: "1e3", Plain: "q",
		private: "",
		Deep:    map[string]map[string]int{"a": {"b": 1}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnmarshalSaysWhereTheTextIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"nam":"x"}`: "the thing is not valid: 1 fault|field_unknown nam is not known",
		`{"Name":"x","list":[{"place":1,"x":2}]}`: "the thing is not valid: 3 faults|field_unknown Name is not known|field_not_valid list.0.place must be a string|field_unknown list.0.x is not known",
		`{"Hidden":"x","private":"y","-":"z"}`:    "the thing is not valid: 3 faults|field_unknown Hidden is not known|field_unknown private is not known|field_unknown - is not known",
		`{"count":1.5}`:                           "the thing is not valid: 1 fault|field_not_valid count must be an integer",
		`{"count":"1","on":1,"by":[],"list":{},"raw":[1],"deep":{"a":{"b":"c"}}}`: "the thing is not valid: 6 faults|field_not_valid count must be an integer|field_not_valid on must be true or false|field_not_valid by must be an object|field_not_valid list must be an array|field_not_valid raw must be a string|field_not_valid deep.a.b must be an integer",
		`{"name":"a","name":"b"}`:        `the body is not acceptable JSON|json_not_valid line 1, column 13 (byte 12): the name "name" stands twice in one object`,
		`{"name":"a"} {}`:                "the body is not acceptable JSON|json_not_valid line 1, column 14 (byte 13): something follows the end of the body's object",
		`{"any":[{"x":1,"x":2}]}`:        `the body is not acceptable JSON|json_not_valid line 1, column 16 (byte 15): the name "x" stands twice in one object`,
		`{"nets":["x"]}`:                 `the thing is not valid: 1 fault|field_not_valid netip.ParsePrefix("x"): no '/'`,
		`{"count":99999999999999999999}`: "the thing is not valid: 1 fault|field_not_valid ",
	} {
		var got outer
		err := strictjson.Unmarshal([]byte(text), bytesMax, "the thing", &got)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Invalid {
			t.Errorf("%s: %v", text, err)
			continue
		}
		lines := []string{e.Message}
		for _, f := range e.Faults {
			lines = append(lines, string(f.Code)+" "+f.Message)
		}
		if said := strings.Join(lines, "|"); said != want &&
			!(strings.HasSuffix(want, " ") && strings.HasPrefix(said, want)) {
			t.Errorf("%s:\n%s\nwant\n%s", text, said, want)
		}
		if e.Message != "the body is not acceptable JSON" && !reflect.DeepEqual(got, outer{}) &&
			!strings.Contains(text, "nets") && !strings.Contains(text, "9999") {
			t.Errorf("%s: filled %+v although it was refused", text, got)
		}
	}
}
