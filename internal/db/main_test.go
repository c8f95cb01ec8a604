package db_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// childVariable names the part this binary plays when a test starts it again
// as another process.
const childVariable = "TRIBUTARY_DB_TEST_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childVariable); part != "" {
		play, known := children()[part]
		if !known {
			fmt.Fprintln(os.Stderr, "no such part:", part)
			os.Exit(2)
		}
		play(os.Args[1:])
		return
	}
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("10") // a number; the database under each check is real and slow
	}
	goleak.VerifyTestMain(m)
}

func TestSQLiteConforms(t *testing.T) {
	t.Parallel()
	dbtest.Exercise(t, dbtest.SQLiteURL)
}

func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	dbtest.Exercise(t, dbtest.MigratedURL)
}

// each is dbtest.Each. The race run takes PostgreSQL alone: with the detector
// SQLite's engine, which is Go here, costs more than ten times as much, and
// TestSQLiteConforms has what meets in it.
func each(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	if testing.Short() {
		t.Run("postgres", func(t *testing.T) { fn(t, dbtest.Postgres(t)) })
		return
	}
	dbtest.Each(t, fn)
}

// eachURL is dbtest.EachURL in the same way.
func eachURL(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	if testing.Short() {
		t.Run("postgres", func(t *testing.T) { fn(t, dbtest.PostgresURL(t)) })
		return
	}
	dbtest.EachURL(t, fn)
}
