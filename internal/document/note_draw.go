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

// noteText draws the note.
type noteText struct{ c *composition }

// note returns the lines of the note.
func (t noteText) note() setNote {
	if t.c.doc.v.Transaction.Note == "" {
		return nil
	}
	key := noteKey{t.c.doc.v.Transaction.Note, t.c.on.font(pen{}), t.c.color.bodyPen().size, min(noteWidth, t.c.on.paper.room())}
	set, _ := t.c.notes.kept.GetOwn(key, func() (noteKey, setNote, error) {
		var set setNote
		for _, p := range readNote(t.c.notes.policy, key.raw) {
			set = append(set, noteLines{t.wrapNote(&p, key.size, key.width-noteIndent(p.level)), p.level, p.marker, p.apart})
		}
		key.raw, key.font.Lang = strings.Clone(key.raw), strings.Clone(key.font.Lang)
		return key, set, nil
	})
	return set
}

// drawNote draws the note below its heading.
func (t noteText) drawNote() {
	paragraphs := t.note()
	if len(paragraphs) == 0 {
		return
	}
	t.c.heading(t.c.doc.words.Note)
	size := t.c.color.bodyPen().size
	lead := t.c.on.lead(t.c.color.bodyPen())
	tag := t.c.on.tag
	var lists []*element // that are open, by level
	for i := range paragraphs {
		p := &paragraphs[i]
		if p.apart {
			t.c.y += lead / 2
		}
		t.c.on.tag = tag
		if p.level == 0 {
			lists = nil
		}
		body, label := t.noteTags(&lists, p)
		x := t.c.on.paper.side + noteIndent(p.level)
		for i, line := range p.lines {
			t.c.need(lead)
			if i == 0 && p.marker != "" {
				t.c.on.tag = label
				t.c.on.textRight(pen{typeset.Regular, size, t.c.color.accent}, x-4*point, t.c.y+size, p.marker)
			}
			t.c.on.tag = body
			t.drawNoteLine(line, x, size)
			t.c.y += lead
		}
	}
	t.c.on.tag = tag
	t.c.y += t.c.on.space(sectionGap)
}

func noteIndent(level int) length { return length(level) * 5 * millimetre }

// noteTags makes the elements of a paragraph: a paragraph, or an item of a list
// within the lists that are open.
func (t noteText) noteTags(lists *[]*element, p *noteLines) (body, label *element) {
	if t.c.on.root == nil {
		return nil, nil
	}
	if p.level == 0 {
		return t.c.on.child(t.c.on.tag, "P"), nil
	}
	*lists = (*lists)[:min(len(*lists), p.level)]
	for len(*lists) < p.level {
		around := t.c.on.tag
		if n := len(*lists); n > 0 { // a list within a list is part of its last item
			if outer := (*lists)[n-1]; outer.last != nil {
				around = outer.last
			} else {
				around = t.c.on.child(outer, "LI")
			}
			around = t.c.on.child(around, "LBody")
		}
		*lists = append(*lists, t.c.on.child(around, "L"))
	}
	item := t.c.on.child((*lists)[p.level-1], "LI")
	if p.marker != "" {
		label = t.c.on.child(item, "Lbl")
	}
	return t.c.on.child(item, "LBody"), label
}

// noteWidth is what can be read without losing the line.
const noteWidth = 140 * millimetre

// wrapNote is wrap for a text of several looks; it always gives a line.
func (t noteText) wrapNote(p *paragraph, size, width length) [][]noteRun {
	text := string(p.text)
	n := noteWrapper{c: t.c, p: p, size: size, text: text}
	begin, at := 0, 0 // of the line, and of the part
	var used length
	for _, part := range t.c.on.setter.Parts(text) {
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
		total += n.c.on.width(pen{look.style, n.size, n.c.color.ink}, n.text[from:end])
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
func (t noteText) drawNoteLine(line []noteRun, x, size length) {
	for _, run := range line {
		width := t.c.on.text(pen{run.style, size, t.c.color.ink}, x, t.c.y+size, run.text)
		if run.underlined {
			t.c.on.rule(x, t.c.y+size+1200, width, stroke{500, t.c.color.ink})
		}
		x += width
	}
}
