package document

import (
	"slices"
	"strings"

	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// linesTable is the table of items: the widths of its columns are those of its
// widest figures, and the description takes what is left.
type linesTable struct {
	c        *composition
	body     pen
	decimals int

	// Right edges, but for description and unit, which are left ones.
	number, description, quantity, unit, price, tax, net, amount length
	descriptionWidth, unitWidth                                  length
	whole                                                        length // of the quantities, up to their decimal sign
	taxed, units                                                 bool   // some item has a tax, a unit
	mode                                                         string // how prices relate to tax, when all items agree
	mixed                                                        bool   // they do not

	drawn             int   // items so far
	netSum, amountSum int64 // of them
}

const (
	columnGap    = 4 * millimetre
	rowPadding   = 1900 // above and below a row's text
	unitWidthMax = 18 * millimetre
)

// drawLines draws every item, with sums carried over page breaks.
func (c *composition) drawLines() error {
	t := &linesTable{c: c, body: c.bodyPen(), decimals: decimalsOf(c.currency)}
	t.measure()
	carry := t.carryHeight()
	c.enter = func() {
		t.drawHeader()
		if t.drawn > 0 {
			t.drawCarry(c.words.brought)
		}
		c.end = contentEnd - carry
	}
	c.leave = func() {
		if t.drawn > 0 {
			t.drawCarry(c.words.carried)
		}
	}
	if c.y+t.headerHeight()+4*t.body.lead()+carry > c.end { // not the head of a table alone at the foot of a page
		c.newPage()
	}
	c.enter()
	for i := range c.v.Transaction.Items {
		if i%64 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		t.drawRow(&c.v.Transaction.Items[i], &c.v.Totals.Lines[i])
	}
	c.leave, c.enter, c.end = nil, nil, contentEnd
	c.y += sectionGap
	return nil
}

// figures are an item's cells as text.
type figures struct {
	number, quantity, unit, price, net, amount string
	rates                                      []string
}

func (t *linesTable) figures(item *transaction.Item, line *transaction.Line) figures {
	f := &t.c.words.format
	out := figures{
		number:   f.decimalNumber(itoa(item.Number), 0),
		quantity: f.number(item.Quantity),
		unit:     typeset.Clean(item.Unit),
		price:    f.amount(item.UnitPrice, t.decimals),
		net:      f.amount(line.Net, t.decimals),
		amount:   f.amount(line.Gross, t.decimals),
	}
	for _, tax := range item.Taxes {
		if !tax.Withheld() {
			out.rates = append(out.rates, f.percent(tax.Rate))
		}
	}
	return out
}

// measure sets the columns. Where figures are so wide that no description would
// fit beside them, everything is drawn smaller.
func (t *linesTable) measure() {
	c := t.c
	for {
		var number, whole, fraction, unit, price, tax, net, amount length
		head := c.labelPen()
		w := &c.words
		t.taxed, t.mode, t.mixed = false, "", false
		for i := range c.v.Transaction.Items {
			item := &c.v.Transaction.Items[i]
			f := t.figures(item, &c.v.Totals.Lines[i])
			t.note(item)
			left, right := cutQuantity(f.quantity, w.decimal)
			number = max(number, c.width(t.body, f.number))
			whole = max(whole, c.width(t.body, left))
			fraction = max(fraction, c.width(t.body, right))
			unit = max(unit, c.width(t.body, f.unit))
			t.units = t.units || f.unit != "" // one may have no width: a lone accent
			price = max(price, c.width(t.body, f.price))
			net = max(net, c.width(t.body, f.net))
			amount = max(amount, c.width(t.body, f.amount))
			for _, rate := range f.rates {
				tax = max(tax, c.width(t.body, rate))
			}
		}
		net = max(net, c.width(t.strong(), w.format.amount(c.v.Totals.Net, t.decimals)), c.width(head, w.net))
		amount = max(amount, c.width(t.strong(), w.format.amount(c.v.Totals.Gross, t.decimals)), c.width(head, w.amount))
		price = max(price, c.width(head, w.unitPrice))
		tax = max(tax, c.width(head, w.tax))
		number = max(number, c.width(head, w.line))
		quantity := max(whole+fraction, c.width(head, w.quantity))
		t.unitWidth = min(unit, unitWidthMax)
		t.place(number, quantity, [4]length{price, tax, net, amount})
		t.whole = t.quantity - fraction
		if t.descriptionWidth >= 34*millimetre || t.body.size <= 4*point {
			return
		}
		t.body.size = t.body.size * 9 / 10
	}
}

// place computes the edges of the columns from right to left.
func (t *linesTable) place(number, quantity length, figures [4]length) {
	x := contentRight
	t.amount = x
	x -= figures[3] + columnGap
	t.net = x
	x -= figures[2] + columnGap
	t.tax = x
	if t.taxed {
		x -= figures[1] + columnGap
	}
	t.price = x
	x -= figures[0] + columnGap
	if t.units {
		x -= t.unitWidth
		t.unit = x
		x -= 3500
	}
	t.quantity = x
	x -= quantity + columnGap
	t.number = marginSide + number
	t.description = t.number + columnGap
	t.descriptionWidth = x - t.description
}

// note remembers whether items are taxed, and how their prices relate to tax.
func (t *linesTable) note(item *transaction.Item) {
	mode := priceMode(item)
	if mode == "" {
		return
	}
	t.taxed = true
	if t.mode != "" && t.mode != mode {
		t.mixed = true
	}
	t.mode = mode
}

// priceMode says whether an item's price has its tax in it; "" for an item without one.
func priceMode(item *transaction.Item) string {
	for _, tax := range item.Taxes {
		if tax.Withheld() {
			continue
		}
		if tax.Mode == transaction.Added {
			return transaction.Added
		}
		return transaction.Included
	}
	return ""
}

func (t *linesTable) modeWord(mode string) string {
	switch mode {
	case transaction.Included:
		return t.c.words.taxIncluded
	case transaction.Added:
		return t.c.words.taxExcluded
	}
	return ""
}

func (t *linesTable) strong() pen { return pen{typeset.Medium, t.body.size, t.c.ink} }

func (t *linesTable) headerHeight() length { return 2*t.c.labelPen().lead() + 5*point }

func (t *linesTable) drawHeader() {
	c, p := t.c, t.c.labelPen()
	y := c.y + p.size
	c.textRight(p, t.number, y, c.words.line)
	c.text(p, t.description, y, c.words.description)
	c.textRight(p, t.quantity, y, c.words.quantity)
	c.textRight(p, t.price, y, c.words.unitPrice)
	if t.taxed {
		c.textRight(p, t.tax, y, c.words.tax)
	}
	c.textRight(p, t.net, y, c.words.net)
	c.textRight(p, t.amount, y, c.words.amount)
	if !t.mixed && t.mode != "" {
		small := c.smallPen()
		small.size = 6500
		c.textRight(small, t.price, y+p.lead(), t.modeWord(t.mode))
		c.y += p.lead()
	}
	c.y += p.lead() + 3*point
	c.rule(marginSide, c.y, contentWidth, stroke{800, c.accent})
	c.y += 800
}

// drawRow draws an item. A row that fits on a page is kept whole.
func (t *linesTable) drawRow(item *transaction.Item, line *transaction.Line) {
	c := t.c
	f := t.figures(item, line)
	small := c.smallPen()
	small.size = t.body.size * 87 / 100
	var text block
	text.add(c, t.body, typeset.Clean(item.Name), t.descriptionWidth)
	if d := typeset.Clean(item.Description); d != typeset.Clean(item.Name) {
		text.add(c, small, d, t.descriptionWidth)
	}
	text.add(c, small, t.codes(item), t.descriptionWidth)
	text.add(c, small, t.discount(item, line), t.descriptionWidth)
	var unit, rates, price block
	muted := pen{typeset.Regular, t.body.size, c.muted}
	unit.add(c, muted, f.unit, unitWidthMax)
	for _, rate := range f.rates {
		rates = append(rates, blockLine{pen: t.body, text: rate})
	}
	price = block{{pen: t.body, text: f.price}}
	if t.mixed {
		price.add(c, small, t.modeWord(priceMode(item)), t.price-t.quantity)
	}
	height := max(text.height(), unit.height(), rates.height(), price.height()) + 2*rowPadding
	c.need(min(height, c.end-marginTop-40*millimetre))
	c.y += rowPadding
	whole, _ := cutQuantity(f.quantity, c.words.decimal)
	columns := []column{
		{x: t.number, right: true, lines: block{{pen: muted, text: f.number}}},
		{x: t.description, lines: text},
		{x: t.whole - c.width(t.body, whole), lines: block{{pen: t.body, text: f.quantity}}},
		{x: t.price, right: true, lines: price},
		{x: t.net, right: true, lines: block{{pen: t.body, text: f.net}}},
		{x: t.amount, right: true, lines: block{{pen: t.body, text: f.amount}}},
	}
	if len(unit) > 0 {
		columns = append(columns, column{x: t.unit, lines: unit})
	}
	if len(rates) > 0 {
		columns = append(columns, column{x: t.tax, right: true, lines: rates})
	}
	c.drawColumns(columns...)
	c.y += rowPadding
	c.rule(marginSide, c.y, contentWidth, stroke{350, c.hair})
	t.drawn++
	t.netSum += line.Net
	t.amountSum += line.Gross
}

// discount is what was taken from the line: figures that need no word in any
// language, so that quantity, price and amount can be followed.
func (t *linesTable) discount(item *transaction.Item, line *transaction.Line) string {
	if line.Discount == 0 {
		return ""
	}
	f := &t.c.words.format
	taken := f.amount(-line.Discount, t.decimals)
	if item.Discount == nil || item.Discount.Rate == nil {
		return taken
	}
	return f.percent(item.Discount.Rate.Negate()) + ": " + taken
}

func (t *linesTable) codes(item *transaction.Item) string {
	var parts []string
	if code := typeset.Clean(item.Code); code != "" {
		parts = append(parts, t.c.words.code+" "+code)
	}
	if ean := typeset.Clean(item.EAN); ean != "" {
		parts = append(parts, "EAN "+ean)
	}
	return strings.Join(parts, " · ")
}

func (t *linesTable) carryHeight() length { return t.body.lead() + 2*rowPadding }

// drawCarry draws the sums so far.
func (t *linesTable) drawCarry(label string) {
	c, p := t.c, t.strong()
	c.y += rowPadding
	c.text(p, t.description, c.y+p.size, label)
	c.textRight(p, t.net, c.y+p.size, c.words.format.amount(t.netSum, t.decimals))
	c.textRight(p, t.amount, c.y+p.size, c.words.format.amount(t.amountSum, t.decimals))
	c.y += p.lead() + rowPadding
	if label == c.words.brought {
		c.rule(marginSide, c.y, contentWidth, stroke{350, c.hair})
	}
}

// cutQuantity splits a number at its decimal sign.
func cutQuantity(s, decimal string) (whole, fraction string) {
	if i := strings.LastIndex(s, decimal); i >= 0 && decimal != "" {
		return s[:i], s[i:]
	}
	return s, ""
}

// taxGroup is a row of the tax summary: what was taxed alike.
type taxGroup struct {
	regime, kind, code, rate string
	withheld                 bool
	base, tax                int64
	order                    int64 // the rate as an integer, to sort by
}

// taxGroups sums lines by tax, what is withheld last, high rates first.
func taxGroups(f *format, items []transaction.Item, lines []transaction.Line) []taxGroup {
	type key struct{ regime, kind, code, rate string }
	index := make(map[key]int)
	var groups []taxGroup
	for i := range items {
		for j, tax := range items[i].Taxes {
			k := key{tax.Regime, tax.Type, tax.Code, f.percent(tax.Rate)}
			at, ok := index[k]
			if !ok {
				at = len(groups)
				index[k] = at
				groups = append(groups, taxGroup{regime: k.regime, kind: k.kind, code: k.code, rate: k.rate, withheld: tax.Withheld(), order: tax.Rate.Rescale(4).Value()})
			}
			groups[at].base += lines[i].Net
			groups[at].tax += lines[i].Taxes[j]
		}
	}
	slices.SortStableFunc(groups, func(a, b taxGroup) int {
		switch {
		case a.withheld != b.withheld:
			if b.withheld {
				return -1
			}
			return 1
		case a.order > b.order:
			return -1
		case a.order < b.order:
			return 1
		}
		return 0
	})
	return groups
}
