package db_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// An empty database gets all of its steps in a moment and says so in one line;
// whoever wants to see the steps asks for level debug.
func TestTheFirstMigrationIsOneLine(t *testing.T) {
	for level, many := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
		dbtest.EachURL(t, func(t *testing.T, url string) {
			var said dbtest.Journal
			d, err := db.Open(context.Background(), db.Config{URL: url, Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: level}))})
			must(t, err)
			defer func() { _ = d.Close() }() // tested elsewhere
			steps, err := d.Migrate(context.Background())
			must(t, err)
			migrations := 0
			for line := range strings.Lines(said.String()) {
				if strings.Contains(line, "migration") || strings.Contains(line, "index") || strings.Contains(line, "schema") {
					migrations++
				}
			}
			if many != (migrations > steps) || !many && migrations != 1 || !strings.Contains(said.String(), "its schema is made") {
				t.Errorf("at level %s %d steps are told in %d lines:\n%s", level, steps, migrations, said.String())
			}
		})
	}
}
