package document_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"tributary/internal/document"
	"tributary/internal/mutate"
)

// A note becomes text that can be seen: nothing that turns or hides, no more of
// it than was given, and nothing of what stood in a script.
func FuzzNoteText(f *testing.F) {
	for _, note := range []string{
		"plain\nlines", "<ul><li>a<ol><li>b</ol></ul>", "<script>alert(1)</script>x", "<b onclick=x>y</b>",
		"&#x202E;&#0;&lt;b&gt;", "<style>@import 'x'</style>", "<p>" + strings.Repeat("<ul>", 40) + "deep",
		"\xff\xfe\u202egpj.exe", "<!--<b>-->z", "a<br/>b</p></ul>",
	} {
		f.Add(note)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, note string) {
		characters := 0
		for _, p := range document.ReadNote(note) {
			characters += utf8.RuneCountInString(p.Text)
			if !utf8.ValidString(p.Text) || strings.ContainsFunc(p.Text, document.Hidden) {
				t.Fatalf("%q shows %q", note, p.Text)
			}
			if p.Level < 0 || p.Level > document.NoteLevelsMax || p.Text == "" && p.Marker == "" {
				t.Fatalf("%q has the paragraph %+v", note, p)
			}
		}
		// What cannot be read becomes a sign of its own, and blanks may be added between elements.
		if characters > 2*min(len(note), document.NoteBytesMax)+8 {
			t.Fatalf("%d bytes become %d characters", len(note), characters)
		}
		marked := "<script>hidden&word</script><style>hidden&word</style>" + html.EscapeString(note)
		for _, p := range document.ReadNote(marked) {
			if strings.Contains(p.Text, "hidden&word") && !strings.Contains(note, "hidden") {
				t.Fatalf("%q is shown", p.Text)
			}
		}
	})
}

// Any colour a client names is drawn so dark that it can be read, and one that
// is dark enough is drawn as it is.
func FuzzColor(f *testing.F) {
	for _, text := range []string{"", "#000000", "#FFFFFF", "#1d4e5f", "#GGGGGG", "#+12345", "#12_345", "red", "#FFFF00"} {
		f.Add(text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		ink, contrast := document.InkOf(text)
		if contrast < document.ContrastMin {
			t.Fatalf("%q is drawn with a contrast of %d", text, contrast)
		}
		hex := fmt.Sprintf("#%02X%02X%02X", ink[0], ink[1], ink[2])
		if again, _ := document.InkOf(hex); again != ink {
			t.Fatalf("%q is %v, then %v", text, ink, again)
		}
	})
}
