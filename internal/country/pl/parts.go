package pl

import (
	"fmt"
	"time"

	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// partsMax is how many payments one advance invoice is for (FA(3), ZaliczkaCzesciowa).
const partsMax = 31

// dated reports whether payments say on which days they came.
func dated(payments []transaction.Payment) bool {
	for i := range payments {
		if payments[i].Date != "" {
			return true
		}
	}
	return false
}

// parts finds payments that an advance invoice cannot list: several came, each on
// a day of its own that has passed, or none says when.
func parts(t *transaction.Transaction, zone *time.Location) (found []fault.Fault) {
	if !dated(t.Payments) {
		return nil
	}
	if len(t.Payments) > partsMax {
		return []fault.Fault{fault.At("payments", fault.FieldNotValid, "must not be more than %d with their days on one advance invoice", partsMax)}
	}
	today := t.Date.In(zone).Format(time.DateOnly)
	for i := range t.Payments {
		switch day := t.Payments[i].Date; {
		case day == "":
			found = append(found, fault.At(fmt.Sprintf("payments.%d.date", i), fault.FieldRequired, "must say when the money came, as the others do"))
		case day > today:
			found = append(found, fault.At(fmt.Sprintf("payments.%d.date", i), fault.FieldNotValid, "must not be after the day of the invoice: it is when the money came"))
		}
	}
	return found
}

// writeParts lists the payments that an advance invoice is for, where it is for
// several: each with the day on which it came.
func (d *document) writeParts(w *xmltree.Writer) {
	if d.kind() != typeAdvance || len(d.t.Payments) < 2 || !dated(d.t.Payments) {
		return
	}
	for i := range d.t.Payments {
		w.Start("ZaliczkaCzesciowa")
		w.Leaf("P_6Z", d.t.Payments[i].Date)
		w.Leaf("P_15Z", d.money(d.t.Payments[i].Amount))
		w.End()
	}
}

// paidOn is the day of a payment: its own, else the transaction's.
func (d *document) paidOn(p *transaction.Payment) string {
	if p.Date != "" {
		return p.Date
	}
	return d.t.Date.In(d.zone).Format(time.DateOnly)
}
