package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
)

// drawPayments draws how the total is paid, and how to pay what is open, with a
// code for it beside. It stands apart from the codes of authorities, which are
// beside the parties.
func (c *composition) drawPayments() error {
	rows, more := c.doc.paymentRows(), c.doc.paymentFacts()
	if len(rows) == 0 && len(more) == 0 {
		return nil
	}
	var code *qrBlock
	if text := c.doc.transfer(); text != "" {
		var err error
		if code, err = c.newQRBlock(&country.Code{Text: text, Title: c.doc.words.ScanToPay, Caption: "SEPA"}); err != nil {
			return err
		}
		c.need(code.height + c.on.lead(c.color.labelPen()) + 2*point)
	}
	top, page := c.y, len(c.sheets)
	c.heading(c.doc.words.Payments)
	p := c.color.bodyPen()
	if code != nil {
		c.aside = code.width + 7*millimetre
	}
	if len(rows) > 0 {
		c.drawPaymentRows(rows, p)
	}
	c.drawPairs(more, p)
	c.aside = 0
	if code != nil {
		if page != len(c.sheets) {
			top = c.y // the words went on behind the page
			c.need(code.height)
		}
		code.draw(c, c.on.paper.right()-code.width, top)
		c.y = max(c.y, top+code.height)
	}
	c.y += c.on.space(sectionGap)
	return nil
}

// drawPaymentRows draws amounts below each other, from where the values of the
// pairs below them begin.
func (c *composition) drawPaymentRows(rows []fact, p pen) {
	var widest length
	for _, row := range rows {
		widest = max(widest, c.on.width(p, row.value))
	}
	amounts := column{x: c.on.paper.side + pairLabelWidth, width: widest, align: finish}
	c.on.begin("Table")
	defer c.on.done()
	for _, row := range rows {
		c.need(c.on.lead(p) + point)
		c.on.within("TR", func() {
			name := p
			name.size = c.on.fitted(p, row.label, pairLabelWidth-3*millimetre, 4*point) // the words of a code are longer than it
			c.on.within("TH", func() {
				c.on.text(name, c.on.paper.side, c.y+c.on.base(p), c.on.cut(name, row.label, pairLabelWidth-3*millimetre))
			}).heads(scopeRow)
			c.on.within("TD", func() { c.on.textIn(p, &amounts, c.y+c.on.base(p), row.value) })
		})
		c.y += c.on.lead(p) + point
	}
}

// paymentRows are the ways of paying with their amounts.
func (d *content) paymentRows() []fact {
	var out []fact
	for _, p := range d.v.Transaction.Payments {
		out = append(out, fact{words.Join(" · ", d.words.Payment(p.Type), d.spoken(p.Code)), d.words.Money(p.Amount, d.currency)})
	}
	return out
}

// paymentFacts are the account, what to write with a payment, until when, and on
// which terms. The account is the payment's own, else what the data beside the
// document says, else that of the company. Nobody pays a credit.
func (d *content) paymentFacts() []fact {
	t, advice := &d.v.Transaction, &d.v.Imprint.Advice
	var out []fact
	add := func(label, value string) {
		f := fact{label, typeset.Clean(value)}
		if f.value != "" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	owed := !d.isPaid() && !d.credits() && d.v.Totals.Payable() > 0
	if account := d.account(); owed && account.Account != "" {
		add(accountLabel(account.Account), grouped(account.Account))
		add("BIC", account.BIC)
		add(d.words.Payee, account.Holder)
		add(d.words.PaymentReference, account.Reference)
	}
	for _, p := range t.Payments {
		if p.IBAN != "" {
			add(accountLabel(p.IBAN), grouped(p.IBAN))
		}
		add(d.words.PaymentReference, p.Reference)
		if p.Debited() {
			add(d.words.Mandate, words.Join(" · ", p.Mandate.Reference, p.Mandate.CreditorID))
		}
	}
	if owed {
		add(d.words.DueDate, d.due())
	}
	if d.credits() {
		return out
	}
	for i, line := range typeset.CleanLines(cmp.Or(t.PaymentTerms, advice.Terms)) {
		label := d.words.Terms
		if i > 0 {
			label = ""
		}
		add(label, line)
	}
	return out
}

// account is where the money goes that nobody has paid yet.
func (d *content) account() country.Advice {
	advice, settings := d.v.Imprint.Advice, d.v.Supplier.Settings
	if payee := d.v.Transaction.Payee; payee != nil {
		advice.Holder = payee.Name
		if payee.IBAN != "" {
			advice.Account, advice.BIC = payee.IBAN, ""
		}
	}
	for _, p := range d.v.Transaction.Payments {
		if p.Debited() {
			return country.Advice{} // nobody transfers what is collected
		}
		advice.Reference = cmp.Or(p.Reference, advice.Reference)
		if p.IBAN == "" {
			continue
		}
		if !sameAccount(p.IBAN, advice.Account) {
			advice.BIC = "" // it is that of another bank
		}
		advice.Account = p.IBAN
		break
	}
	if advice.Account == "" && len(d.v.Transaction.Payments) > 0 {
		advice.Account, advice.BIC = settings.Text("iban"), settings.Text("bic")
	}
	return advice
}

func sameAccount(a, b string) bool { return strings.EqualFold(grouped(a), grouped(b)) }

// accountLabel: an account of another form than ISO 13616 is shown without its name.
func accountLabel(account string) string {
	if len(account) > 2 && account[0] >= 'A' && account[1] >= 'A' {
		return "IBAN"
	}
	return "№"
}

// grouped writes an account number in groups of four, as banks print it.
func grouped(iban string) string {
	iban = strings.Join(strings.Fields(typeset.Clean(iban)), "")
	var out strings.Builder
	for i, r := range iban {
		if i > 0 && i%4 == 0 {
			out.WriteByte(' ')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// pairLabelWidth is that of names beside their values.
const pairLabelWidth = 44 * millimetre

// pairLines are names beside their values, in two columns that keep step.
func (c *composition) pairLines(all []fact, value pen) (labels, values block) {
	label := value
	label.color = c.color.muted
	width := c.on.paper.room() - pairLabelWidth - c.aside
	for _, f := range all {
		var left, right block
		c.on.within("TR", func() {
			c.on.within("TH", func() { left.add(&c.on, label, f.label, pairLabelWidth-3*millimetre) }).heads(scopeRow)
			c.on.within("TD", func() { right.add(&c.on, value, f.value, width) })
		})
		level([]column{{lines: left}, {lines: right}})
		for i := range max(len(left), len(right)) {
			l, r := lineAt(left, i, value), lineAt(right, i, value)
			l.lead = max(l.lead, r.lead)
			r.lead = l.lead
			labels, values = append(labels, l), append(values, r)
		}
	}
	return labels, values
}

// lineAt is a line of a block, an empty one where there is none.
func lineAt(b block, i int, p pen) blockLine {
	if i < len(b) {
		return b[i]
	}
	return blockLine{pen: p}
}

// drawPairs draws names beside their values.
func (c *composition) drawPairs(all []fact, value pen) {
	if len(all) == 0 {
		return
	}
	c.on.begin("Table")
	defer c.on.done()
	labels, values := c.pairLines(all, value)
	c.drawColumns(column{x: c.on.paper.side, width: pairLabelWidth, lines: labels},
		column{x: c.on.paper.side + pairLabelWidth, width: c.on.paper.room() - pairLabelWidth - c.aside, lines: values})
}

// drawTail draws what closes a document: the authority's ids, what the law
// wants said, our own number. It stays together where a page can hold it, so
// that no last page carries a line of a seal alone.
func (c *composition) drawTail() {
	height := c.tailHeight()
	if spare := c.y + height - c.end; spare > 0 && spare <= tailSlack+c.on.space(sectionGap)/2 {
		c.end += tailSlack // a line or two may come closer to the foot, and to what stands above
		c.y -= max(0, spare-tailSlack)
	} else if spare > 0 && !c.fresh() && height <= c.contentEnd()-c.on.paper.top-15*millimetre {
		c.turnPage()
	}
	if ids := c.doc.authorityFacts(); len(ids) > 0 {
		c.heading(c.doc.words.Authority)
		p := c.color.bodyPen()
		p.size = 8 * point
		c.drawPairs(ids, p)
		c.y += c.on.space(sectionGap)
	}
	p := c.color.smallPen()
	for _, paragraph := range c.closing() {
		c.on.begin("P")
		if c.on.tag != nil && paragraph.lang != "" && paragraph.lang != c.doc.words.Tag {
			c.on.tag.extra = "/Lang" + pdfText(paragraph.lang)
		}
		for _, line := range c.on.wrap(p, paragraph.text, c.on.paper.room()) {
			lead := c.on.leadOf(p, line)
			c.need(lead)
			c.on.text(p, c.on.paper.side, c.y+c.on.base(p), line)
			c.y += lead
		}
		c.on.done()
		c.y += paragraph.after
	}
}

// tailSlack is how far the last lines may reach into the white space above the foot.
const tailSlack = 3 * millimetre

// tailHeight measures the tail without drawing it.
func (c *composition) tailHeight() length {
	tag := c.on.tag
	c.on.tag = nil // nothing that is measured is read
	defer func() { c.on.tag = tag }()
	var height length
	if ids := c.doc.authorityFacts(); len(ids) > 0 {
		p := c.color.bodyPen()
		p.size = 8 * point
		labels, _ := c.pairLines(ids, p)
		height += c.on.lead(c.color.labelPen()) + 2*point + labels.height() + c.on.space(sectionGap)
	}
	p := c.color.smallPen()
	for _, paragraph := range c.closing() {
		height += length(len(c.on.wrap(p, paragraph.text, c.on.paper.room())))*c.on.lead(p) + paragraph.after
	}
	return height
}

func (d *content) authorityFacts() []fact {
	var out []fact
	for _, id := range d.v.Imprint.Identifiers {
		label := typeset.Clean(id.Label)
		if label == "" {
			label = d.words.AuthorityID
		}
		if value := typeset.Clean(id.Value); value != "" {
			out = append(out, fact{label, value})
		}
	}
	return out
}

// paragraph of the closing.
type closingParagraph struct {
	text  string
	lang  string // "": the document's
	after length
}

// closing is what stands in small letters at the end.
func (c *composition) closing() []closingParagraph {
	var out []closingParagraph
	for _, text := range c.doc.v.Imprint.Texts {
		for _, line := range typeset.CleanLines(text) {
			out = append(out, closingParagraph{text: line, lang: strings.ToLower(c.doc.v.Imprint.Language)})
		}
		if len(out) > 0 {
			out[len(out)-1].after = 1500
		}
	}
	if number := typeset.Clean(c.doc.v.UniqueNumber); number != "" && number != typeset.Clean(c.doc.v.Transaction.Number) {
		out = append(out, closingParagraph{text: words.Join(" ", c.doc.words.UniqueNumber, number)})
	}
	if len(c.on.missing) > 0 {
		names := make([]string, len(c.on.missing))
		for i, script := range c.on.missing {
			names[i] = words.ScriptName(c.doc.words.Tag, script)
		}
		out = append(out, closingParagraph{text: fmt.Sprintf(c.doc.words.Transliterated, strings.Join(names, ", "))})
	}
	return out
}
