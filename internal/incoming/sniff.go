package incoming

import (
	"bytes"

	"tributary/internal/xmltree"
)

// sniffMax is how much of a file is looked at to tell its format.
const sniffMax = 64 << 10

// Root is the name of a document's root element, found without reading the rest; ""
// where the beginning is not XML. What is behind it may still be anything.
func Root(document []byte) (space, local string) {
	head := document[:min(len(document), sniffMax)]
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	for len(head) > 1 && head[0] == '<' {
		end := ""
		switch {
		case bytes.HasPrefix(head, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(head, []byte("<!--")):
			end = "-->"
		case head[1] == '!':
			return "", ""
		default:
			return rootOf(head)
		}
		at := bytes.Index(head, []byte(end))
		if at < 0 {
			return "", ""
		}
		head = bytes.TrimLeft(head[at+len(end):], " \t\r\n")
	}
	return "", ""
}

// rootOf reads a start tag alone, as an element with nothing in it.
func rootOf(head []byte) (space, local string) {
	var quote byte
	for i, c := range head {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			tag := append(bytes.TrimSuffix(bytes.Clone(head[:i]), []byte("/")), "/>"...)
			d, err := xmltree.Limits{Bytes: sniffMax + 2}.Read(tag)
			if err != nil {
				return "", ""
			}
			return d.Root.Space, d.Root.Local
		}
	}
	return "", ""
}
