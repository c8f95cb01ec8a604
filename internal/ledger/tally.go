package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/filing"
)

const (
	tallyEvery     = 5 * time.Second // between an event and its row, at most
	minutesKept    = 25 * time.Hour  // then minutes become hours
	countsKept     = 92 * 24 * time.Hour
	tallyStepsMax  = 20_000 // rows that Counts answers
	minutesPerHour = 60
	minutesPerDay  = 24 * minutesPerHour
)

// counted is what happened in some time: to transactions, and in calls to their authority.
type counted struct{ accepted, succeeded, failed, calls, callsFailed, callsTook int64 }

func (c counted) plus(o counted) counted {
	return counted{c.accepted + o.accepted, c.succeeded + o.succeeded, c.failed + o.failed,
		c.calls + o.calls, c.callsFailed + o.callsFailed, c.callsTook + o.callsTook}
}

type minuteKey struct {
	minute int64
	at     country.Environment
}

type dayKey struct {
	day      int64
	clientID string
}

// Tally counts for plots: in memory, stored every few seconds as one row per
// minute and environment and one per day and client.
//
// Failure policy: counts are for looking at. A process that is killed loses
// those of its last seconds; the transactions themselves are counted by nobody
// but their own rows. Whatever must be exact is asked of those.
type Tally struct {
	db  *db.DB
	log func(msg string, args ...any)

	total atomic.Int64 // events since the start: how busy the service is

	mu       sync.Mutex
	minutes  map[minuteKey]counted
	days     map[dayKey]counted
	timer    *time.Timer // runs while something is not stored
	closed   bool
	rolledAt int64 // hour of the last roll-up

	storing sync.Mutex // one flush at a time
}

// NewTally returns one whose OnCommit the filing slice calls; [Ledger] reads it.
func NewTally(d *db.DB, log *slog.Logger) *Tally {
	return &Tally{db: d, log: log.Warn, minutes: map[minuteKey]counted{}, days: map[dayKey]counted{}}
}

// OnCommit counts what a write did once it is on disk.
func (t *Tally) OnCommit(tx *db.Tx, events []filing.Tallied) {
	if len(events) == 0 {
		return
	}
	now := tx.Now()
	tx.OnCommit(func() { t.add(now, events) })
}

func (t *Tally) add(now time.Time, events []filing.Tallied) {
	minute := now.Unix() / 60
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		n := counted{e.Accepted, e.Succeeded, e.Failed, e.Calls, e.CallsFailed, e.CallsTook.Microseconds()}
		at := minuteKey{minute, country.Environment{Code: e.Country, Live: e.Live}}
		t.minutes[at] = t.minutes[at].plus(n)
		if e.ClientID != "" { // a call is of many clients
			day := dayKey{minute / minutesPerDay, e.ClientID}
			t.days[day] = t.days[day].plus(n)
		}
		t.total.Add(n.accepted + n.succeeded + n.failed)
	}
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(tallyEvery, t.flushSoon)
	}
}

// flushSoon is the timer's own turn.
func (t *Tally) flushSoon() {
	if err := t.flush(context.Background()); err != nil {
		t.log("store counts for plots", "error", err)
	}
}

// close stores what is left.
func (t *Tally) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.flushSoon()
}

// take removes what is to be stored.
func (t *Tally) take() (map[minuteKey]counted, map[dayKey]counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	minutes, days := t.minutes, t.days
	t.minutes, t.days, t.timer = map[minuteKey]counted{}, map[dayKey]counted{}, nil
	return minutes, days
}

// giveBack keeps counts for the next time.
func (t *Tally) giveBack(minutes map[minuteKey]counted, days map[dayKey]counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, c := range minutes {
		t.minutes[k] = t.minutes[k].plus(c)
	}
	for k, c := range days {
		t.days[k] = t.days[k].plus(c)
	}
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(tallyEvery, t.flushSoon)
	}
}

const (
	countColumns = "minute, country, live, node, accepted, succeeded, failed, calls, calls_failed, calls_took"
	countAdds    = ` ON CONFLICT (minute, country, live, node) DO UPDATE SET accepted = transaction_counts.accepted + excluded.accepted,
		succeeded = transaction_counts.succeeded + excluded.succeeded, failed = transaction_counts.failed + excluded.failed,
		calls = transaction_counts.calls + excluded.calls, calls_failed = transaction_counts.calls_failed + excluded.calls_failed,
		calls_took = transaction_counts.calls_took + excluded.calls_took`
	countSums    = "sum(accepted), sum(succeeded), sum(failed), sum(calls), sum(calls_failed), sum(calls_took)"
	addCountsSQL = "INSERT INTO transaction_counts (" + countColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)" + countAdds
	addUsageSQL  = `INSERT INTO transaction_usage (day, client_id, accepted, succeeded, failed) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (day, client_id) DO UPDATE SET accepted = transaction_usage.accepted + excluded.accepted,
		succeeded = transaction_usage.succeeded + excluded.succeeded, failed = transaction_usage.failed + excluded.failed`
	rollUpSQL = "INSERT INTO transaction_counts (" + countColumns + ") SELECT minute - minute % 60, country, live, '', " + countSums +
		" FROM transaction_counts WHERE minute < $1 AND node <> '' GROUP BY minute - minute % 60, country, live" + countAdds
)

// flush stores what was counted. Rows go in one order, so that nodes that store
// at the same time never wait for each other.
func (t *Tally) flush(ctx context.Context) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	minutes, days := t.take()
	if len(minutes) == 0 {
		return nil
	}
	var counts, usage [][]any
	for k, c := range minutes {
		counts = append(counts, []any{k.minute, k.at.Code, bool(k.at.Live), t.db.Node(), c.accepted, c.succeeded, c.failed,
			c.calls, c.callsFailed, c.callsTook})
	}
	for k, c := range days {
		usage = append(usage, []any{k.day, k.clientID, c.accepted, c.succeeded, c.failed})
	}
	inOrder := func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(int64), b[0].(int64)), cmp.Compare(a[1].(string), b[1].(string)))
	}
	slices.SortStableFunc(counts, func(a, b []any) int { // of one country test before live
		if c := inOrder(a, b); c != 0 || a[2] == b[2] {
			return c
		}
		return map[bool]int{false: -1, true: 1}[a[2].(bool)]
	})
	slices.SortFunc(usage, inOrder)
	err := t.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Lock("transaction counts"); err != nil {
			return err
		}
		if err := errors.Join(tx.ExecEach(addCountsSQL, counts), tx.ExecEach(addUsageSQL, usage)); err != nil {
			return err
		}
		return t.rollUp(tx)
	})
	if err != nil && !errors.Is(err, db.ErrOutcomeUnknown) {
		t.giveBack(minutes, days)
	}
	return err
}

// rollUp makes hours of old minutes, once an hour, and forgets old hours.
func (t *Tally) rollUp(tx *db.Tx) error {
	hour := tx.Now().Unix() / 3600
	if hour == t.rolledAt {
		return nil
	}
	old := tx.Now().Add(-minutesKept).Unix() / 3600 * minutesPerHour
	err := errors.Join(
		tx.Exec(rollUpSQL, old),
		tx.Exec("DELETE FROM transaction_counts WHERE minute < $1 AND node <> ''", old),
		tx.Exec("DELETE FROM transaction_counts WHERE minute < $1", tx.Now().Add(-countsKept).Unix()/60))
	tx.OnCommit(func() { t.rolledAt = hour })
	return err
}

// pending is what this node has counted and not stored.
func (t *Tally) pending(from, to int64) (list []Count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, c := range t.minutes {
		if k.minute >= from && k.minute < to {
			list = append(list, Count{At: time.Unix(k.minute*60, 0).UTC(), Environment: k.at, Accepted: c.accepted,
				Succeeded: c.succeeded, Failed: c.failed, Calls: c.calls, CallsFailed: c.callsFailed, CallsTook: c.callsTook})
		}
	}
	return list
}

// Count is what happened in an environment in one step of a plot.
type Count struct {
	At                          time.Time // its beginning
	Environment                 country.Environment
	Accepted, Succeeded, Failed int64
	Calls, CallsFailed          int64
	CallsTook                   int64 // microseconds, of all of them
}

// Counts answers what happened between two instants in steps of whole minutes,
// by time and environment; steps in which nothing happened are not there. Minutes
// that are older than a day are known by the hour.
func (s *Ledger) Counts(ctx context.Context, from, to time.Time, step time.Duration) ([]Count, error) {
	minutes := max(1, int64(step/time.Minute))
	first, end := from.Unix()/60, (to.Unix()+59)/60
	var list []Count
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		list, err = db.Collect(r, func(scan func(...any) error) (c Count, err error) {
			var minute int64
			var live bool
			err = scan(&minute, &c.Environment.Code, &live, &c.Accepted, &c.Succeeded, &c.Failed, &c.Calls, &c.CallsFailed, &c.CallsTook)
			c.At, c.Environment.Live = time.Unix(minute*60, 0).UTC(), country.Live(live)
			return c, err
		}, "SELECT minute - minute % $3, country, live, "+countSums+` FROM transaction_counts
			WHERE minute >= $1 AND minute < $2 GROUP BY minute - minute % $3, country, live ORDER BY 1, 2, 3 LIMIT $4`, first, end, minutes, tallyStepsMax)
		slices.SortFunc(list, Count.compare)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read counts: %w", err)
	}
	for _, c := range s.tally.pending(first, end) {
		minute := c.At.Unix() / 60
		c.At = time.Unix((minute-minute%minutes)*60, 0).UTC()
		list = addCount(list, c)
	}
	return list, nil
}

// addCount adds to the step that is there, or puts a new one where it belongs.
func addCount(list []Count, c Count) []Count {
	i, there := slices.BinarySearchFunc(list, c, Count.compare)
	if !there {
		return slices.Insert(list, i, c)
	}
	list[i].Accepted += c.Accepted
	list[i].Succeeded += c.Succeeded
	list[i].Failed += c.Failed
	list[i].Calls += c.Calls
	list[i].CallsFailed += c.CallsFailed
	list[i].CallsTook += c.CallsTook
	return list
}

func (c Count) compare(o Count) int {
	return cmp.Or(c.At.Compare(o.At), cmp.Compare(c.Environment.String(), o.Environment.String()))
}

// Usage is what a client used in a day.
type Usage struct {
	Day                         time.Time
	ClientID                    string
	Accepted, Succeeded, Failed int64
}

// Usage answers what a client, or with "" everybody, used from one day to
// another, both inclusive, by day and client.
func (s *Ledger) Usage(ctx context.Context, clientID string, from, to time.Time) (list []Usage, err error) {
	where, args := "day >= $1 AND day <= $2", []any{from.Unix() / 86400, to.Unix() / 86400}
	if clientID != "" {
		where, args = where+" AND client_id = $3", append(args, clientID)
	}
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (u Usage, err error) {
			var day int64
			err = scan(&day, &u.ClientID, &u.Accepted, &u.Succeeded, &u.Failed)
			u.Day = time.Unix(day*86400, 0).UTC()
			return u, err
		}, "SELECT day, client_id, accepted, succeeded, failed FROM transaction_usage WHERE "+where+" ORDER BY day, client_id", args...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return list, nil
}
