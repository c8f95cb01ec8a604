package pl

import (
	"fmt"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// codeAdvance marks the lines of a settlement that deduct advances.
const codeAdvance = "ZAL"

// settles reports whether a transaction is the invoice after the supply, of which
// advances are deducted (art. 106f sec. 3 of the VAT act). It refers to them as a
// correction does, and corrects nothing.
func settles(t *transaction.Transaction) bool {
	return t.Kind == transaction.Adjustment && t.Reason == typeSettlement
}

// completes reports whether a transaction is the last of several advances, which
// together are the whole price: it names those before it, and no invoice follows
// (art. 106f sec. 4 of the VAT act).
func completes(t *transaction.Transaction) bool {
	return t.Kind == transaction.Adjustment && t.Reason == typeAdvance
}

// follows reports whether a transaction refers to advances and corrects nothing.
func follows(t *transaction.Transaction) bool { return settles(t) || completes(t) }

// filedType is RodzajFaktury of an original, "" where it was not filed here.
func filedType(o *country.Original) string {
	if o == nil {
		return ""
	}
	doc, err := xmltree.Read(o.Report)
	if err != nil {
		return ""
	}
	return doc.Root.Value("Fa", "RodzajFaktury")
}

// deducted is what the lines of a settlement deduct, with its sign.
func deducted(t *transaction.Transaction, totals transaction.Totals) (sum int64) {
	for i := range t.Items {
		if marked(&t.Items[i], codeAdvance) && i < len(totals.Lines) {
			sum += totals.Lines[i].Gross
		}
	}
	return sum
}

func orderReads() []string {
	return []string{"order_items", "order_items.*.tax_breakdowns", "order_items.*.type", "order_items.*.unit_price", "order_items.*.quantity", "order_items.*.discount", "items.*.classification"}
}

// advances finds what an advance invoice or a settlement cannot be.
func (c *checker) advances(in country.Case) (found []fault.Fault) {
	t := in.Transaction
	if settles(t) {
		return settlement(t, in.Totals)
	}
	switch {
	case len(t.OrderItems) == 0 && completes(t):
		return []fault.Fault{fault.At("order_items", fault.FieldRequired, "must say what was ordered: the reason ZAL is of the last of several advances")}
	case len(t.OrderItems) == 0:
		return nil
	}
	order := *t
	order.Items = t.OrderItems
	totals, wrong := transaction.Calculate(order.Items)
	items := classify(c.facts, country.Case{Transaction: &order, Totals: totals, Now: in.Now})
	for i := range items {
		wrong = append(wrong, taxes(i, &items[i])...)
	}
	wrong = append(wrong, country.CheckRates(c.facts, country.Case{Transaction: &order, Totals: totals, Now: in.Now})...)
	for _, f := range wrong {
		if f.Type != fault.Warning {
			f.Field, f.Message = "order_"+f.Field, strings.ReplaceAll(f.Message, "items.", "order_items.")
			found = append(found, f)
		}
	}
	if t.Kind != transaction.Invoice && !completes(t) || len(found) > 0 {
		return found
	}
	return append(received(in, totals.Gross), parts(t, c.zone)...)
}

// received finds money that an advance cannot be: at a price without tax, or more
// than the order. The last of several is what the ones before have left of it.
func received(in country.Case, ordered int64) (found []fault.Fault) {
	t := in.Transaction
	for i := range t.Items {
		if j := t.Items[i].OnlyTax(); j >= 0 && t.Items[i].Taxes[j].Mode == transaction.Added {
			found = append(found, fault.At(fmt.Sprintf("items.%d.tax_breakdowns.%d.application_mode", i, j), fault.ValidationMatchInvalid,
				"must be %s on an advance: its tax is taken from what was received (art. 106f sec. 1 point 3 of the VAT act)", transaction.Included))
		}
	}
	if in.Totals.Gross <= 0 || in.Totals.Gross > ordered {
		found = append(found, fault.At("items", fault.ValidationMatchInvalid, "must add up to what was received for the order: more than 0, and not more than its %s", decimal(ordered, 2)))
	}
	var before int64
	for _, s := range t.Shares {
		before += s.Amount
	}
	if completes(t) && len(t.Shares) > 0 && before+in.Totals.Gross != ordered {
		found = append(found, fault.At("references", fault.ValidationMatchInvalid, "must be what the advances before came to: with this one they are the whole order, %d", ordered))
	}
	return found
}

// settlement finds lines that do not deduct what the settlement refers to.
func settlement(t *transaction.Transaction, totals transaction.Totals) (found []fault.Fault) {
	sum := deducted(t, totals)
	var shares int64
	for _, s := range t.Shares {
		shares += s.Amount
	}
	for i := range t.Items {
		if marked(&t.Items[i], codeAdvance) && i < len(totals.Lines) && totals.Lines[i].Gross >= 0 {
			found = append(found, fault.At(fmt.Sprintf("items.%d.unit_price", i), fault.FieldNotValid, "must be below 0: the line deducts an advance"))
		}
	}
	switch {
	case len(found) > 0:
	case sum == 0:
		found = append(found, fault.At("items", fault.FieldRequired, "must have lines classified {PL, ZAL} that deduct the advances, one for each rate"))
	case len(t.Shares) > 0 && shares != sum:
		found = append(found, fault.At("references", fault.ValidationMatchInvalid, "must add up to what the lines classified {PL, ZAL} deduct, %d", sum))
	case totals.Gross < 0:
		found = append(found, fault.At("items", fault.ValidationMatchInvalid, "must not come to less than 0 after the advances: correct the advance invoices instead"))
	}
	return found
}

// advances finds originals that are of another kind than the document wants, or do
// not come to the whole order with the last of them.
func advances(in *country.Draft) (found []fault.Fault) {
	var left int64
	for i, o := range originalsOf(in) {
		path := "reference_transaction_id"
		if len(in.Shares) > 0 {
			path = fmt.Sprintf("references.%d.transaction_id", i)
		}
		was := filedType(o)
		left += leftOf(o)
		switch {
		case follows(&in.Transaction) && was != typeAdvance && !o.Backfilled:
			found = append(found, fault.At(path, fault.ValidationMatchInvalid, "is no advance invoice (ZAL), to which the reasons ROZ and ZAL refer"))
		case completes(&in.Transaction) && len(in.Shares) > 0 && in.Shares[i].Amount != leftOf(o):
			found = append(found, fault.At(fmt.Sprintf("references.%d.amount", i), fault.ValidationMatchInvalid, "must be what that advance came to, %d", leftOf(o)))
		case !follows(&in.Transaction) && len(in.Shares) > 0 && (was == typeAdvance || was == typeSettlement):
			found = append(found, fault.At(path, fault.ValidationMatchInvalid, "is an advance invoice or a settlement, which is corrected by itself (KOR_ZAL, KOR_ROZ)"))
		}
	}
	if ordered, _ := transaction.Calculate(in.Transaction.OrderItems); len(found) == 0 && completes(&in.Transaction) && left+in.Totals.Gross != ordered.Gross {
		found = append(found, fault.At("items", fault.ValidationMatchInvalid, "and the advances before come to %s of %s: the last advance completes the order (art. 106f sec. 4 of the VAT act)",
			decimal(left+in.Totals.Gross, 2), decimal(ordered.Gross, 2)))
	}
	return found
}

// leftOf is what an advance invoice or a settlement comes to after its corrections.
func leftOf(o *country.Original) int64 {
	left := o.Totals.Gross
	for _, e := range o.Corrections {
		switch {
		case e.Cancelled || follows(&e.Transaction):
		case e.Transaction.Kind == transaction.Credit:
			left -= e.Totals.Gross
		default:
			left += e.Totals.Gross
		}
	}
	return left
}

// listed reports whether a line stands among those of the invoice: those of an
// advance are sums alone, and a settlement has the whole supply, without the
// lines that deduct.
func (d *document) listed(i int) bool {
	switch d.kind() {
	case typeAdvance, typeCorrection + "_" + typeAdvance:
		return false
	case typeSettlement, typeCorrection + "_" + typeSettlement:
		return !marked(d.lines[i].item, codeAdvance)
	}
	return true
}

// writeBefore writes what was paid, or left to pay, before a correction of an
// advance invoice or a settlement.
func (d *document) writeBefore(w *xmltree.Writer) {
	if d.kind() == typeCorrection {
		return
	}
	w.Maybe("P_15ZK", d.money(leftOf(d.in.Original)))
	if was := d.in.Original.Transaction.ExchangeRate; d.foreign() && was != nil {
		w.Maybe("KursWalutyZK", was.MinimalString())
	}
}

// writeAdvances names the advance invoices that a settlement deducts, or that came
// before the last of them.
func (d *document) writeAdvances(w *xmltree.Writer) {
	if !follows(d.t) || d.in.Original == nil {
		return
	}
	for _, o := range originalsOf(d.in) {
		w.Start("FakturaZaliczkowa")
		if id := strings.TrimSpace(o.AuthorityID1); ksefwire.LooksLikeNumber(id) {
			w.Maybe("NrKSeFFaZaliczkowej", id)
		} else {
			w.Leaf("NrKSeFZN", "1")
			w.Maybe("NrFaZaliczkowej", documentNumber(&o.Transaction, o.UniqueNumber))
		}
		w.End()
	}
}

// orderOf is an order as lines of a document, with its value.
func (d *document) orderOf(items []transaction.Item) ([]line, int64) {
	t := *d.t
	t.Items = items
	totals, _ := transaction.Calculate(items)
	in := *d.in
	in.Transaction, in.Totals = t, totals
	o := &document{in: &in, t: &t, facts: d.facts, buyer: d.buyer, zone: d.zone, sign: 1, decimals: d.decimals, day: d.day}
	list := classify(*d.facts, country.Case{Transaction: &t, Totals: totals, Now: d.in.Now})
	o.lines = make([]line, len(list))
	for i := range list {
		o.add(i, &list[i], country.IsServices(list, i))
	}
	return o.lines, totals.Gross
}

// netPrice is the price of one without tax: as it was sent, or what the net amount
// of the line comes to, with the eight decimals that FA(3) has.
func (d *document) netPrice(l *line) string {
	if !l.included && l.discount == 0 {
		return d.money(l.item.UnitPrice)
	}
	return num.MakeAmount(l.net, uint32(d.decimals)).Rescale(8).Divide(l.item.Quantity).MinimalString()
}

// writeOrder writes what an advance is for. A correction of an advance has the
// order before it and after it: where it changes nothing of the order both are
// the same, which says so (FA(3), Zamowienie).
func (d *document) writeOrder(w *xmltree.Writer) {
	after := d.t.OrderItems
	var before []transaction.Item
	switch d.kind() {
	case typeAdvance:
	case typeCorrection + "_" + typeAdvance:
		before = d.in.Original.Transaction.OrderItems
		if len(after) == 0 {
			after = before
		}
	default:
		return
	}
	if len(after) == 0 {
		return // an advance invoice from elsewhere
	}
	lines, value := d.orderOf(after)
	old, _ := d.orderOf(before)
	w.Start("Zamowienie")
	w.Maybe("WartoscZamowienia", d.money(value))
	for i, l := range append(old, lines...) {
		w.Start("ZamowienieWiersz")
		w.Maybe("NrWierszaZam", fmt.Sprint(i+1))
		w.Maybe("P_7Z", token(l.item.Name, nameMax))
		w.Maybe("IndeksZ", token(l.item.Code, foreignMax))
		w.Maybe("GTINZ", token(l.item.EAN, 20))
		w.Maybe("P_8AZ", unit(l.item))
		w.Maybe("P_8BZ", l.item.Quantity.MinimalString())
		w.Maybe("P_9AZ", d.netPrice(&l))
		w.Maybe("P_11NettoZ", d.money(l.net))
		w.Maybe("P_11VatZ", d.money(l.tax))
		w.Maybe("P_12Z", l.mark)
		w.Maybe("P_12Z_XII", l.foreignRate)
		w.Maybe("GTUZ", gtu(l.item))
		if i < len(old) {
			w.Leaf("StanPrzedZ", "1")
		}
		w.End()
	}
	w.End()
}

// advanceTexts are what paper says of an order, and of the advances of a settlement.
func (d *document) advanceTexts() (texts []string) {
	if d.kind() == typeAdvance {
		lines, value := d.orderOf(d.t.OrderItems)
		for _, l := range lines {
			texts = append(texts, fmt.Sprintf("Zamówienie: %s, %s %s, wartość netto %s, podatek %s", token(l.item.Name, nameMax), l.item.Quantity.MinimalString(), unit(l.item), d.money(l.net), d.money(l.tax)))
		}
		if len(d.t.Payments) > 1 && dated(d.t.Payments) {
			for i := range d.t.Payments {
				texts = append(texts, "Zapłata z dnia "+d.t.Payments[i].Date+": "+d.money(d.t.Payments[i].Amount)+" "+strings.ToUpper(d.t.CurrencyCode))
			}
		}
		texts = append(texts, "Wartość zamówienia lub umowy: "+d.money(value)+" "+strings.ToUpper(d.t.CurrencyCode))
	}
	if follows(d.t) && d.in.Original != nil {
		for _, o := range originalsOf(d.in) {
			texts = append(texts, strings.TrimSpace("Faktura zaliczkowa "+documentNumber(&o.Transaction, o.UniqueNumber)+" "+o.AuthorityID1))
		}
	}
	return texts
}
