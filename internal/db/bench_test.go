package db_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// intakeTables have the shape of a submit: three rows per write.
func intakeTables(b testing.TB, d *db.DB) {
	b.Helper()
	blob := "BLOB"
	if d.Engine() == "postgres" {
		blob = "BYTEA"
	}
	for _, text := range []string{
		"CREATE TABLE bench_a (id TEXT PRIMARY KEY, client TEXT NOT NULL, stage TEXT NOT NULL, due_at BIGINT)",
		"CREATE TABLE bench_b (id TEXT PRIMARY KEY, body " + blob + " NOT NULL)",
		"CREATE TABLE bench_c (client TEXT NOT NULL, id TEXT NOT NULL, attempts BIGINT NOT NULL, PRIMARY KEY (client, id))",
	} {
		must(b, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(text) }))
	}
}

var benchBody = make([]byte, 1000)

func intakeWrite(id string) func(tx *db.Tx) error {
	return func(tx *db.Tx) error {
		if err := tx.Insert("bench_c", "client,id,attempts", []any{"client", id, 1}); err != nil {
			return err
		}
		if err := tx.Insert("bench_a", "id,client,stage,due_at",
			[]any{id, "client", "received", db.Micros(tx.Now())}); err != nil {
			return err
		}
		return tx.Insert("bench_b", "id,body", []any{id, benchBody})
	}
}

// parallelWrites does n intake writes from many goroutines, each waiting for its own commit.
func parallelWrites(b testing.TB, d *db.DB, prefix string, goroutines, n int) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				if err := d.Write(context.Background(), intakeWrite(fmt.Sprintf("%s-%09d", prefix, i))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkSQLiteGroupCommit compares 64 writers that share commits with the
// same writes committed one by one, and a lone write with a bare commit.
func BenchmarkSQLiteGroupCommit(b *testing.B) {
	const n, alone = 20_000, 500
	for b.Loop() {
		grouped := dbtest.SQLite(b)
		intakeTables(b, grouped)
		single := dbtest.Open(b, db.Config{URL: dbtest.SQLiteURL(b), NoGroups: true})
		intakeTables(b, single)
		bare, lone := bareAndLone(b, grouped, alone)
		together := float64(n) / parallelWrites(b, grouped, "together", 64, n).Seconds()
		oneByOne := float64(n/10) / parallelWrites(b, single, "single", 64, n/10).Seconds()
		b.ReportMetric(together, "writes/s")
		b.ReportMetric(together/oneByOne, "x-one-by-one")
		b.ReportMetric(float64(bare.Microseconds()), "µs-bare-commit")
		b.ReportMetric(float64(lone)/float64(bare), "x-lone-to-bare")
	}
}

// bareAndLone measures a bare commit and a lone write in turns, because a
// disk's mood changes from second to second, and returns the medians.
func bareAndLone(b testing.TB, d *db.DB, n int) (bare, lone time.Duration) {
	b.Helper()
	commit := bareCommit(b)
	var bares, lones []time.Duration
	for i := range n {
		start := time.Now()
		commit(i)
		bares = append(bares, time.Since(start))
		start = time.Now()
		must(b, d.Write(context.Background(), intakeWrite(fmt.Sprintf("lone-%09d", i))))
		lones = append(lones, time.Since(start))
	}
	slices.Sort(bares)
	slices.Sort(lones)
	return bares[n/2], lones[n/2]
}

// bareCommit is what the engine itself needs for the same three rows in one commit.
func bareCommit(b testing.TB) (commit func(i int)) {
	path := filepath.Join(b.TempDir(), "bare.db")
	raw, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	must(b, err)
	b.Cleanup(func() { _ = raw.Close() }) // a yardstick
	raw.SetMaxOpenConns(1)
	for _, text := range []string{
		"CREATE TABLE c (client TEXT NOT NULL, id TEXT NOT NULL, attempts BIGINT NOT NULL, PRIMARY KEY (client, id))",
		"CREATE TABLE a (id TEXT PRIMARY KEY, client TEXT NOT NULL, stage TEXT NOT NULL, due_at BIGINT)",
		"CREATE TABLE b (id TEXT PRIMARY KEY, body BLOB NOT NULL)"} {
		_, err := raw.Exec(text)
		must(b, err)
	}
	var stmts [3]*sql.Stmt
	for i, text := range []string{"INSERT INTO c VALUES ($1,$2,$3)", "INSERT INTO a VALUES ($1,$2,$3,$4)",
		"INSERT INTO b VALUES ($1,$2)"} {
		stmts[i], err = raw.Prepare(text)
		must(b, err)
	}
	return func(i int) {
		id := fmt.Sprintf("bare-%09d", i)
		tx, err := raw.Begin()
		must(b, err)
		_, err = tx.Stmt(stmts[0]).Exec("client", id, 1)
		must(b, err)
		_, err = tx.Stmt(stmts[1]).Exec(id, "client", "received", 1)
		must(b, err)
		_, err = tx.Stmt(stmts[2]).Exec(id, benchBody)
		must(b, err)
		must(b, tx.Commit())
	}
}

// BenchmarkPostgresIntake compares 64 writers with pgbench running one such
// transaction per commit with 32 clients on the same server.
func BenchmarkPostgresIntake(b *testing.B) {
	const n = 40_000
	for b.Loop() {
		url := dbtest.PostgresURL(b)
		d := dbtest.Open(b, db.Config{URL: url})
		intakeTables(b, d)
		parallelWrites(b, d, "warm", 64, n/10)
		ours := float64(n) / parallelWrites(b, d, "together", 64, n).Seconds()
		theirs := pgbench(b, url)
		b.ReportMetric(ours, "writes/s")
		b.ReportMetric(theirs, "pgbench/s")
		b.ReportMetric(ours/theirs, "x-pgbench")
	}
}

func pgbench(b testing.TB, url string) float64 {
	b.Helper()
	script := filepath.Join(b.TempDir(), "intake.sql")
	must(b, os.WriteFile(script, []byte(`\set n random(1, 9000000000000)
BEGIN;
INSERT INTO bench_c VALUES ('pgbench', :client_id || '-' || :n, 1);
INSERT INTO bench_a VALUES (:client_id || '-' || :n, 'client', 'received', 1);
INSERT INTO bench_b VALUES (:client_id || '-' || :n, decode(repeat('00', 1000), 'hex'));
COMMIT;
`), 0o644))
	out, err := exec.Command(filepath.Join(dbtest.Binaries(b), "pgbench"), "-n", "-M", "prepared", "-c", "32", "-j", "2",
		"-T", "5", "-f", script, url).CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	m := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		b.Fatalf("pgbench said nothing of tps:\n%s", out)
	}
	tps, err := strconv.ParseFloat(string(m[1]), 64)
	must(b, err)
	return tps
}

func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
