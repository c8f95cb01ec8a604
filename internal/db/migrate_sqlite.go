package db

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// openSchema holds back other processes that migrate, by a lock on the folder.
func (e *sqliteEngine) openSchema(ctx context.Context) (schema, error) {
	dir, err := os.Open(filepath.Dir(e.path))
	if err != nil {
		return nil, err
	}
	waited := false
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &sqliteSchema{e: e, dir: dir}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err(), dir.Close())
		}
		if !waited {
			e.d.log.Info("waiting for another process that migrates")
			waited = true
		}
		pause(ctx, schemaLockEvery)
	}
}

// sqliteSchema is the one who migrates. Every step is one transaction: beside
// the single writer nothing else could be done meanwhile anyway.
type sqliteSchema struct {
	e   *sqliteEngine
	dir *os.File
}

func (s *sqliteSchema) step(ctx context.Context, m migration, record string) error {
	return s.exec(ctx, record+";"+m.script)
}

func (s *sqliteSchema) grantAgain(context.Context) error { return nil } // a file has one user

func (s *sqliteSchema) close() { _ = s.dir.Close() } // closing gives up a lock

func (s *sqliteSchema) exec(ctx context.Context, script string) error {
	tx, err := s.e.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
