package schema_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

// salesRows is a store that takes a moment to look through; make long has one that is worth the name.
func salesRows() int {
	if needs.IsLong() {
		return 200_000
	}
	return 10_000
}

// salesSteps are a table and, with the version after, what a later program needs of it.
func salesSteps(engine string) (before, after schema.Step) {
	fill := "SELECT 's' || i, 'c' || (i %% 50), i, repeat('x', 200) FROM generate_series(1, %d) AS n(i)"
	index := "CREATE INDEX CONCURRENTLY"
	if engine == "sqlite" {
		fill = "SELECT 's' || i, 'c' || (i %% 50), i, printf('%%0200d', i) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n)"
		index = "CREATE INDEX"
	}
	before = schema.Step{Version: 1, Name: "sales",
		Script: "CREATE TABLE sales (id TEXT PRIMARY KEY, client TEXT NOT NULL, at BIGINT NOT NULL, note TEXT NOT NULL);" +
			"INSERT INTO sales (id, client, at, note) " + fmt.Sprintf(fill, salesRows())}
	after = schema.Step{Version: 2, Name: "found", Script: `-- Owner: nobody.
		ALTER TABLE sales ADD COLUMN held BOOLEAN NOT NULL DEFAULT FALSE;
		CREATE TABLE found (id TEXT PRIMARY KEY);
		CREATE INDEX found_by_id ON found (id);
` + index + " sales_by_client ON sales (client, at); -- what a filter asks for; and more\n" + index + " sales_by_time ON sales (at, id);\n" + index + " sales_held ON sales (id) WHERE held"}
	return before, after
}

// A node of the version before writes while the next version migrates: nothing
// of it fails, and nothing waits for longer than the migration waits for a lock.
func TestMigrationBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var said dbtest.Journal
		ctx := context.Background()
		next, err := db.Open(ctx, db.Config{URL: url, Log: slog.New(slog.NewTextHandler(&said, nil))})
		must(t, err)
		defer func() { _ = next.Close() }() // tested elsewhere
		first, second := salesSteps(next.Engine())
		_, err = schema.MigrateSteps(ctx, next, first)
		must(t, err)
		old := next
		if next.Engine() == "postgres" { // SQLite has one server
			old, err = db.Open(ctx, db.Config{URL: url})
			must(t, err)
			defer func() { _ = old.Close() }() // tested elsewhere
		}
		traffic := startTraffic(t, old)
		end := make(chan struct{})
		if next.Engine() == "postgres" {
			end = holdTable(t, url, "sales")
		}
		migrated := make(chan error, 1)
		go func() {
			steps, err := schema.MigrateSteps(ctx, next, first, second)
			if err == nil && steps != 1 {
				err = fmt.Errorf("%d steps", steps)
			}
			migrated <- err
		}()
		if next.Engine() == "postgres" {
			said.Await(t, "steps back") // the table is read by somebody: nobody waits behind the migration for long
			traffic.goOn()
			close(end)
		}
		must(t, <-migrated)
		traffic.end()
		t.Logf("%d writes beside the migration", traffic.writes.Load())
		if n := dbtest.Count(t, next, "SELECT count(*) FROM sales WHERE NOT held"); int64(n) !=
			int64(salesRows())+traffic.writes.Load() {
			t.Errorf("%d sales, want %d and %d new ones", n, salesRows(), traffic.writes.Load())
		}
		wantIndexes(t, next, "found_by_id", "sales_by_client", "sales_by_time", "sales_held")
		for _, line := range []string{"migration begins", "step=0002_found", "migration is done"} {
			if !strings.Contains(said.String(), line) {
				t.Errorf("the log has no %q:\n%s", line, said.String())
			}
		}
		if steps, err := schema.MigrateSteps(ctx, next, first, second); steps != 0 || err != nil {
			t.Errorf("again it took %d steps: %v", steps, err)
		}
	})
}

// holdTable reads a table in a transaction that stays open until the channel is closed.
func holdTable(t *testing.T, url, table string) chan struct{} {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	must(t, err)
	_, err = conn.Exec(context.Background(), "BEGIN; SELECT 1 FROM "+table+" LIMIT 1")
	must(t, err)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-end:
		case <-t.Context().Done(): // the test has failed
		}
		_ = conn.Close(context.Background()) // a test's own connection
	}()
	t.Cleanup(func() { <-done })
	return end
}

type traffic struct {
	t      *testing.T
	stop   atomic.Bool
	wg     sync.WaitGroup
	writes atomic.Int64
}

// startTraffic writes as a program would that knows nothing of the step to come.
func startTraffic(t *testing.T, d *db.DB) *traffic {
	t.Helper()
	f := &traffic{t: t}
	t.Cleanup(f.end)
	for w := range 4 {
		f.wg.Go(func() {
			for i := 0; !f.stop.Load(); i++ {
				err := d.Write(context.Background(), func(tx *db.Tx) error {
					if err := tx.Insert("sales", "id,client,at,note", []any{fmt.Sprintf("n%d-%d", w, i), "c1", i, "new"}); err != nil {
						return err
					}
					return tx.ExecOne("UPDATE sales SET note = 'seen' WHERE id = $1", fmt.Sprintf("s%d", 1+(w*1000+i)%salesRows()))
				})
				if err != nil {
					t.Errorf("a write beside the migration: %v", err)
					return
				}
				f.writes.Add(1)
				time.Sleep(5 * time.Millisecond) // a load, not all that the machine can do
			}
		})
	}
	return f
}

// goOn waits for more writes, beside whatever the test lets hold the table now:
// who waited for that would wait for ever.
func (f *traffic) goOn() {
	f.t.Helper()
	// a load has no signal to give
	for enough := f.writes.Load() + 20; f.writes.Load() < enough; time.Sleep(time.Millisecond) {
		if f.t.Failed() {
			f.t.FailNow()
		}
	}
}

func (f *traffic) end() {
	f.stop.Store(true)
	f.wg.Wait()
}

func wantIndexes(t *testing.T, d *db.DB, names ...string) {
	t.Helper()
	for _, name := range names {
		text := "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = '" + name + "'"
		if d.Engine() == "postgres" {
			text = "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('" + name + "') AND indisvalid"
		}
		if dbtest.Count(t, d, text) != 1 {
			t.Errorf("there is no valid index %s", name)
		}
	}
}

// A migration that is interrupted while it builds an index leaves no record and
// a broken index; the next one takes the step up where it stopped.
func TestInterruptedIndexIsBuiltAnew(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.PostgresURL(t)
	ctx := context.Background()
	d, err := db.Open(ctx, db.Config{URL: url})
	must(t, err)
	defer func() { _ = d.Close() }() // tested elsewhere
	first := schema.Step{Version: 1, Name: "sales",
		Script: "CREATE TABLE sales (id TEXT PRIMARY KEY, client TEXT NOT NULL, at BIGINT NOT NULL)"}
	second := schema.Step{Version: 2, Name: "found",
		Script: "CREATE TABLE found (id TEXT PRIMARY KEY);\nCREATE INDEX CONCURRENTLY sales_by_client ON sales (client);\nCREATE INDEX CONCURRENTLY sales_by_time ON sales (at)"}
	_, err = schema.MigrateSteps(ctx, d, first)
	must(t, err)
	writer, err := pgx.Connect(ctx, url) // the build waits for this transaction to end
	must(t, err)
	_, err = writer.Exec(ctx, "BEGIN; INSERT INTO sales VALUES ('open', 'c', 1)")
	must(t, err)
	cut, cancel := context.WithCancel(ctx)
	migrated := make(chan error, 1)
	go func() {
		_, err := schema.MigrateSteps(cut, d, first, second)
		migrated <- err
	}()
	for dbtest.Count(t, d,
		"SELECT count(*) FROM pg_index WHERE indexrelid::regclass::text = 'sales_by_client' AND NOT indisvalid") == 0 {
		time.Sleep(time.Millisecond) // another program's work has no signal to give
	}
	cancel()
	if err := <-migrated; err == nil {
		t.Error("a migration that was interrupted says that it is done")
	}
	if n := dbtest.Count(t, d, "SELECT count(*) FROM schema_version"); n != 1 {
		t.Errorf("%d steps are recorded after an interrupted one, want 1", n)
	}
	must(t, writer.Close(ctx))
	steps, err := schema.MigrateSteps(ctx, d, first, second)
	if steps != 1 || err != nil {
		t.Fatalf("the interrupted step again: %d steps, %v", steps, err)
	}
	wantIndexes(t, d, "sales_by_client", "sales_by_time")
	if n := dbtest.Count(t, d, "SELECT count(*) FROM schema_begun"); n != 0 {
		t.Errorf("%d steps are still under way", n)
	}
	edited := second
	edited.Script += "; CREATE INDEX CONCURRENTLY sales_more ON sales (at)"
	if _, err := schema.MigrateSteps(ctx, d, first, edited); err == nil || !strings.Contains(err.Error(), "edited") {
		t.Errorf("an edited step passes: %v", err)
	}
}

func TestOnlyIndexesFollowAnIndexBuiltConcurrently(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Postgres(t)
	_, err := schema.MigrateSteps(t.Context(), d, schema.Step{Version: 9999, Name: "mixed",
		Script: "CREATE TABLE a (b TEXT);\nCREATE INDEX CONCURRENTLY a_b ON a (b);\nUPDATE a SET b = 'x'"})
	if err == nil || !strings.Contains(err.Error(), "UPDATE a") {
		t.Errorf("a statement behind an index is taken: %v", err)
	}
	if n := dbtest.Count(t, d, "SELECT count(*) FROM pg_class WHERE relname = 'a'"); n != 0 {
		t.Error("half of a step was applied")
	}
}

// Somebody else's migration is waited for with a line in the log, and not past the caller's end.
func TestWaitingForAnotherMigrationCanBeGivenUp(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	var said dbtest.Journal
	d, err := db.Open(context.Background(), db.Config{URL: url, Log: slog.New(slog.NewTextHandler(&said, nil))})
	must(t, err)
	defer func() { _ = d.Close() }() // tested elsewhere
	other, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer func() { _ = other.Close(context.Background()) }() // a test's own connection
	_, err = other.Exec(t.Context(), "SELECT pg_advisory_lock($1)", schema.SchemaLock)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	migrated := make(chan error, 1)
	go func() { migrated <- second(schema.Migrate(ctx, d)) }()
	said.Await(t, "another node that migrates")
	cancel()
	if err := <-migrated; err == nil || !strings.Contains(err.Error(), "other nodes that migrate") {
		t.Errorf("a migration that was given up answers %v", err)
	}
}
