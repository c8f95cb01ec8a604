package pl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	depthMax = 32
	xsiSpace = "http://www.w3.org/2001/XMLSchema-instance"
)

// node is an element of a parsed document.
type node struct {
	space, name string
	attributes  map[string]string // without namespaces and schema locations
	text        string
	children    []*node

	raw []byte // the text while it is read
}

// child is the first member with a name, or nil.
func (n *node) child(names ...string) *node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		var found *node
		for _, c := range n.children {
			if c.name == name {
				found = c
				break
			}
		}
		n = found
	}
	return n
}

// value is the text of a descendant, without blanks around it.
func (n *node) value(names ...string) string {
	if c := n.child(names...); c != nil {
		return strings.TrimSpace(c.text)
	}
	return ""
}

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// parse reads a document as KSeF wants it (ksef-docs, weryfikacja-faktury.md,
// "Weryfikacja XML"): XML 1.0 in UTF-8 without byte order mark, document type,
// processing instructions and discouraged characters.
func parse(document []byte) (*node, error) {
	if bytes.HasPrefix(document, byteOrderMark) {
		return nil, errors.New("the file begins with a byte order mark")
	}
	if !takes(string(document)) {
		return nil, errors.New("the file is not UTF-8 or has characters that are discouraged")
	}
	dec := xml.NewDecoder(bytes.NewReader(document))
	dec.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("the file says that it is encoded in %s", charset)
	}
	root := &node{}
	open := []*node{root}
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		top := open[len(open)-1]
		switch t := t.(type) {
		case xml.ProcInst:
			if t.Target != "xml" {
				return nil, errors.New("the file has processing instructions")
			}
		case xml.Directive:
			return nil, errors.New("the file has a document type")
		case xml.CharData:
			top.raw = append(top.raw, t...)
		case xml.StartElement:
			if len(open) > depthMax {
				return nil, errors.New("the file is nested too deeply")
			}
			n := &node{space: t.Name.Space, name: t.Name.Local, attributes: attributes(t.Attr)}
			top.children = append(top.children, n)
			open = append(open, n)
		case xml.EndElement:
			top.text, top.raw = string(top.raw), nil
			open = open[:len(open)-1]
		}
	}
	if len(root.children) != 1 {
		return nil, errors.New("the file has no root element, or several")
	}
	return root.children[0], nil
}

func attributes(all []xml.Attr) map[string]string {
	kept := map[string]string{}
	for _, a := range all {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || a.Name.Space == xsiSpace {
			continue
		}
		kept[a.Name.Local] = a.Value
	}
	return kept
}
