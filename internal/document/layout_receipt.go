package document

import (
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// The receipt on a roll: one column, every item on a line or two.

// drawReceipt draws a document on a roll of 80 mm.
func (c *composition) drawReceipt() error {
	c.newPage()
	c.drawReceiptHead()
	c.drawReceiptItems()
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.drawReceiptTotals()
	if err := c.drawReceiptCodes(); err != nil {
		return err
	}
	c.drawReceiptTail()
	c.y += 6 * millimetre
	c.sheet.height = c.y
	return nil
}

// centre draws lines in the middle of the roll.
func (c *composition) centre(kind string, p pen, text string) {
	if text == "" {
		return
	}
	var b block
	c.within(kind, func() { b.add(c, p, text, c.paper.room()) })
	c.drawColumns(column{x: c.paper.side, width: c.paper.room(), align: centred, lines: b})
}

func (c *composition) drawReceiptHead() {
	placement := c.v.Branding.Placement
	if placement == "" {
		c.v.Branding.Placement = Center
	}
	c.drawMark()
	c.v.Branding.Placement = placement
	c.y += 2 * millimetre
	small := c.smallPen()
	small.color = c.ink
	seller := supplierParty(c.v.Supplier)
	if c.logo != nil {
		c.centre("P", pen{typeset.Medium, 9 * point, c.ink}, typeset.Clean(seller.LegalName))
	}
	for _, line := range c.vocabulary.Address(c.v.Supplier.Address, c.words.Tag) {
		c.centre("P", small, line)
	}
	c.centre("P", small, words.Join(" ", c.taxNumberLabel(seller), seller.TaxNumber))
	c.y += 3 * millimetre
	p := pen{typeset.Medium, 13 * point, c.ink}
	p.size = c.fitted(p, c.title, c.paper.room(), 10*point)
	c.centre("H1", p, c.title)
	c.centre("P", pen{typeset.Medium, 9 * point, c.ink}, typeset.Clean(c.v.Transaction.Number))
	c.centre("P", c.bodyPen(), c.words.Format.Date(c.v.Transaction.Date, c.v.location()))
	for _, f := range c.facts() {
		c.centre("P", small, words.Join(": ", f.label, f.value))
	}
	if customer := c.v.Transaction.Customer; customer != nil && typeset.Clean(customer.LegalName) != "" {
		c.centre("P", small, words.Join(": ", c.words.Customer, words.Join(", ", customer.LegalName, customer.TaxNumber)))
	}
	c.y += 2 * millimetre
	c.rule(c.paper.side, c.y, c.paper.room(), stroke{800, c.accent})
	c.y += 2 * millimetre
}

// drawReceiptItems draws an item's name with its amount, and below how it came about.
func (c *composition) drawReceiptItems() {
	c.begin("Table")
	defer c.done()
	f, decimals := &c.words.Format, words.DecimalsOf(c.currency)
	body, small := c.bodyPen(), c.smallPen()
	for i := range c.v.Transaction.Items {
		item, line := &c.v.Transaction.Items[i], &c.v.Totals.Lines[i]
		amount := f.Amount(line.Gross, decimals)
		amountPen := body
		amountPen.size = c.fitted(body, amount, c.paper.room()/2, 4*point)
		width := c.width(amountPen, amount)
		var name, sum block
		c.within("TR", func() {
			c.within("TH", func() {
				name.add(c, body, typeset.Clean(item.Name), c.paper.room()-width-3*millimetre)
				name.add(c, small, c.howMuch(item), c.paper.room()-width-3*millimetre)
				name.add(c, small, c.discount(item, line), c.paper.room()-width-3*millimetre)
			}).heads(scopeRow)
			c.within("TD", func() { sum.add(c, amountPen, amount, c.paper.room()) })
		})
		c.need(name.height())
		c.drawColumns(column{x: c.paper.side, width: c.paper.room() - width, lines: name},
			column{x: c.paper.right() - width, width: width, align: figures, lines: sum})
		c.y += 2 * point
	}
	c.y += 1 * millimetre
}

// howMuch is quantity, price and rates of an item; a single piece needs none but the rate.
// Its amount has the tax in it: where the price has not, the rate is added to it, so that
// whoever checks the line arrives at the amount.
func (c *composition) howMuch(item *transaction.Item) string {
	f, text := &c.words.Format, ""
	if quantity := f.Number(item.Quantity); quantity != "1" {
		text = words.Join(" ", quantity, item.Unit) + " × " + f.Amount(item.UnitPrice, words.DecimalsOf(c.currency))
	}
	for _, tax := range item.Taxes {
		if tax.Withheld() {
			continue
		}
		by := " · "
		if tax.Mode == transaction.Added && tax.Quota == nil && !tax.Rate.IsZero() {
			by = " + "
		}
		text = words.Join(by, text, f.Rate(&tax, words.DecimalsOf(c.currency)))
	}
	return text
}

func (c *composition) drawReceiptTotals() {
	place := rectangle{x: c.paper.side, width: c.paper.room()}
	c.drawTotalRows(c.totalRows(), place)
	c.y += 2 * millimetre
	for _, row := range c.paymentRows() {
		c.drawReceiptPair(row)
	}
	if state := c.paymentState(); state != "" && !c.isPaid() {
		c.drawReceiptPair(fact{state, ""})
	}
	c.y += 2 * millimetre
	c.drawTaxSummary(c.taxGroups(), place)
	c.y += 4 * millimetre
}

// drawReceiptPair draws a name and its value at the two ends of a line.
func (c *composition) drawReceiptPair(f fact) {
	p := c.bodyPen()
	c.need(c.lead(p))
	c.within("P", func() {
		c.text(p, c.paper.side, c.y+c.base(p), c.cut(p, f.label, c.paper.room()-c.width(p, f.value)-2*millimetre))
		c.textRight(p, c.paper.right(), c.y+c.base(p), f.value)
	})
	c.y += c.lead(p)
}

func (c *composition) drawReceiptCodes() error {
	codes, _, err := c.newQRBlocks()
	if err != nil {
		return err
	}
	for _, code := range codes {
		c.need(code.height)
		code.draw(c, (c.paper.width-code.width)/2, c.y)
		c.y += code.height + 3*millimetre
	}
	return nil
}

// drawReceiptTail draws the note, the authority's ids, what the law wants said
// and the client's own words.
func (c *composition) drawReceiptTail() {
	c.drawNote()
	small := c.smallPen()
	for _, f := range c.authorityFacts() {
		c.centre("P", small, words.Join(": ", f.label, f.value))
	}
	for _, paragraph := range c.closing() {
		c.centre("P", small, paragraph.text)
	}
	for _, line := range typeset.CleanLines(c.v.Branding.Footer) {
		c.centre("P", small, line)
	}
}
