package document

import (
	"slices"
	"strings"

	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// linesTable is the table of items: the widths of its columns are those of its
// widest figures, and the description takes what is left.
type linesTable struct {
	c        *composition
	body     pen
	decimals int

	number, description, quantity, unit, price, tax, net, amount column
	taxed, units                                                 bool   // some item has a tax, a unit
	mode                                                         string // how prices relate to tax, when all items agree
	mixed                                                        bool   // they do not

	fraction length // widest part of a quantity behind its decimal sign

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
	t := &linesTable{c: c, body: c.color.bodyPen(), decimals: words.DecimalsOf(c.doc.currency)}
	t.measure()
	carry := t.carryHeight()
	c.on.begin("Table")
	defer c.on.done()
	c.enter = func() {
		c.on.asArtifact(func() {
			t.drawHeader()
			if t.drawn > 0 {
				t.drawCarry(c.doc.words.Brought)
			}
		})
		c.end = c.contentEnd() - carry
	}
	c.leave = func() {
		if t.drawn > 0 {
			c.on.asArtifact(func() { t.drawCarry(c.doc.words.Carried) })
		}
	}
	if c.y+t.headerHeight()+4*c.on.lead(t.body)+carry > c.end { // not the head of a table alone at the foot of a page
		c.newPage()
	}
	c.on.within("TR", t.drawHeader)
	c.end = c.contentEnd() - carry
	items := c.doc.v.Transaction.Items
	for i := range items {
		if i%64 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		below := length(0)
		if i > 0 && i == len(items)-1 { // the totals take an item with them to a new page
			below = c.sums().totalsHeight(c.doc.totalRows()) + c.on.space(sectionGap) - carry
		}
		c.on.within("TR", func() { t.drawRow(&items[i], &c.doc.v.Totals.Lines[i], below) })
	}
	c.leave, c.enter, c.end = nil, nil, c.contentEnd()
	c.y += c.on.space(sectionGap)
	return nil
}

// cells are an item's figures as text.
type cells struct {
	number, quantity, unit, price, net, amount string
	rates                                      []string
}

func (t *linesTable) cells(item *transaction.Item, line *transaction.Line) cells {
	f := &t.c.doc.words.Format
	out := cells{
		number:   f.Digits(itoa(item.Number), 0),
		quantity: f.Number(item.Quantity),
		unit:     typeset.Clean(item.Unit),
		price:    f.Amount(item.UnitPrice, t.decimals),
		net:      f.Amount(line.Net, t.decimals),
		amount:   f.Amount(line.Gross, t.decimals),
	}
	if item.Extra != nil { // of the whole document: there is no quantity to multiply
		out.number, out.quantity = "", ""
	}
	for _, tax := range item.Taxes {
		if !tax.Withheld() {
			out.rates = append(out.rates, f.Rate(&tax, t.decimals))
		}
	}
	return out
}

// widths are the widest texts of each column of figures.
type widths struct {
	number, whole, fraction, unit, price, tax, net, amount length
}

// measure sets the columns. Where figures are so wide that no description would
// fit beside them, everything is drawn smaller.
func (t *linesTable) measure() {
	c, w, head := t.c, &t.c.doc.words, t.c.color.labelPen()
	for {
		m := t.measureItems()
		m.net = max(m.net, c.on.width(t.strong(), w.Format.Amount(c.doc.v.Totals.Net, t.decimals)), c.on.width(head, w.Net))
		m.amount = max(m.amount, c.on.width(t.strong(), w.Format.Amount(c.doc.v.Totals.Gross, t.decimals)), c.on.width(head, w.Amount))
		m.price = max(m.price, c.on.width(head, w.UnitPrice))
		if !t.mixed && t.mode != "" {
			m.price = max(m.price, c.on.width(c.color.smallPen(), t.modeWord(t.mode)))
		}
		m.tax = max(m.tax, c.on.width(head, w.Tax))
		m.number = max(m.number, c.on.width(head, w.Line))
		t.fraction = m.fraction
		t.place(m, max(m.whole+m.fraction, c.on.width(head, w.Quantity)))
		if t.description.width >= 34*millimetre || t.body.size <= 4*point {
			return
		}
		t.body.size = t.body.size * 9 / 10
	}
}

func (t *linesTable) measureItems() widths {
	c := t.c
	var m widths
	t.taxed, t.mode, t.mixed = false, "", false
	for i := range c.doc.v.Transaction.Items {
		item := &c.doc.v.Transaction.Items[i]
		f := t.cells(item, &c.doc.v.Totals.Lines[i])
		t.note(item)
		left, right := cutQuantity(f.quantity, c.doc.words.Decimal())
		m.number = max(m.number, c.on.width(t.body, f.number))
		m.whole = max(m.whole, c.on.width(t.body, left))
		m.fraction = max(m.fraction, c.on.width(t.body, right))
		m.unit = max(m.unit, c.on.width(t.body, f.unit))
		t.units = t.units || f.unit != "" // one may have no width: a lone accent
		m.price = max(m.price, c.on.width(t.body, f.price))
		m.net = max(m.net, c.on.width(t.body, f.net))
		m.amount = max(m.amount, c.on.width(t.body, f.amount))
		for _, rate := range f.rates {
			m.tax = max(m.tax, c.on.width(t.body, rate))
		}
	}
	return m
}

// place computes the columns from the end to the beginning of the line.
func (t *linesTable) place(m widths, quantity length) {
	x := t.c.on.paper.right()
	take := func(width length) column {
		x -= width
		col := column{x: x, width: width, align: figures}
		x -= columnGap
		return col
	}
	t.amount = take(m.amount)
	if !t.c.doc.v.bare() {
		t.net = take(m.net)
	}
	if t.taxed {
		t.tax = take(m.tax)
	}
	t.price = take(m.price)
	if t.units {
		width := min(m.unit, unitWidthMax)
		t.unit = column{x: x - width, width: width}
		x -= width + 3500
	}
	t.quantity = take(quantity)
	t.number = column{x: t.c.on.paper.side, width: m.number, align: figures}
	from := t.number.x + m.number + columnGap
	t.description = column{x: from, width: x - from}
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
		return t.c.doc.words.TaxIncluded
	case transaction.Added:
		return t.c.doc.words.TaxExcluded
	}
	return ""
}

func (t *linesTable) strong() pen { return pen{typeset.Medium, t.body.size, t.c.color.ink} }

func (t *linesTable) headerHeight() length { return 2*t.c.on.lead(t.c.color.labelPen()) + 5*point }

func (t *linesTable) drawHeader() {
	c, p := t.c, t.c.color.labelPen()
	if c.template == Modern {
		height := c.on.lead(p) + 6*point
		if !t.mixed && t.mode != "" {
			height += c.on.lead(p)
		}
		c.on.box(rectangle{c.on.paper.side - 2*millimetre, c.y - 1*point, c.on.paper.room() + 4*millimetre, height}, c.color.tint)
		c.y += 2 * point
		p.color = c.color.ink
	}
	y := c.y + c.on.base(p)
	head := func(col *column, text string) {
		c.on.within("TH", func() { c.on.textIn(p, col, y, text) }).heads(scopeColumn)
	}
	head(&t.number, c.doc.words.Line)
	head(&t.description, c.doc.words.Description)
	head(&t.quantity, c.doc.words.Quantity)
	c.on.within("TH", func() {
		moded := !t.mixed && t.mode != ""
		c.on.lineIn(&blockLine{pen: p, text: c.doc.words.UnitPrice, more: moded}, &t.price, y)
		if moded {
			c.on.textIn(c.color.smallPen(), &t.price, y+c.on.lead(p), t.modeWord(t.mode))
			c.y += c.on.lead(p)
		}
	}).heads(scopeColumn)
	if t.taxed {
		head(&t.tax, c.doc.words.Tax)
	}
	if !c.doc.v.bare() {
		head(&t.net, c.doc.words.Net)
	}
	head(&t.amount, c.doc.words.Amount)
	c.y += c.on.lead(p) + 3*point
	if c.template != Modern {
		c.on.rule(c.on.paper.side, c.y, c.on.paper.room(), stroke{800, c.color.accent})
		c.y += 800
	}
}

// drawRow draws an item. A row that fits on a page is kept whole, with what
// must stand below it.
func (t *linesTable) drawRow(item *transaction.Item, line *transaction.Line, below length) {
	c := t.c
	f := t.cells(item, line)
	muted := pen{typeset.Regular, t.body.size, c.color.muted}
	one := func(col column, p pen, text string) column {
		col.lines = block{{pen: p, text: text, lead: c.on.lead(p), tag: c.on.tag}}
		return col
	}
	columns := make([]column, 0, 8)
	cell := func(make func() column) {
		c.on.within("TD", func() { columns = append(columns, make()) })
	}
	cell(func() column { return one(t.number, muted, f.number) })
	cell(func() column { return t.describe(item, line) })
	cell(func() column {
		if f.unit == "" {
			return t.quantityColumn(f.quantity)
		}
		quantity, unit := t.quantityColumn(f.quantity), t.unit
		quantity.lines[0].more = true
		columns = append(columns, quantity)
		unit.lines.add(&c.on, muted, f.unit, unitWidthMax)
		return unit
	})
	cell(func() column {
		price := one(t.price, t.body, f.price)
		if t.mixed {
			small := c.color.smallPen()
			price.lines.add(&c.on, small, t.modeWord(priceMode(item)), t.price.width+columnGap)
		}
		return price
	})
	if t.taxed {
		cell(func() column {
			rates := t.tax
			for _, rate := range f.rates {
				rates.lines = append(rates.lines, blockLine{pen: t.body, text: rate, lead: c.on.lead(t.body), tag: c.on.tag})
			}
			return rates
		})
	}
	if !c.doc.v.bare() {
		cell(func() column { return one(t.net, t.body, f.net) })
	}
	cell(func() column { return one(t.amount, t.body, f.amount) })
	level(columns)
	var height length
	for _, col := range columns {
		height = max(height, col.lines.height())
	}
	height += 2 * rowPadding
	if room := c.end - c.on.paper.top - 40*millimetre; height+below <= room || below == 0 {
		c.need(min(height+below, room))
	} else {
		c.need(min(height, room))
	}
	c.y += rowPadding
	c.drawColumns(columns...)
	c.y += rowPadding
	c.on.rule(c.on.paper.side, c.y, c.on.paper.room(), stroke{350, c.color.hair})
	t.drawn++
	t.netSum += line.Net
	t.amountSum += line.Gross
}

// describe is the cell with an item's name, description, discount and codes.
func (t *linesTable) describe(item *transaction.Item, line *transaction.Line) column {
	c, col := t.c, t.description
	small := c.color.smallPen()
	small.size = min(captionSize, t.body.size)
	name := typeset.Clean(item.Name)
	col.lines.add(&c.on, t.body, name, col.width)
	if d := typeset.Clean(item.Description); d != name {
		col.lines.add(&c.on, small, d, col.width)
	}
	if span := c.doc.span(item.Period); span != "" {
		col.lines.add(&c.on, small, words.Join(" ", c.doc.words.Period, span), col.width)
	}
	if item.Extra != nil && item.Extra.Rate != nil {
		col.lines.add(&c.on, small, c.doc.words.Format.Percent(*item.Extra.Rate), col.width)
	}
	col.lines.add(&c.on, small, c.doc.discount(item, line), col.width)
	col.lines.add(&c.on, small, t.codes(item), col.width)
	return col
}

// quantityColumn aligns a quantity on its decimal sign.
func (t *linesTable) quantityColumn(quantity string) column {
	c, col := t.c, t.quantity
	_, fraction := cutQuantity(quantity, c.doc.words.Decimal())
	if spare := t.fraction - c.on.width(t.body, fraction); spare > 0 {
		if c.on.rtl {
			col.x += spare
		} else {
			col.width -= spare
		}
	}
	col.lines = block{{pen: t.body, text: quantity, lead: c.on.lead(t.body), tag: c.on.tag}}
	return col
}

// discount is what was taken from the line, so that quantity, price and amount
// can be followed.
func (d *content) discount(item *transaction.Item, line *transaction.Line) string {
	if line.Discount == 0 {
		return ""
	}
	f := &d.words.Format
	taken := f.Amount(-line.Discount, words.DecimalsOf(d.currency))
	if item.Discount != nil && item.Discount.Rate != nil {
		taken = f.Percent(item.Discount.Rate.Negate()) + ": " + taken
	}
	return words.Join(" ", d.words.Discount, taken)
}

func (t *linesTable) codes(item *transaction.Item) string {
	var parts []string
	add := func(name, code string) {
		if code = typeset.Clean(code); code != "" {
			parts = append(parts, words.Join(" ", name, code))
		}
	}
	add(t.c.doc.words.Code, item.Code)
	add("EAN", item.EAN)
	for _, class := range item.Classifications {
		if slices.Contains(t.c.doc.v.Imprint.Unsaid, strings.ToUpper(class.Scheme)) {
			continue
		}
		add(class.Scheme, class.Code)
	}
	return strings.Join(parts, " · ")
}

func (t *linesTable) carryHeight() length { return t.c.on.lead(t.body) + 2*rowPadding }

// drawCarry draws the sums so far.
func (t *linesTable) drawCarry(label string) {
	c, p := t.c, t.strong()
	c.y += rowPadding
	c.on.text(p, t.description.x, c.y+c.on.base(p), label)
	if !c.doc.v.bare() {
		c.on.textIn(p, &t.net, c.y+c.on.base(p), c.doc.words.Format.Amount(t.netSum, t.decimals))
	}
	c.on.textIn(p, &t.amount, c.y+c.on.base(p), c.doc.words.Format.Amount(t.amountSum, t.decimals))
	c.y += c.on.lead(p) + rowPadding
	if label == c.doc.words.Brought {
		c.on.rule(c.on.paper.side, c.y, c.on.paper.room(), stroke{350, c.color.hair})
	}
}

// cutQuantity splits a number at its decimal sign.
func cutQuantity(s, decimal string) (whole, fraction string) {
	if i := strings.LastIndex(s, decimal); i >= 0 && decimal != "" {
		return s[:i], s[i:]
	}
	return s, ""
}
