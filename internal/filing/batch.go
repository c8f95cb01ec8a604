package filing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
)

// batch is a set of operations of one lane on their way through the stages.
type batch struct {
	v         *visit
	ops       []*op   // all of them
	full      bool    // others are due behind them
	ready     []*op   // bytes made in memory, not stored yet
	outgoing  []*op   // stored as prepared, or to be sent once more
	ambiguous []*op   // sent, no clean answer
	pending   []*op   // at the authority, undecided
	silent    *health // how the lane fared before a call that nobody answered; nil: there was none
	broken    []*op   // refused because their links do not follow the authority's last one
	outcomes  []outcome
	moved     []*op // to another lane, or behind their original
	retry     []*op // could not be prepared now
	evidence  []func(tx *db.Tx) error
}

// more reports whether the lane may have others that are due.
func (b *batch) more() bool { return b.full || len(b.moved) > 0 }

func (b *batch) settle(o outcome) { b.outcomes = append(b.outcomes, o) }

func (b *batch) fail(o *op, faults ...fault.Fault) {
	b.settle(outcome{op: o, status: Failure, faults: faults})
}

// uncounted lists operations whose crash count no write has taken back yet,
// besides those that are being settled.
func (b *batch) uncounted(endings []ending) (ids []string) {
	for _, o := range b.ops {
		if o.counted && !slices.ContainsFunc(endings, func(e ending) bool { return e.op == o }) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// record keeps a call. It is evidence, not state: without it nothing is lost.
func (b *batch) record(x exchange.Call) {
	b.learn(x)
	b.evidence = append(b.evidence, x.Record(b.v.s.db, b.v.lease.ID))
	if x.Traffic == nil {
		return // nobody was called
	}
	call := Tallied{Country: b.v.lane.at.Code, Live: b.v.lane.at.Live, Calls: 1, CallsTook: b.v.now().Sub(x.At)}
	if x.Err != nil {
		call.CallsFailed = 1
	}
	b.evidence = append(b.evidence, func(tx *db.Tx) error {
		b.v.s.cfg.Count(tx, []Tallied{call})
		return nil
	})
}

func (b *batch) storeEvidence(ctx context.Context) error {
	if len(b.evidence) == 0 {
		return nil
	}
	list := b.evidence
	b.evidence = nil
	return b.v.s.db.Write(ctx, func(tx *db.Tx) error {
		for _, fn := range list {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// again puts off filings that the authority did not take this time.
//
// Failure policy: "not taken" speaks of the last call. Where an earlier call is
// unresolved the filing may be registered all the same, so it stays `sent`.
// Only what is provably unregistered goes back to `prepared`, and ends in
// FAILURE after 48 hours; in a chain nothing does, and nothing overtakes it.
func (b *batch) again(ctx context.Context, ops []*op) error {
	v := b.v
	if v.lane.ordered() && len(ops) > 0 && !v.resting() {
		v.failed(notTakenFor(ops[0]))
	}
	var unknown, later []*op
	for _, o := range ops {
		switch {
		case o.doubtful:
			unknown = append(unknown, o)
		case !v.lane.chained() && v.now().Sub(o.startedAt) >= HopelessAfter:
			b.fail(o, v.health.hopeless())
		default:
			later = append(later, o)
		}
	}
	if err := v.stayUnknown(ctx, unknown); err != nil {
		return err
	}
	return v.postpone(ctx, later)
}

// postpone stores that operations go on later with the same bytes.
func (v *visit) postpone(ctx context.Context, ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	return v.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			code, said := o.hindrance()
			list = append(list, o.to(notTaken, db.Micros(v.dueAgain(now, o)), code, said))
		}
		return list
	})
}

// dueAgain is when an operation goes on. While the lane rests as a whole the
// operation keeps its place in it.
func (v *visit) dueAgain(now time.Time, o *op) time.Time {
	switch {
	case v.lane.ordered() && o.filing.Link.Position > 0:
		return chainDue(o)
	case v.health.until().After(now):
		return o.AcceptedAt
	}
	return now.Add(v.s.Pause(o.tries + 1))
}

// stayUnknown keeps operations PROCESSING: nobody knows whether they are registered.
func (v *visit) stayUnknown(ctx context.Context, ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	return v.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			// A ladder of its own: one filing that cannot be found must not hold up its lane.
			due, doubt := any(db.Micros(maxTime(now.Add(v.s.Pause(max(1, o.tries))), o.notBefore))), ""
			if o.notBefore.After(now) {
				doubt = string(fault.AuthorityWait)
			}
			if v.lane.ordered() {
				due = db.Micros(chainDue(o))
			}
			if now.Sub(o.startedAt) >= HopelessAfter {
				doubt = string(fault.OutcomeUnknown)
			}
			if o.unasked {
				due, doubt = nextAlert(now, o), string(fault.OutcomeUnknown)
			}
			list = append(list, o.to(unknown, due, doubt))
		}
		return list
	}, func(tx *db.Tx) error {
		return v.raiseOverdue(tx, ops, alert.OutcomeUnknown24h, alert.OutcomeUnknown48h)
	})
}

// nextAlert is when an operation that only a person can end is looked at next.
func nextAlert(now time.Time, o *op) any {
	for _, after := range []time.Duration{DoubtfulAfter, HopelessAfter} {
		if at := o.startedAt.Add(after); at.After(now) {
			return db.Micros(at)
		}
	}
	return nil
}

// raiseOverdue alerts once per operation at 24 and once at 48 hours.
func (v *visit) raiseOverdue(tx *db.Tx, ops []*op, doubtful, hopeless alert.Name) error {
	for _, o := range ops {
		age := tx.Now().Sub(o.startedAt)
		name := doubtful
		switch {
		case age >= HopelessAfter:
			name = hopeless
		case age < DoubtfulAfter:
			continue
		}
		if err := v.s.cfg.Alerts.RaiseOnceIn(tx, o.startedAt, alert.Alert{Name: name, Subject: o.ID,
			Message: fmt.Sprintf("operation %s has been in stage %s for %s: %s", o.ID, o.stage, age.Round(time.Minute), v.health.trouble)}); err != nil {
			return err
		}
	}
	return nil
}
