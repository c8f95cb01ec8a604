package pl

import (
	"html"
	"strconv"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

const (
	systemInfo = "Tributary"
	ownMoney   = "PLN"

	typeInvoice    = "VAT"
	typeCorrection = "KOR"
	typeSimplified = "UPR"
	typeAdvance    = "ZAL"
	typeSettlement = "ROZ"
)

// rowMax is the largest number of a line: TNaturalny has 14 digits.
const rowMax = 99_999_999_999_999

// splitPaymentOver is the total above which sales of annex 15 must carry the
// words "mechanizm podzielonej płatności", in grosz (art. 106e sec. 1 point 18a).
const splitPaymentOver = 15_000_00

// line is one FaWiersz with everything that the sums need.
type line struct {
	item   *transaction.Item
	column column
	mark   string // P_12

	foreignRate string // P_12_XII, of the one stop shop
	net         int64
	tax         int64
	gross       int64
	discount    int64 // in the terms of the price
	withheld    int64
	included    bool // the price contains the tax
	reversed    bool // the buyer owes the tax
	annexed     bool // goods or services of annex 15
}

// document is one invoice on its way to FA(3).
type document struct {
	in       *country.Draft
	t        *transaction.Transaction
	facts    *country.Facts
	nip      string
	buyer    identifier
	day      time.Time // P_1
	supplied string    // P_6, where it is another day; "" the same
	moved    bool      // P_1 is not the transaction's day
	zone     *time.Location
	decimals int
	sign     int64 // -1 where a credit turns the original's amounts around
	lines    []line
	net, tax [columnsCount]int64
	used     [columnsCount]bool
	grounds  []basis
	margin   scheme
	note     string // without markup
	reason   string

	annexed    bool // some line is of annex 15
	reversed   bool // the words "odwrotne obciążenie" belong on the invoice
	renumbered bool // a line's own number is too large for FA(3)
}

// compose gathers what the document says. The transaction has passed Check.
func compose(in *country.Draft, facts *country.Facts, plain *bluemonday.Policy) *document {
	t := &in.Transaction
	if t.Kind != transaction.Invoice && t.Customer == nil && in.Original != nil {
		corrected := *t // a correction that names no buyer has the original's
		corrected.Customer = in.Original.Transaction.Customer
		if len(t.ThirdParties) == 0 {
			corrected.ThirdParties = in.Original.Transaction.ThirdParties
		}
		t = &corrected
	}
	d := &document{in: in, t: t, facts: facts, nip: supplierNIP(&in.Supplier), buyer: identify(t.Customer), zone: in.Location, sign: 1}
	if d.zone == nil {
		d.zone = time.UTC
	}
	if t.Kind == transaction.Credit {
		d.sign = -1 // a credit comes with the original's own amounts
	}
	d.setDays()
	d.decimals, _ = transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode))
	d.note = plainText(plain, t.Note)
	d.reason = d.note
	if t.Kind == transaction.Credit && t.Reason != "" {
		d.reason = t.Reason
	}
	items := classify(*facts, country.Case{Transaction: t, Totals: in.Totals, Now: in.Now})
	d.lines = make([]line, len(items))
	for i := range items {
		d.add(i, &items[i], country.IsServices(items, i))
		d.renumbered = d.renumbered || items[i].Number > rowMax
	}
	d.annexes()
	return d
}

// plainText takes the markup out of a note. Blocks become lines.
func plainText(policy *bluemonday.Policy, note string) string {
	if note == "" {
		return ""
	}
	if strings.Contains(note, "<") {
		note = breaks.Replace(note)
		note = policy.Sanitize(note)
	}
	return paragraphs(html.UnescapeString(note), footerMax)
}

var breaks = strings.NewReplacer("<br>", "\n", "<br/>", "\n", "<br />", "\n", "</p>", "\n", "</li>", "\n")

func (d *document) add(i int, item *transaction.Item, services bool) {
	amounts := d.in.Totals.Lines[i]
	l := line{item: item, net: d.sign * amounts.Net, gross: d.sign * amounts.Gross, discount: d.sign * amounts.Discount, column: exempt, mark: exempt.mark(), included: true}
	l.tax = l.gross - l.net
	if at := item.OnlyTax(); at >= 0 {
		tax := item.Taxes[at]
		if c, mark, ok := lineColumn(tax, d, services); ok {
			l.column, l.mark = c, mark
		}
		l.included = tax.Mode != transaction.Added
		l.reversed = tax.Rate.IsZero() && (tax.Type == transaction.TaxReverse || l.column == outsideToEU)
		d.reversed = d.reversed || l.reversed
		switch l.column {
		case exempt:
			d.ground(strings.ToUpper(tax.Code))
		case onMargin:
			d.margin, _ = marginScheme(tax.Code)
			l.included = true
		case taxi:
			if l.included {
				l.tax = taxWithin(l.gross, tax.Rate)
				l.net = l.gross - l.tax
			}
		case oneStop:
			l.foreignRate = tax.Rate.MinimalString()
		}
	}
	for j := range item.Taxes {
		if item.Taxes[j].Withheld() && j < len(amounts.Taxes) {
			l.withheld += d.sign * amounts.Taxes[j]
		}
	}
	d.net[l.column] += l.net
	d.tax[l.column] += l.tax
	d.used[l.column] = true
	d.lines[i] = l
}

// ground notes the legal ground of an exempt line: its code's, else the company's.
func (d *document) ground(code string) {
	ground, _ := exemption(code)
	if ground.field == "" {
		ground = basis{"P_19A", token(d.in.Supplier.Settings.Text(settingExemption), textMax)}
	}
	if ground.text == "" {
		ground.text = exemptionDefault
	}
	for _, known := range d.grounds {
		if known == ground {
			return
		}
	}
	d.grounds = append(d.grounds, ground)
}

func (d *document) correction() bool { return d.t.Kind != transaction.Invoice && !follows(d.t) }

func (d *document) foreign() bool { return !strings.EqualFold(d.t.CurrencyCode, ownMoney) }

// selfBilled reports whether the buyer issues the invoice itself.
func (d *document) selfBilled() bool {
	return d.t.Issuer != nil && d.t.Customer != nil && sameParty(d.t.Issuer.TaxNumber, d.t.Customer.TaxNumber)
}

// splitPayment reports whether the invoice carries the words of the split
// payment mechanism: it has goods or services of annex 15, the buyer is a Polish
// business, tax is due, and the total is above the law's limit (art. 106e sec. 1
// point 18a and 108a of the VAT act). A correction of such an invoice keeps them.
func (d *document) splitPayment() bool {
	if d.buyer.nip == "" || !d.annexed {
		return false
	}
	taxed := false
	for _, tax := range d.tax {
		taxed = taxed || tax != 0
	}
	over := func(gross int64) bool {
		total, ok := d.inOwnMoney(gross)
		return ok && (total > splitPaymentOver || total < -splitPaymentOver)
	}
	corrected := false
	if (d.correction() || follows(d.t)) && d.in.Original != nil {
		for _, o := range originalsOf(d.in) {
			corrected = corrected || over(o.Totals.Gross)
		}
	}
	return taxed && (over(d.in.Totals.Gross) || corrected)
}

// annexes finds the lines of annex 15: those that say so themselves, and where
// none does all taxed lines of a company whose setting says that it sells them.
func (d *document) annexes() {
	chosen, _ := d.in.Supplier.Settings[settingSplitPayment].(bool)
	for i := range d.lines {
		l := &d.lines[i]
		l.annexed = classified15(l.item)
		d.annexed = d.annexed || l.annexed
	}
	if d.annexed || !chosen {
		return
	}
	d.annexed = true
	for i := range d.lines {
		_, tax := d.lines[i].column.fields()
		d.lines[i].annexed = tax != ""
	}
}

func (d *document) cashMethod() bool {
	chosen, _ := d.in.Supplier.Settings[settingCashMethod].(bool)
	return chosen
}

// inOwnMoney converts minor units of the invoice's currency to grosz, rounded
// half away from zero, as art. 106e sec. 11 asks for the tax.
func (d *document) inOwnMoney(minor int64) (int64, bool) {
	if !d.foreign() {
		return minor, true
	}
	if d.t.ExchangeRate == nil {
		return 0, false
	}
	return exchanged(minor, d.decimals, *d.t.ExchangeRate)
}

// ownTax is the tax in grosz: what P_14_xW add up to.
func (d *document) ownTax() int64 {
	var sum int64
	for c, tax := range d.tax {
		if column(c) == oneStop {
			continue // the tax of another country
		}
		if own, ok := d.inOwnMoney(tax); ok {
			sum += own
		}
	}
	return sum
}

// money writes minor units as a decimal with the currency's decimals.
func (d *document) money(minor int64) string { return decimal(minor, d.decimals) }

// decimal writes an integer with some of its digits behind the point.
func decimal(minor int64, decimals int) string {
	text := strconv.FormatInt(minor, 10)
	if decimals == 0 {
		return text
	}
	sign := ""
	if minor < 0 {
		sign, text = "-", text[1:]
	}
	if short := decimals + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	point := len(text) - decimals
	return sign + text[:point] + "." + text[point:]
}

// number is the document's own, as P_2 has it.
func (d *document) number() string { return documentNumber(d.t, d.in.UniqueNumber) }

func documentNumber(t *transaction.Transaction, unique string) string {
	if number := token(t.Number, textMax); number != "" {
		return number
	}
	return token(unique, textMax)
}

// kind is RodzajFaktury.
func (d *document) kind() string {
	switch {
	case settles(d.t):
		return typeSettlement
	case completes(d.t):
		return typeAdvance
	case d.correction():
		if was := filedType(d.in.Original); was == typeAdvance || was == typeSettlement {
			return typeCorrection + "_" + was
		}
		return typeCorrection
	case len(d.t.OrderItems) > 0:
		return typeAdvance
	}
	if d.says(codeSimplified) {
		return typeSimplified
	}
	return typeInvoice
}
