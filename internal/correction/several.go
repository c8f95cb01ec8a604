package correction

import (
	"context"
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// resolveOriginals finds the documents that one adjustment corrects together. The
// first of them stands for all where one is enough.
func (t Terms) resolveOriginals(ctx context.Context, o *operation.Operation) (refs References, v Verdict, err error) {
	for _, s := range o.Document.Shares {
		ref, v, err := t.correctable(ctx, o, s.TransactionID)
		if err != nil || v != (Verdict{}) {
			return refs, v, err
		}
		if ref.op.SupplierID != "" && ref.op.SupplierID != o.SupplierID {
			return refs, refused(fault.At("supplier.id", fault.ValidationMatchInvalid, "is not the supplier of all originals")), nil
		}
		if v, err := t.share(ctx, o, ref, &refs); err != nil || v != (Verdict{}) {
			return refs, v, err
		}
	}
	refs.Original = &refs.Shares[0].Original
	number(o)
	return refs, v, nil
}

// share adds the next of the documents that an operation refers to.
func (t Terms) share(ctx context.Context, o *operation.Operation, ref reference, refs *References) (v Verdict, err error) {
	original, s := ref.original(), o.Document.Shares[len(refs.Shares)]
	var ids []string
	if original.Corrections, ids, v, err = t.earlier(ctx, o, s.TransactionID); err != nil || v != (Verdict{}) {
		return v, err
	}
	refs.Shares, refs.Earlier = append(refs.Shares, country.Share{Original: *original, Amount: s.Amount}),
		append(refs.Earlier, ids...)
	return v, nil
}

// resolvePaid finds the documents that a payment was for, each with the payments
// before this one.
func (t Terms) resolvePaid(ctx context.Context, o *operation.Operation) (refs References, v Verdict, err error) {
	for i, p := range o.Document.Shares {
		ref, v, err := t.referred(ctx, o, p.TransactionID)
		if err != nil || v != (Verdict{}) {
			return refs, v, err
		}
		if o.SupplierID == "" && ref.op.SupplierID != "" {
			return refs, Verdict{Move: ref.op.SupplierID}, nil
		}
		if v, err := t.share(ctx, o, ref, &refs); err != nil || v != (Verdict{}) {
			return refs, v, err
		}
		if i == 0 {
			o.Complete(ref.op)
		}
		if f := unpayable(o, ref.op, refs.Shares, i); f != nil {
			return refs, Verdict{Refused: f}, nil
		}
	}
	if len(refs.Shares) > 0 {
		refs.Original = &refs.Shares[0].Original
	}
	number(o)
	return refs, v, nil
}

// unpayable says why a document cannot be paid by a report; nil: it can. Those
// that are paid together are in one currency, which the payment need not be in.
func unpayable(o, paid *operation.Operation, shares []country.Share, i int) *fault.Fault {
	original := &shares[i].Original
	var f fault.Fault
	switch {
	case paid.SupplierID == "" || len(paid.Document.Items) == 0:
		return o.Refers(paid.TransactionID, fault.UnsupportedOperation,
			"was backfilled without supplier or items, so nothing is known of what is owed")
	case paid.SupplierID != o.SupplierID:
		f = fault.At("references", fault.ValidationMatchInvalid, "must be of one supplier")
	case !strings.EqualFold(paid.Document.CurrencyCode, shares[0].Original.Transaction.CurrencyCode):
		f = fault.At("references", fault.ValidationMatchInvalid, "must be in one currency")
	case slices.ContainsFunc(original.Corrections, func(e country.Earlier) bool {
		return e.Transaction.Kind == transaction.Cancellation
	}):
		return o.Refers(paid.TransactionID, fault.ReferenceAlreadyCorrected, "was cancelled")
	default:
		return nil
	}
	return &f
}
