package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tributary/internal/fault"
)

// sqliteEngine is one file, exactly one writing connection and a few readers.
//
// Failure policy: synchronous=FULL in WAL mode syncs the log at every commit,
// so an acknowledged group is on disk. The price is one fsync per group, which
// is why writes that wait together share it.
type sqliteEngine struct {
	d       *DB
	path    string
	lock    *os.File // held while this process serves the file; nil for a guest
	writer  *sql.DB  // MaxOpenConns(1): River's statements queue here in order of arrival, too
	readers *sql.DB
	queue   writeQueue
	stopped chan struct{}
	wstmts  stmtCache
	rstmts  stmtCache
	job     *client[*sql.Tx]
}

const (
	sqliteReaders     = 4
	sqliteBusyWait    = 10 * time.Second // another process (a guest, a backup) may hold the write lock that long
	sqliteWriterCache = 32 << 10         // KiB of page cache of the writer
	sqliteReaderCache = 4 << 10          // KiB of page cache of each reader
	sqliteCheckpoint  = 4000             // pages of log after which a commit moves them into the file
)

func openSQLite(ctx context.Context, d *DB, path string) (*sqliteEngine, error) {
	if path == "" {
		return nil, fault.New(fault.Invalid, "database \"sqlite:\": a path is missing, want sqlite:PATH")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the database: %w", err)
	}
	e := &sqliteEngine{d: d, path: path, queue: newWriteQueue(d.cfg.QueueMax), stopped: make(chan struct{})}
	if !d.cfg.Guest {
		lock, err := lockFile(path + ".lock")
		if err != nil {
			return nil, err
		}
		e.lock = lock
	}
	if err := e.connect(ctx); err != nil {
		if e.lock != nil {
			e.lock.Close() //nolint:errcheck // closing gives up a lock
		}
		return nil, err
	}
	e.job = &client[*sql.Tx]{driver: riversqlite.New(e.writer)}
	return e, nil
}

func (e *sqliteEngine) connect(ctx context.Context) error {
	var err error
	pragmas := []string{"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(OFF)", "temp_store(MEMORY)",
		fmt.Sprintf("wal_autocheckpoint(%d)", sqliteCheckpoint), fmt.Sprintf("cache_size(-%d)", sqliteWriterCache)}
	if e.writer, err = sql.Open("sqlite", sqliteDSN(e.path, "immediate", pragmas)); err != nil {
		return fmt.Errorf("open %s: %w", e.path, err)
	}
	e.writer.SetMaxOpenConns(1)
	e.writer.SetMaxIdleConns(1)
	e.writer.SetConnMaxIdleTime(0)
	if err := e.probe(ctx); err != nil {
		return errors.Join(err, e.writer.Close())
	}
	pragmas = []string{"query_only(ON)", "temp_store(MEMORY)", fmt.Sprintf("cache_size(-%d)", sqliteReaderCache)}
	if e.readers, err = sql.Open("sqlite", sqliteDSN(e.path, "deferred", pragmas)); err != nil {
		return errors.Join(err, e.writer.Close())
	}
	e.readers.SetMaxOpenConns(sqliteReaders)
	e.readers.SetMaxIdleConns(sqliteReaders)
	return nil
}

func sqliteDSN(path, txlock string, pragmas []string) string {
	q := url.Values{"_txlock": {txlock}, "_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", sqliteBusyWait.Milliseconds())}, pragmas...)}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// probe proves before anything else that the file can be read and written, and
// that it is sound when the last process died of a storage error.
func (e *sqliteEngine) probe(ctx context.Context) error {
	var mode string
	if err := e.writer.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("open %s: %w", e.path, explain(err))
	}
	if mode != "wal" {
		return fmt.Errorf("open %s: journal mode is %q and cannot be changed to wal; the file or its folder is read-only, or the filesystem has no shared memory", e.path, mode)
	}
	tx, err := e.writer.BeginTx(ctx, nil)
	if err == nil {
		_, err = tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS db_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
		err = errors.Join(err, tx.Commit())
	}
	if err != nil {
		return fmt.Errorf("write to %s: %w", e.path, explain(err))
	}
	if _, err := os.Stat(e.doubt()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var verdict string
	if err := e.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil || verdict != "ok" {
		return fmt.Errorf("%s did not pass the integrity check after a storage error (%s): restore a backup", e.path, errors.Join(err, errors.New(verdict)))
	}
	return os.Remove(e.doubt())
}

// doubt is a marker beside the file: the last process ended because storage could not be trusted.
func (e *sqliteEngine) doubt() string { return e.path + ".check" }

// explain adds what to do about a SQLite error that an operator can mend.
func explain(err error) error {
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("the disk is full: %w", err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("the file or its folder is read-only: %w", err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("the file cannot be opened; check path and permissions: %w", err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the file is not a SQLite database: %w", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("another process holds the write lock for over %s: %w", sqliteBusyWait, err)
	}
	return err
}

func sqliteCode(err error) int {
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code()
	}
	return 0
}

// lockFile makes this process the only server of a file, and says who is otherwise.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		text := make([]byte, 20)
		n, _ := f.Read(text)
		f.Close() //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("%s: process %s serves it: stop it first, or use PostgreSQL for several nodes: %w",
			strings.TrimSuffix(path, ".lock"), strings.TrimSpace(string(text[:n])), ErrInUse)
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("write the lock file: %w", err), f.Close())
		}
	}
	return f, nil
}

func (e *sqliteEngine) name() string { return "sqlite" }

func (e *sqliteEngine) start(*DB) error {
	go e.writeLoop()
	return nil
}

func (e *sqliteEngine) write(w *write) error { return e.queue.add(w) }

// writeLoop is the one writer. It takes what is waiting and never waits for company.
func (e *sqliteEngine) writeLoop() {
	defer close(e.stopped)
	group := make([]*write, 0, e.d.cfg.GroupMax)
	for e.queue.take(&group) {
		e.commit(group)
	}
}

// commit runs a group in one transaction, each member in its own savepoint.
func (e *sqliteEngine) commit(group []*write) {
	live := startAll(group)
	if len(live) == 0 {
		return
	}
	unprepared, err := e.tryCommit(live)
	for _, text := range unprepared {
		if e.wstmts.get(text) == nil {
			if s, err := e.writer.PrepareContext(context.Background(), text); err == nil {
				e.wstmts.put(text, s)
			}
		}
	}
	for _, w := range live {
		if err != nil && w.err == nil {
			w.err = err
		}
	}
	e.d.committed(live)
	for _, w := range live {
		close(w.done)
	}
}

func (e *sqliteEngine) tryCommit(group []*write) (unprepared []string, err error) {
	tx, err := e.writer.BeginTx(context.Background(), nil)
	if err != nil {
		return nil, e.classify(fmt.Errorf("begin: %w", err))
	}
	c := &sqliteTx{e: e, tx: tx, ctx: context.Background()}
	now := e.d.Now()
	stored := 0
	for _, w := range group {
		w.err = e.member(c, w, now, len(group) > 1)
		if w.err == nil {
			stored++
		}
		if code := sqliteCode(w.err) & 0xff; code == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR {
			err := e.classify(w.err)
			return nil, errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}
	if stored == 0 {
		return nil, ignoreDone(tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return nil, errors.Join(e.classify(fmt.Errorf("commit: %w", err)), ignoreDone(tx.Rollback()))
	}
	return c.unprepared, nil
}

// member runs one write. Alone it needs no savepoint: the transaction is its own.
func (e *sqliteEngine) member(c *sqliteTx, w *write, now time.Time, shared bool) error {
	if shared {
		if err := c.exec("SAVEPOINT member", nil, -1); err != nil {
			return err
		}
	}
	tx := &Tx{ctx: context.WithoutCancel(w.ctx), now: now, conn: c, d: e.d}
	err := w.run(tx)
	if err == nil && len(tx.jobs) > 0 {
		err = e.job.insert(tx.ctx, c.tx, tx.jobs)
	}
	if !shared {
		return err
	}
	if err != nil {
		if back := c.exec("ROLLBACK TO member", nil, -1); back != nil {
			return errors.Join(err, back)
		}
	}
	return errors.Join(err, c.exec("RELEASE member", nil, -1))
}

// classify decides what an engine error means for callers, and ends the
// process when the log could not be synced.
func (e *sqliteEngine) classify(err error) error {
	code := sqliteCode(err)
	switch {
	case code == sqlite3.SQLITE_IOERR_FSYNC, code == sqlite3.SQLITE_IOERR_DIR_FSYNC, code&0xff == sqlite3.SQLITE_CORRUPT:
		os.WriteFile(e.doubt(), []byte(err.Error()+"\n"), 0o600) //nolint:errcheck // best effort on a failing disk
		e.d.die(err)
	}
	return unavailable(explain(err))
}

// ignoreDone drops the complaint about a transaction that SQLite already rolled back.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	if err != nil && strings.Contains(err.Error(), "no transaction is active") {
		return nil // SQLite ends a transaction itself on some errors; database/sql does not know
	}
	return err
}

func (e *sqliteEngine) read(ctx context.Context, fn func(Reader) error) error {
	tx, err := e.readers.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return e.classify(fmt.Errorf("begin a read: %w", err))
	}
	defer tx.Rollback() //nolint:errcheck // a read has nothing to keep
	return fn(&sqliteTx{e: e, tx: tx, ctx: ctx, now: e.d.Now(), reads: true})
}

func (e *sqliteEngine) exec(ctx context.Context, script string) error {
	tx, err := e.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (e *sqliteEngine) jobs() jobEngine { return e.job }
func (e *sqliteEngine) notify(string)   {}

// alive: this process is the only one that leases, by the lock file.
func (e *sqliteEngine) alive() (liveNodes, error) { return liveNodes{e.d.node: true}, nil }

func (e *sqliteEngine) close() error {
	e.queue.close()
	<-e.stopped
	err := errors.Join(e.rstmts.close(), e.wstmts.close(), e.readers.Close(), e.writer.Close())
	if e.lock != nil {
		err = errors.Join(err, e.lock.Close())
	}
	return err
}

// sqliteTx is the engine's side of one transaction, reading or writing.
type sqliteTx struct {
	e     *sqliteEngine
	tx    *sql.Tx
	ctx   context.Context
	now   time.Time
	reads bool

	unprepared []string // texts this transaction met for the first time
}

func (c *sqliteTx) stmt(text string) (*sql.Stmt, error) {
	cache, pool := &c.e.wstmts, c.e.writer
	if c.reads {
		cache, pool = &c.e.rstmts, c.e.readers
	}
	if s := cache.get(text); s != nil {
		return c.tx.StmtContext(context.Background(), s), nil
	}
	if !c.reads {
		// The writer's only connection is inside this transaction: prepare on
		// it now, and for later transactions once this one has ended.
		s, err := c.tx.PrepareContext(context.Background(), text)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, text)
		}
		c.unprepared = append(c.unprepared, text)
		return s, nil
	}
	s, err := pool.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, text)
	}
	return c.tx.StmtContext(context.Background(), cache.put(text, s)), nil
}

func (c *sqliteTx) query(text string, args []any) (*Rows, error) {
	s, err := c.stmt(text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return nil, err
	}
	return &Rows{std: rows}, nil
}

func (c *sqliteTx) exec(text string, args []any, want int64) error {
	s, err := c.stmt(text)
	if err != nil {
		return err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil || want < 0 {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != want {
		return errors.Join(err, ErrStale)
	}
	return nil
}

func (c *sqliteTx) execEach(text string, rows [][]any, want int64) error {
	for _, args := range rows {
		if err := c.exec(text, args, want); err != nil {
			return err
		}
	}
	return nil
}

func (c *sqliteTx) insert(in Insert, rows [][]any, each func(*Rows) error) error {
	text := insertValues(in)
	for _, args := range rows {
		if each == nil {
			if err := c.exec(text, args, -1); err != nil {
				return err
			}
			continue
		}
		result, err := c.query(text, args)
		if err != nil {
			return err
		}
		if err := result.Each(func(func(...any) error) error { return each(result) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *sqliteTx) lock(string) error { return nil }

// Reader.
func (c *sqliteTx) Query(text string, args ...any) (*Rows, error) { return c.query(text, args) }
func (c *sqliteTx) Row(text string, args ...any) *Row {
	rows, err := c.query(text, args)
	return &Row{rows: rows, err: err}
}
func (c *sqliteTx) Now() time.Time           { return c.now }
func (c *sqliteTx) Context() context.Context { return c.ctx }

// insertValues is the text of a one-row insert.
func insertValues(in Insert) string {
	n := strings.Count(in.Columns, ",") + 1
	var b strings.Builder
	b.WriteString("INSERT INTO " + in.Table + " (" + in.Columns + ") VALUES (")
	for i := 1; i <= n; i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		b.WriteString("$" + strconv.Itoa(i))
	}
	b.WriteString(") " + in.Suffix)
	return b.String()
}

// stmtCache keeps prepared statements for the life of the engine: the number
// of SQL texts in the program is small and fixed.
type stmtCache struct {
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

func (c *stmtCache) get(text string) *sql.Stmt {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.stmts[text]
}

// put keeps s, or closes it and returns the one that was first.
func (c *stmtCache) put(text string, s *sql.Stmt) *sql.Stmt {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.stmts[text]; first != nil {
		s.Close() //nolint:errcheck // an unused statement
		return first
	}
	if c.stmts == nil {
		c.stmts = map[string]*sql.Stmt{}
	}
	c.stmts[text] = s
	return s
}

func (c *stmtCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, s := range c.stmts {
		err = errors.Join(err, s.Close())
	}
	return err
}
