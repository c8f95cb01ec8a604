package text_test

import (
	"testing"

	"tributary/internal/country/text"
)

// A bare angle bracket is text, and nothing behind it is lost.
func TestABareBracketIsText(t *testing.T) {
	for note, want := range map[string]string{
		"pay < 30 days, thanks":           "pay < 30 days, thanks",
		"see <Muster AG, thanks":          "see <Muster AG, thanks",
		"a<b and <b>bold</b>":             "a<b and bold",
		"<p>one</p><p>two &amp; x<y</p>":  "one\ntwo & x<y",
		"1 <br> 2 <br/>3":                 "1 \n 2 \n3",
		"x <!-- gone --> y":               "x  y",
		"<script>alert(1)</script>rest":   "rest",
		"<https://example.com> is a page": "<https://example.com> is a page",
		"<p class=\"x\">kept</p> 3 <> 4":  "kept\n 3 <> 4",
		"the end <":                       "the end <",
	} {
		if got := text.Note(note); got != want {
			t.Errorf("%q is %q instead of %q", note, got, want)
		}
	}
}
