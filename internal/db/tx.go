package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/fault"
)

// Reader reads from one snapshot. A function that reads takes a Reader, one
// that writes takes a *Tx: the signature says who may write.
type Reader interface {
	// Query returns rows; close them before the next call.
	Query(sql string, args ...any) (*Rows, error)
	// Row returns the first row; its Scan answers ErrNoRows when there is none.
	Row(sql string, args ...any) *Row
	// Now is the database's time, fixed for this snapshot: see DB.Now.
	Now() time.Time
	// Wall is the time of day, fixed for this snapshot: see DB.Wall.
	Wall() time.Time
	// Context carries the caller's values; it is not cancelled in a write.
	Context() context.Context
}

// instant is when a snapshot was taken, on both clocks. It is fixed once per
// commit, so that everything of one write carries one instant.
type instant struct{ now, wall time.Time }

func (d *DB) instant() instant { return instant{now: d.clock.now(), wall: d.clock.wall()} }

// Now is the database's time, for leases and due times: see [DB.Now].
func (i instant) Now() time.Time { return i.now }

// Wall is the time of day, for documents: see [DB.Wall].
func (i instant) Wall() time.Time { return i.wall }

// Tx is a Reader that can write.
type Tx struct {
	ctx context.Context
	instant
	conn  txConn
	d     *DB
	wakes []string
	after []func()

	// failed is the first statement that went wrong. It fails the write even
	// when fn swallows it: PostgreSQL has ended the transaction by then, and the
	// engines must not differ in what they store.
	failed error
}

// txConn is the engine's side of a Tx.
type txConn interface {
	query(sql string, args []any) (*Rows, error)
	exec(sql string, args []any, want int64) error // want < 0: any number of rows
	execEach(sql string, rows [][]any, want int64) error
	updateEach(sql string, rows [][]any, want int64) error
	insert(in Insert, rows [][]any, each func(*Rows) error) error
	lock(name string) error
}

// Query reads inside the write. On PostgreSQL it first sends what Exec has queued.
func (t *Tx) Query(sql string, args ...any) (*Rows, error) {
	rows, err := t.conn.query(sql, args)
	return rows, t.keep(err)
}

// Row reads one row inside the write.
func (t *Tx) Row(sql string, args ...any) *Row {
	rows, err := t.Query(sql, args...)
	return &Row{rows: rows, err: err}
}

// keep remembers the first failure of the write and returns err.
func (t *Tx) keep(err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
	}
	return err
}

// Context carries the caller's values. It is never cancelled: a member of a
// group must not be able to spoil the others.
func (t *Tx) Context() context.Context { return t.ctx }

// Exec changes rows. PostgreSQL may send it later, together with others: its
// error can come from Write instead, so never act on it, return it.
func (t *Tx) Exec(sql string, args ...any) error { return t.keep(t.conn.exec(sql, args, -1)) }

// ExecOne is Exec for a statement that must change exactly one row. Otherwise
// the whole write fails with ErrStale, here or at commit.
func (t *Tx) ExecOne(sql string, args ...any) error { return t.keep(t.conn.exec(sql, args, 1)) }

// ExecEach runs one statement for many argument lists, in one round trip.
func (t *Tx) ExecEach(sql string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return t.keep(t.conn.execEach(sql, rows, -1))
}

// ExecEachOne is ExecEach where each must change exactly one row, or ErrStale.
func (t *Tx) ExecEachOne(sql string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return t.keep(t.conn.execEach(sql, rows, 1))
}

// UpdateEach is ExecEach for an UPDATE whose argument lists name different rows.
// PostgreSQL changes all of them in one statement and locks them in no order:
// it is for rows that a lease keeps, which nobody else writes meanwhile.
func (t *Tx) UpdateEach(sql string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return t.keep(t.conn.updateEach(sql, rows, -1))
}

// UpdateEachOne is UpdateEach where each must change exactly one row, or ErrStale.
func (t *Tx) UpdateEachOne(sql string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	return t.keep(t.conn.updateEach(sql, rows, 1))
}

// Insert describes a set-based insert. Suffix may hold ON CONFLICT and
// RETURNING clauses; what RETURNING gives arrives in no particular order.
type Insert struct {
	Table   string
	Columns string // comma separated
	Suffix  string
}

// Insert adds rows; on PostgreSQL as one statement whatever their number.
func (t *Tx) Insert(table, columns string, rows ...[]any) error {
	if len(rows) == 0 {
		return nil
	}
	return t.keep(t.conn.insert(Insert{Table: table, Columns: columns}, rows, nil))
}

// InsertReturning adds rows and hands each returned row to fn.
func (t *Tx) InsertReturning(in Insert, rows [][]any, fn func(*Rows) error) error {
	if len(rows) == 0 {
		return nil
	}
	return t.keep(t.conn.insert(in, rows, fn))
}

// Node is the name of this process: see [DB.Node].
func (t *Tx) Node() string { return t.d.node }

// Engine is "sqlite" or "postgres".
func (t *Tx) Engine() string { return t.d.Engine() }

// Lock orders writes by name until the commit: per supplier, per chain. SQLite
// has one writer and needs nothing.
func (t *Tx) Lock(name string) error { return t.keep(t.conn.lock(name)) }

// Wake tells the workers of a queue, here and on other nodes, after the commit.
func (t *Tx) Wake(queue string) { t.wakes = append(t.wakes, queue) }

// WakeOld is Wake where a row may be of another day than those in which
// something was open: its days are looked for anew.
func (t *Tx) WakeOld(queue string) { t.wakes = append(t.wakes, OldRows(queue), queue) }

// OnCommit runs fn in this process after the commit and before Write returns.
// It is a hint, not a promise: a crash in between loses it. fn is quick and
// calls neither Write nor Read: the writer waits for it.
func (t *Tx) OnCommit(fn func()) { t.after = append(t.after, fn) }

// Rows is the result of a query.
type Rows struct {
	std  *sql.Rows
	pgx  pgx.Rows
	told *bool // of a read on PostgreSQL: something was answered
}

// Next advances to the next row.
func (r *Rows) Next() bool {
	if r.std != nil {
		return r.std.Next()
	}
	next := r.pgx.Next()
	if r.told != nil && (next || r.pgx.Err() == nil) {
		*r.told = true
	}
	return next
}

// Scan reads the row's columns.
func (r *Rows) Scan(dest ...any) error {
	if r.std != nil {
		return r.std.Scan(dest...)
	}
	return r.pgx.Scan(dest...)
}

// Close ends the result and tells what went wrong.
func (r *Rows) Close() error {
	if r.std != nil {
		return errors.Join(r.std.Err(), r.std.Close())
	}
	r.pgx.Close()
	return r.pgx.Err()
}

// Each scans every row with fn and closes.
func (r *Rows) Each(fn func(scan func(...any) error) error) error {
	for r.Next() {
		if err := fn(r.Scan); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	return r.Close()
}

// Row is the first row of a query.
type Row struct {
	rows *Rows
	err  error
}

// Scan reads the row, or answers ErrNoRows.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	if !r.rows.Next() {
		if err := r.rows.Close(); err != nil {
			return err
		}
		return ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return errors.Join(err, r.rows.Close())
	}
	return r.rows.Close()
}

// Collect reads all rows of a query into values.
func Collect[T any](r Reader, scan func(scan func(...any) error) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := r.Query(sql, args...)
	if err != nil {
		return nil, err
	}
	var all []T
	err = rows.Each(func(s func(...any) error) error {
		v, err := scan(s)
		all = append(all, v)
		return err
	})
	return all, err
}

// The life of a queued write.
const (
	waiting int32 = iota
	running
	abandoned
)

// write is one call of DB.Write on its way.
type write struct {
	ctx      context.Context
	fn       func(*Tx) error
	until    time.Time     // when its caller's patience ends
	least    time.Duration // of it that must be left to begin
	submits  bool          // callers wait for it at the intake: nothing of it is paid for, see Pace
	state    atomic.Int32
	err      error
	panicked any
	done     chan struct{}
	tx       *Tx
}

// begin claims the write for running; false when its caller went away.
func (w *write) begin() bool {
	return w.state.CompareAndSwap(waiting, running) || w.state.Load() == running
}

func (w *write) finish(err error) {
	w.err = err
	close(w.done)
}

// run calls fn on tx; a panic is kept for the caller's goroutine, with the
// stack of where it happened. A fn that ends the goroutine (runtime.Goexit, a
// test's FailNow) is kept as a panic, too: the committer that dies of it is replaced.
func (w *write) run(tx *Tx) (err error) {
	w.tx = tx
	returned := false
	defer func() {
		if returned {
			return
		}
		cause := recover()
		if cause == nil {
			cause = "it ended the goroutine"
		}
		w.panicked = fmt.Sprintf("in a write function: %v\n%s", cause, debug.Stack())
		err = errPanicked
		w.err = err
	}()
	err = w.fn(tx)
	returned = true
	if err == nil {
		err = tx.failed
	}
	return err
}

// errPanicked stands for a panic until the caller's goroutine raises it again.
var errPanicked = errors.New("the write function panicked")

// committed tells the workers and runs the hints of every write of a group.
func (d *DB) committed(group []*write) {
	var queues []string
	for _, w := range group {
		if w.err != nil || w.tx == nil {
			continue
		}
		queues = append(queues, w.tx.wakes...)
		for _, fn := range w.tx.after {
			fn()
		}
	}
	d.wakeAll(queues)
}

// unavailable is what a client may hear of a storage problem.
func unavailable(err error) error {
	return (&fault.Error{
		Kind: fault.Unavailable, Message: "the service cannot store anything at the moment, please retry",
		RetryAfter: 2 * time.Second,
		Faults:     []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General, Message: "storage is not available"}},
	}).Because(err)
}

// redactURL drops the password of a database URL before it is shown. It may
// stand in the query as well, and in an address that is mistyped nobody knows
// where it stands: of that only the scheme is shown.
func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.ContainsAny(u.Host, "@") || strings.ContainsAny(u.Path, "@:") {
		scheme, _, _ := strings.Cut(text, ":")
		return scheme + ":…"
	}
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		plain.User = url.User(u.User.Username())
	}
	return plain.String()
}
