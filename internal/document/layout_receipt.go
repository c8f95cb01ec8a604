package document

import (
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// The receipt on a roll: one column, every item on a line or two.

// receipt draws a composition on a roll.
type receipt struct{ c *composition }

// drawReceipt draws a document on a roll of 80 mm.
func (t receipt) drawReceipt() error {
	t.c.newPage()
	t.drawReceiptHead()
	t.drawReceiptItems()
	if err := t.c.ctx.Err(); err != nil {
		return err
	}
	t.drawReceiptTotals()
	if err := t.drawReceiptCodes(); err != nil {
		return err
	}
	t.drawReceiptTail()
	t.c.y += 6 * millimetre
	t.c.on.sheet.height = t.c.y
	return nil
}

// centre draws lines in the middle of the roll.
func (t receipt) centre(kind string, p pen, text string) {
	if text == "" {
		return
	}
	var b block
	t.c.on.within(kind, func() { b.add(&t.c.on, p, text, t.c.on.paper.room()) })
	t.c.drawColumns(column{x: t.c.on.paper.side, width: t.c.on.paper.room(), align: centred, lines: b})
}

func (t receipt) drawReceiptHead() {
	placement := t.c.doc.v.Branding.Placement
	if placement == "" {
		t.c.doc.v.Branding.Placement = Center
	}
	t.c.drawMark()
	t.c.doc.v.Branding.Placement = placement
	t.c.y += 2 * millimetre
	small := t.c.color.smallPen()
	small.color = t.c.color.ink
	seller := supplierParty(t.c.doc.v.Supplier)
	if t.c.logo != nil {
		t.centre("P", pen{typeset.Medium, 9 * point, t.c.color.ink}, typeset.Clean(seller.LegalName))
	}
	for _, line := range t.c.doc.vocabulary.Address(t.c.doc.v.Supplier.Address, t.c.doc.words.Tag) {
		t.centre("P", small, line)
	}
	t.centre("P", small, words.Join(" ", t.c.doc.taxNumberLabel(seller), seller.TaxNumber))
	t.c.y += 3 * millimetre
	p := pen{typeset.Medium, 13 * point, t.c.color.ink}
	p.size = t.c.on.fitted(p, t.c.doc.title, t.c.on.paper.room(), 10*point)
	t.centre("H1", p, t.c.doc.title)
	t.centre("P", pen{typeset.Medium, 9 * point, t.c.color.ink}, typeset.Clean(t.c.doc.v.Transaction.Number))
	t.centre("P", t.c.color.bodyPen(), t.c.doc.words.Format.Date(t.c.doc.v.Transaction.Date, t.c.doc.v.location()))
	for _, f := range t.c.doc.facts() {
		t.centre("P", small, words.Join(": ", f.label, f.value))
	}
	if customer := t.c.doc.v.Transaction.Customer; customer != nil && typeset.Clean(customer.LegalName) != "" {
		t.centre("P", small, words.Join(": ", t.c.doc.words.Customer, words.Join(", ", customer.LegalName, customer.TaxNumber)))
	}
	t.c.y += 2 * millimetre
	t.c.on.rule(t.c.on.paper.side, t.c.y, t.c.on.paper.room(), stroke{800, t.c.color.accent})
	t.c.y += 2 * millimetre
}

// drawReceiptItems draws an item's name with its amount, and below how it came about.
func (t receipt) drawReceiptItems() {
	t.c.on.begin("Table")
	defer t.c.on.done()
	f, decimals := &t.c.doc.words.Format, words.DecimalsOf(t.c.doc.currency)
	body, small := t.c.color.bodyPen(), t.c.color.smallPen()
	for i := range t.c.doc.v.Transaction.Items {
		item, line := &t.c.doc.v.Transaction.Items[i], &t.c.doc.v.Totals.Lines[i]
		amount := f.Amount(line.Gross, decimals)
		amountPen := body
		amountPen.size = t.c.on.fitted(body, amount, t.c.on.paper.room()/2, 4*point)
		width := t.c.on.width(amountPen, amount)
		var name, sum block
		t.c.on.within("TR", func() {
			t.c.on.within("TH", func() {
				name.add(&t.c.on, body, typeset.Clean(item.Name), t.c.on.paper.room()-width-3*millimetre)
				name.add(&t.c.on, small, t.c.doc.howMuch(item), t.c.on.paper.room()-width-3*millimetre)
				name.add(&t.c.on, small, t.c.doc.discount(item, line), t.c.on.paper.room()-width-3*millimetre)
			}).heads(scopeRow)
			t.c.on.within("TD", func() { sum.add(&t.c.on, amountPen, amount, t.c.on.paper.room()) })
		})
		t.c.need(name.height())
		t.c.drawColumns(column{x: t.c.on.paper.side, width: t.c.on.paper.room() - width, lines: name},
			column{x: t.c.on.paper.right() - width, width: width, align: figures, lines: sum})
		t.c.y += 2 * point
	}
	t.c.y += 1 * millimetre
}

// howMuch is quantity, price and rates of an item; a single piece needs none but the rate.
// Its amount has the tax in it: where the price has not, the rate is added to it, so that
// whoever checks the line arrives at the amount.
func (d *content) howMuch(item *transaction.Item) string {
	f, text := &d.words.Format, ""
	if quantity := f.Number(item.Quantity); quantity != "1" {
		text = words.Join(" ", quantity, item.Unit) + " × " + f.Amount(item.UnitPrice, words.DecimalsOf(d.currency))
	}
	for _, tax := range item.Taxes {
		if tax.Withheld() {
			continue
		}
		by := " · "
		if tax.Mode == transaction.Added && tax.Quota == nil && !tax.Rate.IsZero() {
			by = " + "
		}
		text = words.Join(by, text, f.Rate(&tax, words.DecimalsOf(d.currency)))
	}
	return text
}

func (t receipt) drawReceiptTotals() {
	place := rectangle{x: t.c.on.paper.side, width: t.c.on.paper.room()}
	t.c.sums().drawTotalRows(t.c.doc.totalRows(), place)
	t.c.y += 2 * millimetre
	for _, row := range t.c.doc.paymentRows() {
		t.drawReceiptPair(row)
	}
	if state := t.c.doc.paymentState(); state != "" && !t.c.doc.isPaid() {
		t.drawReceiptPair(fact{state, ""})
	}
	t.c.y += 2 * millimetre
	t.c.sums().drawTaxSummary(t.c.doc.taxGroups(), place)
	t.c.y += 4 * millimetre
}

// drawReceiptPair draws a name and its value at the two ends of a line.
func (t receipt) drawReceiptPair(f fact) {
	p := t.c.color.bodyPen()
	t.c.need(t.c.on.lead(p))
	t.c.on.within("P", func() {
		t.c.on.text(p, t.c.on.paper.side, t.c.y+t.c.on.base(p), t.c.on.cut(p, f.label, t.c.on.paper.room()-t.c.on.width(p, f.value)-2*millimetre))
		t.c.on.textRight(p, t.c.on.paper.right(), t.c.y+t.c.on.base(p), f.value)
	})
	t.c.y += t.c.on.lead(p)
}

func (t receipt) drawReceiptCodes() error {
	codes, _, err := t.c.newQRBlocks()
	if err != nil {
		return err
	}
	for _, code := range codes {
		t.c.need(code.height)
		code.draw(t.c, (t.c.on.paper.width-code.width)/2, t.c.y)
		t.c.y += code.height + 3*millimetre
	}
	return nil
}

// drawReceiptTail draws the note, the authority's ids, what the law wants said
// and the client's own words.
func (t receipt) drawReceiptTail() {
	noteText(t).drawNote()
	small := t.c.color.smallPen()
	for _, f := range t.c.doc.authorityFacts() {
		t.centre("P", small, words.Join(": ", f.label, f.value))
	}
	for _, paragraph := range t.c.closing() {
		t.centre("P", small, paragraph.text)
	}
	for _, line := range typeset.CleanLines(t.c.doc.v.Branding.Footer) {
		t.centre("P", small, line)
	}
}
