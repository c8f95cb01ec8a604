// Package sale is a draft resolved once, before a country's own law looks at it:
// who buys, with which sign amounts are written, on which days, what the lines
// are, and what is corrected.
//
// It owns what every country's document needs and none decides. Which document
// it becomes, and how a line is taxed there, is the pack's. Law: a draft stays
// untouched, and the filing of an original is read once however long the
// correction is.
package sale

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Rules are how a country reads drafts.
type Rules struct {
	Home   string                                // its code
	Money  string                                // its currency
	Zone   *time.Location                        // its authority's, where the supplier's is not known
	Typed  func(country.Case) []transaction.Item // its own types of taxes, see country.Pack.Classify
	Number func(string) string                   // a document's number as its form has room for it; nil: as it is
	// with which amounts are written; nil: a credit turns those of its original around
	Sign func(*country.Draft) int64
}

// Zone is a time zone by name, and Central Europe's without its summer on a
// machine that has no time zones.
func Zone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.FixedZone("CET", 60*60)
	}
	return zone
}

// Document is a draft, resolved.
type Document struct {
	*transaction.Transaction // a correction that names no buyer has its original's
	Draft                    *country.Draft
	Rules                    *Rules
	Zone                     *time.Location
	Decimals                 int   // of the currency
	Sign                     int64 // of amounts: -1 where they are turned around
	Items                    []transaction.Item
	Lines                    []Line
	Originals                []Original // none where nothing is corrected
}

// Line is an item with its amounts, in minor units and with the document's sign.
type Line struct {
	Item     *transaction.Item // its taxes typed
	Services bool
	At       int // of its only tax that is not withheld; -1: it has none, or several

	Net, Gross, Tax       int64
	Discount, NetDiscount int64 // in the terms of the price, and without tax
	Withheld              int64
}

// Original is a document that the draft corrects or deducts.
type Original struct {
	*country.Original
	Path   string           // where the client named it
	Number string           // as its form had it
	Amount int64            // how much of the draft is for it
	Filed  *xmltree.Element // the root of its filing; nil where it was not filed here
}

// Of resolves a draft.
func (r *Rules) Of(in *country.Draft) *Document {
	d := &Document{Transaction: buyerOf(in), Draft: in, Rules: r, Zone: in.Location, Sign: 1}
	if d.Zone == nil {
		d.Zone = r.Zone
	}
	if r.Sign != nil {
		d.Sign = r.Sign(in)
	} else if d.Kind == transaction.Credit {
		d.Sign = -1 // a credit comes with the original's own amounts
	}
	d.Decimals, _ = transaction.CurrencyExponent(strings.ToUpper(d.CurrencyCode))
	d.Items = r.Typed(country.Case{Transaction: d.Transaction, Totals: in.Totals, Now: in.Now})
	d.Lines = Lines(d.Items, in.Totals, d.Sign)
	d.Originals = r.OriginalsOf(in)
	return d
}

// buyerOf is the transaction with the buyer that it is for.
func buyerOf(in *country.Draft) *transaction.Transaction {
	t := &in.Transaction
	if t.Kind == transaction.Invoice || t.Customer != nil || in.Original == nil {
		return t
	}
	corrected := *t
	corrected.Customer = in.Original.Transaction.Customer
	if len(t.ThirdParties) == 0 {
		corrected.ThirdParties = in.Original.Transaction.ThirdParties
	}
	return &corrected
}

// Lines puts typed items beside their amounts. Without amounts of all of them
// there are none.
func Lines(items []transaction.Item, totals transaction.Totals, sign int64) []Line {
	if len(totals.Lines) != len(items) {
		return nil
	}
	list := make([]Line, len(items))
	for i := range items {
		at := &totals.Lines[i]
		list[i] = Line{Item: &items[i], Services: country.IsServices(items, i), At: items[i].OnlyTax(),
			Net: sign * at.Net, Gross: sign * at.Gross, Tax: sign * (at.Gross - at.Net), Discount: sign * at.Discount,
			NetDiscount: sign * at.NetDiscount}
		for j := range items[i].Taxes {
			if items[i].Taxes[j].Withheld() && j < len(at.Taxes) {
				list[i].Withheld += sign * at.Taxes[j]
			}
		}
	}
	return list
}

// OriginalsOf are the documents that a draft corrects or deducts, each read once.
func (r *Rules) OriginalsOf(in *country.Draft) (list []Original) {
	if in.Original == nil {
		return nil
	}
	add := func(o *country.Original, path string, amount int64) {
		was := Original{Original: o, Path: path, Number: r.NumberOf(&o.Transaction, o.UniqueNumber), Amount: amount}
		if doc, err := xmltree.Read(o.Report); err == nil {
			was.Filed = doc.Root
		}
		list = append(list, was)
	}
	for i := range in.Shares {
		add(&in.Shares[i].Original, fmt.Sprintf("references.%d.transaction_id", i), in.Shares[i].Amount)
	}
	if len(list) == 0 {
		add(in.Original, "reference_transaction_id", in.Totals.Gross)
	}
	return list
}

// NumberOf is the number of a document: the client's, else the service's own.
func (r *Rules) NumberOf(t *transaction.Transaction, unique string) string {
	for _, number := range []string{t.Number, unique} {
		if r.Number != nil {
			number = r.Number(number)
		}
		if number != "" {
			return number
		}
	}
	return ""
}

// Number is the document's own.
func (d *Document) Number() string {
	return d.Rules.NumberOf(&d.Draft.Transaction, d.Draft.UniqueNumber)
}

// Correction reports whether the document is of another.
func (d *Document) Correction() bool { return d.Kind != transaction.Invoice }

// Foreign reports whether amounts are in another currency than the country's.
func (d *Document) Foreign() bool { return !strings.EqualFold(d.CurrencyCode, d.Rules.Money) }

// Day is the day of an instant where the supplier is.
func (d *Document) Day(at time.Time) string { return at.In(d.Zone).Format(time.DateOnly) }

// SelfBilled reports whether the buyer issues the document itself.
func (d *Document) SelfBilled() bool {
	return d.Issuer != nil && d.Customer != nil && taxid.Same(d.Rules.Home, d.Issuer.TaxNumber, d.Customer.TaxNumber)
}

// Set reports whether a setting of the company is true.
func (d *Document) Set(key string) bool {
	yes, _ := d.Draft.Supplier.Settings[key].(bool)
	return yes
}

// Setting is a text of the company's settings, or what stands for none.
func (d *Document) Setting(key, otherwise string) string {
	if text := d.Draft.Supplier.Settings.Text(key); text != "" {
		return text
	}
	return otherwise
}

// Marked is the code with which a line is classified in a scheme; "" without one.
func Marked(item *transaction.Item, scheme string) string {
	for _, c := range item.Classifications {
		if strings.EqualFold(c.Scheme, scheme) {
			return strings.TrimSpace(c.Code)
		}
	}
	return ""
}

// TaxPath is where the client finds a member of a tax entry.
func TaxPath(item, tax int, member string) string {
	return fmt.Sprintf("items.%d.tax_breakdowns.%d.%s", item, tax, member)
}

// OneTax finds lines that do not have exactly one tax; why says what has one.
func OneTax(items []transaction.Item, why string) (found []fault.Fault) {
	for i := range items {
		if items[i].OnlyTax() < 0 {
			found = append(found, fault.At(fmt.Sprintf("items.%d.tax_breakdowns", i), fault.FieldNotValid,
				"must have exactly one entry that is not withheld: %s", why))
		}
	}
	return found
}

// Entry is the tax of a line of rate zero, typed.
type Entry struct {
	transaction.Tax
	Item, At int
	Services bool
	Open     bool // the client gave neither a type nor a code, and no goods decide
	Beside   bool // services beside goods that leave without tax, of which nothing says whether they go with them
}

// Untaxed visits the lines without tax; sent are the items as they came.
func Untaxed(sent, typed []transaction.Item) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		_, decided := country.TreatmentOfGoods(typed)
		for i := range typed {
			j := typed[i].OnlyTax()
			if j < 0 || !typed[i].Taxes[j].Rate.IsZero() {
				continue
			}
			was := &sent[i].Taxes[j]
			e := Entry{Tax: typed[i].Taxes[j], Item: i, At: j, Services: country.IsServices(typed, i),
				Open: was.Type == "" && was.Code == "" && !(sent[i].Ancillary && decided)}
			e.Beside = e.Open && sent[i].Type == transaction.Services && !sent[i].Ancillary && leaving(typed)
			if !yield(e) {
				return
			}
		}
	}
}

// leaving reports whether goods of a document leave its country without tax.
func leaving(items []transaction.Item) bool {
	for i := range items {
		j := items[i].OnlyTax()
		if j >= 0 && !country.IsServices(items, i) &&
			(items[i].Taxes[j].Type == transaction.TaxIntraEU || items[i].Taxes[j].Type == transaction.TaxExport) {
			return true
		}
	}
	return false
}

// Asked is what a line that says nothing is asked: whether it goes with the
// goods, or which of the country's zeros it is. None: the line says enough.
func (e Entry) Asked(choices string) []fault.Fault {
	switch {
	case e.Beside:
		return []fault.Fault{fault.At(fmt.Sprintf("items.%d.ancillary", e.Item), fault.FieldRequired,
			"must be true for shipping, packing or insurance of the goods of this document, whose treatment it shares (Directive 2006/112/EC, article 78); other services say their type, REVERSE or OUTSIDE")}
	case e.Open && (e.Type == transaction.TaxExempt || e.Type == transaction.TaxZero):
		return []fault.Fault{e.Fault("type", fault.FieldRequired, "%s", choices)}
	}
	return nil
}

// Fault is a finding about a member of the entry.
func (e Entry) Fault(member string, code fault.Code, format string, args ...any) fault.Fault {
	return fault.At(TaxPath(e.Item, e.At, member), code, format, args...)
}

// Misfit is a finding about a type that does not go with the sale.
func (e Entry) Misfit(why string) fault.Fault {
	return e.Fault("type", fault.ValidationMatchInvalid, "%s: %s", e.Type, why)
}
