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
func (on *canvas) begin(kind string) *element {
	if on.root == nil {
		return nil
	}
	if on.tag == nil { // within an artifact nothing is read
		return nil
	}
	on.tag = on.child(on.tag, kind)
	return on.tag
}

// child adds an element to another without drawing it now.
func (on *canvas) child(of *element, kind string) *element {
	e := on.work.element()
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
func (on *canvas) done() {
	if on.tag != nil && on.tag.parent != nil {
		on.tag = on.tag.parent
	}
}

// within draws something as an element.
func (on *canvas) within(kind string, draw func()) *element {
	e := on.begin(kind)
	draw()
	if e != nil {
		on.done()
	}
	return e
}

// asArtifact draws what is not read: lines, running heads, page numbers.
func (on *canvas) asArtifact(draw func()) {
	tag := on.tag
	on.tag = nil
	draw()
	on.tag = tag
}

// beginMark makes what is written next part of the element that is drawn now.
func (on *canvas) beginMark() {
	s := on.sheet
	if on.root == nil || s.opened && s.open == on.tag {
		return
	}
	s.endMark()
	s.open, s.opened = on.tag, true
	if on.tag == nil {
		s.out = append(s.out, "/Artifact BMC\n"...)
		return
	}
	s.out = append(s.out, '/')
	s.out = append(s.out, on.tag.kind...)
	s.out = append(s.out, "<</MCID "...)
	s.out = strconv.AppendInt(s.out, int64(len(s.marks)), 10)
	s.out = append(s.out, ">>BDC\n"...)
	if on.tag.parts == nil {
		on.tag.parts = on.tag.one[:0]
	}
	on.tag.parts = append(on.tag.parts, part{s.index, len(s.marks)})
	s.marks = append(s.marks, on.tag)
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
