package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
)

// send files what is prepared. Stage `sent` is on disk before the first byte leaves.
func (b *batch) send(ctx context.Context) error {
	if len(b.outgoing) == 0 || b.resting() || len(b.broken) > 0 {
		return nil
	}
	inOrder(b.outgoing)
	ops := b.outgoing[:min(len(b.outgoing), max(1, b.limits.Batch))]
	b.outgoing = b.outgoing[len(ops):]
	if err := b.markSent(ctx, ops); err != nil {
		return err
	}
	b.reached(killpoint.Sent, b.lease.ID)
	filings := make([]country.Filing, len(ops))
	for i, o := range ops {
		filings[i] = o.filing
	}
	call, cancel := b.callContext(ctx)
	began, wall := b.db.Now(), time.Now()
	receipts, err := b.channel.Send(call, filings, b.creds)
	cancel()
	err = country.BoundedError(err)
	for i := range receipts {
		receipts[i] = receipts[i].Bounded()
	}
	b.reached(killpoint.Answered, b.lease.ID)
	if err == nil && len(receipts) != len(ops) {
		err = fmt.Errorf("%d receipts for %d filings", len(receipts), len(ops))
	}
	b.record(exchange{verb: "send", at: began, ops: ops, receipts: receipts, err: err, traffic: country.TrafficOf(call)})
	if err != nil {
		return b.sendFailed(ctx, ops, err)
	}
	b.recovered()
	b.hush(b.limits.Wait)
	b.compareClocks(ctx, receipts, wall)
	var again []*operation
	for i, o := range ops {
		if b.answered(o, receipts[i]) {
			again = append(again, o)
		}
	}
	return b.again(ctx, again)
}

// markSent stores that bytes may leave. The crash count stays raised: a filing
// that ends the process while it is sent must be recognised.
func (b *batch) markSent(ctx context.Context, ops []*operation) error {
	earlier, again := make([]mark, len(ops)), false
	for i, o := range ops {
		earlier[i], again = mark{o.id, o.sentAt}, again || !o.sentAt.IsZero()
	}
	if again { // what is known of the sendings before stands before their marks go
		if err := b.storeEvidence(ctx); err != nil {
			return err
		}
	}
	return b.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			o.sentAt = now
			list = append(list, o.to(marked, db.Micros(now)))
		}
		return list
	}, func(tx *db.Tx) error { return b.keepMarks(tx, b.lease.ID, earlier) })
}

// hush obeys the pause an authority asks for.
func (b *batch) hush(pause time.Duration) {
	if until := b.db.Now().Add(pause); pause > 0 && until.After(b.wait) {
		b.wait = until
	}
}

// skewMax is how far an authority's clock may be from ours before a person is told.
const skewMax = time.Minute

// compareClocks looks at the authority's own time in a fresh registration.
func (b *batch) compareClocks(ctx context.Context, receipts []country.Receipt, began time.Time) {
	for _, r := range receipts {
		if r.Outcome != country.Accepted || r.Duplicate || r.At.IsZero() {
			continue
		}
		now := time.Now()
		if r.At.Add(skewMax).Before(began) || r.At.After(now.Add(skewMax)) {
			b.raiseSkew(ctx, fmt.Sprintf("the authority of %s says it is %s, this machine %s", b.pack.Code, Stamp(r.At), Stamp(now)))
		}
		return // one answer, one clock
	}
}

// raiseSkew tells of a wrong clock once a day: every answer would say it again.
func (b *batch) raiseSkew(ctx context.Context, message string) {
	err := b.db.Write(ctx, func(tx *db.Tx) error {
		return b.cfg.Alerts.RaiseOnceIn(tx, tx.Now().Add(-24*time.Hour), alert.Alert{Name: alert.ClockSkew, Subject: b.pack.Code, Message: message})
	})
	if err != nil {
		b.log.Error("raise an alert", "error", err)
	}
}

// answered turns a receipt into an outcome; true when the same bytes must go again.
func (b *batch) answered(o *operation, r country.Receipt) (again bool) {
	o.receipt = r
	b.hush(r.Wait)
	switch {
	case r.Outcome == country.NotTaken:
		return true
	case r.Duplicate && !b.ours(o, r):
		if r.SHA256 == "" && b.askable() {
			b.ambiguous = append(b.ambiguous, o) // "already received" without content: ask which
			return false
		}
		b.fail(o, numberUsed(r))
	case r.Outcome == country.Accepted:
		if r.ChainBroken {
			b.remarkChain(o)
		}
		b.settle(outcome{op: o, status: Success, receipt: r, faults: r.Faults})
	case r.Outcome == country.Rejected && r.ChainBroken && b.chained:
		b.broken = append(b.broken, o)
	case r.Outcome == country.Rejected:
		b.settle(outcome{op: o, status: Failure, receipt: r, faults: rejection(r)})
		b.stopAtRefusal(o, r)
	case r.Outcome == country.Pending:
		b.pending = append(b.pending, o)
	default:
		b.ambiguous = append(b.ambiguous, o)
	}
	return false
}

// askable reports whether the authority can be asked what it holds under a number.
func (b *batch) askable() bool {
	return b.limits.Class == country.ByNumber || b.limits.Class == country.ByChain
}

// ours reports whether what the authority holds is what we filed. Where the
// handle itself is ours (a hash or a key of our making) the handle decides.
func (b *batch) ours(o *operation, r country.Receipt) bool {
	if r.SHA256 != "" {
		return r.SHA256 == o.filing.SHA256
	}
	return b.sameBytes()
}

func numberUsed(r country.Receipt) fault.Fault {
	text := "the tax authority holds another document under this number"
	if r.AuthorityID1 != "" {
		text += " (" + r.AuthorityID1 + ")"
	}
	return fault.Fault{Code: fault.AuthorityNumberUsed, Type: fault.TaxAuthority, Field: "transaction_number", Message: text}
}

// rejection is never silent: a refusal without reasons still says that it was one.
func rejection(r country.Receipt) []fault.Fault {
	for _, f := range r.Faults {
		if f.Type != fault.Warning {
			return r.Faults
		}
	}
	return append(r.Faults, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "the tax authority refused the document"})
}

// sendFailed decides what a call without answer means for its filings.
func (b *batch) sendFailed(ctx context.Context, ops []*operation, err error) error {
	switch {
	case errors.Is(err, country.ErrCredentials):
		b.pause(err)
		return b.again(ctx, ops)
	case errors.Is(err, country.ErrNotTaken):
		b.failed(err)
		return b.again(ctx, ops)
	}
	b.log.Warn("no clean answer from the authority", "lane", b.lease.ID, "filings", len(ops), "error", err)
	b.countFailure(err)
	b.ambiguous = append(b.ambiguous, ops...)
	return nil
}

// again puts off filings that the authority did not take this time.
//
// Failure policy: "not taken" speaks of the last call. Where an earlier call is
// unresolved the filing may be registered all the same, so it stays `sent`.
// Only what is provably unregistered goes back to `prepared`, and ends in
// FAILURE after 48 hours; in a chain nothing does, and nothing overtakes it.
func (b *batch) again(ctx context.Context, ops []*operation) error {
	if b.ordered && len(ops) > 0 && !b.resting() {
		b.failed(country.ErrNotTaken)
	}
	var unknown, later []*operation
	for _, o := range ops {
		switch {
		case o.doubtful:
			unknown = append(unknown, o)
		case !b.chained && b.db.Now().Sub(o.startedAt) >= hopelessAfter:
			b.fail(o, b.hopeless())
		default:
			later = append(later, o)
		}
	}
	if err := b.stayUnknown(ctx, unknown); err != nil {
		return err
	}
	return b.postpone(ctx, later)
}

// hopeless is why nothing was registered in 48 hours.
func (v *visit) hopeless() fault.Fault {
	if v.lacksCredentials() {
		return fault.Fault{Code: fault.CredentialsInvalid, Type: fault.TaxAuthority, Message: "the supplier's credentials did not work for 48 hours; nothing was registered"}
	}
	return fault.Fault{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority, Message: "the tax authority could not be reached for 48 hours; nothing was registered"}
}

// resolveLost asks at once about answers that were lost just now. What the
// authority does not have goes again after a pause, as every retry does.
func (b *batch) resolveLost(ctx context.Context) error {
	if len(b.ambiguous) == 0 {
		return nil
	}
	unsent := b.outgoing
	b.outgoing = nil
	err := b.resolve(ctx)
	lost := b.outgoing
	b.outgoing = unsent
	if err != nil {
		return err
	}
	if len(lost) > 0 && b.failures > 0 {
		b.backOff()
	}
	return b.again(ctx, lost)
}
