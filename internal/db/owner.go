package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// What the owner of the schema needs beside the verbs; nobody else calls it.

var errOtherEngine = errors.New("the database is of the other engine")

// Session opens a connection of its own, beside the pools; PostgreSQL only.
func (d *DB) Session(ctx context.Context) (*pgx.Conn, error) {
	e, ok := d.eng.(*pgEngine)
	if !ok {
		return nil, errOtherEngine
	}
	return e.session(ctx)
}

// Ask runs one statement that is its own transaction and reads its row; PostgreSQL only.
func (d *DB) Ask(ctx context.Context, into []any, text string, args ...any) error {
	e, ok := d.eng.(*pgEngine)
	if !ok {
		return errOtherEngine
	}
	return e.work.QueryRow(ctx, text, args...).Scan(into...)
}

// FindRoles looks again with which role clients read; PostgreSQL only.
func (d *DB) FindRoles(ctx context.Context) error {
	e, ok := d.eng.(*pgEngine)
	if !ok {
		return errOtherEngine
	}
	return e.findRoles(ctx)
}

// ReadRole is the role with which clients read; "": that of the connection.
func (d *DB) ReadRole() string {
	if e, ok := d.eng.(*pgEngine); ok {
		if role := e.readRole.Load(); role != nil {
			return *role
		}
	}
	return ""
}

// Path is the file of a SQLite database, "" on PostgreSQL.
func (d *DB) Path() string {
	if e, ok := d.eng.(*sqliteEngine); ok {
		return e.path
	}
	return ""
}

// Script runs statements in one transaction of the single writer; SQLite only.
func (d *DB) Script(ctx context.Context, script string) error {
	e, ok := d.eng.(*sqliteEngine)
	if !ok {
		return errOtherEngine
	}
	tx, err := e.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
