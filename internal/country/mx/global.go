package mx

import (
	"tributary/internal/xmltree"
)

// A global invoice says of each sale its number and its sum, not what was sold:
// per sale and combination of taxes one line with the key 01010101, unit ACT,
// quantity 1 and the description Venta (Guía de llenado del CFDI global,
// Conceptos). It is PUE, and the general public withholds nothing.
const (
	unitActivity = "ACT"
	textSale     = "Venta"
)

// condense draws the concepts with the same taxes together. What is owed stays
// exact; base and tax of the sum are found anew, because the sum of rounded
// taxes may be further from base × rate than SAT allows.
func (b *book) condense() {
	var order []string
	sums := map[string]*concept{}
	for _, c := range b.concepts {
		name := ""
		for _, l := range c.levies {
			name += l.key()
		}
		into := sums[name]
		if into == nil {
			into = &concept{item: c.item, levies: c.levies, amounts: make([]int64, len(c.levies))}
			sums[name], order = into, append(order, name)
		}
		into.importe += c.importe
		into.discount += c.discount
		for j, amount := range c.amounts {
			into.amounts[j] += amount
		}
	}
	b.concepts = nil
	for _, name := range order {
		c := sums[name]
		c.rebase()
		c.unit = uint64(c.importe) * power(unitDecimals-b.decimals)
		b.concepts = append(b.concepts, c)
	}
}

// rebase finds the base whose taxes SAT takes and with which the concept comes
// to what it came to before: the one next to owed ÷ (1 + rates), tried outwards.
func (c *concept) rebase() {
	owed, rates, ieps := c.base(), uint64(0), c.ieps()
	for j, l := range c.levies {
		owed += l.signed(c.amounts[j])
		switch {
		case l.withheld || l.exempt:
		case l.tax == taxIVA:
			rates += l.rate + l.rate*ieps/rateHundred
		default:
			rates += l.rate
		}
	}
	if owed <= 0 || rates == 0 {
		return
	}
	near, _ := multiplied(uint64(owed), rateHundred, rateHundred+rates)
	for step := range int64(9) {
		base := int64(near) + (step+1)/2*(1-2*(step%2))
		if base > 0 && c.fits(base, owed) {
			c.importe += base - c.base()
			return
		}
	}
}

// fits gives the concept the taxes of a base, if with these it comes to what is owed.
func (c *concept) fits(base, owed int64) bool {
	amounts, left := make([]int64, len(c.levies)), owed-base
	loose := -1 // the last tax that may be rounded up: IVA where there is one, which no other is due on
	ieps := int64(0)
	for _, iva := range []bool{false, true} { // IVA is due on IEPS
		for j, l := range c.levies {
			if l.exempt || (l.tax == taxIVA) != iva {
				continue
			}
			on := base
			if iva {
				on += ieps
			}
			q, rest := multiplied(uint64(on), l.rate, rateHundred)
			amounts[j] = int64(q)
			left -= int64(q)
			if rest > 0 {
				loose = j
			}
			if l.tax == taxIEPS {
				ieps += int64(q)
			}
		}
	}
	switch {
	case left == 1 && loose >= 0 && (c.levies[loose].tax != taxIEPS || len(c.levies) == 1):
		amounts[loose]++
	case left != 0:
		return false
	}
	c.amounts = amounts
	return true
}

// ieps is the rate of IEPS on the concept.
func (c *concept) ieps() uint64 {
	for _, l := range c.levies {
		if l.tax == taxIEPS && !l.withheld {
			return l.rate
		}
	}
	return 0
}

// condensed writes a line of a global invoice.
func (p *plan) condensed(c *concept) *xmltree.Element {
	n := xmltree.New("cfdi:Concepto", "ClaveProdServ", productNone)
	n.Set("NoIdentificacion", p.serie+p.folio)
	n.Set("Cantidad", "1")
	n.Set("ClaveUnidad", unitActivity)
	n.Set("Descripcion", textSale)
	c.amount(n, p.book.decimals)
	return n
}
