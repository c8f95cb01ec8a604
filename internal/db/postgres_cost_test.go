package db_test

import (
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// Sessions know that pages are near and compress quickly, unless somebody has decided otherwise.
func TestSessionsAreTunedUnlessSomebodyHasDecidedOtherwise(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.PostgresURL(t)
	check := func(cost, compression string) {
		t.Helper()
		var gotCost, gotCompression string
		d := dbtest.Open(t, db.Config{URL: url})
		if err := d.Read(t.Context(), func(r db.Reader) error {
			return r.Row("SELECT current_setting('random_page_cost'), current_setting('default_toast_compression')").Scan(&gotCost, &gotCompression)
		}); err != nil {
			t.Fatal(err)
		}
		if gotCost != cost || gotCompression != compression {
			t.Errorf("random_page_cost is %s, want %s; default_toast_compression is %s, want %s", gotCost, cost, gotCompression, compression)
		}
	}
	check("1.1", "lz4")
	d := dbtest.Open(t, db.Config{URL: url})
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec(`DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %I SET random_page_cost = 2', current_database());
			EXECUTE format('ALTER DATABASE %I SET default_toast_compression = pglz', current_database());
		END $$`)
	})
	if err != nil {
		t.Fatal(err)
	}
	check("2", "pglz")
}
