package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func (e *pgEngine) write(w *write) error { return e.queue.add(w) }

func (e *pgEngine) commitLoop() {
	over := false
	defer func() {
		if !over {
			e.wg.Go(e.commitLoop) // a write function ended this goroutine: see write.run
		}
	}()
	group := make([]*write, 0, e.d.cfg.GroupMax)
	for e.queue.take(&group) {
		if live := startAll(group); len(live) > 0 {
			e.commit(live)
		}
	}
	over = true
}

// commit stores a group together, or each member alone when that fails, and
// answers everybody, within the patience of the one who has waited longest.
func (e *pgEngine) commit(group []*write) {
	answered := false
	defer func() {
		for _, w := range group {
			if !answered && w.panicked == nil {
				w.err = unavailable(errInterrupted)
			}
		}
		e.d.committed(group)
		for _, w := range group {
			close(w.done)
		}
	}()
	until := group[0].until
	for _, w := range group {
		if w.until.Before(until) {
			until = w.until
		}
	}
	e.store(group, until)
	answered = true
}

func (e *pgEngine) store(group []*write, until time.Time) {
	if len(group) > 1 {
		err := e.tryCommit(group, until)
		if err == nil {
			return
		}
		if errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, errNoConnection) {
			for _, w := range group {
				if w.err == nil {
					w.err = err
				}
			}
			return
		}
	}
	for _, w := range group {
		e.commitAlone(w, until)
	}
}

// commitAlone stores one write. Members of a group that took all their patience
// do not wait again, one after the other.
func (e *pgEngine) commitAlone(w *write, until time.Time) {
	for try := 1; ; try++ {
		w.err, w.panicked = nil, nil
		if !time.Now().Before(until) {
			w.err = unavailable(errTooLate)
			return
		}
		err := e.tryCommit([]*write{w}, until)
		if err == nil || w.panicked != nil {
			return
		}
		w.err = err
		if !repeatable(err) || try == pgAloneTries {
			return
		}
	}
}

// Limits of commits.
const (
	pgAloneTries = 3 // a write alone, against deadlocks and serialization failures
	// pgGroupLock is how long a group waits for a lock on a row: its members lock
	// rows in the order in which they came, so waiting could go round in a circle.
	// Alone, each waits as long as it takes.
	pgGroupLock = 250 * time.Millisecond
)

var (
	errNoConnection = errors.New("no connection to the database")
	errTooLate      = errors.New("the write was not stored in time")
)

// tryCommit runs all members in one transaction. Members that fail before
// anything of theirs was sent drop out and keep their error; any other failure
// is returned and nothing is stored.
func (e *pgEngine) tryCommit(group []*write, until time.Time) error {
	conn, err := e.acquire(until)
	if err != nil {
		return unavailable(fmt.Errorf("%w: %w", errNoConnection, err))
	}
	defer conn.Release()
	// A deadline of the connection, not of a context: pgx starts a goroutine
	// per statement to watch one.
	line := conn.Conn().PgConn().Conn()
	line.SetDeadline(until)
	defer line.SetDeadline(time.Time{})
	ctx := context.Background()
	tx, err := conn.BeginTx(ctx, beginOf(group))
	if err != nil {
		// Nothing was sent but BEGIN: whatever went wrong, nothing is stored.
		return e.failed(fmt.Errorf("begin: %w: %w", errLost, err))
	}
	ended := false
	defer func() {
		if !ended {
			tx.Rollback(ctx)
		}
	}()
	c := &pgTx{e: e, on: tx, ctx: ctx, shared: len(group) > 1}
	stored, err := e.members(c, group)
	if err == nil {
		err = c.flush()
	}
	if err != nil || stored == 0 {
		return e.failed(err)
	}
	ended = true
	if err := tx.Commit(ctx); err != nil {
		return e.commitError(err)
	}
	return nil
}

// beginOf begins a group with the session's own limits; a write alone waits for
// its locks.
func beginOf(group []*write) pgx.TxOptions {
	if len(group) > 1 {
		return pgx.TxOptions{}
	}
	return pgx.TxOptions{BeginQuery: "begin; set local lock_timeout = 0"}
}

func (e *pgEngine) acquire(until time.Time) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	return e.commits.Acquire(ctx)
}

// failed classifies what went wrong before COMMIT. A server that said nothing
// until the deadline may say nothing on the other connections either.
func (e *pgEngine) failed(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e.reset()
	}
	return e.classify(err)
}

// commitError tells a refused commit from one whose answer was lost. Only an
// answer to the COMMIT itself is proof: a session that is being ended may have
// committed before it said so.
func (e *pgEngine) commitError(err error) error {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return fmt.Errorf("commit: a statement of this write had gone wrong: %w", err)
	}
	if pg, answered := errors.AsType[*pgconn.PgError](err); answered && pg.SeverityUnlocalized == "ERROR" {
		return e.classify(fmt.Errorf("commit: %w", err))
	}
	e.reset() // who holds the truth now is to be found out again
	return unavailable(fmt.Errorf("commit: %w: %w", ErrOutcomeUnknown, err))
}

func (e *pgEngine) members(c *pgTx, group []*write) (stored int, err error) {
	at := e.d.instant()
	for _, w := range group {
		mark := c.mark()
		tx := &Tx{ctx: context.WithoutCancel(w.ctx), instant: at, conn: c, d: e.d}
		w.err = w.run(tx)
		switch {
		case w.err == nil:
			stored++
		case c.drop(mark):
			// Nothing of it was sent: the others go on without it. It may have asked the catalog on another connection.
			w.err = e.classify(w.err)
		default:
			return stored, w.err
		}
	}
	return stored, nil
}
