package ksefwire

import "unicode/utf8"

// Allowed reports whether KSeF takes a character: those of XML 1.0 without the
// discouraged ones (ksef-docs, weryfikacja-faktury.md, "Weryfikacja XML").
func Allowed(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < 0x20, r >= 0x7F && r <= 0x9F, r >= 0xD800 && r <= 0xDFFF, r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE:
		return false
	}
	return r <= utf8.MaxRune
}

// Takes reports whether KSeF takes every character of a text.
func Takes(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !Allowed(r) {
			return false
		}
	}
	return true
}
