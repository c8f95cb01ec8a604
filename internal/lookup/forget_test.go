package lookup_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// What has ended long ago goes with what was asked and answered, large requests
// one by one; what runs, ended lately or is another client's stays.
func TestEndedLookupsAreForgotten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newDesk(t, d, newGate(t, 0).register(t)) // nobody works
		ended := d.Now().AddDate(0, 0, -100)
		store := func(id, client, status string, at time.Time, entries int) {
			t.Helper()
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				return errors.Join(
					tx.Insert("lookups", "lookup_id,client_id,kind,status,entries,requested_at,ended_at,lane",
						[]any{id, client, "batch", status, entries, db.Micros(ended), db.Micros(at), client}),
					tx.Insert("lookup_entries", "lookup_id,first,entries", []any{id, 0, "[]"}),
					tx.Insert("lookup_answers", "lookup_id,position,format,status,is_business", []any{id, 0, "valid", "valid", "yes"},
						[]any{id, 1, "valid", "valid", "yes"}))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		const old = 450 // more than two steps
		for i := range old {
			entries := 1
			if i%100 == 7 {
				entries = 10_000
			}
			store(fmt.Sprintf("old-%03d", i), "c_one", "completed", ended, entries)
		}
		before := d.Now().AddDate(0, 0, -90)
		store("running", "c_one", "running", ended, 1)
		store("late", "c_one", "canceled", before, 1)
		store("other", "c_two", "completed", ended, 1)
		for _, want := range []int{old, 0} {
			if n, err := k.Forget(t.Context(), "c_one", before); n != want || err != nil {
				t.Errorf("forgot %d, want %d: %v", n, want, err)
			}
		}
		for table, want := range map[string]int{"lookups": 3, "lookup_entries": 3, "lookup_answers": 6} {
			var n int
			if err := d.Read(t.Context(), func(r db.Reader) error {
				return r.Row("SELECT count(*) FROM " + table).Scan(&n)
			}); err != nil || n != want {
				t.Errorf("%s has %d rows, want %d: %v", table, n, want, err)
			}
		}
	})
}
