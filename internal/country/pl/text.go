package pl

import (
	"strings"
	"unicode/utf8"

	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
)

// flag writes a leaf that says 1 for yes and 2 for no.
func flag(w *xmltree.Writer, name string, yes bool) {
	if yes {
		w.Leaf(name, "1")
	} else {
		w.Leaf(name, "2")
	}
}

// token is a text as xsd:token has it: without forbidden characters, with
// single blanks, none at the ends, at most max characters.
func token(text string, max int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r' || !ksefwire.Allowed(r) || r == utf8.RuneError
	}), " ")
	return strings.TrimRight(cut(text, max), " ")
}

// paragraphs is a text of several lines without forbidden characters.
func paragraphs(text string, max int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\r' || !ksefwire.Allowed(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(cut(strings.TrimSpace(text), max))
}

func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	count := 0
	for at := range text {
		if count == max {
			return text[:at]
		}
		count++
	}
	return text
}
