package typeset

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Outlines of TrueType (OpenType, glyf table): records that may be made of others.

// closure returns the glyphs of a subset with .notdef and the parts that
// composed glyphs are made of, in order.
func (f *Face) closure(wanted []entry) ([]uint16, error) {
	queue := []uint16{0}
	seen := map[uint16]bool{0: true}
	add := func(g uint16) {
		if !seen[g] {
			seen[g] = true
			queue = append(queue, g)
		}
	}
	for _, e := range wanted {
		add(e.glyph)
	}
	for i := 0; i < len(queue); i++ {
		if err := f.components(f.outline(queue[i]), func(part []byte) { add(u16(part, 2)) }); err != nil {
			return nil, err
		}
	}
	slices.Sort(queue)
	for _, g := range queue {
		if int(g) >= len(f.Widths) && g != Nothing {
			return nil, fmt.Errorf("font %s composes a glyph it does not have", f.Name)
		}
	}
	return queue, nil
}

// outline returns a glyph's record; empty for a blank.
func (f *Face) outline(g uint16) []byte {
	if int(g)+1 >= len(f.loca) {
		return nil
	}
	return f.glyf[f.loca[g]:f.loca[g+1]]
}

// extent is how far a glyph reaches below and above the base line, in
// thousandths of an em. Compact outlines would have to be run for it: there the
// font's own measure stands in.
func (f *Face) extent(g uint16) (low, high int) {
	if f.cff != nil {
		return f.Metrics.Descent, f.Metrics.Ascent
	}
	outline := f.outline(g)
	if len(outline) < 10 {
		return 0, 0
	}
	return f.perMille(i16(outline, 4)), f.perMille(i16(outline, 8))
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
func (f *Face) components(outline []byte, fn func(part []byte)) error {
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
func (f *Face) program(glyphs []uint16) ([]byte, error) {
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
	return sfntFile([]sfntTable{{"glyf", glyf}, {"head", head}, {"hhea", hhea}, {"hmtx", hmtx}, {"loca", loca},
		{"maxp", maxp}}), nil
}

// metricsOf returns a glyph's advance and left side bearing as hmtx states them.
func (f *Face) metricsOf(g uint16) []byte {
	i := int(g)
	if g == Nothing && i >= len(f.Widths) {
		return make([]byte, 4)
	}
	if i < f.metrics {
		return f.hmtx[4*i : 4*i+4]
	}
	advance := f.hmtx[4*(f.metrics-1):]
	bearing := f.hmtx[4*f.metrics+2*(i-f.metrics):]
	return []byte{advance[0], advance[1], bearing[0], bearing[1]}
}

// bare returns a glyph record without instructions, its components renumbered.
func (f *Face) bare(outline []byte, renumbered map[uint16]uint16) ([]byte, error) {
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
