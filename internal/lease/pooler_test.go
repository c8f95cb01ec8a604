package lease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/schema"
)

// Behind a PgBouncer in session mode, with the settings it comes with, a whole
// node works: migrations, groups, reads, wake-ups, claims and jobs.
func TestSessionPoolingWorksAsItIs(t *testing.T) {
	t.Parallel()
	direct := dbtest.PostgresURL(t)
	url := dbtest.Bouncer(t, "session", direct)
	d := dbtest.Open(t, db.Config{URL: url})
	must(t, schema.Check(t.Context(), d))
	q := work(t, d)
	worked := make(chan string)
	stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 4, Poll: time.Hour, Work: finishing(t, d, worked)})
	defer stop()
	const rows = 40
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() {
			err := d.Write(context.Background(), func(tx *db.Tx) error {
				tx.Wake("work")
				return tx.Insert("work", "id,fair,due_at", []any{fmt.Sprint(i), "key", db.Micros(tx.Now())})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range rows {
		<-worked
	}
	wg.Wait()
	var limits string
	must(t, d.Read(t.Context(), func(r db.Reader) error {
		return r.Row("SELECT current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('statement_timeout') || ' ' || current_setting('synchronous_commit')").Scan(&limits)
	}))
	if limits != "1min 30s on" {
		t.Errorf("the session's limits are %q", limits)
	}
}
