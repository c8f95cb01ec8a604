package document

import (
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// The pens of a document.
func (c *composition) bodyPen() pen  { return pen{typeset.Regular, 8800, c.ink} }
func (c *composition) smallPen() pen { return pen{typeset.Regular, 7500, c.muted} }
func (c *composition) labelPen() pen { return pen{typeset.Medium, 7200, c.accent} }
func (c *composition) namePen() pen  { return pen{typeset.Medium, 10 * point, c.ink} }
func (c *composition) titlePen() pen { return pen{typeset.Regular, 25 * point, c.ink} }

// block is a column of lines, drawn line by line so that it can go on over a page break.
type block []blockLine

type blockLine struct {
	pen    pen
	text   string
	before length // white space above
}

// add appends a text, broken into lines of a width.
func (b *block) add(c *composition, p pen, s string, width length) {
	for _, line := range c.wrap(p, s, width) {
		*b = append(*b, blockLine{pen: p, text: line})
	}
}

// gap puts white space above the line that was added at an index.
func (b block) gap(index int, before length) {
	if index < len(b) {
		b[index].before = before
	}
}

func (b block) height() length {
	var total length
	for _, l := range b {
		total += l.before + l.pen.lead()
	}
	return total
}

// column is a block with its place.
type column struct {
	x     length
	right bool // x is where its lines end
	lines block
}

// drawColumns draws blocks side by side from the same height, over as many
// pages as the longest needs.
func (c *composition) drawColumns(columns ...column) {
	for {
		lowest, left := c.y, false
		for i := range columns {
			col, y := &columns[i], c.y
			for len(col.lines) > 0 {
				l := col.lines[0]
				if y+l.before+l.pen.lead() > c.end {
					break
				}
				y += l.before
				if col.right {
					c.textRight(l.pen, col.x, y+l.pen.size, l.text)
				} else {
					c.text(l.pen, col.x, y+l.pen.size, l.text)
				}
				y += l.pen.lead()
				col.lines = col.lines[1:]
			}
			lowest = max(lowest, y)
			left = left || len(col.lines) > 0
		}
		c.y = lowest
		if !left {
			return
		}
		c.turnPage()
	}
}

// drawHead draws logo, title and the document's particulars.
func (c *composition) drawHead() {
	c.drawMark()
	c.y += 10 * millimetre
	p := c.titlePen()
	const metaWidth = 84 * millimetre
	titleWidth := contentWidth - metaWidth - 6*millimetre
	p.size = c.fitted(p, c.title, titleWidth, 16*point) // some languages need more words
	var title block
	title.add(c, p, c.title, titleWidth)
	number := len(title)
	title.add(c, pen{typeset.Regular, 11 * point, c.accent}, typeset.Clean(c.v.Transaction.Number), titleWidth)
	title.gap(number, point)

	labels, values := c.particulars(metaWidth)
	for _, b := range []block{labels, values} { // on the title's base line
		b.gap(0, p.size-c.bodyPen().size)
	}
	x := contentRight - metaWidth
	c.drawColumns(column{x: marginSide, lines: title}, column{x: x, lines: labels}, column{x: x + metaWidth*42/100, lines: values})
	c.y += 6 * millimetre
	c.rule(marginSide, c.y, contentWidth, stroke{500, c.hair})
	c.y += 5 * millimetre
}

// drawMark draws the logo, or the supplier's name in its place.
func (c *composition) drawMark() {
	if c.logo == nil {
		p := pen{typeset.Medium, 13 * point, c.accent}
		name := c.cut(p, typeset.Clean(c.v.Supplier.LegalName), contentWidth)
		c.text(p, c.markPlace(c.width(p, name)), c.y+p.size, name)
		c.y += p.lead()
		return
	}
	width, height := c.logo.fit()
	x := c.markPlace(width)
	sh := c.sheet
	sh.out = append(sh.out, "q "...)
	for _, v := range []length{width, 0, 0, height, x, pageHeight - c.y - height} {
		sh.out = v.append(sh.out)
		sh.out = append(sh.out, ' ')
	}
	sh.out = append(sh.out, "cm /Logo Do Q\n"...)
	c.y += height
}

func (c *composition) markPlace(width length) length {
	switch c.v.Branding.Placement {
	case Center:
		return (pageWidth - width) / 2
	case Right:
		return contentRight - width
	}
	return marginSide
}

// particulars are the labelled values beside the title, in two columns that keep step.
func (c *composition) particulars(width length) (labels, values block) {
	value := c.bodyPen()
	label := pen{typeset.Regular, value.size, c.muted}
	labelWidth, valueWidth := width*42/100-2*millimetre, width*58/100
	add := func(name, text string) {
		if text == "" {
			return
		}
		l, v := c.wrap(label, name, labelWidth), []string{text}
		tight := value
		if tight.size = c.fitted(value, text, valueWidth, value.size*75/100); c.width(tight, text) > valueWidth {
			tight, v = value, c.wrap(value, text, valueWidth)
		}
		for i := range max(len(l), len(v)) {
			labels = append(labels, blockLine{pen: label, text: at(l, i)})
			values = append(values, blockLine{pen: tight, text: at(v, i), before: value.lead() - tight.lead()})
		}
	}
	t, w := &c.v.Transaction, &c.words
	add(w.date, w.format.date(t.Date, c.v.location()))
	if c.v.UniqueNumber != t.Number {
		add(w.uniqueNumber, typeset.Clean(c.v.UniqueNumber))
	}
	if o := c.v.Original; o != nil {
		text := typeset.Clean(o.Number)
		if day := w.format.date(o.Date, c.v.location()); day != "" {
			text = strings.TrimPrefix(text+" · "+day, " · ")
		}
		add(w.corrects, text)
		add(w.authorityID, typeset.Clean(o.AuthorityID))
	}
	add(w.reason, typeset.Clean(t.Reason))
	return labels, values
}

// drawParties draws who sells, who issues, who buys, and the codes beside them.
func (c *composition) drawParties() error {
	codes, height, err := c.newQRBlocks()
	if err != nil {
		return err
	}
	const apart = 7 * millimetre
	right := contentRight
	for _, code := range codes {
		right -= code.width + apart
	}
	c.need(height)
	top, page := c.y, len(c.sheets)
	width := (right - marginSide - apart) / 2
	var seller, buyer block
	c.addParty(&seller, c.words.supplier, supplierParty(c.v.Supplier), width)
	if c.v.Transaction.Issuer != nil {
		c.addParty(&seller, c.words.issuer, *c.v.Transaction.Issuer, width)
	}
	if c.v.Transaction.Customer != nil {
		c.addParty(&buyer, c.words.customer, *c.v.Transaction.Customer, width)
	}
	x := right
	for _, code := range codes {
		x += apart
		code.draw(c, x, top)
		x += code.width
	}
	c.drawColumns(column{x: marginSide, lines: seller}, column{x: marginSide + width + apart, lines: buyer})
	if page == len(c.sheets) {
		c.y = max(c.y, top+height)
	}
	c.y += 9 * millimetre
	return nil
}

// newQRBlocks measures the codes; height is that of the tallest.
func (c *composition) newQRBlocks() (codes []*qrBlock, height length, err error) {
	for i := range c.v.Codes[:min(len(c.v.Codes), codesMax)] {
		code, err := c.newQRBlock(&c.v.Codes[i])
		if err != nil {
			return nil, 0, err
		}
		codes, height = append(codes, code), max(height, code.height)
	}
	return codes, height, nil
}

func supplierParty(s country.Supplier) transaction.Party {
	return transaction.Party{LegalName: s.LegalName, EntityNumber: s.CompanyNumber, Address: &s.Address, TaxNumber: s.TaxNumber, TaxRegime: s.TaxRegime}
}

// addParty writes a party below what the block already has.
func (c *composition) addParty(b *block, role string, p transaction.Party, width length) {
	first := len(*b)
	b.add(c, c.labelPen(), role, width)
	if first > 0 {
		b.gap(first, 4*millimetre)
	}
	name := len(*b)
	b.add(c, c.namePen(), typeset.Clean(p.LegalName), width)
	b.gap(name, 1500)
	body := len(*b)
	if trade := typeset.Clean(p.TradeName); trade != typeset.Clean(p.LegalName) {
		b.add(c, c.bodyPen(), trade, width)
	}
	if p.Address != nil {
		for _, line := range c.address(*p.Address) {
			b.add(c, c.bodyPen(), line, width)
		}
	}
	b.gap(body, 1500)
	ids := len(*b)
	for _, id := range [][2]string{{c.taxNumberLabel(p), p.TaxNumber}, {c.words.companyNumber, p.EntityNumber}} {
		if value := typeset.Clean(id[1]); value != "" {
			b.add(c, c.bodyPen(), id[0]+" "+value, width)
		}
	}
	b.gap(ids, 2500)
}

// drawRunningHead tells on later pages which document they belong to.
func (c *composition) drawRunningHead() {
	p := c.smallPen()
	p.size = 8 * point
	const half = contentWidth/2 - 3*millimetre
	c.text(p, marginSide, c.y+p.size, c.cut(p, joined(" ", c.title, c.v.Transaction.Number), half))
	c.textRight(p, contentRight, c.y+p.size, c.cut(p, typeset.Clean(c.v.Supplier.LegalName), half))
	c.y += p.lead() + 2*millimetre
	c.rule(marginSide, c.y, contentWidth, stroke{500, c.hair})
	c.y += 6 * millimetre
}

// drawSpecimen marks a page of the test environment.
func (c *composition) drawSpecimen() {
	p := pen{typeset.Medium, 8 * point, rgb{0x9A, 0x34, 0x12}}
	width := c.width(p, c.words.specimen) + 6*millimetre
	c.box(rectangle{(pageWidth - width) / 2, 6 * millimetre, width, 6 * millimetre}, rgb{0xFD, 0xEE, 0xE4})
	c.text(p, (pageWidth-width)/2+3*millimetre, 6*millimetre+11200, c.words.specimen)
}

// drawFeet numbers the pages, once it is known how many there are.
func (c *composition) drawFeet() {
	p := c.smallPen()
	p.size = 7200
	left := c.cut(p, joined(" · ", c.v.Supplier.LegalName, joined(" ", c.taxNumberLabel(supplierParty(c.v.Supplier)), c.v.Supplier.TaxNumber)), contentWidth*3/4)
	for i, s := range c.sheets {
		c.sheet = s
		y := pageHeight - 15*millimetre
		c.rule(marginSide, y, contentWidth, stroke{500, c.hair})
		y += 3*millimetre + p.size/2
		c.text(p, marginSide, y, left)
		c.textRight(p, contentRight, y, fmt.Sprintf(c.words.page, i+1, len(c.sheets)))
	}
}
