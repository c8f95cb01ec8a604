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
	ref, goOn, err := b.referred(ctx, o, o.referenceID)
	if err != nil || !goOn {
		return false, err
	}
	if f := otherCurrency(o, ref.op); f != nil {
		b.fail(o, *f)
		return false, nil
	}
	if f := b.deadline(o, ref.op); f != nil {
		b.fail(o, *f)
		return false, nil
	}
	return b.inherit(ctx, o, ref)
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
		b.fail(o, refers(fault.ReferenceUnknown, "is no longer kept: the years of its record are over"))
	case ref.op == nil && ref.open > 0 && id != o.referenceID:
		return ref, false, b.block(ctx, o, id)
	case ref.op == nil && ref.open > 0:
		return ref, false, b.block(ctx, o, "")
	case ref.op == nil:
		b.fail(o, refers(fault.ReferenceNotSuccessful, "did not succeed"))
	case ref.op.kind == transaction.Cancellation:
		b.fail(o, refers(fault.UnsupportedOperation, "is a cancellation, which nothing corrects"))
	case ref.op.kind == transaction.PaymentReport && o.kind != transaction.Cancellation:
		b.fail(o, refers(fault.UnsupportedOperation, "is a payment, which can be cancelled and not corrected"))
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
		b.fail(o, refers(fault.ReferenceUnknown, "is not known"))
	}
	return err
}

func refers(code fault.Code, what string) fault.Fault {
	return fault.At("reference_transaction_id", code, "%s", what)
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
	f := refers(fault.UnsupportedOperation, fmt.Sprintf("could be corrected in this way only until %s", last.Format("2006-01-02")))
	return &f
}

// inherit completes a correction from its original: supplier, and for credits
// and cancellations parties, items and currency.
func (b *batch) inherit(ctx context.Context, o *operation, ref reference) (goOn bool, err error) {
	itemless := ref.op.kind == transaction.PaymentReport || ref.op.kind == transaction.Period
	if o.whole() && !itemless && (ref.op.supplierID == "" || len(ref.op.document.Items) == 0) {
		b.fail(o, refers(fault.UnsupportedOperation, "was backfilled without supplier or items, so it can only be adjusted"))
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
	circle := false
	err := b.commit(ctx, func(time.Time) []transition {
		if circle {
			return nil
		}
		return []transition{o.to(blocked, db.Null(behind))}
	}, func(tx *db.Tx) (err error) {
		if err := tx.Lock("blocks|" + o.scope); err != nil {
			return err
		}
		waitsFor := cmp.Or(behind, o.referenceID)
		if circle, err = closesCircle(tx, o, waitsFor); err != nil || circle {
			return err
		}
		return tx.Exec("UPDATE transactions SET open = open WHERE client_id = $1 AND transaction_id = $2", o.scope, waitsFor)
	})
	switch {
	case err != nil:
		return fmt.Errorf("wait for the original: %w", err)
	case circle:
		b.fail(o, refers(fault.ReferenceNotSuccessful, "waits for this transaction itself"))
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

// lockOriginals orders the writes that enter corrections of the same originals;
// always in one order, so that two of them never wait for each other.
func lockOriginals(tx *db.Tx, ops []*operation) error {
	var names []string
	for _, o := range ops {
		for _, id := range o.refersTo() {
			names = append(names, "original|"+o.scope+"|"+id)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := tx.Lock(name); err != nil {
			return err
		}
	}
	return nil
}

// booked is a correction in its original's book.
type booked struct {
	transactionID string
	whole         bool
	cancelled     bool // it was withdrawn altogether
	amount        int64
	done          bool // it succeeded; else it is on its way
}

// readBook reads the other corrections of an operation's original. One that was
// itself taken back as a whole no longer counts, but for what stays of it: a
// substitution that was credited has still taken its original back.
func readBook(tx *db.Tx, o *operation) ([]booked, error) {
	const takenBack = `EXISTS (SELECT 1 FROM corrections x JOIN operations p ON p.operation_id = x.operation_id WHERE x.client_id = c.client_id
				AND x.original_id = c.transaction_id AND p.status = 'SUCCESS' AND x.kind = `
	list, err := db.Collect(tx, func(scan func(...any) error) (b booked, err error) {
		return b, scan(&b.transactionID, &b.whole, &b.cancelled, &b.amount, &b.done)
	}, `SELECT c.transaction_id, c.kind IN ('CREDIT', 'CANCELLATION'), c.kind = 'CANCELLATION', CASE WHEN `+takenBack+`'CREDIT') THEN c.rest ELSE c.amount END, o.status = 'SUCCESS'
		FROM corrections c JOIN operations o ON o.operation_id = c.operation_id
		WHERE c.client_id = $1 AND c.original_id = $2 AND c.transaction_id <> $3 AND c.kind <> 'PAYMENT'
			AND NOT `+takenBack+`'CANCELLATION') AND (c.rest <> 0 OR NOT `+takenBack+`'CREDIT'))
		ORDER BY c.operation_id`, o.scope, o.referenceID, o.transactionID)
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}

// reserved is whether a correction may be filed now: it may, or it may never,
// or what is on its way decides.
type reserved struct {
	refused *fault.Fault
	behind  string // transaction to wait for
	again   bool   // another one ended since it was prepared, which it does not know
}

// reserve enters a correction in the original's book, or says why it cannot
// be: one full credit or one cancellation, and adjustments within its sum; what
// the authority holds already is entered in any case. What only corrections
// that are still on their way forbid waits for them. The caller holds the
// original's lock.
func (b *batch) reserve(tx *db.Tx, o *operation) (reserved, error) {
	if !o.correction() {
		return reserved{}, nil
	}
	if o.kind == transaction.PaymentReport {
		return b.reservePayment(tx, o)
	}
	effect := effectOf(o)
	if o.gap == nil {
		if why, err := b.inSuccession(tx, o); err != nil || why != (reserved{}) {
			return why, err
		}
		book, err := readBook(tx, o)
		if err != nil {
			return reserved{}, err
		}
		var done []booked
		open := ""
		for _, c := range book {
			if c.done {
				done = append(done, c)
			} else {
				open = cmp.Or(open, c.transactionID)
			}
		}
		if effect.Exact && open != "" {
			return reserved{behind: open}, nil // what is left is not known yet
		}
		if f := forbids(done, o.original, effect); f != nil {
			return reserved{refused: f}, nil
		}
		if f := forbids(book, o.original, effect); f != nil {
			return reserved{behind: open}, nil
		}
	}
	return reserved{}, enter(tx, o, o.referenceID, effect)
}

// enter writes an operation in the book of a transaction that it refers to.
func enter(tx *db.Tx, o *operation, originalID string, effect country.Effect) error {
	return tx.Exec(`INSERT INTO corrections (client_id, original_id, transaction_id, operation_id, kind, amount, rest) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, original_id, transaction_id) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind,
			amount = excluded.amount, rest = excluded.rest`,
		o.scope, originalID, o.transactionID, o.id, string(o.kind), effect.Amount, effect.Rest)
}

// effectOf is what a correction takes from its original: what its pack says,
// else what it amounts to.
func effectOf(o *operation) country.Effect {
	switch {
	case o.filing.Effect != nil:
		return *o.filing.Effect
	case o.kind != transaction.Adjustment:
		return country.Effect{Amount: -o.original.Totals.Gross}
	}
	return country.Effect{Amount: o.totals.Gross}
}

// forbids says why an amount may not be taken from an original besides the
// corrections in its book; nil: it may.
func forbids(book []booked, original *country.Original, effect country.Effect) *fault.Fault {
	adjusted, amount := int64(0), effect.Amount
	for _, c := range book {
		if c.whole && (c.cancelled || effect != (country.Effect{})) { // what takes nothing mends the record of what was credited
			f := refers(fault.ReferenceAlreadyCorrected, "was already credited or cancelled")
			return &f
		}
		if effect.Alone && c.amount != 0 {
			f := refers(fault.ReferenceAlreadyCorrected, "was corrected by "+c.transactionID+" already: a document that replaces it would not say so. Correct it by the difference, or take that one back first")
			return &f
		}
		adjusted += c.amount
	}
	sum := original.Totals.Gross
	sized := !original.Backfilled || len(original.Transaction.Items) > 0
	if left := sum + adjusted; sized && effect.Exact && left+amount != 0 {
		f := refers(fault.ReferenceExceeded, fmt.Sprintf("has %d left, and what replaces it amounts to %d", left, -amount))
		return &f
	}
	if !sized || !exceeds(sum, adjusted+amount) {
		return nil
	}
	f := refers(fault.ReferenceExceeded, fmt.Sprintf("amounts to %d and would be corrected by %d", sum, adjusted+amount))
	return &f
}

// exceeds reports whether a correction takes more from a sum than there is.
func exceeds(sum, correction int64) bool {
	left := sum + correction
	return sum >= 0 && left < 0 || sum < 0 && left > 0
}
