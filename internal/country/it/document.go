package it

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

// invoice is a document as FatturaPA has it: the checks of SdI are made on it, at
// submit with our own paths, before a byte is written.
type invoice struct {
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
	sign     int64
	date     string
	number   string
	held     []withholding
	stamp    bool
	total    int64
	rounding int64
	texts    []string // Causale
	order    related
	contract related
	original related

	lines    []line
	items    []transaction.Item // what the lines are of, with types
	day      time.Time          // of the transaction
	groups   []group
	payments []payment
	due      string

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
	item     *transaction.Item
	text     string
	quantity num.Amount
	price    number
	discount *number // of one unit
	total    int64
	rate     num.Amount
	natura   string
	due      string
	held     bool
	intent   related // declaration of intent: protocol and day
	fund     fund    // it is a contribution, not a line
	contin   bool    // services to a business of the Union: INVCONT
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

// compose gathers what the document says. At submit the company is not known:
// what it decides is decided again when the document is made.
func compose(in *country.Draft, f country.Facts) *invoice {
	t := &in.Transaction
	if t.Kind != transaction.Invoice && t.Customer == nil && in.Original != nil {
		corrected := *t // a correction that names no buyer has the original's
		corrected.Customer = in.Original.Transaction.Customer
		t = &corrected
	}
	d := &invoice{format: sdiwire.Private, date: dayOf(in, t.Date), number: numberOf(t, in.UniqueNumber), due: t.DueDate}
	d.kind, d.sign = typed(in)
	d.parties(in, t)
	d.header(in, t)
	items := classify(f, country.Case{Transaction: t, Totals: in.Totals, Now: in.Now})
	s := supply{buyer: d.buyer, day: t.Date, flat: d.flat(), bought: d.kind.side != selling}
	d.items, d.day, d.lines = items, t.Date, make([]line, len(items))
	for i := range items {
		s.services = country.IsServices(items, i)
		d.lines[i] = d.line(in, i, &items[i], s)
	}
	d.viaSanMarino()
	d.settle(in, items)
	d.pay(in, t)
	return d
}

func dayOf(in *country.Draft, at time.Time) string {
	zone := in.Location
	if zone == nil {
		zone = rome()
	}
	return at.In(zone).Format(time.DateOnly)
}

// numberOf is Numero: what the client says, as it is. Its shape is checked at submit.
func numberOf(t *transaction.Transaction, unique string) string {
	if t.Number != "" {
		return t.Number
	}
	return unique
}

func (d *invoice) parties(in *country.Draft, t *transaction.Transaction) {
	company, other := companyOf(&in.Supplier), identify(t.Customer)
	d.seller, d.buyer = company, other
	if other.flaw != "" {
		d.flaws = append(d.flaws, fault.At("customer."+other.flawAt, fault.FieldNotValid, "%s", other.flaw))
	}
	d.recipient, d.pec = recipient(t.Customer, other)
	switch d.kind.side {
	case buying:
		d.seller, d.buyer, d.issuer = other, company, "CC"
	case alone:
		d.seller, d.buyer = company, company
	}
	if d.kind.side != selling {
		d.recipient, d.pec = in.Supplier.Settings.Text(settingRecipient), ""
		if d.recipient == "" {
			d.recipient = sdiwire.NoAddress
		}
		return
	}
	if t.Issuer == nil {
		return
	}
	switch issuer := identify(t.Issuer); {
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

func (d *invoice) header(in *country.Draft, t *transaction.Transaction) {
	s := in.Supplier.Settings
	d.regime = s.Text(settingRegime)
	if d.regime == "" {
		d.regime = regimeDefault
	}
	if office, number := s.Text(settingREAOffice), s.Text(settingREANumber); office != "" && number != "" {
		d.rea = &rea{office: strings.ToUpper(office), number: ascii(number, 20), capital: s.Text(settingCapital), shareholder: s.Text(settingShareholder), state: s.Text(settingLiquidation)}
		if d.rea.state == "" {
			d.rea.state = "LN"
		}
	}
	if d.kind.side == buying { // of a seller elsewhere nothing more is known
		d.rea, d.regime = nil, regimeAbroad(d.seller)
	}
	if o := in.Original; o != nil && t.Kind != transaction.Invoice {
		d.original = related{id: ascii(numberOf(&o.Transaction, o.UniqueNumber), sdiwire.NumberMax)}
		if !o.Transaction.Date.IsZero() {
			d.original.date = dayOf(in, o.Transaction.Date)
		}
	}
	d.references(t)
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
func (d *invoice) references(t *transaction.Transaction) {
	place := func(into *string, label, text string) {
		if short := ascii(text, sdiwire.NumberMax+1); len(short) <= sdiwire.NumberMax {
			*into = short
			return
		}
		d.say(label + ": " + text)
	}
	place(&d.reference, "Riferimento amministrazione", t.References.Buyer)
	place(&d.order.id, "Ordine", t.References.Order)
	place(&d.contract.id, "Contratto", t.References.Contract)
	switch project := latin(t.References.Project, 100); {
	case project == "":
	case d.order.id != "":
		d.order.project = project
	case d.contract.id != "":
		d.contract.project = project
	default:
		d.say("Commessa: " + project)
	}
	d.say(plain(t.Note))
	if t.PaymentTerms != "" {
		d.say("Condizioni di pagamento: " + t.PaymentTerms)
	}
	if t.DeliveryDate != "" && t.DeliveryDate != d.date {
		d.say("Data di effettuazione dell'operazione: " + t.DeliveryDate)
	}
}

const causaleMax = 200

func (d *invoice) say(text string) {
	d.texts = append(d.texts, pieces(latin(text, 1<<16), causaleMax)...)
}

func (d *invoice) line(in *country.Draft, i int, item *transaction.Item, s supply) line {
	amounts := in.Totals.Lines[i]
	l := line{item: item, text: describe(item), quantity: item.Quantity, total: d.sign * amounts.Net}
	l.fund, _ = fundOf(item)
	if l.quantity.IsZero() {
		l.quantity = num.MakeAmount(1, 0)
	}
	l.price = shared(d.sign*(amounts.Net+amounts.NetDiscount), l.quantity)
	if amounts.NetDiscount != 0 {
		off := shared(d.sign*amounts.NetDiscount, l.quantity)
		l.discount = &off
	}
	for j := range item.Taxes {
		if tax := &item.Taxes[j]; tax.Withheld() {
			l.held = true
			d.withhold(in, tax, d.sign*amounts.Taxes[j])
		}
	}
	j := item.OnlyTax()
	if j < 0 {
		return l
	}
	tax := item.Taxes[j]
	l.rate = tax.Rate
	if !tax.Rate.IsZero() {
		l.due = dueOf(tax.Code, in.Supplier.Settings.Text(settingDue))
		if tax.Mode == transaction.Added && amounts.NetDiscount == 0 {
			l.price = ofCents(d.sign * item.UnitPrice) // exact: what the client asks for one
		}
		return l
	}
	var flaw string
	if l.natura, flaw = s.natura(tax); flaw != "" {
		d.flaws = append(d.flaws, fault.At(fmt.Sprintf("items.%d.tax_breakdowns.%d.type", i, j), fault.ValidationMatchInvalid, "%s: %s", tax.Type, flaw))
	}
	l.contin = tax.Type == transaction.TaxReverse && l.natura == "N2.1"
	l.intent = intentOf(item)
	return l
}

func describe(item *transaction.Item) string {
	text := item.Name
	if item.Description != "" && item.Description != item.Name {
		text = strings.TrimPrefix(text+": "+item.Description, ": ")
	}
	if text = latin(text, 1000); text == "" {
		return "-"
	}
	return text
}

func dueOf(code, setting string) string {
	switch code = strings.ToUpper(code); {
	case code == dueAtOnce, code == dueOnPayment, code == dueByBuyer:
		return code
	case setting != "":
		return setting
	}
	return dueAtOnce
}

// schemeIntent is the classification of a line that is sold upon a declaration of
// intent: its protocol, and after @ the day of its receipt.
const schemeIntent = "INTENTO"

func intentOf(item *transaction.Item) related {
	protocol, day, _ := strings.Cut(named(item, schemeIntent), "@")
	return related{id: latin(protocol, 60), date: strings.TrimSpace(day)}
}

// settle sums lines by group and computes the tax of each group on its sum, as
// SdI wants it (00421). What that differs from total_amount is Arrotondamento.
func (d *invoice) settle(in *country.Draft, items []transaction.Item) {
	byLine := map[int]int64{}
	for i := range d.lines {
		g := d.groupOf(&d.lines[i])
		d.groups[g].net += d.lines[i].total
		if j := items[i].OnlyTax(); j >= 0 {
			byLine[g] += d.sign * in.Totals.Lines[i].Taxes[j]
		}
	}
	d.total = d.sign * in.Totals.Gross
	d.rounding = d.total
	var stamped int64
	for g := range d.groups {
		at := &d.groups[g]
		at.tax = taxOn(at.net, at.rate)
		d.bySum = d.bySum || at.tax != byLine[g]
		d.rounding -= at.net + at.tax
		if n, known := naturaOf(at.natura); known && n.stamp {
			stamped += at.net
		}
	}
	duty, set := in.Supplier.Settings[settingStamp].(bool)
	d.stamp = d.kind.side == selling && duty && set && stamped > stampFrom
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

// taxOn is a rate of a sum in cents, rounded half away from zero.
func taxOn(net int64, rate num.Amount) int64 {
	top := new(big.Int).Mul(big.NewInt(net), big.NewInt(rate.Value()))
	return halfUp(top, power(2+int(rate.Exp()))).Int64()
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
func (d *invoice) pay(in *country.Draft, t *transaction.Transaction) {
	split, iban := d.splitTax(), taxid.Bare(in.Supplier.Settings.Text(settingIBAN))
	if d.kind.side != selling || t.Kind != transaction.Invoice {
		return
	}
	if len(t.Payments) == 0 {
		if t.DueDate != "" || iban != "" {
			d.payments = []payment{{method: "MP05", iban: iban, amount: in.Totals.Payable() - split}}
		}
		return
	}
	if split != 0 && len(t.Payments) > 1 {
		return
	}
	for _, p := range t.Payments {
		out := payment{method: methodOf(p), iban: taxid.Bare(p.IBAN), reference: ascii(p.Reference, 60), amount: p.Amount - split}
		if out.iban == "" && out.method == "MP05" {
			out.iban = iban
		}
		d.payments = append(d.payments, out)
	}
}

func methodOf(p transaction.Payment) string {
	if code := strings.ToUpper(p.Code); len(code) == 4 && code >= "MP01" && code <= "MP23" {
		return code
	}
	switch p.Type {
	case "CASH":
		return "MP01"
	case "CHECK":
		return "MP02"
	case "CARD":
		return "MP08"
	}
	return "MP05"
}
