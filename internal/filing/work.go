package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
)

// visitBatches is how many batches one visit works; then the lane goes to the back.
const visitBatches = 16

// visit works a lane until nothing is due, the authority asks for a pause, or
// others should have their turn.
//
// Failure policy: whatever goes wrong here leaves the operations in a stored
// stage from which the next visit goes on; nothing is decided by the fact that
// a visit ended.
func (s *Service) visit(ctx context.Context, lease *lease.Lease[laneState]) {
	defer s.reached(killpoint.Left, lease.ID)
	v := newVisit(s, lease)
	ctx = db.WorkOf(ctx, v.lane.at.Scope)
	defer v.tellOthers(context.WithoutCancel(ctx))
	if stale := work(ctx, v); stale || v.left {
		return // somebody else holds the lane now, or it was given back already
	}
	if ctx.Err() != nil {
		// Our own end cut the visit short; that says nothing about the authority.
		v.health.failures, v.health.reason, v.health.trouble, v.health.rest = lease.Row.failures, lease.Row.reason, lease.Row.trouble, time.Time{}
	}
	err := s.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error { return v.leave(tx, v.leftover) })
	if err != nil && !errors.Is(err, db.ErrStale) {
		s.log.Error("leave a lane", "lane", lease.ID, "error", err)
	}
}

// work opens the lane, moves what is due and, while the authority brings nothing,
// ends what is hopeless. stale: somebody else holds the lane now.
func work(ctx context.Context, v *visit) (stale bool) {
	held, err := moveDue(ctx, v)
	switch {
	case errors.Is(err, db.ErrStale):
		return true
	case err != nil && ctx.Err() == nil:
		v.s.log.Error("work a lane", "lane", v.lease.ID, "error", err)
		v.failed(err)
		if (v.health.reason == fault.AuthorityError || v.health.reason == fault.AuthorityUnreachable) && !errors.Is(err, country.ErrNotTaken) {
			v.health.reason = fault.InternalError // a call that fails is told where it is made: this is our own store
		}
	}
	if held || ctx.Err() != nil || v.health.failures == 0 {
		return false
	}
	return errors.Is(expire(ctx, v), db.ErrStale)
}

// moveDue works batches; true: nothing of the supplier may be filed.
func moveDue(ctx context.Context, v *visit) (held bool, err error) {
	if err := v.open(ctx); err != nil {
		return false, err
	}
	if v.rests() {
		return true, nil
	}
	v.mindBreaker()
	for n := 0; n < visitBatches && ctx.Err() == nil; n++ {
		if more, err := moveBatch(ctx, v); err != nil || !more {
			return false, err
		}
		if v.givesWay() {
			break
		}
	}
	return false, nil
}

// moveBatch moves one set of operations as far as it will go now; true when more may be due.
func moveBatch(ctx context.Context, v *visit) (more bool, err error) {
	ops, full, err := take(ctx, v)
	defer v.freeBytes()
	b := &batch{v: v, ops: ops, full: full}
	if err == nil {
		err = run(ctx, b)
	}
	v.leftover = append(v.leftover, b.uncounted(nil)...)
	if err != nil {
		// What the authority said is evidence, whoever holds the lane now.
		return false, errors.Join(err, b.storeEvidence(context.WithoutCancel(ctx)))
	}
	return !v.left && !v.resting() && b.more(), nil
}

// run takes every operation as far as it goes, one stored stage after the other.
func run(ctx context.Context, b *batch) error {
	d := &drafting{b: b}
	if err := begin(ctx, d); err != nil {
		return err
	}
	if err := d.storePrepared(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *batch) error{
		storeRetries, poll, resolve, send, resolveLost, storePending, storeOutcomes, mendChain, storeOutcomes,
	} {
		if err := step(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// begin gives every operation to the step that its stage asks for.
func begin(ctx context.Context, d *drafting) error {
	b := d.b
	for _, o := range b.ops {
		switch o.stage {
		case Received:
			if err := d.prepare(ctx, o); err != nil {
				return err
			}
		case Prepared, Sent, Pending:
			dispatch(b, o)
		case Quarantined:
			b.fail(o, internal())
		default:
			return fmt.Errorf("operation %s is due in stage %s", o.ID, o.stage)
		}
	}
	return nil
}

// expire ends operations of a failing lane that were provably not registered
// in 48 hours; what is in a chain stays, its place is taken. It goes on until
// none is left: a long outage must not be paid by the hour.
func expire(ctx context.Context, v *visit) error {
	chained := 0
	if v.lane.chained() {
		chained = 1
	}
	for v.lane.at.Scope != "" && ctx.Err() == nil {
		var old []*op
		err := v.s.db.Read(ctx, func(r db.Reader) (err error) {
			limit := db.Micros(r.Now().Add(-HopelessAfter))
			due, err := db.Collect(r, func(scan func(...any) error) (c candidate, err error) { return c, scan(&c.id, &c.bytes) },
				`SELECT operation_id, bytes FROM operations WHERE lane = $1 AND due_at <= $2
				AND coalesce(started_at, due_at) <= $2 AND (stage = 'received' OR stage = 'prepared' AND $3 = 0) ORDER BY due_at LIMIT 200`, v.lease.ID, limit, chained)
			if err != nil || len(due) == 0 {
				return err
			}
			var ids []string
			for _, c := range within(due, takenBytesMax) {
				ids = append(ids, c.id)
			}
			if old, err = db.Collect(r, scanOp, "SELECT "+opFields+" FROM operations WHERE "+v.s.db.In("operation_id", "$1"), db.Strings(ids)); err != nil {
				return err
			}
			return load(r, v.s.db, old, v.lane.pack.Speaks())
		})
		if err != nil {
			return fmt.Errorf("look for hopeless operations: %w", err)
		}
		if len(old) == 0 {
			return nil
		}
		next := &batch{v: v}
		for _, o := range old {
			next.fail(o, v.health.hopeless())
		}
		if err := storeOutcomes(ctx, next); err != nil {
			return err
		}
	}
	return ctx.Err()
}
