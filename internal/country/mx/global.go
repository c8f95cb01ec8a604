package mx

import (
	"cmp"

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

// fits gives the concept the taxes of a base, if with these it comes to what is
// owed. SAT takes a tax rounded down or up; each is tried, because IVA is due on
// IEPS and the sums that one rounding reaches leave gaps.
func (c *concept) fits(base, owed int64) bool {
	r := rounding{c.levies, make([]int64, len(c.levies)), base}
	if !r.settle(c.ivaLast(), 0, owed-base) {
		return false
	}
	c.amounts = r.amounts
	return true
}

// ivaLast lists the levies that are worked out, those on which no other is due last.
func (c *concept) ivaLast() []int {
	var order []int
	for _, iva := range []bool{false, true} {
		for j, l := range c.levies {
			if !l.exempt && (l.tax == taxIVA) == iva {
				order = append(order, j)
			}
		}
	}
	return order
}

// rounding is a search for the amounts of a concept's levies on a base.
type rounding struct {
	levies  []levy
	amounts []int64
	base    int64
}

// settle works out the levies of order so that they come to left; ieps is what
// of it was worked out before.
func (r rounding) settle(order []int, ieps, left int64) bool {
	if len(order) == 0 {
		return left == 0
	}
	j := order[0]
	l, on := r.levies[j], r.base
	if l.tax == taxIVA {
		on += ieps // IVA is due on IEPS
	}
	q, rest := multiplied(uint64(on), l.rate, rateHundred)
	for _, amount := range []int64{int64(q), int64(q) + 1} {
		if amount > int64(q) && rest == 0 {
			return false // it comes out even: there is no rounding up
		}
		further := ieps
		if l.tax == taxIEPS && !l.withheld {
			further += amount
		}
		r.amounts[j] = amount
		if r.settle(order[1:], further, left-l.signed(amount)) {
			return true
		}
	}
	return false
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
	n.Set("NoIdentificacion", cmp.Or(c.sale, p.serie+p.folio))
	n.Set("Cantidad", "1")
	n.Set("ClaveUnidad", unitActivity)
	n.Set("Descripcion", textSale)
	c.amount(n, p.book.decimals)
	return n
}
