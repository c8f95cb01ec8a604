package document

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/document/qr"
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
)

// length is a distance on paper in thousandths of a point. Integers keep the
// bytes of a document the same on every processor.
type length int64

const (
	point      length = 1000
	millimetre length = 2835
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

// paper is the geometry of a page. Distances across it count from the side
// where lines begin: the right one where a language runs from right to left.
type paper struct {
	width, height length
	side, top     length // margins
	roll          bool   // of a printer for receipts: a page is as long as its text
}

func a4() paper {
	return paper{width: 595276, height: 841890, side: 20 * millimetre, top: 15 * millimetre}
}

// roll is 80 mm wide, of which printers leave 4 mm at either side; a page may
// be as long as PDF lets it (ISO 32000-1, annex C: 14,400 units).
func roll() paper {
	return paper{width: 226772, height: 14000 * point, side: 4 * millimetre, top: 5 * millimetre, roll: true}
}

func (p paper) right() length { return p.width - p.side }
func (p paper) room() length  { return p.width - 2*p.side }

// pen is how a text looks.
type pen struct {
	style typeset.Style
	size  length
	color rgb
}

// sheet is one page's content, written as it is drawn.
type sheet struct {
	index  int
	out    []byte
	font   fontUse // what the content stream has set
	size   length
	fill   rgb
	inked  bool
	height length // of a page on a roll

	open   *element // marked content that is being written
	opened bool
	marks  []*element // by marked-content number
}

// composition is a document while it is laid out, page by page.
type composition struct {
	ctx      context.Context
	doc      content
	on       canvas
	color    palette
	codes    *qr.Maker
	notes    *noteBook
	template Template

	sheets  []*sheet
	english bool // the language asked for could not be had
	logo    *picture
	feet    []string // lines of the foot, the same on every page
	aside   length   // room beside names and values that something else takes
	y       length   // where the next thing begins, from the top of the page
	end     length   // where it must end

	// The table that is being drawn closes itself before a page break and
	// goes on after it.
	leave, enter func()
}

// content is what the document says, in its language: nothing of where it stands.
type content struct {
	v          *Visual
	words      words.Words
	vocabulary *words.Vocabulary
	title      string
	currency   string // upper case
}

// canvas is the page that is drawn on: letters, lines and what readers that
// speak go by.
type canvas struct {
	work    *workspace
	family  *typeset.Family
	setter  *typeset.Setter
	lang    string // BCP 47
	rtl     bool   // pages run from right to left
	leading length // distance of lines in hundredths of their size
	paper   paper
	tight   bool // with less white space

	sheet   *sheet       // the page that is drawn on
	used    []*usedFont  // by face
	fonts   []fontUse    // in the order in which pages name them
	shown   []shownGlyph // of the piece that is drawn
	missing []string     // scripts that no font could set

	root *element // of the structure; nil: the document is not tagged
	tag  *element // what is drawn now; nil: nothing that is read
}

// compose lays the document out. Where little stands on the last page, it is
// laid out once more with less white space, in case that saves the page.
func (r *Renderer) compose(ctx context.Context, w *workspace, v *Visual) (*composition, error) {
	c, err := r.layOut(ctx, w, v, false)
	if err != nil || len(c.sheets) < 2 || len(c.sheets) > tightPagesMax || c.y > c.contentEnd()*45/100 {
		return c, err
	}
	tight, err := r.layOut(ctx, w, v, true)
	if err != nil || len(tight.sheets) == len(c.sheets) {
		return c, err
	}
	return tight, nil
}

// tightPagesMax bounds the second try: a page more or less of hundreds is no matter.
const tightPagesMax = 40

func (r *Renderer) layOut(ctx context.Context, w *workspace, v *Visual, tight bool) (*composition, error) {
	c := &composition{
		ctx: ctx, codes: &r.codes, notes: r.notes,
		doc:      content{v: v, vocabulary: r.vocabulary, currency: strings.ToUpper(v.Transaction.CurrencyCode)},
		on:       canvas{work: w, family: r.library.Family(v.Branding.Font), setter: r.setter, tight: tight},
		color:    newPalette(v.Branding),
		logo:     r.logo(v.Branding.Logo),
		template: v.Branding.Template.orDefault(v.Simplified),
	}
	c.on.paper = c.template.paper()
	c.chooseWords(r)
	if c.doc.title = typeset.Clean(v.Imprint.Title); c.doc.title == "" {
		c.doc.title = c.doc.words.Title(cmp.Or(v.Imprint.Kind, v.Transaction.Kind), v.Simplified)
	}
	if !v.Untagged {
		c.on.root = w.element()
		c.on.root.kind = "Document"
		c.on.tag = c.on.root
	}
	draw := c.drawPage
	if c.on.paper.roll {
		draw = receipt{c}.drawReceipt
	}
	if err := draw(); err != nil {
		return nil, err
	}
	for _, s := range c.sheets {
		s.endMark()
	}
	return c, ctx.Err()
}

// drawPage draws a document on A4.
func (c *composition) drawPage() error {
	c.feet = c.footLines()
	c.newPage()
	c.drawHead()
	c.drawFacts()
	if err := c.drawParties(); err != nil {
		return err
	}
	if len(c.doc.v.Transaction.Items) > 0 {
		if err := c.drawLines(); err != nil {
			return err
		}
		c.sums().drawTotals()
	}
	if err := c.drawPayments(); err != nil {
		return err
	}
	noteText{c}.drawNote()
	c.drawTail()
	c.drawFeet()
	return nil
}

// chooseWords takes the words of the language, or English ones where it has
// none or no font can set them.
func (c *composition) chooseWords(r *Renderer) {
	code, country := c.doc.v.language(), strings.ToUpper(c.doc.v.Supplier.CountryCode)
	c.doc.words = r.vocabulary.Words(code, country)
	c.english = !words.Speaks(code)
	if _, missing := c.on.setter.Settable(c.doc.words.Invoice + c.doc.words.Transliterated); len(missing) > 0 {
		c.on.missing = append(c.on.missing, missing...)
		c.doc.words, c.english = r.vocabulary.Words("EN", country), true
	}
	c.on.lang = c.doc.words.Tag
	c.on.rtl = c.doc.words.Tag == "ar" || c.doc.words.Tag == "he"
	c.on.leading = leadingLatin
	if c.on.tight {
		c.on.leading = leadingTight
	}
	if p := (pen{typeset.Regular, kernedFrom, rgb{}}); !c.on.family.Plain(p.style, c.doc.words.Invoice) {
		line := c.on.setter.Line(c.on.font(p), c.doc.words.Invoice+c.doc.words.Payable+c.doc.words.Description+c.doc.words.UnitPrice+c.doc.words.TaxTotal)
		c.on.leading = max(c.on.leading, length(line.Ascent-line.Descent)*leadingTall/1000)
	}
}

// Distances of lines in hundredths of their size: of Latin letters, the same
// with less white space, and of the whole height of taller letters.
const (
	leadingLatin = 138
	leadingTight = 126
	leadingTall  = 112
)

// space is white space between parts of a document.
func (on *canvas) space(l length) length {
	if on.tight {
		return l * 55 / 100
	}
	return l
}

// lead is the distance from one line of text to the next.
func (on *canvas) lead(p pen) length { return p.size * on.leading / 100 }

// leadOf is lead for a line that may have taller letters than the document's.
func (on *canvas) leadOf(p pen, s string) length {
	if on.plain(p, s) {
		return on.lead(p)
	}
	line := on.setter.Line(on.font(p), on.settable(s))
	return max(on.lead(p), p.size*length(line.Ascent-line.Descent)*leadingTall/100_000)
}

// newPage begins a page; all but the first carry a running head.
func (c *composition) newPage() {
	if c.on.sheet != nil {
		c.on.sheet.height = c.y
	}
	c.on.sheet = c.on.work.sheet(len(c.sheets))
	c.sheets = append(c.sheets, c.on.sheet)
	c.y, c.end = c.on.paper.top, c.contentEnd()
	c.on.asArtifact(func() {
		if c.doc.v.Specimen {
			c.drawSpecimen()
		}
		if len(c.sheets) > 1 && !c.on.paper.roll {
			c.drawRunningHead()
		}
	})
}

// contentEnd is where text ends on a page, above the foot.
func (c *composition) contentEnd() length {
	if c.on.paper.roll {
		return c.on.paper.height - c.on.paper.top
	}
	return c.footTop() - 5*millimetre
}

// need makes room for something of a height, on a new page if it must be. What
// is higher than a page is drawn from the top of one: callers split it.
func (c *composition) need(height length) {
	if c.y+height > c.end {
		c.turnPage()
	}
}

// fresh reports whether nothing but the running head stands on the page.
func (c *composition) fresh() bool { return c.y <= c.on.paper.top+20*millimetre }

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
func (on *canvas) rule(x, y, width length, s stroke) {
	on.box(rectangle{x, y - s.thickness/2, width, s.thickness}, s.color)
}

// rectangle is given by its upper corner where lines begin.
type rectangle struct{ x, y, width, height length }

// box fills a rectangle: decoration, which nobody reads.
func (on *canvas) box(r rectangle, ink rgb) {
	on.asArtifact(func() {
		on.beginMark()
		sh := on.sheet
		sh.setFill(ink)
		for _, v := range []length{on.across(r.x, r.width), on.paper.height - r.y - r.height, r.width, r.height} {
			sh.out = v.append(sh.out)
			sh.out = append(sh.out, ' ')
		}
		sh.out = append(sh.out, "re f\n"...)
	})
}

// across is where something of a width begins from the left edge.
func (on *canvas) across(x, width length) length {
	if on.rtl {
		return on.paper.width - x - width
	}
	return x
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

// Template is the arrangement of a document.
//
// What leads on paper is the number, the date, the amount and whether it is paid;
// our own unique number stands small at the end. A name or a tax number in the foot
// is never cut: the foot grows. Where the last page would be almost empty, a
// document of up to 40 pages is laid out once more with tighter lines, because
// white space bends before a page does. Running heads, feet, carried sums and lines
// are artifacts to readers that speak: they repeat or decorate.
type Template string

// The templates. The zero value means classic.
const (
	Classic Template = "classic" // A4, sober
	Modern  Template = "modern"  // A4, the facts in a row, tinted tables
	Receipt Template = "receipt" // a roll of 80 mm, for consumers
)

// Templates lists the names that [Branding] knows.
func Templates() []Template { return []Template{Classic, Modern, Receipt} }

// orDefault returns a template that there is. A full invoice is never a
// receipt: the roll has no room for what a business must find on one.
func (t Template) orDefault(simplified bool) Template {
	if !slices.Contains(Templates(), t) || t == Receipt && !simplified {
		return Classic
	}
	return t
}

func (t Template) paper() paper {
	if t == Receipt {
		return roll()
	}
	return a4()
}
