package document

import (
	"context"
	"strconv"
	"strings"

	"tributary/internal/document/typeset"

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
	style typeset.Style
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
	ctx        context.Context
	family     *typeset.Family
	setter     *typeset.Setter
	lang       string // BCP 47
	rtl        bool   // the page runs from right to left
	places     *placeNames
	vocabulary *vocabulary
	codes      *qrMaker
	v          *Visual
	words      words
	title      string
	currency   string // upper case
	notes      *bluemonday.Policy

	accent, ink, muted, hair rgb

	sheets  []*sheet
	sheet   *sheet      // the page that is drawn on
	used    []*usedFont // by face
	fonts   []fontUse   // in the order in which pages name them
	missing []string    // scripts that no font could set
	english bool        // the language asked for could not be had
	logo    *picture
	y       length // where the next thing begins, from the top of the page
	end     length // where it must end

	// The table that is being drawn closes itself before a page break and
	// goes on after it.
	leave, enter func()
}

// compose lays the document out.
func (r *Renderer) compose(ctx context.Context, v *Visual) (*composition, error) {
	c := &composition{
		ctx: ctx, v: v, places: r.places, vocabulary: r.vocabulary, codes: &r.codes,
		family:   r.library.Family(v.Branding.Font),
		words:    r.vocabulary.words(v.language(), strings.ToUpper(v.Supplier.CountryCode)),
		setter:   r.setter,
		logo:     r.logo(v.Branding.Logo),
		notes:    r.notes,
		currency: strings.ToUpper(v.Transaction.CurrencyCode),
	}
	c.chooseWords(r)
	c.palette(v.Branding)
	c.title = typeset.Clean(v.Title)
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
	c.drawMissing()
	c.drawFeet()
	return c, ctx.Err()
}

// chooseWords takes the words of the language, or English ones where it has
// none or no font can set them.
func (c *composition) chooseWords(r *Renderer) {
	code, country := c.v.language(), strings.ToUpper(c.v.Supplier.CountryCode)
	c.words = r.vocabulary.words(code, country)
	c.english = !Speaks(code)
	if _, missing := c.setter.Settable(c.words.invoice + c.words.transliterated); len(missing) > 0 {
		c.missing = append(c.missing, missing...)
		c.words, c.english = r.vocabulary.words("EN", country), true
	}
	c.lang = c.words.tag
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
