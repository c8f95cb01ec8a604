package db

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether a text could be stored at all: PostgreSQL keeps
// neither NUL nor broken UTF-8, so nothing with them in it is ever known, and
// asking for it would be an error.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }
