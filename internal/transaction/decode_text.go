package transaction

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tributary/internal/fault"
)

// The years a document can belong to: both ends fit every store and wire format.
const (
	yearMin = 1970
	yearMax = 2199
)

// str reads a string; the byte at hand is its opening quote. plain reports that
// it has nothing but printable ASCII, so that no character needs a look.
func (s *scanner) str() (text string, plain bool) {
	start := s.pos + 1
	plain = true
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			if !plain {
				s.encoding(start, i)
			}
			return s.text[start:i], plain
		case c == '\\':
			return s.escaped(start, i), false
		case c < ' ':
			s.fail(i, "a control character stands unescaped in a string")
			return "", true
		case c > '~':
			plain = false
		}
	}
	s.fail(len(s.text), "the body ends inside a string")
	return "", true
}

// encoding fails on the first byte of text[start:end] that is not UTF-8.
func (s *scanner) encoding(start, end int) {
	if utf8.ValidString(s.text[start:end]) {
		return
	}
	for i := start; i < end; {
		r, size := utf8.DecodeRuneInString(s.text[i:end])
		if r == utf8.RuneError && size <= 1 {
			s.fail(i, "the body is not valid UTF-8")
			return
		}
		i += size
	}
}

// escaped reads the rest of a string from its first backslash on.
func (s *scanner) escaped(start, first int) string {
	out := append(make([]byte, 0, 2*(first-start)+32), s.text[start:first]...)
	if s.encoding(start, first); s.broken != nil {
		return ""
	}
	for i := first; i < len(s.text); {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			return string(out)
		case c == '\\':
			r, size := s.escape(i)
			if size == 0 {
				return ""
			}
			out = utf8.AppendRune(out, r)
			i += size
		case c < ' ':
			s.fail(i, "a control character stands unescaped in a string")
			return ""
		default:
			r, size := utf8.DecodeRuneInString(s.text[i:])
			if r == utf8.RuneError && size <= 1 {
				s.fail(i, "the body is not valid UTF-8")
				return ""
			}
			out = append(out, s.text[i:i+size]...)
			i += size
		}
	}
	s.fail(len(s.text), "the body ends inside a string")
	return ""
}

// escape reads the escape at i and returns its rune and length, 0 after a failure.
func (s *scanner) escape(i int) (rune, int) {
	if i+1 >= len(s.text) {
		s.fail(len(s.text), "the body ends inside a string")
		return 0, 0
	}
	switch s.text[i+1] {
	case '"', '\\', '/':
		return rune(s.text[i+1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return s.unicodeEscape(i)
	}
	s.fail(i, "a string has an escape that JSON does not know")
	return 0, 0
}

func (s *scanner) unicodeEscape(i int) (rune, int) {
	r, ok := s.hex(i)
	if !ok {
		s.fail(i, "a string has a broken \\u escape")
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := s.hex(i + 6); ok {
		if pair := utf16.DecodeRune(r, low); pair != unicode.ReplacementChar {
			return pair, 12
		}
	}
	s.fail(i, "a string has half of a surrogate pair")
	return 0, 0
}

// hex reads \uXXXX at i.
func (s *scanner) hex(i int) (rune, bool) {
	if i+6 > len(s.text) || s.text[i] != '\\' || s.text[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s.text[i+2 : i+6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// line reads a member of one line of text, at most max characters long. A
// blank one counts as absent.
func (s *scanner) line(into *string, max int) state { return s.words(into, max, false) }

// lines reads a member of free text that may be broken into lines.
func (s *scanner) lines(into *string, max int) state { return s.words(into, max, true) }

func (s *scanner) words(into *string, max int, breaks bool) state {
	if s.null() {
		return absent
	}
	if s.peek() != '"' {
		return s.mismatch("a string")
	}
	text, plain := s.str()
	if s.broken != nil {
		return refused
	}
	if !plain {
		if r, found := forbiddenRune(text, breaks); found {
			return s.refuse(fault.FieldNotValid, "must not contain the character U+%04X", r)
		}
	}
	if len(text) > max && (plain || utf8.RuneCountInString(text) > max) {
		return s.refuse(fault.FieldNotValid, "must be at most %d characters long", max)
	}
	if strings.TrimSpace(text) == "" {
		return absent
	}
	*into = text
	return taken
}

// instant reads a timestamp of RFC 3339, with any offset and fractions.
func (s *scanner) instant(into *time.Time) state {
	var text string
	if st := s.line(&text, 1000); st != taken {
		return st
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !timestampForm(text) || !strings.HasSuffix(text, "Z") && text[len(text)-5:] > "23:59" {
		return s.refuse(fault.FieldNotValid, "must be a timestamp like 2006-01-02T15:04:05Z")
	}
	if y := at.UTC().Year(); y < yearMin || y > yearMax {
		return s.refuse(fault.FieldNotValid, "must lie in the years %d to %d", yearMin, yearMax)
	}
	*into = at
	return taken
}

// timestampForm refuses what time.Parse takes beyond RFC 3339: hours of one
// digit and fractions after a comma.
func timestampForm(text string) bool {
	const form = "dddd-dd-ddTdd:dd:dd"
	if len(text) <= len(form) {
		return false
	}
	for i := range len(form) {
		if digit := '0' <= text[i] && text[i] <= '9'; digit != (form[i] == 'd') || !digit && text[i] != form[i] {
			return false
		}
	}
	return text[len(form)] != ','
}

// day reads a calendar day.
func (s *scanner) day(into *string) state {
	if st := s.line(into, 1000); st != taken {
		return st
	}
	at, err := time.Parse(time.DateOnly, *into)
	if err != nil || at.Year() < yearMin || at.Year() > yearMax {
		*into = ""
		return s.refuse(fault.FieldNotValid, "must be a day like 2006-01-02")
	}
	return taken
}

// forbiddenRune finds a character that no document may carry: it would break
// an XML document (controls, noncharacters), a list (line breaks) or make a
// reader see another order than is stored (bidirectional embeddings, overrides
// and isolates; the marks that Hebrew and Arabic texts use stay allowed).
func forbiddenRune(text string, breaks bool) (rune, bool) {
	for _, r := range text {
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\u2028', r == '\u2029':
			if !breaks {
				return r, true
			}
		case r < ' ', 0x7f <= r && r <= 0x9f,
			0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069,
			0xfdd0 <= r && r <= 0xfdef, r&0xfffe == 0xfffe:
			return r, true
		}
	}
	return 0, false
}

// identifier reads a client's own id: it stands in addresses and comparisons,
// so what cannot be seen has no place in it.
func (s *scanner) identifier(into *string) state {
	if st := s.line(into, identifierMax); st != taken {
		return st
	}
	for _, r := range *into {
		if !unicode.IsGraphic(r) {
			return s.refuse(fault.FieldNotValid, "must have printable characters only, but has U+%04X", r)
		}
	}
	if strings.TrimSpace(*into) != *into {
		return s.refuse(fault.FieldNotValid, "must not begin or end with a blank")
	}
	return taken
}

// code reads a code of letters in either case.
func (s *scanner) code(into *string, length int, what string) state {
	if st := s.line(into, 1000); st != taken {
		return st
	}
	if len(*into) != length || strings.IndexFunc(*into, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }) >= 0 {
		*into = ""
		return s.refuse(fault.FieldNotValid, "must be a %s", what)
	}
	return taken
}

// choice reads a member that knows some values only.
func (s *scanner) choice(into *string, values ...string) state {
	if st := s.line(into, 1000); st != taken {
		return st
	}
	for _, v := range values {
		if *into == v {
			return taken
		}
	}
	*into = ""
	return s.refuse(fault.FieldNotValid, "must be one of %s", strings.Join(values, ", "))
}

// word reads a short code in capitals whose values are the country's own.
func (s *scanner) word(into *string, max int) state {
	if st := s.line(into, max); st != taken {
		return st
	}
	if strings.IndexFunc(*into, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) >= 0 {
		*into = ""
		return s.refuse(fault.FieldNotValid, "must have capital letters, digits, - and _ only")
	}
	return taken
}

// printable makes a client's own name fit to be repeated in a message.
func printable(name string) string {
	clean := true
	for i := range len(name) {
		clean = clean && ' ' <= name[i] && name[i] <= '~'
	}
	if clean && len(name) <= pathNameMax {
		return name
	}
	var b strings.Builder
	n := 0
	for _, r := range name {
		if n++; n > pathNameMax {
			b.WriteString("…")
			break
		}
		if !unicode.IsGraphic(r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}
