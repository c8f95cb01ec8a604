package web

import (
	"html/template"
	"regexp"
	"strings"
)

// highlightBytesMax bounds what is coloured; longer text stays plain, because
// spans make a page several times as long as its text.
const highlightBytesMax = 256 << 10

// grammar colours by one expression: each group that matches has its class.
// What matches no group stays plain.
type grammar struct {
	tokens  *regexp.Regexp
	classes []string // by group
}

const (
	nameClass = "hl-name"
	textClass = "hl-text"
	wordClass = "hl-word"
	noteClass = "hl-note"
)

func words(list string) string { return `\b(?:` + strings.ReplaceAll(list, " ", "|") + `)\b` }

// code is a grammar of a language by its notes and words; texts stand between
// quotes in all of them.
func code(notes, keywords string) grammar {
	return grammar{regexp.MustCompile(`(` + notes + `)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|` + "`[^`]*`" + `)|(` + words(keywords) + `)`), []string{noteClass, textClass, wordClass}}
}

var (
	jsonGrammar = grammar{regexp.MustCompile(
		`("(?:[^"\\\n]|\\.)*")(?:\s*:)|("(?:[^"\\\n]|\\.)*")|(-?\b\d[\d.eE+-]*|\b(?:true|false|null)\b)`),
		[]string{nameClass, textClass, wordClass}}
	xmlGrammar = grammar{regexp.MustCompile(
		`(?s)(<!--.*?-->|<[?!][^>]*>)|(</?[\w:.-]+|/?>)|([\w:.-]+=)("[^"<]*"|'[^'<]*')`),
		[]string{noteClass, nameClass, wordClass, textClass}}
	shGrammar = code(`(?m:(?:^|\s)#[^\n]*)`, "if then else fi for in do done until while case esac")
	tsGrammar = code(`//[^\n]*|(?s:/\*.*?\*/)`,
		"async await const else export for function if import from let new return throw type interface try catch true false null")
	pyGrammar = code(`#[^\n]*`,
		"and as async await class def elif else except for from if import in is lambda not or raise return try while with True False None")

	grammars = map[string]grammar{
		"json": jsonGrammar, "xml": xmlGrammar, "sh": shGrammar, "shell": shGrammar, "bash": shGrammar, "ts": tsGrammar,
		"typescript": tsGrammar, "py": pyGrammar, "python": pyGrammar,
		"go": code(`//[^\n]*`,
			"break case const continue default defer else for func go if import interface map package range return select struct switch type var nil true false"),
		"java": code(`//[^\n]*|(?s:/\*.*?\*/)`,
			"class public private static final void new return if else for while try catch throw throws import package int long boolean true false null"),
	}
)

// Highlight is a text as HTML with its parts in classes of the palette. A
// language that is not known, and a text that is too long, comes out plain.
func Highlight(language, text string) template.HTML {
	g, known := grammars[strings.ToLower(language)]
	if !known || len(text) > highlightBytesMax {
		return template.HTML(template.HTMLEscapeString(text))
	}
	var b strings.Builder
	done := 0
	for _, at := range g.tokens.FindAllStringSubmatchIndex(text, -1) {
		for group, class := range g.classes {
			from, to := at[2+2*group], at[3+2*group]
			if from < 0 || from == to {
				continue
			}
			template.HTMLEscape(&b, []byte(text[done:from]))
			b.WriteString(`<span class="` + class + `">`)
			template.HTMLEscape(&b, []byte(text[from:to]))
			b.WriteString(`</span>`)
			done = to
		}
	}
	template.HTMLEscape(&b, []byte(text[done:]))
	return template.HTML(b.String())
}

// Language guesses what a body is by its first sign: "json", "xml" or "".
func Language(body string) string {
	switch text := strings.TrimLeft(body, " \t\r\n\ufeff"); {
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return "json"
	case strings.HasPrefix(text, "<"):
		return "xml"
	}
	return ""
}
