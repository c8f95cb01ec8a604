package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// poll asks for decisions on pending filings. After a call without an answer
// the others are not asked: they stay due and the lane rests.
func (b *batch) poll(ctx context.Context) error {
	if b.limits.Tells {
		return b.storePending(ctx) // there is nobody to ask
	}
	asked := b.pending
	b.pending = nil
	var again []*operation
	for _, o := range asked {
		if b.resting() {
			break
		}
		call, cancel := b.callContext(ctx)
		began := b.db.Now()
		r, err := b.channel.Poll(call, o.filing, o.receipt, b.creds)
		r, err = r.Bounded(), country.BoundedError(err)
		cancel()
		b.record(exchange{verb: "poll", at: began, ops: []*operation{o}, receipts: []country.Receipt{r}, err: err, traffic: country.TrafficOf(call)})
		switch {
		case errors.Is(err, country.ErrCredentials):
			b.pause(err)
			b.pending = append(b.pending, o)
		case err != nil:
			b.failed(err)
			b.pending = append(b.pending, o)
		default:
			b.recovered()
			if r.Outcome == country.Pending && r.Handle == "" {
				r.Handle = o.receipt.Handle
			}
			if b.answered(o, r) {
				again = append(again, o)
			}
		}
	}
	if err := b.again(ctx, again); err != nil {
		return err
	}
	return b.storePending(ctx)
}

// storePending keeps what Poll needs and says when to ask again.
func (b *batch) storePending(ctx context.Context) error {
	if len(b.pending) == 0 {
		return nil
	}
	ops := b.pending
	b.pending = nil
	var receipts [][]any
	for _, o := range ops {
		receipts = append(receipts, []any{o.id, encodeReceipt(o.receipt)})
	}
	return b.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			list = append(list, o.to(undecided, b.askAt(now, o), b.doubtOf(now, o)))
		}
		return list
	}, func(tx *db.Tx) error {
		if err := tx.UpdateEach("UPDATE filings SET receipt = $2 WHERE operation_id = $1", receipts); err != nil {
			return err
		}
		if err := b.keepSaid(tx, ops); err != nil {
			return err
		}
		if b.limits.Tells {
			return b.raiseSilence(tx, ops)
		}
		return b.raiseOverdue(tx, ops, alert.AwaitingAcceptance24h, alert.AwaitingAcceptance48h)
	})
}

// askAt is when a pending operation is looked at next. One whose authority tells
// by itself is left alone until its silence is too long; then a person decides,
// or the authority speaks after all.
func (b *batch) askAt(now time.Time, o *operation) any {
	switch end := o.sentAt.Add(b.limits.PendingMax); {
	case !b.limits.Tells:
		return db.Micros(now.Add(b.pollPause(o)))
	case b.limits.PendingMax > 0 && end.After(now):
		return db.Micros(end)
	}
	return nil
}

// raiseSilence alerts of operations of which an authority that tells by itself
// has said nothing for longer than it ever takes.
func (b *batch) raiseSilence(tx *db.Tx, ops []*operation) error {
	for _, o := range ops {
		if b.doubtOf(tx.Now(), o) != string(fault.OutcomeUnknown) {
			continue
		}
		if err := b.cfg.Alerts.RaiseOnceIn(tx, o.startedAt, alert.Alert{Name: alert.OutcomeUnknown48h, Subject: o.id,
			Message: fmt.Sprintf("the authority took operation %s %s ago and has said nothing since", o.id, tx.Now().Sub(o.sentAt).Round(time.Minute))}); err != nil {
			return err
		}
	}
	return nil
}

// doubtOf is the warning a pending operation shows. Past the pack's own
// deadline nobody waits for an acceptance any more: the outcome is unknown
// until the authority says otherwise.
func (b *batch) doubtOf(now time.Time, o *operation) string {
	switch {
	case b.limits.PendingMax > 0 && !o.sentAt.IsZero() && now.Sub(o.sentAt) >= b.limits.PendingMax:
		return string(fault.OutcomeUnknown)
	case o.receipt.Awaiting:
		return string(fault.AwaitingAcceptance)
	}
	return ""
}

// pollPause is between two polls: doubling up to the same five minutes as retries.
func (b *batch) pollPause(o *operation) time.Duration {
	pause := b.limits.PollEvery
	if pause == 0 {
		pause = b.cfg.RetryBase
	}
	return b.doubled(pause, o.tries)
}

// resolve asks the authority about filings whose answer was lost. Nothing is
// sent again before it said that it does not have them.
//
// Failure policy: found with our hash is adopted; found with another is
// FAILURE, never SUCCESS; not found, after the authority's own visibility
// delay, sends the same bytes again; no answer, or one that does not say what
// is held, leaves everything as it is.
func (b *batch) resolve(ctx context.Context) error {
	asked := b.ambiguous
	b.ambiguous = nil
	inOrder(asked) // asking about a link is sending it again where a chain has no other question
	var unknown, later []*operation
	for _, o := range asked {
		switch {
		case b.sameBytes() && b.db.Now().Before(o.sentAt.Add(b.limits.VisibleAfter)):
			later = append(later, o) // it may yet speak of the first by itself
			continue
		case b.sameBytes():
			o.doubtful = true
			b.outgoing = append(b.outgoing, o) // the authority recognises the same bytes itself
			continue
		case b.limits.Class == country.ByNothing, b.resting():
			unknown = append(unknown, o)
			continue
		}
		r, err := b.find(ctx, o)
		switch {
		case errors.Is(err, country.ErrCredentials):
			b.pause(err)
			unknown = append(unknown, o)
		case err != nil:
			b.failed(err)
			unknown = append(unknown, o)
		case r.Outcome == country.Absent && b.db.Now().Before(o.sentAt.Add(b.limits.VisibleAfter)):
			later = append(later, o)
		case r.Outcome == country.Absent:
			o.told = true
			b.outgoing = append(b.outgoing, o)
		case r.Outcome == "", r.Outcome == country.NotTaken, r.SHA256 == "" && r.Outcome != country.Rejected:
			if b.ordered {
				b.failed(errors.New("the authority does not say what it holds")) // nothing overtakes it
			}
			unknown = append(unknown, o)
		case r.SHA256 != "" && !b.ours(o, r):
			b.recovered()
			b.fail(o, numberUsed(r))
		default:
			b.recovered()
			b.adopt(o, r)
		}
	}
	if err := b.stayUnknown(ctx, unknown); err != nil {
		return err
	}
	return b.lookLater(ctx, later)
}

// sameBytes reports whether the authority is asked about a filing by sending it again.
func (b *batch) sameBytes() bool {
	return b.limits.Class == country.ByHash || b.limits.Class == country.ByKey
}

func (b *batch) find(ctx context.Context, o *operation) (r country.Receipt, err error) {
	call, cancel := b.callContext(ctx)
	defer cancel()
	began := b.db.Now()
	r, err = b.channel.Find(call, o.filing, b.creds)
	r, err = r.Bounded(), country.BoundedError(err)
	b.record(exchange{verb: "find", at: began, ops: []*operation{o}, receipts: []country.Receipt{r}, err: err, traffic: country.TrafficOf(call)})
	return r, err
}

// adopt takes what the authority holds as the answer we lost.
func (b *batch) adopt(o *operation, r country.Receipt) {
	if r.Outcome == country.Accepted && r.AuthorityID1 == "" {
		r.Faults = append(r.Faults, fault.Warn("", fault.AuthorityIDUnavailable, "the document is registered; its id was in an answer that got lost"))
	}
	r.Duplicate = false
	o.told = r.Outcome == country.Rejected
	b.answered(o, r)
}

// stayUnknown keeps operations PROCESSING: nobody knows whether they are registered.
func (b *batch) stayUnknown(ctx context.Context, ops []*operation) error {
	if len(ops) == 0 {
		return nil
	}
	return b.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			// A ladder of its own: one filing that cannot be found must not hold up its lane.
			due, doubt := any(db.Micros(now.Add(b.Backoff(max(1, o.tries))))), ""
			if b.ordered {
				due = db.Micros(chainDue(o))
			}
			if now.Sub(o.startedAt) >= hopelessAfter {
				doubt = string(fault.OutcomeUnknown)
			}
			if b.limits.Class == country.ByNothing {
				due, doubt = nextAlert(now, o), string(fault.OutcomeUnknown) // nobody can be asked: a person decides
			}
			list = append(list, o.to(unknown, due, doubt))
		}
		return list
	}, func(tx *db.Tx) error {
		return b.raiseOverdue(tx, ops, alert.OutcomeUnknown24h, alert.OutcomeUnknown48h)
	})
}

// nextAlert is when an operation that only a person can end is looked at next.
func nextAlert(now time.Time, o *operation) any {
	for _, after := range []time.Duration{doubtfulAfter, hopelessAfter} {
		if at := o.startedAt.Add(after); at.After(now) {
			return db.Micros(at)
		}
	}
	return nil
}

// lookLater waits for the authority's visibility delay. In a chain the lane
// waits with it: nothing overtakes a link that may be missing.
func (b *batch) lookLater(ctx context.Context, ops []*operation) error {
	if len(ops) == 0 {
		return nil
	}
	return b.commit(ctx, func(time.Time) (list []transition) {
		for _, o := range ops {
			due := o.sentAt.Add(b.limits.VisibleAfter)
			if b.ordered {
				b.rest = maxTime(b.rest, due)
				due = chainDue(o)
			}
			list = append(list, o.to(notYetShown, db.Micros(due)))
		}
		return list
	})
}

// raiseOverdue alerts once per operation at 24 and once at 48 hours.
func (b *batch) raiseOverdue(tx *db.Tx, ops []*operation, doubtful, hopeless alert.Name) error {
	for _, o := range ops {
		age := tx.Now().Sub(o.startedAt)
		name := doubtful
		switch {
		case age >= hopelessAfter:
			name = hopeless
		case age < doubtfulAfter:
			continue
		}
		if err := b.cfg.Alerts.RaiseOnceIn(tx, o.startedAt, alert.Alert{Name: name, Subject: o.id,
			Message: fmt.Sprintf("operation %s has been in stage %s for %s: %s", o.id, o.stage, age.Round(time.Minute), b.trouble)}); err != nil {
			return err
		}
	}
	return nil
}

// loadFilings reads the stored bytes of operations that have them.
func (v *visit) loadFilings(r db.Reader, byID map[string]*operation, ids []string) error {
	rows, err := r.Query("SELECT operation_id, report, filing, receipt FROM filings WHERE "+v.db.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return fmt.Errorf("load filings: %w", err)
	}
	return rows.Each(func(scan func(...any) error) error {
		var id, text string
		var report []byte
		var receipt *string
		if err := scan(&id, &report, &text, &receipt); err != nil {
			return err
		}
		o := byID[id]
		if o.filing, err = ReadFiling(text, report); err != nil {
			return err
		}
		if receipt != nil {
			return json.Unmarshal([]byte(*receipt), &o.receipt)
		}
		return nil
	})
}

// expire ends operations of a failing lane that were provably not registered
// in 48 hours; what is in a chain stays, its place is taken. It goes on until
// none is left: a long outage must not be paid by the hour.
func (v *visit) expire(ctx context.Context) error {
	chained := 0
	if v.chained {
		chained = 1
	}
	for v.at.Scope != "" && ctx.Err() == nil {
		var old []*operation
		err := v.db.Read(ctx, func(r db.Reader) (err error) {
			limit := db.Micros(r.Now().Add(-hopelessAfter))
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
			if old, err = db.Collect(r, scanOperation, "SELECT "+operationFields+" FROM operations WHERE "+v.db.In("operation_id", "$1"), db.Strings(ids)); err != nil {
				return err
			}
			return v.load(r, old)
		})
		if err != nil {
			return fmt.Errorf("look for hopeless operations: %w", err)
		}
		if len(old) == 0 {
			return nil
		}
		next := &batch{visit: v}
		for _, o := range old {
			next.fail(o, v.hopeless())
		}
		if err := next.storeOutcomes(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
