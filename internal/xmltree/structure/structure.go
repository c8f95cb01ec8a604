// Package structure checks XML documents against official schemas in a compact
// form: elements and their order, number and namespaces, attributes and their
// use, wildcards, derived types, the facets of texts, and uniqueness.
//
// The compact form is a text, made from the XSD files by
// tributary/internal/official/xsd and read by [Parse]; its grammar is written
// down in load.go. This package knows no standard: the forms stand in
// tributary/internal/official.
//
// The law of [Schema.Check]: it reports a flaw exactly where a schema processor
// of XSD 1.0 would find the document invalid; tests compare it with libxml2.
package structure

import (
	"fmt"
	"strings"

	"tributary/internal/xmltree"
)

// Kind says what sort of flaw was found.
type Kind int

// Kinds of flaws.
const (
	Unknown          Kind = iota // the root element, or one under a strict wildcard, is not in the schema
	Unexpected                   // an element stands where it may not
	Missing                      // an element is not there and must be
	Text                         // there is text where only elements may be, or nothing
	Value                        // the text of an element is not of its type
	AttributeUnknown             // an attribute may not be there
	AttributeMissing             // an attribute must be there
	AttributeValue               // the value of an attribute is not of its type
	TypeUse                      // xsi:type, xsi:nil or an abstract declaration is used wrongly
	Identity                     // a value that must be unique is there twice, or one that is referred to is not there
)

// Flaw is one thing that the schema refuses.
type Flaw struct {
	Kind    Kind
	Element *xmltree.Element // the element itself; of a missing one its parent, of an attribute its owner
	Name    string           // local name of the element or attribute that is unexpected, missing or wrong
	Value   string           // of Value and AttributeValue: the text, as it stands
	Allowed []string         // of Unexpected and Missing: what could stand there, some of it
	Reason  string           // why a value does not fit, and whatever else there is to say
}

// Error is the flaw in a line, with the path of the element.
func (f *Flaw) Error() string {
	at := f.Element.Path()
	switch f.Kind {
	case Unknown:
		return fmt.Sprintf("%s: the element {%s}%s is not known", at, f.Element.Space, f.Name)
	case Unexpected:
		return fmt.Sprintf("%s: the element is not expected%s", at, f.allowed())
	case Missing:
		return fmt.Sprintf("%s: an element is missing%s", at, f.allowed())
	case Text:
		return at + ": text is not expected"
	case Value:
		return fmt.Sprintf("%s: %q %s", at, shortened(f.Value), f.Reason)
	case AttributeUnknown:
		return fmt.Sprintf("%s: the attribute %s is not expected", at, f.Name)
	case AttributeMissing:
		return fmt.Sprintf("%s: the attribute %s is missing", at, f.Name)
	case AttributeValue:
		return fmt.Sprintf("%s: attribute %s: %q %s", at, f.Name, shortened(f.Value), f.Reason)
	}
	return at + ": " + f.Reason
}

func (f *Flaw) allowed() string {
	if len(f.Allowed) == 0 {
		return ""
	}
	return "; expected: " + strings.Join(f.Allowed, ", ")
}

func shortened(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Schema is a loaded schema. It is safe for use by many at once.
type Schema struct {
	elements map[name]*declaration
	attrs    map[name]*attribute
	types    map[name]*typing
	patterns []*pattern
	count    int // of declarations and types, for those who want to know
}

type name struct{ space, local string }

// typing is a simple or complex type.
type typing struct {
	name     name
	base     *typing // nil: anyType
	abstract bool
	complex  bool
	mixed    bool
	value    *simple   // of a simple type, or of complex content that is a text
	model    *particle // of content that is elements; nil where there are none
	attrs    []attribute
	anyAttr  *wildcard
}

// declaration is an element's declaration, global or local.
type declaration struct {
	name     name
	typing   *typing
	abstract bool
	nillable bool
	wild     bool // stands for an element that a lax wildcard lets in and nobody declares
	fixed    *string
	standard *string // default value
	members  []*declaration
	keys     []key
}

type attribute struct {
	name       name
	value      *simple
	required   bool
	prohibited bool
	fixed      *string
}

type wildcard struct {
	any     bool
	not     string // with others: every namespace but this one and none
	others  bool
	spaces  []string
	process byte // 's' strict, 'l' lax, 'k' skip
}

func (w *wildcard) takes(space string) bool {
	switch {
	case w.any:
		return true
	case w.others:
		return space != "" && space != w.not
	}
	for _, s := range w.spaces {
		if s == space {
			return true
		}
	}
	return false
}

// particle is a part of a content model: an element, a wildcard or a group, and
// how often it may stand.
type particle struct {
	sort     byte // 'e' element, 'w' wildcard, '(' sequence, '[' choice, '{' all
	min, max int  // max -1: any number
	element  *declaration
	wildcard *wildcard
	parts    []*particle
	empty    bool // may be matched by nothing
}

// Has reports whether a document may have such a root.
func (s *Schema) Has(space, local string) bool { return s.elements[name{space, local}] != nil }

// Size is how many declarations and types the schema has.
func (s *Schema) Size() int { return s.count }

// First is the first flaw of a document, nil when it has none.
func (s *Schema) First(root *xmltree.Element) *Flaw {
	if found := s.Check(root, 1); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// Check answers up to max flaws of a document in document order, nil when it
// has none. The root must be an element that the schema declares.
func (s *Schema) Check(root *xmltree.Element, max int) []Flaw {
	c := &checker{schema: s, max: max}
	d := s.elements[name{root.Space, root.Local}]
	if d == nil {
		c.add(Flaw{Kind: Unknown, Element: root, Name: root.Local})
	} else {
		c.element(root, d)
	}
	return c.flaws
}
