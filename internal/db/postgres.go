package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

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
// hear ErrOutcomeUnknown instead of being repeated. From then on nobody knows
// either whether the other connections lead to the same server, so all of them
// are given up: a frozen primary that wakes up beside its successor must not be
// asked about what the successor was told.
type pgEngine struct {
	d     *DB
	cfg   *pgxpool.Config // how sessions are made; without limits of their own
	queue writeQueue
	wg    sync.WaitGroup
	stop  context.CancelFunc
	cols  columnTypes
	peers *peers

	hosts    hosts
	cluster  cluster
	readRole atomic.Pointer[string] // with which clients read; nil: there are no roles
	// Connections are kept apart by who needs them, so that many slow reads of
	// clients cannot make commits and claims wait.
	commits  *pgxpool.Pool // the committers'
	work     *pgxpool.Pool // claims, workers, the job engine, the clock, other nodes
	visitors *pgxpool.Pool // reads with a budget: see WithReadBudget
}

// pgUse is who uses a pool, with the time limits the server keeps for it.
type pgUse struct {
	name      string
	conns     int32
	statement time.Duration // a statement is ended after it
	lock      time.Duration // waiting for a lock is ended after it; 0: only with the statement
}

// Limits of PostgreSQL sessions.
const (
	pgCommitConns  = committersPG
	pgWorkConns    = 8
	pgVisitorConns = 6 // more where the address says pool_max_conns

	pgStatementFor = 30 * time.Second // a statement of a worker
	pgQuestionFor  = 3 * time.Second  // a small question of our own: the clock, the columns of a table, who lives
	pgReadSlack    = 2 * time.Second  // the server ends a statement by itself; past this it is silent
)

// openPostgres gives a server that was too slow to answer a second chance: a
// command or a start would fail for a moment in which a machine was busy.
func openPostgres(ctx context.Context, d *DB, c Config) (*pgEngine, error) {
	e, err := tryPostgres(ctx, d, c)
	if err != nil && ctx.Err() == nil && (pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)) {
		e, err = tryPostgres(ctx, d, c)
	}
	return e, err
}

func tryPostgres(ctx context.Context, d *DB, c Config) (*pgEngine, error) {
	url := c.URL
	cfg, err := parsePostgres(url)
	if err != nil {
		return nil, fault.New(fault.Invalid, "database: the address is not a valid postgres:// URL")
	}
	if !c.Password.IsZero() {
		cfg.ConnConfig.Password = c.Password.RevealText()
	}
	e := &pgEngine{d: d, cfg: cfg, queue: newWriteQueue(d.cfg.QueueMax)}
	e.cluster.moved = e.reset
	e.prepareSessions()
	d.patience = WriteTimeout + e.longer()
	e.lookAround(ctx)
	if err := e.refuseTransactionPooling(ctx); err != nil {
		return nil, fmt.Errorf("reach %s: %w", redactURL(url), err)
	}
	for _, p := range []struct {
		pool **pgxpool.Pool
		use  pgUse
	}{
		{&e.commits, pgUse{name: "commits", conns: pgCommitConns, statement: WriteTimeout, lock: pgGroupLock}},
		{&e.work, pgUse{name: "work", conns: pgWorkConns, statement: pgStatementFor}},
		{&e.visitors, pgUse{name: "visitors", conns: max(pgVisitorConns, cfg.MaxConns-pgCommitConns-pgWorkConns),
			statement: pgStatementFor}},
	} {
		if *p.pool, err = e.newPool(ctx, p.use); err != nil {
			e.closePools()
			return nil, fmt.Errorf("open %s: %w", redactURL(url), err)
		}
	}
	if err := e.sampleClock(ctx); err != nil {
		e.closePools()
		return nil, fmt.Errorf("reach %s: %w", redactURL(url), err)
	}
	if err := e.findRoles(ctx); err != nil {
		e.closePools()
		return nil, err
	}
	return e, nil
}

func (e *pgEngine) name() string { return "postgres" }

func (e *pgEngine) start(d *DB) error {
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	for range committersPG {
		e.wg.Go(e.commitLoop)
	}
	if d.cfg.NoWorkers {
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
	ctx, cancel := context.WithTimeout(ctx, e.cfg.ConnConfig.ConnectTimeout+pgQuestionFor)
	defer cancel()
	conn, err := e.work.Acquire(ctx) // connecting is no part of the round trip
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

// read runs fn, on one snapshot where its statements must agree. A connection that
// turns out to be broken before it has answered anything is not the caller's
// trouble: another is tried, once.
func (e *pgEngine) read(ctx context.Context, agree agreement, fn func(Reader) error) error {
	err := e.readOnce(ctx, agree, fn)
	if errors.Is(err, errUnanswered) && ctx.Err() == nil {
		e.reset() // those beside it may be broken as well
		err = e.readOnce(ctx, agree, fn)
	}
	return err
}

// errUnanswered marks the error of a read that broke before it was told anything.
var errUnanswered = errors.New("another connection may answer")

// readOnce is read on one connection. Whoever reads for a client brings a budget
// and uses the visitors' connections; the others are for the program's own work.
func (e *pgEngine) readOnce(ctx context.Context, agree agreement, fn func(Reader) error) error {
	pool, limit, visitor := e.work, pgStatementFor, false
	b := readBudget(ctx)
	if b != nil {
		limit, visitor = b.limit, b.visitor
	}
	if visitor {
		pool = e.visitors
	}
	wait, cancel := context.WithTimeout(ctx, limit+e.longer())
	defer cancel()
	conn, err := pool.Acquire(wait)
	if err != nil {
		return e.readError(ctx, visitor, fmt.Errorf("get a connection to read: %w", err))
	}
	defer conn.Release()
	c := &pgTx{e: e, ctx: ctx, instant: e.d.instant(), line: conn.Conn().PgConn().Conn(), limit: limit + pgReadSlack}
	defer c.line.SetDeadline(time.Time{})
	c.prolong()
	_, walled := clientOf(ctx)
	if c.on = conn; agree == oneSnapshot || visitor || walled {
		begin, err := e.beginRead(ctx, conn.Conn(), b)
		if err != nil {
			return e.classify(err)
		}
		tx, err := conn.BeginTx(ctx, begin)
		if err != nil {
			return e.readError(ctx, visitor, c.unanswered(conn.Conn(), fmt.Errorf("begin a read: %w: %w", errLost, err)))
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		c.on = tx
	}
	if visitor {
		c.limit = 0 // the budget is for all statements together
	}
	if err := fn(c); err != nil {
		return e.readError(ctx, visitor, c.unanswered(conn.Conn(), err))
	}
	return nil
}

// readError decides what the caller of a read hears.
func (e *pgEngine) readError(ctx context.Context, visitor bool, err error) error {
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return e.classify(ctx.Err())
	case visitor && (SQLState(err) == queryCanceled || errors.Is(err, context.DeadlineExceeded)):
		return overBudget(err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return unavailable(err)
	}
	return e.classify(err)
}

// reset gives all connections up; those in use are closed when they are given
// back. The next ones are made by the rules of cluster.
func (e *pgEngine) reset() {
	for _, pool := range []*pgxpool.Pool{e.commits, e.work, e.visitors} {
		if pool != nil {
			pool.Reset()
		}
	}
}

func (e *pgEngine) visitorConns() int { return int(e.visitors.Config().MaxConns) }

func (e *pgEngine) close() error {
	e.queue.close()
	e.stop()
	e.wg.Wait()
	e.closePools()
	return nil
}

func (e *pgEngine) closePools() {
	for _, pool := range []*pgxpool.Pool{e.commits, e.work, e.visitors} {
		if pool != nil {
			pool.Close()
		}
	}
}
