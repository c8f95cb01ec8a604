package schema_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing/filingtest"
	"tributary/internal/schema"
)

// A node of this version, as the role that serves, accepts and files while the owner
// takes a step from the first schema to a later one, in tables that it works in:
// nothing fails, nothing waits for the migration, and each sale is registered once.
func TestANodeFilesWhileTheNextVersionMigrates(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		filesBesideMigration(t, dbtest.SQLiteURL(t), "")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		served, owner := dbtest.ServedURL(t)
		filesBesideMigration(t, served, owner)
	})
}

func filesBesideMigration(t *testing.T, url, owner string) {
	d := dbtest.Open(t, db.Config{URL: url})
	next, said := d, &dbtest.Journal{} // SQLite has one server
	index := "CREATE INDEX"
	if owner != "" {
		var err error
		next, err = db.Open(t.Context(), db.Config{URL: owner, Log: slog.New(slog.NewTextHandler(said, nil))})
		must(t, err)
		t.Cleanup(func() { must(t, next.Close()) })
		index += " CONCURRENTLY"
	}
	a := filingtest.NewAuthorities(t)
	n := filingtest.NewNode(t, d, a.Setup()).Start()
	supplier, filed := n.Supplier(filingtest.ByNumber, "s1"), 0
	files := func(sales int) {
		for range sales {
			filed++
			n.Succeeds(n.File(filingtest.Invoice(filingtest.ByNumber, supplier, fmt.Sprint("t", filed))))
		}
	}
	files(3)
	steps, err := schema.Steps(d.Engine())
	must(t, err)
	steps = append(steps, schema.Step{Version: steps[len(steps)-1].Version + 1, Name: "test", Script: `-- Owner: nobody.
		CREATE TABLE tested (id TEXT PRIMARY KEY);
		ALTER TABLE operations ADD COLUMN tested BIGINT NOT NULL DEFAULT 0;
		ALTER TABLE lanes ADD COLUMN tested TEXT;
		ALTER TABLE webhook_events ADD COLUMN tested TEXT;
` + index + " operations_tested ON operations (client_id, tested);\n" + index + " bodies_tested ON bodies (digest)"})
	end := make(chan struct{})
	if owner != "" {
		end = holdTable(t, owner, "operations") // somebody reads: the step cannot come through
	}
	migrated := make(chan error, 1)
	go func() {
		taken, err := schema.MigrateSteps(context.Background(), next, steps...)
		if err == nil && taken != 1 {
			err = fmt.Errorf("%d steps", taken)
		}
		migrated <- err
	}()
	if owner != "" {
		said.Await(t, "steps back")
	}
	files(5)
	if owner != "" {
		close(end)
	}
	for done := false; !done; files(1) {
		select {
		case err := <-migrated:
			must(t, err)
			done = true
		default:
		}
	}
	files(2)
	if held := a.Registered(filingtest.ByNumber); len(held) != filed {
		t.Errorf("%d sales were filed, the authority holds %d", filed, len(held))
	}
	wantIndexes(t, next, "operations_tested", "bodies_tested")
}
