package strictjson_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

const bytesMax = 1 << 20

func names(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"n%d":0`, i))
	}
	return strings.Join(all, ",")
}

func nested(n int) string { return `{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }

func TestWhatIsNoAcceptableJSONIsRefusedWithItsPosition(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"nothing":           {"", "line 1, column 1 (byte 0): the body is empty"},
		"blanks":            {" \n ", "line 2, column 2 (byte 3): the body is empty"},
		"NUL":               {"\x00", "line 1, column 1 (byte 0): the body must be an object"},
		"array":             {"[]", "line 1, column 1 (byte 0): the body must be an object"},
		"byte order mark":   {"\ufeff{}", "line 1, column 1 (byte 0): the body must be an object"},
		"UTF-16":            {"{\x00}\x00", "line 1, column 2 (byte 1): found '\\x00' where a name is expected"},
		"cut in a string":   {`{"a":"`, "line 1, column 7 (byte 6): the body ends inside a string"},
		"cut in an escape":  {`{"a":"\`, "line 1, column 8 (byte 7): the body ends inside a string"},
		"cut after a name":  {`{"a"`, "line 1, column 5 (byte 4): the body ends where a colon is expected"},
		"cut after a colon": {`{"a":`, "line 1, column 6 (byte 5): the body ends where a value is expected"},
		"cut after a value": {`{"a":1`,
			"line 1, column 7 (byte 6): the body ends where a comma or the end of the object is expected"},
		"comma before the end": {"{\"a\":\"é\",\n }",
			"line 2, column 2 (byte 12): found '}' where a name is expected"},
		"comma in an array": {`{"a":[1,]}`, "line 1, column 9 (byte 8): found ']' where a value is expected"},
		"two bodies": {"{}{}",
			"line 1, column 3 (byte 2): something follows the end of the body's object"},
		"NUL after the end": {"{}\x00",
			"line 1, column 3 (byte 2): something follows the end of the body's object"},
		"name twice": {`{"a":1,"a":2}`,
			`line 1, column 8 (byte 7): the name "a" stands twice in one object`},
		"name twice by escape": {`{"a":1,"\u0061":2}`,
			`line 1, column 8 (byte 7): the name "a" stands twice in one object`},
		"name twice below": {`{"x":[{"y":1,"y":1}]}`,
			`line 1, column 14 (byte 13): the name "y" stands twice in one object`},
		"name twice after many":         {`{` + names(40) + `,"n7":1}`, `the name "n7" stands twice in one object`},
		"late name twice":               {`{` + names(40) + `,"n39":1}`, `the name "n39" stands twice in one object`},
		"a name nobody can print twice": {`{"\u202e":1,"\u202e":1}`, "the name \"\ufffd\" stands twice in one object"},
		"too deep":                      {nested(strictjson.DepthMax + 1), "objects and arrays are nested more than 32 deep"},
		"far too deep":                  {`{"x":` + strings.Repeat("[", 1_000_000), "nested more than 32 deep"},
		"not UTF-8":                     {"{\"a\":\"ab\xff\"}", "line 1, column 9 (byte 8): the body is not valid UTF-8"},
		"not UTF-8 after an escape": {"{\"a\":\"\\n\xc0\xaf\"}",
			"line 1, column 9 (byte 8): the body is not valid UTF-8"},
		"not UTF-8 before an escape":  {"{\"a\":\"\xc0\\n\"}", "line 1, column 7 (byte 6): the body is not valid UTF-8"},
		"surrogate in UTF-8":          {"{\"a\":\"\xed\xa0\x80\"}", "the body is not valid UTF-8"},
		"not UTF-8 outside strings":   {"{\xff}", "line 1, column 2 (byte 1): the body is not valid UTF-8"},
		"not UTF-8 in a name":         {"{\"\xff\":1}", "the body is not valid UTF-8"},
		"half a surrogate pair":       {`{"a":"\ud83d"}`, "line 1, column 7 (byte 6): a string has half of a surrogate pair"},
		"the wrong half":              {`{"a":"\ude00\ud83d"}`, "a string has half of a surrogate pair"},
		"half a pair in a name":       {`{"\ud800":1}`, "a string has half of a surrogate pair"},
		"broken escape":               {`{"a":"\u12g4"}`, "a string has a broken \\u escape"},
		"unknown escape":              {`{"a":"\x41"}`, "a string has an escape that JSON does not know"},
		"raw control":                 {"{\"a\":\"a\nb\"}", "a control character stands unescaped in a string"},
		"raw control after an escape": {"{\"a\":\"\\t\x01\"}", "a control character stands unescaped in a string"},
		"leading zero":                {`{"a":01}`, "line 1, column 6 (byte 5): a number is not well formed"},
		"plus":                        {`{"a":+1}`, "found '+' where a value is expected"},
		"bare point":                  {`{"a":1.}`, "a number is not well formed"},
		"bare minus":                  {`{"a":-}`, "a number is not well formed"},
		"bare exponent":               {`{"a":1e}`, "a number is not well formed"},
		"NaN":                         {`{"a":NaN}`, "found 'N' where a value is expected"},
		"hexadecimal":                 {`{"a":0x10}`, "found 'x' where a comma or the end of the object is expected"},
		"misspelt literal":            {`{"a":nul}`, "line 1, column 6 (byte 5): found 'n' where a value is expected"},
		"single quotes":               {`{'a':1}`, "found '\\'' where a name is expected"},
		"comment":                     {`{/* */}`, "found '/' where a name is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := strictjson.Parse([]byte(c.body), bytesMax)
			var e *fault.Error
			if tree != nil || !errors.As(err, &e) || e.Kind != fault.Invalid || e.Message != "the body is not acceptable JSON" ||
				len(e.Faults) != 1 || e.Faults[0].Code != fault.JSONNotValid || e.Faults[0].Field != "" {
				t.Fatalf("%+v, %v", tree, err)
			}
			if !strings.HasSuffix(e.Faults[0].Message, c.want) {
				t.Errorf("%s\nwant %s", e.Faults[0].Message, c.want)
			}
		})
	}
}

func TestDepthAndSizeAtTheirLimits(t *testing.T) {
	if _, err := strictjson.Parse([]byte(nested(strictjson.DepthMax)), bytesMax); err != nil {
		t.Errorf("%d deep: %v", strictjson.DepthMax, err)
	}
	body := []byte(`{"a":1}`)
	if _, err := strictjson.Parse(body, len(body)); err != nil {
		t.Errorf("at the limit of size: %v", err)
	}
	_, err := strictjson.Parse(body, len(body)-1)
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.TooLarge || len(e.Faults) != 1 || e.Faults[0].Code != fault.BodyTooLarge {
		t.Errorf("past the limit of size: %v", err)
	}
}

// open is a reader of a body.
func open(body string) *strictjson.Reader {
	r := new(strictjson.Reader)
	r.Open([]byte(body), bytesMax)
	return r
}

func TestFaultsAndWarningsCarryThePathOfTheirValue(t *testing.T) {
	r := open(`{"a":{"b":[{"c":1},{"c":"x","d":[{}]}]},"e":[7],"f":true,"\u202eg":null,"h":{"i":"` + strings.Repeat("ü", 5) + `"}}`)
	var text string
	var number int64
	r.Body(func(name string) {
		switch name {
		case "a":
			r.Object(func(string) {
				r.Array(func(int) {
					r.Object(func(name string) {
						if name == "c" {
							r.Integer(&number, 9)
							return
						}
						r.Unknown()
					})
					r.Missing("k")
				})
			})
		case "e":
			r.Object(func(string) { t.Error("an array has no names") })
		case "f":
			r.Array(func(int) { t.Error("true has no entries") })
		case "h":
			r.Object(func(string) { r.Line(&text, 4) })
		default:
			r.Unknown()
		}
	})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"field_required a.b.0.k must not be empty", "field_not_valid a.b.1.c must be an integer",
		"field_required a.b.1.k must not be empty",
		"field_not_valid e must be an object", "field_not_valid f must be an array",
		"field_not_valid h.i must be at most 4 characters long",
		"field_unknown a.b.1.d is not known and was ignored", "field_unknown \ufffdg is not known and was ignored",
	}
	var got []string
	for _, f := range append(r.Faults.Listed(), r.Warnings()...) {
		got = append(got, string(f.Code)+" "+f.Message)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text != "" || number != 1 {
		t.Errorf("kept %q and %d", text, number)
	}
}

func TestAHundredFaultsAreListedAndAllAreCounted(t *testing.T) {
	for _, n := range []int{fault.ListMax, fault.ListMax + 1, 500} {
		r := open(`{` + names(n) + `}`)
		var text string
		r.Body(func(string) { r.Line(&text, 1) })
		if got := r.Faults.Listed(); len(got) != fault.ListMax || r.Faults.Count() != n {
			t.Errorf("%d faults: %d listed, %d counted", n, len(got), r.Faults.Count())
		}
		want := fmt.Sprintf("it is not valid: %d faults, the first 100 are listed", n)
		if n == fault.ListMax {
			want = "it is not valid: 100 faults"
		}
		var e *fault.Error
		if err := r.Faults.Err("it"); !errors.As(err, &e) || e.Message != want {
			t.Errorf("%v, want %s", err, want)
		}
		r = open(`{` + names(n) + `}`)
		r.Body(func(string) { r.Unknown() })
		last := r.Warnings()[fault.ListMax-1]
		if many := strings.HasPrefix(last.Message,
			fmt.Sprint(n-fault.ListMax+1)+" more fields"); len(r.Warnings()) != fault.ListMax || many != (n > fault.ListMax) {
			t.Errorf("%d warnings end with %+v", n, last)
		}
	}
}

// After the JSON broke nothing more is read, and nothing is said to be missing.
func TestABrokenBodyHasOneFault(t *testing.T) {
	r := open(`{"a":{"b":1,"b":2},"c":"x"}`)
	var read []string
	r.Body(func(name string) {
		read = append(read, name)
		r.Object(func(string) { r.Skip() })
		r.Missing("z")
	})
	if !r.Broken() || r.Faults.Count() != 0 || strings.Join(read, " ") != "a" {
		t.Errorf("broken %v, %d faults, read %v", r.Broken(), r.Faults.Count(), read)
	}
}

func TestNothingOfTheCallersBufferIsKept(t *testing.T) {
	body := []byte(`{"a":"word"}`)
	tree, err := strictjson.Parse(body, bytesMax)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if tree.Names[0] != "a" || tree.Members["a"].Text != "word" {
		t.Errorf("%+v", tree)
	}
}

func TestTextsOfOneLineAndOfSeveral(t *testing.T) {
	for _, c := range []struct {
		json        string
		line, lines string // a fault, or empty
		state       strictjson.State
	}{
		{`"word"`, "", "", strictjson.Taken},
		{`"日本日本"`, "", "", strictjson.Taken},
		{`"日本日本日本"`, "v must be at most 5 characters long", "v must be at most 5 characters long", strictjson.Refused},
		{`"123456"`, "v must be at most 5 characters long", "v must be at most 5 characters long", strictjson.Refused},
		{`"a\nb"`, "v must not contain the character U+000A", "", strictjson.Refused},
		{`"a\u2028b"`, "v must not contain the character U+2028", "", strictjson.Refused},
		{`"a\u0000b"`, "v must not contain the character U+0000", "v must not contain the character U+0000",
			strictjson.Refused},
		{`"a\u202eb"`, "v must not contain the character U+202E", "v must not contain the character U+202E",
			strictjson.Refused},
		{`"a\ufffeb"`, "v must not contain the character U+FFFE", "v must not contain the character U+FFFE",
			strictjson.Refused},
		{`"\ud83d\ude00"`, "", "", strictjson.Taken},
		{`"  "`, "", "", strictjson.Absent},
		{`null`, "", "", strictjson.Absent},
		{`5`, "v must be a string", "v must be a string", strictjson.Refused},
		{`{"a":[]}`, "v must be a string", "v must be a string", strictjson.Refused},
	} {
		var text string
		r := open(`{"v":` + c.json + `}`)
		r.Body(func(string) {
			if st := r.Line(&text, 5); st != c.state {
				t.Errorf("%s is %d", c.json, st)
			}
		})
		wantOne(t, c.json, r, c.line)
		r = open(`{"v":` + c.json + `}`)
		r.Body(func(string) { r.Lines(&text, 5) })
		wantOne(t, c.json, r, c.lines)
	}
}

func wantOne(t *testing.T, what string, r *strictjson.Reader, message string) {
	t.Helper()
	got := r.Faults.Listed()
	if r.Err() != nil || message == "" && len(got) != 0 || message != "" && (len(got) != 1 || got[0].Message != message) {
		t.Errorf("%s: got %+v, %v, want %q", what, got, r.Err(), message)
	}
}

func TestIntegers(t *testing.T) {
	for text, want := range map[string]string{
		"7570": "7570", "7570.0": "7570", "75.7e2": "7570", "-0": "0", "-1e3": "-1000",
		"9007199254740991":                       "9007199254740991",
		"1.000000000000000000000000000000000000": "1", "0e999999999999": "0", "-9007199254740991.00": "-9007199254740991",
		"7570.5": "v must be an integer", "1e-1": "v must be an integer", "1e-999999999999": "v must be an integer",
		"9007199254740992":     "v must not be more than 9007199254740991 in size",
		"1e400":                "v must not be more than 9007199254740991 in size",
		"18446744073709551617": "v must not be more than 9007199254740991 in size",
		`"1"`:                  "v must be an integer", "true": "v must be an integer", "[1]": "v must be an integer",
	} {
		var got int64
		r := open(`{"v":` + text + `}`)
		r.Body(func(string) { r.Integer(&got, 1<<53-1) })
		said := fmt.Sprint(got)
		if found := r.Faults.Listed(); len(found) == 1 {
			said = found[0].Message
		}
		if said != want || r.Err() != nil {
			t.Errorf("%s: %s, %v, want %s", text, said, r.Err(), want)
		}
	}
}

func TestDecimalsOfTheirOwn(t *testing.T) {
	for text, written := range map[string]int{"75": 0, "75.0": 1, "75.00": 2, "-75.70": 2, "7.5e1": 0, "0.000": 3, "": -1,
		"75,70": -1, "75.": -1, "75 ": -1, " 75": -1, "+75": -1, "075": -1} {
		d, ok := strictjson.ParseDecimal(text)
		if ok != (written >= 0) || ok && d.Written() != written {
			t.Errorf("%q: %v, %d decimals written", text, ok, d.Written())
		}
	}
}

// A number means exactly what its digits say, whatever its form.
func TestDecimalsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,21})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		r := open(`{"v":` + text + `}`)
		var d strictjson.Decimal
		r.Body(func(string) { d, _ = r.Number("a number") })
		exact, ok := new(big.Rat).SetString(text)
		if r.Err() != nil || !ok {
			t.Fatalf("%s: %v", text, r.Err())
		}
		if d.Zero() != (exact.Sign() == 0) || d.Negative() != (exact.Sign() < 0) {
			t.Fatalf("%s: zero %v, negative %v", text, d.Zero(), d.Negative())
		}
		size := new(big.Rat).Abs(exact)
		for n := range 12 {
			scaled := new(big.Rat).Mul(size, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)))
			got, ok := d.Scaled(n)
			if fits := scaled.IsInt() && scaled.Num().BitLen() < 63; fits && !ok ||
				ok && new(big.Rat).SetUint64(got).Cmp(scaled) != 0 {
				t.Fatalf("%s × 10^%d: got %d, %v, want %s", text, n, got, ok, scaled.RatString())
			}
			if scaled.IsInt() != (n >= d.Decimals()) && exact.Sign() != 0 {
				t.Fatalf("%s has %d decimals, but × 10^%d is %s", text, d.Decimals(), n, scaled.RatString())
			}
		}
	})
}
