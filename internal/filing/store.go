package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/chain"
	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/killpoint"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
)

// storePrepared fixes bytes and chain positions: from here on they never change.
func (d *drafting) storePrepared(ctx context.Context) error {
	b := d.b
	for len(b.ready) > 0 {
		stored, err := d.tryPrepared(ctx)
		if err != nil {
			return fmt.Errorf("store prepared filings: %w", err)
		}
		for o, verdict := range stored.left {
			if _, err := act(ctx, b, o, verdict); err != nil {
				return err
			}
		}
		if stored.torn {
			if err := d.prepareAgain(ctx, stored.left); err != nil {
				return err
			}
			continue
		}
		b.ready = nil
		for _, o := range stored.kept {
			switch {
			case o.gap != nil:
				b.settle(adopted(o))
			case o.filing.Report == nil:
				b.settle(outcome{op: o, status: Success, faults: o.gather.Warnings(o.Correction())}) // nothing to file
			default:
				b.outgoing = append(b.outgoing, o)
			}
		}
		b.v.s.reached(killpoint.Prepared, b.v.lease.ID)
	}
	return nil
}

// storing is what became of operations that were ready.
type storing struct {
	kept []*op
	left map[*op]correction.Verdict // why they were left out
	torn bool                       // later links of a chain were built on one that was left out: nothing is stored
}

// errTorn undoes a write of links; it is rare: two corrections of one original in one batch.
var errTorn = errors.New("a correction was left out in the middle of a chain")

// tryPrepared stores what is ready. A correction that the original does not
// allow, or not yet, is left out; in a chain that undoes the write, because later
// links were built on it.
func (d *drafting) tryPrepared(ctx context.Context) (s storing, err error) {
	b, v := d.b, d.b.v
	ready := make([]*operation.Operation, len(b.ready))
	for i, o := range b.ready {
		ready[i] = o.Operation
	}
	err = v.commit(ctx, func(time.Time) []transition { return preparedNow(v, s.kept) }, func(tx *db.Tx) error {
		s = storing{left: map[*op]correction.Verdict{}}
		if err := correction.Lock(tx, ready); err != nil {
			return err
		}
		for _, o := range b.ready {
			verdict, err := reserve(tx, v, o)
			if err != nil {
				return err
			}
			if verdict == (correction.Verdict{}) {
				s.kept = append(s.kept, o)
			} else {
				s.left[o] = verdict
			}
		}
		if v.lane.chained() && len(s.left) > 0 {
			return errTorn
		}
		return d.insertFilings(tx, s.kept)
	})
	if errors.Is(err, errTorn) {
		s.torn, err = true, nil
	}
	return s, err
}

// reserve enters an operation in the account of its originals, and in its period.
func reserve(tx *db.Tx, v *visit, o *op) (correction.Verdict, error) {
	verdict, err := correction.Reserve(tx, correction.Claim{Operation: o.Operation, References: o.refs, Effect: o.filing.Effect, Effects: o.filing.Effects,
		InSuccession: v.lane.limits.InSuccession, Adopted: o.gap != nil})
	if err == nil && verdict == (correction.Verdict{}) {
		verdict.Again, err = v.s.periods.Enlist(tx, o.Operation, o.gather)
	}
	return verdict, err
}

// prepareAgain builds the links anew, from the stored head and without those left out.
func (d *drafting) prepareAgain(ctx context.Context, left map[*op]correction.Verdict) error {
	b := d.b
	list := b.ready
	b.ready, d.chain, d.chainRead, d.head = nil, country.Link{}, false, 0
	for _, o := range list {
		if _, out := left[o]; out {
			continue
		}
		if o.gap != nil {
			b.ready = append(b.ready, o)
			continue
		}
		o.filing = country.Filing{}
		if !isFiled(b.v, o) || o.gather.Waits {
			b.ready = append(b.ready, o)
		} else if err := d.draft(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// insertFilings stores the bytes, and in a chain its new head.
func (d *drafting) insertFilings(tx *db.Tx, ops []*op) error {
	v := d.b.v
	var filings [][]any
	var handles []lifecycle.Handle
	for _, o := range ops {
		if o.filing.Report != nil {
			filings = append(filings, []any{o.ID, o.filing.Report, o.filing.SHA256, operation.EncodeFiling(o.filing)})
		}
		for _, name := range append([]string{o.filing.DedupeKey}, o.filing.Aliases...) {
			handles = append(handles, lifecycle.Handle{Name: name, Of: &o.Accepted})
		}
	}
	if len(filings) == 0 {
		return nil
	}
	if err := tx.Insert("filings", "operation_id,report,sha256,filing", filings...); err != nil {
		return err
	}
	if v.lane.pack.Speaks() {
		if err := lifecycle.KeepHandles(tx, handles); err != nil {
			return err
		}
	}
	if !v.lane.chained() {
		return nil
	}
	return chain.Store(tx, v.lease.ID, d.head, d.chain)
}

// preparedNow moves those with bytes; those without are settled.
func preparedNow(v *visit, ops []*op) (list []transition) {
	for _, o := range ops {
		if o.filing.Report == nil {
			continue
		}
		due := o.dueAt
		if v.lane.chained() {
			due = chainDue(o)
		}
		list = append(list, o.to(prepared, o.SupplierID, v.lane.pack.Version, db.Micros(due)))
	}
	return list
}

// readChain loads the head of the lane's chain.
func (d *drafting) readChain(ctx context.Context) error {
	if d.chainRead {
		return nil
	}
	err := d.b.v.s.db.ReadEach(ctx, func(r db.Reader) (err error) {
		d.chain, err = chain.HeadOf(r, d.b.v.lease.ID)
		return err
	})
	d.head, d.chainRead = d.chain.Position, err == nil
	return err
}

// storeRetries puts off operations that could not be prepared. Each counts
// twice, because it is known to be the cause: a body that makes the pack panic
// ends in quarantine after the third time. Those held
// back for their supplier's credentials stay due; their lane rests.
func storeRetries(ctx context.Context, b *batch) error {
	if len(b.retry) == 0 {
		return nil
	}
	err := b.v.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range b.retry {
			list = append(list, o.to(putOff, db.Micros(now.Add(b.v.s.Pause((o.crashes+1)/2)))))
		}
		return list
	})
	if err != nil {
		return fmt.Errorf("put off operations: %w", err)
	}
	return nil
}
