package lease_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// laneWork finishes a lane of test_riders with everything that rides in it, and says
// how much that was.
func laneWork(t *testing.T, d *db.DB, worked func(lane string,
	riders int64)) func(context.Context, *lease.Lease[struct{}]) {
	return func(ctx context.Context, l *lease.Lease[struct{}]) {
		var ids []string
		err := d.Write(ctx, func(tx *db.Tx) (err error) {
			if ids, err = db.Collect(tx, func(s func(...any) error) (id string, err error) { return id, s(&id) },
				"UPDATE test_riders SET due_at = NULL WHERE lane = $1 AND due_at IS NOT NULL RETURNING id", l.ID); err != nil {
				return err
			}
			return l.Finish(tx, time.Time{})
		})
		if err != nil {
			t.Errorf("lane %s: %v", l.ID, err)
		}
		worked(l.ID, int64(len(ids)))
	}
}

// Hundreds of lanes wait for the two slots of a class on each of two nodes, which
// remember what they found. Each lane is worked, and none of them for nothing
// because the other node had been there before.
func TestRememberedKeysOfTwoNodesAreWorkedOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedURL(t)
	nodes := []*db.DB{dbtest.Open(t, db.Config{URL: url}), dbtest.Open(t, db.Config{URL: url})}
	q := lanes(t, nodes[0])
	q.Group = "|"
	const all = 300
	var rows [][]any
	for i := range all {
		rows = append(rows, []any{fmt.Sprint("r", i), fmt.Sprintf("c|%04d", i), db.Micros(nodes[0].Now())})
	}
	addRiders(t, nodes[0], rows...)
	var empty atomic.Int64
	done := make(chan int64, 2*all)
	for _, d := range nodes {
		defer pumping(&lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 16, Poll: time.Hour, ClassMost: 2,
			Class: func(string) string {
				return ""
			},
			Work: laneWork(t, d, func(_ string, riders int64) {
				if riders == 0 {
					empty.Add(1)
				}
				done <- riders
			})})()
	}
	for left := int64(all); left > 0; {
		left -= <-done
	}
	if n := empty.Load(); n > 0 {
		t.Errorf("%d lanes were claimed after the other node had worked them off", n)
	}
}

// While a client's lanes wait for the one slot of a class, and are remembered for
// it, another client's sale comes in: it has its turn among the next few.
func TestRememberedKeysKeepTheTurns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := lanes(t, d)
		q.Group = "|"
		const many, after = 200, 20
		var rows [][]any
		for i := range many {
			rows = append(rows, []any{fmt.Sprint("r", i), fmt.Sprintf("many|%04d", i), db.Micros(d.Now())})
		}
		addRiders(t, d, rows...)
		var mu sync.Mutex
		var order []string
		begun, goOn := make(chan struct{}), make(chan struct{})
		finish := laneWork(t, d, func(lane string, _ int64) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, lane)
		})
		stop := pumping(&lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 16, Poll: time.Hour, ClassMost: 1,
			Class: func(string) string {
				return ""
			},
			Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
				begun <- struct{}{}
				<-goOn
				finish(ctx, l)
			}})
		for i := range many + 1 {
			<-begun
			if i == after {
				must(t, d.Write(context.Background(), func(tx *db.Tx) error {
					tx.Wake("test_lanes")
					return tx.Insert("test_riders", "id,lane,due_at", []any{"small", "small|1", db.Micros(tx.Now())})
				}))
			}
			goOn <- struct{}{}
		}
		stop()
		at := -1
		for i, lane := range order {
			if strings.HasPrefix(lane, "small") {
				at = i
			}
		}
		if at < 0 || at > after+4 {
			t.Errorf("the small client's sale came in while number %d was worked and was number %d of %d", after, at, len(order))
		}
	})
}

// A slot that is free takes what the last look found beyond it: not every claim looks.
func TestNotEveryClaimLooks(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := lanes(t, d)
		q.Group = "|"
		const all = 120
		var rows [][]any
		for i := range all {
			rows = append(rows, []any{fmt.Sprint("r", i), fmt.Sprintf("c|%04d", i), db.Micros(d.Now())})
		}
		addRiders(t, d, rows...)
		done := make(chan struct{}, all)
		p := &lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 16, ClassMost: 1, Class: func(string) string { return "" },
			Work: laneWork(t, d, func(string, int64) { done <- struct{}{} })}
		stop := pumping(p)
		for range all {
			<-done
		}
		stop()
		if looks := lease.Looks(p); looks > all/4 {
			t.Errorf("%d looks for %d claims", looks, all)
		}
	})
}
