package db

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pgConn is what statements run on: a transaction, or a connection where each is
// its own.
type pgConn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Conn() *pgx.Conn
}

// pgTx is the engine's side of one transaction. Statements that return nothing
// are queued and go out together at the first read or at the commit.
type pgTx struct {
	e   *pgEngine
	on  pgConn
	ctx context.Context
	instant
	shared bool          // a group: locks must not wait
	line   net.Conn      // of a read: each statement has a deadline
	limit  time.Duration // of each statement of a read; 0: the deadline stands
	half   time.Time     // when half of the statement's time is over
	told   bool          // a row, or the end of a result, was read
	queued []pgStmt
	sent   int // statements that left the queue so far
}

type pgStmt struct {
	sql  string
	args []any
	want int64
	set  *Insert // a set-based insert: neighbours on the same table are merged
	rows [][]any
}

type pgMark struct{ queued, sent int }

func (c *pgTx) mark() pgMark { return pgMark{len(c.queued), c.sent} }

// drop forgets what was queued since mark; false when some of it was already sent.
func (c *pgTx) drop(m pgMark) bool {
	if c.sent != m.sent {
		return false
	}
	c.queued = c.queued[:m.queued]
	return true
}

func (c *pgTx) query(sql string, args []any) (*Rows, error) {
	if err := c.flush(); err != nil {
		return nil, err
	}
	c.sent++
	c.prolong()
	rows, err := c.on.Query(c.ctx, sql, args...)
	if err != nil {
		return nil, c.lost(err)
	}
	return &Rows{pgx: rows, told: &c.told}, nil
}

// prolong gives the next statement of a read its time. A server that is frozen,
// or a network that swallows packets, says nothing, for as long as it likes.
func (c *pgTx) prolong() {
	if c.limit > 0 {
		now := time.Now()
		c.half = now.Add(c.limit / 2)
		c.line.SetDeadline(now.Add(c.limit))
	}
}

// unanswered marks err where the connection broke before it told anything, and
// soon: one that was silent for long has cost the caller enough.
func (c *pgTx) unanswered(conn *pgx.Conn, err error) error {
	if c.told || !conn.IsClosed() || time.Now().After(c.half) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnanswered, err)
}

func (c *pgTx) exec(sql string, args []any, want int64) error {
	c.queued = append(c.queued, pgStmt{sql: sql, args: args, want: want})
	return nil
}

func (c *pgTx) execEach(sql string, rows [][]any, want int64) error {
	for _, args := range rows {
		c.queued = append(c.queued, pgStmt{sql: sql, args: args, want: want})
	}
	return nil
}

func (c *pgTx) updateEach(sql string, rows [][]any, want int64) error {
	if len(rows) < setFrom {
		return c.execEach(sql, rows, want)
	}
	text, args, err := c.e.cols.updateSet(c.ctx, c.e.work, sql, rows)
	switch {
	case errors.Is(err, errNotASet):
		return c.execEach(sql, rows, want)
	case err != nil:
		return err
	case want >= 0:
		want *= int64(len(rows))
	}
	return c.exec(text, args, want)
}

func (c *pgTx) insert(in Insert, rows [][]any, each func(*Rows) error) error {
	if each == nil {
		c.queued = append(c.queued, pgStmt{set: &in, rows: rows, want: -1})
		return nil
	}
	sql, args, err := c.e.cols.unnest(c.ctx, c.e.work, in, rows)
	if err != nil {
		return err
	}
	result, err := c.query(sql, args)
	if err != nil {
		return err
	}
	return result.Each(func(func(...any) error) error { return each(result) })
}

// flush sends the queue in one round trip and checks every answer.
func (c *pgTx) flush() error {
	if len(c.queued) == 0 {
		return nil
	}
	stmts := mergeInserts(c.queued)
	c.sent += len(c.queued)
	c.queued = c.queued[:0]
	batch := &pgx.Batch{}
	for _, s := range stmts {
		if s.set != nil {
			sql, args, err := c.e.cols.unnest(c.ctx, c.e.work, *s.set, s.rows)
			if err != nil {
				return err
			}
			batch.Queue(sql, args...)
			continue
		}
		batch.Queue(s.sql, s.args...)
	}
	results := c.on.SendBatch(c.ctx, batch)
	var stale error
	for _, s := range stmts {
		tag, err := results.Exec()
		if err != nil {
			_ = results.Close() // the first error tells more
			return c.lost(err)
		}
		if s.want >= 0 && tag.RowsAffected() != s.want {
			stale = ErrStale
		}
	}
	if err := results.Close(); err != nil {
		return c.lost(err)
	}
	return stale
}

// lost marks errors of a dead connection: COMMIT was not sent, so nothing is stored.
func (c *pgTx) lost(err error) error {
	if _, answered := errors.AsType[*pgconn.PgError](err); !answered && c.on.Conn().IsClosed() {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// lock waits for its turn, but never inside a group: waiting while other
// members hold locks could deadlock. A group that would wait runs again as
// single writes.
func (c *pgTx) lock(name string) error {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash never fails
	key := int64(h.Sum64())
	if !c.shared {
		return c.exec("SELECT pg_advisory_xact_lock($1)", []any{key}, -1)
	}
	var got bool
	rows, err := c.query("SELECT pg_try_advisory_xact_lock($1)", []any{key})
	if err := (&Row{rows: rows, err: err}).Scan(&got); err != nil {
		return err
	}
	if !got {
		return errBusy
	}
	return nil
}

// errBusy sends a group's members to run alone.
var errBusy = errors.New("the lock is held by another group")

// Reader.
func (c *pgTx) Query(sql string, args ...any) (*Rows, error) { return c.query(sql, args) }
func (c *pgTx) Row(sql string, args ...any) *Row {
	rows, err := c.query(sql, args)
	return &Row{rows: rows, err: err}
}
func (c *pgTx) Context() context.Context { return c.ctx }

// mergeInserts joins set-based inserts on the same table as long as only
// inserts stand between them: inserts into different tables do not see each other.
func mergeInserts(in []pgStmt) []pgStmt {
	out := make([]pgStmt, 0, len(in))
	open := map[Insert]int{}
	for _, s := range in {
		if s.set == nil {
			clear(open)
			out = append(out, s)
			continue
		}
		if at, ok := open[*s.set]; ok {
			out[at].rows = append(out[at].rows[:len(out[at].rows):len(out[at].rows)], s.rows...)
			continue
		}
		open[*s.set] = len(out)
		out = append(out, s)
	}
	return out
}
