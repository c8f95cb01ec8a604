package strictjson

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tributary/internal/fault"
)

const nameShownMax = 64 // characters of a client's own name that a message repeats

// Text reads a string as it stands. Null is Absent, an empty string is Taken.
func (r *Reader) Text(into *string) State {
	if r.Null() {
		return Absent
	}
	if r.peek() != '"' {
		return r.mismatch("a string")
	}
	*into, _ = r.str()
	if r.broken != nil {
		return Refused
	}
	return Taken
}

// Line reads a member of one line of text, at most max characters long. A
// blank one counts as absent.
func (r *Reader) Line(into *string, max int) State { return r.words(into, max, false) }

// Lines reads a member of free text that may be broken into lines.
func (r *Reader) Lines(into *string, max int) State { return r.words(into, max, true) }

func (r *Reader) words(into *string, max int, breaks bool) State {
	if r.Null() {
		return Absent
	}
	if r.peek() != '"' {
		return r.mismatch("a string")
	}
	text, plain := r.str()
	if r.broken != nil {
		return Refused
	}
	if !plain {
		if c, found := Unfit(text, breaks); found {
			return r.Refuse(fault.FieldNotValid, "must not contain the character U+%04X", c)
		}
	}
	if len(text) > max && (plain || utf8.RuneCountInString(text) > max) {
		return r.Refuse(fault.FieldNotValid, "must be at most %d characters long", max)
	}
	if strings.TrimSpace(text) == "" {
		return Absent
	}
	*into = text
	return Taken
}

// Unfit finds a character that no document may carry: it would break an XML
// document (controls, noncharacters), a list (line breaks, unless they are
// wanted) or make a reader see another order than is stored (bidirectional
// embeddings, overrides and isolates; the marks that Hebrew and Arabic texts
// use stay allowed).
func Unfit(text string, breaks bool) (rune, bool) {
	for _, c := range text {
		switch {
		case c == '\n', c == '\r', c == '\t', c == '\u2028', c == '\u2029':
			if !breaks {
				return c, true
			}
		case c < ' ', 0x7f <= c && c <= 0x9f,
			0x202a <= c && c <= 0x202e, 0x2066 <= c && c <= 0x2069,
			0xfdd0 <= c && c <= 0xfdef, c&0xfffe == 0xfffe:
			return c, true
		}
	}
	return 0, false
}

// Printable makes a client's own name fit to be repeated in a message.
func Printable(name string) string {
	clean := true
	for i := range len(name) {
		clean = clean && ' ' <= name[i] && name[i] <= '~'
	}
	if clean && len(name) <= nameShownMax {
		return name
	}
	var b strings.Builder
	n := 0
	for _, c := range name {
		if n++; n > nameShownMax {
			b.WriteString("…")
			break
		}
		if !unicode.IsGraphic(c) {
			c = unicode.ReplacementChar
		}
		b.WriteRune(c)
	}
	return b.String()
}

// str reads a string; the byte at hand is its opening quote. plain reports that
// it has nothing but printable ASCII, so that no character needs a look.
func (r *Reader) str() (text string, plain bool) {
	start := r.pos + 1
	plain = true
	for i := start; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			if !plain {
				r.encoding(start, i)
			}
			return r.text[start:i], plain
		case c == '\\':
			return r.escaped(start, i), false
		case c < ' ':
			r.fail(i, "a control character stands unescaped in a string")
			return "", true
		case c > '~':
			plain = false
		}
	}
	r.fail(len(r.text), "the body ends inside a string")
	return "", true
}

// encoding fails on the first byte of text[start:end] that is not UTF-8.
func (r *Reader) encoding(start, end int) {
	if utf8.ValidString(r.text[start:end]) {
		return
	}
	for i := start; i < end; {
		c, size := utf8.DecodeRuneInString(r.text[i:end])
		if c == utf8.RuneError && size <= 1 {
			r.fail(i, "the body is not valid UTF-8")
			return
		}
		i += size
	}
}

// escaped reads the rest of a string from its first backslash on.
func (r *Reader) escaped(start, first int) string {
	out := append(make([]byte, 0, 2*(first-start)+32), r.text[start:first]...)
	if r.encoding(start, first); r.broken != nil {
		return ""
	}
	for i := first; i < len(r.text); {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			return string(out)
		case c == '\\':
			c, size := r.escape(i)
			if size == 0 {
				return ""
			}
			out = utf8.AppendRune(out, c)
			i += size
		case c < ' ':
			r.fail(i, "a control character stands unescaped in a string")
			return ""
		default:
			c, size := utf8.DecodeRuneInString(r.text[i:])
			if c == utf8.RuneError && size <= 1 {
				r.fail(i, "the body is not valid UTF-8")
				return ""
			}
			out = append(out, r.text[i:i+size]...)
			i += size
		}
	}
	r.fail(len(r.text), "the body ends inside a string")
	return ""
}

// escape reads the escape at i and returns its rune and length, 0 after a failure.
func (r *Reader) escape(i int) (rune, int) {
	if i+1 >= len(r.text) {
		r.fail(len(r.text), "the body ends inside a string")
		return 0, 0
	}
	switch r.text[i+1] {
	case '"', '\\', '/':
		return rune(r.text[i+1]), 2
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
		return r.unicodeEscape(i)
	}
	r.fail(i, "a string has an escape that JSON does not know")
	return 0, 0
}

func (r *Reader) unicodeEscape(i int) (rune, int) {
	c, ok := r.hex(i)
	if !ok {
		r.fail(i, "a string has a broken \\u escape")
		return 0, 0
	}
	if !utf16.IsSurrogate(c) {
		return c, 6
	}
	if low, ok := r.hex(i + 6); ok {
		if pair := utf16.DecodeRune(c, low); pair != unicode.ReplacementChar {
			return pair, 12
		}
	}
	r.fail(i, "a string has half of a surrogate pair")
	return 0, 0
}

// hex reads \uXXXX at i.
func (r *Reader) hex(i int) (rune, bool) {
	if i+6 > len(r.text) || r.text[i] != '\\' || r.text[i+1] != 'u' {
		return 0, false
	}
	var value rune
	for _, c := range []byte(r.text[i+2 : i+6]) {
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
		value = value<<4 | rune(c)
	}
	return value, true
}
