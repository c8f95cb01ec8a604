package fault

import (
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

func TestATextIsClippedBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aż", 3, "aż"},
		{"abż", 3, "ab"},          // a character of two bytes does not fit
		{"a𝄞", 5, "a𝄞"},           // one of four does
		{"a𝄞", 4, "a"},            // or not
		{"a\x00b", 9, "a\uFFFDb"}, // NUL is no text
		{"a\xff\xfe\xfdb", 9, "a\uFFFDb"},
		{strings.Repeat("\xff", 100), 9, "\uFFFD"},
		{"abc", 0, ""},
	} {
		if got := Clip(c.text, c.max); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.text, c.max, got, c.want)
		}
	}
}

func TestAClippedTextIsAlwaysFit(t *testing.T) {
	err := quick.Check(func(text []byte, limit uint8) bool {
		got := Clip(string(text), int(limit))
		return len(got) <= int(limit) && utf8.ValidString(got) && !strings.Contains(got, "\x00") &&
			Clip(got, int(limit)) == got
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
