package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/webhook"
)

// closedEvents stores events of one day, all delivered at their first try or
// after one that failed.
func closedEvents(t testing.TB, d *db.DB, clientID string, day time.Time, n int) {
	t.Helper()
	const set = 5000
	for from := 0; from < n; from += set {
		var events, tries [][]any
		for i := from; i < min(n, from+set); i++ {
			at := day.Add(time.Duration(i) * 24 * time.Hour / time.Duration(n))
			id := webhook.IDFrom(at) + fmt.Sprintf("%020x%s", i, clientID)
			id = (id + "0000000000000000000000000000000000000000")[:40]
			events = append(events, []any{id, clientID, "transactions.transaction_completed", fmt.Sprint("op-", i), "/v1/x",
				clientID, "delivered", db.Micros(at), db.Micros(at), `{"at":` + fmt.Sprint(db.Micros(at)) + `}`})
			if i%4 == 0 {
				tries = append(tries, []any{id, 1, `{"at":` + fmt.Sprint(db.Micros(at)) + `}`})
			}
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(tx.Insert("webhook_events",
				"webhook_id,client_id,event_type,resource_id,resource_path,lane,status,created_at,closed_at,first_try", events...),
				tx.Insert("webhook_tries", "webhook_id,try,record", tries...))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func rowsOf(t testing.TB, d *db.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := d.Read(t.Context(), func(r db.Reader) error { return r.Row(query, args...).Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// writesBeside runs something and answers the longest time that another write
// took meanwhile.
func writesBeside(t testing.TB, d *db.DB, do func()) (longest time.Duration, writes int) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			asked := time.Now()
			err := d.Write(context.Background(), func(tx *db.Tx) error {
				return tx.Exec("UPDATE webhook_events SET rung = rung + 1 WHERE client_id = 'c_young'")
			})
			if err != nil {
				t.Error(err)
			}
			longest, writes = max(longest, time.Since(asked)), writes+1
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(stop)
	<-done
	return longest, writes
}

// What was closed long ago goes with its tries, while others write; what is
// open, young, another's or asked for again stays.
func TestClosedEventsAreForgottenInSteps(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, nil)
		old := d.Now().AddDate(0, 0, -100).Truncate(24 * time.Hour)
		const n = 3000
		closedEvents(t, d, client, old, n)
		closedEvents(t, d, "c_other", old, 10)
		closedEvents(t, d, "c_young", d.Now().AddDate(0, 0, -1), 10)
		before := d.Now().AddDate(0, 0, -webhook.KeptDays)
		err := d.Write(t.Context(), func(tx *db.Tx) error { // one closed late, one asked for again, one of them not closed
			return errors.Join(
				tx.Exec("UPDATE webhook_events SET closed_at = $1 WHERE client_id = $2 AND resource_id = 'op-0'",
					db.Micros(before), client),
				tx.Exec("UPDATE webhook_events SET closed_at = NULL, due_at = $1, status = 'pending' WHERE client_id = $2 AND resource_id = 'op-1'", db.Micros(d.Now().Add(time.Hour)), client))
		})
		if err != nil {
			t.Fatal(err)
		}
		var gone int
		_, writes := writesBeside(t, d, func() { gone, err = o.ForgetEvents(t.Context(), client, before) })
		if gone != n-2 || err != nil {
			t.Errorf("forgot %d events, want %d: %v", gone, n-2, err)
		}
		if writes < 2 {
			t.Error("nobody wrote beside it")
		}
		for clientID, want := range map[string]int{client: 2, "c_other": 10, "c_young": 10} {
			if left := rowsOf(t, d, "SELECT count(*) FROM webhook_events WHERE client_id = $1", clientID); left != want {
				t.Errorf("%s has %d events left, want %d", clientID, left, want)
			}
		}
		if lost := rowsOf(t, d,
			"SELECT count(*) FROM webhook_tries t WHERE NOT EXISTS (SELECT 1 FROM webhook_events e WHERE e.webhook_id = t.webhook_id)"); lost != 0 {
			t.Errorf("%d tries are left of nothing", lost)
		}
		if again, err := o.ForgetEvents(t.Context(), client, before); again != 0 || err != nil {
			t.Errorf("again %d are gone: %v", again, err)
		}
	})
}

// BenchmarkForgetEvents forgets 200,000 events of one day and says how long
// another write waited at most.
func BenchmarkForgetEvents(b *testing.B) {
	const n = 200_000
	bench := func(b *testing.B, d *db.DB) {
		b.Helper()
		o := newOffice(b, d, nil)
		for b.Loop() {
			b.StopTimer()
			closedEvents(b, d, client, d.Now().AddDate(0, 0, -100).Truncate(24*time.Hour), n)
			closedEvents(b, d, "c_young", d.Now(), 1)
			b.StartTimer()
			longest, writes := writesBeside(b, d, func() {
				if gone, err := o.ForgetEvents(b.Context(), client, d.Now().AddDate(0, 0, -webhook.KeptDays)); gone != n ||
					err != nil {
					b.Fatalf("forgot %d events: %v", gone, err)
				}
			})
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-write")
			b.ReportMetric(float64(writes), "writes-beside")
		}
	}
	b.Run("sqlite", func(b *testing.B) { bench(b, dbtest.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { bench(b, dbtest.Postgres(b)) })
}
