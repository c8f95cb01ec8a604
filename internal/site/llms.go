package site

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
)

// Texts are what language models read instead of pages: an index, and everything
// that clients and operators are told, as Markdown.
var Texts = []string{"llms.txt", "llms-full.txt"}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// addTexts makes the texts of the documents on the shelves. Links lead to the pages.
func (b *book) addTexts(shelves [][]string, l links) error {
	const media = "text/plain; charset=utf-8"
	read := func(document string) ([]byte, error) {
		source, err := fs.ReadFile(l.documents, document)
		l.from = document
		return markdownLink.ReplaceAllFunc(source, func(m []byte) []byte {
			if to, ok := l.resolve(string(m[2 : len(m)-1])); ok {
				return []byte("](" + to + ")")
			}
			return m
		}), err
	}
	index, err := read(Texts[0])
	if err != nil {
		return err
	}
	b.assets[Texts[0]] = File{Texts[0], media, index}
	var full bytes.Buffer
	for i, shelf := range documentShelves() {
		for _, document := range shelves[i] {
			if path.Ext(document) != ".md" || shelf.inner {
				continue
			}
			text, err := read(document)
			if err != nil {
				return err
			}
			full.Write(text)
			full.WriteString("\n")
		}
	}
	b.assets[Texts[1]] = File{Texts[1], media, full.Bytes()}
	return nil
}
