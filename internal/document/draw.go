package document

import (
	"fmt"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf16"

	"tributary/internal/document/typeset"
)

// fontUse is a subset of a face as a page names it: the one of blocks or that
// of other glyphs, see typeset.Key.
type fontUse struct {
	face *typeset.Face
	rare bool
}

// usedFont is a face that the document draws with.
type usedFont struct {
	*typeset.Usage
	names [2]string // of its subsets among the resources: of blocks, of others
}

// kernedFrom is the size from which letters are set with kerning: below, nobody
// sees it, and shaping costs time.
const kernedFrom = 10 * point

func (on *canvas) font(p pen) typeset.Font {
	return typeset.Font{Family: on.family, Style: p.style, Lang: on.lang, RTL: on.rtl}
}

// plain reports a text that is drawn glyph by glyph.
func (on *canvas) plain(p pen, s string) bool {
	return p.size < kernedFrom && on.family.Plain(p.style, s)
}

// settable replaces what no font can draw, and remembers it.
func (on *canvas) settable(s string) string {
	s, missing := on.setter.Settable(s)
	for _, script := range missing {
		if !slices.Contains(on.missing, script) {
			on.missing = append(on.missing, script)
		}
	}
	return s
}

// text draws a line of text with its base line at y and returns its width.
func (on *canvas) text(p pen, x, y length, s string) length {
	if s == "" {
		return 0
	}
	on.beginMark()
	on.sheet.setFill(p.color)
	if on.plain(p, s) {
		if on.rtl {
			x = on.across(x, on.width(p, s))
		}
		return on.drawPlain(p, x, y, s)
	}
	line := on.setter.Line(on.font(p), on.settable(s))
	width := length(line.Width) * p.size / 1000
	x = on.across(x, width)
	for i := range line.Pieces {
		on.drawPiece(p, x, y, &line.Pieces[i])
	}
	return width
}

// drawPlain draws one glyph per character.
func (on *canvas) drawPlain(p pen, x, y length, s string) length {
	sh := on.sheet
	sh.out = append(sh.out, "BT "...)
	started, open, width := false, false, 0
	var last *typeset.Face
	var used *usedFont
	for _, r := range s {
		f, glyph := on.family.Pick(p.style, r)
		if r == '\u00A0' || r == '\u202F' {
			r = ' '
		}
		if f != last {
			last, used = f, on.use(f)
		}
		code, rare := used.AddRune(r, glyph)
		if use := (fontUse{f, rare}); sh.font != use || sh.size != p.size {
			if open {
				sh.out = append(sh.out, ")Tj "...)
				open = false
			}
			on.setFont(use, used, p.size)
		}
		if !started {
			on.moveTo(x, y)
			started = true
		}
		if !open {
			sh.out = append(sh.out, '(')
			open = true
		}
		sh.out = appendCode(sh.out, code)
		width += int(f.Widths[glyph])
	}
	sh.out = append(sh.out, ")Tj ET\n"...)
	return length(width) * p.size / 1000
}

// drawPiece draws shaped glyphs. Where a reader could not tell the text from
// the glyphs it is given beside them (ISO 32000-1, 14.9.4).
func (on *canvas) drawPiece(p pen, x, y length, piece *typeset.Piece) {
	sh, used := on.sheet, on.use(piece.Face)
	shown, exact := on.shown[:0], piece.Exact
	for i := range piece.Glyphs {
		g := &piece.Glyphs[i]
		code, rare := used.AddGlyph(g.ID, g.Text)
		shown = append(shown, shownGlyph{g, code, rare})
	}
	on.shown = shown
	if !exact || piece.Lang != "" {
		sh.out = append(sh.out, "/Span<<"...)
		if !exact {
			sh.out = append(sh.out, "/ActualText"...)
			sh.out = appendUTF16(sh.out, piece.Text)
		}
		if piece.Lang != "" {
			sh.out = fmt.Appendf(sh.out, "/Lang(%s)", piece.Lang)
		}
		sh.out = append(sh.out, ">>BDC "...)
	}
	sh.out = append(sh.out, "BT "...)
	on.moveTo(x+length(piece.X)*p.size/1000, y)
	for from, owed := 0, 0; from < len(piece.Glyphs); {
		to := from + 1
		for to < len(piece.Glyphs) && shown[to].rare == shown[from].rare {
			to++
		}
		if use := (fontUse{piece.Face, shown[from].rare}); sh.font != use || sh.size != p.size {
			on.setFont(use, used, p.size)
		}
		owed = sh.showGlyphs(piece.Face, p.size, shown[from:to], owed)
		from = to
	}
	sh.out = append(sh.out, "ET"...)
	if !exact || piece.Lang != "" {
		sh.out = append(sh.out, " EMC"...)
	}
	sh.out = append(sh.out, '\n')
	for _, m := range piece.Marks { // their text is among the glyphs already
		code, rare := used.AddGlyph(m.ID, m.Text)
		sh.out = append(sh.out, "/Span<</ActualText<FEFF>>>BDC BT "...)
		if use := (fontUse{piece.Face, rare}); sh.font != use || sh.size != p.size {
			on.setFont(use, used, p.size)
		}
		on.moveTo(x+length(piece.X+m.X)*p.size/1000, y-length(m.Up)*p.size/1000)
		sh.out = append(appendCode(append(sh.out, '('), code), ")Tj ET EMC\n"...)
	}
}

// shownGlyph is a glyph with its code in the document.
type shownGlyph struct {
	*typeset.Glyph
	code uint16
	rare bool
}

// showGlyphs writes glyphs with their places: what a glyph's own width does not
// say stands between the strings of a TJ, what is raised in a rise. owed is how
// many thousandths to go right before the next glyph.
func (s *sheet) showGlyphs(f *typeset.Face, size length, glyphs []shownGlyph, owed int) int {
	open, rise := false, 0
	closeArray := func() {
		if open {
			s.out = append(s.out, ")]TJ "...)
			open = false
		}
	}
	for _, g := range glyphs {
		owed += g.Right
		if g.Up != rise {
			closeArray()
			s.out = (length(g.Up) * size / 1000).append(s.out)
			s.out = append(s.out, " Ts "...)
			rise = g.Up
		}
		switch {
		case !open:
			s.out = append(s.out, '[')
			if owed != 0 {
				s.out = strconv.AppendInt(s.out, int64(-owed), 10)
			}
			s.out = append(s.out, '(')
		case owed != 0:
			s.out = append(s.out, ')')
			s.out = strconv.AppendInt(s.out, int64(-owed), 10)
			s.out = append(s.out, '(')
		}
		open = true
		s.out = appendCode(s.out, g.code)
		owed = g.Advance - f.Width(g.ID) - g.Right
	}
	closeArray()
	if rise != 0 {
		s.out = append(s.out, "0 Ts "...)
	}
	return owed
}

func (on *canvas) moveTo(x, y length) {
	s := on.sheet
	s.out = x.append(s.out)
	s.out = append(s.out, ' ')
	s.out = (on.paper.height - y).append(s.out)
	s.out = append(s.out, " Td "...)
}

// use returns what the document draws of a face so far.
func (on *canvas) use(f *typeset.Face) *usedFont {
	for len(on.used) <= f.ID {
		on.used = append(on.used, nil)
	}
	if on.used[f.ID] == nil {
		on.used[f.ID] = &usedFont{Usage: typeset.NewUsage(f)}
	}
	return on.used[f.ID]
}

// setFont names a subset in the page. Names count up in the order of first use:
// they must not depend on what other documents loaded before.
func (on *canvas) setFont(use fontUse, used *usedFont, size length) {
	which := 0
	if use.rare {
		which = 1
	}
	if used.names[which] == "" {
		used.names[which] = "F" + strconv.Itoa(len(on.fonts))
		on.fonts = append(on.fonts, use)
	}
	s := on.sheet
	s.font, s.size = use, size
	s.out = append(s.out, '/')
	s.out = append(s.out, used.names[which]...)
	s.out = append(s.out, ' ')
	s.out = size.append(s.out)
	s.out = append(s.out, " Tf "...)
}

// appendCode writes a code as two bytes of a literal string: half of
// what hexadecimal takes, and deflation is most of a document's time.
func appendCode(out []byte, code uint16) []byte {
	high, low := byte(code>>8), byte(code)
	if !special(high) && !special(low) {
		return append(out, high, low)
	}
	for _, b := range [2]byte{high, low} {
		switch b {
		case '(', ')', '\\':
			out = append(out, '\\', b)
		case '\r':
			out = append(out, '\\', 'r') // bare, it would read as a line feed
		default:
			out = append(out, b)
		}
	}
	return out
}

func special(b byte) bool { return b == '(' || b == ')' || b == '\\' || b == '\r' }

// appendUTF16 writes a text string in hexadecimal.
func appendUTF16(out []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	unit := func(u rune) { out = append(out, digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15]) }
	out = append(out, "<FEFF"...)
	for _, r := range s {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			unit(high)
			unit(low)
		} else {
			unit(r)
		}
	}
	return append(out, '>')
}

// textRight is text that ends at x.
func (on *canvas) textRight(p pen, x, y length, s string) {
	on.text(p, x-on.width(p, s), y, s)
}

// width measures a line of text.
func (on *canvas) width(p pen, s string) length {
	if p.size < kernedFrom {
		if width, plain := on.family.PlainWidth(p.style, s); plain {
			return length(width) * p.size / 1000
		}
	}
	return length(on.setter.Line(on.font(p), on.settable(s)).Width) * p.size / 1000
}

// fitted returns the size at which a text fits into a width, within a least one.
func (on *canvas) fitted(p pen, s string, width, least length) length {
	natural := on.width(p, s)
	if natural <= width {
		return p.size
	}
	return max(least, p.size*width/natural)
}

// cut shortens a text to a width, with an ellipsis.
func (on *canvas) cut(p pen, s string, width length) string {
	if on.width(p, s) <= width {
		return s
	}
	lines := on.wrap(p, s, width-on.width(p, "…"))
	return lines[0] + "…"
}

// wrap breaks a text into lines of at most a width.
func (on *canvas) wrap(p pen, s string, width length) []string {
	if s == "" {
		return nil
	}
	if on.width(p, s) <= width {
		return []string{on.settable(s)}
	}
	return on.setter.Wrap(on.font(p), on.settable(s), int(width*1000/p.size))
}
