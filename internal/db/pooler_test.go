package db_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
)

// Behind a PgBouncer in session mode, with the settings it comes with, a whole
// node works: migrations, groups, reads, wake-ups, claims and jobs.
func TestSessionPoolingWorksAsItIs(t *testing.T) {
	t.Parallel()
	direct := dbtest.PostgresURL(t)
	url := dbtest.Bouncer(t, "session", direct)
	d := dbtest.Open(t, db.Config{URL: url})
	must(t, d.CheckSchema(t.Context()))
	q := work(t, d)
	worked := make(chan string)
	stop := pumping(&db.Pump[string]{DB: d, Queue: q, InFlight: 4, Poll: time.Hour, Work: finishing(t, d, worked)})
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

// A pooler that lends sessions for a moment is found out before anything is written, and told.
func TestTransactionPoolingIsRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	for _, mode := range []string{"transaction", "statement"} {
		for _, how := range []string{"", "&default_query_exec_mode=exec"} {
			url := dbtest.Bouncer(t, mode, dbtest.PostgresURL(t))
			d, err := db.Open(t.Context(), db.Config{URL: url + how})
			if err == nil {
				_ = d.Close() // it should not have been opened
				t.Errorf("a pooler in %s mode%s is taken", mode, how)
				continue
			}
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "pool_mode = session") {
				t.Errorf("a pooler in %s mode%s: %v, want the words what to do", mode, how, err)
			}
		}
	}
}
