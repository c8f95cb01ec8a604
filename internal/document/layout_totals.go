package document

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// sectionGap is the white space between the parts of a document.
const sectionGap = 6 * millimetre

const (
	summaryWidth = 88 * millimetre
	totalsWidth  = 70 * millimetre
)

// drawTotals draws the totals at the end of the lines and, beside them, the
// taxes by rate.
func (c *composition) drawTotals() {
	groups := c.taxGroups()
	rows := c.totalRows()
	c.need(max(c.totalsHeight(rows), 4*c.lead(c.bodyPen())))
	top, page := c.y, len(c.sheets)
	place := rectangle{x: c.paper.right() - totalsWidth, width: totalsWidth}
	if c.template == Modern {
		c.box(rectangle{place.x - 3*millimetre, c.y - point, totalsWidth + 5*millimetre, c.totalsHeight(rows) + 8*point}, c.tint)
		c.y += 3 * point
	}
	c.drawTotalRows(rows, place)
	if c.template == Modern {
		c.y += 5 * point
	}
	below := c.y
	c.y = top
	c.drawTaxSummary(groups, rectangle{x: c.paper.side, width: summaryWidth})
	if len(c.sheets) == page {
		c.y = max(c.y, below)
	}
	c.y += c.space(sectionGap)
}

// totalRow is one of the sums at the end.
type totalRow struct {
	label, value string
	strong       bool
}

func (c *composition) totalRows() []totalRow {
	t, w := &c.v.Totals, &c.words
	rows := []totalRow{
		{label: w.NetTotal, value: w.Money(t.Net, c.currency)},
		{label: w.TaxTotal, value: w.Money(c.taxTotal(), c.currency)},
		{label: w.Total, value: w.Money(t.Gross, c.currency), strong: t.Withheld == 0 && c.v.Rounding == 0},
	}
	if c.v.bare() {
		rows = rows[2:]
	}
	if c.v.Rounding != 0 {
		rows[len(rows)-1].value = w.Money(t.Gross-c.v.Rounding, c.currency)
		rows = append(rows, totalRow{label: w.Rounding, value: w.Money(c.v.Rounding, c.currency)})
	}
	if t.Withheld != 0 {
		rows = append(rows, totalRow{label: w.Withheld, value: w.Money(-t.Withheld, c.currency)})
	}
	if t.Withheld != 0 || c.v.Rounding != 0 {
		label := w.Payable
		if c.credits() {
			label = w.Refund
		}
		rows = append(rows, totalRow{label: label, value: w.Money(t.Payable(), c.currency), strong: true})
	}
	tx := &c.v.Transaction
	if tx.ExchangeRate == nil || c.v.bare() || c.v.LocalCurrency == "" || c.v.LocalCurrency == c.currency {
		return rows
	}
	rate := fmt.Sprintf("1 %s = %s %s", c.currency, w.Format.Number(*tx.ExchangeRate), typeset.Clean(c.v.LocalCurrency))
	local := words.Exchanged(c.taxTotal(), c.currency, *tx.ExchangeRate, c.v.LocalCurrency)
	if c.v.Imprint.LocalTax != nil {
		local = big.NewInt(*c.v.Imprint.LocalTax)
	}
	value := w.Digits(local.String(), words.DecimalsOf(c.v.LocalCurrency)) + words.NBSP + typeset.Clean(c.v.LocalCurrency)
	return append(rows,
		totalRow{label: words.Join(" ", w.ExchangeRate, c.day(tx.ExchangeRateDate)), value: rate},
		totalRow{label: fmt.Sprintf(w.TaxIn, typeset.Clean(c.v.LocalCurrency)), value: value})
}

func (c *composition) totalPens(row totalRow) (label, value pen) {
	if row.strong {
		return pen{typeset.Medium, 10 * point, c.ink}, pen{typeset.Medium, 14 * point, c.accent}
	}
	return pen{typeset.Regular, c.bodyPen().size, c.muted}, c.bodyPen()
}

func (c *composition) totalsHeight(rows []totalRow) length {
	var height length
	for _, row := range rows {
		_, p := c.totalPens(row)
		height += c.lead(p) + 2*point
		if row.strong {
			height += 6 * point
		}
	}
	return height
}

func (c *composition) drawTotalRows(rows []totalRow, place rectangle) {
	c.begin("Table")
	defer c.done()
	for _, row := range rows {
		label, value := c.totalPens(row)
		if row.strong {
			c.y += 2 * point
			c.rule(place.x, c.y, place.width, stroke{800, c.accent})
			c.y += 4 * point
		}
		label.size = c.fitted(label, row.label, place.width*6/10, captionSize) // some languages need more words
		room := place.width - 4*millimetre - c.width(label, row.label)
		value.size = c.fitted(value, row.value, max(room, 1), 4*point) // sums of twenty digits exist
		base := c.y + max(c.base(label), c.base(value))
		c.within("TR", func() {
			c.within("TH", func() { c.text(label, place.x, base, row.label) }).heads(scopeRow)
			c.within("TD", func() { c.textRight(value, place.x+place.width, base, row.value) })
		})
		c.y = base + (c.lead(value) - c.base(value)) + 2*point
	}
}

// taxTable is the table of taxes by rate.
type taxTable struct {
	place           rectangle
	name, base, tax column
	head, body      pen // smaller where sums of twenty digits meet a narrow roll
}

// drawTaxSummary draws what was taxed at which rate.
func (c *composition) drawTaxSummary(groups []taxGroup, place rectangle) {
	if len(groups) == 0 {
		return
	}
	t := c.measureTaxes(groups, place)
	p := t.head
	header := func() {
		head := func(col *column, text string) {
			c.within("TH", func() { c.textIn(p, col, c.y+c.base(p), text) }).heads(scopeColumn)
		}
		head(&t.name, c.words.TaxSummary)
		head(&t.base, c.words.Taxable)
		head(&t.tax, c.words.TaxAmount)
		c.y += c.lead(p) + 2*point
		c.rule(place.x, c.y, place.width, stroke{500, c.hair})
		c.y += 500
	}
	c.begin("Table")
	defer c.done()
	c.within("TR", header)
	c.enter = func() { c.asArtifact(header) }
	for _, g := range groups {
		c.within("TR", func() { c.drawTaxGroup(g, t) })
	}
	c.enter = nil
}

func (c *composition) measureTaxes(groups []taxGroup, place rectangle) taxTable {
	w, decimals := &c.words, words.DecimalsOf(c.currency)
	t := taxTable{place: place, head: c.labelPen(), body: c.bodyPen()}
	for {
		base, tax := c.width(t.head, w.Taxable), c.width(t.head, w.TaxAmount)
		for _, g := range groups {
			base = max(base, c.width(t.body, w.Format.Amount(g.base, decimals)))
			tax = max(tax, c.width(t.body, w.Format.Amount(-g.tax, decimals)))
		}
		t.tax = column{x: place.x + place.width - tax, width: tax, align: figures}
		t.base = column{x: t.tax.x - columnGap - base, width: base, align: figures}
		t.name = column{x: place.x, width: t.base.x - columnGap - place.x}
		if t.name.width >= max(18*millimetre, c.width(t.head, w.TaxSummary)) || t.body.size <= 4*point {
			t.name.width = max(t.name.width, 10*millimetre)
			return t
		}
		t.body.size = t.body.size * 9 / 10
		t.head.size = min(t.head.size, t.body.size)
	}
}

func (c *composition) drawTaxGroup(g taxGroup, t taxTable) {
	body, small := t.body, c.smallPen()
	small.size = min(small.size, body.size)
	f, decimals := &c.words.Format, words.DecimalsOf(c.currency)
	name, detail := c.groupName(g)
	lines := t.name
	c.within("TH", func() {
		lines.lines.add(c, body, name, lines.width)
		lines.lines.add(c, small, detail, lines.width)
	}).heads(scopeRow)
	c.need(lines.lines.height() + 2*rowPadding)
	c.y += rowPadding
	tax := g.tax
	if g.withheld {
		tax = -tax
	}
	c.within("TD", func() { c.textIn(body, &t.base, c.y+c.base(body), f.Amount(g.base, decimals)) })
	c.within("TD", func() { c.textIn(body, &t.tax, c.y+c.base(body), f.Amount(tax, decimals)) })
	c.drawColumns(lines)
	c.y += rowPadding
	c.rule(t.place.x, c.y, t.place.width, stroke{350, c.hair})
}

// groupName says what a row of the summary is, and why it is not an ordinary one.
func (c *composition) groupName(g taxGroup) (name, detail string) {
	if g.withheld {
		kind := g.kind
		if kind == transaction.Withholding { // nobody said which tax: the word is in the label
			kind = ""
		}
		return words.Join(" ", c.words.Withheld, kind) + words.NBSP + g.rate, typeset.Clean(c.spoken(g.code))
	}
	return c.words.Regime(g.regime) + words.NBSP + g.rate, words.Join(" · ", c.words.TaxType(g.kind), c.spoken(g.code))
}

// spoken is a code of the country with what it means.
func (c *composition) spoken(code string) string {
	return words.Join(" – ", code, c.v.Imprint.Words[code])
}

// taxGroup is a row of the tax summary: what was taxed alike.
type taxGroup struct {
	regime, kind, code, rate string
	withheld                 bool
	base, tax                int64
	rateUnits                int64 // the rate in ten-thousandths of a percent
}

// taxGroups sums lines by tax, what is withheld last, high rates first.
func (c *composition) taxGroups() []taxGroup {
	type key struct{ regime, kind, code, rate string }
	f, items, lines := &c.words.Format, c.v.Transaction.Items, c.v.Totals.Lines
	index := make(map[key]int)
	var groups []taxGroup
	for i := range items {
		for j, tax := range items[i].Taxes {
			k := key{tax.Regime, tax.Type, tax.Code, f.Rate(&tax, words.DecimalsOf(c.currency))}
			if c.v.TaxedBySum && !tax.Rate.IsZero() && !tax.Withheld() {
				k.kind, k.code = transaction.TaxStandard, "" // one row for each rate, as the data has it
			}
			at, ok := index[k]
			if !ok {
				at = len(groups)
				index[k] = at
				groups = append(groups, taxGroup{regime: k.regime, kind: k.kind, code: k.code, rate: k.rate, withheld: tax.Withheld(), rateUnits: tax.Rate.Rescale(4).Value()})
			}
			groups[at].base += lines[i].Net
			groups[at].tax += lines[i].Taxes[j]
		}
	}
	for i := range groups {
		if g := &groups[i]; c.v.TaxedBySum && !g.withheld {
			g.tax = taxOn(g.base, g.rateUnits)
		}
	}
	slices.SortStableFunc(groups, func(a, b taxGroup) int {
		switch {
		case a.withheld != b.withheld:
			if b.withheld {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.rateUnits, a.rateUnits)
	})
	return groups
}

// taxOn is a share of an amount, rounded half away from zero: what EN 16931
// computes on the sum of a rate.
func taxOn(base, rateUnits int64) int64 {
	const whole = 1_000_000 // 100 percent
	n := new(big.Int).Mul(big.NewInt(base), big.NewInt(rateUnits))
	half := big.NewInt(whole / 2)
	if n.Sign() < 0 {
		half.Neg(half)
	}
	return n.Quo(n.Add(n, half), big.NewInt(whole)).Int64()
}

// taxTotal is the tax of the whole document.
func (c *composition) taxTotal() int64 {
	if !c.v.TaxedBySum {
		return c.v.Totals.Tax
	}
	return c.v.Totals.Gross - c.v.Rounding - c.v.Totals.Net
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }
