package mx

import (
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// readXML reads a document within the limits of a voucher.
func readXML(raw []byte) (*xmltree.Element, error) {
	doc, err := xmltree.Limits{Bytes: satwire.VoucherBytesMax, Depth: satwire.VoucherDepthMax}.Read(raw)
	if err != nil {
		return nil, err
	}
	return doc.Root, nil
}

// each visits the elements at the end of a path of local names, all of them in
// the element's own namespace: what a complement calls the same is another thing.
func each(e *xmltree.Element, visit func(*xmltree.Element), path ...string) {
	if len(path) == 0 {
		visit(e)
		return
	}
	for _, c := range e.Children {
		if c.Is(e.Space, path[0]) {
			each(c, visit, path[1:]...)
		}
	}
}

// child answers the first child with a local name in the element's own
// namespace, or nil.
func child(e *xmltree.Element, local string) *xmltree.Element {
	for _, c := range e.Children {
		if c.Is(e.Space, local) {
			return c
		}
	}
	return nil
}

// document is an element as a document of its own.
func document(e *xmltree.Element) []byte {
	return e.AppendTo(append(make([]byte, 0, 8<<10), xmltree.Declaration...))
}
