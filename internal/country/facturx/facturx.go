// Package facturx reads invoices that are a PDF for people with the same invoice as
// XML in it: Factur-X, ZUGFeRD, and XRechnung in a PDF.
//
// It owns how the XML is found; what it says is en16931's. Law: the XML is the
// invoice and the pages are a picture of it, so that nothing is read of the pages;
// a file that would take more than the limits is refused before it is unpacked.
package facturx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/incoming"
)

// Format is how such a file is recognised and read.
func Format() country.Format {
	return country.Format{Name: incoming.CII, Begins: Is, Read: func(pdf []byte) ([]*incoming.Document, error) { return incoming.One(Read(pdf)) }}
}

// Is reports whether a file begins as a PDF does.
func Is(document []byte) bool {
	return bytes.Contains(document[:min(len(document), 1024)], []byte("%PDF-"))
}

// Read reads the invoice in a PDF. Other files in it are listed as not read.
func Read(pdf []byte) (*incoming.Document, error) {
	files, err := Files(pdf)
	if err != nil {
		return nil, err
	}
	best := -1
	for i := range files {
		if known(files[i].Name) && (best < 0 || !known(files[best].Name)) ||
			best < 0 && strings.HasSuffix(strings.ToLower(files[i].Name), ".xml") {
			best = i
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("%w: the PDF has no invoice as XML in it", incoming.ErrInvalid)
	}
	document, err := files[best].content()
	if err != nil {
		return nil, err
	}
	d, err := en16931.ReadIncoming(document)
	if err != nil {
		return nil, err
	}
	for i := range files {
		if i != best && len(d.NotRead) < incoming.NotReadMax {
			d.NotRead = append(d.NotRead, "file in the PDF: "+files[i].Name)
		}
	}
	return d, nil
}

// known are the names that the standards give the invoice.
func known(name string) bool {
	switch strings.ToLower(name) {
	case "factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml", "cii.xml":
		return true
	}
	return false
}

// File is a file in a PDF.
type File struct {
	Name string
	of   *file
	data any
}

func (f File) content() ([]byte, error) {
	s, ok := f.of.get(f.data).(stream)
	if !ok {
		return nil, errPDF
	}
	return f.of.data(s)
}

// Files lists the files in a PDF: those of the whole document (/AF) and of its tree
// of names.
func Files(pdf []byte) ([]File, error) {
	f, err := open(pdf)
	if err != nil {
		return nil, err
	}
	catalog, _ := f.get(f.trailer["Root"]).(dict)
	var all []File
	seen := map[any]bool{}
	add := func(spec any) {
		d, _ := f.get(spec).(dict)
		embedded, _ := f.get(d["EF"]).(dict)
		for _, key := range []name{"UF", "F"} {
			if at, is := embedded[key].(ref); is && !seen[at] && len(all) < treeMax {
				seen[at] = true
				label, _ := f.get(d["UF"]).(string)
				if label == "" {
					label, _ = f.get(d["F"]).(string)
				}
				all = append(all, File{Name: decoded(label), of: f, data: at})
			}
		}
	}
	associated, _ := f.get(catalog["AF"]).(array)
	for _, spec := range associated {
		add(spec)
	}
	names, _ := f.get(catalog["Names"]).(dict)
	nodes := []any{names["EmbeddedFiles"]}
	for i := 0; i < len(nodes) && i < treeMax && f.err == nil; i++ {
		node, _ := f.get(nodes[i]).(dict)
		leaves, _ := f.get(node["Names"]).(array)
		for k := 1; k < len(leaves); k += 2 {
			add(leaves[k])
		}
		kids, _ := f.get(node["Kids"]).(array)
		nodes = append(nodes, kids[:min(len(kids), max(0, treeMax-len(nodes)))]...)
	}
	return all, f.err
}

// decoded is a text of a PDF: UTF-16 with a mark, UTF-8 with a mark, or bytes.
func decoded(text string) string {
	if rest, wide := strings.CutPrefix(text, "\xfe\xff"); wide {
		units := make([]uint16, len(rest)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16([]byte(rest[2*i:]))
		}
		return string(utf16.Decode(units))
	}
	return strings.TrimPrefix(text, "\ufeff")
}
