package filing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
)

// poll asks for decisions on pending filings. After a call without an answer
// the others are not asked: they stay due and the lane rests.
func poll(ctx context.Context, b *batch) error {
	if b.v.lane.limits.Tells {
		return storePending(ctx, b) // there is nobody to ask
	}
	asked := b.pending
	b.pending = nil
	var again []*op
	for _, o := range asked {
		if b.v.resting() {
			break
		}
		call, cancel := exchange.Bounded(ctx, b.v.lane.limits)
		began := b.v.now()
		r, err := b.v.lane.channel.Poll(call, o.filing, o.receipt, b.v.lane.creds)
		r, err = r.Bounded(), country.BoundedError(err)
		cancel()
		b.record(exchange.Call{Verb: "poll", At: began, Operations: []string{o.ID}, Receipts: []country.Receipt{r}, Err: err, Traffic: country.TrafficOf(call)})
		switch {
		case b.v.spent(o, err):
			b.pending = append(b.pending, o)
		case errors.Is(err, country.ErrCredentials):
			b.v.pause(err)
			b.pending = append(b.pending, o)
		case err != nil:
			b.v.failed(err)
			b.pending = append(b.pending, o)
		default:
			b.v.health.recovered()
			if r.Outcome == country.Pending && r.Handle == "" {
				r.Handle = o.receipt.Handle
			}
			if answered(b, o, r) {
				again = append(again, o)
			}
		}
	}
	if err := b.again(ctx, again); err != nil {
		return err
	}
	return storePending(ctx, b)
}

// storePending keeps what Poll needs and says when to ask again.
func storePending(ctx context.Context, b *batch) error {
	if len(b.pending) == 0 {
		return nil
	}
	ops := b.pending
	b.pending = nil
	var receipts [][]any
	for _, o := range ops {
		receipts = append(receipts, []any{o.ID, operation.EncodeReceipt(o.receipt)})
	}
	return b.v.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			list = append(list, o.to(undecided, askAt(b, now, o), doubtOf(b, now, o)))
		}
		return list
	}, func(tx *db.Tx) error {
		if err := tx.UpdateEach("UPDATE filings SET receipt = $2 WHERE operation_id = $1", receipts); err != nil {
			return err
		}
		if err := keepSaid(b, tx, ops); err != nil {
			return err
		}
		if b.v.lane.limits.Tells {
			return raiseSilence(b, tx, ops)
		}
		return b.v.raiseOverdue(tx, ops, alert.AwaitingAcceptance24h, alert.AwaitingAcceptance48h)
	})
}

// keepSaid stores what came with receipts that decide nothing. Its events wait
// for the completed event, see writeNews.
func keepSaid(b *batch, tx *db.Tx, ops []*op) error {
	handles := make([]lifecycle.Handle, len(ops))
	for i, o := range ops {
		if _, err := b.v.s.life.Append(tx, lifecycle.Of(&o.Accepted), o.receipt.News); err != nil {
			return err
		}
		handles[i] = lifecycle.Handle{Name: o.receipt.Handle, Of: &o.Accepted}
	}
	if !b.v.lane.pack.Speaks() && !b.v.lane.limits.Named {
		return nil
	}
	return lifecycle.KeepHandles(tx, handles)
}

// askAt is when a pending operation is looked at next. One whose authority tells
// by itself is left alone until its silence is too long; then a person decides,
// or the authority speaks after all.
func askAt(b *batch, now time.Time, o *op) any {
	switch end := o.sentAt.Add(b.v.lane.limits.PendingMax); {
	case !b.v.lane.limits.Tells:
		return db.Micros(maxTime(now.Add(pollPause(b, o)), o.notBefore))
	case b.v.lane.limits.PendingMax > 0 && end.After(now):
		return db.Micros(end)
	}
	return nil
}

// raiseSilence alerts of operations of which an authority that tells by itself
// has said nothing for longer than it ever takes.
func raiseSilence(b *batch, tx *db.Tx, ops []*op) error {
	for _, o := range ops {
		if doubtOf(b, tx.Now(), o) != string(fault.OutcomeUnknown) {
			continue
		}
		if err := b.v.s.cfg.Alerts.RaiseOnceIn(tx, o.startedAt, alert.Alert{Name: alert.OutcomeUnknown48h, Subject: o.ID,
			Message: fmt.Sprintf("the authority took operation %s %s ago and has said nothing since", o.ID, tx.Now().Sub(o.sentAt).Round(time.Minute))}); err != nil {
			return err
		}
	}
	return nil
}

// doubtOf is the warning a pending operation shows. Past the pack's own
// deadline nobody waits for an acceptance any more: the outcome is unknown
// until the authority says otherwise.
func doubtOf(b *batch, now time.Time, o *op) string {
	switch {
	case b.v.lane.limits.PendingMax > 0 && !o.sentAt.IsZero() && now.Sub(o.sentAt) >= b.v.lane.limits.PendingMax:
		return string(fault.OutcomeUnknown)
	case o.receipt.Awaiting:
		return string(fault.AwaitingAcceptance)
	case o.notBefore.After(now):
		return string(fault.AuthorityWait)
	}
	return ""
}

// pollPause is between two polls: doubling up to the same five minutes as retries.
func pollPause(b *batch, o *op) time.Duration {
	pause := b.v.lane.limits.PollEvery
	if pause == 0 {
		pause = b.v.s.cfg.RetryBase
	}
	return b.v.s.pauses.Doubled(pause, o.tries)
}

// askHeld asks the authority about filings whose answer was lost. Nothing is
// sent again before it said that it does not have them.
//
// Failure policy: found with our hash is adopted; found with another is
// FAILURE, never SUCCESS; not found, after the authority's own visibility
// delay, sends the same bytes again; no answer, or one that does not say what
// is held, leaves everything as it is.
//
// It answers the filings that may go again: those that the authority certainly
// does not hold, and those that it recognises by their bytes.
func askHeld(ctx context.Context, b *batch) (resend []*op, err error) {
	asked := b.ambiguous
	b.ambiguous = nil
	inOrder(asked) // asking about a link is sending it again where a chain has no other question
	var unknown, later []*op
	for _, o := range asked {
		switch {
		case b.v.lane.sameBytes() && b.v.now().Before(o.sentAt.Add(b.v.lane.limits.VisibleAfter)):
			later = append(later, o) // it may yet speak of the first by itself
			continue
		case b.v.lane.sameBytes():
			o.doubtful = true
			resend = append(resend, o) // the authority recognises the same bytes itself
			continue
		case b.v.lane.limits.Class == country.ByNothing:
			o.unasked = true
			unknown = append(unknown, o)
			continue
		case b.v.resting():
			unknown = append(unknown, o)
			continue
		}
		asked := b.v.now()
		o.filing.LostAt = b.v.readAfter(o)
		r, err := find(ctx, b, o)
		switch {
		case errors.Is(err, country.ErrNotAskable):
			o.unasked = true
			unknown = append(unknown, o)
		case b.v.spent(o, err):
			unknown = append(unknown, o)
		case errors.Is(err, country.ErrCredentials):
			b.v.pause(err)
			unknown = append(unknown, o)
		case err != nil:
			b.v.failed(err)
			unknown = append(unknown, o)
		case r.Outcome == country.Absent && asked.Before(o.sentAt.Add(b.v.lane.limits.VisibleAfter)):
			later = append(later, o)
		case r.Outcome == country.Absent:
			o.told = true
			resend = append(resend, o)
		case r.Outcome == "", r.Outcome == country.NotTaken, r.SHA256 == "" && r.Outcome != country.Rejected:
			if b.v.lane.ordered() {
				b.v.failed(errors.New("the authority does not say what it holds")) // nothing overtakes it
			}
			unknown = append(unknown, o)
		case r.SHA256 != "" && !b.v.lane.ours(o, r):
			b.v.health.recovered()
			b.fail(o, numberUsed(r))
		default:
			b.v.health.recovered()
			adopt(b, o, r)
		}
	}
	forgiveSilence(b, asked)
	if err := b.v.stayUnknown(ctx, unknown); err != nil {
		return nil, err
	}
	return resend, lookLater(ctx, b, later)
}

// readAfter is from when on what is read of the authority tells that it does not have a
// filing: the call was over then, by this visit's knowledge or by its time-out, and where
// it should be shown by now it was shown.
func (v *visit) readAfter(o *op) time.Time {
	age, limits, now := v.now().Sub(o.sentAt), &v.lane.limits, time.Now()
	after := v.lostAt
	if over := now.Add(limits.CallTimeout - age); limits.CallTimeout > 0 && over.Before(after) {
		after = over
	}
	if age >= limits.VisibleAfter {
		after = maxTime(after, now.Add(limits.VisibleAfter-age))
	}
	return after
}

// forgiveSilence takes back the failure that a call without an answer counted,
// where nobody can be asked: each of its filings says by itself that its outcome is
// unknown, none is filed again, and the lane stands still for nothing.
func forgiveSilence(b *batch, asked []*op) {
	if b.silent == nil || slices.ContainsFunc(asked, func(o *op) bool { return !o.unasked }) {
		return
	}
	was := b.silent
	b.v.health.failures, b.v.health.reason, b.v.health.trouble, b.v.health.failing = was.failures, was.reason, was.trouble, was.failing
}

// resolve asks about filings whose answer an earlier visit lost.
func resolve(ctx context.Context, b *batch) error {
	resend, err := askHeld(ctx, b)
	b.outgoing = append(b.outgoing, resend...)
	return err
}

// resolveLost asks at once about answers that were lost just now. What the
// authority does not have goes again after a pause, as every retry does.
func resolveLost(ctx context.Context, b *batch) error {
	if len(b.ambiguous) == 0 {
		return nil
	}
	b.v.lostAt = time.Now()
	lost, err := askHeld(ctx, b)
	if err != nil {
		return err
	}
	if len(lost) > 0 && b.v.health.failures > 0 {
		b.v.backOff()
	}
	return b.again(ctx, lost)
}

func find(ctx context.Context, b *batch, o *op) (r country.Receipt, err error) {
	call, cancel := exchange.Bounded(ctx, b.v.lane.limits)
	defer cancel()
	began := b.v.now()
	r, err = b.v.lane.channel.Find(call, o.filing, b.v.lane.creds)
	r, err = r.Bounded(), country.BoundedError(err)
	b.record(exchange.Call{Verb: "find", At: began, Operations: []string{o.ID}, Receipts: []country.Receipt{r}, Err: err, Traffic: country.TrafficOf(call)})
	return r, err
}

// adopt takes what the authority holds as the answer we lost.
func adopt(b *batch, o *op, r country.Receipt) {
	if r.Outcome == country.Accepted && r.AuthorityID1 == "" {
		r.Faults = append(r.Faults, fault.Warn("", fault.AuthorityIDUnavailable, "the document is registered; its id was in an answer that got lost"))
	}
	r.Duplicate = false
	o.told = r.Outcome == country.Rejected
	answered(b, o, r)
}

// lookLater waits for the authority's visibility delay. In a chain the lane
// waits with it: nothing overtakes a link that may be missing.
func lookLater(ctx context.Context, b *batch, ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	return b.v.commit(ctx, func(time.Time) (list []transition) {
		for _, o := range ops {
			due := o.sentAt.Add(b.v.lane.limits.VisibleAfter)
			if b.v.lane.ordered() {
				b.v.restUntil(due)
				due = chainDue(o)
			}
			list = append(list, o.to(notYetShown, db.Micros(due)))
		}
		return list
	})
}

// dispatch gives an operation that has its bytes to the step that it
// needs: a decision that came by itself is an answer like any other.
func dispatch(b *batch, o *op) {
	switch {
	case o.word != nil:
		b.record(exchange.Call{Verb: "told", At: b.v.now(), Operations: []string{o.ID}, Receipts: []country.Receipt{*o.word}})
		adopt(b, o, *o.word)
	case o.stage == Prepared:
		b.outgoing = append(b.outgoing, o)
	case o.stage == Sent:
		b.ambiguous = append(b.ambiguous, o)
	default:
		b.pending = append(b.pending, o)
	}
}
