package filing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// reference is what is stored of an original.
type reference struct {
	known  bool
	gone   bool // it succeeded, and its record was destroyed after its years
	open   int64
	op     *operation // the successful one, nil if there is none
	filing country.Filing
	result *Result
}

// meetOriginal finds the document a correction refers to. It answers false
// when the operation does not go on now: it failed, waits, or moved to the
// lane of the original's supplier.
func (b *batch) meetOriginal(ctx context.Context, o *operation) (goOn bool, err error) {
	if o.kind == transaction.PaymentReport {
		return b.meetPaid(ctx, o)
	}
	if len(o.document.Shares) > 1 {
		return b.meetOriginals(ctx, o)
	}
	ref, goOn, err := b.correctable(ctx, o, o.referenceID)
	if err != nil || !goOn {
		return false, err
	}
	return b.inherit(ctx, o, ref)
}

// correctable finds a transaction that an operation may correct; false: the
// operation failed, or waits.
func (b *batch) correctable(ctx context.Context, o *operation, id string) (ref reference, goOn bool, err error) {
	ref, goOn, err = b.referred(ctx, o, id)
	if err != nil || !goOn {
		return ref, false, err
	}
	f := otherCurrency(o, ref.op)
	if f == nil {
		f = b.deadline(o, ref.op)
	}
	if f != nil {
		b.fail(o, *f)
		return ref, false, nil
	}
	return ref, true, nil
}

// referred finds a transaction that an operation refers to and that may be
// referred to; false: the operation failed, or waits.
func (b *batch) referred(ctx context.Context, o *operation, id string) (ref reference, goOn bool, err error) {
	if err := b.db.Read(ctx, func(r db.Reader) (err error) {
		ref, err = b.lookUp(r, o.scope, id)
		return err
	}); err != nil {
		return ref, false, err
	}
	switch {
	case !ref.known:
		return ref, false, b.failUnknown(ctx, o, id)
	case ref.gone:
		b.fail(o, o.refers(id, fault.ReferenceUnknown, "is no longer kept: the years of its record are over"))
	case ref.op == nil && ref.open > 0 && id != o.referenceID:
		return ref, false, b.block(ctx, o, id)
	case ref.op == nil && ref.open > 0:
		return ref, false, b.block(ctx, o, "")
	case ref.op == nil:
		b.fail(o, o.refers(id, fault.ReferenceNotSuccessful, "did not succeed"))
	case ref.op.kind == transaction.Cancellation:
		b.fail(o, o.refers(id, fault.UnsupportedOperation, "is a cancellation, which nothing corrects"))
	case ref.op.kind == transaction.PaymentReport && o.kind != transaction.Cancellation:
		b.fail(o, o.refers(id, fault.UnsupportedOperation, "is a payment, which can be cancelled and not corrected"))
	case ref.op.code != o.code:
		b.fail(o, fault.At("country_code", fault.ValidationMatchInvalid, "differs from the original's, %s", ref.op.code))
	default:
		return ref, true, nil
	}
	return ref, false, nil
}

// failUnknown ends a correction of nothing, after asking again where writes go:
// a read may come from a server that no longer leads.
func (b *batch) failUnknown(ctx context.Context, o *operation, id string) error {
	var ref reference
	err := b.db.Write(ctx, func(tx *db.Tx) (err error) {
		ref, err = b.lookUp(tx, o.scope, id)
		return err
	})
	if err == nil && ref.known {
		err = fmt.Errorf("transaction %s %w for this connection", id, errMissing)
	}
	if err == nil {
		b.fail(o, o.refers(id, fault.ReferenceUnknown, "is not known"))
	}
	return err
}

// refers says what is wrong with a transaction that an operation refers to, where
// the client named it.
func (o *operation) refers(id string, code fault.Code, what string) fault.Fault {
	field := "reference_transaction_id"
	if o.document != nil && len(o.document.Shares) > 1 {
		i := slices.IndexFunc(o.document.Shares, func(s transaction.Share) bool { return s.TransactionID == id })
		field = fmt.Sprintf("references.%d.transaction_id", max(i, 0))
	}
	return fault.At(field, code, "%s", what)
}

// otherCurrency refuses amounts that cannot be added up with the original's. A
// backfill may have none.
func otherCurrency(o, original *operation) *fault.Fault {
	if o.whole() || original.document == nil || original.document.CurrencyCode == "" || strings.EqualFold(o.document.CurrencyCode, original.document.CurrencyCode) {
		return nil
	}
	f := fault.At("currency_code", fault.ValidationMatchInvalid, "differs from the original's, %s", original.document.CurrencyCode)
	return &f
}

// deadline refuses corrections after the country's last day for them.
func (b *batch) deadline(o, original *operation) *fault.Fault {
	c, ok := b.pack.Facts.Correction(o.kind)
	if !ok || c.Days == 0 || original.document == nil {
		return nil
	}
	last := original.document.Date.AddDate(0, 0, c.Days)
	if !b.db.Wall().After(last) {
		return nil
	}
	f := o.refers(original.transactionID, fault.UnsupportedOperation, fmt.Sprintf("could be corrected in this way only until %s", last.Format("2006-01-02")))
	return &f
}

// inherit completes a correction from its original: supplier, and for credits
// and cancellations parties, items and currency.
func (b *batch) inherit(ctx context.Context, o *operation, ref reference) (goOn bool, err error) {
	itemless := ref.op.kind == transaction.PaymentReport || ref.op.kind == transaction.Period
	if o.whole() && !itemless && (ref.op.supplierID == "" || len(ref.op.document.Items) == 0) {
		b.fail(o, o.refers(o.referenceID, fault.UnsupportedOperation, "was backfilled without supplier or items, so it can only be adjusted"))
		return false, nil
	}
	if o.supplierID == "" {
		return false, b.move(ctx, o, ref.op.supplierID)
	}
	if ref.op.supplierID != "" && ref.op.supplierID != o.supplierID {
		b.fail(o, fault.At("supplier.id", fault.ValidationMatchInvalid, "is not the supplier of the original"))
		return false, nil
	}
	if o.whole() {
		o.complete(ref.op)
	}
	if o.document.Number == "" {
		o.document.Number = uniqueNumber(o.code, o.id)
	}
	o.original, o.earlier = ref.original(), nil
	if goOn, err := b.inPeriod(ctx, o, ref.op.id); err != nil || !goOn {
		return false, err
	}
	return b.meetEarlier(ctx, o, o.referenceID, o.original)
}

// original is what a pack learns of a transaction that others refer to.
func (ref reference) original() *country.Original {
	original := &country.Original{
		Transaction: *ref.op.document, Totals: ref.op.totals, UniqueNumber: uniqueNumber(ref.op.code, ref.op.id),
		Report: ref.filing.Report, Backfilled: ref.op.kind == transaction.Backfill,
	}
	if ref.result != nil {
		original.AuthorityID1, original.AuthorityID2 = text(ref.result.AuthorityID1), text(ref.result.AuthorityID2)
	}
	return original
}

// lookUp reads what is known of a transaction that others refer to.
func (s *Service) lookUp(r db.Reader, scope, transactionID string) (ref reference, err error) {
	var successID *string
	err = r.Row("SELECT open, success_id FROM transactions WHERE client_id = $1 AND transaction_id = $2", scope, transactionID).Scan(&ref.open, &successID)
	if errors.Is(err, db.ErrNoRows) {
		return ref, nil
	}
	ref.known = true
	if err != nil || successID == nil {
		return ref, err
	}
	if ref.gone, err = retired(r, *successID); err != nil || ref.gone {
		return ref, err
	}
	o, err := s.operation(r, scope, *successID)
	if err != nil {
		return ref, err
	}
	ref.op = o
	var report []byte
	var filing string
	switch err := r.Row("SELECT report, filing FROM filings WHERE operation_id = $1", o.id).Scan(&report, &filing); {
	case err == nil:
		if ref.filing, err = ReadFiling(filing, report); err != nil {
			return ref, err
		}
	case !errors.Is(err, db.ErrNoRows):
		return ref, err
	}
	ref.result, err = StoredResult(r, o.id)
	return ref, err
}

// operation reads one operation with its body; a credit or cancellation is
// completed from its own original, so that it can be corrected or shown again.
func (s *Service) operation(r db.Reader, scope, id string) (*operation, error) {
	o, err := scanOperation(r.Row("SELECT "+operationFields+" FROM operations WHERE operation_id = $1 AND client_id = $2", id, scope).Scan)
	if err != nil {
		return nil, err
	}
	var warnings *string
	if err := r.Row("SELECT body, warnings, coalesce(customer, '') FROM bodies WHERE operation_id = $1", id).Scan(&o.body, &warnings, &o.customer); err != nil {
		return nil, fmt.Errorf("read the body of %s: %w", id, err)
	}
	o.warnings = ReadFaults(warnings)
	if err := o.decode(); err != nil {
		return nil, err
	}
	if o.incomplete() {
		ref, err := s.lookUp(r, scope, o.referenceID)
		if err != nil || ref.op == nil {
			return o, err
		}
		o.complete(ref.op)
	}
	return o, nil
}

// block lets a correction wait until its original is settled, or with behind
// another correction of it. Its 48 hours begin anew when it goes on.
//
// Failure policy: what it waits for may settle between our look and this write;
// so the write looks again, under the lock of that transaction's row, and
// otherwise leaves the operation due. Corrections that wait for each other would
// wait for ever: blocks of one client are made one by one, and the one that
// would close a circle fails.
func (b *batch) block(ctx context.Context, o *operation, behind string) error {
	circle, waitsFor := false, cmp.Or(behind, o.referenceID)
	err := b.commit(ctx, func(time.Time) []transition {
		if circle {
			return nil
		}
		return []transition{o.to(blocked, db.Null(behind))}
	}, func(tx *db.Tx) (err error) {
		if err := tx.Lock("blocks|" + o.scope); err != nil {
			return err
		}
		if circle, err = closesCircle(tx, o, waitsFor); err != nil || circle {
			return err
		}
		return tx.Exec("UPDATE transactions SET open = open WHERE client_id = $1 AND transaction_id = $2", o.scope, waitsFor)
	})
	switch {
	case err != nil:
		return fmt.Errorf("wait for the original: %w", err)
	case circle:
		b.fail(o, o.refers(waitsFor, fault.ReferenceNotSuccessful, "waits for this transaction itself"))
	default:
		// Not uncounted: where the original has just settled, the count is still raised.
		b.moved = append(b.moved, o)
	}
	return nil
}

// closesCircle follows what an operation would wait for, and what that waits for itself.
func closesCircle(tx *db.Tx, o *operation, waitsFor string) (bool, error) {
	seen := map[string]bool{}
	for id := waitsFor; !seen[id]; {
		seen[id] = true
		var next string
		err := tx.Row("SELECT coalesce(behind, reference_id) FROM operations WHERE client_id = $1 AND transaction_id = $2 AND stage = 'blocked' LIMIT 1", o.scope, id).Scan(&next)
		if errors.Is(err, db.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("follow references: %w", err)
		}
		if next == o.transactionID {
			return true, nil
		}
		id = next
	}
	return false, nil
}

// move sends a correction that names no supplier to the lane of the original's.
func (b *batch) move(ctx context.Context, o *operation, supplierID string) error {
	b.moved = append(b.moved, o)
	to := Place{Scope: o.scope, Code: o.code, Live: o.live, SupplierID: supplierID}
	lane := to.Lane(shardFor(o.id, o.document, b.pack, lanesOf(b.cfg.Atlas, b.pack, o.live)))
	return b.commit(ctx, func(time.Time) []transition { return []transition{o.to(moved, lane, supplierID)} }, func(tx *db.Tx) error {
		tx.Wake(laneQueue.Table)
		return nil
	})
}
