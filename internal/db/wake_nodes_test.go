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
	t.Parallel()
	url := dbtest.MigratedURL(t)
	const nodes, heard = 5, 100
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
		for db.CountNodes(d) != nil { // a machine that stands still gives no answer
		}
	}
	began := time.Now()
	for _, d := range all {
		go func() { // under load: always something to tell
			for ctx.Err() == nil {
				d.Wake("test_lanes")
				time.Sleep(time.Millisecond)
			}
		}()
	}
	for range heard {
		_, err := listener.WaitForNotification(ctx)
		must(t, err)
	}
	// All of them were sent since it began: a slow machine only makes it longer. Each for itself, five nodes would need a
	// fifth of it.
	if took, least := time.Since(began), heard*db.NotifyEvery/2; took < least {
		t.Errorf("%d wake-ups were heard within %s, want at least %s", heard, took, least)
	}
}

// However long the pause under load is, the first wake-up after silence is told at once.
func TestTheFirstWakeUpIsToldAtOnce(t *testing.T) {
	t.Parallel()
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
