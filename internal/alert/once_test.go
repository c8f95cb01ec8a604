package alert_test

import (
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// A condition that is met again and again is told once, also after somebody
// has acknowledged it; a new beginning is told anew.
func TestRaisedOnceSinceItBegan(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		raise := func(since time.Time) {
			t.Helper()
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				return k.RaiseOnceIn(tx, since, alert.Alert{Name: alert.OutcomeUnknown24h, Subject: "op", Message: "still"})
			}); err != nil {
				t.Fatal(err)
			}
		}
		began := d.Now()
		raise(began)
		raise(began)
		all := k.list(t, alert.Filter{})
		if len(all) != 1 || all[0].Times != 1 {
			t.Fatalf("got %+v", all)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE alerts SET acknowledged_at = $1, acknowledged_by = 'me'", db.Micros(tx.Now()))
		}); err != nil {
			t.Fatal(err)
		}
		raise(began)
		if all := k.list(t, alert.Filter{Open: true}); len(all) != 0 {
			t.Errorf("what is acknowledged is told again: %+v", all)
		}
		raise(d.Now().Add(time.Second))
		if all := k.list(t, alert.Filter{Open: true}); len(all) != 1 {
			t.Errorf("a new beginning is not told: %+v", all)
		}
		if n := k.counted(t, alert.OutcomeUnknown24h); n != 2 {
			t.Errorf("the metric counts %v", n)
		}
	})
}
