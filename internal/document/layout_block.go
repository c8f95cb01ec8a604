package document

import "strings"

// block is a column of lines, drawn line by line so that it can go on over a page break.
type block []blockLine

type blockLine struct {
	pen          pen
	text         string
	before, lead length // white space above, and its own height
	tag          *element
	more         bool // what is said goes on: a blank is read after it
}

// add appends a text, broken into lines of a width, as what is drawn now.
func (b *block) add(on *canvas, p pen, s string, width length) {
	if n := len(*b); n > 0 && s != "" && (*b)[n-1].tag == on.tag {
		(*b)[n-1].more = true
	}
	if s != "" && on.width(p, s) <= width {
		s = on.settable(s)
		*b = append(*b, blockLine{pen: p, text: s, lead: on.leadOf(p, s), tag: on.tag})
		return
	}
	lines := on.wrap(p, s, width)
	for i, line := range lines {
		*b = append(*b, blockLine{pen: p, text: line, lead: on.leadOf(p, line), tag: on.tag, more: i+1 < len(lines)})
	}
}

// gap puts white space above the line that was added at an index.
func (b block) gap(index int, before length) {
	if index < len(b) {
		b[index].before = before
	}
}

func (b block) height() length {
	var total length
	for _, l := range b {
		total += l.before + l.lead
	}
	return total
}

// alignment is how lines stand in a column.
type alignment uint8

const (
	start  alignment = iota // where lines begin
	finish                  // where lines end
	centred
	figures // to the right in any language: digits run from left to right everywhere
)

// column is a block with its place.
type column struct {
	x, width length
	align    alignment
	lines    block
}

// drawColumns draws blocks side by side from the same height, over as many
// pages as the longest needs.
func (c *composition) drawColumns(columns ...column) {
	tag := c.on.tag
	defer func() { c.on.tag = tag }()
	for {
		lowest, left := c.y, false
		for i := range columns {
			col, y := &columns[i], c.y
			for len(col.lines) > 0 {
				l := &col.lines[0]
				if y+l.before+l.lead > c.end {
					break
				}
				y += l.before
				c.on.tag = l.tag
				c.on.lineIn(l, col, y+l.base())
				y += l.lead
				col.lines = col.lines[1:]
			}
			lowest = max(lowest, y)
			left = left || len(col.lines) > 0
		}
		c.y = lowest
		if !left {
			return
		}
		c.on.tag = tag
		c.turnPage()
	}
}

// base is where the base line stands below the top of a line: extra height of
// tall letters goes mostly above it.
func (l *blockLine) base() length {
	if extra := l.lead - l.pen.size*leadingLatin/100; extra > 0 {
		return l.pen.size + extra*6/10
	}
	return l.pen.size
}

// base is blockLine.base for a line of the document's own letters.
func (on *canvas) base(p pen) length { return (&blockLine{pen: p, lead: on.lead(p)}).base() }

// level puts the base lines of the first lines of columns on one height.
func level(columns []column) {
	var lowest length
	for _, col := range columns {
		if len(col.lines) > 0 {
			lowest = max(lowest, col.lines[0].before+col.lines[0].base())
		}
	}
	for _, col := range columns {
		if len(col.lines) > 0 {
			col.lines[0].before = lowest - col.lines[0].base()
		}
	}
}

// textIn draws a text in a column.
func (on *canvas) textIn(p pen, col *column, y length, s string) {
	on.text(p, on.placeIn(p, col, s), y, s)
}

// lineIn draws a line of a column. A blank that nobody sees ends one that goes
// on: readers that join the lines of a paragraph must not join their words.
func (on *canvas) lineIn(l *blockLine, col *column, y length) {
	x, text := on.placeIn(l.pen, col, l.text), l.text
	if l.more && on.root != nil && !on.rtl && !strings.HasSuffix(text, "\u00AD") {
		text += " "
	}
	on.text(l.pen, x, y, text)
}

func (on *canvas) placeIn(p pen, col *column, s string) length {
	switch {
	case col.align == start, col.align == figures && on.rtl:
		return col.x
	case col.align == centred:
		return col.x + (col.width-on.width(p, s))/2
	}
	return col.x + col.width - on.width(p, s)
}
