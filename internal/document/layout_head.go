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

func (c *composition) bodyPen() pen  { return pen{typeset.Regular, 8800, c.ink} }
func (c *composition) smallPen() pen { return pen{typeset.Regular, captionSize, c.muted} }
func (c *composition) labelPen() pen { return pen{typeset.Medium, captionSize, c.accent} }
func (c *composition) namePen() pen  { return pen{typeset.Medium, 10 * point, c.ink} }

// drawHead draws the logo and what everybody looks for first: the number, the
// date, the amount and whether it is paid.
func (c *composition) drawHead() {
	if c.template == Modern {
		c.drawModernHead()
		return
	}
	c.drawMark()
	c.y += c.space(9 * millimetre)
	const amountWidth = 68 * millimetre
	titleWidth := c.paper.room() - amountWidth - 6*millimetre
	var left, right block
	c.within("H1", func() { c.addTitle(&left, titleWidth) })
	c.within("P", func() {
		first := len(left)
		left.add(c, pen{typeset.Regular, 10 * point, c.ink}, c.words.Format.Date(c.v.Transaction.Date, c.v.location()), titleWidth)
		left.gap(first, 1500)
	})
	c.within("P", func() { c.addAmount(&right, amountWidth) })
	if extra := left.height() - right.height(); extra > 0 { // both end on one line
		right.gap(0, extra)
	}
	c.drawColumns(column{x: c.paper.side, width: titleWidth, lines: left},
		column{x: c.paper.right() - amountWidth, width: amountWidth, align: finish, lines: right})
	c.y += c.space(5 * millimetre)
	c.rule(c.paper.side, c.y, c.paper.room(), stroke{500, c.hair})
	c.y += c.space(5 * millimetre)
}

// addTitle adds the document's name and number.
func (c *composition) addTitle(b *block, width length) {
	p := pen{typeset.Regular, 24 * point, c.ink}
	p.size = c.fitted(p, c.title, width, 16*point) // some languages need more words
	b.add(c, p, c.title, width)
	number := len(*b)
	b.add(c, pen{typeset.Medium, 12 * point, c.accent}, typeset.Clean(c.v.Transaction.Number), width)
	b.gap(number, 1500)
}

// addAmount adds what is to be paid, and whether it was.
func (c *composition) addAmount(b *block, width length) {
	if len(c.v.Transaction.Items) == 0 {
		return
	}
	label, value := c.payable()
	b.add(c, pen{typeset.Regular, 9 * point, c.muted}, label, width)
	p := pen{typeset.Medium, 20 * point, c.accent}
	p.size = c.fitted(p, value, width, 8*point)
	b.add(c, p, value, width)
	b.add(c, pen{typeset.Regular, 9 * point, c.ink}, c.paymentState(), width)
}

// payable is the amount that matters, with its name.
func (c *composition) payable() (label, value string) {
	amount := c.v.Totals.Payable()
	label = c.words.Payable
	switch {
	case amount < 0 || c.credits():
		label = c.words.Refund
	case c.open() < amount, c.v.Simplified && len(c.v.Transaction.Payments) == 0 && c.due() == "":
		label = c.words.Total // a receipt that says nothing else was paid where it was given
	}
	return label, c.words.Money(amount, c.currency)
}

// credits reports whether the document takes another back: what it comes to is
// owed to the buyer, whatever sign its amounts have.
func (c *composition) credits() bool {
	kind := cmp.Or(c.v.Imprint.Kind, c.v.Transaction.Kind)
	return kind == transaction.Credit || kind == transaction.Cancellation
}

// span writes a period of days; "" without one.
func (c *composition) span(s *transaction.Span) string {
	if s == nil {
		return ""
	}
	return words.Join(" – ", c.day(s.From), c.day(s.To))
}

// due is until when the document is to be paid.
func (c *composition) due() string {
	return c.day(cmp.Or(c.v.Transaction.DueDate, c.v.Imprint.Advice.DueDate))
}

// open is the part that was not paid when the document was made: card, cash and
// check were, unless the data says another sum.
func (c *composition) open() int64 {
	open := c.v.Totals.Payable()
	if paid := c.v.Imprint.Advice.Paid; paid != nil {
		return open - *paid
	}
	for _, p := range c.v.Transaction.Payments {
		if p.Type == "CARD" || p.Type == "CASH" || p.Type == "CHECK" {
			open -= p.Amount
		}
	}
	return open
}

func (c *composition) isPaid() bool { return len(c.v.Transaction.Payments) > 0 && c.open() == 0 }

// paymentState says whether and how the amount is paid, or until when; "" where
// the transaction does not say.
func (c *composition) paymentState() string {
	t, due := &c.v.Transaction, c.due()
	switch {
	case c.credits() && !c.isPaid():
		return ""
	case c.isPaid():
		return words.Join(" · ", c.words.Paid, c.words.Payment(t.Payments[0].Type))
	case c.open() < c.v.Totals.Payable() && c.open() > 0: // a part is paid
		return words.Join(" ", c.words.Unpaid, c.words.Money(c.open(), c.currency))
	case due != "":
		return c.words.DueDate + " " + due
	case len(t.Payments) > 0 && c.v.Totals.Payable() > 0:
		return c.words.Unpaid
	}
	return ""
}

// day writes a day of the form YYYY-MM-DD as the language does, and whatever else as it is.
func (c *composition) day(s string) string {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return typeset.Clean(s)
	}
	return c.words.Format.Day(t)
}

// drawMark draws the logo, or the supplier's name in its place.
func (c *composition) drawMark() {
	name := typeset.Clean(c.v.Supplier.LegalName)
	if c.logo == nil {
		p := pen{typeset.Medium, 13 * point, c.accent}
		name = c.cut(p, name, c.paper.room())
		c.within("P", func() { c.text(p, c.markPlace(c.width(p, name)), c.y+c.base(p), name) })
		c.y += c.lead(p)
		return
	}
	width, height := c.logo.fit()
	x := c.across(c.markPlace(width), width)
	e := c.within("Figure", func() {
		c.beginMark()
		sh := c.sheet
		sh.out = append(sh.out, "q "...)
		for _, v := range []length{width, 0, 0, height, x, c.paper.height - c.y - height} {
			sh.out = v.append(sh.out)
			sh.out = append(sh.out, ' ')
		}
		sh.out = append(sh.out, "cm /Logo Do Q\n"...)
	})
	if name == "" {
		name = c.title
	}
	e.shows(c, name, rectangle{x, c.y, width, height})
	c.y += height
}

// shows gives a figure its words and its place on the page.
func (e *element) shows(c *composition, alternative string, r rectangle) {
	if e == nil {
		return
	}
	out := append(make([]byte, 0, 1024), "/Alt"...)
	out = appendText(out, alternative)
	out = append(out, "/A<</O/Layout/Placement/Block/BBox["...)
	for _, l := range [...]length{r.x, c.paper.height - r.y - r.height, r.x + r.width, c.paper.height - r.y} {
		out = append(l.append(out), ' ')
	}
	e.extra = string(append(out[:len(out)-1], "]>>"...))
}

func (c *composition) markPlace(width length) length {
	switch c.v.Branding.Placement {
	case Center:
		return (c.paper.width - width) / 2
	case Right:
		return c.paper.right() - width
	}
	return c.paper.side
}

// fact is a labelled value.
type fact struct{ label, value string }

// facts are what the document refers to, in the order in which people ask.
func (c *composition) facts() []fact {
	var out []fact
	add := func(label, value string) {
		if value = typeset.Clean(value); value != "" {
			out = append(out, fact{label, value})
		}
	}
	t, w := &c.v.Transaction, &c.words
	if o := c.v.Original; o != nil {
		for _, each := range append([]Reference{*o}, c.v.Others...) {
			add(w.Corrects, words.Join(" · ", each.Number, w.Format.Date(each.Date, c.v.location())))
			add(w.AuthorityID, each.AuthorityID)
		}
	}
	add(w.Reason, c.spoken(t.Reason))
	add(w.DeliveryDate, c.day(t.DeliveryDate))
	add(w.Period, c.span(t.Period))
	if c.isPaid() {
		add(w.DueDate, c.due())
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
	all := c.facts()
	if len(all) == 0 {
		return
	}
	const across, apart = 3, 6 * millimetre
	width := (c.paper.room() - (across-1)*apart) / across
	c.within("Table", func() {
		for len(all) > 0 {
			n := min(across, len(all))
			var columns []column
			for i, f := range all[:n] {
				columns = append(columns, column{x: c.paper.side + length(i)*(width+apart), width: width, lines: c.factLines(f, width)})
			}
			c.drawColumns(columns...)
			c.y += 2500
			all = all[n:]
		}
	})
	c.y += c.space(4 * millimetre)
}

// factLines is a name with its value below, as a row of a table.
func (c *composition) factLines(f fact, width length) block {
	var b block
	c.within("TR", func() {
		c.within("TH", func() { b.add(c, c.smallPen(), f.label, width) }).heads(scopeRow)
		c.within("TD", func() { b.add(c, c.bodyPen(), f.value, width) })
	})
	return b
}

// drawRunningHead tells on later pages which document they belong to.
func (c *composition) drawRunningHead() {
	p := c.smallPen()
	p.size = 8 * point
	half := c.paper.room()/2 - 3*millimetre
	c.text(p, c.paper.side, c.y+c.base(p), c.cut(p, words.Join(" ", c.title, c.v.Transaction.Number), half))
	c.textRight(p, c.paper.right(), c.y+c.base(p), c.cut(p, typeset.Clean(c.v.Supplier.LegalName), half))
	c.y += c.lead(p) + 2*millimetre
	c.rule(c.paper.side, c.y, c.paper.room(), stroke{500, c.hair})
	c.y += c.space(6 * millimetre)
}

// drawSpecimen marks a page of the test environment.
func (c *composition) drawSpecimen() {
	p := pen{typeset.Medium, 8 * point, rgb{0x9A, 0x34, 0x12}}
	p.size = c.fitted(p, c.words.Specimen, c.paper.room()-6*millimetre, 5*point)
	width := c.width(p, c.words.Specimen) + 6*millimetre
	top := 6 * millimetre
	if c.paper.roll {
		top = c.y
		c.y += c.space(9 * millimetre)
	}
	c.box(rectangle{(c.paper.width - width) / 2, top, width, 6 * millimetre}, rgb{0xFD, 0xEE, 0xE4})
	c.text(p, (c.paper.width-width)/2+3*millimetre, top+11200, c.words.Specimen)
}

// footLines are who issues the document, with the client's own words below. A
// name or a number is never cut: the foot grows upwards.
func (c *composition) footLines() []string {
	p := c.smallPen()
	who := words.Join(" · ", c.v.Supplier.LegalName, words.Join(" ", c.taxNumberLabel(supplierParty(c.v.Supplier)), c.v.Supplier.TaxNumber))
	lines := c.wrap(p, who, c.paper.room()*3/4)
	for _, text := range typeset.CleanLines(c.v.Branding.Footer) {
		lines = append(lines, c.wrap(p, text, c.paper.room()*3/4)...)
	}
	return lines[:min(len(lines), footLinesMax)]
}

const footLinesMax = 16 // a name of 450 wide letters takes ten, its number one, the client's words four

// footTop is where the foot begins.
func (c *composition) footTop() length {
	height := length(max(len(c.feet), 1)) * c.lead(c.smallPen())
	return c.paper.height - 9*millimetre - 3*millimetre - height
}

// drawFeet numbers the pages, once it is known how many there are.
func (c *composition) drawFeet() {
	p := c.smallPen()
	c.asArtifact(func() {
		for i, s := range c.sheets {
			c.sheet = s
			y := c.footTop()
			c.rule(c.paper.side, y, c.paper.room(), stroke{500, c.hair})
			y += 3*millimetre + p.size/2
			c.textRight(p, c.paper.right(), y, fmt.Sprintf(c.words.Page, i+1, len(c.sheets)))
			for _, line := range c.feet {
				c.text(p, c.paper.side, y, line)
				y += c.lead(p)
			}
		}
	})
}

// heading begins a section, and is never the last line of a page.
func (c *composition) heading(text string) {
	p := c.labelPen()
	c.need(c.lead(p) + 2*point + 2*c.lead(c.bodyPen()))
	c.within("H2", func() { c.text(p, c.paper.side, c.y+c.base(p), text) })
	c.y += c.lead(p) + 2*point
}

// drawModernHead draws a band in the client's colour, the title beside the logo,
// and the facts in a row below.
func (c *composition) drawModernHead() {
	c.box(rectangle{0, 0, c.paper.width, 4 * millimetre}, c.accent)
	c.y += c.space(2 * millimetre)
	top := c.y
	c.drawMark()
	below := c.y
	p := pen{typeset.Medium, 17 * point, c.ink}
	const titleWidth = 80 * millimetre
	p.size = c.fitted(p, c.title, titleWidth, 11*point)
	var title block
	c.within("H1", func() { title.add(c, p, c.title, titleWidth) })
	place := column{x: c.paper.right() - titleWidth, width: titleWidth, align: finish, lines: title}
	if c.v.Branding.Placement == Right {
		place.x, place.align = c.paper.side, start
	}
	c.y = top
	if c.v.Branding.Placement == Center || c.logo == nil {
		c.y = below + 3*millimetre
		place.x, place.align, place.width = c.paper.side, start, c.paper.room()
	}
	c.drawColumns(place)
	c.y = max(c.y, below) + 6*millimetre

	label, amount := c.payable()
	all := []fact{{c.words.Number, typeset.Clean(c.v.Transaction.Number)}, {c.words.Date, c.words.Format.Date(c.v.Transaction.Date, c.v.location())}}
	if len(c.v.Transaction.Items) > 0 {
		all = append(all, c.stateFact(), fact{label, amount})
	}
	c.drawFactRow(all)
}

// drawFactRow draws facts side by side on a tinted ground; the last is the amount.
func (c *composition) drawFactRow(all []fact) {
	const pad = 4 * millimetre
	inner := c.paper.room() - 2*pad
	shares := []length{28, 22, 22, 28}
	var columns []column
	x := c.paper.side + pad
	c.within("Table", func() {
		for i, f := range all {
			width := inner * shares[i] / 100
			col := column{x: x, width: width - 3*millimetre}
			c.within("TR", func() { col.lines = c.factCell(f, col.width, i == len(all)-1) })
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
	c.box(rectangle{c.paper.side, c.y, c.paper.room(), height + 2*pad - 2*point}, c.tint)
	c.y += pad
	c.drawColumns(columns...)
	c.y += pad + 4*millimetre
}

// stateFact is whether the amount is paid, as a fact of its own.
func (c *composition) stateFact() fact {
	if due := c.due(); due != "" && !c.isPaid() && !c.credits() {
		return fact{c.words.DueDate, due}
	}
	if state := c.paymentState(); state != "" {
		return fact{c.words.Payments, state}
	}
	return fact{}
}

// factCell is a fact of the row.
func (c *composition) factCell(f fact, width length, amount bool) block {
	var b block
	value := pen{typeset.Medium, 11 * point, c.ink}
	const tallest = 15 * point
	if amount {
		value = pen{typeset.Medium, tallest, c.accent}
	}
	name := c.smallPen()
	name.color = c.ink
	value.size = c.fitted(value, f.value, width, 8*point)
	c.within("TH", func() { b.add(c, name, f.label, width) }).heads(scopeRow)
	below := len(b)
	c.within("TD", func() { b.add(c, value, f.value, width) })
	b.gap(below, c.base(pen{size: tallest})-c.base(value)) // all on one line
	return b
}
