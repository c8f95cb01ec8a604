package server_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/schema"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// begun are the folder of a demo that was started once and stopped, and a database
// that was only migrated. Programs begin with copies: migrating, onboarding a company
// in every country and making the authorities' keys take longer than most tests.
var begun struct {
	once                sync.Once
	dir, demo, migrated string
	err                 error
}

const databaseFile = "tributary.db"

func begin() (err error) {
	ctx := context.Background()
	if begun.dir, err = os.MkdirTemp("", "tributary-begun-"); err != nil {
		return err
	}
	begun.demo, begun.migrated = filepath.Join(begun.dir, "demo"), filepath.Join(begun.dir, "migrated.db")
	if err = os.Mkdir(begun.demo, 0o700); err != nil {
		return err
	}
	d, err := db.Open(ctx, db.Config{URL: "sqlite:" + begun.migrated})
	if err != nil {
		return err
	}
	_, err = schema.Migrate(ctx, d)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	if err = copyFile(begun.migrated, filepath.Join(begun.demo, databaseFile)); err != nil {
		return err
	}
	p := &program{cfg: server.Config{Demo: true, API: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0",
		Data: begun.demo, Version: "test", APIKey: secret.New([]byte(demoKey))}, ended: make(chan error, 1)}
	if err = p.launch(); err != nil {
		return err
	}
	err = p.await()
	if err == nil {
		var answer *http.Response
		// for which KSeF makes its keys
		if answer, err = http.Get(p.SimulatorsURL() + "/pl/security/public-key-certificates"); err == nil {
			err = answer.Body.Close()
		}
	}
	p.cancel()
	return errors.Join(err, <-p.ended, p.Close())
}

func beginOnce() error {
	begun.once.Do(func() { begun.err = begin() })
	return begun.err
}

// seed fills the folder of a demo that has not run yet. database is as in
// server.Config: what is not a file is left as it is.
func seed(dir, database string) error {
	if err := beginOnce(); err != nil {
		return err
	}
	return filepath.WalkDir(begun.demo, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(begun.demo, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if entry.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		if file, ok := strings.CutPrefix(database, "sqlite:"); ok && name == databaseFile {
			to = file
		} else if name == databaseFile && database != "" {
			return nil
		}
		return copyFile(path, to)
	})
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// seeded is seed for a test.
func seeded(t testing.TB, dir, database string) {
	t.Helper()
	must(t, seed(dir, database))
}

// migratedFile makes a migrated, empty database in a folder, under the name that programs look for.
func migratedFile(t testing.TB, dir string) {
	t.Helper()
	must(t, beginOnce())
	must(t, copyFile(begun.migrated, filepath.Join(dir, databaseFile)))
}

// open opens a program. A SQLite file that was closed a moment ago may still be
// held by a child of this process that another test has just forked.
func open(ctx context.Context, cfg server.Config) (s *server.Server, err error) {
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if s, err = server.Open(ctx, cfg.Cheap()); !errors.Is(err, db.ErrInUse) || time.Now().After(until) {
			return s, err
		}
	}
}

// eachEngine runs fn beside each other with the address of a fresh database of
// every engine: no file yet, or a PostgreSQL database that is migrated.
func eachEngine(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); fn(t, dbtest.SQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); fn(t, dbtest.MigratedURL(t)) })
}

// eachRole is eachEngine, and once more as the role that serves without its owner's rights.
func eachRole(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	eachEngine(t, fn)
	t.Run("roles", func(t *testing.T) {
		t.Parallel()
		served, _ := dbtest.ServedURL(t)
		fn(t, served)
	})
}
