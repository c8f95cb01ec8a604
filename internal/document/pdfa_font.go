package document

import (
	"fmt"

	"tributary/internal/document/typeset"
)

// subsetBytesMax bounds the memory of kept subsets. A subset of the common
// blocks takes about 25 KB, so this is hundreds of them, far more than a set of
// countries and fonts gives rise to.
const subsetBytesMax = 16 << 20

// embedded is a subset as documents write it: its streams deflated, its objects
// as texts around the numbers of others, see [pdfFile.join]. Per document it is
// only copied.
type embedded struct {
	program, toGID, toUnicode    blob // toGID is empty for a compact font
	dict                         string
	descriptor, descendant, font []string
}

func (e *embedded) Size() int {
	total := len(e.program.data) + len(e.toGID.data) + len(e.toUnicode.data) + 512
	for _, text := range e.descendant {
		total += len(text)
	}
	return total
}

// subset returns the subset of a key, cut now or kept from an earlier document.
func (r *Renderer) subset(key typeset.Key) (*embedded, error) {
	return r.subsets.Get(key, func() (*embedded, error) {
		cut, err := typeset.Cut(r.library.Face(key.Face), key)
		if err != nil {
			return nil, err
		}
		e := newEmbedded(cut)
		e.program, e.toUnicode = r.deflate.best(cut.Program), r.deflate.best(cut.ToUnicode)
		if !cut.Compact {
			e.toGID = r.deflate.best(cut.CIDToGID)
		}
		return e, nil
	})
}

// newEmbedded writes the objects of a composite font whose codes are the glyph
// numbers of the whole face: page contents do not depend on how it was cut.
func newEmbedded(s *typeset.Subset) *embedded {
	m, kind, file, toGID := s.Face.Metrics, "CIDFontType2", "FontFile2", []string{"/CIDToGIDMap ", ">>"}
	e := &embedded{dict: fmt.Sprintf("/Filter/FlateDecode/Length1 %d", len(s.Program))}
	if s.Compact {
		kind, file, toGID = "CIDFontType0", "FontFile3", []string{">>"}
		e.dict = "/Filter/FlateDecode/Subtype/CIDFontType0C"
	}
	e.descriptor = []string{
		fmt.Sprintf("<</Type/FontDescriptor/FontName/%s/Flags %d/FontBBox[%d %d %d %d]/ItalicAngle %d/Ascent %d/Descent %d/CapHeight %d/StemV %d/%s ",
			s.Name, m.Flags(), m.Box[0], m.Box[1], m.Box[2], m.Box[3], m.ItalicAngle, m.Ascent, m.Descent, m.CapHeight, m.Stem(), file), ">>"}
	toGID[0] = fmt.Sprintf("/W %s%s", s.Widths, toGID[0])
	e.descendant = append([]string{
		fmt.Sprintf("<</Type/Font/Subtype/%s/BaseFont/%s/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor ", kind, s.Name)}, toGID...)
	e.font = []string{fmt.Sprintf("<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H/DescendantFonts[", s.Name), "]/ToUnicode ", ">>"}
	return e
}

func (e *embedded) write(f *pdfFile) int {
	toGID := 0
	if len(e.toGID.data) > 0 {
		toGID = f.share("/Filter/FlateDecode", e.toGID)
	}
	program := f.share(e.dict, e.program)
	descriptor := f.join(e.descriptor, program)
	descendant := f.join(e.descendant, descriptor, toGID)
	unicode := f.share("/Filter/FlateDecode", e.toUnicode)
	return f.join(e.font, descendant, unicode)
}
