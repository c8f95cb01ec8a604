package schema_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

// An empty database gets all of its steps in a moment and says so in one line;
// whoever wants to see the steps asks for level debug.
func TestTheFirstMigrationIsOneLine(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var said dbtest.Journal
		d, err := db.Open(context.Background(),
			db.Config{URL: url, Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		must(t, err)
		defer func() { _ = d.Close() }() // tested elsewhere
		steps, err := schema.Migrate(context.Background(), d)
		must(t, err)
		info, all := 0, 0
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, "migration") || strings.Contains(line, "index") || strings.Contains(line, "schema") {
				if all++; !strings.Contains(line, "level=DEBUG") {
					info++
				}
			}
		}
		if all <= steps || info != 1 || !strings.Contains(said.String(), "Created the database schema") {
			t.Errorf("%d steps are told in %d lines, %d of them above debug:\n%s", steps, all, info, said.String())
		}
	})
}

// What a settled operation was, sent and was answered stays as it is, until its years are over.
func TestTheRecordOfASettledOperationNeverChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		oneOfEach(t, d)
		write := func(statement string) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(statement) })
		}
		must(t, write("UPDATE operations SET stage = 'pending' WHERE operation_id = 'ob'"))
		for _, statement := range []string{"UPDATE bodies SET body = 'x' WHERE operation_id = '%s'", "UPDATE filings SET receipt = 'x' WHERE operation_id = '%s'",
			"UPDATE filings SET report = 'x' WHERE operation_id = '%s'", "DELETE FROM filings WHERE operation_id = '%s'", "DELETE FROM bodies WHERE operation_id = '%s'"} {
			if err := write(fmt.Sprintf(statement, "oa")); err == nil || !strings.Contains(err.Error(), "never changes") {
				t.Errorf("%s: %v", statement, err)
			}
			must(t, write(fmt.Sprintf(statement, "ob"))) // which has not ended
		}
		must(t, write("INSERT INTO retired_operations VALUES ('oa', 1)"))
		must(t, write("UPDATE filings SET report = '', receipt = NULL WHERE operation_id = 'oa'"))
		must(t, write("DELETE FROM bodies WHERE operation_id = 'oa'"))
	})
}
