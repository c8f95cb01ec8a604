package pl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
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
func filedType(o sale.Original) string { return o.Filed.Value("Fa", "RodzajFaktury") }

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
	return []string{"order_items", "order_items.*.tax_breakdowns", "order_items.*.type", "order_items.*.unit_price",
		"order_items.*.quantity", "order_items.*.discount", "items.*.classification"}
}

// advances finds what an advance invoice or a settlement cannot be.
func (c *checker) advances(in country.Case) (found []fault.Fault) {
	t := in.Transaction
	if settles(t) {
		return settlement(t, in.Totals)
	}
	switch {
	case len(t.OrderItems) == 0 && completes(t):
		return []fault.Fault{fault.At("order_items", fault.FieldRequired,
			"must say what was ordered: the reason ZAL is of the last of several advances")}
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
	return append(received(in, totals.Gross), parts(t, c.by.Zone)...)
}

// received finds money that an advance cannot be: at a price without tax, or more
// than the order. The last of several is what the ones before have left of it.
func received(in country.Case, ordered int64) (found []fault.Fault) {
	t := in.Transaction
	for i := range t.Items {
		if j := t.Items[i].OnlyTax(); j >= 0 && t.Items[i].Taxes[j].Mode == transaction.Added {
			found = append(found, fault.At(sale.TaxPath(i, j, "application_mode"), fault.ValidationMatchInvalid,
				"must be %s on an advance: its tax is taken from what was received (art. 106f sec. 1 point 3 of the VAT act)",
				transaction.Included))
		}
	}
	if in.Totals.Gross <= 0 || in.Totals.Gross > ordered {
		found = append(found, fault.At("items", fault.ValidationMatchInvalid,
			"must add up to what was received for the order: more than 0, and not more than its %s", amount.Text(ordered, 2)))
	}
	var before int64
	for _, s := range t.Shares {
		before += s.Amount
	}
	if completes(t) && len(t.Shares) > 0 && before+in.Totals.Gross != ordered {
		found = append(found, fault.At("references", fault.ValidationMatchInvalid,
			"must be what the advances before came to: with this one they are the whole order, %d", ordered))
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
			found = append(found, fault.At(fmt.Sprintf("items.%d.unit_price", i), fault.FieldNotValid,
				"must be below 0: the line deducts an advance"))
		}
	}
	switch {
	case len(found) > 0:
	case sum == 0:
		found = append(found, fault.At("items", fault.FieldRequired,
			"must have lines classified {PL, ZAL} that deduct the advances, one for each rate"))
	case len(t.Shares) > 0 && shares != sum:
		found = append(found, fault.At("references", fault.ValidationMatchInvalid,
			"must add up to what the lines classified {PL, ZAL} deduct, %d", sum))
	case totals.Gross < 0:
		found = append(found, fault.At("items", fault.ValidationMatchInvalid,
			"must not come to less than 0 after the advances: correct the advance invoices instead"))
	}
	return found
}

// advances finds originals that are of another kind than the document wants, or do
// not come to the whole order with the last of them.
func (d *document) advances() (found []fault.Fault) {
	var left int64
	several := len(d.Draft.Shares) > 0
	for i, o := range d.Originals {
		was := filedType(o)
		left += leftOf(o.Original)
		switch {
		case follows(d.Transaction) && was != typeAdvance && !o.Backfilled:
			found = append(found, fault.At(o.Path, fault.ValidationMatchInvalid,
				"is no advance invoice (ZAL), to which the reasons ROZ and ZAL refer"))
		case completes(d.Transaction) && several && o.Amount != leftOf(o.Original):
			found = append(found, fault.At(fmt.Sprintf("references.%d.amount", i), fault.ValidationMatchInvalid,
				"must be what that advance came to, %d", leftOf(o.Original)))
		case !follows(d.Transaction) && several && (was == typeAdvance || was == typeSettlement):
			found = append(found, fault.At(o.Path, fault.ValidationMatchInvalid,
				"is an advance invoice or a settlement, which is corrected by itself (KOR_ZAL, KOR_ROZ)"))
		}
	}
	total := d.Draft.Totals.Gross
	if ordered, _ := transaction.Calculate(d.OrderItems); len(found) == 0 && completes(d.Transaction) &&
		left+total != ordered.Gross {
		found = append(found, fault.At("items", fault.ValidationMatchInvalid,
			"and the advances before come to %s of %s: the last advance completes the order (art. 106f sec. 4 of the VAT act)",
			amount.Text(left+total, 2), amount.Text(ordered.Gross, 2)))
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
func (w writer) listed(i int) bool {
	switch w.d.form {
	case typeAdvance, typeCorrection + "_" + typeAdvance:
		return false
	case typeSettlement, typeCorrection + "_" + typeSettlement:
		return !marked(w.d.lines[i].Item, codeAdvance)
	}
	return true
}

// writeBefore writes what was paid, or left to pay, before a correction of an
// advance invoice or a settlement.
func (w writer) writeBefore() {
	if w.d.form == typeCorrection {
		return
	}
	w.Leaf("P_15ZK", w.d.money(leftOf(w.d.Draft.Original)))
	if was := w.d.Draft.Original.Transaction.ExchangeRate; w.d.Foreign() && was != nil {
		w.Leaf("KursWalutyZK", was.MinimalString())
	}
}

// writeAdvances names the advance invoices that a settlement deducts, or that came
// before the last of them.
func (w writer) writeAdvances() {
	if !follows(w.d.Transaction) {
		return
	}
	for _, o := range w.d.Originals {
		if id := strings.TrimSpace(o.AuthorityID1); ksefwire.LooksLikeNumber(id) {
			w.Group("FakturaZaliczkowa", "NrKSeFFaZaliczkowej", id)
		} else {
			w.Group("FakturaZaliczkowa", "NrKSeFZN", "1", "?NrFaZaliczkowej", o.Number)
		}
	}
}

// orderOf is an order as lines of a document, with its value.
func (d *document) orderOf(items []transaction.Item) (lines []line, value int64) {
	t := *d.Transaction
	t.Items = items
	totals, _ := transaction.Calculate(items)
	for _, l := range sale.Lines(d.Rules.Typed(country.Case{Transaction: &t, Totals: totals, Now: d.Draft.Now}), totals, 1) {
		lines = append(lines, d.lineOf(l))
	}
	return lines, totals.Gross
}

// netPrice is the price of one without tax: as it was sent, or what the net amount
// of the line comes to, with the eight decimals that FA(3) has.
func (d *document) netPrice(l *line) string {
	if !l.included && l.Discount == 0 {
		return d.money(l.Item.UnitPrice)
	}
	return num.MakeAmount(l.Net, uint32(d.Decimals)).Rescale(8).Divide(l.Item.Quantity).MinimalString()
}

// writeOrder writes what an advance is for. A correction of an advance has the
// order before it and after it: where it changes nothing of the order both are
// the same, which says so (FA(3), Zamowienie).
func (w writer) writeOrder() {
	after := w.d.OrderItems
	var before []transaction.Item
	switch w.d.form {
	case typeAdvance:
	case typeCorrection + "_" + typeAdvance:
		before = w.d.Draft.Original.Transaction.OrderItems
		if len(after) == 0 {
			after = before
		}
	default:
		return
	}
	if len(after) == 0 {
		return // an advance invoice from elsewhere
	}
	lines, value := w.d.orderOf(after)
	old, _ := w.d.orderOf(before)
	w.Start("Zamowienie")
	w.Leaf("WartoscZamowienia", w.d.money(value))
	for i, l := range append(old, lines...) {
		was := ""
		if i < len(old) {
			was = "1"
		}
		w.Group("ZamowienieWiersz", "NrWierszaZam", strconv.Itoa(i+1), "?P_7Z", token(l.Item.Name, nameMax), "?IndeksZ",
			token(l.Item.Code, foreignMax),
			"?GTINZ", token(l.Item.EAN, 20), "P_8AZ", unit(l.Item), "P_8BZ", l.Item.Quantity.MinimalString(), "P_9AZ", w.d.netPrice(&l),
			"P_11NettoZ", w.d.money(l.Net), "P_11VatZ", w.d.money(l.Tax), "?P_12Z", l.mark, "?P_12Z_XII", l.foreignRate, "?GTUZ",
			gtu(l.Item), "?StanPrzedZ", was)
	}
	w.End()
}

// advanceTexts are what paper says of an order, and of the advances of a settlement.
func (d *document) advanceTexts() (texts []string) {
	if d.form == typeAdvance {
		lines, value := d.orderOf(d.OrderItems)
		currency := " " + strings.ToUpper(d.CurrencyCode)
		for _, l := range lines {
			texts = append(texts, fmt.Sprintf("Zamówienie: %s, %s %s, wartość netto %s, podatek %s",
				token(l.Item.Name, nameMax), l.Item.Quantity.MinimalString(), unit(l.Item), d.money(l.Net), d.money(l.Tax)))
		}
		if len(d.Payments) > 1 && dated(d.Payments) {
			for _, p := range d.Payments {
				texts = append(texts, "Zapłata z dnia "+p.Date+": "+d.money(p.Amount)+currency)
			}
		}
		texts = append(texts, "Wartość zamówienia lub umowy: "+d.money(value)+currency)
	}
	if follows(d.Transaction) {
		for _, o := range d.Originals {
			texts = append(texts, strings.TrimSpace("Faktura zaliczkowa "+o.Number+" "+o.AuthorityID1))
		}
	}
	return texts
}
