package document

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// The pens of a document. Nothing that is meant to be read is smaller than
// captionSize, except where figures of twenty digits leave no choice.
const captionSize length = 7500

func (p *palette) bodyPen() pen  { return pen{typeset.Regular, 8800, p.ink} }
func (p *palette) smallPen() pen { return pen{typeset.Regular, captionSize, p.muted} }
func (p *palette) labelPen() pen { return pen{typeset.Medium, captionSize, p.accent} }
func (p *palette) namePen() pen  { return pen{typeset.Medium, 10 * point, p.ink} }

// drawHead draws the logo and what everybody looks for first: the number, the
// date, the amount and whether it is paid.
func (c *composition) drawHead() {
	if c.template == Modern {
		c.drawModernHead()
		return
	}
	c.drawMark()
	c.y += c.on.space(9 * millimetre)
	const amountWidth = 68 * millimetre
	titleWidth := c.on.paper.room() - amountWidth - 6*millimetre
	var left, right block
	c.on.within("H1", func() { c.addTitle(&left, titleWidth) })
	c.on.within("P", func() {
		first := len(left)
		left.add(&c.on, pen{typeset.Regular, 10 * point, c.color.ink}, c.doc.words.Format.Date(c.doc.v.Transaction.Date, c.doc.v.location()), titleWidth)
		left.gap(first, 1500)
	})
	c.on.within("P", func() { c.addAmount(&right, amountWidth) })
	if extra := left.height() - right.height(); extra > 0 { // both end on one line
		right.gap(0, extra)
	}
	c.drawColumns(column{x: c.on.paper.side, width: titleWidth, lines: left},
		column{x: c.on.paper.right() - amountWidth, width: amountWidth, align: finish, lines: right})
	c.y += c.on.space(5 * millimetre)
	c.on.rule(c.on.paper.side, c.y, c.on.paper.room(), stroke{500, c.color.hair})
	c.y += c.on.space(5 * millimetre)
}

// addTitle adds the document's name and number.
func (c *composition) addTitle(b *block, width length) {
	p := pen{typeset.Regular, 24 * point, c.color.ink}
	p.size = c.on.fitted(p, c.doc.title, width, 16*point) // some languages need more words
	b.add(&c.on, p, c.doc.title, width)
	number := len(*b)
	b.add(&c.on, pen{typeset.Medium, 12 * point, c.color.accent}, typeset.Clean(c.doc.v.Transaction.Number), width)
	b.gap(number, 1500)
}

// addAmount adds what is to be paid, and whether it was.
func (c *composition) addAmount(b *block, width length) {
	if len(c.doc.v.Transaction.Items) == 0 {
		return
	}
	label, value := c.doc.payable()
	b.add(&c.on, pen{typeset.Regular, 9 * point, c.color.muted}, label, width)
	p := pen{typeset.Medium, 20 * point, c.color.accent}
	p.size = c.on.fitted(p, value, width, 8*point)
	b.add(&c.on, p, value, width)
	b.add(&c.on, pen{typeset.Regular, 9 * point, c.color.ink}, c.doc.paymentState(), width)
}

// payable is the amount that matters, with its name.
func (d *content) payable() (label, value string) {
	amount := d.v.Totals.Payable()
	label = d.words.Payable
	switch {
	case amount < 0 || d.credits():
		label = d.words.Refund
	case d.open() < amount, d.v.Simplified && len(d.v.Transaction.Payments) == 0 && d.due() == "":
		label = d.words.Total // a receipt that says nothing else was paid where it was given
	}
	return label, d.words.Money(amount, d.currency)
}

// credits reports whether the document takes another back: what it comes to is
// owed to the buyer, whatever sign its amounts have.
func (d *content) credits() bool {
	kind := cmp.Or(d.v.Imprint.Kind, d.v.Transaction.Kind)
	return kind == transaction.Credit || kind == transaction.Cancellation
}

// span writes a period of days; "" without one.
func (d *content) span(s *transaction.Span) string {
	if s == nil {
		return ""
	}
	return words.Join(" – ", d.day(s.From), d.day(s.To))
}

// due is until when the document is to be paid.
func (d *content) due() string {
	return d.day(cmp.Or(d.v.Transaction.DueDate, d.v.Imprint.Advice.DueDate))
}

// open is the part that was not paid when the document was made: card, cash and
// check were, unless the data says another sum.
func (d *content) open() int64 {
	open := d.v.Totals.Payable()
	if paid := d.v.Imprint.Advice.Paid; paid != nil {
		return open - *paid
	}
	for _, p := range d.v.Transaction.Payments {
		if p.Type == "CARD" || p.Type == "CASH" || p.Type == "CHECK" {
			open -= p.Amount
		}
	}
	return open
}

func (d *content) isPaid() bool { return len(d.v.Transaction.Payments) > 0 && d.open() == 0 }

// paymentState says whether and how the amount is paid, or until when; "" where
// the transaction does not say.
func (d *content) paymentState() string {
	t, due := &d.v.Transaction, d.due()
	switch {
	case d.credits() && !d.isPaid():
		return ""
	case d.isPaid():
		return words.Join(" · ", d.words.Paid, d.words.Payment(t.Payments[0].Type))
	case d.open() < d.v.Totals.Payable() && d.open() > 0: // a part is paid
		return words.Join(" ", d.words.Unpaid, d.words.Money(d.open(), d.currency))
	case due != "":
		return d.words.DueDate + " " + due
	case len(t.Payments) > 0 && d.v.Totals.Payable() > 0:
		return d.words.Unpaid
	}
	return ""
}

// day writes a day of the form YYYY-MM-DD as the language does, and whatever else as it is.
func (d *content) day(s string) string {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return typeset.Clean(s)
	}
	return d.words.Format.Day(t)
}

// drawMark draws the logo, or the supplier's name in its place.
func (c *composition) drawMark() {
	name := typeset.Clean(c.doc.v.Supplier.LegalName)
	if c.logo == nil {
		p := pen{typeset.Medium, 13 * point, c.color.accent}
		name = c.on.cut(p, name, c.on.paper.room())
		c.on.within("P", func() { c.on.text(p, c.markPlace(c.on.width(p, name)), c.y+c.on.base(p), name) })
		c.y += c.on.lead(p)
		return
	}
	width, height := c.logo.fit()
	x := c.on.across(c.markPlace(width), width)
	e := c.on.within("Figure", func() {
		c.on.beginMark()
		sh := c.on.sheet
		sh.out = append(sh.out, "q "...)
		for _, v := range []length{width, 0, 0, height, x, c.on.paper.height - c.y - height} {
			sh.out = v.append(sh.out)
			sh.out = append(sh.out, ' ')
		}
		sh.out = append(sh.out, "cm /Logo Do Q\n"...)
	})
	if name == "" {
		name = c.doc.title
	}
	e.shows(&c.on, name, rectangle{x, c.y, width, height})
	c.y += height
}

// shows gives a figure its words and its place on the page.
func (e *element) shows(on *canvas, alternative string, r rectangle) {
	if e == nil {
		return
	}
	out := append(make([]byte, 0, 1024), "/Alt"...)
	out = appendText(out, alternative)
	out = append(out, "/A<</O/Layout/Placement/Block/BBox["...)
	for _, l := range [...]length{r.x, on.paper.height - r.y - r.height, r.x + r.width, on.paper.height - r.y} {
		out = append(l.append(out), ' ')
	}
	e.extra = string(append(out[:len(out)-1], "]>>"...))
}

func (c *composition) markPlace(width length) length {
	switch c.doc.v.Branding.Placement {
	case Center:
		return (c.on.paper.width - width) / 2
	case Right:
		return c.on.paper.right() - width
	}
	return c.on.paper.side
}

// fact is a labelled value.
type fact struct{ label, value string }

// facts are what the document refers to, in the order in which people ask.
func (d *content) facts() []fact {
	var out []fact
	add := func(label, value string) {
		if value = typeset.Clean(value); value != "" {
			out = append(out, fact{label, value})
		}
	}
	t, w := &d.v.Transaction, &d.words
	if o := d.v.Original; o != nil {
		for _, each := range append([]Reference{*o}, d.v.Others...) {
			add(w.Corrects, words.Join(" · ", each.Number, w.Format.Date(each.Date, d.v.location())))
			add(w.AuthorityID, each.AuthorityID)
		}
	}
	add(w.Reason, d.spoken(t.Reason))
	add(w.DeliveryDate, d.day(t.DeliveryDate))
	add(w.Period, d.span(t.Period))
	if d.isPaid() {
		add(w.DueDate, d.due())
	}
	add(w.BuyerReference, t.References.Buyer)
	add(w.OrderReference, t.References.Order)
	add(w.ContractReference, t.References.Contract)
	add(w.ProjectReference, t.References.Project)
	add(w.Attachments, attachmentNames(t.Attachments))
	return out
}

// attachmentNames are those of the client's own files, which stand beside the page.
func attachmentNames(list []transaction.Attachment) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return strings.Join(names, ", ")
}

// drawFacts draws them three to a row, each name above its value.
func (c *composition) drawFacts() {
	all := c.doc.facts()
	if len(all) == 0 {
		return
	}
	const across, apart = 3, 6 * millimetre
	width := (c.on.paper.room() - (across-1)*apart) / across
	c.on.within("Table", func() {
		for len(all) > 0 {
			n := min(across, len(all))
			var columns []column
			for i, f := range all[:n] {
				columns = append(columns, column{x: c.on.paper.side + length(i)*(width+apart), width: width, lines: c.factLines(f, width)})
			}
			c.drawColumns(columns...)
			c.y += 2500
			all = all[n:]
		}
	})
	c.y += c.on.space(4 * millimetre)
}

// factLines is a name with its value below, as a row of a table.
func (c *composition) factLines(f fact, width length) block {
	var b block
	c.on.within("TR", func() {
		c.on.within("TH", func() { b.add(&c.on, c.color.smallPen(), f.label, width) }).heads(scopeRow)
		c.on.within("TD", func() { b.add(&c.on, c.color.bodyPen(), f.value, width) })
	})
	return b
}

// drawRunningHead tells on later pages which document they belong to.
func (c *composition) drawRunningHead() {
	p := c.color.smallPen()
	p.size = 8 * point
	half := c.on.paper.room()/2 - 3*millimetre
	c.on.text(p, c.on.paper.side, c.y+c.on.base(p), c.on.cut(p, words.Join(" ", c.doc.title, c.doc.v.Transaction.Number), half))
	c.on.textRight(p, c.on.paper.right(), c.y+c.on.base(p), c.on.cut(p, typeset.Clean(c.doc.v.Supplier.LegalName), half))
	c.y += c.on.lead(p) + 2*millimetre
	c.on.rule(c.on.paper.side, c.y, c.on.paper.room(), stroke{500, c.color.hair})
	c.y += c.on.space(6 * millimetre)
}

// drawSpecimen marks a page of the test environment.
func (c *composition) drawSpecimen() {
	p := pen{typeset.Medium, 8 * point, rgb{0x9A, 0x34, 0x12}}
	p.size = c.on.fitted(p, c.doc.words.Specimen, c.on.paper.room()-6*millimetre, 5*point)
	width := c.on.width(p, c.doc.words.Specimen) + 6*millimetre
	top := 6 * millimetre
	if c.on.paper.roll {
		top = c.y
		c.y += c.on.space(9 * millimetre)
	}
	c.on.box(rectangle{(c.on.paper.width - width) / 2, top, width, 6 * millimetre}, rgb{0xFD, 0xEE, 0xE4})
	c.on.text(p, (c.on.paper.width-width)/2+3*millimetre, top+11200, c.doc.words.Specimen)
}

// footLines are who issues the document, with the client's own words below. A
// name or a number is never cut: the foot grows upwards.
func (c *composition) footLines() []string {
	p := c.color.smallPen()
	who := words.Join(" · ", c.doc.v.Supplier.LegalName, words.Join(" ", c.doc.taxNumberLabel(supplierParty(c.doc.v.Supplier)), c.doc.v.Supplier.TaxNumber))
	lines := c.on.wrap(p, who, c.on.paper.room()*3/4)
	for _, text := range typeset.CleanLines(c.doc.v.Branding.Footer) {
		lines = append(lines, c.on.wrap(p, text, c.on.paper.room()*3/4)...)
	}
	return lines[:min(len(lines), footLinesMax)]
}

const footLinesMax = 16 // a name of 450 wide letters takes ten, its number one, the client's words four

// footTop is where the foot begins.
func (c *composition) footTop() length {
	height := length(max(len(c.feet), 1)) * c.on.lead(c.color.smallPen())
	return c.on.paper.height - 9*millimetre - 3*millimetre - height
}

// drawFeet numbers the pages, once it is known how many there are.
func (c *composition) drawFeet() {
	p := c.color.smallPen()
	c.on.asArtifact(func() {
		for i, s := range c.sheets {
			c.on.sheet = s
			y := c.footTop()
			c.on.rule(c.on.paper.side, y, c.on.paper.room(), stroke{500, c.color.hair})
			y += 3*millimetre + p.size/2
			c.on.textRight(p, c.on.paper.right(), y, fmt.Sprintf(c.doc.words.Page, i+1, len(c.sheets)))
			for _, line := range c.feet {
				c.on.text(p, c.on.paper.side, y, line)
				y += c.on.lead(p)
			}
		}
	})
}

// heading begins a section, and is never the last line of a page.
func (c *composition) heading(text string) {
	p := c.color.labelPen()
	c.need(c.on.lead(p) + 2*point + 2*c.on.lead(c.color.bodyPen()))
	c.on.within("H2", func() { c.on.text(p, c.on.paper.side, c.y+c.on.base(p), text) })
	c.y += c.on.lead(p) + 2*point
}

// drawModernHead draws a band in the client's colour, the title beside the logo,
// and the facts in a row below.
func (c *composition) drawModernHead() {
	c.on.box(rectangle{0, 0, c.on.paper.width, 4 * millimetre}, c.color.accent)
	c.y += c.on.space(2 * millimetre)
	top := c.y
	c.drawMark()
	below := c.y
	p := pen{typeset.Medium, 17 * point, c.color.ink}
	const titleWidth = 80 * millimetre
	p.size = c.on.fitted(p, c.doc.title, titleWidth, 11*point)
	var title block
	c.on.within("H1", func() { title.add(&c.on, p, c.doc.title, titleWidth) })
	place := column{x: c.on.paper.right() - titleWidth, width: titleWidth, align: finish, lines: title}
	if c.doc.v.Branding.Placement == Right {
		place.x, place.align = c.on.paper.side, start
	}
	c.y = top
	if c.doc.v.Branding.Placement == Center || c.logo == nil {
		c.y = below + 3*millimetre
		place.x, place.align, place.width = c.on.paper.side, start, c.on.paper.room()
	}
	c.drawColumns(place)
	c.y = max(c.y, below) + 6*millimetre

	label, amount := c.doc.payable()
	all := []fact{{c.doc.words.Number, typeset.Clean(c.doc.v.Transaction.Number)}, {c.doc.words.Date, c.doc.words.Format.Date(c.doc.v.Transaction.Date, c.doc.v.location())}}
	if len(c.doc.v.Transaction.Items) > 0 {
		all = append(all, c.doc.stateFact(), fact{label, amount})
	}
	c.drawFactRow(all)
}

// drawFactRow draws facts side by side on a tinted ground; the last is the amount.
func (c *composition) drawFactRow(all []fact) {
	const pad = 4 * millimetre
	inner := c.on.paper.room() - 2*pad
	shares := []length{28, 22, 22, 28}
	var columns []column
	x := c.on.paper.side + pad
	c.on.within("Table", func() {
		for i, f := range all {
			width := inner * shares[i] / 100
			col := column{x: x, width: width - 3*millimetre}
			c.on.within("TR", func() { col.lines = c.factCell(f, col.width, i == len(all)-1) })
			if i == len(shares)-1 {
				col.width, col.align = width, finish
			}
			columns = append(columns, col)
			x += width
		}
	})
	var height length
	for _, col := range columns {
		height = max(height, col.lines.height())
	}
	c.on.box(rectangle{c.on.paper.side, c.y, c.on.paper.room(), height + 2*pad - 2*point}, c.color.tint)
	c.y += pad
	c.drawColumns(columns...)
	c.y += pad + 4*millimetre
}

// stateFact is whether the amount is paid, as a fact of its own.
func (d *content) stateFact() fact {
	if due := d.due(); due != "" && !d.isPaid() && !d.credits() {
		return fact{d.words.DueDate, due}
	}
	if state := d.paymentState(); state != "" {
		return fact{d.words.Payments, state}
	}
	return fact{}
}

// factCell is a fact of the row.
func (c *composition) factCell(f fact, width length, amount bool) block {
	var b block
	value := pen{typeset.Medium, 11 * point, c.color.ink}
	const tallest = 15 * point
	if amount {
		value = pen{typeset.Medium, tallest, c.color.accent}
	}
	name := c.color.smallPen()
	name.color = c.color.ink
	value.size = c.on.fitted(value, f.value, width, 8*point)
	c.on.within("TH", func() { b.add(&c.on, name, f.label, width) }).heads(scopeRow)
	below := len(b)
	c.on.within("TD", func() { b.add(&c.on, value, f.value, width) })
	b.gap(below, c.on.base(pen{size: tallest})-c.on.base(value)) // all on one line
	return b
}
