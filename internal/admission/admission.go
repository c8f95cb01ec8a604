// Package admission decides whether submissions are taken at all: not until the
// authorities were asked after a restored backup, and not while too many wait that
// could be worked.
//
// It owns the table intake.
package admission

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// What a caller is told to wait.
const (
	closedFor = 30 * time.Second
	fullFor   = 10 * time.Second
)

const (
	backlogMaxDefault = 2_000_000 // operations that could be worked now and wait
	countEvery        = 10 * time.Second
	countTimeout      = 2 * time.Second
)

// Gate is what this process knows of whether submissions are taken. What waits for
// an authority, a person or its original does not count as waiting: a day of
// outage is a million rows that wait, and no reason to refuse one.
type Gate struct {
	db   *db.DB
	log  *slog.Logger
	most int

	closed atomic.Bool
	mu     sync.Mutex
	opened chan struct{} // closed when it is open

	counted atomic.Int64 // when, on the clock that nobody sets; 0: never
	full    atomic.Bool
}

// New makes a gate that is open. most is how many operations may wait; 0: the default.
func New(d *db.DB, log *slog.Logger, most int) *Gate {
	g := &Gate{db: d, log: log, most: most, opened: make(chan struct{})}
	if most == 0 {
		g.most = backlogMaxDefault
	}
	close(g.opened)
	return g
}

// Enter is nil while submissions are taken; else it is the answer to one.
func (g *Gate) Enter(ctx context.Context) error {
	if g.closed.Load() {
		return &fault.Error{Kind: fault.Unavailable, RetryAfter: closedFor,
			Message: "the service was restored from a backup and is asking the tax authorities what they hold; submit again later",
			Faults: []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General,
				Message: "transactions are not accepted until the restoration ends; reading works"}}}
	}
	if g.isFull(ctx) {
		e := fault.Overloaded("the queue of transactions")
		e.RetryAfter = fullFor
		return e
	}
	return nil
}

func (g *Gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch was := g.closed.Swap(closed); {
	case closed && !was:
		g.opened = make(chan struct{})
	case was && !closed:
		close(g.opened)
	}
}

// Close accepts nothing, on any node and after any restart, until
// Open. Companies that are onboarded from now on may have filed before: each
// is held at its first filing, until the given instant.
func (g *Gate) Close(tx *db.Tx, newcomersUntil time.Time) error {
	return tx.Exec(`INSERT INTO intake (one, closed_at, newcomers_from, newcomers_until) VALUES (1, $1, $1, $2)
		ON CONFLICT (one) DO UPDATE SET closed_at = excluded.closed_at, newcomers_from = excluded.newcomers_from, newcomers_until = excluded.newcomers_until`,
		db.Micros(tx.Now()), db.Micros(newcomersUntil))
}

// Open ends what Close began.
func (g *Gate) Open(tx *db.Tx) error { return tx.Exec("UPDATE intake SET closed_at = NULL") }

// Learn opens or closes the intake of this process as it is stored. Call
// it before anything is served, and while it is closed.
func (g *Gate) Learn(ctx context.Context) (open bool, err error) {
	var closed bool
	err = g.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT count(*) > 0 FROM intake WHERE closed_at IS NOT NULL").Scan(&closed)
	})
	if err != nil {
		return false, fmt.Errorf("look whether the intake is open: %w", err)
	}
	g.set(closed)
	return !closed, nil
}

// Opened is closed when the intake is open.
func (g *Gate) Opened() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

// isFull counts again when the last count is old; whoever comes first does it.
//
// Failure policy: without an answer the last one stands. The count protects
// nothing but patience: what was accepted is on disk.
func (g *Gate) isFull(ctx context.Context) bool {
	last, now := g.counted.Load(), int64(g.db.Elapsed())+1
	if (last == 0 || now-last >= int64(countEvery)) && g.counted.CompareAndSwap(last, now) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		n := 0
		err := g.db.Read(db.AsService(ctx), func(r db.Reader) error { // of all clients, whoever asks
			return r.Row(runnable, db.Micros(r.Now()), g.most).Scan(&n)
		})
		if err != nil {
			g.log.Warn("count what waits", "error", err)
		} else {
			g.full.Store(n >= g.most)
		}
	}
	return g.full.Load()
}

// runnable counts up to a limit, in the order in which the index has them.
const runnable = `SELECT count(*) FROM (
	SELECT 1 FROM operations o WHERE o.due_at <= $1
	AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = o.lane AND l.due_at > $1) LIMIT $2) AS waiting`
