// Package schema owns the shape of the database: its migrations, the roles that may
// use it and the partitions of tables that grow by the day.
//
// It owns the tables about itself (schema_version, schema_begun, schema_roles,
// partitioned) and no other: what the migrations make belongs to the slices.
package schema

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/db"
)

//go:embed migrations
var migrationFiles embed.FS

// ErrOld reports a database whose schema is older than this program.
var ErrOld = errors.New("the database has an older schema: run `tributary migrate`, or start with --migrate")

// ErrNew reports a database whose schema is newer than this program.
var ErrNew = errors.New("the database has a newer schema than this program knows: use the newer program")

// ErrUnreleased reports a database of a program from before the first release.
var ErrUnreleased = errors.New(
	"the database was made by a program from before version 0.9.0, the first release; it cannot be migrated: begin with an empty one")

// session is the engine's side of a migration, while no other node migrates.
type session interface {
	exec(ctx context.Context, script string) error // one transaction
	step(ctx context.Context, m migration, record string) error
	grantAgain(ctx context.Context) error // what was added, to roles that are known
	close()
}

// Time limits of migrations. They have nothing to do with those of a start: an
// index over a hundred million rows takes its time.
const (
	migrateFor      = 12 * time.Hour
	schemaLockEvery = 200 * time.Millisecond // a look whether another node still migrates
	tellEvery       = 5 * time.Second        // a line about a step that takes long
)

// migration is one step of the schema. Steps are additive: a node of the
// version before goes on working beside nodes of the new one, so columns are
// added with defaults, and nothing is renamed or dropped while such nodes may run.
//
// On PostgreSQL a step may end with CREATE INDEX CONCURRENTLY statements, and
// does so where it adds an index to a table of an earlier step: they are built
// one by one, outside of the step's transaction, while others write. A table with
// partitions takes no index concurrently: build one for each partition, then one ON ONLY it.
type migration struct {
	version int
	name    string
	script  string
	first   bool // of an empty database: nobody waits for the single step
}

// level is how loud the single step is. An empty database takes all of them in
// a moment, and one line says so.
func (m migration) level() slog.Level {
	if m.first {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (m migration) digest() string {
	sum := sha256.Sum256([]byte(m.script))
	return hex.EncodeToString(sum[:8])
}

// migrations reads the embedded steps of an engine, in order.
func migrations(engine string) ([]migration, error) {
	entries, err := fs.ReadDir(migrationFiles, "migrations/"+engine)
	if err != nil {
		return nil, err
	}
	var all []migration
	last := 0
	for _, e := range entries {
		number, name, ok := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version <= last {
			return nil, fmt.Errorf("migration %s/%s: want a name like %04d_what.sql", engine, e.Name(), last+1)
		}
		last = version
		script, err := fs.ReadFile(migrationFiles, "migrations/"+engine+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, migration{version: version, name: name, script: string(script)})
	}
	return all, nil
}

// open waits until no other node migrates.
func open(ctx context.Context, d *db.DB) (session, error) {
	if d.Engine() == "postgres" {
		return openPostgres(ctx, d)
	}
	return openSQLite(ctx, d)
}

// Migrate brings the schema up to this program's version and returns how many
// steps it took. Several nodes may call it at the same time. It has a deadline
// of its own and tells in the log what it does.
//
// Failure policy: a step that is interrupted is not recorded and is taken up
// again by the next call; what it had finished for good (on PostgreSQL its
// transaction, and indexes one by one) is not done twice.
func Migrate(ctx context.Context, d *db.DB) (int, error) {
	all, err := migrations(d.Engine())
	if err != nil {
		return 0, err
	}
	return migrate(ctx, d, all)
}

func migrate(ctx context.Context, d *db.DB, all []migration) (steps int, err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateFor)
	defer cancel()
	// One node at a time: CREATE TABLE IF NOT EXISTS does not stand two at once.
	s, err := open(ctx, d)
	if err != nil {
		return 0, fmt.Errorf("wait for other nodes that migrate: %w", err)
	}
	defer s.close()
	if err := makeVersions(ctx, d, s); err != nil {
		return 0, fmt.Errorf("make the table of schema versions: %w", err)
	}
	applied, err := newer(ctx, d, all[len(all)-1].version)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	for _, m := range all {
		m.first = applied == 0
		done, err := step(ctx, d, s, m)
		if err != nil {
			return steps, fmt.Errorf("migration %04d_%s: %w", m.version, m.name, err)
		}
		if done {
			steps++
		}
	}
	if err := s.grantAgain(ctx); err != nil {
		return steps, err
	}
	if applied == 0 {
		d.Log().Info("Created the database schema", "steps", steps, "took", time.Since(begun).Round(time.Millisecond))
	}
	return steps, nil
}

// makeVersions makes the table of schema versions. Where it is, a role that may
// change no schema has nothing to do here.
func makeVersions(ctx context.Context, d *db.DB, s session) error {
	if exists, err := hasTable(ctx, d, "schema_version"); err != nil || exists {
		return err
	}
	return s.exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, applied_at BIGINT NOT NULL)")
}

// step applies one migration unless it is there already; false if it was.
func step(ctx context.Context, d *db.DB, s session, m migration) (bool, error) {
	digest, err := digestOf(ctx, d, m.version)
	switch {
	case err != nil:
		return false, err
	case digest == m.digest():
		return false, nil
	case digest != "":
		return false, fmt.Errorf("applied in another form (digest %s, this program has %s): a published step was edited",
			digest, m.digest())
	}
	begun := time.Now()
	log := d.Log().With("step", fmt.Sprintf("%04d_%s", m.version, m.name))
	log.Log(ctx, m.level(), "migration begins")
	record := fmt.Sprintf("INSERT INTO schema_version VALUES (%d, '%s', '%s', %d)", m.version, m.name, m.digest(),
		db.Micros(d.Now()))
	err = telling(ctx, func() {
		log.Info("migration goes on", "for", time.Since(begun).Round(time.Second))
	}, func() error { return s.step(ctx, m, record) })
	if err != nil {
		return false, err
	}
	log.Log(ctx, m.level(), "migration is done", "took", time.Since(begun).Round(time.Millisecond))
	return true, nil
}

// telling calls tell now and then while work goes on.
func telling(ctx context.Context, tell func(), work func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for db.Pause(ctx, tellEvery); ctx.Err() == nil; db.Pause(ctx, tellEvery) {
			tell()
		}
	})
	err := work()
	cancel()
	wg.Wait()
	return err
}

func digestOf(ctx context.Context, d *db.DB, version int) (digest string, err error) {
	err = d.Read(ctx, func(r db.Reader) error {
		err := r.Row("SELECT digest FROM schema_version WHERE version = $1", version).Scan(&digest)
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		return err
	})
	return digest, err
}

func newer(ctx context.Context, d *db.DB, known int) (last int, err error) {
	released := false
	err = d.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT coalesce(max(version), 0), NOT EXISTS (SELECT 1 FROM schema_version WHERE version = 1 AND name = 'alerts') FROM schema_version").Scan(&last, &released)
	})
	if err == nil && !released {
		return last, ErrUnreleased
	}
	if err == nil && last > known {
		return last, fmt.Errorf("%w (version %d, known up to %d)", ErrNew, last, known)
	}
	return last, err
}

// Check reports ErrOld or ErrNew when program and database do not fit.
func Check(ctx context.Context, d *db.DB) error {
	all, err := migrations(d.Engine())
	if err != nil {
		return err
	}
	exists, err := hasTable(ctx, d, "schema_version")
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("%w (it is empty)", ErrOld)
	}
	if _, err := newer(ctx, d, all[len(all)-1].version); err != nil {
		return err
	}
	for _, m := range all {
		digest, err := digestOf(ctx, d, m.version)
		if err != nil {
			return err
		}
		if digest == "" {
			return fmt.Errorf("%w (version %d is missing)", ErrOld, m.version)
		}
	}
	return nil
}

func hasTable(ctx context.Context, d *db.DB, name string) (found bool, err error) {
	text := "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = $1"
	if d.Engine() == "postgres" {
		text = "SELECT to_regclass($1) IS NOT NULL"
	}
	err = d.Read(ctx, func(r db.Reader) error { return r.Row(text, name).Scan(&found) })
	return found, err
}
