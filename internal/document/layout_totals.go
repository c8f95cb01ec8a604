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

// sums draws the totals and the taxes by rate.
type sums struct{ c *composition }

func (c *composition) sums() sums { return sums{c} }

// drawTotals draws the totals at the end of the lines and, beside them, the
// taxes by rate.
func (s sums) drawTotals() {
	groups := s.c.doc.taxGroups()
	rows := s.c.doc.totalRows()
	s.c.need(max(s.totalsHeight(rows), 4*s.c.on.lead(s.c.color.bodyPen())))
	top, page := s.c.y, len(s.c.sheets)
	place := rectangle{x: s.c.on.paper.right() - totalsWidth, width: totalsWidth}
	if s.c.template == Modern {
		s.c.on.box(rectangle{place.x - 3*millimetre, s.c.y - point, totalsWidth + 5*millimetre, s.totalsHeight(rows) + 8*point}, s.c.color.tint)
		s.c.y += 3 * point
	}
	s.drawTotalRows(rows, place)
	if s.c.template == Modern {
		s.c.y += 5 * point
	}
	below := s.c.y
	s.c.y = top
	s.drawTaxSummary(groups, rectangle{x: s.c.on.paper.side, width: summaryWidth})
	if len(s.c.sheets) == page {
		s.c.y = max(s.c.y, below)
	}
	s.c.y += s.c.on.space(sectionGap)
}

// totalRow is one of the sums at the end.
type totalRow struct {
	label, value string
	strong       bool
}

func (d *content) totalRows() []totalRow {
	t, w := &d.v.Totals, &d.words
	rows := []totalRow{
		{label: w.NetTotal, value: w.Money(t.Net, d.currency)},
		{label: w.TaxTotal, value: w.Money(d.taxTotal(), d.currency)},
		{label: w.Total, value: w.Money(t.Gross, d.currency), strong: t.Withheld == 0 && d.v.Rounding == 0},
	}
	if d.v.bare() {
		rows = rows[2:]
	}
	if d.v.Rounding != 0 {
		rows[len(rows)-1].value = w.Money(t.Gross-d.v.Rounding, d.currency)
		rows = append(rows, totalRow{label: w.Rounding, value: w.Money(d.v.Rounding, d.currency)})
	}
	if t.Withheld != 0 {
		rows = append(rows, totalRow{label: w.Withheld, value: w.Money(-t.Withheld, d.currency)})
	}
	if t.Withheld != 0 || d.v.Rounding != 0 {
		label := w.Payable
		if d.credits() {
			label = w.Refund
		}
		rows = append(rows, totalRow{label: label, value: w.Money(t.Payable(), d.currency), strong: true})
	}
	tx := &d.v.Transaction
	if tx.ExchangeRate == nil || d.v.bare() || d.v.LocalCurrency == "" || d.v.LocalCurrency == d.currency {
		return rows
	}
	rate := fmt.Sprintf("1 %s = %s %s", d.currency, w.Format.Number(*tx.ExchangeRate), typeset.Clean(d.v.LocalCurrency))
	local := words.Exchanged(d.taxTotal(), d.currency, *tx.ExchangeRate, d.v.LocalCurrency)
	if d.v.Imprint.LocalTax != nil {
		local = big.NewInt(*d.v.Imprint.LocalTax)
	}
	value := w.Digits(local.String(), words.DecimalsOf(d.v.LocalCurrency)) + words.NBSP + typeset.Clean(d.v.LocalCurrency)
	return append(rows,
		totalRow{label: words.Join(" ", w.ExchangeRate, d.day(tx.ExchangeRateDate)), value: rate},
		totalRow{label: fmt.Sprintf(w.TaxIn, typeset.Clean(d.v.LocalCurrency)), value: value})
}

func (s sums) totalPens(row totalRow) (label, value pen) {
	if row.strong {
		return pen{typeset.Medium, 10 * point, s.c.color.ink}, pen{typeset.Medium, 14 * point, s.c.color.accent}
	}
	return pen{typeset.Regular, s.c.color.bodyPen().size, s.c.color.muted}, s.c.color.bodyPen()
}

func (s sums) totalsHeight(rows []totalRow) length {
	var height length
	for _, row := range rows {
		_, p := s.totalPens(row)
		height += s.c.on.lead(p) + 2*point
		if row.strong {
			height += 6 * point
		}
	}
	return height
}

func (s sums) drawTotalRows(rows []totalRow, place rectangle) {
	s.c.on.begin("Table")
	defer s.c.on.done()
	for _, row := range rows {
		label, value := s.totalPens(row)
		if row.strong {
			s.c.y += 2 * point
			s.c.on.rule(place.x, s.c.y, place.width, stroke{800, s.c.color.accent})
			s.c.y += 4 * point
		}
		label.size = s.c.on.fitted(label, row.label, place.width*6/10, captionSize) // some languages need more words
		room := place.width - 4*millimetre - s.c.on.width(label, row.label)
		value.size = s.c.on.fitted(value, row.value, max(room, 1), 4*point) // sums of twenty digits exist
		base := s.c.y + max(s.c.on.base(label), s.c.on.base(value))
		s.c.on.within("TR", func() {
			s.c.on.within("TH", func() { s.c.on.text(label, place.x, base, row.label) }).heads(scopeRow)
			s.c.on.within("TD", func() { s.c.on.textRight(value, place.x+place.width, base, row.value) })
		})
		s.c.y = base + (s.c.on.lead(value) - s.c.on.base(value)) + 2*point
	}
}

// taxTable is the table of taxes by rate.
type taxTable struct {
	place           rectangle
	name, base, tax column
	head, body      pen // smaller where sums of twenty digits meet a narrow roll
}

// drawTaxSummary draws what was taxed at which rate.
func (s sums) drawTaxSummary(groups []taxGroup, place rectangle) {
	if len(groups) == 0 {
		return
	}
	t := s.measureTaxes(groups, place)
	p := t.head
	header := func() {
		head := func(col *column, text string) {
			s.c.on.within("TH", func() { s.c.on.textIn(p, col, s.c.y+s.c.on.base(p), text) }).heads(scopeColumn)
		}
		head(&t.name, s.c.doc.words.TaxSummary)
		head(&t.base, s.c.doc.words.Taxable)
		head(&t.tax, s.c.doc.words.TaxAmount)
		s.c.y += s.c.on.lead(p) + 2*point
		s.c.on.rule(place.x, s.c.y, place.width, stroke{500, s.c.color.hair})
		s.c.y += 500
	}
	s.c.on.begin("Table")
	defer s.c.on.done()
	s.c.on.within("TR", header)
	s.c.enter = func() { s.c.on.asArtifact(header) }
	for _, g := range groups {
		s.c.on.within("TR", func() { s.drawTaxGroup(g, t) })
	}
	s.c.enter = nil
}

func (s sums) measureTaxes(groups []taxGroup, place rectangle) taxTable {
	w, decimals := &s.c.doc.words, words.DecimalsOf(s.c.doc.currency)
	t := taxTable{place: place, head: s.c.color.labelPen(), body: s.c.color.bodyPen()}
	for {
		base, tax := s.c.on.width(t.head, w.Taxable), s.c.on.width(t.head, w.TaxAmount)
		for _, g := range groups {
			base = max(base, s.c.on.width(t.body, w.Format.Amount(g.base, decimals)))
			tax = max(tax, s.c.on.width(t.body, w.Format.Amount(-g.tax, decimals)))
		}
		t.tax = column{x: place.x + place.width - tax, width: tax, align: figures}
		t.base = column{x: t.tax.x - columnGap - base, width: base, align: figures}
		t.name = column{x: place.x, width: t.base.x - columnGap - place.x}
		if t.name.width >= max(18*millimetre, s.c.on.width(t.head, w.TaxSummary)) || t.body.size <= 4*point {
			t.name.width = max(t.name.width, 10*millimetre)
			return t
		}
		t.body.size = t.body.size * 9 / 10
		t.head.size = min(t.head.size, t.body.size)
	}
}

func (s sums) drawTaxGroup(g taxGroup, t taxTable) {
	body, small := t.body, s.c.color.smallPen()
	small.size = min(small.size, body.size)
	f, decimals := &s.c.doc.words.Format, words.DecimalsOf(s.c.doc.currency)
	name, detail := s.c.doc.groupName(g)
	lines := t.name
	s.c.on.within("TH", func() {
		lines.lines.add(&s.c.on, body, name, lines.width)
		lines.lines.add(&s.c.on, small, detail, lines.width)
	}).heads(scopeRow)
	s.c.need(lines.lines.height() + 2*rowPadding)
	s.c.y += rowPadding
	tax := g.tax
	if g.withheld {
		tax = -tax
	}
	s.c.on.within("TD", func() { s.c.on.textIn(body, &t.base, s.c.y+s.c.on.base(body), f.Amount(g.base, decimals)) })
	s.c.on.within("TD", func() { s.c.on.textIn(body, &t.tax, s.c.y+s.c.on.base(body), f.Amount(tax, decimals)) })
	s.c.drawColumns(lines)
	s.c.y += rowPadding
	s.c.on.rule(t.place.x, s.c.y, t.place.width, stroke{350, s.c.color.hair})
}

// groupName says what a row of the summary is, and why it is not an ordinary one.
func (d *content) groupName(g taxGroup) (name, detail string) {
	if g.withheld {
		kind := g.kind
		if kind == transaction.Withholding { // nobody said which tax: the word is in the label
			kind = ""
		}
		return words.Join(" ", d.words.Withheld, kind) + words.NBSP + g.rate, typeset.Clean(d.spoken(g.code))
	}
	return d.words.Regime(g.regime) + words.NBSP + g.rate, words.Join(" · ", d.words.TaxType(g.kind), d.spoken(g.code))
}

// spoken is a code of the country with what it means.
func (d *content) spoken(code string) string {
	return words.Join(" – ", code, d.v.Imprint.Words[code])
}

// taxGroup is a row of the tax summary: what was taxed alike.
type taxGroup struct {
	regime, kind, code, rate string
	withheld                 bool
	base, tax                int64
	rateUnits                int64 // the rate in ten-thousandths of a percent
}

// taxGroups sums lines by tax, what is withheld last, high rates first.
func (d *content) taxGroups() []taxGroup {
	type key struct{ regime, kind, code, rate string }
	f, items, lines := &d.words.Format, d.v.Transaction.Items, d.v.Totals.Lines
	index := make(map[key]int)
	var groups []taxGroup
	for i := range items {
		for j, tax := range items[i].Taxes {
			k := key{tax.Regime, tax.Type, tax.Code, f.Rate(&tax, words.DecimalsOf(d.currency))}
			if d.v.TaxedBySum && !tax.Rate.IsZero() && !tax.Withheld() {
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
		if g := &groups[i]; d.v.TaxedBySum && !g.withheld {
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
func (d *content) taxTotal() int64 {
	if !d.v.TaxedBySum {
		return d.v.Totals.Tax
	}
	return d.v.Totals.Gross - d.v.Rounding - d.v.Totals.Net
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }
