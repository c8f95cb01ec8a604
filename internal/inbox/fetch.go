package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
)

// Failure policy: a look stores what it brought and the cursor behind it in one
// commit with the end of its lease. A process that dies before makes the same
// look again, and the names of messages make what was stored nothing. A look that
// fails, or brings more than may be, changes nothing but its pause, which doubles
// up to an hour; it asks for fewer messages each time, so that one that is too
// large for a page is met alone. After an hour of failures a person is told.
const (
	looksAtOnce   = 32
	looksPerPlace = 8 // of one authority: one that hangs leaves slots to the others
	lookPauseMax  = time.Hour
	lookWaitMax   = 24 * time.Hour // longer requests of an authority are not believed
	silentFor     = time.Hour
	cursorMax     = 4000
	problemMax    = 1000
)

// Outcomes of the metric tributary_fetches_total.
const (
	fetchBrought = "brought"
	fetchNothing = "nothing"
	fetchFailed  = "failed"
)

// fetch looks into mailboxes until ctx ends. Of one company there is one look at
// a time; clients take turns.
func (i *Inbox) fetch(ctx context.Context) error {
	if err := i.followAll(ctx); err != nil && ctx.Err() == nil {
		i.log.Error("mailboxes of companies onboarded earlier are found at the next start", "error", err)
	}
	pump := &lease.Pump[mailbox]{DB: i.db, Queue: mailboxQueue, Log: i.log, InFlight: looksAtOnce, Work: i.look,
		Room: func(string) int { return 1 }, Class: endpointOf, ClassMost: looksPerPlace}
	return pump.Run(ctx)
}

// looked is what one look came to.
type looked struct {
	country.Fetched
	texts []string      // of the messages, as they are stored
	since time.Time     // of documents: from when on they are wanted
	every time.Duration // the pack's pause
	over  bool          // nothing can wait for the company any more
	err   error
	spent *country.Exhausted // the authority grants no more looks for now
}

// look asks once for one company.
func (i *Inbox) look(ctx context.Context, lease *lease.Lease[mailbox]) {
	m := lease.Row
	got := i.ask(ctx, m)
	if ctx.Err() != nil {
		return // the lease ends, and the same look is made again
	}
	outcome := fetchNothing
	switch {
	case errors.As(got.err, &got.spent):
		got.err = nil
	case got.err != nil:
		outcome = fetchFailed
		i.log.Warn("check a mailbox", "authority", m.at.String(), "company", m.of.SupplierID, "error", got.err)
	case got.brought():
		outcome = fetchBrought
	}
	i.fetches.WithLabelValues(m.at.Code, outcome).Inc()
	err := i.store(context.WithoutCancel(ctx), lease, got)
	if err != nil && !errors.Is(err, db.ErrStale) {
		i.log.Error("store the messages of a mailbox", "authority", m.at.String(), "company", m.of.SupplierID, "error", err)
		return
	}
	if got.brought() {
		killpoint.Reach(killpoint.Heard)
	}
}

func (l *looked) brought() bool { return len(l.Messages)+len(l.Documents) > 0 }

// ask makes the call. Whatever it brings is checked before anything is stored.
func (i *Inbox) ask(ctx context.Context, m mailbox) (got looked) {
	pack, _ := i.cfg.Atlas.Pack(m.at.Code)
	fetch := m.fetch(pack)
	if fetch == nil {
		got.over = true
		return got
	}
	got.every = fetch.Pause()
	in := country.Inquiry{Cursor: m.cursor, Limit: max(1, m.most()>>min(m.failures, 20))}
	got.err = i.db.Read(ctx, func(r db.Reader) (err error) {
		in.Supplier, err = i.cfg.Companies.Supplier(r, m.of.Scope, m.of.SupplierID)
		return err
	})
	if fault.KindOf(got.err) == fault.NotFound || got.err == nil && !i.wanted(&m, fetch, &in) {
		got.over, got.err = true, nil
		return got
	}
	if ahead := in.From.Sub(i.db.Wall()); got.err == nil && ahead > 0 {
		got.Cursor, got.Wait = m.cursor, ahead // the day has not come
		return got
	}
	got.since = in.From
	if got.err == nil {
		in.Channel, got.err = i.cfg.Atlas.Channel(m.at.Code, m.at.Live)
	}
	if got.err == nil {
		in.Credentials, got.err = i.cfg.Companies.Credentials(ctx, m.of.Scope, m.of.SupplierID)
	}
	if got.err != nil {
		return got
	}
	call, cancel := context.WithTimeout(ctx, fetch.Within())
	defer cancel()
	got.Fetched, got.err = i.safely(call, m.at, fetch, in)
	switch {
	case got.err != nil:
	case m.documents:
		got.err = soundDocuments(got.Fetched, in.Limit)
	default:
		got.texts, got.err = sound(m.at, got.Fetched, in.Limit)
	}
	if got.err != nil {
		got.Fetched = country.Fetched{}
	}
	return got
}

// safely asks the pack; its panic is a look that failed.
func (i *Inbox) safely(ctx context.Context, at country.Environment, f *country.Fetch,
	in country.Inquiry) (got country.Fetched, err error) {
	defer func() {
		if p := recover(); p != nil {
			i.log.Error("a pack panicked while checking a mailbox", "authority", at.String(), "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err = errors.New("the pack panicked")
		}
	}()
	return f.Look(ctx, in)
}

// sound refuses what a look may not bring, and encodes the rest.
func sound(at country.Environment, got country.Fetched, limit int) ([]string, error) {
	if len(got.Messages) > limit {
		return nil, fmt.Errorf("the mailbox returned %d messages, %d were requested", len(got.Messages), limit)
	}
	if len(got.Cursor) > cursorMax || !db.Storable(got.Cursor) {
		return nil, fmt.Errorf("the cursor of %d bytes is too long", len(got.Cursor))
	}
	if err := namedRight(at, got.Messages); err != nil {
		return nil, err
	}
	texts, err := encode(at, got.Messages)
	if err != nil {
		return nil, err
	}
	size := 0
	for n := range texts {
		size += len(texts[n]) + len(got.Messages[n].Raw)
	}
	if size > country.FetchBytesMax {
		return nil, fmt.Errorf("the messages of one fetch have %d bytes, more than %d", size, country.FetchBytesMax)
	}
	return texts, nil
}

// store stores the end of a look with everything that it brought, in one commit.
func (i *Inbox) store(ctx context.Context, lease *lease.Lease[mailbox], got looked) error {
	if len(got.Documents) > 0 {
		return i.cfg.TakeDocuments(ctx, deliveries(&lease.Row, got.Documents), func(tx *db.Tx, _ []string, fresh int) error {
			return i.keep(tx, lease, got, fresh)
		})
	}
	return i.db.Write(ctx, func(tx *db.Tx) error {
		switch {
		case got.err != nil:
			return i.keepFailure(tx, lease, got)
		case got.spent != nil:
			return i.keepWait(tx, lease, got.spent)
		}
		fresh, err := i.insert(tx, lease.Row.at, lease.Row.of, batch{messages: got.Messages, texts: got.texts})
		if err != nil {
			return err
		}
		return i.keep(tx, lease, got, fresh)
	})
}

// keep moves the cursor behind what a look brought, in the write that stores it.
func (i *Inbox) keep(tx *db.Tx, lease *lease.Lease[mailbox], got looked, fresh int) error {
	m, now := lease.Row, tx.Now()
	if got.over {
		got.Cursor, got.since = m.cursor, m.since // it may be wanted again
	}
	since := any(nil)
	if !got.since.IsZero() {
		since = db.Micros(got.since)
	}
	err := tx.Exec(`UPDATE inbox_mailboxes SET cursor = $1, since = $2, brought = brought + $3, failures = 0, failing_since = NULL,
		problem = NULL, looked_at = $4 WHERE mailbox = $5`, got.Cursor, since, fresh, db.Micros(now), lease.ID)
	if err != nil {
		return err
	}
	return lease.Finish(tx, got.next(now, m))
}

// next is when a mailbox is looked into after a look that succeeded; zero: never.
func (l looked) next(now time.Time, before mailbox) time.Time {
	pause := jittered(l.every)
	switch {
	case l.over:
		return time.Time{}
	case l.More && l.Cursor != before.cursor:
		pause = 0 // an answer that leads nowhere must not be asked for in a loop
	}
	return now.Add(max(pause, min(l.Wait, lookWaitMax)))
}

// keepWait leaves a mailbox alone until the authority grants looks again. That is no
// failure, and ends none.
func (i *Inbox) keepWait(tx *db.Tx, lease *lease.Lease[mailbox], spent *country.Exhausted) error {
	err := tx.Exec("UPDATE inbox_mailboxes SET problem = $1, looked_at = $2 WHERE mailbox = $3",
		fault.Clip(string(fault.AuthorityWait)+": "+spent.Error(), problemMax), db.Micros(tx.Now()), lease.ID)
	if err != nil {
		return err
	}
	return lease.Finish(tx, tx.Now().Add(min(max(spent.Until.Sub(i.db.Wall()), time.Second), lookWaitMax)))
}

// keepFailure doubles the pause and tells a person in time.
func (i *Inbox) keepFailure(tx *db.Tx, lease *lease.Lease[mailbox], got looked) error {
	m, now := lease.Row, tx.Now()
	if m.failingSince.IsZero() {
		m.failingSince = now
	}
	m.failures++
	problem := fault.Clip(string(country.ReasonOf(got.err))+": "+got.err.Error(), problemMax)
	err := tx.Exec("UPDATE inbox_mailboxes SET failures = $1, failing_since = $2, problem = $3, looked_at = $4 WHERE mailbox = $5",
		m.failures, db.Micros(m.failingSince), problem, db.Micros(now), lease.ID)
	if err != nil {
		return err
	}
	if i.cfg.Alerts != nil && (now.Sub(m.failingSince) >= silentFor || errors.Is(got.err, country.ErrCredentials)) {
		err := i.cfg.Alerts.RaiseOnceIn(tx, m.failingSince, alert.Alert{Name: alert.MailboxUnread, Subject: m.of.SupplierID,
			Message: fmt.Sprintf("%s at %s for company %s cannot be fetched: %s", m.what(), m.at, m.of.SupplierID, problem)})
		if err != nil {
			return err
		}
	}
	return lease.Finish(tx, now.Add(jittered(pauseAfter(m.failures, got.every))))
}

// pauseAfter is the pause after so many failures in a row.
func pauseAfter(failures int64, every time.Duration) time.Duration {
	pause := max(every, time.Second)
	for n := int64(1); n < failures && pause < lookPauseMax; n++ {
		pause *= 2
	}
	return max(every, min(pause, lookPauseMax))
}

// jittered is a pause ±20 %: all companies of a country must not ask in one second.
func jittered(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))
}
