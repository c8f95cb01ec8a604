package document

import (
	"fmt"
	"strconv"
)

// writeStructure writes the structure tree (ISO 32000-1, 14.7) and returns the
// catalog's entries for it; nothing for a document that is not tagged.
func (f *pdfFile) writeStructure(c *composition, pages []int) string {
	if c.on.root == nil {
		return ""
	}
	root := f.reserve()
	c.on.root.prune()
	c.on.root.reserve(f)
	p := &c.on.work.packer
	*p = packer{file: f, index: p.index[:0], body: p.body[:0], inside: p.inside[:0]}
	c.on.root.write(p, root, pages)
	parents := f.reserve()
	p.open(parents)
	p.body = append(p.body, "<</Nums["...)
	for i, s := range c.sheets {
		p.body = strconv.AppendInt(p.body, int64(i), 10)
		p.body = append(p.body, '[')
		for _, e := range s.marks {
			p.body = appendRef(p.body, e.number)
		}
		p.body = append(p.body, ']')
	}
	p.body = append(p.body, "]>>"...)
	p.shut()
	p.open(root)
	p.body = fmt.Appendf(p.body, "<</Type/StructTreeRoot/K %d 0 R/ParentTree %d 0 R/ParentTreeNextKey %d>>", c.on.root.number, parents, len(c.sheets))
	p.shut()
	p.flush()
	p.file = nil
	return fmt.Sprintf("/MarkInfo<</Marked true>>/StructTreeRoot %d 0 R", root)
}

// prune drops elements that nothing was drawn for.
func (e *element) prune() bool {
	kept := &e.first
	for kid := e.first; kid != nil; kid = kid.next {
		if kid.prune() {
			*kept = kid
			kept = &kid.next
		}
	}
	*kept = nil
	return e.first != nil || len(e.parts) > 0 || e.kind == "TD" || e.kind == "TH" // a row keeps its cells
}

func (e *element) reserve(f *pdfFile) {
	e.number = f.reserve()
	for kid := e.first; kid != nil; kid = kid.next {
		kid.reserve(f)
	}
}

// write writes an element and those within it. Its own content comes before
// its elements: an element has one or the other, but for figures with captions.
func (e *element) write(p *packer, parent int, pages []int) {
	p.open(e.number)
	p.body = append(p.body, "<</S/"...)
	p.body = append(p.body, e.kind...)
	p.body = append(p.body, "/P "...)
	p.body = appendRef(p.body, parent)
	p.body = append(p.body, e.extra...)
	if len(e.parts) > 0 {
		p.body = append(p.body, "/Pg "...)
		p.body = appendRef(p.body, pages[e.parts[0].sheet])
	}
	if len(e.parts) == 1 && e.first == nil {
		p.body = append(p.body, "/K "...)
		p.body = strconv.AppendInt(p.body, int64(e.parts[0].mcid), 10)
	} else {
		p.body = append(p.body, "/K["...)
		for _, m := range e.parts {
			if m.sheet == e.parts[0].sheet {
				p.body = strconv.AppendInt(p.body, int64(m.mcid), 10)
				p.body = append(p.body, ' ')
				continue
			}
			p.body = fmt.Appendf(p.body, "<</Type/MCR/Pg %d 0 R/MCID %d>>", pages[m.sheet], m.mcid)
		}
		for kid := e.first; kid != nil; kid = kid.next {
			p.body = appendRef(p.body, kid.number)
		}
		p.body = append(p.body, ']')
	}
	p.body = append(p.body, ">>"...)
	p.shut()
	for kid := e.first; kid != nil; kid = kid.next {
		kid.write(p, e.number, pages)
	}
}

func appendRef(out []byte, number int) []byte {
	return append(strconv.AppendInt(out, int64(number), 10), " 0 R "...)
}
