package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/lease"
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

// beginListening lets the authority be asked for news of successes.
func (b *batch) beginListening(tx *db.Tx, byID map[string]*operation, ids []string) error {
	l := b.limits.Listen
	if l.For <= 0 {
		return nil
	}
	var rows [][]any
	for _, id := range ids {
		if byID[id].filing.Number != "" {
			rows = append(rows, []any{id, b.lease.ID, db.Micros(tx.Now().Add(l.For)), db.Micros(tx.Now().Add(min(b.look(l, 0), l.For)))})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	tx.Wake(listenQueue.Table)
	return tx.Insert("listening", "operation_id,lane,until,due_at", rows...)
}

// listen asks for news until ctx ends.
//
// Failure policy: a look that brings nothing, for whatever reason, is made again
// later; what was said is stored with the end of the look, and saying it twice
// changes nothing. So nothing is lost while the authority keeps saying it, and
// when nobody listens any more the row goes.
func (s *Service) listen(ctx context.Context) {
	pump := &lease.Pump[listened]{
		DB: s.db, Queue: listenQueue, Log: s.log, InFlight: listensAtOnce, Poll: s.poll, Work: s.hearOf,
		Room: func(string) int { return 1 },
	}
	if err := pump.Run(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("listen for news", "error", err)
	}
}

// hearOf makes one look for one document.
func (s *Service) hearOf(ctx context.Context, lease *lease.Lease[listened]) {
	began := s.db.Now()
	l := &listener{Service: s, lease: lease}
	said, wait, err := l.ask(ctx)
	if ctx.Err() != nil {
		return // its lease ends, and it is asked for again
	}
	if err != nil {
		s.log.Warn("listen for news", "operation", lease.ID, "error", err)
	}
	x := exchange{verb: "listen", at: began, ops: []*operation{{id: lease.ID}}, receipts: []country.Receipt{said}, err: err}
	err = s.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error { return l.store(tx, x, wait) })
	if err != nil && !errors.Is(err, db.ErrStale) {
		s.log.Error("store news", "operation", lease.ID, "error", err)
	}
	s.reached("listened", lease.Key)
}

// listener is one look.
type listener struct {
	*Service
	lease  *lease.Lease[listened]
	limits country.Limits
	about  subject
	filing country.Filing
	last   country.Receipt
}

// ask asks the authority. wait is a pause that it asked for before, instead of an answer.
func (l *listener) ask(ctx context.Context) (said country.Receipt, wait time.Time, err error) {
	at, err := ParseLane(l.lease.Key)
	if err != nil {
		return said, wait, err
	}
	channel, err := l.cfg.Atlas.Channel(at.Code, at.Live)
	if err != nil {
		return said, wait, err
	}
	l.limits = channel.Limits()
	if wait, err = l.read(ctx); err != nil || wait.After(l.db.Now()) {
		return said, wait, err
	}
	creds, err := l.cfg.Companies.Credentials(ctx, at.Scope, at.SupplierID)
	if err != nil {
		return said, wait, fmt.Errorf("open the supplier's credentials: %w", err)
	}
	call, cancel := callContext(ctx, l.limits)
	defer cancel()
	err = safely("ask for news", func() (err error) {
		said, err = channel.Poll(call, l.filing, l.last, creds)
		said, err = said.Bounded(), country.BoundedError(err)
		return err
	})
	return said, time.Time{}, err
}

// read loads what Poll needs, and until when the supplier's lane is asked to be silent.
func (l *listener) read(ctx context.Context) (wait time.Time, err error) {
	err = l.db.Read(ctx, func(r db.Reader) error {
		var report []byte
		var text, receipt string
		err := r.Row(`SELECT o.operation_id, o.client_id, o.transaction_id, o.status = 'SUCCESS', f.report, f.filing, coalesce(f.receipt, '{}'), x.asked_until
			FROM operations o JOIN filings f ON f.operation_id = o.operation_id LEFT JOIN lanes x ON x.lane = $2 WHERE o.operation_id = $1`, l.lease.ID, l.lease.Key).
			Scan(&l.about.id, &l.about.scope, &l.about.transactionID, &l.about.succeeded, &report, &text, &receipt, db.NullInstant(&wait))
		if err != nil {
			return err
		}
		if l.filing, err = ReadFiling(text, report); err != nil {
			return err
		}
		return json.Unmarshal([]byte(receipt), &l.last)
	})
	if err != nil {
		err = fmt.Errorf("read the filing of %s: %w", l.lease.ID, err)
	}
	return wait, err
}

// store keeps what was said and says when the next look is; past the end nobody listens.
func (l *listener) store(tx *db.Tx, x exchange, wait time.Time) error {
	now, row := tx.Now(), l.lease.Row
	next := wait
	switch {
	case x.err != nil:
		row.failures++
		next = now.Add(l.Backoff(row.failures))
	case wait.IsZero():
		row.looks, row.failures = row.looks+1, 0
		next = now.Add(l.look(l.limits.Listen, row.looks))
		said := x.receipts[0]
		if news := append(said.News, contradiction(said)...); len(news) > 0 {
			if err := l.announce(tx, l.about, news); err != nil {
				return err
			}
			if err := l.evidenceOf(l.lease.Key, x)(tx); err != nil {
				return err
			}
		}
	}
	over := !now.Before(row.until)
	if !over && next.After(row.until) {
		next = row.until // the last look
	}
	if err := l.lease.Finish(tx, next); err != nil {
		return err
	}
	if over {
		return tx.Exec("DELETE FROM listening WHERE operation_id = $1", l.lease.ID)
	}
	return tx.Exec("UPDATE listening SET looks = $1, failures = $2 WHERE operation_id = $3", row.looks, row.failures, l.lease.ID)
}
