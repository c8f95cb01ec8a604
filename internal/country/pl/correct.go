package pl

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
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
		return []fault.Fault{fault.At("reason", fault.FieldNotValid, "must name the first and the last day of a period, as 2:2026-07-01/2026-09-30")}
	}
	return nil
}

// originalsOf are the invoices that a correction is of.
func originalsOf(in *country.Draft) []*country.Original {
	if len(in.Shares) == 0 {
		return []*country.Original{in.Original}
	}
	list := make([]*country.Original, len(in.Shares))
	for i := range in.Shares {
		list[i] = &in.Shares[i].Original
	}
	return list
}

// correctable finds what KSeF, or the law, would not take of a correction's
// originals: numbers that are none, another buyer, a supply outside of the period.
func correctable(in *country.Draft) (found []fault.Fault) {
	found = advances(in)
	for i, o := range originalsOf(in) {
		path := "reference_transaction_id"
		if len(in.Shares) > 0 {
			path = fmt.Sprintf("references.%d.transaction_id", i)
		}
		if id := o.AuthorityID1; ksefwire.LooksLikeNumber(id) && !ksefwire.ValidNumber(id) {
			found = append(found, fault.At(path, fault.FieldNotValid,
				"refers to a document whose tax_authority_id_1 is no KSeF number: its last two characters do not fit the others"))
		}
		if i == 0 {
			found = append(found, correctedBuyer(in, o.Transaction.Customer)...)
		} else if identify(o.Transaction.Customer) != identify(in.Original.Transaction.Customer) {
			found = append(found, fault.At(path, fault.ValidationMatchInvalid, "has another buyer than the first original: a collective correction is for one (art. 106j sec. 3 of the VAT act)"))
		}
		d := document{in: in, zone: in.Location}
		if d.zone == nil {
			d.zone = time.UTC
		}
		if from, until, ok := period(&in.Transaction); ok {
			if day := d.suppliedOn(o); day < from || day > until {
				found = append(found, fault.At(path, fault.ValidationMatchInvalid, "was supplied on %s, outside of the period that the reason names", day))
			}
		}
	}
	return found
}

// writeOriginal names the corrected invoices by their KSeF numbers, or says that
// they were issued outside KSeF. The buyer as the original has it follows where
// the correction has it otherwise; one of several originals corrects amounts,
// not the buyer.
func (d *document) writeOriginal(w *xmltree.Writer) {
	if !d.correction() || d.in.Original == nil {
		return
	}
	w.Maybe("PrzyczynaKorekty", token(d.reason, textMax))
	w.Maybe("TypKorekty", d.effect())
	for _, o := range originalsOf(d.in) {
		w.Start("DaneFaKorygowanej")
		w.Maybe("DataWystFaKorygowanej", d.issuedOn(o))
		w.Maybe("NrFaKorygowanej", documentNumber(&o.Transaction, o.UniqueNumber))
		if id := strings.TrimSpace(o.AuthorityID1); ksefwire.LooksLikeNumber(id) {
			w.Leaf("NrKSeF", "1")
			w.Maybe("NrKSeFFaKorygowanej", id)
		} else {
			w.Leaf("NrKSeFN", "1")
		}
		w.End()
	}
	w.Maybe("OkresFaKorygowanej", d.period())
	defer d.writeBefore(w)
	if len(d.in.Shares) > 0 {
		return
	}
	was := d.in.Original.Transaction.Customer
	before, after := xmltree.NewWriter(256), xmltree.NewWriter(256)
	writeParty(before, was)
	writeParty(after, d.t.Customer)
	if was != nil && !bytes.Equal(before.Bytes(), after.Bytes()) {
		w.Start("Podmiot2K")
		w.Raw(before.Bytes())
		w.End()
	}
}

// period is OkresFaKorygowanej, "" where the correction is for none.
func (d *document) period() string {
	from, until, ok := period(d.t)
	if !ok {
		return ""
	}
	return from + " - " + until
}

// issuedOn is P_1 of the original: what it was filed with, which need not be its
// transaction's day.
func (d *document) issuedOn(o *country.Original) string {
	if doc, err := xmltree.Read(o.Report); err == nil {
		if day := doc.Root.Value("Fa", "P_1"); day != "" {
			return day
		}
	}
	return o.Transaction.Date.In(d.zone).Format(time.DateOnly)
}

// suppliedOn is the day of supply of an original: P_6, or P_1 without it.
func (d *document) suppliedOn(o *country.Original) string {
	if doc, err := xmltree.Read(o.Report); err == nil {
		if day := doc.Root.Value("Fa", "P_6"); day != "" {
			return day
		}
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
	case d.t.Kind == transaction.Adjustment && d.t.Reason != "" && !follows(d.t):
		return d.t.Reason[:1]
	case d.sign*d.in.Totals.Gross < 0:
		return "2"
	}
	return ""
}

// returned reports whether a line of an adjustment takes goods back at the price
// at which an original sold them; any other reduction lowers a price.
func (d *document) returned(l *line) bool {
	if d.in.Original == nil {
		return false
	}
	for _, o := range originalsOf(d.in) {
		for i := range o.Transaction.Items {
			was := &o.Transaction.Items[i]
			if was.UnitPrice == -l.item.UnitPrice && l.item.Quantity.Compare(was.Quantity) <= 0 {
				return true
			}
		}
	}
	return false
}
