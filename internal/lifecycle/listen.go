package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/lease"
	"tributary/internal/operation"
)

// listensAtOnce is how many documents are asked for at the same time; of one
// supplier one after another.
const listensAtOnce = 8

// listenQueue leases documents whose authority is asked for news.
var listenQueue = &lease.Queue[listened]{
	Table: "listening", ID: "operation_id", Key: "lane", Columns: "until, looks, failures",
	Scan: func(scan func(...any) error) (l listened, err error) {
		var until int64
		err = scan(&until, &l.looks, &l.failures)
		l.until = db.FromMicros(until)
		return l, err
	},
}

// listened is what a claim reads of a row.
type listened struct {
	until    time.Time
	looks    int64
	failures int64
}

// Listen lets the authority be asked for news of operations of a lane.
func (c *Cycle) Listen(tx *db.Tx, lane string, l country.Listening, ids []string) error {
	if l.For <= 0 || len(ids) == 0 {
		return nil
	}
	rows := make([][]any, len(ids))
	for i, id := range ids {
		rows[i] = []any{id, lane, db.Micros(tx.Now().Add(l.For)), db.Micros(tx.Now().Add(min(look(l, c.Pauses, 0), l.For)))}
	}
	tx.Wake(listenQueue.Table)
	return tx.Insert("listening", "operation_id,lane,until,due_at", rows...)
}

// look is when the n-th look for news is made, ±20 %: a day's documents must not all be asked for in one minute.
func look(l country.Listening, pauses exchange.Ladder, n int64) time.Duration {
	pauses.Most = max(l.Most, l.First)
	return pauses.Spread(pauses.Doubled(l.First, n+1))
}

// Listener asks for news.
type Listener struct {
	*Cycle
	Poll    time.Duration     // between looks at idle rows, see lease.Pump
	Reached func(lane string) // after each look, for tests
}

// Run asks for news until ctx ends.
//
// Failure policy: a look that brings nothing, for whatever reason, is made again
// later; what was said is stored with the end of the look, and saying it twice
// changes nothing. So nothing is lost while the authority keeps saying it, and
// when nobody listens any more the row goes.
func (l *Listener) Run(ctx context.Context) {
	pump := &lease.Pump[listened]{
		DB: l.DB, Queue: listenQueue, Log: l.Log, InFlight: listensAtOnce, Poll: l.Poll, Work: l.work,
		Room: func(string) int { return 1 },
	}
	if err := pump.Run(ctx); err != nil && ctx.Err() == nil {
		l.Log.Error("listen for news", "error", err)
	}
}

// work makes one look for one document.
func (l *Listener) work(ctx context.Context, lease *lease.Lease[listened]) {
	q := &inquiry{l: l, lease: lease}
	x := exchange.Call{Verb: "listen", At: l.DB.Now(), Operations: []string{lease.ID}}
	said, wait, err := q.ask(ctx)
	if ctx.Err() != nil {
		return // its lease ends, and it is asked for again
	}
	var used *country.Exhausted
	if errors.As(err, &used) { // a pause like one that the authority asks for
		wait, err = l.DB.Now().Add(used.Until.Sub(l.DB.Wall())), nil
	}
	if err != nil {
		l.Log.Warn("listen for news", "operation", lease.ID, "error", err)
	}
	x.Receipts, x.Err = []country.Receipt{said}, err
	err = l.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error { return q.store(tx, x, wait) })
	if err != nil && !errors.Is(err, db.ErrStale) {
		l.Log.Error("store news", "operation", lease.ID, "error", err)
	}
	l.Reached(lease.Key)
}

// inquiry is one look.
type inquiry struct {
	l      *Listener
	lease  *lease.Lease[listened]
	limits country.Limits
	about  Subject
	filing country.Filing
	last   country.Receipt
}

// ask asks the authority. wait is a pause that it asked for before, instead of an answer.
func (q *inquiry) ask(ctx context.Context) (said country.Receipt, wait time.Time, err error) {
	at, err := operation.ParseLane(q.lease.Key)
	if err != nil {
		return said, wait, err
	}
	channel, err := q.l.Atlas.Channel(at.Code, at.Live)
	if err != nil {
		return said, wait, err
	}
	q.limits = channel.Limits()
	if wait, err = q.read(ctx); err != nil || wait.After(q.l.DB.Now()) {
		return said, wait, err
	}
	creds, err := q.l.Companies.Credentials(ctx, at.Scope, at.SupplierID)
	if err != nil {
		return said, wait, fmt.Errorf("open the supplier's credentials: %w", err)
	}
	call, cancel := exchange.Bounded(ctx, q.limits)
	defer cancel()
	err = country.Safely("ask for news", func() (err error) {
		said, err = channel.Poll(call, q.filing, q.last, creds)
		said, err = said.Bounded(), country.BoundedError(err)
		return err
	})
	return said, time.Time{}, err
}

// read loads what Poll needs, and until when the supplier's lane is asked to be silent.
func (q *inquiry) read(ctx context.Context) (wait time.Time, err error) {
	err = q.l.DB.Read(ctx, func(r db.Reader) error {
		var report []byte
		var text, receipt string
		err := r.Row(`SELECT o.operation_id, o.client_id, o.transaction_id, o.status = 'SUCCESS', f.report, f.filing, coalesce(f.receipt, '{}'), x.asked_until
			FROM operations o JOIN filings f ON f.operation_id = o.operation_id LEFT JOIN lanes x ON x.lane = $2 WHERE o.operation_id = $1`, q.lease.ID, q.lease.Key).
			Scan(&q.about.ID, &q.about.Scope, &q.about.TransactionID, &q.about.Succeeded, &report, &text, &receipt,
				db.NullInstant(&wait))
		if err != nil {
			return err
		}
		if q.filing, err = operation.ReadFiling(text, report); err != nil {
			return err
		}
		return json.Unmarshal([]byte(receipt), &q.last)
	})
	if err != nil {
		err = fmt.Errorf("read the filing of %s: %w", q.lease.ID, err)
	}
	return wait, err
}

// store keeps what was said and says when the next look is; past the end nobody listens.
func (q *inquiry) store(tx *db.Tx, x exchange.Call, wait time.Time) error {
	now, row := tx.Now(), q.lease.Row
	next := wait
	switch {
	case x.Err != nil:
		row.failures++
		next = now.Add(q.l.Pauses.Pause(row.failures))
	case wait.IsZero():
		row.looks, row.failures = row.looks+1, 0
		next = now.Add(look(q.limits.Listen, q.l.Pauses, row.looks))
		said := x.Receipts[0]
		if news := append(said.News, contradiction(said)...); len(news) > 0 {
			if err := q.l.Announce(tx, q.about, news); err != nil {
				return err
			}
			if err := x.Record(q.l.DB, q.lease.Key)(tx); err != nil {
				return err
			}
		}
	}
	over := !now.Before(row.until)
	if !over && next.After(row.until) {
		next = row.until // the last look
	}
	if err := q.lease.Finish(tx, next); err != nil {
		return err
	}
	if over {
		return tx.Exec("DELETE FROM listening WHERE operation_id = $1", q.lease.ID)
	}
	return tx.Exec("UPDATE listening SET looks = $1, failures = $2 WHERE operation_id = $3", row.looks, row.failures, q.lease.ID)
}
