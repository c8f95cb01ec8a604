package typeset

import (
	"slices"
	"strings"

	"eliasnaur.com/font/roboto/robotoregular"
	"github.com/go-text/typesetting/harfbuzz"
)

// Compact is the outlines of a whole face in the Compact Font Format.
func Compact(f *Face) []byte { return f.cff.raw }

// Syllables is a word with a dot wherever it may be broken.
func Syllables(word string) string {
	signs := []rune(word)
	var b strings.Builder
	for i, r := range signs {
		if i >= 3 && len(signs)-i >= 3 && syllable(signs[i-1], r, signs[i+1], signs[i+2]) {
			b.WriteByte('.')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TryFont does with a file what is done with a font of a folder.
func TryFont(raw []byte) {
	tables, err := tableDirectory(raw, 0)
	if err != nil {
		return
	}
	f, err := parseFace("fuzz", tables)
	if err != nil {
		return
	}
	u := NewUsage(f)
	for g := range min(len(f.Widths), 64) {
		u.AddGlyph(uint16(g), "x")
	}
	u.AddGlyph(Nothing, "y")
	if _, others := u.Keys(); others != nil {
		_, _ = Cut(f, *others)
	}
	(&shaper{fonts: make(map[int]*harfbuzz.Font)}).font(f)
}

// TryCompact reads outlines alone.
func TryCompact(raw []byte) {
	f, err := parseCFF(raw)
	if err != nil {
		return
	}
	for g := range min(len(f.charstrings), 64) {
		_, _ = f.inlined(uint16(g))
	}
}

// SmallFont is a font of a few letters with every table that is read.
func SmallFont() []byte {
	tables, _ := tableDirectory(robotoregular.TTF, 0)
	f, _ := parseFace("small", tables)
	program, _ := f.program([]uint16{0, 1, 2, 3})
	cut, _ := tableDirectory(program, 0)
	// cmap, format 12: A to C.
	cut["cmap"] = []byte{0, 0, 0, 1, 0, 3, 0, 10, 0, 0, 0, 12, 0, 12, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
		65, 0, 0, 0, 67, 0, 0, 0, 1}
	cut["OS/2"], cut["post"] = tables["OS/2"], tables["post"][:32]
	var list []sfntTable
	for tag, data := range cut {
		list = append(list, sfntTable{tag, data})
	}
	slices.SortFunc(list, func(a, b sfntTable) int {
		if a.tag < b.tag {
			return -1
		}
		return 1
	})
	return sfntFile(list)
}
