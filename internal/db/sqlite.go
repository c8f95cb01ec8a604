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
	"syscall"
	"time"

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
	d      *DB
	path   string
	lock   *os.File // held while this process serves the file; nil for a guest
	writer *sql.DB  // MaxOpenConns(1): statements queue here in order of arrival
	// Readers are kept apart by who needs them: many slow reads of clients must
	// not make claims wait.
	work     readers // claims and workers
	visitors readers // reads with a budget: see WithReadBudget
	queue    writeQueue
	stopped  chan struct{}
	careful  int // groups that still begin with savepoints
	log      *logKeeper
	wstmts   stmtCache
}

// readers are some reading connections and what was prepared on them.
type readers struct {
	pool  *sql.DB
	stmts stmtCache
}

func (r *readers) close() error {
	if r.pool == nil {
		return nil
	}
	return errors.Join(r.stmts.close(), r.pool.Close())
}

const (
	sqliteReaders     = 4                // of each kind
	carefulGroups     = 64               // groups with savepoints after a member failed
	sqliteBusyWait    = 10 * time.Second // another process (a guest, a backup) may hold the write lock that long
	sqliteWriterCache = 32 << 10         // KiB of page cache of the writer
	sqliteReaderCache = 4 << 10          // KiB of page cache of each reader
)

func openSQLite(ctx context.Context, d *DB, path string) (*sqliteEngine, error) {
	if path == "" {
		return nil, fault.New(fault.Invalid, "database \"sqlite:\": a path is missing, want sqlite:PATH")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the database: %w", err)
	}
	e := &sqliteEngine{d: d, path: path, queue: newWriteQueue(d.cfg.QueueMax), stopped: make(chan struct{})}
	if !d.cfg.NoWorkers {
		lock, err := lockFile(path + ".lock")
		if err != nil {
			return nil, err
		}
		e.lock = lock
	}
	err := ownersOnly(path)
	if err == nil {
		err = e.connect(ctx)
	}
	if err != nil {
		if e.lock != nil {
			_ = unlock(e.lock) // nothing was written
		}
		return nil, err
	}
	return e, nil
}

// ownersOnly makes a new file that nobody else can read: SQLite gives its log
// the file's own rights, and left alone makes it as the umask says. A file that
// exists keeps what its owner decided.
func ownersOnly(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return fmt.Errorf("make %s: %w", path, err)
}

func (e *sqliteEngine) connect(ctx context.Context) error {
	var err error
	pragmas := []string{"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(OFF)", "temp_store(MEMORY)",
		"wal_autocheckpoint(0)", fmt.Sprintf("cache_size(-%d)", sqliteWriterCache)}
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
	for _, r := range []*readers{&e.work, &e.visitors} {
		if r.pool, err = sql.Open("sqlite", sqliteDSN(e.path, "deferred", pragmas)); err != nil {
			return errors.Join(err, e.work.close(), e.writer.Close())
		}
		r.pool.SetMaxOpenConns(sqliteReaders)
		r.pool.SetMaxIdleConns(sqliteReaders)
	}
	return nil
}

func sqliteDSN(path, txlock string, pragmas []string) string {
	q := url.Values{"_txlock": {txlock}, "_pragma": append(
		[]string{fmt.Sprintf("busy_timeout(%d)", sqliteBusyWait.Milliseconds())}, pragmas...)}
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
		_, err = tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS db_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
			INSERT INTO db_meta (key, value) VALUES ('opened', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
			e.d.Now().Format(time.RFC3339Nano)+" "+e.d.node) // always something new, or nothing would be written
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
		return fmt.Errorf("%s did not pass the integrity check after a storage error (%s): restore a backup", e.path,
			errors.Join(err, errors.New(verdict)))
	}
	return os.Remove(e.doubt())
}

// doubt is a marker beside the file: the last process ended because storage could not be trusted.
func (e *sqliteEngine) doubt() string { return e.path + ".check" }

// explain adds what to do about a SQLite error that an operator can fix.
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
		return nil, fmt.Errorf("the folder of the database must be writable: open the lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		text := make([]byte, 20)
		n, _ := f.Read(text)
		_ = f.Close() // nothing was written
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

// unlock gives up a lock before it closes the file: a process that is just being
// started holds every open file until it runs its program, and with it the lock.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

func (e *sqliteEngine) name() string { return "sqlite" }

func (e *sqliteEngine) start(d *DB) error {
	var err error
	if e.log, err = startLogKeeper(e); err != nil {
		return err
	}
	go e.writeLoop()
	return nil
}

func (e *sqliteEngine) write(w *write) error { return e.queue.add(w) }

// writeLoop is the one writer. It takes what is waiting and never waits for company.
func (e *sqliteEngine) writeLoop() {
	over := false
	defer func() {
		if over {
			close(e.stopped)
		} else {
			go e.writeLoop() // a write function ended this goroutine: see write.run
		}
	}()
	group := make([]*write, 0, e.d.cfg.GroupMax)
	for e.queue.take(&group) {
		e.commit(group)
	}
	over = true
}

// commit stores a group in one transaction and answers everybody before it
// looks after the log.
//
// Failure policy: at first the members run without savepoints, which cost a
// quarter of a write. When one of them fails after it has changed something,
// everything is rolled back and all run again, each in its own savepoint, so
// that a bad write never spoils another. Failures come in swarms, so the next
// groups begin with savepoints.
func (e *sqliteEngine) commit(group []*write) {
	live := startAll(group)
	if len(live) == 0 {
		return
	}
	err := unavailable(errInterrupted)
	c := &sqliteTx{ctx: context.Background(), cache: &e.wstmts}
	defer func() {
		for _, w := range live {
			if err != nil && (w.err == nil || errors.Is(err, errSpoilt)) && w.panicked == nil {
				w.err = err
			}
		}
		e.d.committed(live)
		for _, w := range live {
			close(w.done)
		}
		c.learn(e.writer)
		e.log.committed()
	}()
	e.careful = max(e.careful-1, 0)
	answer := e.tryCommit(c, live, e.careful > 0)
	if errors.Is(answer, errAgain) {
		e.careful = carefulGroups
		c = &sqliteTx{ctx: c.ctx, cache: c.cache, fresh: c.fresh}
		answer = e.tryCommit(c, live, true)
	}
	err = answer
}

var (
	errInterrupted = errors.New("another write function ended the writer")
	errSpoilt      = errors.New("the group was given up")
	errAgain       = errors.New("a member failed and there is no savepoint")
)

func (e *sqliteEngine) tryCommit(c *sqliteTx, group []*write, careful bool) (err error) {
	if cause := e.d.dead.Load(); cause != nil {
		return unavailable(*cause)
	}
	tx, err := e.writer.BeginTx(context.Background(), nil)
	if err != nil {
		return e.classify(fmt.Errorf("begin: %w", err))
	}
	ended := false
	defer func() {
		if !ended {
			err = errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}()
	c.tx = tx
	at := e.d.instant()
	stored := 0
	for _, w := range group {
		c.dirty, w.panicked = false, nil
		w.err = e.member(c, w, at, careful && len(group) > 1)
		if cause := spoils(w); cause != nil {
			return fmt.Errorf("%w: %w", errSpoilt, e.classify(cause))
		}
		if w.err == nil {
			stored++
		} else if !careful && len(group) > 1 && c.dirty {
			return errAgain
		}
	}
	if stored == 0 {
		return nil
	}
	ended = true
	if err := tx.Commit(); err != nil {
		return e.classify(fmt.Errorf("commit: %w", err))
	}
	return nil
}

// spoils reports an error after which SQLite may have ended the whole
// transaction by itself: whatever ran later would be committed alone.
func spoils(w *write) error {
	for _, err := range []error{w.err, w.tx.failed} {
		switch sqliteCode(err) & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY:
			return err
		}
	}
	return nil
}

// member runs one write, in a savepoint if it must be possible to undo it alone.
func (e *sqliteEngine) member(c *sqliteTx, w *write, at instant, savepoint bool) error {
	tx := &Tx{ctx: context.WithoutCancel(w.ctx), instant: at, conn: c, d: e.d}
	w.tx = tx
	if savepoint {
		if err := tx.Exec("SAVEPOINT member"); err != nil {
			return err
		}
	}
	began := e.d.Elapsed()
	err := w.run(tx)
	if !w.submits {
		e.d.pace.Spent(e.d.Elapsed() - began) // of this process; PostgreSQL computes in its own
	}
	if !savepoint {
		return err
	}
	if err != nil {
		if back := c.exec("ROLLBACK TO member", nil, -1); back != nil {
			return errors.Join(err, back)
		}
	}
	if end := c.exec("RELEASE member", nil, -1); end != nil {
		return errors.Join(err, end)
	}
	return err // as it came
}

// classify decides what an engine error means for callers, and ends the
// process when the log could not be synced.
func (e *sqliteEngine) classify(err error) error {
	code := sqliteCode(err)
	switch {
	case code == sqlite3.SQLITE_IOERR_FSYNC, code == sqlite3.SQLITE_IOERR_DIR_FSYNC, code&0xff == sqlite3.SQLITE_CORRUPT:
		_ = os.WriteFile(e.doubt(), []byte(err.Error()+"\n"), 0o600) // best effort on a failing disk
		e.d.die(explain(err))
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

func (e *sqliteEngine) read(ctx context.Context, _ agreement, fn func(Reader) error) error {
	from := &e.work
	c := &sqliteTx{ctx: ctx, instant: e.d.instant()}
	wait, cancel := ctx, context.CancelFunc(func() {})
	if b := readBudget(ctx); b != nil && b.visitor {
		from = &e.visitors
		wait, cancel = context.WithTimeout(ctx, b.limit)
		c.limited = wait
	}
	defer cancel()
	c.cache = &from.stmts
	conn, err := from.pool.Conn(wait) // waiting for a free reader can be given up
	if err != nil {
		err = fmt.Errorf("get a reading connection: %w", err)
		if wait.Err() == nil {
			return e.classify(err)
		}
		return e.readError(ctx, wait, err)
	}
	defer func() {
		_ = conn.Close() // gives it back to the pool
		c.learn(from.pool)
	}()
	c.tx, err = conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return e.classify(fmt.Errorf("begin a read: %w", err))
	}
	defer c.tx.Rollback()
	if err := fn(c); err != nil {
		return e.readError(ctx, wait, err)
	}
	return nil
}

// readError decides what the caller of a read hears.
func (e *sqliteEngine) readError(ctx, wait context.Context, err error) error {
	code := sqliteCode(err) & 0xff
	switch {
	case ctx.Err() != nil && (code == sqlite3.SQLITE_INTERRUPT || errors.Is(err, wait.Err())):
		return ctx.Err()
	case wait.Err() != nil && (code == sqlite3.SQLITE_INTERRUPT || errors.Is(err, wait.Err()) || errors.Is(err, sql.ErrTxDone)):
		return overBudget(err)
	}
	return err
}

func (e *sqliteEngine) notify(string) {}

func (e *sqliteEngine) visitorConns() int { return sqliteReaders }

// alive: this process is the only one that leases, by the lock file.
func (e *sqliteEngine) alive() (live map[string]bool, certain bool, err error) {
	return map[string]bool{e.d.node: true}, true, nil
}

func (e *sqliteEngine) close() error {
	e.queue.close()
	<-e.stopped
	err := errors.Join(e.log.close(), e.work.close(), e.visitors.close(), e.wstmts.close(), e.writer.Close())
	if e.lock != nil {
		err = errors.Join(err, unlock(e.lock))
	}
	return err
}
