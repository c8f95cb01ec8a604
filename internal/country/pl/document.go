package pl

import (
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/pl/wire"
	"tributary/internal/country/sale"
	"tributary/internal/country/text"
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
	sale.Line
	column column
	mark   string // P_12

	foreignRate string // P_12_XII, of the one stop shop
	included    bool   // the price contains the tax
	reversed    bool   // the buyer owes the tax
	annexed     bool   // goods or services of annex 15
}

// document is one invoice on its way to FA(3).
type document struct {
	*sale.Document
	nip      string
	buyer    identifier
	form     string    // RodzajFaktury
	issued   time.Time // P_1
	supplied string    // P_6, where it is another day; "" the same
	moved    bool      // P_1 is not the transaction's day
	lines    []line
	charges  []sale.Line // what is no supply, see writeSettling
	net, tax [columnsCount]int64
	used     [columnsCount]bool
	grounds  []ground
	margin   ground
	note     string // without markup
	reason   string

	unsaid     string // the first exempt entry whose ground nobody named
	otherRate  string // of the original, where the correction was told another
	annexed    bool   // some line is of annex 15
	split      bool   // the words of the split payment mechanism belong on the invoice
	triangular bool   // the second of three sells goods on (art. 135)
	reversed   bool   // the words "odwrotne obciążenie" do
	renumbered bool   // a line's own number is too large for FA(3)
}

// reading is how drafts are resolved here.
func reading(f country.Facts) *sale.Rules {
	return &sale.Rules{
		Home: home, Money: ownMoney, Zone: sale.Zone(f.TimeZone),
		Typed:  func(in country.Case) []transaction.Item { return classify(f, in) },
		Number: func(number string) string { return token(number, textMax) },
	}
}

// compose gathers what the document says. The transaction has passed Check.
func compose(in *country.Draft, by *sale.Rules) *document {
	d := &document{Document: by.Of(in), nip: wire.NIP(&in.Supplier)}
	d.buyer = identify(d.Customer)
	d.takeRate()
	d.setDays()
	d.note = paragraphs(text.Note(d.Note), footerMax)
	d.reason = d.note
	if d.Kind == transaction.Credit && d.Reason != "" {
		d.reason = d.Reason
	}
	for _, l := range d.Lines {
		if noSupply(l.Item) {
			d.charges = append(d.charges, l)
			continue
		}
		d.add(d.lineOf(l))
		d.renumbered = d.renumbered || l.Item.Number > rowMax
	}
	d.form = d.kind()
	if d.form == typeAdvance && d.DeliveryDate == "" && len(d.Payments) == 1 && d.Payments[0].Date != "" {
		d.supplied = d.Payments[0].Date // P_6 of an advance is when the money came
	}
	d.annexes()
	d.split = d.splitPayment()
	return d
}

// lineOf decides where in FA(3) a line stands.
func (d *document) lineOf(from sale.Line) line {
	l := line{Line: from, column: exempt, mark: columns[exempt].mark, included: true}
	if l.At < 0 {
		return l
	}
	tax := l.Item.Taxes[l.At]
	if c, mark, ok := lineColumn(tax, d, l.Services); ok {
		l.column, l.mark = c, mark
	}
	l.included = tax.Mode != transaction.Added || l.column == onMargin
	l.reversed = tax.Rate.IsZero() && (tax.Type == transaction.TaxReverse || l.column == outsideToEU)
	switch {
	case l.column == taxi && l.included:
		l.Tax = amount.Within(l.Gross, tax.Rate)
		l.Net = l.Gross - l.Tax
	case l.column == oneStop:
		l.foreignRate = tax.Rate.MinimalString()
	}
	return l
}

func (d *document) add(l line) {
	if l.At >= 0 {
		switch g, _ := groundOf(l.Item.Taxes[l.At].Code); l.column {
		case exempt:
			d.ground(g)
			if g.field == "" && d.unsaid == "" && d.Setting(settingExemption, exemptionDefault) == exemptionDefault {
				d.unsaid = sale.TaxPath(len(d.lines)+len(d.charges), l.At, "code")
			}
		case onMargin:
			d.margin = g
		case outside:
			d.triangular = d.triangular || g.code == codeTriangular
		}
	}
	d.reversed = d.reversed || l.reversed
	d.net[l.column] += l.Net
	d.tax[l.column] += l.Tax
	d.used[l.column] = true
	d.lines = append(d.lines, l)
}

// ground notes the legal ground of an exempt line: its code's, else the company's.
func (d *document) ground(g ground) {
	if g.field == "" {
		g = ground{field: "P_19A", words: token(d.Setting(settingExemption, exemptionDefault), textMax)}
	}
	if g.words == "" {
		g.words = exemptionDefault
	}
	if !slices.ContainsFunc(d.grounds, func(known ground) bool { return known.field == g.field && known.words == g.words }) {
		d.grounds = append(d.grounds, g)
	}
}

func (d *document) correction() bool { return d.Correction() && !follows(d.Transaction) }

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
	if d.Correction() {
		for _, o := range d.Originals {
			corrected = corrected || over(o.Totals.Gross)
		}
	}
	return taxed && (over(d.Draft.Totals.Gross) || corrected)
}

// annexes finds the lines of annex 15: those that say so themselves, and where
// none does all taxed lines of a company whose setting says that it sells them.
func (d *document) annexes() {
	for i := range d.lines {
		l := &d.lines[i]
		l.annexed = marked(l.Item, codeAnnexed)
		d.annexed = d.annexed || l.annexed
	}
	if d.annexed || !d.Set(settingSplitPayment) {
		return
	}
	d.annexed = true
	for i := range d.lines {
		d.lines[i].annexed = columns[d.lines[i].column].tax != ""
	}
}

// inOwnMoney converts minor units of the invoice's currency to grosz, rounded
// half away from zero, as art. 106e sec. 11 asks for the tax.
func (d *document) inOwnMoney(minor int64) (int64, bool) {
	if !d.Foreign() {
		return minor, true
	}
	if d.ExchangeRate == nil {
		return 0, false
	}
	return amount.Scaled(minor, 2-d.Decimals, *d.ExchangeRate)
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
func (d *document) money(minor int64) string { return amount.Text(minor, d.Decimals) }

// kind is RodzajFaktury.
func (d *document) kind() string {
	switch {
	case settles(d.Transaction):
		return typeSettlement
	case completes(d.Transaction):
		return typeAdvance
	case d.correction():
		was := ""
		if len(d.Originals) > 0 { // of several the first decides: advances are corrected by themselves
			was = filedType(d.Originals[0])
		}
		if was == typeAdvance || was == typeSettlement {
			return typeCorrection + "_" + was
		}
		return typeCorrection
	case len(d.OrderItems) > 0:
		return typeAdvance
	}
	if d.says(codeSimplified) {
		return typeSimplified
	}
	return typeInvoice
}
