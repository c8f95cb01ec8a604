package fault

import (
	"strings"
	"unicode/utf8"
)

// Clip makes a text from outside fit to be kept and shown: valid UTF-8 without
// NUL, and at most so many bytes, cut between characters.
func Clip(text string, bytesMax int) string {
	text = text[:min(len(text), bytesMax+utf8.UTFMax)] // a megabyte is not cleaned for the sake of its beginning
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	return strings.ToValidUTF8(text[:min(len(text), bytesMax)], "")
}
