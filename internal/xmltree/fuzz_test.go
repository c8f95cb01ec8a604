package xmltree_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"tributary/internal/xmltree"
)

// What is read is written and read again without a change, the standard
// library's reader takes it too, and the canonical form is its own.
func FuzzReadWriteRead(f *testing.F) {
	for _, source := range canonicalCases {
		f.Add([]byte(source))
	}
	f.Add([]byte("<?xml version='1.0'?><?pi a?><a b='c'>d<e/>f</a><?pi?>"))
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
		for dec := xml.NewDecoder(bytes.NewReader(written)); ; {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("the standard library refuses what was written: %v\n%q", err, written)
			}
		}
	})
}
