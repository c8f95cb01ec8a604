package structure

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"tributary/internal/xmltree"
)

const xsdSpace = " \t\r\n"

// simple is a simple type: a built-in one, one step of restriction, a list or a
// union. A text must satisfy the base first, then the facets of the step.
type simple struct {
	name    name
	kind    kind    // the built-in type it comes from
	base    *simple // nil of a built-in type
	item    *simple
	members []*simple
	white   byte // 'p' preserve, 'r' replace, 'c' collapse; in effect

	length, shortest, longest int // -1: not said
	digits, decimals          int // -1: not said
	bounds                    []bound
	patterns                  []*pattern // one of them must match
	values                    *values    // nil: any
}

// bound is minInclusive ('G'), minExclusive ('g'), maxInclusive ('L') or
// maxExclusive ('l').
type bound struct {
	sort byte
	text string
}

// refuses says why a text is no value of the type; "" when it is one.
func (s *simple) refuses(text string, at *xmltree.Element) string {
	switch s.white {
	case 'r':
		text = replaced(text)
	case 'c':
		text = collapse(text)
	}
	return s.check(text, at)
}

// check wants white space to be handled already.
func (s *simple) check(text string, at *xmltree.Element) string {
	switch {
	case s.base != nil:
		if reason := s.base.check(text, at); reason != "" {
			return reason
		}
	case s.item != nil:
		for item := range strings.FieldsSeq(text) {
			if reason := s.item.refuses(item, at); reason != "" {
				return reason
			}
		}
	case s.members != nil:
		return s.union(text, at)
	default:
		return s.kind.refuses(text, at)
	}
	return s.facets(text)
}

func (s *simple) union(text string, at *xmltree.Element) string {
	reason := "is of none of the types"
	for _, m := range s.members {
		if reason = m.refuses(text, at); reason == "" {
			return s.facets(text)
		}
	}
	return reason
}

func (s *simple) facets(text string) string {
	if s.length >= 0 || s.shortest >= 0 || s.longest >= 0 {
		if reason := s.measure(text); reason != "" {
			return reason
		}
	}
	if s.values != nil && !s.values.has(text) && !s.among(text) {
		return "is not one of the values"
	}
	if len(s.patterns) > 0 && !s.matches(text) {
		return "does not match the pattern " + s.patterns[0].source
	}
	if s.digits >= 0 || s.decimals >= 0 {
		whole, part := significant(text)
		if s.digits >= 0 && len(whole)+len(part) > s.digits {
			return fmt.Sprintf("has more than %d digits", s.digits)
		}
		if s.decimals >= 0 && len(part) > s.decimals {
			return fmt.Sprintf("has more than %d decimals", s.decimals)
		}
	}
	for _, b := range s.bounds {
		if order, known := s.kind.compare(text, b.text); !known || !b.holds(order) {
			return b.reason()
		}
	}
	return ""
}

func (s *simple) matches(text string) bool {
	for _, p := range s.patterns {
		if p.match(text) {
			return true
		}
	}
	return false
}

// among compares values instead of texts: 1.0 is 1.
func (s *simple) among(text string) bool {
	if !s.kind.valued() {
		return false
	}
	for _, r := range s.values.runs {
		if r.more == 0 && s.kind.canonical(r.first) == s.kind.canonical(text) {
			return true
		}
	}
	return false
}

// equal compares two texts as values of the type.
func (s *simple) equal(a, b string) bool {
	if s.white == 'c' {
		a, b = collapse(a), collapse(b)
	}
	return a == b || s.kind.canonical(a) == s.kind.canonical(b)
}

func (s *simple) measure(text string) string {
	n := 0
	switch {
	case s.list():
		n = len(strings.Fields(text))
	case s.kind == kindHex:
		n = len(text) / 2
	case s.kind == kindBase64:
		n = base64.StdEncoding.DecodedLen(len(strings.ReplaceAll(text, " ", ""))) - strings.Count(text, "=")
	case s.kind == kindQName:
		return ""
	default:
		n = utf8.RuneCountInString(text)
	}
	switch {
	case s.length >= 0 && n != s.length:
		return fmt.Sprintf("has the length %d instead of %d", n, s.length)
	case s.shortest >= 0 && n < s.shortest:
		return fmt.Sprintf("has the length %d, less than %d", n, s.shortest)
	case s.longest >= 0 && n > s.longest:
		return fmt.Sprintf("has the length %d, more than %d", n, s.longest)
	}
	return ""
}

func (s *simple) list() bool {
	for at := s; at != nil; at = at.base {
		if at.item != nil || at.kind == kindNames {
			return true
		}
	}
	return false
}

func (b bound) holds(order int) bool {
	switch b.sort {
	case 'G':
		return order >= 0
	case 'g':
		return order > 0
	case 'L':
		return order <= 0
	}
	return order < 0
}

func (b bound) reason() string {
	switch b.sort {
	case 'G':
		return "is less than " + b.text
	case 'g':
		return "is not more than " + b.text
	case 'L':
		return "is more than " + b.text
	}
	return "is not less than " + b.text
}

func replaced(text string) string {
	if !strings.ContainsAny(text, "\t\r\n") {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, text)
}

// collapse makes one blank of every run of white space and cuts the ends.
func collapse(text string) string {
	if !strings.ContainsAny(text, "\t\r\n") && !strings.Contains(text, "  ") {
		return strings.Trim(text, " ")
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\r' || r == '\n'
	}), " ")
}

// values are those of an enumeration, sorted by length and then by bytes, with
// runs of numbers that follow each other: a catalogue of fifty thousand product
// keys stays as small as in its file.
type values struct{ runs []run }

type run struct {
	first string
	more  int // how many numbers of the same width follow
}

func (v *values) has(text string) bool {
	low, high := 0, len(v.runs)
	for low < high {
		middle := (low + high) / 2
		if r := v.runs[middle].first; len(r) < len(text) || len(r) == len(text) && r <= text {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return false
	}
	r := v.runs[low-1]
	if len(r.first) != len(text) {
		return false
	}
	if r.first == text {
		return true
	}
	distance, ok := difference(r.first, text)
	return ok && distance > 0 && distance <= r.more
}

// difference is b-a of two numbers of the same width.
func difference(a, b string) (int, bool) {
	var x, y int
	if len(a) > 15 {
		return 0, false
	}
	for i := range len(a) {
		if a[i] < '0' || a[i] > '9' || b[i] < '0' || b[i] > '9' {
			return 0, false
		}
		x, y = x*10+int(a[i]-'0'), y*10+int(b[i]-'0')
	}
	return y - x, true
}
