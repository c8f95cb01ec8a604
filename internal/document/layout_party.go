package document

import (
	"tributary/internal/country"
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// drawParties draws who sells, who issues, who buys, and the codes beside them.
func (c *composition) drawParties() error {
	codes, height, err := c.newQRBlocks()
	if err != nil {
		return err
	}
	const apart = 7 * millimetre
	left, right := c.on.paper.side, c.on.paper.right()
	leading := len(codes) > 0 && c.doc.v.Imprint.Codes[0].Leading
	for _, code := range codes {
		if leading {
			left += code.width + apart
		} else {
			right -= code.width + apart
		}
	}
	c.need(height)
	top, page := c.y, len(c.sheets)
	width := (right - left - apart) / 2
	var seller, buyer block
	c.addParty(&seller, c.doc.words.Supplier, supplierParty(c.doc.v.Supplier), width)
	if c.doc.v.Transaction.Issuer != nil {
		c.addParty(&seller, c.doc.words.Issuer, *c.doc.v.Transaction.Issuer, width)
	}
	if c.doc.v.Transaction.Customer != nil {
		c.addParty(&buyer, c.doc.words.Customer, *c.doc.v.Transaction.Customer, width)
	}
	if to := c.doc.v.Transaction.Delivery; to != nil {
		c.addParty(&buyer, c.doc.words.DeliveryAddress, transaction.Party{LegalName: to.Name, Address: to.Address}, width)
	}
	x := right + apart
	if leading {
		x = c.on.paper.side
	}
	for _, code := range codes {
		code.draw(c, x, top)
		x += code.width + apart
	}
	c.drawColumns(column{x: left, width: width, lines: seller}, column{x: left + width + apart, width: width, lines: buyer})
	if page == len(c.sheets) {
		c.y = max(c.y, top+height)
	}
	c.y += c.on.space(8 * millimetre)
	return nil
}

// newQRBlocks measures the codes; height is that of the tallest.
func (c *composition) newQRBlocks() (codes []*qrBlock, height length, err error) {
	for i := range c.doc.v.Imprint.Codes[:min(len(c.doc.v.Imprint.Codes), codesMax)] {
		code, err := c.newQRBlock(&c.doc.v.Imprint.Codes[i])
		if err != nil {
			return nil, 0, err
		}
		codes, height = append(codes, code), max(height, code.height)
	}
	return codes, height, nil
}

// supplierParty is the company as a party, with the contact that its settings name.
func supplierParty(s country.Supplier) transaction.Party {
	return transaction.Party{LegalName: s.LegalName, EntityNumber: s.CompanyNumber, Address: &s.Address, TaxNumber: s.TaxNumber, TaxRegime: s.TaxRegime,
		Email: s.Settings.Text("contact_email"), Phone: s.Settings.Text("contact_phone")}
}

// addParty writes a party below what the block already has.
func (c *composition) addParty(b *block, role string, p transaction.Party, width length) {
	first := len(*b)
	c.on.within("H2", func() { b.add(&c.on, c.color.labelPen(), role, width) })
	if first > 0 {
		b.gap(first, 4*millimetre)
	}
	c.on.begin("P")
	defer c.on.done()
	name := len(*b)
	b.add(&c.on, c.color.namePen(), typeset.Clean(p.LegalName), width)
	b.gap(name, 1500)
	body := len(*b)
	if trade := typeset.Clean(p.TradeName); trade != typeset.Clean(p.LegalName) {
		b.add(&c.on, c.color.bodyPen(), trade, width)
	}
	if p.Address != nil {
		for _, line := range c.doc.vocabulary.Address(*p.Address, c.doc.words.Tag) {
			b.add(&c.on, c.color.bodyPen(), line, width)
		}
	}
	b.gap(body, 1500)
	ids := len(*b)
	for _, f := range c.doc.partyFacts(p) {
		b.add(&c.on, c.color.bodyPen(), words.Join(" ", f.label, f.value), width)
	}
	b.gap(ids, 2500)
}

// partyFacts are a party's numbers and addresses, those that it has.
func (d *content) partyFacts(p transaction.Party) []fact {
	all := []fact{
		{d.taxNumberLabel(p), p.TaxNumber}, {d.words.FiscalCode, p.FiscalCode}, {d.words.CompanyNumber, p.EntityNumber},
		{"", p.Email}, {"", p.Phone},
	}
	if e := p.Electronic; e != nil {
		all = append(all, fact{d.words.ElectronicAddress, words.Join(" ", e.Scheme, e.ID)})
	}
	kept := all[:0]
	for _, f := range all {
		if typeset.Clean(f.value) != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

func (d *content) taxNumberLabel(p transaction.Party) string {
	return d.vocabulary.TaxNumberLabel(&d.words, p, d.v.TaxNumberName)
}
