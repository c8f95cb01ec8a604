package mx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Keys of c_Impuesto.
const (
	taxISR  = "001"
	taxIVA  = "002"
	taxIEPS = "003"
)

// Regimes of a tax entry beside transaction.VAT, which is IVA by another name.
const (
	regimeIVA  = "IVA"
	regimeIEPS = transaction.IEPS
	regimeISH  = "ISH" // on lodging, of the states: a local tax
	regimeISR  = "ISR"

	typeLocal = "LOCAL" // of a withheld entry: a tax or duty that is none of SAT's, named by its code
)

// book is a transaction as lines of a voucher.
type book struct {
	concepts []*concept
	decimals int
}

// sums of a book, in minor units.
type sums struct {
	subtotal, discount, transferred, withheld int64
	local, localWithheld                      int64 // taxes of the states
	locals, localRetentions                   []transferSum
	transfers                                 []transferSum
	retentions                                []retentionSum
}

type transferSum struct {
	levy         levy
	base, amount int64
}

type retentionSum struct {
	tax    string
	amount int64
}

func (s *sums) total() int64 {
	return s.subtotal - s.discount + s.transferred - s.withheld + s.local - s.localWithheld
}

// entry is one tax of one line with its amount.
type entry struct {
	levy
	amount int64
}

// entriesOf translates the tax entries of a line, in the one order that lines
// with the same taxes share.
func entriesOf(item *transaction.Item, line *transaction.Line, sign int64) []entry {
	entries := make([]entry, 0, len(item.Taxes))
	for j := range item.Taxes {
		tax := &item.Taxes[j]
		e := entry{levy: levy{tax: taxIVA, rate: scaled(tax.Rate)}, amount: sign * line.Taxes[j]}
		switch {
		case tax.Withheld():
			if e.rate == 0 {
				continue
			}
			e.withheld = true
			switch tax.Type {
			case regimeISR:
				e.tax = taxISR
			case typeLocal:
				e.tax, e.local = localName(tax.Code), true
			}
		case tax.Type == transaction.TaxOutside:
			continue // not an object of the tax
		case tax.Regime == regimeIEPS:
			e.tax = taxIEPS
			if tax.Quota != nil {
				e.quota, e.rate = true, scaled(*tax.Quota)
			}
		case tax.Regime == regimeISH:
			e.tax, e.local = regimeISH, true
		}
		e.exempt = !e.withheld && tax.Type == transaction.TaxExempt
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.key(), b.key()) })
	return entries
}

// key orders and tells levies apart.
func (l levy) key() string {
	text := append(make([]byte, 0, 16), 't')
	if l.withheld {
		text[0] = 'w'
	}
	text = append(text, l.tax...)
	if l.quota {
		text = append(text, 'q')
	}
	if l.exempt {
		return string(append(text, 'x', ';'))
	}
	// of one length: rates stay below ten times a hundred per cent
	return string(append(strconv.AppendUint(text, rateHundred+l.rate, 10), ';'))
}

// lay turns lines into concepts. sign is -1 where the document takes back: then
// what was negative becomes positive. Lines that are negative after that are
// discounts; they go to the concepts with the same taxes, in proportion to
// their amounts.
func lay(items []transaction.Item, totals transaction.Totals, sign int64, decimals int) (*book, []fault.Fault) {
	b := &book{decimals: decimals}
	groups := map[string]*group{}
	var order []*group
	var found []fault.Fault
	for i := range items {
		line := &totals.Lines[i]
		entries := entriesOf(&items[i], line, sign)
		g := groupOf(groups, &order, entries)
		if net := sign * line.Net; net < 0 || items[i].UnitPrice*sign < 0 {
			g.lower(i, -net, entries)
			continue
		}
		c := newConcept(i, sign*(line.Net+line.NetDiscount), entries)
		c.units = unitsOf(&items[i])
		c.own = sign * line.NetDiscount
		c.discount = c.own
		unit, ok := unitPrice(c.importe, decimals, items[i].Quantity)
		if !ok {
			found = append(found, fault.At(fmt.Sprintf("items.%d.unit_price", i), fault.FieldNotValid,
				"must come to at least 0.000001 without tax for one unit: SAT takes no price of nothing"))
		}
		c.unit = unit
		g.concepts = append(g.concepts, c)
		g.sum(entries, 1)
		b.concepts = append(b.concepts, c)
	}
	for _, g := range order {
		if !g.settle() {
			found = append(found, fault.At(fmt.Sprintf("items.%d.unit_price", max(g.first, 0)), fault.FieldNotValid,
				"is a discount that no line can carry: lines with the same taxes must come to at least as much. Beside IEPS and IVA it is the line's own discount"))
		}
	}
	if len(b.concepts) == 0 && len(found) == 0 {
		found = append(found, fault.At("items", fault.FieldNotValid, "must have a line that is no discount"))
	}
	return b, found
}

func groupOf(groups map[string]*group, order *[]*group, entries []entry) *group {
	var name strings.Builder
	for i := range entries {
		name.WriteString(entries[i].key())
	}
	g := groups[name.String()]
	if g == nil {
		g = &group{levies: make([]levy, len(entries)), amounts: make([]int64, len(entries)), first: -1}
		for i := range entries {
			g.levies[i] = entries[i].levy
		}
		groups[name.String()] = g
		*order = append(*order, g)
	}
	return g
}

func newConcept(item int, importe int64, entries []entry) *concept {
	c := &concept{item: item, importe: importe, levies: make([]levy, len(entries)), amounts: make([]int64, len(entries))}
	for j := range entries {
		c.levies[j], c.amounts[j] = entries[j].levy, entries[j].amount
	}
	return c
}

func (g *group) lower(item int, net int64, entries []entry) {
	if g.first < 0 {
		g.first = item
	}
	g.lowered += net
	g.sum(entries, 1)
}

func (g *group) sum(entries []entry, sign int64) {
	for j := range entries {
		g.amounts[j] += sign * entries[j].amount
	}
}

// taxed lists the levies that a concept shows: none on a base of nothing,
// which the schema refuses.
func (c *concept) taxed() []levy {
	if c.base() == 0 {
		return nil
	}
	return c.levies
}

// unitsOf is what the quota of a line is for, in millionths; 0 without one.
func unitsOf(item *transaction.Item) int64 {
	for j := range item.Taxes {
		if item.Taxes[j].Quota == nil {
			continue
		}
		base := item.Quantity
		if item.Taxes[j].QuotaBase != nil {
			base = *item.Taxes[j].QuotaBase
		}
		return base.Rescale(unitDecimals).Value()
	}
	return 0
}

// baseText writes the base of a levy: an amount, or what a quota is for.
func (l levy) baseText(base int64, decimals int) string {
	if l.quota {
		return precise(uint64(base), 0)
	}
	return money(base, decimals)
}

// baseOf is the base of one levy. IVA stands on the price with IEPS (LIVA,
// article 12).
func (c *concept) baseOf(j int) int64 {
	base := c.base()
	if c.levies[j].quota {
		return c.units
	}
	if c.levies[j].tax != taxIVA || c.levies[j].withheld {
		return base
	}
	for k, l := range c.levies {
		if l.tax == taxIEPS && !l.withheld {
			base += c.amounts[k]
		}
	}
	return base
}

// addUp sums the concepts by tax, in the order of first appearance.
func (b *book) addUp() sums {
	var s sums
	for _, c := range b.concepts {
		s.subtotal += c.importe
		s.discount += c.discount
		for j, l := range c.taxed() {
			switch {
			case l.local && l.withheld:
				s.localWithheld += c.amounts[j]
				s.localRetentions = gathered(s.localRetentions, l, c.base(), c.amounts[j])
			case l.local:
				s.local += c.amounts[j]
				s.locals = gathered(s.locals, l, c.base(), c.amounts[j])
			case l.withheld:
				s.withhold(l.tax, c.amounts[j])
			default:
				s.transfer(l, c.baseOf(j), c.amounts[j])
			}
		}
	}
	return s
}

func (s *sums) withhold(tax string, amount int64) {
	s.withheld += amount
	for i := range s.retentions {
		if s.retentions[i].tax == tax {
			s.retentions[i].amount += amount
			return
		}
	}
	s.retentions = append(s.retentions, retentionSum{tax: tax, amount: amount})
}

func (s *sums) transfer(l levy, base, amount int64) {
	s.transferred += amount
	s.transfers = gathered(s.transfers, l, base, amount)
}

// gathered adds a tax to those of its kind.
func gathered(list []transferSum, l levy, base, amount int64) []transferSum {
	for i := range list {
		if list[i].levy == l {
			list[i].base += base
			list[i].amount += amount
			return list
		}
	}
	return append(list, transferSum{levy: l, base: base, amount: amount})
}
