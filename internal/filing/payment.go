package filing

import (
	"context"
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// meetPaid finds the documents that a payment was for, each with the payments
// before this one. False: the operation failed, waits, or moved to the lane of
// their supplier.
func (b *batch) meetPaid(ctx context.Context, o *operation) (goOn bool, err error) {
	o.shares, o.earlier = nil, nil
	for i, p := range o.document.Shares {
		ref, goOn, err := b.referred(ctx, o, p.TransactionID)
		if err != nil || !goOn {
			return false, err
		}
		if o.supplierID == "" && ref.op.supplierID != "" {
			return false, b.move(ctx, o, ref.op.supplierID)
		}
		original := ref.original()
		if goOn, err := b.meetEarlier(ctx, o, p.TransactionID, original); err != nil || !goOn {
			return false, err
		}
		if i == 0 {
			o.complete(ref.op)
			o.original = original
		}
		if f := unpayable(o, ref.op, original); f != nil {
			b.fail(o, *f)
			return false, nil
		}
		o.shares = append(o.shares, country.Share{Original: *original, Amount: p.Amount})
	}
	if o.document.Number == "" {
		o.document.Number = uniqueNumber(o.code, o.id)
	}
	return true, nil
}

// unpayable says why a document cannot be paid by a report; nil: it can.
func unpayable(o, paid *operation, original *country.Original) *fault.Fault {
	var f fault.Fault
	switch {
	case paid.supplierID == "" || len(paid.document.Items) == 0:
		f = o.refers(paid.transactionID, fault.UnsupportedOperation, "was backfilled without supplier or items, so nothing is known of what is owed")
	case paid.supplierID != o.supplierID:
		f = fault.At("references", fault.ValidationMatchInvalid, "must be of one supplier")
	case !strings.EqualFold(paid.document.CurrencyCode, o.original.Transaction.CurrencyCode):
		f = fault.At("references", fault.ValidationMatchInvalid, "must be in one currency")
	case slices.ContainsFunc(original.Corrections, func(e country.Earlier) bool { return e.Transaction.Kind == transaction.Cancellation }):
		f = o.refers(paid.transactionID, fault.ReferenceAlreadyCorrected, "was cancelled")
	default:
		return nil
	}
	return &f
}

// reservePayment enters a payment in the books of all that it is for. Payments
// for one document are filed one after another: each names what was owed before
// it. The caller holds the locks of all of them.
func (b *batch) reservePayment(tx *db.Tx, o *operation) (reserved, error) {
	ids := o.refersTo()
	for _, id := range ids {
		if o.gap != nil {
			break // the authority holds it already
		}
		if why, err := succession(tx, o, id); err != nil || why != (reserved{}) {
			return why, err
		}
	}
	for i, id := range ids {
		if err := enter(tx, o, id, country.Effect{Amount: o.document.Shares[i].Amount}); err != nil {
			return reserved{}, err
		}
	}
	return reserved{}, nil
}
