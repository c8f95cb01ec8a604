package document

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"tributary/internal/document/typeset"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a note as it is drawn. The contract lets no longer one in; these
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

// noteRune is a character with its look.
type noteRune struct {
	char       rune
	style      typeset.Style
	underlined bool
}

// paragraph is a piece of a note that begins on a line of its own.
type paragraph struct {
	text   []noteRune
	level  int    // of the list it belongs to; 0 outside lists
	marker string // bullet or number of a list item's first paragraph
	apart  bool   // white space above
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
	tokens := html.NewTokenizer(strings.NewReader(policy.Sanitize(raw)))
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
	if before := strings.TrimLeft(s, " \t\r\n"); len(before) < len(s) && len(n.now.text) > 0 && n.now.text[len(n.now.text)-1].char != ' ' {
		n.write(" ")
	}
	n.write(text)
	if after := strings.TrimRight(s, " \t\r\n"); text != "" && len(after) < len(s) {
		n.write(" ")
	}
}

func (n *noteReader) write(s string) {
	look := noteRune{style: typeset.Regular, underlined: n.underline > 0}
	switch {
	case n.bold > 0 && n.italic > 0:
		look.style = typeset.BoldItalic
	case n.bold > 0:
		look.style = typeset.Bold
	case n.italic > 0:
		look.style = typeset.Italic
	}
	for _, r := range s {
		look.char = r
		n.now.text = append(n.now.text, look)
	}
}

// end closes the paragraph. An empty one stands for an empty line, unless
// nothing stands before it.
func (n *noteReader) end() {
	for len(n.now.text) > 0 && n.now.text[len(n.now.text)-1].char == ' ' {
		n.now.text = n.now.text[:len(n.now.text)-1]
	}
	if len(n.now.text) == 0 && n.now.marker == "" {
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

// drawNote draws the note below its heading.
func (c *composition) drawNote() {
	paragraphs := readNote(c.notes, c.v.Transaction.Note)
	if len(paragraphs) == 0 {
		return
	}
	c.heading(c.words.note)
	size := c.bodyPen().size
	lead := c.lead(c.bodyPen())
	tag := c.tag
	var lists []*element // that are open, by level
	for _, p := range paragraphs {
		if p.apart {
			c.y += lead / 2
		}
		c.tag = tag
		if p.level == 0 {
			lists = nil
		}
		body, label := c.noteTags(&lists, p)
		indent := length(p.level) * 5 * millimetre
		for i, line := range c.wrapNote(p.text, size, min(noteWidth, c.paper.room())-indent) {
			c.need(lead)
			if i == 0 && p.marker != "" {
				c.tag = label
				c.textRight(pen{typeset.Regular, size, c.accent}, c.paper.side+indent-4*point, c.y+size, p.marker)
			}
			c.tag = body
			c.drawNoteLine(line, c.paper.side+indent, size)
			c.y += lead
		}
	}
	c.tag = tag
	c.y += c.space(sectionGap)
}

// noteTags makes the elements of a paragraph: a paragraph, or an item of a list
// within the lists that are open.
func (c *composition) noteTags(lists *[]*element, p paragraph) (body, label *element) {
	if c.root == nil {
		return nil, nil
	}
	if p.level == 0 {
		return c.child(c.tag, "P"), nil
	}
	*lists = (*lists)[:min(len(*lists), p.level)]
	for len(*lists) < p.level {
		around := c.tag
		if n := len(*lists); n > 0 { // a list within a list is part of its last item
			if outer := (*lists)[n-1]; len(outer.kids) > 0 {
				around = outer.kids[len(outer.kids)-1]
			} else {
				around = c.child(outer, "LI")
			}
			around = c.child(around, "LBody")
		}
		*lists = append(*lists, c.child(around, "L"))
	}
	item := c.child((*lists)[p.level-1], "LI")
	if p.marker != "" {
		label = c.child(item, "Lbl")
	}
	return c.child(item, "LBody"), label
}

// noteWidth is what can be read without losing the line.
const noteWidth = 140 * millimetre

// wrapNote is wrap for characters of several looks; it always gives a line.
func (c *composition) wrapNote(text []noteRune, size, width length) [][]noteRune {
	var plain strings.Builder
	for _, r := range text {
		plain.WriteRune(r.char)
	}
	var lines [][]noteRune
	var line []noteRune
	var used length
	for _, part := range c.setter.Parts(plain.String()) {
		n := utf8.RuneCountInString(part)
		run := text[:n]
		text = text[n:]
		natural := c.noteWidthOf(trimmed(run), size)
		if len(line) > 0 && used+natural > width {
			lines, line, used = append(lines, trimmed(line)), nil, 0
		}
		for natural > width && len(run) > 1 { // a word wider than the line
			k := 1
			for k < len(run)-1 && c.noteWidthOf(run[:k+1], size) <= width {
				k++
			}
			lines, run = append(lines, run[:k]), run[k:]
			natural = c.noteWidthOf(trimmed(run), size)
		}
		line = append(line, run...)
		used += c.noteWidthOf(run, size)
	}
	return append(lines, trimmed(line))
}

// trimmed is a text without the blanks at its end.
func trimmed(text []noteRune) []noteRune {
	for len(text) > 0 && text[len(text)-1].char == ' ' {
		text = text[:len(text)-1]
	}
	return text[:len(text):len(text)]
}

// looks splits a line into runs of one look.
func looks(line []noteRune, each func(look noteRune, run string)) {
	for len(line) > 0 {
		n := 1
		for n < len(line) && line[n].style == line[0].style && line[n].underlined == line[0].underlined {
			n++
		}
		var run strings.Builder
		for _, r := range line[:n] {
			run.WriteRune(r.char)
		}
		each(line[0], run.String())
		line = line[n:]
	}
}

func (c *composition) noteWidthOf(line []noteRune, size length) length {
	var total length
	looks(line, func(look noteRune, run string) { total += c.width(pen{look.style, size, c.ink}, run) })
	return total
}

// drawNoteLine draws runs of one look after each other.
func (c *composition) drawNoteLine(line []noteRune, x, size length) {
	looks(line, func(look noteRune, run string) {
		width := c.text(pen{look.style, size, c.ink}, x, c.y+size, run)
		if look.underlined {
			c.rule(x, c.y+size+1200, width, stroke{500, c.ink})
		}
		x += width
	})
}
