package db_test

import (
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// Sessions know that pages are near, unless somebody has decided otherwise.
func TestPostgresPagesAreNearUnlessSomebodySaysOtherwise(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.PostgresURL(t)
	cost := func() (text string) {
		t.Helper()
		d := dbtest.Open(t, db.Config{URL: url})
		if err := d.Read(t.Context(), func(r db.Reader) error {
			return r.Row("SELECT current_setting('random_page_cost')").Scan(&text)
		}); err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := cost(); got != "1.1" {
		t.Errorf("random_page_cost is %s, want 1.1", got)
	}
	d := dbtest.Open(t, db.Config{URL: url})
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET random_page_cost = 2', current_database()); END $$")
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := cost(); got != "2" {
		t.Errorf("random_page_cost is %s, want the 2 of the database", got)
	}
}
