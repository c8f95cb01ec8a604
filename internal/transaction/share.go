package transaction

import (
	"fmt"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// memberShares lists what a payment was for, or what an adjustment corrects,
// where it is more than one transaction.
const memberShares = "references"

// sharesMax bounds the transactions that one payment or adjustment refers to.
const sharesMax = 100

func (d *decoder) shares() strictjson.State {
	before := d.in.Faults.Count()
	state := d.in.Array(func(i int) {
		const gotID, gotAmount given = 1, 2
		var got given
		var p Share
		st := d.in.Object(func(name string) {
			switch name {
			case "transaction_id":
				got.note(gotID, d.in.identifier(&p.TransactionID))
			case "amount":
				got.note(gotAmount, d.in.minor(&p.Amount))
			default:
				d.in.Unknown()
			}
		})
		if st == strictjson.Absent {
			d.in.Refuse(fault.FieldNotValid, "must be an object")
		}
		if i == sharesMax {
			d.in.Refuse(fault.FieldNotValid, "must be one of at most %d", sharesMax)
		}
		if i < sharesMax {
			d.tx.Shares = append(d.tx.Shares, p)
		}
		if st != strictjson.Taken {
			return
		}
		if got&gotID == 0 {
			d.in.Missing("transaction_id")
		}
		if got&gotAmount == 0 {
			d.in.Missing("amount")
		}
	})
	d.paymentsFault = d.paymentsFault || d.tx.Kind == PaymentReport && d.in.Faults.Count() > before
	return state
}

// requireShares wants either name of what is referred to. One transaction alone
// gets everything that was received.
func (d *decoder) requireShares(kind kinds, got given) {
	if kind&(reports|adjustments) == 0 {
		return
	}
	single, several := got&gotReference != 0, got&gotShares != 0
	switch {
	case single && several:
		d.in.RefuseMember(memberShares, fault.ValidationMatchInvalid, "stands in place of reference_transaction_id; send one of them")
	case !single && !several:
		d.in.Missing("reference_transaction_id")
	case single && kind == reports && d.tx.ReferenceID != "":
		p := Share{TransactionID: d.tx.ReferenceID}
		for i := range d.tx.Payments {
			p.Amount += d.tx.Payments[i].Amount
		}
		d.tx.Shares = []Share{p}
	case len(d.tx.Shares) > 0:
		d.tx.ReferenceID = d.tx.Shares[0].TransactionID
	}
}

// CheckPaid reports what is wrong with the amounts of a payment report: each is
// more than nothing, and what was received is what was paid for. One that names
// its currency may pay for sales in another: those who know them compare.
func CheckPaid(t *Transaction) (found []fault.Fault) {
	var received, settled wide
	for i := range t.Payments {
		if t.Payments[i].Amount <= 0 {
			found = append(found, fault.At(fmt.Sprintf("payments.%d.amount", i), fault.FieldNotValid,
				"must be more than 0: it is what was received"))
		}
		received.add(t.Payments[i].Amount)
	}
	for i := range t.Shares {
		p := &t.Shares[i]
		if len(t.Shares) > 1 && p.Amount <= 0 {
			found = append(found, fault.At(fmt.Sprintf("references.%d.amount", i), fault.FieldNotValid,
				"must be more than 0: it is what was paid for it"))
		}
		settled.add(p.Amount)
	}
	found = append(found, twice(t.Shares)...)
	if len(found) > 0 {
		return found
	}
	in, fits := received.amount()
	out, also := settled.amount()
	switch {
	case len(t.Payments) == 0:
		return []fault.Fault{fault.At("payments", fault.FieldRequired, "must not be empty")}
	case !fits || !also:
		return []fault.Fault{fault.At("payments", fault.FieldNotValid, "must not add up to more than %d in size", int64(AmountMax))}
	case in != out && t.CurrencyCode == "":
		return []fault.Fault{fault.At("references", fault.ValidationMatchInvalid,
			"must add up to what was received, %d, but add up to %d", in, out)}
	}
	return nil
}

// CheckCorrected reports what is wrong with the shares of an adjustment of
// several transactions: together they are what it amounts to.
func CheckCorrected(t *Transaction, totals Totals) []fault.Fault {
	if len(t.Shares) == 0 {
		return nil
	}
	if found := twice(t.Shares); len(found) > 0 {
		return found
	}
	var sum wide
	for i := range t.Shares {
		sum.add(t.Shares[i].Amount)
	}
	if all, fits := sum.amount(); !fits || all != totals.Gross {
		return []fault.Fault{fault.At(memberShares, fault.ValidationMatchInvalid,
			"must add up to what the items come to, %d", totals.Gross)}
	}
	return nil
}

// twice finds transactions that a list names again.
func twice(list []Share) (found []fault.Fault) {
	seen := map[string]bool{}
	for i, p := range list {
		if seen[p.TransactionID] {
			found = append(found, fault.At(fmt.Sprintf("references.%d.transaction_id", i), fault.ValidationMatchInvalid,
				"must not be there twice"))
		}
		seen[p.TransactionID] = true
	}
	return found
}
