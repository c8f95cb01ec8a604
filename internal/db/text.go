package db

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether a text could be stored at all: PostgreSQL keeps
// neither NUL nor broken UTF-8, so nothing with them in it is ever known, and
// asking for it would be an error.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// Cell keeps a program for tables from taking a text for a formula. Those of East
// Asian locales take the full-width forms of the signs for the plain ones.
func Cell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}
