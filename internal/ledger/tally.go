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

// counted is what happened to transactions in some time.
type counted struct{ accepted, succeeded, failed int64 }

func (c counted) plus(o counted) counted {
	return counted{c.accepted + o.accepted, c.succeeded + o.succeeded, c.failed + o.failed}
}

type minuteKey struct {
	minute  int64
	country string
}

type dayKey struct {
	day      int64
	clientID string
}

// Tally counts for plots: in memory, stored every few seconds as one row per
// minute and country and one per day and client.
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
		at, day, n := minuteKey{minute, e.Country}, dayKey{minute / minutesPerDay, e.ClientID},
			counted{e.Accepted, e.Succeeded, e.Failed}
		t.minutes[at] = t.minutes[at].plus(n)
		t.days[day] = t.days[day].plus(n)
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
	addCountsSQL = `INSERT INTO transaction_counts (minute, country, node, accepted, succeeded, failed) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (minute, country, node) DO UPDATE SET accepted = transaction_counts.accepted + excluded.accepted,
		succeeded = transaction_counts.succeeded + excluded.succeeded, failed = transaction_counts.failed + excluded.failed`
	addUsageSQL = `INSERT INTO transaction_usage (day, client_id, accepted, succeeded, failed) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (day, client_id) DO UPDATE SET accepted = transaction_usage.accepted + excluded.accepted,
		succeeded = transaction_usage.succeeded + excluded.succeeded, failed = transaction_usage.failed + excluded.failed`
	rollUpSQL = `INSERT INTO transaction_counts (minute, country, node, accepted, succeeded, failed)
		SELECT minute - minute % 60, country, '', sum(accepted), sum(succeeded), sum(failed) FROM transaction_counts
		WHERE minute < $1 AND node <> '' GROUP BY minute - minute % 60, country
		ON CONFLICT (minute, country, node) DO UPDATE SET accepted = transaction_counts.accepted + excluded.accepted,
		succeeded = transaction_counts.succeeded + excluded.succeeded, failed = transaction_counts.failed + excluded.failed`
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
		counts = append(counts, []any{k.minute, k.country, t.db.Node(), c.accepted, c.succeeded, c.failed})
	}
	for k, c := range days {
		usage = append(usage, []any{k.day, k.clientID, c.accepted, c.succeeded, c.failed})
	}
	inOrder := func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(int64), b[0].(int64)), cmp.Compare(a[1].(string), b[1].(string)))
	}
	slices.SortFunc(counts, inOrder)
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
			list = append(list, Count{At: time.Unix(k.minute*60, 0).UTC(), Country: k.country, Accepted: c.accepted,
				Succeeded: c.succeeded, Failed: c.failed})
		}
	}
	return list
}

// Count is what happened in a country in one step of a plot.
type Count struct {
	At                          time.Time // its beginning
	Country                     string
	Accepted, Succeeded, Failed int64
}

// Counts answers what happened between two instants in steps of whole minutes,
// by time and country; steps in which nothing happened are not there. Minutes
// that are older than a day are known by the hour.
func (s *Ledger) Counts(ctx context.Context, from, to time.Time, step time.Duration) ([]Count, error) {
	minutes := max(1, int64(step/time.Minute))
	first, end := from.Unix()/60, (to.Unix()+59)/60
	var list []Count
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		list, err = db.Collect(r, func(scan func(...any) error) (c Count, err error) {
			var minute int64
			err = scan(&minute, &c.Country, &c.Accepted, &c.Succeeded, &c.Failed)
			c.At = time.Unix(minute*60, 0).UTC()
			return c, err
		}, `SELECT minute - minute % $3, country, sum(accepted), sum(succeeded), sum(failed) FROM transaction_counts
			WHERE minute >= $1 AND minute < $2 GROUP BY minute - minute % $3, country ORDER BY 1, 2 LIMIT $4`, first, end, minutes, tallyStepsMax)
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
	i, there := slices.BinarySearchFunc(list, c, func(a, b Count) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Country, b.Country))
	})
	if !there {
		return slices.Insert(list, i, c)
	}
	list[i].Accepted += c.Accepted
	list[i].Succeeded += c.Succeeded
	list[i].Failed += c.Failed
	return list
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
