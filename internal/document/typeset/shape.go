package typeset

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
	"github.com/go-text/typesetting/harfbuzz"
	"github.com/go-text/typesetting/language"
	"github.com/go-text/typesetting/segmenter"
)

// Font is what a text is set in.
type Font struct {
	Family *Family
	Style  Style
	Lang   string // BCP 47: chooses the forms of Han signs, and tells the shaper
	RTL    bool   // the direction of a text that has none of its own
}

// Line is a text set on one line, with measures in thousandths of an em.
type Line struct {
	Pieces          []Piece // in the order of the text
	Width           int
	Ascent, Descent int // how far its ink reaches above and below the base line; Descent is negative
}

// Piece is a part of a line in one face and one direction.
type Piece struct {
	Face   *Face
	X      int     // from the line's left end
	Glyphs []Glyph // from left to right
	Marks  []Mark  // drawn beside them; their text stands among the glyphs
	Text   string  // what they stand for, in the order of the text
	Lang   string  // BCP 47, where the script says another language than the font's
	RTL    bool
	Exact  bool // every glyph stands for its own part of Text
}

// Glyph is a glyph with its place relative to where the one before ended.
type Glyph struct {
	ID        uint16
	Text      string // what it stands for; "" for a part of a sign
	Advance   int
	Right, Up int // offset
}

// Mark is a glyph at its own place, in thousandths of an em from the piece's
// left end and the base line.
type Mark struct {
	ID    uint16
	Text  string
	X, Up int
}

// Setter sets texts. It keeps lines that were set before, within fixed bounds,
// and is safe for concurrent use.
type Setter struct {
	library *Library
	lines   *Cache[lineKey, *Line]
	broken  *Cache[wrapKey, brokenText]
	shapers sync.Pool // of *shaper

	mu     sync.RWMutex
	absent map[scripted]bool // whether no font has a character
}

// scripted is a character among letters of a script.
type scripted struct {
	char   rune
	script language.Script
}

type lineKey struct {
	font Font
	text string
}

const (
	lineCacheBytesMax = 8 << 20
	wrapCacheBytesMax = 4 << 20
	absentMax         = 1 << 16
)

// NewSetter returns a setter with the fonts of a library.
func NewSetter(l *Library) *Setter {
	return &Setter{library: l, lines: NewCache[lineKey, *Line](lineCacheBytesMax),
		broken: NewCache[wrapKey, brokenText](wrapCacheBytesMax), absent: make(map[scripted]bool)}
}

// Size is the memory a kept line takes, roughly.
func (l *Line) Size() int {
	total := 64
	for _, p := range l.Pieces {
		total += 96 + len(p.Text) + 56*len(p.Glyphs) + 48*len(p.Marks)
	}
	return total
}

// Line sets a text that is settable, see [Setter.Settable]. What is kept of it
// is a copy: texts are cut from bodies of up to megabytes, and a cache of lines
// that held those would have no bound.
func (s *Setter) Line(f Font, text string) *Line {
	line, _ := s.lines.GetOwn(lineKey{f, text}, func() (lineKey, *Line, error) {
		sh := s.shaper()
		defer s.shapers.Put(sh)
		f.Lang = strings.Clone(f.Lang)
		own := strings.Clone(text)
		return lineKey{f, own}, s.set(sh, f, own), nil
	})
	return line
}

// Width measures a text in thousandths of an em.
func (s *Setter) Width(f Font, text string) int {
	if width, plain := f.Family.PlainWidth(f.Style, text); plain {
		return width
	}
	return s.Line(f, text).Width
}

// shaper has what shaping cannot share between goroutines.
type shaper struct {
	buffer *harfbuzz.Buffer
	fonts  map[int]*harfbuzz.Font
	breaks segmenter.Segmenter
}

// shaper takes one that is free; the caller puts it back.
func (s *Setter) shaper() *shaper {
	if sh, ok := s.shapers.Get().(*shaper); ok {
		return sh
	}
	return &shaper{buffer: harfbuzz.NewBuffer(), fonts: make(map[int]*harfbuzz.Font)}
}

func (sh *shaper) font(f *Face) *harfbuzz.Font {
	if hb, ok := sh.fonts[f.ID]; ok {
		return hb
	}
	face, err := font.ParseTTF(bytes.NewReader(f.shaping))
	if err != nil {
		sh.fonts[f.ID] = nil
		return nil
	}
	hb := harfbuzz.NewFont(face)
	sh.fonts[f.ID] = hb
	return hb
}

// span is a part of a text that is shaped at once.
type span struct {
	from, to int
	level    uint8 // of direction, see levels
	script   language.Script
	face     *Face
	lang     string
}

func (s *Setter) set(sh *shaper, f Font, text string) *Line {
	runes := []rune(text)
	hyphen := len(runes) > 0 && runes[len(runes)-1] == softHyphen
	var spans []span
	lang, level := languageOf(runes, f.Lang), levels(runes, f.RTL)
	for i := 0; i < len(runes); {
		j := i
		for j < len(runes) && level[j] == level[i] {
			j++
		}
		spans = s.itemize(spans, runes, span{from: i, to: j, level: level[i], lang: lang}, f)
		i = j
	}
	line := &Line{}
	widths := make([]int, len(spans))
	for i := range spans {
		piece := sh.shape(runes, spans[i], f)
		if hyphen && spans[i].to == len(runes) {
			piece.Exact = false
		}
		for _, g := range piece.Glyphs {
			widths[i] += g.Advance
			line.reach(piece.Face, g.ID, g.Up)
		}
		for _, m := range piece.Marks {
			line.reach(piece.Face, m.ID, m.Up)
		}
		line.Pieces = append(line.Pieces, piece)
	}
	for _, i := range visualOrder(spans) {
		line.Pieces[i].X = line.Width
		line.Width += widths[i]
	}
	return line
}

// reach makes room for a glyph.
func (l *Line) reach(f *Face, glyph uint16, up int) {
	low, high := f.extent(glyph)
	l.Ascent, l.Descent = max(l.Ascent, high+up), min(l.Descent, low+up)
}

// visualOrder returns the indices of spans from left to right (UAX #9, rule L2).
func visualOrder(spans []span) []int {
	order := make([]int, len(spans))
	highest, lowestOdd := uint8(0), uint8(127)
	for i, s := range spans {
		order[i] = i
		highest = max(highest, s.level)
		if s.level%2 == 1 {
			lowestOdd = min(lowestOdd, s.level)
		}
	}
	for level := highest; level >= lowestOdd && level > 0; level-- {
		for i := 0; i < len(order); i++ {
			j := i
			for j < len(order) && spans[order[j]].level >= level {
				j++
			}
			slices.Reverse(order[i:j])
			i = max(i, j)
		}
	}
	return order
}

// languageOf is the language whose forms of Han signs are meant: kana and
// hangul tell, whatever the document's language.
func languageOf(runes []rune, lang string) string {
	for _, r := range runes {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return "ja"
		case unicode.Is(unicode.Hangul, r):
			return "ko"
		}
	}
	return lang
}

// scriptKey is the line of scripts.txt for a script in a language.
func scriptKey(script language.Script, lang string) string {
	switch script {
	case language.Han, language.Hiragana, language.Katakana, language.Bopomofo:
		lang = strings.ToLower(lang)
		switch {
		case strings.HasPrefix(lang, "ja"):
			return "Hani/ja"
		case strings.HasPrefix(lang, "ko"):
			return "Hani/ko"
		case strings.HasPrefix(lang, "zh-hant"), strings.HasPrefix(lang, "zh-tw"), strings.HasPrefix(lang, "zh-hk"):
			return "Hani/zh-Hant"
		}
		return "Hani/zh-Hans"
	case language.Common, language.Inherited, language.Unknown:
		return "Zyyy"
	}
	return script.String()
}

// itemize splits a run of one direction by script and face. Signs that many
// scripts share stay with the letters before them where their face has them;
// figures are those of the document's own font.
func (s *Setter) itemize(spans []span, runes []rune, run span, f Font) []span {
	script := firstScript(runes[run.from:run.to]) // what stands before the first letter belongs to it
	first := len(spans)
	for i := run.from; i < run.to; i++ {
		r := runes[i]
		sc := language.LookupScript(r)
		if strong(sc) {
			script = sc
		}
		next := span{from: i, to: i + 1, level: run.level, script: script, lang: run.lang}
		var before *span
		if len(spans) > first {
			before = &spans[len(spans)-1]
		}
		follows := sc == language.Inherited || unicode.IsMark(r) || invisible(r)
		if before != nil && follows && (invisible(r) || before.face.Glyph(r) != 0) {
			before.to = i + 1
			continue
		}
		next.face = s.faceFor(r, next, before, f)
		if before != nil && before.face == next.face && (before.script == next.script || !strong(sc)) {
			before.to = i + 1
			continue
		}
		spans = append(spans, next)
	}
	return spans
}

// strong reports a script of its own.
func strong(sc language.Script) bool {
	return sc != language.Common && sc != language.Inherited && sc != language.Unknown
}

// firstScript is the script of the first letter, or Common.
func firstScript(letters []rune) language.Script {
	for _, r := range letters {
		if sc := language.LookupScript(r); strong(sc) {
			return sc
		}
	}
	return language.Common
}

// Latin is what Script answers of Latin letters.
const Latin = "Latn"

// Script groups texts by what a reader of one can read of the other: the script
// (ISO 15924) of the first letter. Kana stand among Chinese characters and are
// taken for them.
func Script(text string) string {
	switch sc := firstScript([]rune(text)); sc {
	case language.Hiragana, language.Katakana:
		return language.Han.String()
	default:
		return sc.String()
	}
}

// familiar reports scripts that the families of the program are made for.
func familiar(sc language.Script) bool {
	return sc == language.Latin || sc == language.Greek || sc == language.Cyrillic
}

// faceFor chooses the face of a character.
func (s *Setter) faceFor(r rune, at span, before *span, f Font) *Face {
	own := f.Family.faces[f.Style]
	if r == '\u00A0' {
		r = ' '
	}
	common := !strong(language.LookupScript(r))
	if common && before != nil && !unicode.IsDigit(r) && before.face.Glyph(r) != 0 {
		return before.face
	}
	if (familiar(at.script) || common) && own.Glyph(r) != 0 {
		return own
	}
	for _, face := range s.library.candidates(choice{scriptKey(at.script, at.lang), f.Style.heavy(), f.Family.serif}) {
		if face.Glyph(r) != 0 {
			return face
		}
	}
	if own.Glyph(r) != 0 {
		return own
	}
	if fallback := f.Family.fallbacks[f.Style]; fallback.Glyph(r) != 0 {
		return fallback
	}
	for _, key := range []string{"Zyyy", "Hani/ja", "Hani/zh-Hans", "Hani/zh-Hant", "Hang"} {
		if !common && key == "Zyyy" {
			continue
		}
		for _, face := range s.library.candidates(choice{key, f.Style.heavy(), f.Family.serif}) {
			if face.Glyph(r) != 0 {
				return face
			}
		}
	}
	return own
}

// shape turns a span into glyphs. A face that the shaper cannot read sets its
// characters one by one.
func (sh *shaper) shape(runes []rune, sp span, f Font) Piece {
	piece := Piece{Face: sp.face, Text: string(runes[sp.from:sp.to]), RTL: sp.level%2 == 1, Exact: true}
	if sp.lang != f.Lang && !familiar(sp.script) && strong(sp.script) {
		piece.Lang = sp.lang
	}
	hb := sh.font(sp.face)
	if hb == nil {
		for _, r := range runes[sp.from:sp.to] {
			if g := sp.face.Glyph(r); g != 0 {
				piece.Glyphs = append(piece.Glyphs, Glyph{ID: g, Text: string(r), Advance: int(sp.face.Widths[g])})
			}
		}
		if piece.RTL {
			slices.Reverse(piece.Glyphs)
		}
		return piece
	}
	b := sh.buffer
	b.Clear()
	b.ClusterLevel = harfbuzz.MonotoneCharacters
	b.Flags = harfbuzz.RemoveDefaultIgnorables
	b.Props = harfbuzz.SegmentProperties{Direction: harfbuzz.LeftToRight, Script: sp.script,
		Language: language.NewLanguage(sp.lang)}
	if piece.RTL {
		b.Props.Direction = harfbuzz.RightToLeft
	}
	b.AddRunes(runes, sp.from, sp.to-sp.from)
	b.Shape(hb, features(sp.script))
	sh.collect(&piece, runes, sp)
	return piece
}

// features leaves Latin ligatures out: search and copy want letters, and an
// invoice has no headline that would be better for one.
func features(sc language.Script) []harfbuzz.Feature {
	if !familiar(sc) && strong(sc) {
		return nil
	}
	off := func(tag string) harfbuzz.Feature {
		return harfbuzz.Feature{Tag: opentype.MustNewTag(tag), Value: 0, Start: harfbuzz.FeatureGlobalStart,
			End: harfbuzz.FeatureGlobalEnd}
	}
	return []harfbuzz.Feature{off("liga"), off("clig")}
}

// collect reads the shaped glyphs, each with the part of the text it stands for.
func (sh *shaper) collect(piece *Piece, runes []rune, sp span) {
	b := sh.buffer
	piece.Glyphs = make([]Glyph, 0, len(b.Info))
	ends := clusterEnds(b.Info, sp.to)
	_, whole := ends[sp.from]
	piece.Exact = whole
	for i := 0; i < len(b.Info); {
		from := b.Info[i].Cluster
		j := i
		for j < len(b.Info) && b.Info[j].Cluster == from {
			j++
		}
		cluster := make([]Glyph, 0, j-i)
		for k := i; k < j; k++ {
			g, pos := b.Info[k].Glyph, &b.Pos[k]
			if g == 0 || int(g) >= len(sp.face.Widths) { // no document shows .notdef
				piece.Exact = false
				continue
			}
			cluster = append(cluster, Glyph{ID: uint16(g), Advance: sp.face.perMille(int(pos.XAdvance)),
				Right: sp.face.perMille(int(pos.XOffset)), Up: sp.face.perMille(int(pos.YOffset))})
		}
		piece.addCluster(cluster, runes[from:ends[from]])
		i = j
	}
}

// addCluster adds the glyphs of a sign with what each stands for.
func (p *Piece) addCluster(glyphs []Glyph, text []rune) {
	if len(glyphs) == 0 {
		p.Exact = false
		return
	}
	if !p.RTL {
		glyphs[0].Text = string(text)
		// A mark that is set back looks like the start of another word to readers.
		p.Exact = p.Exact && len(glyphs) == 1 && glyphs[0].Right == 0 && glyphs[0].Up == 0
		p.Glyphs = append(p.Glyphs, glyphs...)
		return
	}
	if p.Face.cff != nil || len(glyphs) > len(text) {
		glyphs[len(glyphs)-1].Text = string(text)
		p.Exact = p.Exact && len(glyphs) == 1 && len(text) == 1
		p.Glyphs = append(p.Glyphs, glyphs...)
		return
	}
	// Readers take text that runs from right to left glyph by glyph and turn it
	// around: letters of a ligature need places of their own.
	for k := len(text) - 1; k >= len(glyphs); k-- {
		p.Glyphs = append(p.Glyphs, Glyph{ID: Nothing, Text: string(text[k])})
	}
	for i, g := range glyphs {
		g.Text = string(text[len(glyphs)-1-i])
		if g.Advance == 0 && p.Face.Width(g.ID) == 0 {
			// A mark stands elsewhere than in its turn: it is drawn by itself,
			// and its text goes where readers expect it.
			p.Marks = append(p.Marks, Mark{g.ID, g.Text, p.advanced() + g.Right, g.Up})
			g = Glyph{ID: Nothing, Text: g.Text}
		}
		p.Glyphs = append(p.Glyphs, g)
	}
}

// advanced is how far the glyphs so far reach.
func (p *Piece) advanced() int {
	total := 0
	for _, g := range p.Glyphs {
		total += g.Advance
	}
	return total
}

// clusterEnds maps where each cluster begins to where it ends.
func clusterEnds(info []harfbuzz.GlyphInfo, end int) map[int]int {
	starts := make([]int, 0, len(info)+1)
	for i := range info {
		starts = append(starts, info[i].Cluster)
	}
	slices.Sort(starts)
	starts = append(slices.Compact(starts), end)
	ends := make(map[int]int, len(starts))
	for i := 0; i+1 < len(starts); i++ {
		ends[starts[i]] = starts[i+1]
	}
	return ends
}
