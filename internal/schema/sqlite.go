package schema

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"tributary/internal/db"
)

// openSQLite holds back other processes that migrate, by a lock on the folder.
func openSQLite(ctx context.Context, d *db.DB) (*sqliteSession, error) {
	dir, err := os.Open(filepath.Dir(d.Path()))
	if err != nil {
		return nil, err
	}
	waited := false
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &sqliteSession{d: d, dir: dir}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err(), dir.Close())
		}
		if !waited {
			d.Log().Info("waiting for another process that migrates")
			waited = true
		}
		db.Pause(ctx, schemaLockEvery)
	}
}

// sqliteSession is the one who migrates. Every step is one transaction: beside
// the single writer nothing else could be done meanwhile anyway.
type sqliteSession struct {
	d   *db.DB
	dir *os.File
}

func (s *sqliteSession) step(ctx context.Context, m migration, record string) error {
	return s.d.Script(ctx, record+";"+m.script)
}

func (s *sqliteSession) grantAgain(context.Context) error { return nil } // a file has one user

func (s *sqliteSession) close() { _ = s.dir.Close() } // closing gives up a lock

func (s *sqliteSession) exec(ctx context.Context, script string) error {
	return s.d.Script(ctx, script)
}
