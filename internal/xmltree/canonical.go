package xmltree

import (
	"slices"
	"strings"
)

// Names of the canonical forms, as signatures carry them. Those with comments
// are not here: the reader drops comments.
const (
	AlgorithmInclusive   = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	AlgorithmInclusive11 = "http://www.w3.org/2006/12/xml-c14n11"
	AlgorithmExclusive   = "http://www.w3.org/2001/10/xml-exc-c14n#"
)

// Canonical writes elements in a canonical form: Canonical XML 1.0 and 1.1
// (inclusive) or Exclusive XML Canonicalization 1.0. The zero value is the
// exclusive form.
type Canonical struct {
	Inclusive bool
	Version11 bool     // Canonical XML 1.1: xml:id of ancestors is not inherited
	Prefixes  []string // InclusiveNamespaces PrefixList of the exclusive form; "#default" is the one without prefix

	// Without is left out with everything below it: the signature that is
	// enveloped by what it signs.
	Without *Element
}

// CanonicalBy answers the form with a name, or false.
func CanonicalBy(algorithm string) (Canonical, bool) {
	switch algorithm {
	case AlgorithmExclusive:
		return Canonical{}, true
	case AlgorithmInclusive:
		return Canonical{Inclusive: true}, true
	case AlgorithmInclusive11:
		return Canonical{Inclusive: true, Version11: true}, true
	}
	return Canonical{}, false
}

// Bytes is the canonical form of an element where it stands: namespaces of its
// ancestors count.
func (c Canonical) Bytes(e *Element) []byte {
	w := &canonicalWriter{form: c, apex: e}
	w.element(e)
	return w.out
}

// Document is the canonical form of a whole document, as a reference with an
// empty URI signs it.
func (c Canonical) Document(d *Document) []byte {
	w := &canonicalWriter{form: c, apex: d.Root}
	for _, i := range d.Before {
		w.out = append(i.appendTo(w.out), '\n')
	}
	w.element(d.Root)
	for _, i := range d.After {
		w.out = i.appendTo(append(w.out, '\n'))
	}
	return w.out
}

type canonicalWriter struct {
	form     Canonical
	apex     *Element
	out      []byte
	rendered []Binding // namespaces that ancestors in the output have, the innermost last
}

func (w *canonicalWriter) element(e *Element) {
	before := len(w.rendered)
	w.out = appendName(append(w.out, '<'), e.Prefix, e.Local)
	for _, b := range w.spaces(e) {
		w.rendered = append(w.rendered, b)
		w.out = append(w.out, " xmlns"...)
		if b.Prefix != "" {
			w.out = append(append(w.out, ':'), b.Prefix...)
		}
		w.out = append(appendCanonical(append(w.out, '=', '"'), b.Space, true), '"')
	}
	for _, a := range w.attributes(e) {
		w.out = appendName(append(w.out, ' '), a.Prefix, a.Local)
		w.out = append(appendCanonical(append(w.out, '=', '"'), a.Value, true), '"')
	}
	w.out = appendCanonical(append(w.out, '>'), e.Text, false)
	for _, c := range e.Children {
		if c != w.form.Without {
			w.element(c)
		}
		w.out = appendCanonical(w.out, c.Tail, false)
	}
	w.out = append(appendName(append(w.out, '<', '/'), e.Prefix, e.Local), '>')
	w.rendered = w.rendered[:before]
}

// spaces are the namespaces that the element declares in the output, by prefix.
func (w *canonicalWriter) spaces(e *Element) []Binding {
	var wanted []Binding
	want := func(b Binding) {
		if b.Prefix == "xml" || slices.Contains(wanted, b) {
			return
		}
		// Where nothing is rendered, no default namespace is the same as an
		// empty one; a prefix is never empty.
		if w.renderedSpace(b.Prefix) != b.Space {
			wanted = append(wanted, b)
		}
	}
	switch {
	case w.form.Inclusive && e == w.apex:
		for _, b := range e.inScope() {
			want(b)
		}
	case w.form.Inclusive:
		for _, b := range e.Spaces {
			want(b)
		}
	default:
		want(Binding{e.Prefix, e.Space})
		for i := range e.Attrs {
			if e.Attrs[i].Prefix != "" {
				want(Binding{e.Attrs[i].Prefix, e.Attrs[i].Space})
			}
		}
		for _, prefix := range w.form.Prefixes {
			if prefix == "#default" {
				prefix = ""
			}
			if space, ok := e.SpaceOf(prefix); ok {
				want(Binding{prefix, space})
			}
		}
	}
	slices.SortFunc(wanted, func(a, b Binding) int { return strings.Compare(a.Prefix, b.Prefix) })
	return wanted
}

func (w *canonicalWriter) renderedSpace(prefix string) string {
	for i := len(w.rendered) - 1; i >= 0; i-- {
		if w.rendered[i].Prefix == prefix {
			return w.rendered[i].Space
		}
	}
	return ""
}

// inScope are the namespaces that hold at an element, the nearest of a prefix.
func (e *Element) inScope() []Binding {
	var all []Binding
	seen := map[string]bool{}
	for at := e; at != nil; at = at.Parent {
		for _, b := range at.Spaces {
			if !seen[b.Prefix] {
				seen[b.Prefix] = true
				all = append(all, b)
			}
		}
	}
	return all
}

// attributes are those of the element in the output's order: by namespace, then
// by name. In the inclusive forms the apex also has its ancestors' xml: ones.
func (w *canonicalWriter) attributes(e *Element) []Attr {
	attrs := slices.Clone(e.Attrs)
	if w.form.Inclusive && e == w.apex {
		for at := e.Parent; at != nil; at = at.Parent {
			for _, a := range at.Attrs {
				inherited := a.Space == SpaceXML && !(w.form.Version11 && a.Local == "id")
				if inherited && !slices.ContainsFunc(attrs, func(x Attr) bool { return x.Space == SpaceXML && x.Local == a.Local }) {
					attrs = append(attrs, a)
				}
			}
		}
	}
	slices.SortFunc(attrs, func(a, b Attr) int {
		if by := strings.Compare(a.Space, b.Space); by != 0 {
			return by
		}
		return strings.Compare(a.Local, b.Local)
	})
	return attrs
}

func appendCanonical(out []byte, text string, attribute bool) []byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '&':
			out = append(out, "&amp;"...)
		case c == '<':
			out = append(out, "&lt;"...)
		case c == '>' && !attribute:
			out = append(out, "&gt;"...)
		case c == '"' && attribute:
			out = append(out, "&quot;"...)
		case c == '\r':
			out = append(out, "&#xD;"...)
		case c == '\n' && attribute:
			out = append(out, "&#xA;"...)
		case c == '\t' && attribute:
			out = append(out, "&#x9;"...)
		default:
			out = append(out, c)
		}
	}
	return out
}
