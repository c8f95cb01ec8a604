package mx

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"tributary/internal/official/satwire"
)

// Namespaces of a voucher, and the prefixes under which this package knows them.
const (
	spaceXSI = "http://www.w3.org/2001/XMLSchema-instance"
)

// Limits of what is read as XML.
const (
	xmlBytesMax = 8 << 20
	xmlDepthMax = 24
)

// node is one element. Its name has the prefix of this package, whatever the
// document calls it: "cfdi:Comprobante".
type node struct {
	name  string
	attrs []attr
	kids  []*node
	text  string

	raw []byte // the text while it is read: comments may cut it into pieces
}

type attr struct{ name, value string }

func element(name string, pairs ...string) *node {
	n := &node{name: name, attrs: make([]attr, 0, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		n.attrs = append(n.attrs, attr{pairs[i], pairs[i+1]})
	}
	return n
}

// set adds an attribute unless its value is empty: an optional one is left out.
func (n *node) set(name, value string) {
	if value != "" {
		n.attrs = append(n.attrs, attr{name, value})
	}
}

func (n *node) add(kid *node) *node {
	n.kids = append(n.kids, kid)
	return kid
}

func (n *node) lookup(name string) (string, bool) {
	for i := range n.attrs {
		if n.attrs[i].name == name {
			return n.attrs[i].value, true
		}
	}
	return "", false
}

func (n *node) attr(name string) string {
	value, _ := n.lookup(name)
	return value
}

// kid answers the first child with a name, or nil.
func (n *node) kid(name string) *node {
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

// all visits the elements at the end of a path of names.
func (n *node) all(visit func(*node), path ...string) {
	if len(path) == 0 {
		visit(n)
		return
	}
	for _, k := range n.kids {
		if k.name == path[0] {
			k.all(visit, path[1:]...)
		}
	}
}

// appendXML writes the element without white space between elements.
func (n *node) appendXML(out []byte) []byte {
	out = append(append(out, '<'), n.name...)
	for i := range n.attrs {
		out = append(append(out, ' '), n.attrs[i].name...)
		out = append(out, '=', '"')
		out = appendEscaped(out, n.attrs[i].value)
		out = append(out, '"')
	}
	if len(n.kids) == 0 && n.text == "" {
		return append(out, '/', '>')
	}
	out = append(out, '>')
	out = appendEscaped(out, n.text)
	for _, k := range n.kids {
		out = k.appendXML(out)
	}
	out = append(append(out, '<', '/'), n.name...)
	return append(out, '>')
}

// appendEscaped writes text as it may stand in an attribute or an element.
// What no XML 1.0 document may carry at all becomes a blank.
func appendEscaped(out []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '&':
			out = append(out, "&amp;"...)
		case r == '<':
			out = append(out, "&lt;"...)
		case r == '>':
			out = append(out, "&gt;"...)
		case r == '"':
			out = append(out, "&quot;"...)
		case r < ' ' || r == '\uFFFE' || r == '\uFFFF':
			out = append(out, ' ')
		default:
			out = append(out, string(r)...)
		}
	}
	return out
}

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

func document(n *node) []byte {
	return n.appendXML(append(make([]byte, 0, 8<<10), xmlHeader...))
}

var (
	errDirective = errors.New("a document type declaration is not accepted")
	errShape     = errors.New("it is not one well-formed XML document")
)

// parse reads one XML document into a tree. Names outside the known
// namespaces keep their namespace in braces. It refuses document types,
// processing instructions, and what is too long or too deep.
func parse(raw []byte) (*node, error) {
	if len(raw) > xmlBytesMax {
		return nil, fmt.Errorf("reading XML: longer than %d bytes", xmlBytesMax)
	}
	dec := xml.NewDecoder(bytes.NewReader(raw))
	var root *node
	var open []*node
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading XML: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			n := started(t)
			switch {
			case len(open) > 0:
				open[len(open)-1].add(n)
			case root != nil:
				return nil, errShape
			default:
				root = n
			}
			if open = append(open, n); len(open) > xmlDepthMax {
				return nil, fmt.Errorf("reading XML: deeper than %d elements", xmlDepthMax)
			}
		case xml.EndElement:
			top := open[len(open)-1]
			top.text, top.raw = string(top.raw), nil
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				top := open[len(open)-1]
				top.raw = append(top.raw, t...)
			} else if len(bytes.TrimSpace(t)) > 0 && !bytes.Equal(t, []byte("\uFEFF")) {
				return nil, errShape
			}
		case xml.Directive:
			return nil, errDirective
		case xml.ProcInst:
			if t.Target != "xml" {
				return nil, fmt.Errorf("reading XML: processing instruction %q", t.Target)
			}
		}
	}
	if root == nil || len(open) > 0 {
		return nil, errShape
	}
	return root, nil
}

func started(t xml.StartElement) *node {
	n := &node{name: known(t.Name), attrs: make([]attr, 0, len(t.Attr))}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		n.attrs = append(n.attrs, attr{known(a.Name), a.Value})
	}
	return n
}

func known(name xml.Name) string {
	switch name.Space {
	case "":
		return name.Local
	case satwire.SpaceCFDI:
		return "cfdi:" + name.Local
	case satwire.SpaceStamp:
		return "tfd:" + name.Local
	case satwire.SpacePagos:
		return "pago20:" + name.Local
	case spaceXSI:
		return "xsi:" + name.Local
	}
	return "{" + name.Space + "}" + name.Local
}

// local is a name without prefix or namespace.
func local(name string) string {
	if i := strings.LastIndexAny(name, ":}"); i >= 0 {
		return name[i+1:]
	}
	return name
}

// named answers the first element with a local name, the tree's root included.
func (n *node) named(name string) *node {
	if local(n.name) == name {
		return n
	}
	for _, k := range n.kids {
		if found := k.named(name); found != nil {
			return found
		}
	}
	return nil
}

// member is the text of the first element below with a local name.
func (n *node) member(name string) string {
	if n == nil {
		return ""
	}
	for _, k := range n.kids {
		if local(k.name) == name {
			return strings.TrimSpace(k.text)
		}
	}
	return ""
}
