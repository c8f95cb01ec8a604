package web_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/web"
)

var span = regexp.MustCompile(`<span class="hl-(?:name|text|word|note)">|</span>`)

// plain is what a reader sees of highlighted text; anything but our spans would
// stay in it as a tag.
func plain(marked string) string { return html.UnescapeString(span.ReplaceAllString(marked, "")) }

func TestHighlightedTextIsTheTextItself(t *testing.T) {
	for language, texts := range map[string][]string{
		"json":   {`{"a": "b\"c", "n": -1.5e3, "x": [true, null]}`, `{"<script>": "</span>"}`, `"unclosed`, ""},
		"xml":    {`<?xml version="1.0"?><!-- n --><a:b c="d" e='f'>text &amp; <g/></a:b>`, `<a b="<script>">`, `</span><a`},
		"go":     {"package main // note\nvar s = `raw \"x\"`\nfunc main() { return \"a\" }"},
		"python": {"# note\nimport json\nx = 'it'"}, "sh": {"curl -sS 'x' # note"}, "typescript": {"const a = `x${b}`; // n"},
		"cobol": {"MOVE <a> TO b"},
	} {
		for _, text := range texts {
			marked := string(web.Highlight(language, text))
			if got := plain(marked); got != text {
				t.Errorf("%s: %q came out as %q", language, text, got)
			}
			if strings.Contains(span.ReplaceAllString(marked, ""), "<") {
				t.Errorf("%s: %q has a tag that is not ours: %s", language, text, marked)
			}
		}
	}
	if got := string(web.Highlight("json", `{"a": "b", "n": 12}`)); !strings.Contains(got,
		`<span class="hl-name">&#34;a&#34;</span>: <span class="hl-text">&#34;b&#34;</span>`) ||
		!strings.Contains(got, `<span class="hl-word">12</span>`) {
		t.Errorf("JSON is not coloured: %s", got)
	}
	if got := string(web.Highlight("xml", `<a b="c">d</a>`)); !strings.Contains(got,
		`<span class="hl-name">&lt;a</span>`) || !strings.Contains(got, `<span class="hl-text">&#34;c&#34;</span>`) {
		t.Errorf("XML is not coloured: %s", got)
	}
}

func TestLongTextStaysPlain(t *testing.T) {
	at, past := `"`+strings.Repeat("x", 256<<10-2)+`"`, `"`+strings.Repeat("x", 256<<10-1)+`"`
	if !span.MatchString(string(web.Highlight("json", at))) {
		t.Error("a text at the limit is not coloured")
	}
	if span.MatchString(string(web.Highlight("json", past))) {
		t.Error("a text past the limit is coloured")
	}
}

func TestTheLanguageOfABodyIsToldByItsFirstSign(t *testing.T) {
	for body, want := range map[string]string{"\ufeff<a/>": "xml", " {": "json", "[1]": "json", "plain": "", "": ""} {
		if got := web.Language(body); got != want {
			t.Errorf("%q is %q, want %q", body, got, want)
		}
	}
}

func FuzzHighlight(f *testing.F) {
	for _, text := range []string{`{"a":1}`, `<a b="c"><!-- -->`, "`", "// x", "\x00\xff"} {
		f.Add("json", text)
		f.Add("xml", text)
		f.Add("go", text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, language, text string) {
		text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
		if got := plain(string(web.Highlight(language, text))); got != text {
			t.Errorf("%q came out as %q", text, got)
		}
	})
}
