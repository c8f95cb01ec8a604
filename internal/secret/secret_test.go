package secret_test

import (
	"bytes"
	"database/sql/driver"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tributary/internal/secret"
)

const marker = "hunter2-marker"

type wearer struct {
	Open   secret.Secret
	hidden secret.Secret
	Ptr    *secret.Secret
	List   []secret.Secret
	Map    map[string]secret.Secret
	Any    any
}

func worn(s secret.Secret) wearer {
	return wearer{Open: s, hidden: s, Ptr: &s, List: []secret.Secret{s}, Map: map[string]secret.Secret{"a": s}, Any: s}
}

// spellings are the forms in which formatters print bytes.
func spellings(text string) []string {
	b := []byte(text)
	decimal := strings.Trim(fmt.Sprint(b), "[]")
	return []string{
		text, fmt.Sprintf("%x", b), fmt.Sprintf("%X", b), fmt.Sprintf("% x", b),
		decimal, strings.ReplaceAll(decimal, " ", ","), strings.ReplaceAll(decimal, " ", ", "),
		strings.Trim(fmt.Sprintf("%#v", b), "[]byte{}"), fmt.Sprintf("%o", b), fmt.Sprintf("%b", b),
	}
}

func mustNotShow(t *testing.T, what, output, text string) {
	t.Helper()
	for _, s := range spellings(text) {
		if strings.Contains(output, s) {
			t.Errorf("%s shows the secret: %s", what, output)
			return
		}
	}
}

func TestNoVerbPrintsASecret(t *testing.T) {
	s := secret.FromText(marker)
	w := worn(s)
	values := map[string]any{
		"value": s, "pointer": &s, "struct": w, "pointer to struct": &w, "slice": []secret.Secret{s},
		"array": [1]secret.Secret{s}, "map": map[string]secret.Secret{"k": s}, "any": []any{s, &s, w, &w},
		"anonymous": struct{ inner struct{ s secret.Secret } }{struct{ s secret.Secret }{s}},
	}
	flags := []string{"", "+", "#", " ", "0", "-", "40", ".3", "+#", "# "}
	for name, v := range values {
		for _, flag := range flags {
			for _, verb := range "vTtbcdoOqxXUeEfFgGspwz" {
				format := "%" + flag + string(verb)
				mustNotShow(t, name+" with "+format, fmt.Sprintf(format, v), marker)
			}
		}
		mustNotShow(t, name+" in an error", fmt.Errorf("x: %w", fmt.Errorf("%v %s", v, v)).Error(), marker)
		mustNotShow(t, name+" by Sprint", fmt.Sprint(v)+fmt.Sprintln(v), marker)
	}
	if got := fmt.Sprintf("%v|%s|%q|%x|%#v|%+v", s, s, s, s, s, &s); got != strings.Repeat("[redacted]|", 5)+"[redacted]" {
		t.Errorf("direct printing: %s", got)
	}
}

// A control for the test above: the same search must find a plain value.
func TestTheSearchFindsWhatIsNotASecret(t *testing.T) {
	for _, format := range []string{"%s", "%v", "%x", "%X", "%d", "%#v", "% x", "%o", "%b"} {
		out := fmt.Sprintf(format, []byte(marker))
		found := false
		for _, s := range spellings(marker) {
			found = found || strings.Contains(out, s)
		}
		if !found {
			t.Errorf("%s prints %s, which the search does not know", format, out)
		}
	}
}

// Debug printers walk pointers and unexported fields; so does this test.
func TestReflectionCannotReachASecret(t *testing.T) {
	w := worn(secret.FromText(marker))
	var walk func(v reflect.Value, depth int) bool
	walk = func(v reflect.Value, depth int) bool {
		if depth > 20 {
			return false
		}
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			return !v.IsNil() && walk(v.Elem(), depth+1)
		case reflect.Struct:
			for i := range v.NumField() {
				if walk(v.Field(i), depth+1) {
					return true
				}
			}
		case reflect.Slice, reflect.Array:
			if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
				return bytes.Contains(v.Bytes(), []byte(marker))
			}
			for i := range v.Len() {
				if walk(v.Index(i), depth+1) {
					return true
				}
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				if walk(v.MapIndex(k), depth+1) {
					return true
				}
			}
		case reflect.String:
			return strings.Contains(v.String(), marker)
		}
		return false
	}
	if walk(reflect.ValueOf(&w), 0) {
		t.Error("reflection reached the bytes")
	}
	if !walk(reflect.ValueOf(struct{ p *[]byte }{ptr([]byte(marker))}), 0) {
		t.Error("the walk cannot find anything")
	}
}

func ptr[T any](v T) *T { return &v }

type login struct{ Password secret.Secret }

func TestEncodersRedactOrRefuse(t *testing.T) {
	s := secret.FromText(marker)
	w := worn(s)
	out, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	mustNotShow(t, "JSON", string(out), marker)
	if !strings.Contains(string(out), `"Open":"[redacted]"`) {
		t.Errorf("JSON: %s", out)
	}
	out, err = xml.Marshal(login{s})
	if err != nil || !strings.Contains(string(out), "[redacted]") {
		t.Errorf("XML: %s, %v", out, err)
	}
	mustNotShow(t, "XML", string(out), marker)

	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(struct{ S secret.Secret }{s}); err == nil {
		t.Error("gob encodes a secret")
	}
	mustNotShow(t, "gob", buf.String(), marker)
	if err := new(secret.Secret).GobDecode([]byte("x")); err == nil {
		t.Error("gob decodes a secret")
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(s)
	if err == nil || value != nil {
		t.Errorf("database/sql takes a secret: %v", value)
	}
	if _, err := s.Value(); err == nil {
		t.Error("Value must fail")
	}
}

func TestJSONFillsASecret(t *testing.T) {
	var request struct {
		Password secret.Secret  `json:"password"`
		Absent   *secret.Secret `json:"absent"`
	}
	if err := json.Unmarshal([]byte(`{"password":"p\u00e4ss"}`), &request); err != nil {
		t.Fatal(err)
	}
	if request.Password.RevealText() != "päss" || request.Absent != nil {
		t.Error("the password was not read")
	}
	for _, body := range []string{`{"password":123456}`, `{"password":{"a":"` + marker + `"}}`,
		`{"password":["` + marker + `"]}`} {
		err := json.Unmarshal([]byte(body), &request)
		if err == nil {
			t.Errorf("accepted %s", body)
			continue
		}
		mustNotShow(t, "the error", err.Error(), marker)
	}
	if err := json.Unmarshal([]byte(`{"password":"[redacted]"}`), &request); err == nil {
		t.Error("a redacted text was read back as a secret")
	}
}

func TestWipeEmptiesEveryCopy(t *testing.T) {
	own := []byte(marker)
	s := secret.New(own)
	clear(own)
	if s.RevealText() != marker {
		t.Fatal("New must copy")
	}
	bytesOfS, another := s.Reveal(), s
	s.Wipe()
	if !s.IsZero() || !another.IsZero() || another.RevealText() != "" {
		t.Error("a copy survived")
	}
	if !bytes.Equal(bytesOfS, make([]byte, len(marker))) {
		t.Error("the bytes are still in memory")
	}
	s.Wipe()
	var zero secret.Secret
	zero.Wipe()
	if !zero.IsZero() || zero.Reveal() != nil || zero.String() != "[redacted]" {
		t.Error("the zero value is an empty secret")
	}
}

func TestAppendingToARevealedSecretLeavesItAlone(t *testing.T) {
	s := secret.New([]byte("abc"))
	_ = append(s.Reveal(), "def"...)
	if s.RevealText() != "abc" || cap(s.Reveal()) != 3 {
		t.Error("append reached the secret")
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"a", "a", true}, {"a", "b", false}, {"a", "aa", false}, {"", "", true}} {
		if got := secret.FromText(c.a).Equal(secret.FromText(c.b)); got != c.want {
			t.Errorf("Equal(%q, %q) = %t", c.a, c.b, got)
		}
	}
	if !(secret.Secret{}).Equal(secret.FromText("")) {
		t.Error("two empty secrets are equal")
	}
}

// RFC 4231, test cases 2 and 6.
func TestHMACHexFollowsRFC4231(t *testing.T) {
	long := secret.New(bytes.Repeat([]byte{0xaa}, 131))
	for _, c := range []struct {
		key        secret.Secret
		body, want string
	}{
		{secret.FromText("Jefe"), "what do ya want for nothing?",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{long, "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		got, err := secret.HMACHex(c.key, []byte(c.body))
		if err != nil || got != c.want {
			t.Errorf("HMACHex = %s, %v; want %s", got, err, c.want)
		}
	}
}

func TestAnEmptyKeySignsNothing(t *testing.T) {
	wiped := secret.FromText("key")
	wiped.Wipe()
	for _, key := range []secret.Secret{{}, wiped, secret.FromText("")} {
		if sig, err := secret.HMACHex(key, []byte("{}")); !errors.Is(err, secret.ErrEmpty) || sig != "" {
			t.Errorf("signed with nothing: %q, %v", sig, err)
		}
	}
}
