package db_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/leaks"
	"tributary/internal/needs"
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
	leaks.Main(m)
}

func TestSQLiteConforms(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "SQLite is Go here")
	dbtest.Exercise(t, dbtest.SQLiteURL)
}

func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	dbtest.Exercise(t, dbtest.MigratedURL)
}
