package lease_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// twoNodes are two servers on one PostgreSQL, with a queue.
func twoNodes(t *testing.T) (a, b *db.DB, url string, q *lease.Queue[string]) {
	t.Helper()
	url = dbtest.MigratedURL(t)
	a, b = dbtest.Open(t, db.Config{URL: url}), dbtest.Open(t, db.Config{URL: url})
	return a, b, url, work(t, a)
}

func TestCommitWakesTheOtherNode(t *testing.T) {
	t.Parallel()
	a, b, url, q := twoNodes(t)
	worked := make(chan string)
	stop := pumping(&lease.Pump[string]{DB: b, Queue: q, InFlight: 4, Poll: time.Hour, Work: finishing(t, b, worked)})
	defer stop()
	send := func(d *db.DB, id string) {
		t.Helper()
		must(t, d.Write(context.Background(), func(tx *db.Tx) error {
			tx.Wake("work")
			return tx.Insert("work", "id,fair,due_at", []any{id, "key", db.Micros(tx.Now())})
		}))
		select {
		case got := <-worked:
			if got != id {
				t.Errorf("worked %s, want %s", got, id)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s was not heard of on the other node", id)
		}
	}
	send(a, "first")
	// The line to the others is cut: it comes back and nothing said meanwhile is lost.
	dbtest.TerminateSessions(t, url, "query LIKE 'LISTEN%'")
	send(a, "second")
	send(a, "third")
}

func TestDeadNodesRowsAreTakenOver(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	a, _, url, q := twoNodes(t)
	addWork(t, a, []any{"row", "key", "", db.Micros(a.Now().Add(-time.Second))})
	c := dbtest.StartChild(t, "holder", url)
	c.Want("holds row 1")
	c.Signal(syscall.SIGKILL)
	c.Rest()
	db.StopClock(a) // the lease never ends
	worked := make(chan string)
	stop := pumping(&lease.Pump[string]{DB: a, Queue: q, InFlight: 4, Work: finishing(t, a, worked)})
	defer stop()
	<-worked
}

// A node whose session was cut for a moment is not dead: its rows stay with it.
func TestLivingNodeIsNotTakenOverAfterOneLook(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	a, b, _, q := twoNodes(t)
	ctx := context.Background()
	addWork(t, a, []any{"row", "key", "", db.Micros(a.Now().Add(-time.Second))})
	held := claim(t, q, a, lease.Claim{Max: 1})
	release := func(suspects []string) (freed int, missing []string, err error) {
		for range 10 { // a machine that stands still for as long as a small question may take gives no answer
			if freed, missing, err = lease.Release(ctx, q, b, suspects); err == nil {
				break
			}
		}
		return freed, missing, err
	}
	if freed, missing, err := release(nil); freed != 0 || len(missing) != 0 || err != nil {
		t.Errorf("a living node was found dead: %d freed, missing %v (%v)", freed, missing, err)
	}
	// nobody has this name
	must(t, a.Write(ctx, func(tx *db.Tx) error { return tx.Exec("UPDATE work SET lease_node = '42' WHERE id = 'row'") }))
	freed, missing, err := release(nil)
	if freed != 0 || len(missing) != 1 || err != nil {
		t.Fatalf("the first look at a missing node: %d freed, missing %v (%v)", freed, missing, err)
	}
	if freed, missing, err = release(missing); freed != 1 || len(missing) != 0 || err != nil {
		t.Fatalf("the second look at a missing node: %d freed, missing %v (%v)", freed, missing, err)
	}
	if err := a.Write(ctx, held[0].Guard); err == nil {
		t.Error("the holder of a row that was freed can still guard it")
	}
}

// Hard case 6: a node stalls, its row is taken over, and it wakes up.
func TestStalledHolderCannotWriteWhenItWakesUp(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	a, _, url, q := twoNodes(t)
	addWork(t, a, []any{"row", "key", "new", db.Micros(a.Now().Add(-time.Second))})
	c := dbtest.StartChild(t, "holder", url)
	c.Want("holds row 1")
	c.Signal(syscall.SIGSTOP)
	db.StopClock(a)
	if got := claim(t, q, a, lease.Claim{Max: 1}); len(got) != 0 {
		t.Fatal("a lease that runs was taken over")
	}
	db.ShiftClock(a, lease.Term+time.Second)
	taken := claim(t, q, a, lease.Claim{Max: 1})
	if names(taken) != "row" || taken[0].Token != 2 {
		t.Fatalf("took over %v", taken)
	}
	c.Signal(syscall.SIGCONT)
	c.Say("write now")
	c.Want("stale: true")
	if got := state(t, a, "row"); got != "new 2 true" {
		t.Errorf("the row is %q: the stalled holder wrote", got)
	}
	must(t, a.Write(context.Background(), func(tx *db.Tx) error { return taken[0].Finish(tx, time.Time{}) }))
}

// Two nodes pump one queue with lanes: everything is worked, nothing deadlocks.
func TestTwoNodesShareLanes(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedURL(t)
	nodes := []*db.DB{dbtest.Open(t, db.Config{URL: url}), dbtest.Open(t, db.Config{URL: url})}
	q := lanes(t, nodes[0])
	const riders = 300
	var rows [][]any
	for i := range riders {
		rows = append(rows, []any{fmt.Sprint("r", i), fmt.Sprint("lane", i%20), db.Micros(nodes[0].Now())})
	}
	done := make(chan int64, riders)
	for _, d := range nodes {
		stop := pumping(&lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 8,
			Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
				var moved int64
				err := d.Write(ctx, func(tx *db.Tx) error {
					ids, err := db.Collect(tx, func(s func(...any) error) (id string, err error) { return id, s(&id) },
						"UPDATE test_riders SET due_at = NULL WHERE id IN (SELECT id FROM test_riders WHERE lane = $1 AND due_at IS NOT NULL LIMIT 4) RETURNING id", l.ID)
					moved = int64(len(ids))
					if err != nil {
						return err
					}
					tx.Wake("test_lanes")
					return l.Finish(tx, time.Time{})
				})
				if err != nil {
					t.Errorf("lane %s: %v", l.ID, err)
				}
				done <- moved
			}})
		defer stop()
	}
	addRiders(t, nodes[0], rows...)
	for left := int64(riders); left > 0; {
		left -= <-done
	}
}

// All nodes live on the server's time, so that they agree on what is due,
// whatever their own clocks show.
func TestNodesAgreeOnTheTime(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	a, b, _, _ := twoNodes(t)
	db.JumpWall(b, 3*time.Hour)
	const off = time.Minute // what a slow machine may make of a sample
	for range 20 {
		first, second, third := a.Now(), b.Now(), a.Now()
		if second.Before(first.Add(-off)) || second.After(third.Add(off)) {
			t.Errorf("one node's time is %s, the other's %s", first, second)
		}
	}
}
