package transaction

import (
	"fmt"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// memberPaidFor lists what a payment was for, where it is more than one transaction.
const memberPaidFor = "references"

// paidForMax bounds the transactions that one report of a payment settles.
const paidForMax = 100

func (d *decoder) paidFor() strictjson.State {
	before := d.Faults.Count()
	state := d.Array(func(i int) {
		const gotID, gotAmount given = 1, 2
		var got given
		var p PaidFor
		st := d.Object(func(name string) {
			switch name {
			case "transaction_id":
				got.note(gotID, d.identifier(&p.TransactionID))
			case "amount":
				got.note(gotAmount, d.minor(&p.Amount))
			default:
				d.Unknown()
			}
		})
		if st == strictjson.Absent {
			d.Refuse(fault.FieldNotValid, "must be an object")
		}
		if i == paidForMax {
			d.Refuse(fault.FieldNotValid, "must be one of at most %d", paidForMax)
		}
		if i < paidForMax {
			d.tx.PaidFor = append(d.tx.PaidFor, p)
		}
		if st != strictjson.Taken {
			return
		}
		if got&gotID == 0 {
			d.Missing("transaction_id")
		}
		if got&gotAmount == 0 {
			d.Missing("amount")
		}
	})
	d.paymentsFault = d.paymentsFault || d.Faults.Count() > before
	return state
}

// requirePaidFor wants either name of what was paid. One transaction alone gets
// everything that was received.
func (d *decoder) requirePaidFor(kind kinds, got given) {
	if kind != reports {
		return
	}
	single, several := got&gotReference != 0, got&gotPaidFor != 0
	switch {
	case single && several:
		d.RefuseMember(memberPaidFor, fault.ValidationMatchInvalid, "stands in place of reference_transaction_id; send one of them")
	case !single && !several:
		d.Missing("reference_transaction_id")
	case single && d.tx.ReferenceID != "":
		p := PaidFor{TransactionID: d.tx.ReferenceID}
		for i := range d.tx.Payments {
			p.Amount += d.tx.Payments[i].Amount
		}
		d.tx.PaidFor = []PaidFor{p}
	case len(d.tx.PaidFor) > 0:
		d.tx.ReferenceID = d.tx.PaidFor[0].TransactionID
	}
}

// CheckPaid reports what is wrong with the amounts of a payment report: each is
// more than nothing, and what was received is what was paid for.
func CheckPaid(t *Transaction) (found []fault.Fault) {
	var received, settled wide
	for i := range t.Payments {
		if t.Payments[i].Amount <= 0 {
			found = append(found, fault.At(fmt.Sprintf("payments.%d.amount", i), fault.FieldNotValid, "must be more than 0: it is what was received"))
		}
		received.add(t.Payments[i].Amount)
	}
	seen := map[string]bool{}
	for i := range t.PaidFor {
		p := &t.PaidFor[i]
		if len(t.PaidFor) > 1 && p.Amount <= 0 {
			found = append(found, fault.At(fmt.Sprintf("references.%d.amount", i), fault.FieldNotValid, "must be more than 0: it is what was paid for it"))
		}
		if seen[p.TransactionID] {
			found = append(found, fault.At(fmt.Sprintf("references.%d.transaction_id", i), fault.ValidationMatchInvalid, "must not be there twice"))
		}
		seen[p.TransactionID] = true
		settled.add(p.Amount)
	}
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
	case in != out:
		return []fault.Fault{fault.At("references", fault.ValidationMatchInvalid, "must add up to what was received, %d, but add up to %d", in, out)}
	}
	return nil
}
