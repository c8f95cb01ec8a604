// Package xmltree reads and writes XML: one bounded reader for whatever comes
// from outside, one writer whose bytes depend on nothing but what was written,
// and the canonical forms that signatures are made over.
//
// It knows no country and no schema: structure checks stand in
// [tributary/internal/xmltree/structure], SOAP in
// [tributary/internal/xmltree/soap]. It does not sign or verify; it gives the
// bytes that are signed.
//
// The law of its reader: what [Limits.Read] answers is a well-formed XML 1.0
// document in UTF-8 with every namespace resolved, within the limits, without
// document type. Everything else is an [*Error] that says where. Memory and
// time are linear in the bytes of the document.
//
// An element has Text (before its first child) and Tail (behind its end), as lxml
// has it: mixed content keeps its order without a node per text, and documents of
// business data, which have none, cost nothing for it. Comments are dropped;
// processing instructions stand around the root only, for readers that ask for them
// (Italian invoices name a style sheet). In Canonical XML 1.1 xml:base of an
// ancestor is inherited as it stands; no document here has it.
package xmltree

import (
	"iter"
	"strings"
)

// Namespaces that XML itself knows.
const (
	SpaceXML = "http://www.w3.org/XML/1998/namespace"
	SpaceXSI = "http://www.w3.org/2001/XMLSchema-instance"

	spaceXMLNS = "http://www.w3.org/2000/xmlns/"
)

// Document is one whole document, read.
type Document struct {
	Root   *Element
	Source string // without a byte order mark; offsets of elements count in it

	ByteOrderMark bool          // the file began with one; some authorities refuse that
	Before, After []Instruction // processing instructions around the root
}

// Instruction is a processing instruction.
type Instruction struct{ Target, Content string }

// Element is one element with its name resolved. Text is what stands before
// its first child, Tail what stands between its end and the next tag; so mixed
// content keeps its order without a node for every text. Comments are dropped
// and CDATA sections are text.
type Element struct {
	Prefix, Space, Local string
	Attrs                []Attr    // without namespace declarations, in order
	Spaces               []Binding // namespaces declared here, in order
	Text, Tail           string
	Parent               *Element
	Children             []*Element

	Start, End int // bytes of the element in the source, both 0 where it was built
}

// Attr is one attribute. One without prefix has no namespace.
type Attr struct{ Prefix, Space, Local, Value string }

// Binding declares a namespace; the prefix "" is that of names without one.
type Binding struct{ Prefix, Space string }

// Raw is the element as the source has it, start tag to end tag.
func (d *Document) Raw(e *Element) string { return d.Source[e.Start:e.End] }

// Position counts the line and column (in characters) of a byte, from 1.
func (d *Document) Position(offset int) (line, column int) { return position(d.Source, offset) }

func position(source string, offset int) (line, column int) {
	before := source[:min(max(offset, 0), len(source))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, len([]rune(before[start:])) + 1
}

// Is reports whether the element has a qualified name; a nil element has none.
func (e *Element) Is(space, local string) bool {
	return e != nil && e.Local == local && e.Space == space
}

// At follows local names downwards, always the first child of a name; nil when
// there is no such element. It does not look at namespaces: check the structure
// of what comes from outside first.
func (e *Element) At(path ...string) *Element {
	for _, name := range path {
		if e == nil {
			return nil
		}
		e = e.first(name)
	}
	return e
}

func (e *Element) first(local string) *Element {
	for _, c := range e.Children {
		if c.Local == local {
			return c
		}
	}
	return nil
}

// Value is the text of the element that the path leads to, without white space
// around it, or "".
func (e *Element) Value(path ...string) string {
	if e = e.At(path...); e == nil {
		return ""
	}
	return strings.Trim(e.Text, whiteSpace)
}

// All answers the children with a local name.
func (e *Element) All(local string) []*Element {
	if e == nil {
		return nil
	}
	var found []*Element
	for _, c := range e.Children {
		if c.Local == local {
			found = append(found, c)
		}
	}
	return found
}

// Walk visits the element and everything below it in document order.
func (e *Element) Walk() iter.Seq[*Element] {
	return func(yield func(*Element) bool) { e.walk(yield) }
}

func (e *Element) walk(yield func(*Element) bool) bool {
	if e == nil {
		return true
	}
	if !yield(e) {
		return false
	}
	for _, c := range e.Children {
		if !c.walk(yield) {
			return false
		}
	}
	return true
}

// Find answers the first element with a qualified name, itself included.
func (e *Element) Find(space, local string) *Element {
	for x := range e.Walk() {
		if x.Is(space, local) {
			return x
		}
	}
	return nil
}

// Attr is the value of an attribute without namespace, or "".
func (e *Element) Attr(local string) string {
	value, _ := e.Lookup("", local)
	return value
}

// Lookup is the value of an attribute and whether it is there.
func (e *Element) Lookup(space, local string) (string, bool) {
	if e != nil {
		for i := range e.Attrs {
			if e.Attrs[i].Local == local && e.Attrs[i].Space == space {
				return e.Attrs[i].Value, true
			}
		}
	}
	return "", false
}

// SpaceOf resolves a prefix where the element stands; "" is the default one.
func (e *Element) SpaceOf(prefix string) (string, bool) {
	if prefix == "xml" {
		return SpaceXML, true
	}
	for at := e; at != nil; at = at.Parent {
		for i := range at.Spaces {
			if at.Spaces[i].Prefix == prefix {
				return at.Spaces[i].Space, true
			}
		}
	}
	return "", prefix == ""
}

// Path names the element from the root down, with a number where siblings share
// its name: Invoice/Lines/Line[2]/Price.
func (e *Element) Path() string {
	if e == nil {
		return ""
	}
	if e.Parent == nil {
		return e.Local
	}
	at, same := 0, 0
	for _, c := range e.Parent.Children {
		if c.Local == e.Local {
			if same++; c == e {
				at = same
			}
		}
	}
	name := e.Local
	if same > 1 {
		name += "[" + itoa(at) + "]"
	}
	return e.Parent.Path() + "/" + name
}

// New builds an element from its name as it is written ("p:Name" or "Name") and
// pairs of attributes, of which xmlns and xmlns:p declare namespaces. An
// attribute with an empty value is written; leave it to [Element.Set] to leave
// optional ones out.
func New(name string, pairs ...string) *Element {
	e := &Element{}
	e.Prefix, e.Local = splitName(name)
	for i := 0; i+1 < len(pairs); i += 2 {
		switch prefix, local := splitName(pairs[i]); {
		case prefix == "xmlns":
			e.Spaces = append(e.Spaces, Binding{local, pairs[i+1]})
		case pairs[i] == "xmlns":
			e.Spaces = append(e.Spaces, Binding{"", pairs[i+1]})
		default:
			e.Attrs = append(e.Attrs, Attr{Prefix: prefix, Local: local, Value: pairs[i+1]})
		}
	}
	e.resolve()
	return e
}

// Set adds an attribute at the end, or changes it where it stands already. An
// empty value adds nothing: an optional attribute is left out.
func (e *Element) Set(name, value string) {
	prefix, local := splitName(name)
	for i := range e.Attrs {
		if e.Attrs[i].Prefix == prefix && e.Attrs[i].Local == local {
			e.Attrs[i].Value = value
			return
		}
	}
	if value == "" {
		return
	}
	a := Attr{Prefix: prefix, Local: local, Value: value}
	if prefix != "" {
		a.Space, _ = e.SpaceOf(prefix)
	}
	e.Attrs = append(e.Attrs, a)
}

// Add puts a built element at the end and answers it. Prefixes of the child
// that were unknown until now are resolved where it stands.
func (e *Element) Add(child *Element) *Element {
	child.Parent = e
	e.Children = append(e.Children, child)
	child.resolve()
	return child
}

// Leaf adds an element with text; without text it adds nothing and answers nil.
func (e *Element) Leaf(name, text string) *Element {
	if text == "" {
		return nil
	}
	leaf := New(name)
	leaf.Text = text
	return e.Add(leaf)
}

func (e *Element) resolve() {
	if e.Space == "" {
		e.Space, _ = e.SpaceOf(e.Prefix)
	}
	for i := range e.Attrs {
		if a := &e.Attrs[i]; a.Prefix != "" && a.Space == "" {
			a.Space, _ = e.SpaceOf(a.Prefix)
		}
	}
	for _, c := range e.Children {
		c.resolve()
	}
}

// QName is the name as it is written.
func (e *Element) QName() string { return joinName(e.Prefix, e.Local) }

func joinName(prefix, local string) string {
	if prefix == "" {
		return local
	}
	return prefix + ":" + local
}

func splitName(name string) (prefix, local string) {
	if i := strings.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}
