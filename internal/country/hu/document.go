package hu

import (
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// money is an amount in the invoice's currency and in fillér.
type money struct{ own, huf int64 }

func (m money) plus(o money) money { return money{m.own + o.own, m.huf + o.huf} }

type line struct {
	*sale.Line
	rate     rate
	net, vat money
}

// group is the sum of the lines of one rate.
type group struct {
	rate     rate
	net, vat money
}

// document is one invoice on its way to InvoiceData.
type document struct {
	*sale.Document
	supplier taxNumber
	buyer    buyer
	lines    []line
	groups   []group
	net, vat money
	flaws    []fault.Fault // what cannot be written after all
}

// reading is how drafts are resolved here.
func reading(f country.Facts) *sale.Rules {
	return &sale.Rules{
		Home: home, Money: ownMoney, Zone: sale.Zone(f.TimeZone),
		Typed:  func(in country.Case) []transaction.Item { return classify(f, in) },
		Number: func(number string) string { return words(number, navwire.NumberMax) },
	}
}

// compose gathers what the document says. The transaction has passed its checks.
func compose(in *country.Draft, by *sale.Rules) *document {
	d := &document{Document: by.Of(in)}
	d.buyer = identify(d.Customer)
	d.supplier, _ = readNumber(in.Supplier.TaxNumber)
	if who := d.supplier.payer; who != "" && who == d.buyer.home.payer {
		d.flaws = append(d.flaws, fault.At("customer.tax_information.tax_number", fault.ValidationMatchInvalid,
			"is the supplier's own: seller and buyer are two taxable persons (SUPPLIER_CUSTOMER_MATCH_TAXPAYER)"))
	}
	s := supply{buyer: d.buyer, customer: d.Customer, day: d.Date, exempt: d.Setting(settingExemption, navwire.TAM)}
	if d.supplier.kind == kindExempt {
		s.exempt = navwire.AAM // the company itself is exempt
	}
	for i := range d.Lines {
		d.add(i, s)
	}
	return d
}

func (d *document) add(i int, s supply) {
	l := line{Line: &d.Lines[i], net: d.money(d.Lines[i].Net), vat: d.money(d.Lines[i].Tax)}
	if l.At >= 0 {
		var flaw string
		tax := l.Item.Taxes[l.At]
		s.services = l.Services
		if l.rate, flaw = rateOf(tax, s); flaw != "" {
			d.flaws = append(d.flaws, fault.At(sale.TaxPath(i, l.At, "type"), fault.ValidationMatchInvalid, "%s: %s", tax.Type, flaw))
		}
	}
	d.lines = append(d.lines, l)
	d.net, d.vat = d.net.plus(l.net), d.vat.plus(l.vat)
	for g := range d.groups {
		if at := &d.groups[g]; at.rate == l.rate {
			at.net, at.vat = at.net.plus(l.net), at.vat.plus(l.vat)
			return
		}
	}
	d.groups = append(d.groups, group{l.rate, l.net, l.vat})
}

// money converts an amount of the invoice's currency to fillér.
func (d *document) money(minor int64) money {
	if !d.Foreign() || d.ExchangeRate == nil {
		return money{minor, minor}
	}
	huf, ok := amount.Scaled(minor, hufDecimals-d.Decimals, *d.ExchangeRate)
	if !ok {
		d.flaws = append(d.flaws, fault.At("exchange_rate", fault.FieldNotValid, "makes amounts in forints that have no room"))
		huf = 0
	}
	return money{minor, huf}
}

const hufDecimals = 2

// operation is what NAV is to do.
func (d *document) operation() string {
	switch d.Kind {
	case transaction.Credit:
		return navwire.Storno
	case transaction.Adjustment:
		return navwire.Modify
	}
	return navwire.Create
}

// delivered is the day of the supply; a correction has the original's.
func (d *document) delivered() string {
	if d.DeliveryDate != "" {
		return d.DeliveryDate
	}
	if d.Correction() && len(d.Originals) > 0 {
		switch was := &d.Originals[0].Transaction; {
		case was.DeliveryDate != "":
			return was.DeliveryDate
		case !was.Date.IsZero():
			return d.Day(was.Date)
		}
	}
	return d.Day(d.Date)
}

// backfilledFrom is where the lines of corrections of an original begin that was
// reported elsewhere, by however many lines.
const backfilledFrom = 10_000

// firstLine is the number in the chain that a correction's first line gets: lines
// go on behind those of the original and of every earlier correction.
func (d *document) firstLine() int {
	o := d.Draft.Original
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
	w.Leaves("invoiceNumber", d.Number(), "invoiceIssueDate", d.Day(d.Date), "completenessIndicator", "false")
	w.Start("invoiceMain")
	w.Start("invoice")
	d.writeReference(w)
	w.Start("invoiceHead")
	d.writeSupplier(w)
	d.buyer.write(w, d.Customer)
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

// writeReference names the original. Without a master NAV never got it: it was
// issued elsewhere and nobody says under which transaction it was reported.
func (d *document) writeReference(w *xmltree.Writer) {
	if !d.Correction() || len(d.Originals) == 0 {
		return
	}
	o := &d.Originals[0]
	w.Group("invoiceReference", "originalInvoiceNumber", o.Number,
		"modifyWithoutMaster", strconv.FormatBool(o.Backfilled && o.AuthorityID1 == ""), "modificationIndex",
		strconv.Itoa(len(o.Corrections)+1))
}

func (d *document) writeSupplier(w *xmltree.Writer) {
	s := &d.Draft.Supplier
	w.Start("supplierInfo")
	d.supplier.write(w, "supplierTaxNumber")
	if member, ok := readNumber(s.Settings.Text(settingGroupMember)); ok && d.supplier.kind == kindGroup {
		member.write(w, "groupMemberTaxNumber")
	}
	if d.buyer.union != "" {
		w.Leaf("communityVatNumber", home+d.supplier.payer)
	}
	w.Leaf("supplierName", words(s.LegalName, navwire.NameMax))
	writeAddress(w, "supplierAddress", s.Address)
	w.Maybe("supplierBankAccountNumber", s.Settings.Text(settingBankAccount))
	w.Maybe("individualExemption", yes(d.supplier.kind == kindExempt))
	w.End()
}

// yes is what a flag says that is left out where it does not hold.
func yes(holds bool) string {
	if holds {
		return "true"
	}
	return ""
}

func (d *document) writeDetail(w *xmltree.Writer) {
	rate := "1"
	if d.Foreign() && d.ExchangeRate != nil {
		rate = d.ExchangeRate.Rescale(min(d.ExchangeRate.Exp(), 6)).MinimalString()
	}
	var span transaction.Span
	if d.Period != nil {
		span = *d.Period
	}
	w.Start("invoiceDetail")
	w.Leaves("invoiceCategory", "NORMAL", "invoiceDeliveryDate", d.delivered(), "?invoiceDeliveryPeriodStart", span.From,
		"?invoiceDeliveryPeriodEnd", span.To, "currencyCode", strings.ToUpper(d.CurrencyCode), "exchangeRate", rate,
		"?selfBillingIndicator", yes(d.SelfBilled()), "?paymentMethod", paymentMethod(d.Payments), "?paymentDate", d.DueDate,
		"?cashAccountingIndicator", yes(d.Set(settingCash)), "invoiceAppearance", d.Setting(settingAppearance, "ELECTRONIC"))
	d.writeReferences(w)
	w.End()
}

func (d *document) writeReferences(w *xmltree.Writer) {
	r := d.References
	names, texts := [3]string{"order", "contract", "project"}, [3]string{r.Order, r.Contract, r.Project}
	open := false
	for i, text := range texts {
		if text = words(text, navwire.OrderMax); text == "" {
			continue
		}
		if !open {
			w.Start("conventionalInvoiceInfo")
			open = true
		}
		w.Group(names[i]+"Numbers", names[i]+"Number", text)
	}
	if open {
		w.End()
	}
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
		d.pair(w, "vatRateGrossData", "vatRateGrossAmount", g.net.plus(g.vat))
		w.End()
	}
	w.Leaves(d.amounts("invoiceNetAmount", d.net)...)
	w.Leaves(d.amounts("invoiceVatAmount", d.vat)...)
	w.End()
	d.pair(w, "summaryGrossData", "invoiceGrossAmount", d.net.plus(d.vat))
	w.End()
}

// amounts are an amount twice: in the invoice's currency and in forints.
func (d *document) amounts(name string, m money) []string {
	return []string{name, d.own(m.own), name + "HUF", amount.Text(m.huf, hufDecimals)}
}

func (d *document) pair(w *xmltree.Writer, outer, name string, m money) {
	w.Group(outer, d.amounts(name, m)...)
}

// own writes an amount of the invoice's currency: NAV takes two decimals, which
// is fewer than some currencies have.
func (d *document) own(minor int64) string {
	if d.Decimals <= hufDecimals {
		return amount.Text(minor, d.Decimals)
	}
	shorter, _ := amount.Scaled(minor, hufDecimals-d.Decimals, num.MakeAmount(1, 0))
	return amount.Text(shorter, hufDecimals)
}
