package typeset

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Face is one TrueType or OpenType font, parsed once per process and
// read-only after that. Only what a PDF needs is kept: the character map,
// advance widths and outlines; x/image/font/sfnt gives outlines as curves, but
// an embedded subset needs the glyph records themselves.
type Face struct {
	ID      int    // of this process: for cache keys, never for what is written
	Name    string // PostScript name
	Metrics Metrics
	Widths  []uint16 // advance per glyph in thousandths of an em, as PDF states them

	pages  [0x110000 >> 8]*[256]uint16 // glyph of a character, 0 where there is none
	blocks bool                        // subset by blocks of characters, see [Usage]
	ascii  [0x7F]uint16                // advance of a printable character, where the face leads a family

	unitsPerEm int
	hmtx       []byte
	metrics    int // glyphs with an advance of their own in hmtx
	head       []byte
	hhea       []byte
	maxp       []byte

	// One of the two kinds of outlines.
	loca []uint32
	glyf []byte
	cff  *cffFont

	shaping []byte // a font file with the tables that shaping reads and no outlines
}

// Metrics are a PDF font descriptor's numbers, in thousandths of an em.
type Metrics struct {
	Ascent, Descent, CapHeight int
	Box                        [4]int
	ItalicAngle                int
	Serif, Italic, Bold        bool
}

var (
	errTruncated   = errors.New("the font ends early")
	errNoOutlines  = errors.New("the font has no outlines that a document can embed")
	errMayNotEmbed = errors.New("the font does not permit to be embedded")
)

// shapingTables are what the shaper reads. Outlines stay out: those of a
// Chinese font would be held twice.
func shapingTables() []string {
	return []string{"GDEF", "GPOS", "GSUB", "OS/2", "cmap", "head", "hhea", "hmtx", "maxp", "name", "post"}
}

// parseFace reads a font of a file's tables. Fonts of the program must parse;
// one of a folder that does not is left out with the reason.
func parseFace(name string, tables map[string][]byte) (*Face, error) {
	for _, tag := range []string{"cmap", "head", "hhea", "hmtx", "maxp", "OS/2", "post"} {
		if len(tables[tag]) == 0 {
			return nil, fmt.Errorf("font %s has no table %s", name, tag)
		}
	}
	f := &Face{Name: name, head: tables["head"], hhea: tables["hhea"], maxp: tables["maxp"], hmtx: tables["hmtx"],
		glyf: tables["glyf"]}
	if len(f.head) < 54 || len(f.hhea) < 36 || len(f.maxp) < 6 || len(tables["OS/2"]) < 78 || len(tables["post"]) < 8 {
		return nil, errTruncated
	}
	if fsType := u16(tables["OS/2"], 8); fsType&0xF == 2 { // OpenType, OS/2: restricted licence
		return nil, errMayNotEmbed
	}
	f.unitsPerEm = int(u16(f.head, 18))
	f.metrics = int(u16(f.hhea, 34))
	count := int(u16(f.maxp, 4))
	if f.unitsPerEm == 0 || f.metrics == 0 || f.metrics > count || len(f.hmtx) < 4*f.metrics+2*(count-f.metrics) {
		return nil, fmt.Errorf("font %s has broken metrics", name)
	}
	if err := f.readOutlines(tables, count); err != nil {
		return nil, err
	}
	f.Widths = make([]uint16, count)
	for g := range f.Widths {
		f.Widths[g] = uint16(f.perMille(int(u16(f.hmtx, 4*min(g, f.metrics-1)))))
	}
	f.readMetrics(tables["OS/2"], tables["post"])
	if err := f.readCmap(tables["cmap"]); err != nil {
		return nil, err
	}
	var kept []sfntTable
	for _, tag := range shapingTables() {
		if len(tables[tag]) > 0 {
			kept = append(kept, sfntTable{tag, tables[tag]})
		}
	}
	f.shaping = sfntFile(kept)
	return f, nil
}

func (f *Face) readOutlines(tables map[string][]byte, count int) error {
	switch {
	case len(tables["CFF "]) > 0:
		var err error
		if f.cff, err = parseCFF(tables["CFF "]); err == nil && len(f.cff.charstrings) < count {
			err = errTruncated
		}
		return err
	case len(tables["glyf"]) > 0 && len(tables["loca"]) > 0 && len(f.maxp) >= 32:
		return f.readLoca(tables["loca"], count)
	}
	return errNoOutlines
}

// lead makes a face one of a family: it must have all of ASCII.
func (f *Face) lead() error {
	f.blocks = true
	for r := rune(0x20); r < 0x7F; r++ {
		glyph := f.Glyph(r)
		if glyph == 0 {
			return fmt.Errorf("font %s has no %q", f.Name, r)
		}
		f.ascii[r] = f.Widths[glyph]
	}
	return nil
}

// tableDirectory returns the tables of a font at an offset of a file.
func tableDirectory(raw []byte, at int) (map[string][]byte, error) {
	if at < 0 || len(raw) < at+12 || len(raw) < at+12+16*int(u16(raw, at+4)) {
		return nil, errTruncated
	}
	tables := make(map[string][]byte)
	for i := range int(u16(raw, at+4)) {
		entry := raw[at+12+16*i:]
		offset, length := uint64(u32(entry, 8)), uint64(u32(entry, 12))
		if offset+length > uint64(len(raw)) {
			return nil, errTruncated
		}
		tables[string(entry[:4])] = raw[offset : offset+length]
	}
	return tables, nil
}

func (f *Face) readLoca(loca []byte, count int) error {
	long := u16(f.head, 50) == 1
	if (long && len(loca) < 4*(count+1)) || (!long && len(loca) < 2*(count+1)) {
		return errTruncated
	}
	f.loca = make([]uint32, count+1)
	for i := range f.loca {
		if long {
			f.loca[i] = u32(loca, 4*i)
		} else {
			f.loca[i] = 2 * uint32(u16(loca, 2*i))
		}
		if int64(f.loca[i]) > int64(len(f.glyf)) || (i > 0 && f.loca[i] < f.loca[i-1]) {
			return fmt.Errorf("font %s has glyphs out of order", f.Name)
		}
	}
	return nil
}

func (f *Face) readMetrics(os2, post []byte) {
	selection := u16(os2, 62)
	f.Metrics = Metrics{
		Ascent:  f.perMille(i16(f.hhea, 4)),
		Descent: f.perMille(i16(f.hhea, 6)),
		Box: [4]int{f.perMille(i16(f.head, 36)), f.perMille(i16(f.head, 38)), f.perMille(i16(f.head, 40)),
			f.perMille(i16(f.head, 42))},
		ItalicAngle: int(int32(u32(post, 4))) >> 16,
		Italic:      selection&1 != 0,
		Bold:        selection&(1<<5) != 0,
	}
	f.Metrics.CapHeight = f.Metrics.Ascent * 3 / 4
	if u16(os2, 0) >= 2 && len(os2) >= 90 {
		f.Metrics.CapHeight = f.perMille(i16(os2, 88))
	}
}

// readCmap reads the Unicode map: that of all planes where there is one
// (format 12), that of the basic plane otherwise (format 4).
func (f *Face) readCmap(cmap []byte) error {
	if len(cmap) < 4 || len(cmap) < 4+8*int(u16(cmap, 2)) {
		return errTruncated
	}
	basic := -1
	for i := range int(u16(cmap, 2)) {
		record := cmap[4+8*i:]
		platform, encoding, offset := u16(record, 0), u16(record, 2), u32(record, 4)
		unicode := platform == 0 || (platform == 3 && (encoding == 1 || encoding == 10))
		if !unicode || uint64(offset)+16 > uint64(len(cmap)) {
			continue
		}
		switch u16(cmap, int(offset)) {
		case 12:
			return f.readGroups(cmap[offset:])
		case 4:
			basic = int(offset)
		}
	}
	if basic < 0 {
		return fmt.Errorf("font %s has no Unicode map", f.Name)
	}
	return f.readSegments(cmap[basic:])
}

func (f *Face) readGroups(table []byte) error {
	count := int(u32(table, 12))
	if count > len(table)/12 || len(table) < 16+12*count {
		return errTruncated
	}
	for i := range count {
		group := table[16+12*i:]
		first, last, glyph := u32(group, 0), u32(group, 4), u32(group, 8)
		if first > last || last > 0x10FFFF {
			return fmt.Errorf("font %s has a broken Unicode map", f.Name)
		}
		for c := first; c <= last; c++ {
			f.mapRune(rune(c), int(glyph+c-first))
		}
	}
	return nil
}

func (f *Face) mapRune(r rune, glyph int) {
	if glyph <= 0 || glyph >= len(f.Widths) {
		return
	}
	if f.pages[r>>8] == nil {
		f.pages[r>>8] = new([256]uint16)
	}
	f.pages[r>>8][r&0xFF] = uint16(glyph)
}

func (f *Face) readSegments(table []byte) error {
	count := int(u16(table, 6)) / 2
	if len(table) < 16+8*count {
		return errTruncated
	}
	ends, starts := table[14:], table[16+2*count:]
	deltas, offsets := table[16+4*count:], table[16+6*count:]
	for s := range count {
		start, end := int(u16(starts, 2*s)), int(u16(ends, 2*s))
		delta, offset := int(u16(deltas, 2*s)), int(u16(offsets, 2*s))
		for c := start; c <= end && c < 0xFFFF; c++ {
			glyph := c
			if offset != 0 {
				at := 2*s + offset + 2*(c-start)
				if at+2 > len(offsets) {
					return errTruncated
				}
				if glyph = int(u16(offsets, at)); glyph == 0 {
					continue
				}
			}
			f.mapRune(rune(c), (glyph+delta)&0xFFFF)
		}
	}
	return nil
}

// Glyph returns the glyph of a character, 0 where the face has none.
func (f *Face) Glyph(r rune) uint16 {
	if r < 0 || r > 0x10FFFF || f.pages[r>>8] == nil {
		return 0
	}
	return f.pages[r>>8][r&0xFF]
}

// perMille turns font units into thousandths of an em, rounded.
func (f *Face) perMille(v int) int {
	if v < 0 {
		return -f.perMille(-v)
	}
	return (v*1000 + f.unitsPerEm/2) / f.unitsPerEm
}

func u16(b []byte, at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
func i16(b []byte, at int) int    { return int(int16(u16(b, at))) }
