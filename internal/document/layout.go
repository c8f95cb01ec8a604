package document

import (
	"context"
	"strconv"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// length is a distance on paper in thousandths of a point. Integers keep the
// bytes of a document the same on every processor.
type length int64

const (
	point      length = 1000
	millimetre length = 2835

	pageWidth    length = 595276 // A4
	pageHeight   length = 841890
	marginSide          = 20 * millimetre
	marginTop           = 15 * millimetre
	marginBottom        = 22 * millimetre // of the text; the foot stands below
	contentWidth        = pageWidth - 2*marginSide
	contentRight        = pageWidth - marginSide
	contentEnd          = pageHeight - marginBottom
)

// append writes a length in points with at most two decimals, which is finer than any printer.
func (l length) append(out []byte) []byte {
	if l < 0 {
		return (-l).append(append(out, '-'))
	}
	hundredths := (int64(l) + 5) / 10
	out = strconv.AppendInt(out, hundredths/100, 10)
	if rest := hundredths % 100; rest != 0 {
		out = append(out, '.', byte('0'+rest/10))
		if rest%10 != 0 {
			out = append(out, byte('0'+rest%10))
		}
	}
	return out
}

func (l length) String() string { return string(l.append(nil)) }

// pen is how a text looks.
type pen struct {
	style style
	size  length
	color rgb
}

// lead is the distance from one line of text to the next.
func (p pen) lead() length { return p.size * 138 / 100 }

// sheet is one page's content, written as it is drawn.
type sheet struct {
	out   []byte
	font  fontUse // what the content stream has set
	size  length
	fill  rgb
	inked bool
}

// composition is a document while it is laid out, page by page.
type composition struct {
	ctx      context.Context
	family   *family
	places   *placeNames
	codes    *qrMaker
	v        *Visual
	words    words
	title    string
	currency string // upper case
	notes    *bluemonday.Policy

	accent, ink, muted, hair rgb

	sheets []*sheet
	sheet  *sheet   // the page that is drawn on
	used   []*usage // by face
	logo   *picture
	y      length // where the next thing begins, from the top of the page
	end    length // where it must end

	// The table that is being drawn closes itself before a page break and
	// goes on after it.
	leave, enter func()
}

// compose lays the document out.
func (r *Renderer) compose(ctx context.Context, v *Visual) (*composition, error) {
	c := &composition{
		ctx: ctx, v: v, places: r.places, codes: &r.codes,
		family:   r.library.family(v.Branding.Font),
		words:    wordsFor(v.language(), strings.ToUpper(v.Supplier.CountryCode)),
		used:     make([]*usage, len(r.library.faces)),
		logo:     r.logo(v.Branding.Logo),
		notes:    r.notes,
		currency: strings.ToUpper(v.Transaction.CurrencyCode),
	}
	c.palette(v.Branding)
	c.title = clean(v.Title)
	if c.title == "" {
		c.title = c.words.title(v.Transaction.Kind, v.Simplified)
	}
	c.newPage()
	c.drawHead()
	if err := c.drawParties(); err != nil {
		return nil, err
	}
	if err := c.drawLines(); err != nil {
		return nil, err
	}
	c.drawTotals()
	c.drawPayments()
	c.drawNote()
	c.drawAuthority()
	c.drawLegalTexts()
	c.drawFeet()
	return c, ctx.Err()
}

func (c *composition) bytes() int {
	total := 0
	for _, s := range c.sheets {
		total += len(s.out)
	}
	return total
}

// newPage begins a page; all but the first carry a running head.
func (c *composition) newPage() {
	c.sheet = &sheet{out: make([]byte, 0, 12<<10)}
	c.sheets = append(c.sheets, c.sheet)
	c.y, c.end = marginTop, contentEnd
	if c.v.Specimen {
		c.drawSpecimen()
	}
	if len(c.sheets) > 1 {
		c.drawRunningHead()
	}
}

// need makes room for something of a height, on a new page if it must be. What
// is higher than a page is drawn from the top of one: callers split it.
func (c *composition) need(height length) {
	if c.y+height > c.end {
		c.turnPage()
	}
}

// turnPage goes on on a new page, with the table that is being drawn.
func (c *composition) turnPage() {
	if c.leave != nil {
		c.leave()
	}
	c.newPage()
	if c.enter != nil {
		c.enter()
	}
}

// text draws a line of text with its base line at y and returns its width.
func (c *composition) text(p pen, x, y length, s string) length {
	if s == "" {
		return 0
	}
	sh := c.sheet
	sh.setFill(p.color)
	sh.out = append(sh.out, "BT "...)
	started, open, width := false, false, 0
	for _, r := range s {
		f, glyph, drawn := c.family.pick(p.style, r)
		if c.used[f.id] == nil {
			c.used[f.id] = &usage{}
		}
		if use := (fontUse{f, c.used[f.id].add(f, drawn)}); sh.font != use || sh.size != p.size {
			if open {
				sh.out = append(sh.out, ")Tj "...)
				open = false
			}
			sh.setFont(use, p.size)
		}
		if !started {
			sh.out = x.append(sh.out)
			sh.out = append(sh.out, ' ')
			sh.out = (pageHeight - y).append(sh.out)
			sh.out = append(sh.out, " Td"...)
			started = true
		}
		if !open {
			sh.out = append(sh.out, '(')
			open = true
		}
		sh.out = appendGlyph(sh.out, glyph)
		width += int(f.widths[glyph])
	}
	sh.out = append(sh.out, ")Tj ET\n"...)
	return length(width) * p.size / 1000
}

// appendGlyph writes a glyph's number as two bytes of a literal string: half of
// what hexadecimal takes, and deflation is most of a document's time.
func appendGlyph(out []byte, glyph uint16) []byte {
	for _, b := range [2]byte{byte(glyph >> 8), byte(glyph)} {
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

// textRight is text that ends at x.
func (c *composition) textRight(p pen, x, y length, s string) {
	c.text(p, x-c.width(p, s), y, s)
}

// width measures a line of text.
func (c *composition) width(p pen, s string) length {
	total := 0
	for _, r := range s {
		f, glyph, _ := c.family.pick(p.style, r)
		total += int(f.widths[glyph])
	}
	return length(total) * p.size / 1000
}

// fitted returns the size at which a text fits into a width, within a least one.
func (c *composition) fitted(p pen, s string, width, least length) length {
	natural := c.width(p, s)
	if natural <= width {
		return p.size
	}
	return max(least, p.size*width/natural)
}

// cut shortens a text to a width, with an ellipsis.
func (c *composition) cut(p pen, s string, width length) string {
	if c.width(p, s) <= width {
		return s
	}
	lines := c.wrap(p, s, width-c.width(p, "…"))
	return lines[0] + "…"
}

// stroke is how a line looks.
type stroke struct {
	thickness length
	color     rgb
}

// rule draws a horizontal line.
func (c *composition) rule(x, y, width length, s stroke) {
	c.box(rectangle{x, y - s.thickness/2, width, s.thickness}, s.color)
}

// rectangle is given by its upper left corner.
type rectangle struct{ x, y, width, height length }

// box fills a rectangle.
func (c *composition) box(r rectangle, ink rgb) {
	sh := c.sheet
	sh.setFill(ink)
	for _, v := range []length{r.x, pageHeight - r.y - r.height, r.width, r.height} {
		sh.out = v.append(sh.out)
		sh.out = append(sh.out, ' ')
	}
	sh.out = append(sh.out, "re f\n"...)
}

func (s *sheet) setFill(ink rgb) {
	if s.inked && s.fill == ink {
		return
	}
	s.fill, s.inked = ink, true
	for _, v := range ink {
		s.out = appendFraction(s.out, v)
		s.out = append(s.out, ' ')
	}
	s.out = append(s.out, "rg\n"...)
}

func (s *sheet) setFont(use fontUse, size length) {
	s.font, s.size = use, size
	s.out = append(s.out, '/')
	s.out = append(s.out, use.resource()...)
	s.out = append(s.out, ' ')
	s.out = size.append(s.out)
	s.out = append(s.out, " Tf "...)
}

// appendFraction writes a colour component as a fraction of one in thousandths.
func appendFraction(out []byte, v uint8) []byte {
	thousandths := (int(v)*1000 + 127) / 255
	if thousandths == 1000 {
		return append(out, '1')
	}
	if thousandths == 0 {
		return append(out, '0')
	}
	return append(out, '.', byte('0'+thousandths/100), byte('0'+thousandths/10%10), byte('0'+thousandths%10))
}

// wrap breaks a text into lines of at most a width, at blanks where it can and
// inside a word where it must.
func (c *composition) wrap(p pen, s string, width length) []string {
	if s == "" {
		return nil
	}
	limit := int(width * 1000 / p.size) // in thousandths of an em
	var lines []string
	start, blank, atBlank, total := 0, -1, 0, 0
	for i, r := range s {
		f, glyph, _ := c.family.pick(p.style, r)
		advance := int(f.widths[glyph])
		if r == ' ' {
			blank, atBlank = i, total+advance
		}
		if total+advance > limit && i > start && r != ' ' {
			if blank > start {
				lines = append(lines, s[start:blank])
				start, total = blank+1, total-atBlank
			} else {
				lines = append(lines, s[start:i])
				start, total = i, 0
			}
			blank = -1
		}
		total += advance
	}
	return append(lines, strings.TrimRight(s[start:], " "))
}
