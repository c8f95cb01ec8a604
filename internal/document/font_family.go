package document

import (
	"strings"

	"codeberg.org/go-fonts/dejavu/dejavusans"
	"codeberg.org/go-fonts/dejavu/dejavusansbold"
	"codeberg.org/go-fonts/liberation/liberationserifbold"
	"codeberg.org/go-fonts/liberation/liberationserifbolditalic"
	"codeberg.org/go-fonts/liberation/liberationserifitalic"
	"codeberg.org/go-fonts/liberation/liberationserifregular"
	"eliasnaur.com/font/roboto/robotobold"
	"eliasnaur.com/font/roboto/robotobolditalic"
	"eliasnaur.com/font/roboto/robotoitalic"
	"eliasnaur.com/font/roboto/robotomedium"
	"eliasnaur.com/font/roboto/robotoregular"
)

// The fonts a client may choose from.
//
// Sans is Roboto (Apache-2.0): all of Latin with its extensions, Greek with
// its accents, Cyrillic with its supplement, and figures of one width. Serif is
// Liberation Serif (SIL OFL 1.1). What either lacks is drawn in DejaVu Sans
// (Bitstream Vera and public domain).
const (
	Sans  = "sans"
	Serif = "serif"
)

// Fonts lists the names that [Branding] knows; anything else means Sans.
func Fonts() []string { return []string{Sans, Serif} }

// style chooses a face of a family.
type style uint8

const (
	regular style = iota
	medium        // headings and totals
	bold          // <b> in notes
	italic
	boldItalic
	styles
)

// family is a set of faces, and those that stand in where it has no glyph.
type family struct {
	faces     [styles]*face
	fallbacks [styles]*face
}

// library is every face of the program.
type library struct {
	faces    []*face
	families map[string]*family
}

func newLibrary() (*library, error) {
	lib := &library{families: make(map[string]*family)}
	add := func(name string, raw []byte, blocks bool) (*face, error) {
		f, err := parseFace(name, raw)
		if err != nil {
			return nil, err
		}
		f.id, f.blocks = len(lib.faces), blocks
		f.layout.serif = strings.Contains(name, "Serif")
		lib.faces = append(lib.faces, f)
		return f, nil
	}
	var fallbacks [styles]*face
	plain, err := add("DejaVuSans", dejavusans.TTF, false)
	if err != nil {
		return nil, err
	}
	strong, err := add("DejaVuSans-Bold", dejavusansbold.TTF, false)
	if err != nil {
		return nil, err
	}
	fallbacks = [styles]*face{regular: plain, medium: strong, bold: strong, italic: plain, boldItalic: strong}

	type source struct {
		name string
		raw  []byte
	}
	families := map[string][styles]source{
		Sans: {
			regular: {"Roboto-Regular", robotoregular.TTF}, medium: {"Roboto-Medium", robotomedium.TTF}, bold: {"Roboto-Bold", robotobold.TTF},
			italic: {"Roboto-Italic", robotoitalic.TTF}, boldItalic: {"Roboto-BoldItalic", robotobolditalic.TTF},
		},
		Serif: {
			regular: {"LiberationSerif", liberationserifregular.TTF}, medium: {"LiberationSerif-Bold", liberationserifbold.TTF},
			italic: {"LiberationSerif-Italic", liberationserifitalic.TTF}, boldItalic: {"LiberationSerif-BoldItalic", liberationserifbolditalic.TTF},
		},
	}
	for _, name := range Fonts() {
		fam := &family{fallbacks: fallbacks}
		for s, src := range families[name] {
			if src.raw == nil { // a family of four has one weight for headings and <b>
				fam.faces[s] = fam.faces[medium]
				continue
			}
			if fam.faces[s], err = add(src.name, src.raw, true); err != nil {
				return nil, err
			}
		}
		lib.families[name] = fam
	}
	return lib, nil
}

// family returns the family of a name, Sans for an unknown one.
func (l *library) family(name string) *family {
	if fam, ok := l.families[strings.ToLower(name)]; ok {
		return fam
	}
	return l.families[Sans]
}

// pick returns the face and glyph that draw a character, and the character that
// was drawn in the end: itself, or U+FFFD where no face has it. A PDF/A may
// not show .notdef, and a document may not fail over a rare letter.
func (fam *family) pick(s style, r rune) (*face, uint16, rune) {
	f := fam.faces[s]
	if g := f.glyph(r); g != 0 {
		return f, g, r
	}
	if r == '\u00A0' || r == '\u202F' {
		return f, f.glyph(' '), ' '
	}
	f = fam.fallbacks[s]
	if g := f.glyph(r); g != 0 && drawable(r) {
		return f, g, r
	}
	return f, f.glyph('\uFFFD'), '\uFFFD'
}
