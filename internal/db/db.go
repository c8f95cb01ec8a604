// Package db is the storage of Tributary: two engines behind a few verbs.
//
// It owns connections, transactions, group commit, clocks and wake-ups. It owns no
// table: each slice owns its tables and its SQL. Law of [DB.Write]: nil
// means on disk; a write function may run twice, does no network or file work,
// never calls Write, and is short.
//
// Failure policy: an acknowledged write survives SIGKILL and power loss
// (SQLite: WAL with synchronous=FULL; PostgreSQL: synchronous_commit=on). An
// error from Write means "not acknowledged": where the commit's outcome is
// unknown it wraps [ErrOutcomeUnknown]. After an fsync error the process must
// end, because the page cache can no longer be believed: see [Config.Fatal].
package db

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/turnstile"
)

// ErrStale reports a write that no longer holds what it needs: its lease was
// taken over, or the row it expected is not there. Nothing of it is stored.
var ErrStale = errors.New("the lease or the expected row is gone")

// ErrNoRows reports a Row without a row.
var ErrNoRows = errors.New("no row")

// ErrOutcomeUnknown reports a commit whose answer was lost: it may be on disk.
var ErrOutcomeUnknown = errors.New("the outcome of the commit is unknown")

// ErrInUse reports a SQLite file that another process serves.
var ErrInUse = errors.New("the database is in use by another process")

// Limits of the write path.
const (
	queueMaxDefault = 4096 // writes waiting for a commit; past it Write answers Unavailable
	groupMaxDefault = 256  // writes in one commit
	committersPG    = 4    // groups that commit at the same time on PostgreSQL
)

// WriteTimeout is how long a write takes at most, its waiting included. It is
// shorter than the time an HTTP request has, so that whoever waits hears 503
// instead of a connection that is closed on him.
const WriteTimeout = 12 * time.Second

// patienceShare is the part of it that a write must have left when its turn comes.
const patienceShare = 6

// Config says how to open a database. Only URL is required.
type Config struct {
	URL       string        // sqlite:PATH or postgres://…
	Password  secret.Secret // of PostgreSQL, where it does not stand in the URL; it wins over one that does
	Log       *slog.Logger
	NoWorkers bool        // beside a running server: this connection holds no leases; the command line uses it
	Fatal     func(error) // called once when going on would endanger data; nil ends the process
	QueueMax  int
	GroupMax  int
	NoGroups  bool // benchmarks: one commit per write, to have something to compare with
}

// DB is an open database.
type DB struct {
	cfg      Config
	log      *slog.Logger
	eng      engine
	clock    *clock
	node     string
	wakes    wakes
	pace     Pace
	closed   chan struct{}
	once     sync.Once
	fatal    sync.Once
	patience time.Duration         // WriteTimeout, but in tests
	turns    *turnstile.Gate       // of callers from outside, to a connection
	dead     atomic.Pointer[error] // why nothing may be acknowledged any more

}

// engine is what the two databases do differently. It is not exported: nobody
// outside can add a third without its own migrations and conformance run.
type engine interface {
	name() string
	write(w *write) error // enqueue; the engine answers w.done
	read(ctx context.Context, agree agreement, fn func(Reader) error) error
	start(d *DB) error // background work: writers, listener
	notify(queue string)
	alive() (live map[string]bool, certain bool, err error)
	visitorConns() int // connections for the reads of callers from outside
	close() error
}

// Open connects and starts the write path. It does not touch the schema: package schema does.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.QueueMax == 0 {
		cfg.QueueMax = queueMaxDefault
	}
	if cfg.GroupMax == 0 {
		cfg.GroupMax = groupMaxDefault
	}
	if cfg.NoGroups {
		cfg.GroupMax = 1
	}
	d := &DB{cfg: cfg, log: cfg.Log, closed: make(chan struct{}), clock: newClock(), node: newNode(), patience: WriteTimeout}
	d.pace.elapsed, d.pace.processors = d.clock.elapsed, runtime.GOMAXPROCS(0)
	var err error
	switch {
	case strings.HasPrefix(cfg.URL, "sqlite:"):
		d.eng, err = openSQLite(ctx, d, strings.TrimPrefix(cfg.URL, "sqlite:"))
	case strings.HasPrefix(cfg.URL, "postgres://"), strings.HasPrefix(cfg.URL, "postgresql://"):
		d.eng, err = openPostgres(ctx, d, cfg)
	default:
		return nil, fault.New(fault.Invalid, "database %q: want sqlite:PATH or postgres://USER@HOST/NAME", redactURL(cfg.URL))
	}
	if err != nil {
		return nil, err
	}
	conns := int64(d.eng.visitorConns())
	d.turns = turnstile.New(conns, readsWaiting).Sharing(max(1, conns-1))
	if err := d.eng.start(d); err != nil {
		return nil, errors.Join(err, d.eng.close())
	}
	return d, nil
}

// Engine is "sqlite" or "postgres".
func (d *DB) Engine() string { return d.eng.name() }

// Now is the database's time: it never goes back, whatever the wall clock does.
// Due times and leases live on it, and whatever is compared with an instant that
// it gave. After a correction of the wall clock it is wrong for hours, so it
// never stands in a document: that is what [DB.Wall] is for. See clock.
func (d *DB) Now() time.Time { return d.clock.now() }

// Wall is the time of day, for what people and authorities read: dates and
// times in documents, chains, reports. It is this machine's clock on SQLite and
// the server's on PostgreSQL, so that nodes agree on it, at most ten seconds
// after somebody set it. It may go back: never wait for it, never order by it.
func (d *DB) Wall() time.Time { return d.clock.wall() }

// Node is this process's name among the holders of leases.
func (d *DB) Node() string { return d.node }

// Log of the database.
func (d *DB) Log() *slog.Logger { return d.log }

// Alive are the names of the nodes that run; certain: whoever is not among them is
// dead. Where a node's sign of life can be interrupted it is not.
func (d *DB) Alive() (live map[string]bool, certain bool, err error) { return d.eng.alive() }

// RunsWorkers refuses work on a connection that was opened beside a running server:
// nothing of it tells the others that it lives.
func (d *DB) RunsWorkers() error {
	if d.cfg.NoWorkers {
		return errors.New("this connection does not run jobs")
	}
	return nil
}

// Write runs fn in a transaction and returns nil once it is on disk. Writes
// that wait at the same time share one commit; a write alone goes at once. A
// full queue is fault.Unavailable at once. A panic in fn is raised again here.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.store(&write{ctx: ctx, fn: fn, until: turnstile.AnsweredBy(ctx, time.Now().Add(d.patience))})
}

// store is Write for a caller whose waiting may have begun before.
func (d *DB) store(w *write) error {
	ctx := w.ctx
	if err := ctx.Err(); err != nil {
		return err
	}
	w.least, w.done = d.patience/patienceShare, make(chan struct{})
	if err := d.eng.write(w); err != nil {
		return err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-w.done // already running: its outcome is near and must be told
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	return w.err
}

// Read runs fn on one snapshot. It never waits for a writer.
func (d *DB) Read(ctx context.Context, fn func(Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.read(ctx, oneSnapshot, fn)
}

// ReadEach is Read where statements need not agree with each other, as when there
// is one: each sees what is stored when it runs. On PostgreSQL a common snapshot
// takes two more round trips, to begin and to end it.
func (d *DB) ReadEach(ctx context.Context, fn func(Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.read(ctx, eachItsOwn, fn)
}

// agreement says whether the statements of a read see the same.
type agreement bool

const (
	oneSnapshot agreement = true
	eachItsOwn  agreement = false
)

// Close ends the write path after everything accepted is answered, and closes the connections.
func (d *DB) Close() error {
	var err error
	d.once.Do(func() {
		close(d.closed)
		err = d.eng.close()
	})
	return err
}

// die reports a condition under which going on could lose acknowledged data.
// From here on no write is acknowledged, even while Config.Fatal takes its time.
func (d *DB) die(err error) {
	d.fatal.Do(func() {
		d.dead.Store(&err)
		d.log.Error("storage can no longer be trusted, ending the process", "alert", "storage_failed", "error", err)
		if d.cfg.Fatal != nil {
			d.cfg.Fatal(err)
			return
		}
		os.Exit(1)
	})
}

// Micros is how instants are stored: microseconds since 1970, UTC.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros reads a stored instant.
func FromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
