package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// Every node hears every wake-up. What a node hears must not depend on how many
// others send, or all of them together hear the square.
func TestWakeUpsDoNotGrowWithTheSquareOfNodes(t *testing.T) {
	url := dbtest.MigratedURL(t)
	const nodes, heard = 5, 200
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all []*db.DB
	for range nodes {
		all = append(all, dbtest.Open(t, db.Config{URL: url}))
	}
	listener, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = listener.Close(context.Background()) }() // the test is over
	_, err = listener.Exec(ctx, "LISTEN tributary_wake")
	must(t, err)
	for _, d := range all {
		must(t, db.CountNodes(d))
		go func() { // under load: always something to tell
			for ctx.Err() == nil {
				d.Wake("test_lanes")
				time.Sleep(time.Millisecond)
			}
		}()
	}
	hear := func(n int) time.Duration {
		began := time.Now()
		for range n {
			_, err := listener.WaitForNotification(ctx)
			must(t, err)
		}
		return time.Since(began)
	}
	hear(heard / 4) // what was sent before the nodes knew of each other
	// A busy machine only makes it longer. Each for itself, five nodes would need a fifth of it.
	if took, least := hear(heard), heard*db.NotifyEvery/2; took < least {
		t.Errorf("%d wake-ups were heard within %s, want at least %s", heard, took, least)
	}
}

// However long the pause under load is, the first wake-up after silence is told at once.
func TestTheFirstWakeUpIsToldAtOnce(t *testing.T) {
	url := dbtest.MigratedURL(t)
	d := dbtest.Open(t, db.Config{URL: url})
	listener, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer func() { _ = listener.Close(context.Background()) }() // the test is over
	_, err = listener.Exec(t.Context(), "LISTEN tributary_wake")
	must(t, err)
	d.Wake("test_lanes")
	if n, err := listener.WaitForNotification(t.Context()); err != nil || n.Payload != "test_lanes" {
		t.Errorf("heard %+v, %v", n, err)
	}
}
