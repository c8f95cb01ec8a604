package structure

import (
	"fmt"
	"strings"

	"tributary/internal/xmltree"
)

// key is an identity constraint: xs:unique, xs:key or xs:keyref.
type key struct {
	sort     byte // 'u' unique, 'k' key, 'r' keyref
	name     string
	refers   string // of a keyref: the key's name
	selector []path
	fields   [][]path
}

// path is one alternative of the little XPath that constraints use.
type path struct {
	deep  bool   // begins with .//
	steps []name // local "*": any name
	attr  *name  // the last step of a field
}

func (p *path) nodes(e *xmltree.Element) []*xmltree.Element {
	from := []*xmltree.Element{e}
	if p.deep {
		from = nil
		for x := range e.Walk() {
			from = append(from, x)
		}
	}
	for _, step := range p.steps {
		var next []*xmltree.Element
		for _, x := range from {
			for _, child := range x.Children {
				if step.local == "*" || step.local == child.Local && step.space == child.Space {
					next = append(next, child)
				}
			}
		}
		from = next
	}
	return from
}

// tuple is the values of the fields at a node; false when one is absent.
func (k *key) tuple(e *xmltree.Element) (string, bool) {
	var values []string
	for _, field := range k.fields {
		value, there := "", false
		for i := range field {
			for _, x := range field[i].nodes(e) {
				if field[i].attr == nil {
					value, there = collapse(x.Text), true
				} else if text, ok := x.Lookup(field[i].attr.space, field[i].attr.local); ok {
					value, there = collapse(text), true
				}
			}
		}
		if !there {
			return "", false
		}
		values = append(values, value)
	}
	return strings.Join(values, "\x00"), true
}

func (k *key) visit(e *xmltree.Element, see func(*xmltree.Element, string, bool)) {
	for i := range k.selector {
		for _, x := range k.selector[i].nodes(e) {
			tuple, there := k.tuple(x)
			see(x, tuple, there)
		}
	}
}

// key checks one constraint of an element. A keyref refers to a key of the same
// element; the maker of the compact form refuses others.
func (c *checker) key(e *xmltree.Element, k *key, all []key) {
	seen := map[string]bool{}
	flaw := func(x *xmltree.Element, value, reason string) {
		c.add(Flaw{Kind: Identity, Element: x, Name: x.Local, Value: value, Reason: fmt.Sprintf("%s: %s", k.name, reason)})
	}
	if k.sort != 'r' {
		k.visit(e, func(x *xmltree.Element, value string, there bool) {
			switch {
			case !there && k.sort == 'k':
				flaw(x, "", "a field of the key is missing")
			case there && seen[value]:
				flaw(x, value, "the value is there twice")
			case there:
				seen[value] = true
			}
		})
		return
	}
	for i := range all {
		if all[i].name == k.refers {
			all[i].visit(e, func(_ *xmltree.Element, value string, there bool) { seen[value] = seen[value] || there })
		}
	}
	k.visit(e, func(x *xmltree.Element, value string, there bool) {
		if there && !seen[value] {
			flaw(x, value, "the value refers to nothing")
		}
	})
}
