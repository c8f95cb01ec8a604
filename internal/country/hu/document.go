package hu

import (
	"fmt"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// money is an amount in the invoice's currency and in fillér.
type money struct{ own, huf int64 }

func (m *money) add(o money) { m.own, m.huf = m.own+o.own, m.huf+o.huf }

type line struct {
	item     *transaction.Item
	rate     rate
	net, vat money
	discount int64 // without tax
	services bool
}

// group is the sum of the lines of one rate.
type group struct {
	rate     rate
	net, vat money
}

// document is one invoice on its way to InvoiceData.
type document struct {
	in       *country.Draft
	t        *transaction.Transaction
	supplier taxNumber
	buyer    buyer
	zone     *time.Location
	decimals int
	sign     int64 // -1 where a credit turns the original's amounts around
	lines    []line
	groups   []group
	net, vat money
	flaws    []fault.Fault // what cannot be written after all
}

// compose gathers what the document says. The transaction has passed its checks.
func compose(in *country.Draft, f country.Facts) *document {
	t := &in.Transaction
	if t.Kind != transaction.Invoice && t.Customer == nil && in.Original != nil {
		corrected := *t // a correction that names no buyer has the original's
		corrected.Customer = in.Original.Transaction.Customer
		t = &corrected
	}
	d := &document{in: in, t: t, buyer: identify(t.Customer), zone: in.Location, sign: 1}
	d.supplier, _ = readNumber(in.Supplier.TaxNumber)
	if d.zone == nil {
		d.zone = budapest()
	}
	if t.Kind == transaction.Credit {
		d.sign = -1 // a credit comes with the original's own amounts
	}
	d.decimals, _ = transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode))
	items := classify(f, country.Case{Transaction: t, Totals: in.Totals, Now: in.Now})
	s := supply{buyer: d.buyer, customer: t.Customer, day: t.Date, exempt: d.exemption()}
	d.lines = make([]line, len(items))
	for i := range items {
		s.services = country.IsServices(items, i)
		d.add(i, &items[i], s)
	}
	return d
}

// exemption is why the company's exempt sales are: the company itself where its
// tax number says so.
func (d *document) exemption() string {
	if d.supplier.kind == kindExempt {
		return navwire.AAM
	}
	if chosen := d.in.Supplier.Settings.Text(settingExemption); chosen != "" {
		return chosen
	}
	return navwire.TAM
}

func (d *document) add(i int, item *transaction.Item, s supply) {
	amounts := d.in.Totals.Lines[i]
	l := line{item: item, discount: d.sign * amounts.NetDiscount, services: s.services}
	l.net = d.money(d.sign * amounts.Net)
	l.vat = d.money(d.sign * (amounts.Gross - amounts.Net))
	if at := item.OnlyTax(); at >= 0 {
		var flaw string
		if l.rate, flaw = rateOf(item.Taxes[at], s); flaw != "" {
			d.flaws = append(d.flaws, fault.At(fmt.Sprintf("items.%d.tax_breakdowns.%d.type", i, at), fault.ValidationMatchInvalid, "%s: %s", item.Taxes[at].Type, flaw))
		}
	}
	d.lines[i] = l
	d.net.add(l.net)
	d.vat.add(l.vat)
	for g := range d.groups {
		if d.groups[g].rate == l.rate {
			d.groups[g].net.add(l.net)
			d.groups[g].vat.add(l.vat)
			return
		}
	}
	d.groups = append(d.groups, group{l.rate, l.net, l.vat})
}

// money converts an amount of the invoice's currency to fillér.
func (d *document) money(minor int64) money {
	if !d.foreign() || d.t.ExchangeRate == nil {
		return money{minor, minor}
	}
	huf, ok := scaled(minor, hufDecimals-d.decimals, *d.t.ExchangeRate)
	if !ok {
		d.flaws = append(d.flaws, fault.At("exchange_rate", fault.FieldNotValid, "makes amounts in forints that have no room"))
	}
	return money{minor, huf}
}

const hufDecimals = 2

func (d *document) foreign() bool { return !strings.EqualFold(d.t.CurrencyCode, ownMoney) }

func (d *document) correction() bool { return d.t.Kind != transaction.Invoice }

// operation is what NAV is to do.
func (d *document) operation() string {
	switch d.t.Kind {
	case transaction.Credit:
		return navwire.Storno
	case transaction.Adjustment:
		return navwire.Modify
	}
	return navwire.Create
}

func (d *document) number() string { return documentNumber(d.t, d.in.UniqueNumber) }

func documentNumber(t *transaction.Transaction, unique string) string {
	if number := words(t.Number, navwire.NumberMax); number != "" {
		return number
	}
	return words(unique, navwire.NumberMax)
}

// selfBilled reports whether the buyer issues the invoice itself.
func (d *document) selfBilled() bool {
	return d.t.Issuer != nil && d.t.Customer != nil && sameParty(d.t.Issuer.TaxNumber, d.t.Customer.TaxNumber)
}

func (d *document) cashAccounting() bool {
	chosen, _ := d.in.Supplier.Settings[settingCash].(bool)
	return chosen
}

func (d *document) issued() string { return d.t.Date.In(d.zone).Format(time.DateOnly) }

// delivered is the day of the supply; a correction has the original's.
func (d *document) delivered() string {
	if d.t.DeliveryDate != "" {
		return d.t.DeliveryDate
	}
	if o := d.in.Original; d.correction() && o != nil {
		if o.Transaction.DeliveryDate != "" {
			return o.Transaction.DeliveryDate
		}
		if !o.Transaction.Date.IsZero() {
			return o.Transaction.Date.In(d.zone).Format(time.DateOnly)
		}
	}
	return d.issued()
}

// backfilledFrom is where the lines of corrections of an original begin that was
// reported elsewhere, by however many lines.
const backfilledFrom = 10_000

// firstLine is the number in the chain that a correction's first line gets: lines
// go on behind those of the original and of every earlier correction.
func (d *document) firstLine() int {
	o := d.in.Original
	at := len(o.Transaction.Items)
	if o.Backfilled {
		at = max(at, backfilledFrom)
	}
	for _, earlier := range o.Corrections {
		at += len(earlier.Transaction.Items)
	}
	return at + 1
}

// write writes InvoiceData. The order of elements is the schema's.
func (d *document) write() []byte {
	w := xmltree.NewWriter(2048 + 1024*len(d.lines))
	w.Declare()
	w.Start("InvoiceData", "xmlns", navwire.SpaceData, "xmlns:base", navwire.SpaceBase)
	w.Leaf("invoiceNumber", d.number())
	w.Leaf("invoiceIssueDate", d.issued())
	w.Leaf("completenessIndicator", "false")
	w.Start("invoiceMain")
	w.Start("invoice")
	d.writeReference(w)
	w.Start("invoiceHead")
	d.writeSupplier(w)
	d.buyer.write(w, d.t.Customer)
	d.writeDetail(w)
	w.End()
	w.Start("invoiceLines")
	w.Leaf("mergedItemIndicator", "false")
	for i := range d.lines {
		d.writeLine(w, i)
	}
	w.End()
	d.writeSummary(w)
	w.End()
	w.End()
	w.End()
	return w.Bytes()
}

func (d *document) writeReference(w *xmltree.Writer) {
	o := d.in.Original
	if !d.correction() || o == nil {
		return
	}
	w.Start("invoiceReference")
	w.Leaf("originalInvoiceNumber", documentNumber(&o.Transaction, o.UniqueNumber))
	flag(w, "modifyWithoutMaster", d.masterless())
	w.Leaf("modificationIndex", itoa(len(o.Corrections)+1))
	w.End()
}

// masterless reports whether NAV never got the original: it was issued elsewhere
// and nobody says under which transaction it was reported.
func (d *document) masterless() bool {
	return d.in.Original.Backfilled && d.in.Original.AuthorityID1 == ""
}

func (d *document) writeSupplier(w *xmltree.Writer) {
	s := &d.in.Supplier
	w.Start("supplierInfo")
	d.supplier.write(w, "supplierTaxNumber")
	if member, ok := readNumber(s.Settings.Text(settingGroupMember)); ok && d.supplier.kind == kindGroup {
		member.write(w, "groupMemberTaxNumber")
	}
	if d.buyer.union != "" {
		w.Leaf("communityVatNumber", "HU"+d.supplier.payer)
	}
	w.Leaf("supplierName", words(s.LegalName, navwire.NameMax))
	writeAddress(w, "supplierAddress", s.Address)
	w.Maybe("supplierBankAccountNumber", s.Settings.Text(settingBankAccount))
	if d.supplier.kind == kindExempt {
		w.Leaf("individualExemption", "true")
	}
	w.End()
}

func (d *document) writeDetail(w *xmltree.Writer) {
	w.Start("invoiceDetail")
	w.Leaf("invoiceCategory", "NORMAL")
	w.Leaf("invoiceDeliveryDate", d.delivered())
	w.Leaf("currencyCode", strings.ToUpper(d.t.CurrencyCode))
	rate := "1"
	if d.foreign() && d.t.ExchangeRate != nil {
		rate = d.t.ExchangeRate.Rescale(min(d.t.ExchangeRate.Exp(), 6)).MinimalString()
	}
	w.Leaf("exchangeRate", rate)
	if d.selfBilled() {
		flag(w, "selfBillingIndicator", true)
	}
	w.Maybe("paymentMethod", paymentMethod(d.t.Payments))
	w.Maybe("paymentDate", d.t.DueDate)
	if d.cashAccounting() {
		flag(w, "cashAccountingIndicator", true)
	}
	appearance := d.in.Supplier.Settings.Text(settingAppearance)
	if appearance == "" {
		appearance = "ELECTRONIC"
	}
	w.Leaf("invoiceAppearance", appearance)
	d.writeReferences(w)
	w.End()
}

func (d *document) writeReferences(w *xmltree.Writer) {
	r := d.t.References
	order, contract, project := words(r.Order, navwire.OrderMax), words(r.Contract, navwire.OrderMax), words(r.Project, navwire.OrderMax)
	if order+contract+project == "" {
		return
	}
	list := func(outer, inner, text string) {
		if text != "" {
			w.Start(outer)
			w.Leaf(inner, text)
			w.End()
		}
	}
	w.Start("conventionalInvoiceInfo")
	list("orderNumbers", "orderNumber", order)
	list("contractNumbers", "contractNumber", contract)
	list("projectNumbers", "projectNumber", project)
	w.End()
}

// paymentMethod is how the largest part is paid; "" where nobody says.
func paymentMethod(payments []transaction.Payment) string {
	best := -1
	for i := range payments {
		if best < 0 || payments[i].Amount > payments[best].Amount {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	switch payments[best].Type {
	case "TRANSFER", "CASH", "CARD":
		return payments[best].Type
	case "CHECK":
		return "VOUCHER"
	}
	return "OTHER"
}

func (d *document) writeSummary(w *xmltree.Writer) {
	w.Start("invoiceSummary")
	w.Start("summaryNormal")
	for _, g := range d.groups {
		w.Start("summaryByVatRate")
		g.rate.write(w, "vatRate")
		d.pair(w, "vatRateNetData", "vatRateNetAmount", g.net)
		d.pair(w, "vatRateVatData", "vatRateVatAmount", g.vat)
		d.pair(w, "vatRateGrossData", "vatRateGrossAmount", money{g.net.own + g.vat.own, g.net.huf + g.vat.huf})
		w.End()
	}
	d.amounts(w, "invoiceNetAmount", d.net)
	d.amounts(w, "invoiceVatAmount", d.vat)
	w.End()
	d.pair(w, "summaryGrossData", "invoiceGrossAmount", money{d.net.own + d.vat.own, d.net.huf + d.vat.huf})
	w.End()
}

// amounts writes an amount twice: in the invoice's currency and in forints.
func (d *document) amounts(w *xmltree.Writer, name string, m money) {
	w.Leaf(name, d.own(m.own))
	w.Leaf(name+"HUF", decimal(m.huf, hufDecimals))
}

func (d *document) pair(w *xmltree.Writer, outer, name string, m money) {
	w.Start(outer)
	d.amounts(w, name, m)
	w.End()
}

// own writes an amount of the invoice's currency: NAV takes two decimals, which
// is fewer than some currencies have.
func (d *document) own(minor int64) string {
	if d.decimals <= hufDecimals {
		return decimal(minor, d.decimals)
	}
	shorter, _ := scaled(minor, hufDecimals-d.decimals, num.MakeAmount(1, 0))
	return decimal(shorter, hufDecimals)
}
