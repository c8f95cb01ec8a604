package lookup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
)

// Limits of a request.
const (
	bodyBytesMax = 1 << 20
	depthMax     = 32  // of nested objects and arrays
	faultsMax    = 100 // listed in one answer
	batchNameMax = 150
	numberMax    = 50 // no tax number of the world has more than 20 characters; blanks and punctuation are the client's
	nameShownMax = 64 // characters of a client's own name that a message repeats
)

// batchRequest is the body of a batch.
type batchRequest struct {
	name    string
	entries []Entry
}

// decodeBatch reads the body of a batch and tells everything that is wrong
// with it. Whether a country exists and a number can be one is no fault of the
// body: the entry's result says so.
func decodeBatch(body []byte) (batchRequest, error) {
	var request batchRequest
	d, err := newDecoder(body)
	if err != nil {
		return request, err
	}
	given := false
	err = d.root(func(name string, value json.Token) error {
		switch name {
		case "batch_name":
			return d.text(name, value, batchNameMax, &request.name)
		case "validations":
			given = value != nil
			return d.entries(name, value, &request.entries)
		}
		return d.pass(value)
	})
	if err != nil {
		return request, err
	}
	if !given {
		d.fault("validations", fault.FieldRequired, "must not be empty")
	}
	return request, d.verdict()
}

// decodeSingle reads the body of a single validation.
func decodeSingle(body []byte) (entry Entry, err error) {
	d, err := newDecoder(body)
	if err != nil {
		return entry, err
	}
	if err := d.root(d.entryMember("", &entry)); err != nil {
		return entry, err
	}
	d.requireEntry("", entry)
	return entry, d.verdict()
}

// decoder walks a body token by token, so that each value is met with its
// path, a name that stands twice is noticed, and nothing is built of what
// nobody wants. What breaks the JSON ends the walk with an error; what is only
// wrong in a value is collected.
type decoder struct {
	body    []byte
	tokens  *json.Decoder
	depth   int
	faults  []fault.Fault
	count   int
	refused map[string]bool // paths with a fault: they are not missing, too
}

// newDecoder checks size, UTF-8 and grammar before any value is looked at:
// the token reader alone is more lenient than RFC 8259.
func newDecoder(body []byte) (*decoder, error) {
	d := &decoder{body: body, tokens: json.NewDecoder(bytes.NewReader(body)), refused: map[string]bool{}}
	d.tokens.UseNumber()
	if len(body) > bodyBytesMax {
		return nil, fault.New(fault.TooLarge, "the body is larger than %d bytes", bodyBytesMax).
			With(fault.Fault{Code: fault.BodyTooLarge, Type: fault.General, Message: "the body is too large"})
	}
	if !utf8.Valid(body) {
		at := 0
		for r, size := utf8.DecodeRune(body); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(body[at:]) {
			at += size
		}
		return nil, d.broken(at, "the body is not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, d.broken(max(0, int(syntax.Offset)-1), "%s", syntax.Error())
		}
		return nil, d.broken(len(body), "the body is not JSON")
	}
	return d, nil
}

// broken says where the body stops being acceptable JSON.
func (d *decoder) broken(at int, format string, args ...any) error {
	before := string(d.body[:min(at, len(d.body))])
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fault.New(fault.Invalid, "the body is not acceptable JSON").With(fault.Fault{
		Code: fault.JSONNotValid, Type: fault.Validation,
		Message: fmt.Sprintf("line %d, column %d (byte %d): %s", line, column, at, fmt.Sprintf(format, args...)),
	})
}

// fault collects one; past the hundredth they are only counted.
func (d *decoder) fault(path string, code fault.Code, format string, args ...any) {
	if d.count++; d.count <= faultsMax {
		d.faults = append(d.faults, fault.At(path, code, format, args...))
	}
}

// refuse collects a fault of a value that was sent.
func (d *decoder) refuse(path string, format string, args ...any) {
	d.refused[path] = true
	d.fault(path, fault.FieldNotValid, format, args...)
}

func (d *decoder) verdict() error {
	if d.count == 0 {
		return nil
	}
	what := "the request has 1 error"
	if d.count > 1 {
		what = fmt.Sprintf("the request has %d errors", d.count)
	}
	if d.count > faultsMax {
		what += fmt.Sprintf(", the first %d are listed", faultsMax)
	}
	return fault.New(fault.Invalid, "%s", what).With(d.faults...)
}

// token reads the next token and keeps count of the depth.
func (d *decoder) token() (json.Token, error) {
	t, err := d.tokens.Token()
	if err != nil {
		return nil, d.broken(int(d.tokens.InputOffset()), "%s", err.Error())
	}
	switch t {
	case json.Delim('{'), json.Delim('['):
		if d.depth++; d.depth > depthMax {
			return nil, d.broken(int(d.tokens.InputOffset())-1, "objects and arrays are nested more than %d deep", depthMax)
		}
	case json.Delim('}'), json.Delim(']'):
		d.depth--
	}
	return t, nil
}

// root reads the body's one object.
func (d *decoder) root(member func(name string, value json.Token) error) error {
	t, err := d.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return d.broken(0, "the body must be an object")
	}
	return d.members(member)
}

// members reads the rest of an object. member is handed the first token of
// each value and reads the value to its end.
func (d *decoder) members(member func(name string, value json.Token) error) error {
	seen := map[string]bool{}
	for d.tokens.More() {
		t, err := d.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if seen[name] {
			return d.broken(int(d.tokens.InputOffset()), "the name %q stands twice in one object", shown(name))
		}
		seen[name] = true
		if t, err = d.token(); err != nil {
			return err
		}
		if err := member(name, t); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// elements reads the rest of an array.
func (d *decoder) elements(element func(i int, value json.Token) error) error {
	for i := 0; d.tokens.More(); i++ {
		t, err := d.token()
		if err != nil {
			return err
		}
		if err := element(i, t); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// pass reads a value nobody wants to its end.
func (d *decoder) pass(value json.Token) error {
	switch value {
	case json.Delim('{'):
		return d.members(func(_ string, value json.Token) error { return d.pass(value) })
	case json.Delim('['):
		return d.elements(func(_ int, value json.Token) error { return d.pass(value) })
	}
	return nil
}

// text takes a string within a length. Null and "" count as not sent.
func (d *decoder) text(path string, value json.Token, lengthMax int, to *string) error {
	if value == nil {
		return nil
	}
	text, ok := value.(string)
	switch {
	case !ok:
		d.refuse(path, "must be a string")
		return d.pass(value)
	case utf8.RuneCountInString(text) > lengthMax:
		d.refuse(path, "must have at most %d characters", lengthMax)
	case unfit(text):
		d.refuse(path, "must not have control characters or broken escapes")
	default:
		*to = text
	}
	return nil
}

func (d *decoder) entries(path string, value json.Token, to *[]Entry) error {
	if value == nil {
		return nil
	}
	if value != json.Delim('[') {
		d.refuse(path, "must be an array")
		return d.pass(value)
	}
	count := 0
	err := d.elements(func(i int, value json.Token) error {
		count++
		if i >= entriesMax {
			return d.pass(value)
		}
		at := fmt.Sprintf("%s.%d", path, i)
		if value != json.Delim('{') {
			d.refuse(at, "must be an object")
			return d.pass(value)
		}
		var entry Entry
		if err := d.members(d.entryMember(at+".", &entry)); err != nil {
			return err
		}
		d.requireEntry(at+".", entry)
		*to = append(*to, entry)
		return nil
	})
	switch {
	case count == 0:
		d.fault(path, fault.FieldRequired, "must not be empty")
	case count > entriesMax:
		d.fault(path, fault.FieldNotValid, "must have at most %d entries, not %d", entriesMax, count)
	}
	return err
}

const (
	countryMember = "country_iso_code"
	numberMember  = "tax_identification_number"
)

// entryMember reads the members of an entry. Members nobody knows are accepted.
func (d *decoder) entryMember(prefix string, to *Entry) func(string, json.Token) error {
	return func(name string, value json.Token) error {
		switch name {
		case countryMember:
			return d.country(prefix+name, value, &to.Country)
		case numberMember:
			return d.text(prefix+name, value, numberMax, &to.Number)
		}
		return d.pass(value)
	}
}

// country takes two letters in either case. Whether such a country exists is
// the result's matter.
func (d *decoder) country(path string, value json.Token, to *string) error {
	if text, ok := value.(string); ok && strings.TrimSpace(text) != "" && !twoLetters(text) {
		d.refuse(path, "must be a two-letter country code")
		return nil
	}
	return d.text(path, value, 2, to)
}

func twoLetters(text string) bool {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	return len(text) == 2 && letter(text[0]) && letter(text[1])
}

// requireEntry names what an entry lacks, or has only blanks of.
func (d *decoder) requireEntry(prefix string, e Entry) {
	require := func(name, text string) {
		if strings.TrimSpace(text) == "" && !d.refused[prefix+name] {
			d.fault(prefix+name, fault.FieldRequired, "must not be empty")
		}
	}
	require(countryMember, e.Country)
	require(numberMember, e.Number)
}

// shown makes a client's own name fit to be repeated in a message.
func shown(name string) string {
	if unfit(name) {
		return "…"
	}
	if runes := []rune(name); len(runes) > nameShownMax {
		return string(runes[:nameShownMax]) + "…"
	}
	return name
}

// unfit finds characters that break a line, a terminal or the reading order,
// that no database keeps (NUL), or that stand for a broken escape.
func unfit(text string) bool {
	for _, r := range text {
		switch {
		case r < ' ', 0x7f <= r && r <= 0x9f, r == 0x2028, r == 0x2029, 0x202a <= r && r <= 0x202e,
			0x2066 <= r && r <= 0x2069, 0xfdd0 <= r && r <= 0xfdef, r&0xfffe == 0xfffe, r == utf8.RuneError:
			return true
		}
	}
	return false
}
