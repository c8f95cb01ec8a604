package db

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"tributary/internal/fault"
)

// pgEngine is a server shared by any number of nodes.
//
// Round trips are the scarce thing here, so a write's statements are queued
// and sent together, and writes that wait at the same time share one pipeline
// and one commit. A few committers work in parallel.
//
// Failure policy: when a group fails, its members run again alone, so that one
// bad write never spoils another; a write function may therefore run twice.
// When the connection dies in COMMIT nobody knows the outcome, and the members
// hear ErrOutcomeUnknown instead of being repeated.
type pgEngine struct {
	d     *DB
	pool  *pgxpool.Pool
	queue writeQueue
	wg    sync.WaitGroup
	stop  context.CancelFunc
	cols  columnTypes
	job   *client[pgx.Tx]
	peers *peers

	patience time.Duration // pgGroupTimeout, but in tests
}

const (
	pgConnsMax       = 16
	pgConnectTimeout = 5 * time.Second
	pgAloneTries     = 3                // a write alone, against deadlocks and serialization failures
	pgGroupTimeout   = 30 * time.Second // a server that says nothing must not hold the committers for ever
	pgSilence        = 10 * time.Second // how long a vanished machine goes unnoticed
)

// dialServer connects so that a machine which vanished without a word is
// noticed: otherwise a commit would wait for its answer for a quarter of an hour.
func dialServer(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pgSilence / 2, Interval: pgSilence / 4, Count: 2}}
	return d.DialContext(ctx, network, addr)
}

func openPostgres(ctx context.Context, d *DB, url string) (*pgEngine, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fault.New(fault.Invalid, "database: the address is not a valid postgres:// URL")
	}
	if cfg.MaxConns < pgConnsMax {
		cfg.MaxConns = pgConnsMax
	}
	cfg.ConnConfig.ConnectTimeout = pgConnectTimeout
	cfg.ConnConfig.DialFunc = dialServer
	set := cfg.ConnConfig.RuntimeParams
	set["application_name"] = "tributary"
	set["synchronous_commit"] = "on"
	set["timezone"] = "UTC"
	set["idle_in_transaction_session_timeout"] = "60000" // a stalled node must not hold locks for ever
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", redactURL(url), err)
	}
	e := &pgEngine{d: d, pool: pool, queue: newWriteQueue(d.cfg.QueueMax), patience: pgGroupTimeout}
	if err := e.sampleClock(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach %s: %w", redactURL(url), err)
	}
	e.job = &client[pgx.Tx]{driver: riverpgxv5.New(pool)}
	return e, nil
}

func (e *pgEngine) name() string { return "postgres" }

func (e *pgEngine) start(d *DB) error {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	for range committersPG {
		e.wg.Go(e.commitLoop)
	}
	if d.cfg.Guest {
		return nil
	}
	e.peers = newPeers(e)
	if err := e.peers.connect(ctx); err != nil {
		cancel()
		e.queue.close()
		return fmt.Errorf("listen for other nodes: %w", err)
	}
	e.wg.Go(func() { e.peers.run(ctx) })
	return nil
}

// sampleClock aligns the clock with the server's. Of a few round trips the
// quickest says best when the server looked at its clock.
func (e *pgEngine) sampleClock(ctx context.Context) error {
	conn, err := e.pool.Acquire(ctx) // connecting is no part of the round trip
	if err != nil {
		return err
	}
	defer conn.Release()
	var server, looked time.Time
	var quickest time.Duration
	for try := range clockTries {
		asked := time.Now()
		var at time.Time
		if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
			return err
		}
		if trip := time.Since(asked); try == 0 || trip < quickest {
			server, looked, quickest = at, asked.Add(trip/2), trip
		}
	}
	e.d.clock.observe(server, time.Since(looked))
	return nil
}

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
// answers everybody.
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
	e.store(group)
	answered = true
}

func (e *pgEngine) store(group []*write) {
	if len(group) > 1 {
		err := e.tryCommit(group)
		if err == nil {
			return
		}
		if errors.Is(err, ErrOutcomeUnknown) {
			for _, w := range group {
				if w.err == nil {
					w.err = err
				}
			}
			return
		}
	}
	for _, w := range group {
		e.commitAlone(w)
	}
}

func (e *pgEngine) commitAlone(w *write) {
	for try := 1; ; try++ {
		w.err, w.panicked = nil, nil
		err := e.tryCommit([]*write{w})
		if err == nil || w.panicked != nil {
			return
		}
		w.err = err
		if !repeatable(err) || try == pgAloneTries {
			return
		}
	}
}

// tryCommit runs all members in one transaction. Members that fail before
// anything of theirs was sent drop out and keep their error; any other failure
// is returned and nothing is stored.
func (e *pgEngine) tryCommit(group []*write) error {
	conn, err := e.acquire()
	if err != nil {
		return unavailable(fmt.Errorf("get a connection: %w", err))
	}
	defer conn.Release()
	// A deadline of the connection, not of a context: pgx starts a goroutine
	// per statement to watch one.
	line := conn.Conn().PgConn().Conn()
	line.SetDeadline(time.Now().Add(e.patience)) //nolint:errcheck // a broken connection says so soon enough
	defer line.SetDeadline(time.Time{})          //nolint:errcheck // as above
	ctx := context.Background()
	tx, err := conn.Begin(ctx)
	if err != nil {
		// Nothing was sent but BEGIN: whatever went wrong, nothing is stored.
		return e.classify(fmt.Errorf("begin: %w: %w", errLost, err))
	}
	ended := false
	defer func() {
		if !ended {
			tx.Rollback(ctx) //nolint:errcheck // the connection is given up if it cannot
		}
	}()
	c := &pgTx{e: e, tx: tx, ctx: ctx, shared: len(group) > 1}
	stored, err := e.members(c, group)
	if err == nil {
		err = c.flush()
	}
	if err != nil || stored == 0 {
		return e.classify(err)
	}
	ended = true
	if err := tx.Commit(ctx); err != nil {
		return e.commitError(err)
	}
	return nil
}

func (e *pgEngine) acquire() (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.patience)
	defer cancel()
	return e.pool.Acquire(ctx)
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
	return unavailable(fmt.Errorf("commit: %w: %w", ErrOutcomeUnknown, err))
}

func (e *pgEngine) members(c *pgTx, group []*write) (stored int, err error) {
	at := e.d.instant()
	for _, w := range group {
		mark := c.mark()
		tx := &Tx{ctx: context.WithoutCancel(w.ctx), instant: at, conn: c, d: e.d}
		w.err = w.run(tx)
		if w.err == nil && len(tx.jobs) > 0 {
			if w.err = c.flush(); w.err == nil {
				w.err = e.job.insert(tx.ctx, c.tx, tx.jobs)
			}
		}
		switch {
		case w.err == nil:
			stored++
		case c.drop(mark):
			// nothing of it was sent: the others go on without it
		default:
			return stored, w.err
		}
	}
	return stored, nil
}

// repeatable reports errors after which the same write, alone, may succeed and was certainly not stored.
func repeatable(err error) bool {
	if errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "40001" || pg.Code == "40P01" || strings.HasPrefix(pg.Code, "08") || pg.Code == "57P01"
	}
	return connectionLost(err)
}

func connectionLost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || (errors.Is(err, errLost))
}

// errLost marks an error of a connection that died before COMMIT was sent.
var errLost = errors.New("the connection to the database was lost")

// classify turns connection trouble into Unavailable and leaves the writer's own errors alone.
func (e *pgEngine) classify(err error) error {
	if err == nil || errors.Is(err, ErrStale) {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"),
			strings.HasPrefix(pg.Code, "58"), pg.Code == "25006":
			return unavailable(err)
		}
		return err
	}
	if errors.Is(err, errLost) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) || cutOff(err) {
		return unavailable(err)
	}
	return err
}

// cutOff: the line broke while rows were read. Nothing else in a write or a read talks to a network.
func cutOff(err error) bool {
	_, line := errors.AsType[*net.OpError](err)
	return line || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

func (e *pgEngine) read(ctx context.Context, fn func(Reader) error) error {
	tx, err := e.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return unavailable(fmt.Errorf("begin a read: %w", err))
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // a read has nothing to keep
	return e.classify(fn(&pgTx{e: e, tx: tx, ctx: ctx, instant: e.d.instant()}))
}

func (e *pgEngine) jobs() jobEngine { return e.job }

func (e *pgEngine) close() error {
	e.queue.close()
	e.stop()
	e.wg.Wait()
	e.pool.Close()
	return nil
}

// pgTx is the engine's side of one transaction. Statements that return nothing
// are queued and go out together at the first read or at the commit.
type pgTx struct {
	e   *pgEngine
	tx  pgx.Tx
	ctx context.Context
	instant
	shared bool // a group: locks must not wait
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
	rows, err := c.tx.Query(c.ctx, sql, args...)
	if err != nil {
		return nil, c.lost(err)
	}
	return &Rows{pgx: rows}, nil
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

func (c *pgTx) insert(in Insert, rows [][]any, each func(*Rows) error) error {
	if each == nil {
		c.queued = append(c.queued, pgStmt{set: &in, rows: rows, want: -1})
		return nil
	}
	sql, args, err := c.e.cols.unnest(c.ctx, c.e.pool, in, rows)
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
			sql, args, err := c.e.cols.unnest(c.ctx, c.e.pool, *s.set, s.rows)
			if err != nil {
				return err
			}
			batch.Queue(sql, args...)
			continue
		}
		batch.Queue(s.sql, s.args...)
	}
	results := c.tx.SendBatch(c.ctx, batch)
	var stale error
	for _, s := range stmts {
		tag, err := results.Exec()
		if err != nil {
			results.Close() //nolint:errcheck // the first error tells more
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
	if _, answered := errors.AsType[*pgconn.PgError](err); !answered && c.tx.Conn().IsClosed() {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// lock waits for its turn, but never inside a group: waiting while other
// members hold locks could deadlock. A group that would wait runs again as
// single writes.
func (c *pgTx) lock(name string) error {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // a hash never fails
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
