package db_test

import (
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/leaks"
	"tributary/internal/needs"
)

func TestMain(m *testing.M) {
	if dbtest.PlayChild(children()) {
		return
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
