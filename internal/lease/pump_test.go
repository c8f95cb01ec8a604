package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// pumping runs a pump until stop is called; stop waits for its end.
func pumping[T any](p *lease.Pump[T]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		_ = p.Run(ctx) // it has none
		close(done)
	}()
	return func() {
		cancel()
		<-done
	}
}

// finishing is a Work that ends the row for ever and tells which.
func finishing(t *testing.T, d *db.DB, worked chan<- string) func(context.Context, *lease.Lease[string]) {
	return func(ctx context.Context, l *lease.Lease[string]) {
		if err := d.Write(ctx, func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) }); err != nil {
			t.Errorf("finish %s: %v", l.ID, err)
		}
		worked <- l.ID
	}
}

func TestCommittedWorkIsWorkedAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		worked := make(chan string)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 4, Poll: time.Hour, Work: finishing(t, d, worked)})
		defer stop()
		add := func(id string, err error) {
			got := d.Write(context.Background(), func(tx *db.Tx) error {
				tx.Wake("work")
				if err := tx.Insert("work", "id,fair,due_at", []any{id, "key", db.Micros(tx.Now())}); err != nil {
					return err
				}
				return err
			})
			if (got == nil) != (err == nil) {
				t.Error(got)
			}
		}
		for i := range 20 {
			add(fmt.Sprint("lost", i), fmt.Errorf("no"))
			id := fmt.Sprint("row", i)
			add(id, nil)
			if got := <-worked; got != id {
				t.Errorf("worked %s, want %s", got, id)
			}
		}
	})
}

func TestRetryGoesOutAtItsInstant(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		tried := make(chan time.Time, 10)
		waits := []time.Duration{1500 * time.Millisecond, 7 * time.Second, 93 * time.Second, 0}
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 4,
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				wait := waits[l.Token-1]
				must(t, d.Write(ctx, func(tx *db.Tx) error {
					tried <- tx.Now()
					if wait == 0 {
						return l.Finish(tx, time.Time{})
					}
					return l.Finish(tx, tx.Now().Add(wait))
				}))
			}})
		defer stop()
		first := d.Now().Add(2500 * time.Millisecond)
		addWork(t, d, []any{"row", "key", "", db.Micros(first)})
		due := first
		for i, wait := range waits {
			got := <-tried
			if late := got.Sub(due); late < 0 || late > 20*time.Millisecond {
				t.Errorf("try %d went out %s after its instant", i, late)
			}
			due = got.Add(wait)
		}
		time.Sleep(time.Minute)
		if len(tried) > 0 {
			t.Error("a row that is done was tried again")
		}
	})
}

func TestLongWorkKeepsItsLease(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		var begun atomic.Int32
		ended := make(chan error, 1)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 4,
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				begun.Add(1)
				time.Sleep(7 * lease.Term)
				ended <- d.Write(ctx, func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) })
			}})
		defer stop()
		addWork(t, d, []any{"row", "key", "", db.Micros(d.Now())})
		if err := <-ended; err != nil || begun.Load() != 1 {
			t.Errorf("the work ended with %v and was begun %d times", err, begun.Load())
		}
	})
}

func TestWorkThatLostItsLeaseIsCancelled(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		cancelled := make(chan time.Time)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 4,
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				if l.Token > 1 {
					must(t, d.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) }))
					return
				}
				must(t, d.Write(ctx, func(tx *db.Tx) error { // somebody else takes it over
					return tx.ExecOne("UPDATE work SET lease_token = lease_token + 1 WHERE id = $1", l.ID)
				}))
				<-ctx.Done()
				cancelled <- d.Now()
			}})
		defer stop()
		start := d.Now()
		addWork(t, d, []any{"row", "key", "", db.Micros(start)})
		if took := (<-cancelled).Sub(start); took > lease.Term {
			t.Errorf("work was cancelled %s after its lease was lost", took)
		}
	})
}

// A holder that says nothing any more: another takes over when the lease runs out.
func TestForgottenRowIsTakenOverWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		addWork(t, d, []any{"row", "key", "", db.Micros(d.Now())})
		if got := names(claim(t, q, d, lease.Claim{Max: 1})); got != "row" { // and nobody works it
			t.Fatal(got)
		}
		start := d.Now()
		worked := make(chan string)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 4, Work: finishing(t, d, worked)})
		defer stop()
		<-worked
		if took := d.Now().Sub(start); took < lease.Term-time.Second || took > 15*time.Second {
			t.Errorf("a forgotten row was taken over after %s, want when its lease ended", took)
		}
	})
}

func TestRestartTakesItsRowsOverAtOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	first := dbtest.Open(t, db.Config{URL: url})
	q := work(t, first)
	addWork(t, first, []any{"row", "key", "", db.Micros(first.Now())})
	claim(t, q, first, lease.Claim{Max: 1})
	must(t, first.Close())
	synctest.Test(t, func(t *testing.T) {
		second := dbtest.Open(t, db.Config{URL: url})
		start := time.Now()
		worked := make(chan string)
		stop := pumping(&lease.Pump[string]{DB: second, Queue: q, InFlight: 4, Work: finishing(t, second, worked)})
		defer stop()
		<-worked
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("a restarted node took its rows over after %s", took)
		}
	})
}

func TestShutdownDrains(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		begun, finished := make(chan string, 4), make(chan error, 4)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 2, Grace: time.Minute,
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				begun <- l.ID
				time.Sleep(25 * time.Second) // longer than a lease: draining must renew
				finished <- d.Write(ctx, func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) })
			}})
		for i := range 4 {
			addWork(t, d, []any{fmt.Sprint("row", i), "key", "", db.Micros(d.Now())})
		}
		<-begun
		<-begun
		start := time.Now()
		stop()
		if took := time.Since(start); took > 25*time.Second {
			t.Errorf("draining took %s", took)
		}
		for range 2 {
			if err := <-finished; err != nil {
				t.Errorf("work in progress was not finished: %v", err)
			}
		}
		if len(begun) > 0 {
			t.Error("new work was begun while draining")
		}
	})
}

func TestShutdownCancelsWorkAfterItsGrace(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		begun := make(chan struct{})
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 2,
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				close(begun)
				<-ctx.Done()
			}})
		addWork(t, d, []any{"row", "key", "", db.Micros(d.Now())})
		<-begun
		start := time.Now()
		stop()
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("a pump with stubborn work ended after %s, want the grace of 5 s", took)
		}
		if got := state(t, d, "row"); got != " 1 true" {
			t.Errorf("the abandoned row is %q, want it to stay leased", got)
		}
	})
}

func TestPumpSurvivesClaimErrorsAndPanics(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		var log dbtest.Journal
		worked := make(chan string, 8)
		finish := finishing(t, d, worked)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 2, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				if l.Token == 1 {
					panic("poison " + l.ID)
				}
				finish(ctx, l)
			}})
		defer stop()
		exec := func(text string) {
			must(t, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(text) }))
		}
		exec("ALTER TABLE work RENAME TO gone")
		time.Sleep(5 * time.Second)
		exec("ALTER TABLE gone RENAME TO work")
		addWork(t, d, []any{"row", "key", "", db.Micros(d.Now())})
		if got := <-worked; got != "row" {
			t.Error(got)
		}
		for _, want := range []string{"claim due rows", "queue=work", "poison row", "alert=worker_panic"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not tell of %q:\n%s", want, log.String())
			}
		}
	})
}

// One receiver hangs and has a long backlog; the others' rows go through, and
// the slow one never has more in work than its room.
func TestSlowKeyHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		var rows [][]any
		for i := range 400 {
			rows = append(rows, []any{fmt.Sprintf("slow%04d", i), "slow", "", db.Micros(d.Now()) - 1000_000})
		}
		addWork(t, d, rows...)
		var slow, most atomic.Int32
		quick := make(chan string, 100)
		finish := finishing(t, d, quick)
		stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: 16, Room: func(string) int {
			return 4
		}, Work: func(ctx context.Context, l *lease.Lease[string]) {
			if l.Key != "slow" {
				finish(ctx, l)
				return
			}
			most.Store(max(most.Load(), slow.Add(1)))
			defer slow.Add(-1)
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
		}})
		defer stop()
		time.Sleep(time.Second)
		for i := range 20 {
			start := time.Now()
			must(t, d.Write(context.Background(), func(tx *db.Tx) error {
				tx.Wake("work")
				return tx.Insert("work", "id,fair,due_at",
					[]any{fmt.Sprint("quick", i), fmt.Sprint("quick", i%7), db.Micros(tx.Now())})
			}))
			<-quick
			if took := time.Since(start); took > 10*time.Millisecond {
				t.Errorf("row %d waited %s behind the slow key", i, took)
			}
		}
		if most.Load() != 4 {
			t.Errorf("the slow key had %d rows in work, room for 4", most.Load())
		}
	})
}

// Rows of one key are many, bounded by key as deliveries are, or by class as messages of authorities.
func TestEverythingIsWorkedOnceWithManyKeys(t *testing.T) {
	t.Parallel()
	for name, pump := range map[string]*lease.Pump[string]{
		"by key":   {Room: func(string) int { return 2 }},
		"by class": {ClassMost: 2, Class: func(key string) string { return key[len(key)-1:] }},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				everythingIsWorkedOnce(t, d, &lease.Pump[string]{Room: pump.Room, Class: pump.Class, ClassMost: pump.ClassMost})
			})
		})
	}
}

func everythingIsWorkedOnce(t *testing.T, d *db.DB, pump *lease.Pump[string]) {
	q := work(t, d)
	const rows = 400
	var all [][]any
	for i := range rows {
		all = append(all, []any{fmt.Sprintf("%04d", i), fmt.Sprint("key", i%90), "", db.Micros(d.Now())})
	}
	addWork(t, d, all...)
	worked := make(chan string, 2*rows)
	pump.DB, pump.Queue, pump.InFlight, pump.Work = d, q, 64, finishing(t, d, worked)
	stop := pumping(pump)
	seen := map[string]bool{}
	for range rows {
		id := <-worked
		if seen[id] {
			t.Errorf("%s was worked twice", id)
		}
		seen[id] = true
	}
	stop()
	if len(worked) > 0 {
		t.Error("rows were worked that do not exist")
	}
}

// A class whose slots are all taken has hundreds of keys that are due. Those of
// another class behind them are found, and the next of its own as soon as a slot is free.
func TestKeysOfAFullClassHideNoOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := lanes(t, d)
		now := db.Micros(d.Now()) - 1000_000
		var riders [][]any
		for i := range 600 {
			riders = append(riders, []any{fmt.Sprint("r", i), fmt.Sprintf("a%04d", i), now})
		}
		addRiders(t, d, riders...)
		begun, free := make(chan string, 1000), make(chan struct{})
		stop := pumping(&lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 64, Grace: time.Millisecond, ClassMost: 2,
			Class: func(key string) string {
				return key[:1]
			},
			Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
				begun <- l.ID
				if l.ID[0] == 'a' {
					select {
					case <-free:
					case <-ctx.Done():
						return
					}
				}
				if err := d.Write(ctx, func(tx *db.Tx) error {
					if err := tx.Exec("UPDATE test_riders SET due_at = NULL WHERE lane = $1", l.ID); err != nil {
						return err
					}
					return l.Finish(tx, time.Time{})
				}); err != nil {
					t.Errorf("finish %s: %v", l.ID, err)
				}
			}})
		defer stop()
		<-begun
		<-begun
		for i := range 20 {
			b := fmt.Sprintf("b%d", i)
			must(t, d.Write(context.Background(), func(tx *db.Tx) error {
				tx.Wake("test_lanes")
				return tx.Insert("test_riders", "id,lane,due_at", []any{b, b, db.Micros(tx.Now())})
			}))
			if got := <-begun; got != b {
				t.Fatalf("%s was begun, want %s: two slots of its class are taken", got, b)
			}
			free <- struct{}{}
			if got := <-begun; got[0] != 'a' {
				t.Errorf("%s was begun in the slot that is free", got)
			}
		}
		if len(begun) > 0 {
			t.Errorf("%s was begun besides", <-begun)
		}
	})
}
