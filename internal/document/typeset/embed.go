package typeset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf16"
)

// subsetTag returns six capitals that depend on what is embedded alone (ISO 32000-1, 9.6.4).
func subsetTag(entries []entry) string {
	raw := make([]byte, 0, 4*len(entries))
	for _, e := range entries {
		raw = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(raw, e.code), e.glyph)
	}
	sum := sha256.Sum256(raw)
	var tag [6]byte
	for i := range tag {
		tag[i] = 'A' + sum[i]%26
	}
	return string(tag[:])
}

// widthArray writes the W array: runs of consecutive codes, each with its widths.
func (f *Face) widthArray(entries []entry) []byte {
	out := []byte{'['}
	for i := 0; i < len(entries); {
		out = strconv.AppendInt(out, int64(entries[i].code), 10)
		out = append(out, '[')
		first := i
		for ; i < len(entries) && int(entries[i].code) == int(entries[first].code)+i-first; i++ {
			if i > first {
				out = append(out, ' ')
			}
			out = strconv.AppendInt(out, int64(f.Width(entries[i].glyph)), 10)
		}
		out = append(out, ']')
	}
	return append(out, ']')
}

// Width is the advance of a glyph in thousandths of an em.
func (f *Face) Width(glyph uint16) int {
	if int(glyph) >= len(f.Widths) {
		return 0
	}
	return int(f.Widths[glyph])
}

// toUnicodeMap writes the CMap that gives text back to readers, search and
// pdftotext (ISO 32000-1, 9.10.3).
func toUnicodeMap(entries []entry) []byte {
	out := []byte("/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n" +
		"/CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n" +
		"/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n" +
		"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n")
	for len(entries) > 0 {
		n := min(len(entries), 100) // the most a section may have
		out = fmt.Appendf(out, "%d beginbfchar\n", n)
		for _, e := range entries[:n] {
			out = appendHex(append(out, '<'), e.code)
			out = append(out, "> <"...)
			for _, unit := range utf16.Encode([]rune(e.text)) {
				out = appendHex(out, unit)
			}
			out = append(out, ">\n"...)
		}
		out = append(out, "endbfchar\n"...)
		entries = entries[n:]
	}
	return append(out, "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"...)
}

func appendHex(out []byte, v uint16) []byte {
	const digits = "0123456789ABCDEF"
	return append(out, digits[v>>12], digits[v>>8&0xF], digits[v>>4&0xF], digits[v&0xF])
}

// Flags of a font descriptor (ISO 32000-1, table 123). Every subset is
// symbolic: its glyphs are addressed by number, not by a standard encoding.
func (m Metrics) Flags() int {
	flags := 1 << 2
	if m.Serif {
		flags |= 1 << 1
	}
	if m.Italic {
		flags |= 1 << 6
	}
	return flags
}

// Stem estimates the width of vertical stems, which readers use only to replace a missing font.
func (m Metrics) Stem() int {
	if m.Bold {
		return 140
	}
	return 80
}
