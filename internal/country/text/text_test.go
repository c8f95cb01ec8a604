package text_test

import (
	"testing"
	"unicode"

	"tributary/internal/country/text"
)

func TestTextsFitTheirPlace(t *testing.T) {
	for want, got := range map[string]string{
		"Łąka i las": text.Words("  Łąka\t\n i   las ", 20, unicode.IsSpace),
		"Łąka":       text.Words("Łąka las", 5, unicode.IsSpace),
		"Łą":         text.Cut("Łąka", 2),
		"a, c":       text.Join(", ", " a", "", "  ", "c "),
		"x < y & z":  text.Note("x &lt; y &amp; z"),
		"one\ntwo":   text.Note("<p>one</p><b>two</b><script>bad()</script>"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if !text.Digits("007") || text.Digits("") || text.Digits("1a") {
		t.Error("digits are not told from others")
	}
}
