package document

import (
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"

	"tributary/internal/document/typeset"
)

// noteBook reads notes and keeps their lines, within a fixed bound: the terms
// and thanks of a client stand on document after document.
type noteBook struct {
	policy *bluemonday.Policy
	kept   *typeset.Cache[noteKey, setNote]
}

const noteCacheBytesMax = 4 << 20

func newNoteBook() *noteBook {
	return &noteBook{policy: notePolicy(), kept: typeset.NewCache[noteKey, setNote](noteCacheBytesMax)}
}

// noteKey is a note as it was submitted, and all that its lines depend on.
type noteKey struct {
	raw         string
	font        typeset.Font
	size, width length
}

// setNote is a note in lines.
type setNote []noteLines

// noteLines is a paragraph in lines.
type noteLines struct {
	lines  [][]noteRun
	level  int
	marker string
	apart  bool
}

// noteRun is a part of a line in one look.
type noteRun struct {
	text       string
	style      typeset.Style
	underlined bool
}

// Size is the memory that a kept note takes, roughly; its text is kept as it was
// submitted as well.
func (n setNote) Size() int {
	total := 128
	for _, p := range n {
		total += 80
		for _, line := range p.lines {
			total += 24
			for _, run := range line {
				total += 24 + 4*len(run.text)
			}
		}
	}
	return total
}

// note returns the lines of the note.
func (c *composition) note() setNote {
	if c.v.Transaction.Note == "" {
		return nil
	}
	key := noteKey{c.v.Transaction.Note, c.font(pen{}), c.bodyPen().size, min(noteWidth, c.paper.room())}
	set, _ := c.notes.kept.GetOwn(key, func() (noteKey, setNote, error) {
		var set setNote
		for _, p := range readNote(c.notes.policy, key.raw) {
			set = append(set, noteLines{c.wrapNote(&p, key.size, key.width-noteIndent(p.level)), p.level, p.marker, p.apart})
		}
		key.raw, key.font.Lang = strings.Clone(key.raw), strings.Clone(key.font.Lang)
		return key, set, nil
	})
	return set
}

// drawNote draws the note below its heading.
func (c *composition) drawNote() {
	paragraphs := c.note()
	if len(paragraphs) == 0 {
		return
	}
	c.heading(c.words.Note)
	size := c.bodyPen().size
	lead := c.lead(c.bodyPen())
	tag := c.tag
	var lists []*element // that are open, by level
	for i := range paragraphs {
		p := &paragraphs[i]
		if p.apart {
			c.y += lead / 2
		}
		c.tag = tag
		if p.level == 0 {
			lists = nil
		}
		body, label := c.noteTags(&lists, p)
		x := c.paper.side + noteIndent(p.level)
		for i, line := range p.lines {
			c.need(lead)
			if i == 0 && p.marker != "" {
				c.tag = label
				c.textRight(pen{typeset.Regular, size, c.accent}, x-4*point, c.y+size, p.marker)
			}
			c.tag = body
			c.drawNoteLine(line, x, size)
			c.y += lead
		}
	}
	c.tag = tag
	c.y += c.space(sectionGap)
}

func noteIndent(level int) length { return length(level) * 5 * millimetre }

// noteTags makes the elements of a paragraph: a paragraph, or an item of a list
// within the lists that are open.
func (c *composition) noteTags(lists *[]*element, p *noteLines) (body, label *element) {
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
			if outer := (*lists)[n-1]; outer.last != nil {
				around = outer.last
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

// wrapNote is wrap for a text of several looks; it always gives a line.
func (c *composition) wrapNote(p *paragraph, size, width length) [][]noteRun {
	text := string(p.text)
	n := noteWrapper{c: c, p: p, size: size, text: text}
	begin, at := 0, 0 // of the line, and of the part
	var used length
	for _, part := range c.setter.Parts(text) {
		end := at + len(part)
		natural := n.width(at, at+len(strings.TrimRight(part, " ")))
		if at > begin && used+natural > width {
			n.end(begin, at)
			begin, used = at, 0
		}
		for natural > width { // a word wider than the line
			next := n.fitting(at, end, width)
			if next == end {
				break
			}
			n.lines = append(n.lines, n.runs(begin, next))
			begin, at, used = next, next, 0
			natural = n.width(at, at+len(strings.TrimRight(text[at:end], " ")))
		}
		used += n.width(at, end)
		at = end
	}
	n.end(begin, at)
	return n.lines
}

// noteWrapper breaks a paragraph into lines; places are bytes of its text.
type noteWrapper struct {
	c     *composition
	p     *paragraph
	size  length
	text  string
	lines [][]noteRun
}

// end adds a line without the blanks at its end.
func (n *noteWrapper) end(from, to int) {
	n.lines = append(n.lines, n.runs(from, from+len(strings.TrimRight(n.text[from:to], " "))))
}

// looksFrom are the looks from a place on.
func (n *noteWrapper) looksFrom(at int) []noteLook {
	first, _ := slices.BinarySearchFunc(n.p.looks, at+1, func(l noteLook, to int) int { return l.to - to })
	return n.p.looks[first:]
}

// runs splits a part of the text by its looks.
func (n *noteWrapper) runs(from, to int) (runs []noteRun) {
	for _, look := range n.looksFrom(from) {
		if from >= to {
			break
		}
		end := min(look.to, to)
		runs = append(runs, noteRun{n.text[from:end], look.style, look.underlined})
		from = end
	}
	return runs
}

func (n *noteWrapper) width(from, to int) (total length) {
	for _, look := range n.looksFrom(from) {
		if from >= to {
			break
		}
		end := min(look.to, to)
		total += n.c.width(pen{look.style, n.size, n.c.ink}, n.text[from:end])
		from = end
	}
	return total
}

// fitting returns where a line must end within a word that is wider than it:
// after one character at least, and before the last.
func (n *noteWrapper) fitting(from, to int, width length) int {
	last := from
	for i := range n.text[from:to] {
		if i == 0 {
			continue
		}
		if last > from && n.width(from, from+i) > width {
			break
		}
		last = from + i
	}
	if last == from { // one character
		return to
	}
	return last
}

// drawNoteLine draws runs of one look after each other.
func (c *composition) drawNoteLine(line []noteRun, x, size length) {
	for _, run := range line {
		width := c.text(pen{run.style, size, c.ink}, x, c.y+size, run.text)
		if run.underlined {
			c.rule(x, c.y+size+1200, width, stroke{500, c.ink})
		}
		x += width
	}
}
