package db

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
)

// logKeeper moves SQLite's write-ahead log into the file while the writer goes
// on: copying pages and syncing the file takes tens of milliseconds, which
// nobody should have to wait for. SQLite would do it by itself inside a commit,
// where it also keeps a failed sync to itself.
//
// Failure policy: the log is what makes a commit durable, moving it is
// housekeeping; but a sync that fails here is as bad as one in a commit and
// ends the process in the same way.
type logKeeper struct {
	e       *sqliteEngine
	pool    *sql.DB // a connection of its own
	kick    chan struct{}
	long    atomic.Bool // the log has outgrown logFramesMax: the writer must let it begin anew
	commits int         // the writer's own
	wg      sync.WaitGroup
}

const (
	logLookEvery = 8    // commits between two looks at the log
	logFrames    = 1000 // pages of log that are worth moving
	logFramesMax = 4000 // pages after which the writer stands still while the rest is moved
)

// startLogKeeper begins. A guest leaves the log to the server, or to SQLite
// when it closes the file last.
func startLogKeeper(e *sqliteEngine) (*logKeeper, error) {
	k := &logKeeper{e: e, kick: make(chan struct{}, 1)}
	if e.d.cfg.NoWorkers {
		return k, nil
	}
	var err error
	if k.pool, err = sql.Open("sqlite", sqliteDSN(e.path, "deferred",
		[]string{"synchronous(FULL)", "wal_autocheckpoint(0)"})); err != nil {
		return nil, fmt.Errorf("open %s: %w", e.path, err)
	}
	k.pool.SetMaxOpenConns(1)
	k.pool.SetMaxIdleConns(1)
	k.wg.Go(k.run)
	return k, nil
}

// committed is called by the writer between two transactions.
func (k *logKeeper) committed() {
	if k.pool == nil {
		return
	}
	if k.commits++; k.commits%logLookEvery == 0 {
		signal(k.kick)
	}
	// The log begins anew only when all of it is in the file, which never
	// happens beside a busy writer; most of it is, so this is short.
	if k.long.Load() {
		if _, _, err := k.move(k.e.writer, "PASSIVE"); err == nil {
			k.long.Store(false)
		}
	}
}

func (k *logKeeper) run() {
	for range k.kick {
		length, left, err := k.move(k.pool, "NOOP")
		if err == nil && left >= logFrames {
			length, _, err = k.move(k.pool, "PASSIVE")
		}
		if err == nil && length >= logFramesMax {
			k.long.Store(true)
		}
	}
}

// move runs a checkpoint and returns how many frames the log has, and how many
// of them are not in the file.
func (k *logKeeper) move(on *sql.DB, mode string) (length, left int, err error) {
	var busy, moved int
	err = on.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &length, &moved)
	if err != nil {
		k.e.d.log.Warn("move the log into the database file", "error", k.e.classify(err))
	}
	return length, length - moved, err
}

func (k *logKeeper) close() error {
	if k.pool == nil {
		return nil
	}
	close(k.kick)
	k.wg.Wait()
	return k.pool.Close()
}
