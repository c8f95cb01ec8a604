// Package typeset turns text into glyphs on a line: it chooses fonts, shapes,
// orders mixed directions, breaks lines, and cuts the fonts that a document
// embeds.
//
// It owns everything about letters and nothing about documents or PDF. The law
// of its main verb, [Setter.Line]: what it returns depends on the text, the
// font that was asked for and the fonts that are installed, and on nothing
// else; and whatever the text, every glyph it returns exists in its face.
//
// Two nodes of one service must have the same fonts, as they must have the same
// program: a document depends on what is installed. A font whose licence bits
// forbid embedding, or a variable one whose default is no text weight, is not used;
// a file is read when a text needs it. Why shaping, directions and cuts are as they
// are: docs/decisions/0035.
package typeset

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"codeberg.org/go-fonts/dejavu/dejavusans"
	"codeberg.org/go-fonts/dejavu/dejavusansbold"
	"codeberg.org/go-fonts/liberation/liberationserifbold"
	"codeberg.org/go-fonts/liberation/liberationserifbolditalic"
	"codeberg.org/go-fonts/liberation/liberationserifitalic"
	"codeberg.org/go-fonts/liberation/liberationserifregular"
	notoarabicbold "eliasnaur.com/font/noto/sans/arabic/bold"
	notoarabic "eliasnaur.com/font/noto/sans/arabic/regular"
	"eliasnaur.com/font/roboto/robotobold"
	"eliasnaur.com/font/roboto/robotobolditalic"
	"eliasnaur.com/font/roboto/robotoitalic"
	"eliasnaur.com/font/roboto/robotomedium"
	"eliasnaur.com/font/roboto/robotoregular"
)

// The families of the program.
//
// Sans is Roboto (Apache-2.0): all of Latin with its extensions, Greek with
// its accents, Cyrillic with its supplement, and figures of one width. Serif is
// Liberation Serif (SIL OFL 1.1). Arabic is Noto Sans Arabic (SIL OFL 1.1).
// What they lack is drawn in DejaVu Sans (Bitstream Vera and public domain) or
// in a font of the folders, see scripts.txt.
const (
	Sans  = "sans"
	Serif = "serif"
)

// Style chooses a face of a family.
type Style uint8

// The styles.
const (
	Regular Style = iota
	Medium        // headings and totals
	Bold          // <b> in notes
	Italic
	BoldItalic
	styles
)

func (s Style) heavy() bool { return s == Medium || s == Bold || s == BoldItalic }

// Family is a set of faces, and those that stand in where it has no glyph.
type Family struct {
	faces     [styles]*Face
	fallbacks [styles]*Face
	serif     bool
}

// Library is every face there is: those of the program, and those of the
// folders, which are looked through when a text needs one for the first time.
type Library struct {
	families map[string]*Family
	folders  Folders
	scripts  map[string]scriptFonts

	mu      sync.Mutex
	faces   []*Face            // by ID
	files   map[string][]byte  // fonts of the folders that are in use
	loaded  map[fontFile]*Face // nil: it cannot be used
	choices map[choice][]*Face // see candidates
	arabic  [2]*Face           // of the program: regular, bold
	plain   [2]*Face           // DejaVu Sans
	catalog func() ([]fontFile, error)
}

//go:embed scripts.txt
var scriptsFile string

// NewLibrary parses the fonts of the program.
func NewLibrary(folders Folders) (*Library, error) {
	lib := &Library{
		families: make(map[string]*Family), folders: folders, scripts: readScripts(scriptsFile),
		files: make(map[string][]byte), loaded: make(map[fontFile]*Face), choices: make(map[choice][]*Face),
	}
	lib.catalog = sync.OnceValues(lib.folders.scan)
	add := func(name string, raw []byte) (*Face, error) {
		tables, err := tableDirectory(raw, 0)
		if err != nil {
			return nil, err
		}
		f, err := parseFace(name, tables)
		if err != nil {
			return nil, err
		}
		lib.adopt(f)
		return f, nil
	}
	var err error
	for _, f := range []struct {
		to   **Face
		name string
		raw  []byte
	}{
		{&lib.plain[0], "DejaVuSans", dejavusans.TTF}, {&lib.plain[1], "DejaVuSans-Bold", dejavusansbold.TTF},
		{&lib.arabic[0], "NotoSansArabic-Regular", notoarabic.TTF}, {&lib.arabic[1], "NotoSansArabic-Bold", notoarabicbold.TTF},
	} {
		if *f.to, err = add(f.name, f.raw); err != nil {
			return nil, err
		}
	}
	plain, strong := lib.plain[0], lib.plain[1]
	fallbacks := [styles]*Face{Regular: plain, Medium: strong, Bold: strong, Italic: plain, BoldItalic: strong}
	type source struct {
		name string
		raw  []byte
	}
	for name, sources := range map[string][styles]source{
		Sans: {
			Regular: {"Roboto-Regular", robotoregular.TTF}, Medium: {"Roboto-Medium", robotomedium.TTF},
			Bold:   {"Roboto-Bold", robotobold.TTF},
			Italic: {"Roboto-Italic", robotoitalic.TTF}, BoldItalic: {"Roboto-BoldItalic", robotobolditalic.TTF},
		},
		Serif: {
			Regular: {"LiberationSerif", liberationserifregular.TTF}, Medium: {"LiberationSerif-Bold", liberationserifbold.TTF},
			Italic:     {"LiberationSerif-Italic", liberationserifitalic.TTF},
			BoldItalic: {"LiberationSerif-BoldItalic", liberationserifbolditalic.TTF},
		},
	} {
		fam := &Family{fallbacks: fallbacks, serif: name == Serif}
		for s, src := range sources {
			if src.raw == nil { // a family of four has one weight for headings and <b>
				fam.faces[s] = fam.faces[Medium]
				continue
			}
			if fam.faces[s], err = add(src.name, src.raw); err != nil {
				return nil, err
			}
			if err := fam.faces[s].lead(); err != nil {
				return nil, err
			}
		}
		lib.families[name] = fam
	}
	return lib, nil
}

// adopt gives a face its place. The caller holds mu, or is alone.
func (l *Library) adopt(f *Face) {
	f.ID = len(l.faces)
	f.Metrics.Serif = strings.Contains(f.Name, "Serif")
	l.faces = append(l.faces, f)
}

// Face returns the face of an ID.
func (l *Library) Face(id int) *Face {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faces[id]
}

// Family returns the family of a name, Sans for an unknown one.
func (l *Library) Family(name string) *Family {
	if fam, ok := l.families[strings.ToLower(name)]; ok {
		return fam
	}
	return l.families[Sans]
}

// Pick returns the face and glyph that draw a character of a plain text, see
// [Family.Plain].
func (fam *Family) Pick(s Style, r rune) (*Face, uint16) {
	f := fam.faces[s]
	if r == '\u00A0' || r == '\u202F' { // readers copy and search blanks as blanks
		r = ' '
	}
	if g := f.Glyph(r); g != 0 {
		return f, g
	}
	f = fam.fallbacks[s]
	return f, f.Glyph(r)
}

// Plain reports whether a text is one glyph after another, each its
// character's own: no marks, no joined letters, one direction, and all of it
// in the fonts of the program. Nearly every text of nearly every document is,
// and needs neither shaping nor ordering.
func (fam *Family) Plain(s Style, text string) bool {
	f := fam.faces[s]
	for i := 0; i < len(text); i++ {
		if text[i] < 0x20 || text[i] > 0x7E {
			return fam.plainRunes(f, fam.fallbacks[s], text[i:])
		}
	}
	return true
}

// PlainWidth measures a plain text in thousandths of an em, and reports whether it is one.
func (fam *Family) PlainWidth(s Style, text string) (width int, plain bool) {
	f := fam.faces[s]
	for i := 0; i < len(text); i++ {
		if text[i] < 0x20 || text[i] > 0x7E {
			if !fam.plainRunes(f, fam.fallbacks[s], text[i:]) {
				return 0, false
			}
			for _, r := range text[i:] {
				face, glyph := fam.Pick(s, r)
				width += int(face.Widths[glyph])
			}
			return width, true
		}
		width += int(f.ascii[text[i]])
	}
	return width, true
}

func (fam *Family) plainRunes(first, second *Face, text string) bool {
	for _, r := range text {
		if !plainRune(r) || first.Glyph(r) == 0 && second.Glyph(r) == 0 && r != '\u00A0' && r != '\u202F' {
			return false
		}
	}
	return true
}

// plainRune reports characters that never change with their neighbours.
func plainRune(r rune) bool {
	switch {
	case r < 0x300:
		return r != 0xAD
	case r < 0x370:
		return false // combining marks
	case r < 0x530:
		return r < 0x483 || r > 0x489 // Greek and Cyrillic without their marks
	case r >= 0x1E00 && r <= 0x1FFF, r >= 0x2010 && r <= 0x2027, r == 0x202F, r >= 0x2030 && r <= 0x205E:
		return true
	case r >= 0x20A0 && r <= 0x20CF, r >= 0x2100 && r <= 0x214F, r >= 0x2190 && r <= 0x22FF, r == 0xFFFD:
		return true
	}
	return false
}

// scriptFonts is a line of scripts.txt.
type scriptFonts struct {
	sample      []rune
	sans, serif []string // families in order of preference
}

// readScripts reads scripts.txt, which is part of the program.
func readScripts(text string) map[string]scriptFonts {
	out := make(map[string]scriptFonts)
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || len(cells) != 3 {
			continue
		}
		s := scriptFonts{sample: []rune(cells[1])}
		for family := range strings.SplitSeq(cells[2], ";") {
			sans, serif, ok := strings.Cut(strings.TrimSpace(family), " / ")
			s.sans = append(s.sans, sans)
			if ok {
				s.serif = append(s.serif, serif)
			}
		}
		s.serif = append(s.serif, s.sans...)
		s.sans = append(s.sans, s.serif...)
		out[cells[0]] = s
	}
	return out
}

// choice is what a face is chosen by.
type choice struct {
	script string
	heavy  bool
	serif  bool
}

const candidatesMax = 8

// candidates returns the faces that may set a script, the best first. Fonts of
// the operator's folders come before those of the program, these before the
// system's.
func (l *Library) candidates(c choice) []*Face {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, ok := l.choices[c]; ok {
		return found
	}
	files, _ := l.catalog() // a folder that cannot be read has no fonts; Scripts says so
	wanted := l.scripts[c.script]
	s := search{library: l, files: files, sample: wanted.sample, heavy: c.heavy, names: wanted.sans}
	if c.serif {
		s.names = wanted.serif
	}
	weight := 0
	if c.heavy {
		weight = 1
	}
	s.addPreferred(true)
	s.addCovering(true)
	if c.script == "Arab" {
		s.add(l.arabic[weight])
	}
	s.addPreferred(false)
	for _, f := range []*Face{l.plain[weight], l.plain[0]} {
		if covers(f, wanted.sample) {
			s.add(f)
		}
	}
	if len(s.found) == 0 {
		s.addCovering(false)
	}
	found := s.found
	l.choices[c] = found
	return found
}

func covers(f *Face, sample []rune) bool {
	for _, r := range sample {
		if f.Glyph(r) == 0 {
			return false
		}
	}
	return len(sample) > 0
}

// search gathers the faces that may set a script.
type search struct {
	library *Library
	files   []fontFile
	names   []string // preferred families
	sample  []rune
	heavy   bool
	found   []*Face
}

func (s *search) add(f *Face) {
	if f != nil && len(s.found) < candidatesMax && !slices.Contains(s.found, f) {
		s.found = append(s.found, f)
	}
}

// addPreferred adds the fonts of the preferred families, in their weight first.
func (s *search) addPreferred(own bool) {
	for _, name := range s.names {
		for _, wanted := range []bool{s.heavy, !s.heavy} {
			for _, file := range s.files {
				if file.own == own && file.heavy() == wanted && strings.EqualFold(file.family, name) {
					s.add(s.library.load(file))
					break
				}
			}
		}
	}
}

// addCovering adds any font that has the letters, in order of the files.
func (s *search) addCovering(own bool) {
	for _, wanted := range []bool{s.heavy, !s.heavy} {
		for _, file := range s.files {
			if file.own == own && file.heavy() == wanted && !file.italic && file.covers(s.sample) {
				s.add(s.library.load(file))
				break
			}
		}
	}
}

// load parses a font of the folders, once. The caller holds mu.
func (l *Library) load(file fontFile) *Face {
	if f, ok := l.loaded[file]; ok {
		return f
	}
	f, err := l.parse(file)
	if err != nil {
		f = nil // Failure policy: a broken font is like one that is not there
	} else {
		l.adopt(f)
	}
	l.loaded[file] = f
	return f
}

func (l *Library) parse(file fontFile) (*Face, error) {
	raw, ok := l.files[file.path]
	if !ok {
		var err error
		if raw, err = file.read(); err != nil {
			return nil, err
		}
		l.files[file.path] = raw
	}
	tables, err := tableDirectory(raw, file.offset)
	if err != nil {
		return nil, fmt.Errorf("font %s: %w", file.path, err)
	}
	return parseFace(file.name, tables)
}
