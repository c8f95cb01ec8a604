package document

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// subsetBytesMax bounds the memory of kept subsets. A subset of the common
// blocks takes about 25 KB, so this is hundreds of them, far more than a set of
// countries and fonts gives rise to.
const subsetBytesMax = 16 << 20

// A subsetKey names the characters of a face that a document embeds.
//
// Exact sets would differ from one document to the next, and every document
// would pay for cutting and compressing fonts: most of its time. So a set is
// rounded up to blocks of characters; documents of one language then share
// their subsets, which are cut once, for a few kilobytes more in each file.
// Characters outside the blocks become a second, exact subset of the face:
// they are few, and a rare letter does not make the common ones be cut again.
type subsetKey struct {
	face   int
	blocks uint32
	others string // sorted characters; empty where there are blocks
}

// fontUse is a face as a page names it: for characters of blocks, or for others.
type fontUse struct {
	face *face
	rare bool
}

func (u fontUse) resource() string {
	if u.rare {
		return "R" + strconv.Itoa(u.face.id)
	}
	return "F" + strconv.Itoa(u.face.id)
}

// charBlock is a range of characters that is embedded as a whole.
type charBlock struct{ first, last rune }

// commonBlocks are part of every subset with blocks: ASCII, the euro and the minus sign.
const commonBlocks = 1<<0 | 1<<6 | 1<<7

// The blocks, by position in subsetKey.blocks.
func charBlocks() [8]charBlock {
	return [8]charBlock{
		{0x20, 0x7E},     // ASCII
		{0xA0, 0xFF},     // Latin-1
		{0x100, 0x17F},   // Latin Extended-A
		{0x384, 0x3CE},   // Greek
		{0x400, 0x45F},   // Cyrillic
		{0x2010, 0x2026}, // dashes, quotation marks, ellipsis
		{0x20AC, 0x20AC}, // euro
		{0x2212, 0x2212}, // minus
	}
}

// subset is a face cut down for embedding, with its streams compressed and its
// object bodies written: per document they are only copied.
type subset struct {
	face      *face
	name      string // ABCDEF+Name
	program   []byte // deflated TrueType
	length    int    // of the program before deflation
	cidToGID  []byte // deflated
	toUnicode []byte // deflated
	widths    []byte // the W array
}

func (s *subset) size() int {
	return len(s.program) + len(s.cidToGID) + len(s.toUnicode) + len(s.widths) + 256
}

// usage collects the characters of one face that a document draws.
type usage struct {
	blocks uint32
	others map[rune]struct{}
}

// add notes a character, and reports whether it is one outside the blocks.
func (u *usage) add(f *face, r rune) (rare bool) {
	if f.blocks {
		for i, b := range charBlocks() {
			if r >= b.first && r <= b.last {
				u.blocks |= 1 << i
				return false
			}
		}
	}
	if u.others == nil {
		u.others = make(map[rune]struct{})
	}
	u.others[r] = struct{}{}
	return true
}

// keys names the subsets that are needed, by the way pages name them.
func (u *usage) keys(f *face) map[fontUse]subsetKey {
	keys := make(map[fontUse]subsetKey, 2)
	if u.blocks != 0 {
		keys[fontUse{f, false}] = subsetKey{face: f.id, blocks: u.blocks | commonBlocks}
	}
	if len(u.others) > 0 {
		others := slices.Sorted(maps.Keys(u.others))
		keys[fontUse{f, true}] = subsetKey{face: f.id, others: string(others)}
	}
	return keys
}

// characters lists what a key stands for, in order, without those the face lacks.
func (k subsetKey) characters(f *face) []rune {
	var runes []rune
	for i, b := range charBlocks() {
		if k.blocks&(1<<i) == 0 {
			continue
		}
		for r := b.first; r <= b.last; r++ {
			if f.glyph(r) != 0 {
				runes = append(runes, r)
			}
		}
	}
	return append(runes, []rune(k.others)...)
}

// subset returns the subset of a key, cut now or kept from an earlier document.
func (r *Renderer) subset(key subsetKey) (*subset, error) {
	return r.subsets.get(key, func() (*subset, error) {
		f := r.library.faces[key.face]
		return r.cut(f, key.characters(f))
	})
}

func (r *Renderer) cut(f *face, runes []rune) (*subset, error) {
	unicode := make(map[uint16]rune, len(runes))
	for _, c := range runes {
		g := f.glyph(c)
		// One glyph may serve several characters. A reader's copy and search
		// want the letter, not the sign: mu, not micro; a blank, not a
		// no-break blank.
		if had, ok := unicode[g]; !ok || had == 'µ' {
			unicode[g] = c
		}
	}
	glyphs, err := f.closure(unicode)
	if err != nil {
		return nil, err
	}
	program, err := f.program(glyphs)
	if err != nil {
		return nil, err
	}
	last := int(glyphs[len(glyphs)-1])
	toGID := make([]byte, 2*(last+1))
	for i, g := range glyphs {
		binary.BigEndian.PutUint16(toGID[2*int(g):], uint16(i))
	}
	return &subset{
		face:      f,
		name:      subsetTag(glyphs) + "+" + f.name,
		program:   r.deflate.best(program),
		length:    len(program),
		cidToGID:  r.deflate.best(toGID),
		toUnicode: r.deflate.best(toUnicodeMap(glyphs, unicode)),
		widths:    f.widthArray(glyphs),
	}, nil
}

// closure returns the glyphs with .notdef and the parts that composed glyphs are made of, in order.
func (f *face) closure(wanted map[uint16]rune) ([]uint16, error) {
	seen := map[uint16]bool{0: true}
	queue := []uint16{0}
	for g := range wanted {
		if !seen[g] {
			seen[g] = true
			queue = append(queue, g)
		}
	}
	for i := 0; i < len(queue); i++ {
		err := f.components(f.outline(queue[i]), func(part []byte) {
			if g := u16(part, 2); !seen[g] {
				seen[g] = true
				queue = append(queue, g)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(queue)
	if int(queue[len(queue)-1]) >= len(f.widths) {
		return nil, fmt.Errorf("font %s composes a glyph it does not have", f.name)
	}
	return queue, nil
}

// outline returns a glyph's record; empty for a blank.
func (f *face) outline(g uint16) []byte {
	if int(g)+1 >= len(f.loca) {
		return nil
	}
	return f.glyf[f.loca[g]:f.loca[g+1]]
}

// Flags of a component (OpenType, glyf table).
const (
	argsAreWords     = 0x0001
	haveScale        = 0x0008
	moreComponents   = 0x0020
	haveXYScale      = 0x0040
	haveMatrix       = 0x0080
	haveInstructions = 0x0100
)

// components calls fn with each component record of a composed glyph.
func (f *face) components(outline []byte, fn func(part []byte)) error {
	if len(outline) < 10 || i16(outline, 0) >= 0 {
		return nil
	}
	for at := 10; ; {
		if at+4 > len(outline) {
			return errTruncated
		}
		flags, length := u16(outline, at), 6
		if flags&argsAreWords != 0 {
			length += 2
		}
		switch {
		case flags&haveScale != 0:
			length += 2
		case flags&haveXYScale != 0:
			length += 4
		case flags&haveMatrix != 0:
			length += 8
		}
		if at+length > len(outline) {
			return errTruncated
		}
		fn(outline[at : at+length])
		if at += length; flags&moreComponents == 0 {
			return nil
		}
	}
}

// program writes the subset as a TrueType font with glyphs numbered from 0.
// Instructions are left out with the tables they need: they grid-fit glyphs on
// coarse screens, which paper and today's readers do not ask for.
func (f *face) program(glyphs []uint16) ([]byte, error) {
	renumbered := make(map[uint16]uint16, len(glyphs))
	for i, g := range glyphs {
		renumbered[g] = uint16(i)
	}
	var glyf, hmtx []byte
	loca := make([]byte, 0, 4*(len(glyphs)+1))
	for _, g := range glyphs {
		loca = binary.BigEndian.AppendUint32(loca, uint32(len(glyf)))
		outline, err := f.bare(f.outline(g), renumbered)
		if err != nil {
			return nil, err
		}
		glyf = append(glyf, outline...)
		for len(glyf)%4 != 0 {
			glyf = append(glyf, 0)
		}
		hmtx = append(hmtx, f.metricsOf(g)...)
	}
	loca = binary.BigEndian.AppendUint32(loca, uint32(len(glyf)))
	head, hhea, maxp := slices.Clone(f.head), slices.Clone(f.hhea), slices.Clone(f.maxp)
	binary.BigEndian.PutUint32(head[8:], 0)  // checksum, set below
	binary.BigEndian.PutUint16(head[50:], 1) // long offsets
	binary.BigEndian.PutUint16(hhea[34:], uint16(len(glyphs)))
	binary.BigEndian.PutUint16(maxp[4:], uint16(len(glyphs)))
	binary.BigEndian.PutUint16(maxp[26:], 0) // instructions
	return sfntFile([]sfntTable{{"glyf", glyf}, {"head", head}, {"hhea", hhea}, {"hmtx", hmtx}, {"loca", loca}, {"maxp", maxp}}), nil
}

// metricsOf returns a glyph's advance and left side bearing as hmtx states them.
func (f *face) metricsOf(g uint16) []byte {
	i := int(g)
	if i < f.metrics {
		return f.hmtx[4*i : 4*i+4]
	}
	advance := f.hmtx[4*(f.metrics-1):]
	bearing := f.hmtx[4*f.metrics+2*(i-f.metrics):]
	return []byte{advance[0], advance[1], bearing[0], bearing[1]}
}

// bare returns a glyph record without instructions, its components renumbered.
func (f *face) bare(outline []byte, renumbered map[uint16]uint16) ([]byte, error) {
	if len(outline) == 0 {
		return nil, nil
	}
	if len(outline) < 10 {
		return nil, errTruncated
	}
	contours := i16(outline, 0)
	if contours >= 0 {
		at := 10 + 2*contours
		if at+2 > len(outline) || at+2+int(u16(outline, at)) > len(outline) {
			return nil, errTruncated
		}
		out := append(slices.Clone(outline[:at]), 0, 0)
		return append(out, outline[at+2+int(u16(outline, at)):]...), nil
	}
	out := slices.Clone(outline[:10])
	err := f.components(outline, func(part []byte) {
		part = slices.Clone(part)
		binary.BigEndian.PutUint16(part, u16(part, 0)&^haveInstructions)
		binary.BigEndian.PutUint16(part[2:], renumbered[u16(part, 2)])
		out = append(out, part...)
	})
	return out, err
}

type sfntTable struct {
	tag  string
	data []byte
}

// sfntFile writes a font file of tables that are given in order of their tags.
func sfntFile(tables []sfntTable) []byte {
	power, log := 1, 0
	for power*2 <= len(tables) {
		power, log = power*2, log+1
	}
	out := []byte{0, 1, 0, 0}
	for _, v := range []int{len(tables), power * 16, log, (len(tables) - power) * 16} {
		out = binary.BigEndian.AppendUint16(out, uint16(v))
	}
	offset, head := 12+16*len(tables), 0
	for _, t := range tables {
		if t.tag == "head" {
			head = offset
		}
		out = append(out, t.tag...)
		out = binary.BigEndian.AppendUint32(out, checksum(t.data))
		out = binary.BigEndian.AppendUint32(out, uint32(offset))
		out = binary.BigEndian.AppendUint32(out, uint32(len(t.data)))
		offset += (len(t.data) + 3) &^ 3
	}
	for _, t := range tables {
		out = append(out, t.data...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	binary.BigEndian.PutUint32(out[head+8:], 0xB1B0AFBA-checksum(out))
	return out
}

func checksum(b []byte) uint32 {
	var sum uint32
	for ; len(b) >= 4; b = b[4:] {
		sum += u32(b, 0)
	}
	var rest [4]byte
	copy(rest[:], b)
	return sum + u32(rest[:], 0)
}
