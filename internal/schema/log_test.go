package schema_test

import (
	"context"
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
