package document

import (
	"fmt"
	"strconv"
	"strings"

	"tributary/internal/document/typeset"
)

// sectionGap is the white space between the parts of a document.
const sectionGap = 6 * millimetre

const (
	summaryWidth = 88 * millimetre
	totalsWidth  = 70 * millimetre
)

// heading begins a section, and is never the last line of a page.
func (c *composition) heading(text string) {
	p := c.labelPen()
	c.need(p.lead() + 2*point + 2*c.bodyPen().lead())
	c.text(p, marginSide, c.y+p.size, text)
	c.y += p.lead() + 2*point
}

// drawTotals draws the totals on the right and, beside them, the taxes by rate.
func (c *composition) drawTotals() {
	groups := taxGroups(&c.words.format, c.v.Transaction.Items, c.v.Totals.Lines)
	rows := c.totalRows()
	c.need(max(c.totalsHeight(rows), 4*c.bodyPen().lead()))
	top, page := c.y, len(c.sheets)
	c.drawTotalRows(rows)
	below := c.y
	c.y = top
	c.drawTaxSummary(groups)
	if len(c.sheets) == page {
		c.y = max(c.y, below)
	}
	c.y += sectionGap
}

// totalRow is one of the sums at the end.
type totalRow struct {
	label, value string
	strong       bool
}

func (c *composition) totalRows() []totalRow {
	t, w := &c.v.Totals, &c.words
	rows := []totalRow{
		{label: w.netTotal, value: w.money(t.Net, c.currency)},
		{label: w.taxTotal, value: w.money(t.Tax, c.currency)},
		{label: w.total, value: w.money(t.Gross, c.currency), strong: t.Withheld == 0},
	}
	if t.Withheld != 0 {
		rows = append(rows,
			totalRow{label: w.withheld, value: w.money(-t.Withheld, c.currency)},
			totalRow{label: w.payable, value: w.money(t.Payable(), c.currency), strong: true})
	}
	tx := &c.v.Transaction
	if tx.ExchangeRate == nil || c.v.LocalCurrency == "" || c.v.LocalCurrency == c.currency {
		return rows
	}
	rate := fmt.Sprintf("1 %s = %s %s", c.currency, w.format.number(*tx.ExchangeRate), typeset.Clean(c.v.LocalCurrency))
	local := exchanged(t.Tax, c.currency, *tx.ExchangeRate, c.v.LocalCurrency)
	value := w.decimalNumber(local.String(), decimalsOf(c.v.LocalCurrency)) + nbsp + typeset.Clean(c.v.LocalCurrency)
	return append(rows,
		totalRow{label: joined(" ", w.exchangeRate, tx.ExchangeRateDate), value: rate},
		totalRow{label: fmt.Sprintf(w.taxIn, typeset.Clean(c.v.LocalCurrency)), value: value})
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
		height += p.lead() + 2*point
		if row.strong {
			height += 6 * point
		}
	}
	return height
}

func (c *composition) drawTotalRows(rows []totalRow) {
	x := contentRight - totalsWidth
	for _, row := range rows {
		label, value := c.totalPens(row)
		if row.strong {
			c.y += 2 * point
			c.rule(x, c.y, totalsWidth, stroke{800, c.accent})
			c.y += 4 * point
		}
		room := totalsWidth - 4*millimetre - c.width(label, row.label)
		value.size = c.fitted(value, row.value, max(room, 1), 4*point) // sums of twenty digits exist
		base := c.y + max(label.size, value.size)
		c.text(label, x, base, row.label)
		c.textRight(value, contentRight, base, row.value)
		c.y = base + (value.lead() - value.size) + 2*point
	}
}

// drawTaxSummary draws what was taxed at which rate.
func (c *composition) drawTaxSummary(groups []taxGroup) {
	if len(groups) == 0 {
		return
	}
	w, p, body := &c.words, c.labelPen(), c.bodyPen()
	small := c.smallPen()
	decimals := decimalsOf(c.currency)
	var baseWidth, taxWidth length
	for _, g := range groups {
		baseWidth = max(baseWidth, c.width(body, w.format.amount(g.base, decimals)))
		taxWidth = max(taxWidth, c.width(body, w.format.amount(-g.tax, decimals)))
	}
	taxWidth = max(taxWidth, c.width(p, w.tax))
	baseWidth = max(baseWidth, c.width(p, w.taxable))
	taxRight := marginSide + summaryWidth
	baseRight := taxRight - taxWidth - columnGap
	nameWidth := max(baseRight-baseWidth-columnGap-marginSide, 18*millimetre)

	header := func() {
		c.text(p, marginSide, c.y+p.size, w.taxSummary)
		c.textRight(p, baseRight, c.y+p.size, w.taxable)
		c.textRight(p, taxRight, c.y+p.size, w.tax)
		c.y += p.lead() + 2*point
		c.rule(marginSide, c.y, summaryWidth, stroke{500, c.hair})
		c.y += 500
	}
	header()
	c.enter = header
	for _, g := range groups {
		name, detail := c.groupName(g)
		var lines block
		lines.add(c, body, name, nameWidth)
		lines.add(c, small, detail, nameWidth)
		c.need(lines.height() + 2*rowPadding)
		c.y += rowPadding
		tax := g.tax
		if g.withheld {
			tax = -tax
		}
		c.textRight(body, baseRight, c.y+body.size, w.format.amount(g.base, decimals))
		c.textRight(body, taxRight, c.y+body.size, w.format.amount(tax, decimals))
		c.drawColumns(column{x: marginSide, lines: lines})
		c.y += rowPadding
		c.rule(marginSide, c.y, summaryWidth, stroke{350, c.hair})
	}
	c.enter = nil
}

// groupName says what a row of the summary is, and why it is not an ordinary one.
func (c *composition) groupName(g taxGroup) (name, detail string) {
	if g.withheld {
		return joined(" ", c.words.withheld, g.kind) + nbsp + g.rate, typeset.Clean(g.code)
	}
	return c.words.regime(g.regime) + nbsp + g.rate, joined(" · ", c.words.taxType(g.kind), g.code)
}

// drawPayments draws how the total is paid.
func (c *composition) drawPayments() {
	payments := c.v.Transaction.Payments
	if len(payments) == 0 {
		return
	}
	c.heading(c.words.payments)
	p := c.bodyPen()
	for _, payment := range payments {
		c.need(p.lead() + point)
		value := c.words.money(payment.Amount, c.currency)
		name := joined(" · ", c.words.payment(payment.Type), payment.Code)
		c.text(p, marginSide, c.y+p.size, c.cut(p, name, max(summaryWidth-columnGap-c.width(p, value), 20*millimetre)))
		c.textRight(p, marginSide+summaryWidth, c.y+p.size, value)
		c.y += p.lead() + point
	}
	c.y += sectionGap
}

// drawAuthority draws the ids that the authority gave.
func (c *composition) drawAuthority() {
	var labels, values block
	label, value := c.smallPen(), c.bodyPen()
	label.size, value.size = 8*point, 8*point
	const labelWidth = 44 * millimetre
	for _, id := range c.v.Authority {
		text := typeset.Clean(id.Value)
		if text == "" {
			continue
		}
		name := typeset.Clean(id.Label)
		if name == "" {
			name = c.words.authorityID
		}
		left, right := c.wrap(label, name, labelWidth-3*millimetre), c.wrap(value, text, contentWidth-labelWidth)
		for i := range max(len(left), len(right)) {
			labels = append(labels, blockLine{pen: label, text: at(left, i)})
			values = append(values, blockLine{pen: value, text: at(right, i)})
		}
	}
	if len(values) == 0 {
		return
	}
	c.heading(c.words.authority)
	c.drawColumns(column{x: marginSide, lines: labels}, column{x: marginSide + labelWidth, lines: values})
	c.y += sectionGap
}

// drawLegalTexts draws what the law of the country wants said.
func (c *composition) drawLegalTexts() {
	p := c.smallPen()
	for _, text := range c.v.LegalTexts {
		for _, line := range typeset.CleanLines(text) {
			for _, part := range c.wrap(p, line, contentWidth) {
				c.need(p.lead())
				c.text(p, marginSide, c.y+p.size, part)
				c.y += p.lead()
			}
		}
		c.y += 1500
	}
}

// drawMissing says which scripts stand in Latin letters, and why.
func (c *composition) drawMissing() {
	if len(c.missing) == 0 {
		return
	}
	names := make([]string, len(c.missing))
	for i, script := range c.missing {
		names[i] = scriptName(c.words.tag, script)
	}
	p := c.smallPen()
	for _, line := range c.wrap(p, fmt.Sprintf(c.words.transliterated, strings.Join(names, ", ")), contentWidth) {
		c.need(p.lead())
		c.text(p, marginSide, c.y+p.size, line)
		c.y += p.lead()
	}
}

// at returns a line that may not be there.
func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }
