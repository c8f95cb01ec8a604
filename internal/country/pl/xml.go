package pl

import (
	"strings"
	"unicode/utf8"
)

// xmlWriter writes a document straight into bytes: Prepare is on the path of
// every filing, and a tree would cost more than the document. Elements are
// closed by name from a stack, so what it writes is always well-formed.
type xmlWriter struct {
	out  []byte
	open []string
}

func (w *xmlWriter) start(name string) {
	w.out = append(append(append(w.out, '<'), name...), '>')
	w.open = append(w.open, name)
}

func (w *xmlWriter) end() {
	last := len(w.open) - 1
	w.out = append(append(append(w.out, "</"...), w.open[last]...), '>')
	w.open = w.open[:last]
}

// element writes a leaf; without text it writes nothing.
func (w *xmlWriter) element(name, text string) {
	if text == "" {
		return
	}
	w.start(name)
	w.text(text)
	w.end()
}

// flag writes a leaf that says 1 for yes and 2 for no.
func (w *xmlWriter) flag(name string, yes bool) {
	if yes {
		w.element(name, "1")
	} else {
		w.element(name, "2")
	}
}

// text escapes what has a meaning in XML. A carriage return would come back as
// a line feed, so it is escaped too.
func (w *xmlWriter) text(text string) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '&':
			w.out = append(w.out, "&amp;"...)
		case '<':
			w.out = append(w.out, "&lt;"...)
		case '>':
			w.out = append(w.out, "&gt;"...)
		case '\r':
			w.out = append(w.out, "&#13;"...)
		default:
			w.out = append(w.out, text[i])
		}
	}
}

// allowed reports whether KSeF takes a character: those of XML 1.0 without the
// discouraged ones (ksef-docs, weryfikacja-faktury.md, "Weryfikacja XML").
func allowed(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < 0x20, r >= 0x7F && r <= 0x9F, r >= 0xD800 && r <= 0xDFFF, r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE:
		return false
	}
	return r <= utf8.MaxRune
}

// takes reports whether KSeF takes every character of a text.
func takes(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !allowed(r) {
			return false
		}
	}
	return true
}

// token is a text as xsd:token has it: without forbidden characters, with
// single blanks, none at the ends, at most max characters.
func token(text string, max int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r' || !allowed(r) || r == utf8.RuneError
	}), " ")
	return strings.TrimRight(cut(text, max), " ")
}

// paragraphs is a text of several lines without forbidden characters.
func paragraphs(text string, max int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\r' || !allowed(r) || r == utf8.RuneError {
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
