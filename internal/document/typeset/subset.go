package typeset

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Key names what a document embeds of a face.
//
// Exact sets would differ from one document to the next, and every document
// would pay for cutting and compressing fonts: most of its time. So for the
// faces of the program a set is rounded up to blocks of characters; documents
// of one language then share their subsets, which are cut once, for a few
// kilobytes more in each file. Glyphs outside the blocks become a second, exact
// subset of the face: they are few, and a rare letter does not make the common
// ones be cut again. Faces of thousands of signs are cut exactly.
type Key struct {
	Face   int
	blocks uint32
	others string // glyphs with what they stand for, see encodeOthers; empty where there are blocks
}

// charBlock is a range of characters that is embedded as a whole.
type charBlock struct{ first, last rune }

// commonBlocks are part of every subset with blocks: ASCII, the euro and the minus sign.
const commonBlocks = 1<<0 | 1<<6 | 1<<7

// The blocks, by position in Key.blocks.
func charBlocks() [9]charBlock {
	return [9]charBlock{
		{0x20, 0x7E},     // ASCII
		{0xA0, 0xFF},     // Latin-1
		{0x100, 0x17F},   // Latin Extended-A
		{0x384, 0x3CE},   // Greek
		{0x400, 0x45F},   // Cyrillic
		{0x2010, 0x2026}, // dashes, quotation marks, ellipsis
		{0x20AC, 0x20AC}, // euro
		{0x2212, 0x2212}, // minus
		{0x1EA0, 0x1EF9}, // Vietnamese
	}
}

// Nothing is the number of a glyph that shows nothing and takes no room. Every
// subset of TrueType outlines can have it: it carries letters of a ligature that
// have no glyph of their own, so that readers find them in their order.
const Nothing = 0xFFFF

// coded is what a code of an exact subset shows and stands for.
type coded struct {
	glyph uint16
	text  string
}

// Usage collects what a document draws of one face.
type Usage struct {
	face   *Face
	blocks uint32
	others map[uint16]coded
	codes  map[coded]uint16
}

// NewUsage begins with nothing.
func NewUsage(f *Face) *Usage { return &Usage{face: f} }

// AddRune notes a character drawn with its own glyph, and returns its code and
// whether it is one outside the blocks.
func (u *Usage) AddRune(r rune, glyph uint16) (code uint16, rare bool) {
	if u.face.blocks {
		if r < 0x7F {
			u.blocks |= 1
			return glyph, false
		}
		for i, b := range charBlocks() {
			if r >= b.first && r <= b.last {
				u.blocks |= 1 << i
				return glyph, false
			}
		}
	}
	return u.code(coded{glyph, string(r)}), true
}

// AddGlyph notes a glyph that stands for a text, and returns its code. The same
// glyph has a code for each text it stands for.
func (u *Usage) AddGlyph(glyph uint16, text string) (code uint16, rare bool) {
	if u.face.blocks {
		if r := []rune(text); len(r) == 1 && u.face.Glyph(r[0]) == glyph {
			return u.AddRune(r[0], glyph)
		}
	}
	return u.code(coded{glyph, text}), true
}

// code is the glyph's own number where it is free: most are.
func (u *Usage) code(c coded) uint16 {
	if code, ok := u.codes[c]; ok {
		return code
	}
	if u.codes == nil {
		u.codes, u.others = make(map[coded]uint16), make(map[uint16]coded)
	}
	code := c.glyph
	for _, taken := u.others[code]; taken || code == Nothing || code == 0; _, taken = u.others[code] {
		code--
	}
	u.codes[c], u.others[code] = code, c
	return code
}

// Keys names the subsets that are needed: of blocks, and of others. A nil one is not.
func (u *Usage) Keys() (blocks, others *Key) {
	if u.blocks != 0 {
		blocks = &Key{Face: u.face.ID, blocks: u.blocks | commonBlocks}
	}
	if len(u.others) > 0 {
		others = &Key{Face: u.face.ID, others: encodeOthers(u.others)}
	}
	return blocks, others
}

// encodeOthers writes codes in order, each followed by its glyph, its text and a zero byte.
func encodeOthers(others map[uint16]coded) string {
	var out strings.Builder
	for _, code := range slices.Sorted(maps.Keys(others)) {
		c := others[code]
		out.Write([]byte{byte(code >> 8), byte(code), byte(c.glyph >> 8), byte(c.glyph)})
		out.WriteString(c.text)
		out.WriteByte(0)
	}
	return out.String()
}

// entry is a code of a subset.
type entry struct {
	code, glyph uint16
	text        string // "" for a part of a sign
}

// entries lists what a key stands for, in order of its codes.
func (k Key) entries(f *Face) []entry {
	var out []entry
	for i, b := range charBlocks() {
		if k.blocks&(1<<i) == 0 {
			continue
		}
		for r := b.first; r <= b.last; r++ {
			if g := f.Glyph(r); g != 0 {
				out = append(out, entry{g, g, string(r)})
			}
		}
	}
	for rest := k.others; len(rest) > 4; {
		e := entry{code: uint16(rest[0])<<8 | uint16(rest[1]), glyph: uint16(rest[2])<<8 | uint16(rest[3])}
		e.text, rest, _ = strings.Cut(rest[4:], "\x00")
		if e.text == "" {
			e.text = unsaid
		}
		out = append(out, e)
	}
	// One glyph of a block may serve several characters. A reader's copy and
	// search want the letter, not the sign: mu, not micro; a blank, not a
	// no-break blank.
	slices.SortStableFunc(out, func(a, b entry) int { return int(a.code) - int(b.code) })
	kept := out[:0]
	for _, e := range out {
		switch last := len(kept) - 1; {
		case last < 0 || kept[last].code != e.code:
			kept = append(kept, e)
		case kept[last].text == "µ":
			kept[last] = e
		}
	}
	return kept
}

// unsaid is what a glyph stands for that is a part of a sign and never the
// whole: PDF/A wants a value, and readers take the text around it from
// ActualText.
const unsaid = "\u200B"

// Subset is a face cut down for embedding.
type Subset struct {
	Face      *Face
	Name      string // ABCDEF+Name
	Program   []byte
	Compact   bool   // Program is a bare CFF font keyed by CID, not TrueType
	CIDToGID  []byte // TrueType alone
	ToUnicode []byte
	Widths    []byte // the W array
}

// Cut cuts the subset of a key from its face.
func Cut(f *Face, k Key) (*Subset, error) {
	entries := k.entries(f)
	out := &Subset{Face: f, Name: subsetTag(entries) + "+" + f.Name, ToUnicode: toUnicodeMap(entries),
		Widths: f.widthArray(entries)}
	var err error
	if f.cff != nil {
		out.Compact = true
		out.Program, err = f.cff.program(out.Name, entries)
		return out, err
	}
	glyphs, err := f.closure(entries)
	if err != nil {
		return nil, err
	}
	if out.Program, err = f.program(glyphs); err != nil {
		return nil, fmt.Errorf("cutting %s: %w", f.Name, err)
	}
	out.CIDToGID = make([]byte, 2*(int(entries[len(entries)-1].code)+1))
	for _, e := range entries {
		at, ok := slices.BinarySearch(glyphs, e.glyph)
		if !ok {
			return nil, fmt.Errorf("cutting %s: glyph %d was lost", f.Name, e.glyph)
		}
		binary.BigEndian.PutUint16(out.CIDToGID[2*int(e.code):], uint16(at))
	}
	return out, nil
}
