package pl

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// partsMax is how many payments one advance invoice is for (FA(3), ZaliczkaCzesciowa).
const partsMax = 31

// dated reports whether payments say on which days they came.
func dated(payments []transaction.Payment) bool {
	return slices.ContainsFunc(payments, func(p transaction.Payment) bool { return p.Date != "" })
}

// parts finds payments that an advance invoice cannot list: several came, each on
// a day of its own that has passed, or none says when.
func parts(t *transaction.Transaction, zone *time.Location) (found []fault.Fault) {
	if !dated(t.Payments) {
		return nil
	}
	if len(t.Payments) > partsMax {
		return []fault.Fault{fault.At("payments", fault.FieldNotValid,
			"must not be more than %d with their days on one advance invoice", partsMax)}
	}
	today := t.Date.In(zone).Format(time.DateOnly)
	for i := range t.Payments {
		switch day := t.Payments[i].Date; {
		case day == "":
			found = append(found, fault.At(fmt.Sprintf("payments.%d.date", i), fault.FieldRequired,
				"must say when the money came, as the others do"))
		case day > today:
			found = append(found, fault.At(fmt.Sprintf("payments.%d.date", i), fault.FieldNotValid,
				"must not be after the day of the invoice: it is when the money came"))
		}
	}
	return found
}

// writeParts lists the payments that an advance invoice is for, where it is for
// several: each with the day on which it came.
func (w writer) writeParts() {
	if w.d.form != typeAdvance || len(w.d.Payments) < 2 || !dated(w.d.Payments) {
		return
	}
	for _, p := range w.d.Payments {
		w.Group("ZaliczkaCzesciowa", "P_6Z", p.Date, "P_15Z", w.d.money(p.Amount))
	}
}

// paidOn is the day of a payment: its own, else the transaction's.
func (d *document) paidOn(p *transaction.Payment) string {
	return cmp.Or(p.Date, d.Day(d.Date))
}
