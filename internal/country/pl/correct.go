package pl

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// reasonPattern is TypKorekty, and after a colon the days of the period that a
// collective correction is for (art. 106j sec. 3 of the VAT act).
const reasonPattern = `^[123](:[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{4}-[0-9]{2}-[0-9]{2})?$|^ROZ$|^ZAL$`

// period reads the days of a collective correction; false where the reason names none.
func period(t *transaction.Transaction) (from, until string, ok bool) {
	_, days, found := strings.Cut(t.Reason, ":")
	if !found || t.Kind != transaction.Adjustment {
		return "", "", false
	}
	from, until, ok = strings.Cut(days, "/")
	return from, until, ok
}

// checkPeriod finds a period that is none.
func checkPeriod(t *transaction.Transaction) []fault.Fault {
	from, until, ok := period(t)
	if !ok {
		return nil
	}
	_, wrong := time.Parse(time.DateOnly, from)
	_, also := time.Parse(time.DateOnly, until)
	if wrong != nil || also != nil || from > until {
		return []fault.Fault{fault.At("reason", fault.FieldNotValid,
			"must name the first and the last day of a period, as 2:2026-07-01/2026-09-30")}
	}
	return nil
}

// correctable finds what KSeF, or the law, would not take of a correction's
// originals: numbers that are none, another buyer, a supply outside of the period.
func (d *document) correctable() []fault.Fault {
	found := d.advances()
	from, until, ofPeriod := period(d.Transaction)
	for i, o := range d.Originals {
		if id := o.AuthorityID1; ksefwire.LooksLikeNumber(id) && !ksefwire.ValidNumber(id) {
			found = append(found, fault.At(o.Path, fault.FieldNotValid,
				"refers to a document whose tax_authority_id_1 is no KSeF number: its last two characters do not fit the others"))
		}
		if i == 0 {
			found = append(found, d.correctedBuyer(o.Transaction.Customer)...)
		} else if identify(o.Transaction.Customer) != identify(d.Draft.Original.Transaction.Customer) {
			found = append(found, fault.At(o.Path, fault.ValidationMatchInvalid,
				"has another buyer than the first original: a collective correction is for one (art. 106j sec. 3 of the VAT act)"))
		}
		if day := d.suppliedOn(o); ofPeriod && (day < from || day > until) {
			found = append(found, fault.At(o.Path, fault.ValidationMatchInvalid,
				"was supplied on %s, outside of the period that the reason names", day))
		}
	}
	return found
}

// correctedBuyer finds what a correction may not say of the buyer of an original:
// another NIP, which KSeF keeps the invoice under, and zero rates that do not fit
// the buyer.
func (d *document) correctedBuyer(was *transaction.Party) []fault.Fault {
	t := &d.Draft.Transaction
	if t.Customer == nil {
		if t.Kind != transaction.Adjustment {
			return nil
		}
		return zeroes(t.Items, d.Rules.Typed(country.Case{Transaction: t, Totals: d.Draft.Totals, Now: d.Draft.Now}), was, t.Date)
	}
	if before := identify(was).nip; was != nil && before != d.buyer.nip {
		return []fault.Fault{fault.At("customer.tax_information.tax_number", fault.ValidationMatchInvalid,
			"differs from the original's: a correction cannot move an invoice to another NIP; credit the original and issue a new invoice")}
	}
	return nil
}

// writeOriginal names the corrected invoices by their KSeF numbers, or says that
// they were issued outside KSeF. The buyer as the original has it follows where
// the correction has it otherwise; one of several originals corrects amounts,
// not the buyer.
func (w writer) writeOriginal() {
	if !w.d.correction() || len(w.d.Originals) == 0 {
		return
	}
	w.Leaves("?PrzyczynaKorekty", token(w.d.reason, textMax), "?TypKorekty", w.d.effect())
	for _, o := range w.d.Originals {
		w.Start("DaneFaKorygowanej")
		w.Leaves("?DataWystFaKorygowanej", w.d.issuedOn(o), "?NrFaKorygowanej", o.Number)
		if id := strings.TrimSpace(o.AuthorityID1); ksefwire.LooksLikeNumber(id) {
			w.Leaves("NrKSeF", "1", "NrKSeFFaKorygowanej", id)
		} else {
			w.Leaf("NrKSeFN", "1")
		}
		w.End()
	}
	w.Maybe("OkresFaKorygowanej", w.d.period())
	defer w.writeBefore()
	if len(w.d.Draft.Shares) > 0 {
		return
	}
	was := w.d.Draft.Original.Transaction.Customer
	before, after := xmltree.NewWriter(256), xmltree.NewWriter(256)
	writeParty(before, was)
	writeParty(after, w.d.Customer)
	if was != nil && !bytes.Equal(before.Bytes(), after.Bytes()) {
		w.Start("Podmiot2K")
		w.Raw(before.Bytes())
		w.End()
	}
}

// period is OkresFaKorygowanej, "" where the correction is for none.
func (d *document) period() string {
	from, until, ok := period(d.Transaction)
	if !ok {
		return ""
	}
	return from + " - " + until
}

// issuedOn is P_1 of the original: what it was filed with, which need not be its
// transaction's day.
func (d *document) issuedOn(o sale.Original) string {
	return cmp.Or(o.Filed.Value("Fa", "P_1"), d.Day(o.Transaction.Date))
}

// suppliedOn is the day of supply of an original: P_6, or P_1 without it.
func (d *document) suppliedOn(o sale.Original) string {
	if day := o.Filed.Value("Fa", "P_6"); day != "" {
		return day
	}
	if len(o.Report) == 0 && o.Transaction.DeliveryDate != "" {
		return o.Transaction.DeliveryDate
	}
	return d.issuedOn(o)
}

// effect is TypKorekty: what the client's reason says, and of a reduction
// without one that it takes effect with the correction (art. 29a sec. 13 of the
// VAT act). When an increase takes effect depends on its cause: it is left open.
func (d *document) effect() string {
	switch {
	case d.Kind == transaction.Adjustment && d.Reason != "" && !follows(d.Transaction):
		return d.Reason[:1]
	case d.Sign*d.Draft.Totals.Gross < 0:
		return "2"
	}
	return ""
}

// returned reports whether a line of an adjustment takes goods back at the price
// at which an original sold them; any other reduction lowers a price.
func (d *document) returned(l *line) bool {
	for _, o := range d.Originals {
		if slices.ContainsFunc(o.Transaction.Items, func(was transaction.Item) bool {
			return was.UnitPrice == -l.Item.UnitPrice && l.Item.Quantity.Compare(was.Quantity) <= 0
		}) {
			return true
		}
	}
	return false
}
