package document

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A face is one TrueType font, parsed once per process and read-only after
// that. Only what a PDF needs is kept: the character map, advance widths and
// outlines; x/image/font/sfnt gives outlines as curves, but an embedded subset
// needs the glyph records themselves.
type face struct {
	id     int    // position in the library: part of resource names and cache keys
	name   string // PostScript name
	layout faceMetrics
	pages  [256]*[256]uint16 // glyph of a character in the basic plane, 0 where there is none
	widths []uint16          // advance per glyph in thousandths of an em, as PDF states them
	blocks bool              // subset by blocks of characters, see [subsetKey]

	unitsPerEm int
	hmtx       []byte
	metrics    int // glyphs with an advance of their own in hmtx
	loca       []uint32
	glyf       []byte
	head       []byte
	hhea       []byte
	maxp       []byte
}

// faceMetrics are a PDF font descriptor's numbers, in thousandths of an em.
type faceMetrics struct {
	ascent, descent, capHeight int
	box                        [4]int
	italicAngle                int
	serif, italic, bold        bool
}

var errTruncated = errors.New("the font ends early")

// parseFace reads a TrueType font. Fonts are part of the program, so the
// checks exist to fail at start instead of drawing nonsense.
func parseFace(name string, raw []byte) (*face, error) {
	tables, err := tableDirectory(raw)
	if err != nil {
		return nil, err
	}
	for _, tag := range []string{"cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "OS/2", "post"} {
		if len(tables[tag]) == 0 {
			return nil, fmt.Errorf("font %s has no table %s", name, tag)
		}
	}
	f := &face{name: name, head: tables["head"], hhea: tables["hhea"], maxp: tables["maxp"], hmtx: tables["hmtx"], glyf: tables["glyf"]}
	if len(f.head) < 54 || len(f.hhea) < 36 || len(f.maxp) < 32 || len(tables["OS/2"]) < 78 || len(tables["post"]) < 8 {
		return nil, errTruncated
	}
	f.unitsPerEm = int(u16(f.head, 18))
	f.metrics = int(u16(f.hhea, 34))
	count := int(u16(f.maxp, 4))
	if f.unitsPerEm == 0 || f.metrics == 0 || f.metrics > count || len(f.hmtx) < 4*f.metrics+2*(count-f.metrics) {
		return nil, fmt.Errorf("font %s has broken metrics", name)
	}
	if err := f.readLoca(tables["loca"], count); err != nil {
		return nil, err
	}
	f.widths = make([]uint16, count)
	for g := range f.widths {
		f.widths[g] = uint16(f.perMille(int(u16(f.hmtx, 4*min(g, f.metrics-1)))))
	}
	f.readMetrics(tables["OS/2"], tables["post"])
	return f, f.readCmap(tables["cmap"])
}

func tableDirectory(raw []byte) (map[string][]byte, error) {
	if len(raw) < 12 || len(raw) < 12+16*int(u16(raw, 4)) {
		return nil, errTruncated
	}
	tables := make(map[string][]byte)
	for i := range int(u16(raw, 4)) {
		entry := raw[12+16*i:]
		offset, length := uint64(u32(entry, 8)), uint64(u32(entry, 12))
		if offset+length > uint64(len(raw)) {
			return nil, errTruncated
		}
		tables[string(entry[:4])] = raw[offset : offset+length]
	}
	return tables, nil
}

func (f *face) readLoca(loca []byte, count int) error {
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
		if int(f.loca[i]) > len(f.glyf) || (i > 0 && f.loca[i] < f.loca[i-1]) {
			return fmt.Errorf("font %s has glyphs out of order", f.name)
		}
	}
	return nil
}

func (f *face) readMetrics(os2, post []byte) {
	selection := u16(os2, 62)
	f.layout = faceMetrics{
		ascent:      f.perMille(i16(f.hhea, 4)),
		descent:     f.perMille(i16(f.hhea, 6)),
		box:         [4]int{f.perMille(i16(f.head, 36)), f.perMille(i16(f.head, 38)), f.perMille(i16(f.head, 40)), f.perMille(i16(f.head, 42))},
		italicAngle: int(int32(u32(post, 4))) >> 16,
		italic:      selection&1 != 0,
		bold:        selection&(1<<5) != 0,
	}
	f.layout.capHeight = f.layout.ascent * 3 / 4
	if u16(os2, 0) >= 2 && len(os2) >= 90 {
		f.layout.capHeight = f.perMille(i16(os2, 88))
	}
}

// readCmap reads the Unicode map of the basic plane, format 4: every font has
// one, and the scripts that documents promise lie within it.
func (f *face) readCmap(cmap []byte) error {
	if len(cmap) < 4 || len(cmap) < 4+8*int(u16(cmap, 2)) {
		return errTruncated
	}
	for i := range int(u16(cmap, 2)) {
		record := cmap[4+8*i:]
		platform, encoding, offset := u16(record, 0), u16(record, 2), u32(record, 4)
		unicode := platform == 0 || (platform == 3 && encoding == 1)
		if unicode && uint64(offset)+16 <= uint64(len(cmap)) && u16(cmap, int(offset)) == 4 {
			return f.readSegments(cmap[offset:])
		}
	}
	return fmt.Errorf("font %s has no Unicode map", f.name)
}

func (f *face) readSegments(table []byte) error {
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
			glyph = (glyph + delta) & 0xFFFF
			if glyph == 0 || glyph >= len(f.widths) {
				continue
			}
			if f.pages[c>>8] == nil {
				f.pages[c>>8] = new([256]uint16)
			}
			f.pages[c>>8][c&0xFF] = uint16(glyph)
		}
	}
	return nil
}

// glyph returns the glyph of a character, 0 where the face has none.
func (f *face) glyph(r rune) uint16 {
	if r < 0 || r > 0xFFFF || f.pages[r>>8] == nil {
		return 0
	}
	return f.pages[r>>8][r&0xFF]
}

// perMille turns font units into thousandths of an em, rounded.
func (f *face) perMille(v int) int {
	if v < 0 {
		return -f.perMille(-v)
	}
	return (v*1000 + f.unitsPerEm/2) / f.unitsPerEm
}

func u16(b []byte, at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
func i16(b []byte, at int) int    { return int(int16(u16(b, at))) }
