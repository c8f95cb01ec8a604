package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/fault"
)

// Backup copies a SQLite database to a new file while servers use it: one
// snapshot, with everything that was acknowledged before it began, compacted.
//
// Failure policy: the copy is made under another name, checked and synced, and
// only then given its own; an interrupted backup leaves no file that looks like
// one. Writers are not held up: the snapshot is a reader's, only the log grows
// until it ends. PostgreSQL has better tools of its own and is refused.
func Backup(ctx context.Context, url, to string) (err error) {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return fault.New(fault.Invalid, "only SQLite is copied here: use pg_dump, or a base backup with continuous archiving")
	}
	if _, err := os.Stat(path); err != nil {
		return fault.New(fault.Invalid, "there is no database to copy: %v", err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Invalid, "%s exists: name a new file", to)
	}
	draft := to + ".part"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an interrupted backup left: %w", err)
	}
	// VACUUM INTO writes into an empty file that is there: made by us it is
	// readable by nobody else, as what it holds deserves.
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the copy: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(draft) // the error is told
		}
	}()
	if err := vacuumInto(ctx, path, draft); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	if err := checkCopy(ctx, draft); err != nil {
		return fmt.Errorf("check the copy: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the copy: %w", err)
	}
	if err := os.Rename(draft, to); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func vacuumInto(ctx context.Context, path, to string) (err error) {
	source, err := sql.Open("sqlite", sqliteDSN(path, "deferred", nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	_, err = source.ExecContext(ctx, "VACUUM INTO $1", to)
	return err
}

func checkCopy(ctx context.Context, path string) (err error) {
	copied, err := sql.Open("sqlite", sqliteDSN(path, "deferred", []string{"query_only(ON)"}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	var verdict string
	if err := copied.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("the integrity check says: %s", verdict)
	}
	return nil
}
