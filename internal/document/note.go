package document

import (
	"bytes"
	"strconv"
	"strings"

	"tributary/internal/country/text"
	"tributary/internal/document/typeset"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a note as it is drawn. The specification lets no longer one in; these
// hold for whatever else comes this way.
const (
	noteBytesMax  = 64 << 10
	noteLevelsMax = 4 // of lists within lists that are still indented
)

// notePolicy lets through the elements that a note may be marked up with, none
// with attributes: nothing that names a resource, a style or a script.
func notePolicy() *bluemonday.Policy {
	return bluemonday.NewPolicy().AllowElements("b", "i", "u", "br", "p", "ul", "ol", "li", "strong", "em")
}

// noteLook is how a part of a paragraph looks.
type noteLook struct {
	to         int // where it ends in the text
	style      typeset.Style
	underlined bool
}

// paragraph is a piece of a note that begins on a line of its own.
type paragraph struct {
	text   []byte
	looks  []noteLook // one after the other, up to the end of the text
	level  int        // of the list it belongs to; 0 outside lists
	marker string     // bullet or number of a list item's first paragraph
	apart  bool       // white space above
}

// noteReader builds paragraphs from sanitised markup.
type noteReader struct {
	done                    []paragraph
	now                     paragraph
	bold, italic, underline int
	lists                   []noteList
}

type noteList struct {
	ordered bool
	items   int
}

// readNote sanitises a note and reads it into paragraphs. Markup that is not
// well-formed is read as browsers read it; it cannot fail.
func readNote(policy *bluemonday.Policy, raw string) []paragraph {
	if len(raw) > noteBytesMax {
		raw = strings.ToValidUTF8(raw[:noteBytesMax], "") + "…"
	}
	n := &noteReader{}
	if !strings.ContainsAny(raw, "<&") {
		for _, line := range typeset.CleanLines(raw) { // plain text: its line breaks are meant
			n.write(line)
			n.end()
		}
		return n.paragraphs()
	}
	tokens := html.NewTokenizer(strings.NewReader(policy.Sanitize(text.Markup(raw))))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			n.end()
			return n.paragraphs()
		case html.TextToken:
			n.writeFlowing(string(tokens.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := tokens.TagName()
			n.open(atom.Lookup(name))
		case html.EndTagToken:
			name, _ := tokens.TagName()
			n.close(atom.Lookup(name))
		}
	}
}

func (n *noteReader) open(tag atom.Atom) {
	switch tag {
	case atom.B, atom.Strong:
		n.bold++
	case atom.I, atom.Em:
		n.italic++
	case atom.U:
		n.underline++
	case atom.Br:
		n.end()
	case atom.P:
		n.end()
		n.now.apart = true
	case atom.Ul, atom.Ol:
		n.end()
		n.lists = append(n.lists, noteList{ordered: tag == atom.Ol})
	case atom.Li:
		n.end()
		if len(n.lists) == 0 {
			n.lists = append(n.lists, noteList{})
		}
		list := &n.lists[len(n.lists)-1]
		list.items++
		n.now.level, n.now.marker = n.level(), "•"
		if list.ordered {
			n.now.marker = strconv.Itoa(list.items) + "."
		}
	}
}

func (n *noteReader) close(tag atom.Atom) {
	switch tag {
	case atom.B, atom.Strong:
		n.bold = max(0, n.bold-1)
	case atom.I, atom.Em:
		n.italic = max(0, n.italic-1)
	case atom.U:
		n.underline = max(0, n.underline-1)
	case atom.P:
		n.end()
		n.now.apart = true
	case atom.Li:
		n.end()
	case atom.Ul, atom.Ol:
		n.end()
		if len(n.lists) > 0 {
			n.lists = n.lists[:len(n.lists)-1]
		}
		n.now.apart, n.now.level = len(n.lists) == 0, n.level()
	}
}

func (n *noteReader) level() int { return min(len(n.lists), noteLevelsMax) }

// writeFlowing adds text in which a line break is a blank.
func (n *noteReader) writeFlowing(s string) {
	text := typeset.Clean(s)
	if before := strings.TrimLeft(s, " \t\r\n"); len(before) < len(s) && len(n.now.text) > 0 && n.now.text[len(n.now.text)-1] != ' ' {
		n.write(" ")
	}
	n.write(text)
	if after := strings.TrimRight(s, " \t\r\n"); text != "" && len(after) < len(s) {
		n.write(" ")
	}
}

func (n *noteReader) write(s string) {
	if s == "" {
		return
	}
	look := noteLook{style: typeset.Regular, underlined: n.underline > 0}
	switch {
	case n.bold > 0 && n.italic > 0:
		look.style = typeset.BoldItalic
	case n.bold > 0:
		look.style = typeset.Bold
	case n.italic > 0:
		look.style = typeset.Italic
	}
	n.now.text = append(n.now.text, s...)
	look.to = len(n.now.text)
	if last := len(n.now.looks) - 1; last >= 0 && n.now.looks[last].style == look.style && n.now.looks[last].underlined == look.underlined {
		n.now.looks[last].to = look.to
		return
	}
	n.now.looks = append(n.now.looks, look)
}

// end closes the paragraph. An empty one stands for an empty line, unless
// nothing stands before it.
func (n *noteReader) end() {
	n.now.text = bytes.TrimRight(n.now.text, " ")
	if len(n.now.text) == 0 && n.now.marker == "" {
		n.now.looks = nil
		n.now.apart = n.now.apart || len(n.done) > 0 && n.now.level == 0
		return
	}
	n.done = append(n.done, n.now)
	n.now = paragraph{level: n.level()}
}

func (n *noteReader) paragraphs() []paragraph {
	if len(n.done) > 0 {
		n.done[0].apart = false
	}
	return n.done
}
