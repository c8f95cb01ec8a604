package filing

import (
	"context"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// meetOriginals finds the documents that one adjustment corrects together. The
// first of them stands for all where one is enough. False: the operation failed,
// waits, or moved to the lane of their supplier.
func (b *batch) meetOriginals(ctx context.Context, o *operation) (goOn bool, err error) {
	o.shares, o.earlier = nil, nil
	for _, s := range o.document.Shares {
		ref, goOn, err := b.correctable(ctx, o, s.TransactionID)
		if err != nil || !goOn {
			return false, err
		}
		if ref.op.supplierID != "" && ref.op.supplierID != o.supplierID {
			b.fail(o, fault.At("supplier.id", fault.ValidationMatchInvalid, "is not the supplier of all originals"))
			return false, nil
		}
		original := ref.original()
		if goOn, err := b.meetEarlier(ctx, o, s.TransactionID, original); err != nil || !goOn {
			return false, err
		}
		o.shares = append(o.shares, country.Share{Original: *original, Amount: s.Amount})
	}
	o.original = &o.shares[0].Original
	if o.document.Number == "" {
		o.document.Number = uniqueNumber(o.code, o.id)
	}
	return true, nil
}

// remember finds again what a correction refers to, for its document: the visit
// that settles it need not be the one that prepared it.
func (b *batch) remember(r db.Reader, o *operation) error {
	o.original, o.shares = nil, nil
	for i, id := range o.refersTo() {
		ref, err := b.lookUp(r, o.scope, id)
		if err != nil {
			return err
		}
		if ref.op == nil {
			return nil // its record is gone: the document does without
		}
		original := ref.original()
		if i == 0 {
			o.original = original
			if o.bare() {
				o.complete(ref.op)
			}
		}
		if len(o.document.Shares) > i {
			o.shares = append(o.shares, country.Share{Original: *original, Amount: o.document.Shares[i].Amount})
		}
	}
	return nil
}
