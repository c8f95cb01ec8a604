package xmltree_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/xmltree"
)

// What is read is written and read again without a change, the standard
// library's reader takes it too, and the canonical form is its own.
func FuzzReadWriteRead(f *testing.F) {
	for _, source := range canonicalCases {
		f.Add([]byte(source))
	}
	f.Add([]byte("<?xml version='1.0'?><?pi a?><a b='c'>d<e/>f</a><?pi?>"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, source []byte) {
		limits := xmltree.Limits{Instructions: true}
		doc, err := limits.Read(source)
		if err != nil {
			var e *xmltree.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Offset > len(source) {
				t.Fatalf("the error is %#v", err)
			}
			return
		}
		written := doc.Bytes()
		again, err := limits.Read(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%q\n%q", err, source, written)
		}
		if twice := again.Bytes(); !bytes.Equal(twice, written) {
			t.Fatalf("written differently the second time:\n%q\n%q", written, twice)
		}
		if c, d := (xmltree.Canonical{}).Document(doc), (xmltree.Canonical{}).Document(again); !bytes.Equal(c, d) {
			t.Fatalf("the canonical form changed:\n%q\n%q", c, d)
		}
		canonical := xmltree.Canonical{Inclusive: true}.Document(doc)
		third, err := limits.Read(canonical)
		if err != nil || !bytes.Equal(xmltree.Canonical{Inclusive: true}.Document(third), canonical) {
			t.Fatalf("the canonical form is not stable: %v\n%q", err, canonical)
		}
		sameNames(t, again.Root, written)
		for e := range doc.Root.Walk() {
			raw := doc.Raw(e)
			if raw[0] != '<' || raw[len(raw)-1] != '>' ||
				e.Parent != nil && (e.Start <= e.Parent.Start || e.End >= e.Parent.End) {
				t.Fatalf("%s says that it is %q", e.Path(), raw)
			}
		}
	})
}

// sameNames wants the standard library to read the same elements in the same order.
func sameNames(t *testing.T, root *xmltree.Element, written []byte) {
	t.Helper()
	var names []xml.Name
	for dec := xml.NewDecoder(bytes.NewReader(written)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the standard library refuses what was written: %v\n%q", err, written)
		}
		if start, ok := token.(xml.StartElement); ok {
			names = append(names, start.Name)
		}
	}
	for e := range root.Walk() {
		if len(names) == 0 || names[0].Local != e.Local || names[0].Space != e.Space {
			t.Fatalf("the standard library reads other elements than {%s}%s in %q", e.Space, e.Local, written)
		}
		names = names[1:]
	}
	if len(names) > 0 {
		t.Fatalf("the standard library reads more elements in %q", written)
	}
}
