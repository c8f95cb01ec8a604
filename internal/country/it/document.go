package it

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

// invoice is a document as FatturaPA has it: the checks of SdI are made on it, at
// submit with our own paths, before a byte is written.
type invoice struct {
	*sale.Document
	format      string // FormatoTrasmissione, also @versione
	transmitter [2]string
	progressive string
	recipient   string
	pec         string

	seller, buyer party
	third         *party
	issuer        string // SoggettoEmittente: CC, TZ or nothing
	regime        string
	rea           *rea
	reference     string // RiferimentoAmministrazione

	kind     docKind
	date     string
	held     []withholding
	stamp    bool
	total    int64
	rounding int64
	texts    []string // Causale
	order    related
	contract related
	original related

	lines    []line
	groups   []group
	payments []payment

	bySum bool // a tax differs from the sum of its lines
	flaws []fault.Fault
}

type rea struct{ office, number, capital, shareholder, state string }

type withholding struct {
	kind, reason string
	rate         num.Amount
	amount       int64
}

type related struct{ id, date, project string }

type line struct {
	sale.Line
	text     string
	quantity num.Amount
	price    amount.Number
	discount *amount.Number // of one unit
	rate     num.Amount
	natura   string
	due      string
	held     bool
	intent   related // declaration of intent: protocol and day
	fund     fund    // it is a contribution, not a line
	span     transaction.Span
	contin   bool // services to a business of the Union: INVCONT
}

// group is DatiRiepilogo: lines of one rate, one Natura and one time of payment.
type group struct {
	rate     num.Amount
	natura   string
	due      string
	net, tax int64
}

type payment struct {
	method, iban, reference string
	amount                  int64
}

// reading is how drafts are resolved here.
func reading(f country.Facts) *sale.Rules {
	return &sale.Rules{
		Home: home, Money: ownMoney, Zone: rome(),
		Typed: func(in country.Case) []transaction.Item { return classify(f, in) },
		Sign:  func(in *country.Draft) int64 { _, sign := typed(in); return sign },
	}
}

// compose gathers what the document says. At submit the company is not known:
// what it decides is decided again when the document is made.
func compose(in *country.Draft, by *sale.Rules) *invoice {
	d := &invoice{Document: by.Of(in), format: sdiwire.Private}
	d.kind, _ = typed(in)
	d.date = d.Day(d.Date)
	d.parties()
	d.header()
	s := supply{buyer: d.buyer, day: d.Date, flat: d.flat(), bought: d.kind.side != selling}
	for i, l := range d.Lines {
		s.services = l.Services
		d.lines = append(d.lines, d.line(i, l, s))
	}
	d.viaSanMarino()
	d.settle()
	d.pay()
	return d
}

func (d *invoice) parties() {
	company, other := companyOf(&d.Draft.Supplier), identify(d.Customer)
	d.seller, d.buyer = company, other
	if other.flaw != "" {
		d.flaws = append(d.flaws, fault.At("customer."+other.flawAt, fault.FieldNotValid, "%s", other.flaw))
	}
	d.recipient, d.pec = recipient(d.Customer, other)
	switch d.kind.side {
	case buying:
		d.seller, d.buyer, d.issuer = other, company, "CC"
	case alone:
		d.seller, d.buyer = company, company
	}
	if d.kind.side != selling {
		d.recipient, d.pec = d.Setting(settingRecipient, sdiwire.NoAddress), ""
		return
	}
	if d.Issuer == nil {
		return
	}
	switch issuer := identify(d.Issuer); {
	case issuer.same(d.buyer):
		d.issuer = "CC"
	case !issuer.same(d.seller):
		d.third, d.issuer = &issuer, "TZ"
	}
}

// viaSanMarino sends what an operator of San Marino buys without Italian VAT to
// the tax office there, which refuses documents that name no operator (DM
// 21/6/2021; provvedimento AdE 211273/2021).
func (d *invoice) viaSanMarino() {
	if d.recipient == sdiwire.ForeignAddress && d.buyer.country == sanMarino && d.buyer.registered() &&
		slices.ContainsFunc(d.lines, func(l line) bool { return l.natura == "N3.3" || l.natura == "N2.1" }) {
		d.recipient = sdiwire.SanMarinoAddress
	}
}

func (d *invoice) header() {
	d.regime = d.Setting(settingRegime, regimeDefault)
	if office, number := d.Setting(settingREAOffice, ""), d.Setting(settingREANumber, ""); office != "" && number != "" {
		d.rea = &rea{office: strings.ToUpper(office), number: ascii(number, 20), capital: d.Setting(settingCapital, ""),
			shareholder: d.Setting(settingShareholder, ""), state: d.Setting(settingLiquidation, "LN")}
	}
	if d.kind.side == buying { // of a seller elsewhere nothing more is known
		d.rea, d.regime = nil, regimeAbroad(d.seller)
	}
	if len(d.Originals) > 0 && d.Correction() {
		o := &d.Originals[0]
		d.original.id = ascii(o.Number, sdiwire.NumberMax)
		if !o.Transaction.Date.IsZero() {
			d.original.date = d.Day(o.Transaction.Date)
		}
	}
	d.references()
}

// regimeAbroad is RegimeFiscale of a seller of whom none is known: RF18 is
// "other", which AdE wants for sellers abroad.
func regimeAbroad(seller party) string {
	if seller.country == home {
		return regimeDefault
	}
	return "RF18"
}

// references puts what the buyer wants to find where FatturaPA has a place of
// twenty characters; what is longer, and what has no place, is Causale.
func (d *invoice) references() {
	place := func(into *string, label, words string) {
		if short := ascii(words, sdiwire.NumberMax+1); len(short) <= sdiwire.NumberMax {
			*into = short
			return
		}
		d.say(label + ": " + words)
	}
	place(&d.reference, "Riferimento amministrazione", d.References.Buyer)
	place(&d.order.id, "Ordine", d.References.Order)
	place(&d.contract.id, "Contratto", d.References.Contract)
	switch project := latin(d.References.Project, 100); {
	case project == "":
	case d.order.id != "":
		d.order.project = project
	case d.contract.id != "":
		d.contract.project = project
	default:
		d.say("Commessa: " + project)
	}
	d.say(text.Note(d.Note))
	if d.PaymentTerms != "" {
		d.say("Condizioni di pagamento: " + d.PaymentTerms)
	}
	if d.Delivery != nil && d.Delivery.Name != "" {
		d.say("Consegna presso: " + d.Delivery.Name)
	}
	if d.DeliveryDate != "" && d.DeliveryDate != d.date {
		d.say("Data di effettuazione dell'operazione: " + d.DeliveryDate)
	}
}

const causaleMax = 200

func (d *invoice) say(text string) {
	d.texts = append(d.texts, pieces(latin(text, 1<<16), causaleMax)...)
}

func (d *invoice) line(i int, from sale.Line, s supply) line {
	item := from.Item
	l := line{Line: from, text: describe(item), quantity: item.Quantity}
	if span := cmp.Or(item.Period, d.Period); span != nil {
		l.span = *span
	}
	l.fund, _ = fundOf(item)
	if l.quantity.IsZero() {
		l.quantity = num.MakeAmount(1, 0)
	}
	l.price = amount.New(l.Net+l.NetDiscount, cents).Over(l.quantity, priceDecimals)
	if l.NetDiscount != 0 {
		off := amount.New(l.NetDiscount, cents).Over(l.quantity, priceDecimals)
		l.discount = &off
	}
	for j := range item.Taxes {
		if tax := &item.Taxes[j]; tax.Withheld() {
			l.held = true
			d.withhold(tax, d.Sign*d.Draft.Totals.Lines[i].Taxes[j])
		}
	}
	if l.At < 0 {
		return l
	}
	tax := item.Taxes[l.At]
	l.rate = tax.Rate
	if !tax.Rate.IsZero() {
		l.due = dueOf(tax.Code, d.Setting(settingDue, dueAtOnce))
		if tax.Mode == transaction.Added && l.NetDiscount == 0 {
			l.price = amount.New(d.Sign*item.UnitPrice, cents) // exact: what the client asks for one
		}
		return l
	}
	var flaw string
	if l.natura, flaw = s.natura(tax); flaw != "" {
		d.flaws = append(d.flaws, fault.At(sale.TaxPath(i, l.At, "type"), fault.ValidationMatchInvalid, "%s: %s", tax.Type, flaw))
	}
	l.contin = tax.Type == transaction.TaxReverse && l.natura == "N2.1"
	l.intent = intentOf(item)
	return l
}

func describe(item *transaction.Item) string {
	words := item.Name
	if item.Description != "" && item.Description != item.Name {
		words = strings.TrimPrefix(words+": "+item.Description, ": ")
	}
	return cmp.Or(latin(words, 1000), "-")
}

func dueOf(code, otherwise string) string {
	switch code = strings.ToUpper(code); code {
	case dueAtOnce, dueOnPayment, dueByBuyer:
		return code
	}
	return otherwise
}

// schemeIntent is the classification of a line that is sold upon a declaration of
// intent: its protocol, and after @ the day of its receipt.
const schemeIntent = "INTENTO"

func intentOf(item *transaction.Item) related {
	protocol, day, _ := strings.Cut(sale.Marked(item, schemeIntent), "@")
	return related{id: latin(protocol, 60), date: strings.TrimSpace(day)}
}

// settle sums lines by group and computes the tax of each group on its sum, as
// SdI wants it (00421). What that differs from total_amount is Arrotondamento.
func (d *invoice) settle() {
	byLine := map[int]int64{}
	for i := range d.lines {
		l := &d.lines[i]
		g := d.groupOf(l)
		d.groups[g].net += l.Net
		if l.At >= 0 {
			byLine[g] += d.Sign * d.Draft.Totals.Lines[i].Taxes[l.At]
		}
	}
	d.total = d.Sign * d.Draft.Totals.Gross
	d.rounding = d.total
	var stamped int64
	for g := range d.groups {
		at := &d.groups[g]
		at.tax = amount.Percent(at.net, at.rate)
		d.bySum = d.bySum || at.tax != byLine[g]
		d.rounding -= at.net + at.tax
		if n, known := naturaOf(at.natura); known && n.stamp {
			stamped += at.net
		}
	}
	d.stamp = d.kind.side == selling && d.Set(settingStamp) && stamped > stampFrom
}

// stampFrom is up to which sum without VAT no stamp duty is due, in cents.
const stampFrom = 7747

const stampDuty = "2.00"

func (d *invoice) groupOf(l *line) int {
	for g := range d.groups {
		if at := &d.groups[g]; at.rate.Compare(l.rate) == 0 && at.natura == l.natura && at.due == l.due {
			return g
		}
	}
	d.groups = append(d.groups, group{rate: l.rate, natura: l.natura, due: l.due})
	return len(d.groups) - 1
}

// splitTax is what the buyer pays to the treasury instead of the seller.
func (d *invoice) splitTax() (sum int64) {
	for _, g := range d.groups {
		if g.due == dueByBuyer {
			sum += g.tax
		}
	}
	return sum
}

// pay lists how the sum is paid. Of what the buyer splits the tax is not paid to
// the seller; how several payments share it, nobody says.
func (d *invoice) pay() {
	split, iban := d.splitTax(), taxid.Bare(d.Setting(settingIBAN, ""))
	if d.Payee != nil && d.Payee.IBAN != "" {
		iban = taxid.Bare(d.Payee.IBAN)
	}
	if d.kind.side != selling || d.Correction() {
		return
	}
	if len(d.Payments) == 0 {
		if d.DueDate != "" || iban != "" {
			d.payments = []payment{{method: "MP05", iban: iban, amount: d.Draft.Totals.Payable() - split}}
		}
		return
	}
	if split != 0 && len(d.Payments) > 1 {
		return
	}
	for _, p := range d.Payments {
		out := payment{method: methodOf(p), iban: taxid.Bare(p.IBAN), reference: ascii(p.Reference, 60), amount: p.Amount - split}
		switch {
		case p.Debited(): // the account is the one that is debited, which has no place here
			out.iban = ""
			d.say("Addebito diretto SEPA, mandato " + text.Join(", creditore ", p.Mandate.Reference, p.Mandate.CreditorID))
		case out.iban == "" && out.method == "MP05":
			out.iban = iban
		}
		d.payments = append(d.payments, out)
	}
}

// methodForm is ModalitaPagamento.
var methodForm = regexp.MustCompile(`^MP(0[1-9]|1[0-9]|2[0-3])$`)

func methodOf(p transaction.Payment) string {
	if code := strings.ToUpper(p.Code); methodForm.MatchString(code) {
		return code
	}
	if p.Debited() {
		return "MP19"
	}
	return cmp.Or(map[string]string{"CASH": "MP01", "CHECK": "MP02", "CARD": "MP08"}[p.Type], "MP05")
}
