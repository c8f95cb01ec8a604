package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf16"
)

// subsetTag returns six capitals that depend on the glyphs alone (ISO 32000-1, 9.6.4).
func subsetTag(glyphs []uint16) string {
	raw := make([]byte, 0, 2*len(glyphs))
	for _, g := range glyphs {
		raw = binary.BigEndian.AppendUint16(raw, g)
	}
	sum := sha256.Sum256(raw)
	var tag [6]byte
	for i := range tag {
		tag[i] = 'A' + sum[i]%26
	}
	return string(tag[:])
}

// widthArray writes the W array: runs of consecutive glyphs, each with its widths.
func (f *face) widthArray(glyphs []uint16) []byte {
	out := []byte{'['}
	for i := 0; i < len(glyphs); {
		out = strconv.AppendInt(out, int64(glyphs[i]), 10)
		out = append(out, '[')
		first := i
		for ; i < len(glyphs) && int(glyphs[i]) == int(glyphs[first])+i-first; i++ {
			if i > first {
				out = append(out, ' ')
			}
			out = strconv.AppendInt(out, int64(f.widths[glyphs[i]]), 10)
		}
		out = append(out, ']')
	}
	return append(out, ']')
}

// toUnicodeMap writes the CMap that gives text back to readers, search and
// pdftotext (ISO 32000-1, 9.10.3). Glyphs that are only parts of others are
// never shown on their own, so they have no entry.
func toUnicodeMap(glyphs []uint16, unicode map[uint16]rune) []byte {
	var mapped []uint16
	for _, g := range glyphs {
		if _, ok := unicode[g]; ok {
			mapped = append(mapped, g)
		}
	}
	var out bytes.Buffer
	out.WriteString("/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n" +
		"/CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n" +
		"/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n" +
		"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n")
	for len(mapped) > 0 {
		n := min(len(mapped), 100) // the most a section may have
		fmt.Fprintf(&out, "%d beginbfchar\n", n)
		for _, g := range mapped[:n] {
			fmt.Fprintf(&out, "<%04X> <", g)
			for _, unit := range utf16.Encode([]rune{unicode[g]}) {
				fmt.Fprintf(&out, "%04X", unit)
			}
			out.WriteString(">\n")
		}
		out.WriteString("endbfchar\n")
		mapped = mapped[n:]
	}
	out.WriteString("endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n")
	return out.Bytes()
}

// flags of a font descriptor (ISO 32000-1, table 123). Every subset is
// symbolic: its glyphs are addressed by number, not by a standard encoding.
func (m faceMetrics) flags() int {
	flags := 1 << 2
	if m.serif {
		flags |= 1 << 1
	}
	if m.italic {
		flags |= 1 << 6
	}
	return flags
}

// stem estimates the width of vertical stems, which readers use only to replace a missing font.
func (m faceMetrics) stem() int {
	if m.bold {
		return 140
	}
	return 80
}
