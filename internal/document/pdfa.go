package document

import (
	"context"
	"fmt"
	"time"
)

// The file is written here, object by object, instead of by a PDF library:
// docs/decisions/0034-pdf-writer.md has the measurements. It is ISO 32000-1
// (PDF 1.7) within the limits of ISO 19005-3 (PDF/A-3), level U.

// write turns composed pages into the file.
func (r *Renderer) write(ctx context.Context, v *Visual, p *composition) ([]byte, error) {
	f := newPDFFile(p.on.work, &r.deflate)
	catalog, tree, info := f.reserve(), f.reserve(), f.reserve()
	meta := p.doc.metadata(v)
	xmp := f.stream("/Type/Metadata/Subtype/XML", meta.xmp(v.FacturX, p.on.root != nil))
	profile := f.share("/N 3/Filter/FlateDecode", r.profile)
	resources, err := r.writeResources(f, p)
	if err != nil {
		return nil, err
	}
	pages := make([]int, len(p.sheets))
	var kids []byte
	for i, s := range p.sheets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		content := f.pack("", s.out)
		bottom, parents := length(0), ""
		if p.on.paper.roll {
			bottom = p.on.paper.height - s.height
		}
		if p.on.root != nil {
			parents = fmt.Sprintf("/StructParents %d/Tabs/S", i)
		}
		pages[i] = f.add("<</Type/Page/Parent %d 0 R/MediaBox[0 %s %s %s]/Resources %d 0 R/Contents %d 0 R%s>>",
			tree, bottom, p.on.paper.width, p.on.paper.height, resources, content, parents)
		kids = fmt.Appendf(kids, "%d 0 R ", pages[i])
	}
	f.object(tree, "<</Type/Pages/Count %d/Kids[%s]>>", len(p.sheets), kids)
	f.object(info, "<</Title %s/Author %s/Creator %s/Producer %s/CreationDate %s/ModDate %s>>", pdfText(meta.title), pdfText(meta.author),
		pdfText(producer), pdfText(producer), pdfDate(meta.at), pdfDate(meta.at))
	direction := ""
	if p.on.rtl {
		direction = "/Direction/R2L"
	}
	f.object(catalog, "<</Type/Catalog/Pages %d 0 R/Metadata %d 0 R/Lang %s/ViewerPreferences<</DisplayDocTitle true%s>>"+
		"/OutputIntents[<</Type/OutputIntent/S/GTS_PDFA1/OutputConditionIdentifier(sRGB IEC61966-2.1)/Info(sRGB IEC61966-2.1)/DestOutputProfile %d 0 R>>]%s%s>>",
		tree, xmp, pdfText(p.doc.words.Tag), direction, profile, f.writeFiles(v.Files), f.writeStructure(p, pages))
	f.finish(catalog, info)
	return p.on.work.keep(f), nil
}

// writeResources writes fonts and logo, and returns the dictionary that all pages share.
func (r *Renderer) writeResources(f *pdfFile, p *composition) (int, error) {
	var fonts []byte
	for i, use := range p.on.fonts {
		blocks, others := p.on.used[use.face.ID].Keys()
		key := blocks
		if use.rare {
			key = others
		}
		sub, err := r.subset(*key)
		if err != nil {
			return 0, err
		}
		fonts = fmt.Appendf(fonts, "/F%d %d 0 R", i, sub.write(f))
	}
	pictures := ""
	if p.logo != nil {
		n := f.share(fmt.Sprintf("/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter%s",
			p.logo.width, p.logo.height, p.logo.filter), p.logo.data)
		pictures = fmt.Sprintf("/XObject<</Logo %d 0 R>>", n)
	}
	return f.add("<</Font<<%s>>%s>>", fonts, pictures), nil
}

// pdfText writes a text string, see [appendText].
func pdfText(s string) string { return string(appendText(nil, s)) }

// appendText writes a text string: plain where it is printable ASCII, UTF-16 in
// hexadecimal otherwise, so that no byte of a client stands raw in the file.
func appendText(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7E {
			return appendUTF16(out, s)
		}
	}
	out = append(out, '(')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '(' || c == ')' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return append(out, ')')
}

// pdfName writes a name object, everything unusual as #xx.
func pdfName(s string) string {
	out := []byte{'/'}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '+' {
			out = append(out, c)
		} else {
			out = fmt.Appendf(out, "#%02X", c)
		}
	}
	return string(out)
}

func pdfDate(t time.Time) string { return t.UTC().Format("(D:20060102150405Z)") }
