// Package text is words on their way into documents of authorities: blanks drawn
// together, lengths kept, the markup of notes taken out.
//
// It owns what all of them want. Which characters one takes is the pack's own.
package text

import (
	"html"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
)

// Words is a text with single blanks for any run of those that blank names, none
// at the ends, and at most max characters.
func Words(text string, max int, blank func(rune) bool) string {
	return strings.TrimRight(Cut(strings.Join(strings.FieldsFunc(text, blank), " "), max), " ")
}

// Cut is the first max characters of a text.
func Cut(text string, max int) string {
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

// Join puts a separator between the texts that are there.
func Join(between string, texts ...string) string {
	there := texts[:0:0]
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			there = append(there, text)
		}
	}
	return strings.Join(there, between)
}

// Digits reports whether a text is nothing but digits.
func Digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

var (
	markup = sync.OnceValue(bluemonday.StrictPolicy)
	breaks = strings.NewReplacer("<br>", "\n", "<br/>", "\n", "<br />", "\n", "</p>", "\n", "</li>", "\n")
)

// Note is a client's note without its markup; blocks become lines.
func Note(note string) string {
	if strings.ContainsAny(note, "<&") {
		note = html.UnescapeString(markup().Sanitize(breaks.Replace(Markup(note))))
	}
	return strings.TrimSpace(note)
}

// tag is a tag from its beginning to its end, or a comment.
var tag = regexp.MustCompile(`(?s)^<(?:!--.*?--|/?[A-Za-z][A-Za-z0-9]*(?:[\s/][^<>]*)?)>`)

// Markup is a note whose angle brackets are all of markup. A bare one is text: a
// reader of markup would take everything behind it for a tag that never ends.
func Markup(note string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(note, '<')
		if at < 0 {
			out.WriteString(note)
			return out.String()
		}
		out.WriteString(note[:at])
		if found := tag.FindString(note[at:]); found != "" {
			out.WriteString(found)
			note = note[at+len(found):]
			continue
		}
		out.WriteString("&lt;")
		note = note[at+1:]
	}
}
