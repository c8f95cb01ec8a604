package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// Three nodes take sales of the same suppliers and work their lanes: claims,
// guards, renewals and ends of leases share commits in any order, and no two of
// them ever wait for each other in a circle. A deadlock costs everybody in it a
// second.
func TestNodesUnderLoadNeverDeadlock(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedURL(t)
	const nodes, callers, suppliers = 3, 6, 40
	each := 20
	if needs.IsLong() {
		each = 80
	}
	sales := int64(nodes * callers * each)
	var all [nodes]*db.DB
	for i := range all {
		all[i] = open(t, url)
	}
	q := lanes(t, all[0])
	must(t, all[0].Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE seen (key TEXT PRIMARY KEY, times BIGINT NOT NULL)")
	}))
	var worked atomic.Int64
	done := make(chan struct{})
	var stops []func()
	for _, d := range all {
		for range 2 {
			stops = append(stops, pumping(&lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 12, Poll: 50 * time.Millisecond,
				Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
					if worked.Add(workLane(ctx, t, d, l)) == sales {
						close(done)
					}
				}}))
		}
	}
	var intake sync.WaitGroup
	for n, d := range all {
		g := db.NewGather(d, storeSales)
		var calls sync.WaitGroup
		for caller := range callers {
			calls.Go(func() {
				r := rand.New(rand.NewPCG(uint64(n), uint64(caller)))
				for i := range each {
					if _, err := g.Do(t.Context(), newSale{id: fmt.Sprintf("%d-%d-%d", n, caller, i),
						lane: fmt.Sprint("lane", r.IntN(suppliers)), key: fmt.Sprint("key", r.IntN(200))}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		intake.Go(func() { calls.Wait(); g.Close() })
	}
	intake.Wait()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Errorf("only %d of %d were worked", worked.Load(), sales)
	}
	for _, stop := range stops {
		stop()
	}
	for _, d := range all {
		must(t, d.Close()) // the server adds up what its sessions saw when they end
	}
	if n := deadlocks(t, url); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func open(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: url})
	must(t, err)
	return d
}

type newSale struct{ id, lane, key string }

// storeSales stores a set as the intake does: rows that are new, and rows that others may write at the same time.
func storeSales(tx *db.Tx, in []newSale) ([]struct{}, error) {
	var riders, keys [][]any
	known := map[string]bool{}
	for _, s := range in {
		riders = append(riders, []any{s.id, s.lane, db.Micros(tx.Now())})
		if !known[s.key] {
			keys = append(keys, []any{s.key, 1})
		}
		known[s.key] = true
	}
	tx.Wake("test_lanes")
	err := tx.InsertReturning(db.Insert{Table: "seen", Columns: "key,times",
		Suffix: "ON CONFLICT (key) DO UPDATE SET times = seen.times + 1 RETURNING key"}, keys, func(*db.Rows) error {
		return nil
	})
	return make([]struct{}, len(in)), errors.Join(err, tx.Insert("test_riders", "id,lane,due_at", riders...))
}

// workLane moves what rides in a lane, in several writes under its lease.
func workLane(ctx context.Context, t *testing.T, d *db.DB, l *lease.Lease[struct{}]) (moved int64) {
	err := d.Write(ctx, func(tx *db.Tx) error {
		if err := l.Guard(tx); err != nil {
			return err
		}
		ids, err := db.Collect(tx, func(s func(...any) error) (id string, err error) { return id, s(&id) },
			"UPDATE test_riders SET due_at = NULL WHERE id IN (SELECT id FROM test_riders WHERE lane = $1 AND due_at IS NOT NULL LIMIT 8) RETURNING id", l.ID)
		moved = int64(len(ids))
		return err
	})
	if err == nil {
		err = d.Write(ctx, func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) })
	}
	if err != nil && !errors.Is(err, db.ErrStale) && ctx.Err() == nil {
		t.Errorf("lane %s: %v", l.ID, err)
	}
	return moved
}

// deadlocks is what the server counted in a database.
func deadlocks(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	must(t, conn.QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(
		&n))
	return n
}
