package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lifecycle"
	"tributary/internal/result"
)

// send files what is prepared. Stage `sent` is on disk before the first byte leaves.
func send(ctx context.Context, b *batch) error {
	if len(b.outgoing) == 0 || b.v.resting() || len(b.broken) > 0 {
		return nil
	}
	inOrder(b.outgoing)
	ops := b.outgoing[:min(len(b.outgoing), max(1, b.v.lane.limits.Batch))]
	b.outgoing = b.outgoing[len(ops):]
	if err := markSent(ctx, b, ops); err != nil {
		return err
	}
	b.v.s.reached(killpoint.Sent, b.v.lease.ID)
	filings := make([]country.Filing, len(ops))
	for i, o := range ops {
		filings[i] = o.filing
	}
	call, cancel := exchange.Bounded(ctx, b.v.lane.limits)
	began, wall := b.v.now(), time.Now()
	receipts, err := b.v.lane.channel.Send(call, filings, b.v.lane.creds)
	cancel()
	err = country.BoundedError(err)
	for i := range receipts {
		receipts[i] = receipts[i].Bounded()
	}
	b.v.s.reached(killpoint.Answered, b.v.lease.ID)
	if err == nil && len(receipts) != len(ops) {
		err = fmt.Errorf("%d receipts for %d filings", len(receipts), len(ops))
	}
	b.record(exchange.Call{Verb: "send", At: began, Operations: idsOf(ops), Receipts: receipts, Err: err, Traffic: country.TrafficOf(call)})
	if err != nil {
		return sendFailed(ctx, b, ops, err)
	}
	b.v.health.recovered()
	b.v.applyThrottle(b.v.lane.limits.Wait)
	compareClocks(ctx, b, receipts, wall)
	var again []*op
	for i, o := range ops {
		if answered(b, o, receipts[i]) {
			again = append(again, o)
		}
	}
	return b.again(ctx, again)
}

// markSent stores that bytes may leave. The crash count stays raised: a filing
// that ends the process while it is sent must be recognised.
func markSent(ctx context.Context, b *batch, ops []*op) error {
	earlier, again := make([]exchange.Mark, len(ops)), false
	for i, o := range ops {
		earlier[i], again = exchange.Mark{OperationID: o.ID, At: o.sentAt}, again || !o.sentAt.IsZero()
	}
	if again { // what is known of the sendings before stands before their marks go
		if err := b.storeEvidence(ctx); err != nil {
			return err
		}
	}
	return b.v.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			o.sentAt = now
			list = append(list, o.to(marked, db.Micros(now)))
		}
		return list
	}, func(tx *db.Tx) error { return exchange.KeepMarks(tx, b.v.s.db, b.v.lease.ID, earlier) })
}

// skewMax is how far an authority's clock may be from ours before a person is told.
const skewMax = time.Minute

// compareClocks looks at the authority's own time in a fresh registration.
func compareClocks(ctx context.Context, b *batch, receipts []country.Receipt, began time.Time) {
	for _, r := range receipts {
		if r.Outcome != country.Accepted || r.Duplicate || r.At.IsZero() {
			continue
		}
		now := time.Now()
		if r.At.Add(skewMax).Before(began) || r.At.After(now.Add(skewMax)) {
			raiseSkew(ctx, b, fmt.Sprintf("the authority of %s says it is %s, this machine %s", b.v.lane.pack.Code, result.Stamp(r.At), result.Stamp(now)))
		}
		return // one answer, one clock
	}
}

// raiseSkew tells of a wrong clock once a day: every answer would say it again.
func raiseSkew(ctx context.Context, b *batch, message string) {
	err := b.v.s.db.Write(ctx, func(tx *db.Tx) error {
		return b.v.s.cfg.Alerts.RaiseOnceIn(tx, tx.Now().Add(-24*time.Hour), alert.Alert{Name: alert.ClockSkew, Subject: b.v.lane.pack.Code, Message: message})
	})
	if err != nil {
		b.v.s.log.Error("raise an alert", "error", err)
	}
}

// answered turns a receipt into an outcome; true when the same bytes must go again.
func answered(b *batch, o *op, r country.Receipt) (again bool) {
	o.receipt = r
	b.v.applyThrottle(r.Wait)
	switch {
	case r.Outcome == country.NotTaken:
		return true
	case r.Duplicate && !b.v.lane.ours(o, r):
		if r.SHA256 == "" && b.v.lane.askable() {
			b.ambiguous = append(b.ambiguous, o) // "already received" without content: ask which
			return false
		}
		b.fail(o, numberUsed(r))
	case r.Outcome == country.Accepted:
		if r.ChainBroken {
			remarkChain(b, o)
		}
		b.settle(outcome{op: o, status: Success, receipt: r, faults: r.Faults})
	case r.Outcome == country.Rejected && r.Duplicate && o.doubtful && r.SHA256 == "":
		// It refuses what it has: the echo of the first sending, whose answer was lost.
		r.Outcome = country.Accepted
		o.receipt = r
		b.settle(outcome{op: o, status: Success, receipt: r, faults: echoed(r.Faults)})
	case r.Outcome == country.Rejected && r.ChainBroken && b.v.lane.chained():
		b.broken = append(b.broken, o)
	case r.Outcome == country.Rejected:
		b.settle(outcome{op: o, status: Failure, receipt: r, faults: lifecycle.Rejection(r)})
		stopAtRefusal(b, o, r)
	case r.Outcome == country.Pending:
		b.pending = append(b.pending, o)
	default:
		b.ambiguous = append(b.ambiguous, o)
	}
	return false
}

// echoed says what a filing was told that was sent again after a lost answer.
func echoed(said []fault.Fault) []fault.Fault {
	warnings := []fault.Fault{fault.Warn("", fault.AuthorityRemark,
		"it was sent again because the answer to it was lost; the tax authority says that it has one already, which is taken for the first")}
	for _, f := range said {
		warnings = append(warnings, fault.Warn(f.Field, fault.AuthorityRemark, "%s", f.Message))
	}
	return warnings
}

func numberUsed(r country.Receipt) fault.Fault {
	text := "the tax authority holds another document under this number"
	if r.AuthorityID1 != "" {
		text += " (" + r.AuthorityID1 + ")"
	}
	return fault.Fault{Code: fault.AuthorityNumberUsed, Type: fault.TaxAuthority, Field: "transaction_number", Message: text}
}

// sendFailed decides what a call without answer means for its filings.
func sendFailed(ctx context.Context, b *batch, ops []*op, err error) error {
	switch {
	case b.v.exhausted(err) != nil:
		return b.again(ctx, ops)
	case errors.Is(err, country.ErrCredentials):
		b.v.pause(err)
		return b.again(ctx, ops)
	case errors.Is(err, country.ErrNotTaken):
		b.v.failed(err)
		return b.again(ctx, ops)
	}
	b.v.s.log.Warn("no clean answer from the authority", "lane", b.v.lease.ID, "filings", len(ops), "error", err)
	before := b.v.health
	b.silent = &before
	b.v.health.countFailure(err)
	b.ambiguous = append(b.ambiguous, ops...)
	return nil
}
