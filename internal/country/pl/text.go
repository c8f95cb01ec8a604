package pl

import (
	"strings"
	"unicode/utf8"

	"tributary/internal/country/text"
	"tributary/internal/official/ksefwire"
)

// flag is 1 for yes and 2 for no.
func flag(yes bool) string {
	if yes {
		return "1"
	}
	return "2"
}

// token is a text as xsd:token has it: without forbidden characters, with
// single blanks, none at the ends, at most max characters.
func token(s string, max int) string {
	return text.Words(s, max, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r' || !ksefwire.Allowed(r) || r == utf8.RuneError
	})
}

// paragraphs is a text of several lines without forbidden characters.
func paragraphs(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if r == '\r' || !ksefwire.Allowed(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(text.Cut(strings.TrimSpace(s), max))
}
