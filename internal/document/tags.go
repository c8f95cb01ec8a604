package document

import "strconv"

// element is a node of the document's structure: what a reader that speaks goes
// by (ISO 32000-1, 14.7; ISO 14289-1).
type element struct {
	kind   string // a standard structure type: H1, P, Table, TR, TH, TD, L, LI, Lbl, LBody, Figure
	extra  string // further entries of its dictionary
	parent *element
	first  *element // within it, and the last of them
	last   *element
	next   *element // after it
	parts  []part   // marked content of its own
	one    [1]part  // where parts begin: most elements have one
	number int      // of its object
}

// part is marked content on a page.
type part struct{ sheet, mcid int }

// begin starts an element within the one that is drawn now.
func (c *composition) begin(kind string) *element {
	if c.root == nil {
		return nil
	}
	if c.tag == nil { // within an artifact nothing is read
		return nil
	}
	c.tag = c.child(c.tag, kind)
	return c.tag
}

// child adds an element to another without drawing it now.
func (c *composition) child(of *element, kind string) *element {
	e := c.work.element()
	e.kind, e.parent = kind, of
	if of.last == nil {
		of.first = e
	} else {
		of.last.next = e
	}
	of.last = e
	return e
}

// done goes back to the element around the one that is drawn now.
func (c *composition) done() {
	if c.tag != nil && c.tag.parent != nil {
		c.tag = c.tag.parent
	}
}

// within draws something as an element.
func (c *composition) within(kind string, draw func()) *element {
	e := c.begin(kind)
	draw()
	if e != nil {
		c.done()
	}
	return e
}

// asArtifact draws what is not read: lines, running heads, page numbers.
func (c *composition) asArtifact(draw func()) {
	tag := c.tag
	c.tag = nil
	draw()
	c.tag = tag
}

// beginMark makes what is written next part of the element that is drawn now.
func (c *composition) beginMark() {
	s := c.sheet
	if c.root == nil || s.opened && s.open == c.tag {
		return
	}
	s.endMark()
	s.open, s.opened = c.tag, true
	if c.tag == nil {
		s.out = append(s.out, "/Artifact BMC\n"...)
		return
	}
	s.out = append(s.out, '/')
	s.out = append(s.out, c.tag.kind...)
	s.out = append(s.out, "<</MCID "...)
	s.out = strconv.AppendInt(s.out, int64(len(s.marks)), 10)
	s.out = append(s.out, ">>BDC\n"...)
	if c.tag.parts == nil {
		c.tag.parts = c.tag.one[:0]
	}
	c.tag.parts = append(c.tag.parts, part{s.index, len(s.marks)})
	s.marks = append(s.marks, c.tag)
}

func (s *sheet) endMark() {
	if s.opened {
		s.out = append(s.out, "EMC\n"...)
		s.opened = false
	}
}

// Attributes of elements.
const (
	scopeColumn = "/A<</O/Table/Scope/Column>>"
	scopeRow    = "/A<</O/Table/Scope/Row>>"
)

// heads makes an element the heading of its column or row.
func (e *element) heads(scope string) {
	if e != nil {
		e.extra = scope
	}
}
