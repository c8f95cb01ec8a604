// Package dbtest gives any test a fresh, migrated database on every engine,
// and holds the conformance suite that every engine passes ([Exercise]).
//
// PostgreSQL runs as a private server on a free port and as an ordinary user, even
// when the tests run as root: one for a whole run of the suite, which make test
// starts ([AddressVariable]), else one per test binary. Without its binaries the
// PostgreSQL half is skipped with a clear line.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

// Each runs fn once per engine on a fresh, migrated database. The race run of make
// test takes PostgreSQL alone, where more goroutines meet: with the detector
// SQLite, which is Go here, costs more than ten times as much.
func Each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		needs.NotRaced(t, "on SQLite")
		fn(t, SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) { fn(t, Postgres(t)) })
}

// EachURL is Each with the address of a fresh, empty database.
func EachURL(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		needs.NotRaced(t, "on SQLite")
		fn(t, SQLiteURL(t))
	})
	t.Run("postgres", func(t *testing.T) { fn(t, PostgresURL(t)) })
}

// template is a migrated SQLite database, made once per test binary.
var template struct {
	once sync.Once
	file []byte
	err  error
}

func seed(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	template.once.Do(func() {
		path := filepath.Join(t.TempDir(), "template.db")
		d, err := db.Open(context.Background(), db.Config{URL: "sqlite:" + path})
		if err == nil {
			_, err = schema.Migrate(context.Background(), d)
			err = errors.Join(err, d.Close())
		}
		if err == nil {
			template.file, err = os.ReadFile(path)
		}
		template.err = err
	})
	if template.err != nil {
		t.Fatalf("make a SQLite database to copy: %v", template.err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, template.file, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// SQLite opens a fresh, migrated SQLite database.
func SQLite(t testing.TB) *db.DB { return Open(t, db.Config{URL: SQLiteURL(t)}) }

// Postgres opens a fresh, migrated database on the private server.
func Postgres(t testing.TB) *db.DB { return Open(t, db.Config{URL: MigratedURL(t)}) }

// SQLiteURL is the address of a SQLite file that does not exist yet.
func SQLiteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "tributary.db") }

// Open opens and migrates a database and closes it when the test ends. A
// SQLite file that does not exist yet begins as a copy of one that was
// migrated before: the steps take longer than most tests.
func Open(t testing.TB, cfg db.Config) *db.DB {
	t.Helper()
	ctx := context.Background()
	if path, ok := strings.CutPrefix(cfg.URL, "sqlite:"); ok {
		seed(t, path)
	}
	d, err := insist(func() (*db.DB, error) { return db.Open(ctx, cfg) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	if _, err := insist(func() (int, error) { return schema.Migrate(ctx, d) }); err != nil {
		t.Fatal(err)
	}
	return d
}

// insist repeats what the server had no time for: a machine that stands still for
// a few seconds is no reason for a test to fail.
func insist[T any](do func() (T, error)) (value T, err error) {
	for range 20 {
		if value, err = do(); fault.KindOf(err) != fault.Unavailable {
			break
		}
	}
	return value, err
}

// PostgresURL makes an empty database on the private server and drops it when the test ends.
func PostgresURL(t testing.TB) string {
	t.Helper()
	if rolesWanted() {
		served, _ := ServedURL(t)
		return served
	}
	return server(t).create(t, "template0")
}

// rolesWanted: what is tested runs as the role that serves, wherever it does not
// change the schema itself. TRIBUTARY_TEST_ROLES=1 asks for it.
func rolesWanted() bool { return os.Getenv("TRIBUTARY_TEST_ROLES") != "" }

// MigratedURL is PostgresURL for a database that has its schema already, as a
// copy of one that was migrated before.
func MigratedURL(t testing.TB) string {
	t.Helper()
	if rolesWanted() {
		served, _ := ServedURL(t)
		return served
	}
	return migratedURL(t)
}

func migratedURL(t testing.TB) string {
	t.Helper()
	s := server(t)
	s.makeMigrated(t)
	return s.create(t, "migrated")
}

func (s *Server) makeMigrated(t testing.TB) {
	t.Helper()
	s.migrated.Do(func() {
		s.alone(t, "the database to copy", func() {
			s.makeTemplate(t, "migrated", "template0", func(ctx context.Context, d *db.DB) error {
				_, err := schema.Migrate(ctx, d)
				return err
			})
		})
	})
}

// makeTemplate makes a database that others are copied from, unless another
// test binary has: half a one has another name.
func (s *Server) makeTemplate(t testing.TB, name, from string, prepare func(context.Context, *db.DB) error) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		t.Fatalf("connect to the test server: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }() // a test's own connection
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil {
		t.Fatalf("look for a PostgreSQL database to copy: %v", err)
	}
	if there {
		return
	}
	half := "half_" + name
	s.command(t, "DROP DATABASE IF EXISTS "+half)
	s.command(t, "CREATE DATABASE "+half+" TEMPLATE "+from)
	d, err := db.Open(ctx, db.Config{URL: s.url(half), NoWorkers: true})
	if err == nil {
		err = errors.Join(prepare(ctx, d), d.Close())
	}
	if err != nil {
		t.Fatalf("make a PostgreSQL database to copy: %v", err)
	}
	s.command(t, "ALTER DATABASE "+half+" RENAME TO "+name)
}

// Roles of a database whose owner does not serve. They belong to the server: all its databases share them.
const (
	ServeRole = "tributary_serve"
	ReadRole  = "tributary_serve_read"
)

// ServedURL is MigratedURL as the role that serves: without the rights of the
// owner, and with clients' reads behind row security. owner is the same
// database as its owner sees it.
func ServedURL(t testing.TB) (served, owner string) {
	t.Helper()
	s := server(t)
	s.makeMigrated(t)
	s.served.Do(func() {
		s.alone(t, "the roles", func() {
			s.makeTemplate(t, "served", "migrated", func(ctx context.Context, d *db.DB) error {
				return schema.Grant(ctx, d, schema.Roles{Serve: ServeRole, Read: ReadRole})
			})
		})
	})
	owner = s.create(t, "served")
	return strings.Replace(owner, "://tributary@", "://"+ServeRole+"@", 1), owner
}

// Ahead sets the day by which a PostgreSQL database lets its serving role destroy, as its owner may. Another engine has none.
func Ahead(t testing.TB, d *db.DB, days int) {
	t.Helper()
	if d.Engine() != "postgres" {
		return
	}
	own, err := d.Session(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close(context.Background()) }() // a test's own connection
	owner := strings.Replace(own.Config().ConnString(), "://"+ServeRole+"@", "://tributary@", 1)
	_, err = Connect(t, owner).Exec(context.Background(), fmt.Sprintf(`CREATE OR REPLACE FUNCTION service_day() RETURNS BIGINT LANGUAGE sql STABLE AS
		'SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::BIGINT + %d'`, days))
	if err != nil {
		t.Fatal(err)
	}
}

func (s *Server) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("t%d_%d", os.Getpid(), databases.Add(1))
	s.command(t, "CREATE DATABASE "+name+" TEMPLATE "+template+s.copying(t))
	t.Cleanup(func() { s.command(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	return s.url(name) + "&connect_timeout=30" // a machine that stands still for a while is no trouble of the program
}

var databases atomic.Int64

// copying is how a database is copied: by its files, which takes a quarter of what
// PostgreSQL's own choice since version 15 takes, where nothing waits for the disk.
func (s *Server) copying(t testing.TB) string {
	t.Helper()
	s.versioned.Do(func() {
		conn, err := pgx.Connect(context.Background(), s.url("postgres"))
		if err != nil {
			t.Fatalf("connect to the test server: %v", err)
		}
		if major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), "."); len(major) == 2 && major >= "15" {
			s.strategy = " STRATEGY file_copy"
		}
		_ = conn.Close(context.Background()) // a test's own connection
	})
	return s.strategy
}

// command runs a statement on a connection that the next one uses again.
func (s *Server) command(t testing.TB, sql string) {
	t.Helper()
	ctx := context.Background()
	var conn *pgx.Conn
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		conn, s.idle = s.idle[last], s.idle[:last]
	}
	s.mu.Unlock()
	if conn == nil {
		var err error
		if conn, err = pgx.Connect(ctx, s.url("postgres")); err != nil {
			t.Fatalf("connect to the test server: %v", err)
		}
	}
	if _, err := conn.Exec(ctx, sql); err != nil {
		_ = conn.Close(ctx) // a test's own connection
		t.Fatalf("%s: %v", sql, err)
	}
	s.mu.Lock()
	s.idle = append(s.idle, conn)
	s.mu.Unlock()
}

// LeaseTable is the schema of a table worked under leases, for tests of the
// mechanism: id, fair, payload and the lease's own columns.
func LeaseTable(name string) []string {
	return []string{
		"CREATE TABLE " + name + ` (id TEXT PRIMARY KEY, fair TEXT NOT NULL, payload TEXT NOT NULL DEFAULT '',
			due_at BIGINT, lease_until BIGINT, lease_token BIGINT NOT NULL DEFAULT 0, lease_node TEXT)`,
		"CREATE INDEX " + name + "_due ON " + name + " (due_at) WHERE due_at IS NOT NULL",
		"CREATE INDEX " + name + "_fair ON " + name + " (fair, due_at) WHERE due_at IS NOT NULL",
		"CREATE INDEX " + name + "_node ON " + name + " (lease_node) WHERE lease_node IS NOT NULL",
	}
}

// Binaries is the folder of the PostgreSQL programs.
func Binaries(t testing.TB) string { return server(t).bin }

// Bubble runs a test in synthetic time on a SQLite database of its own.
func Bubble(t *testing.T, test func(t *testing.T, d *db.DB)) {
	url := SQLiteURL(t)
	synctest.Test(t, func(t *testing.T) {
		d := Open(t, db.Config{URL: url})
		test(t, d)
	})
}
