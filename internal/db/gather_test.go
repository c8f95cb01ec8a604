package db_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// In virtual time only waiting takes time: one caller after the other never
// waits for company, and a crowd is stored in sets that keep their distance.
func TestALoneCallIsStoredAtOnceAndACrowdInSets(t *testing.T) {
	t.Parallel()
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		g := db.NewGather(d, func(tx *db.Tx, in []int) ([]int, error) { return in, nil })
		defer g.Close()
		start := time.Now()
		for i := range 50 {
			if out, err := g.Do(context.Background(), i); err != nil || out != i {
				t.Fatalf("call %d answers %d, %v", i, out, err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("calls one after the other waited %v", took)
		}

		const callers, rounds = 40, 20
		start = time.Now()
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for i := range rounds {
					if out, err := g.Do(context.Background(), i); err != nil || out != i {
						t.Errorf("call answers %d, %v", out, err)
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		if took == 0 || took > rounds*2*db.GatherPace {
			t.Errorf("%d calls of each of %d callers took %v, want sets with a distance of %v", rounds, callers, took,
				db.GatherPace)
		}
		if out, err := g.Do(context.Background(), 7); err != nil || out != 7 {
			t.Fatalf("the last call answers %d, %v", out, err)
		}
	})
}

// A wall clock that is set by hours, forth and back, under load: no call waits
// for longer than the distance between two sets.
func TestWallClockSetUnderLoadHoldsUpNoCall(t *testing.T) {
	t.Parallel()
	dbtest.Bubble(t, func(t *testing.T, d *db.DB) {
		g := db.NewGather(d, func(tx *db.Tx, in []int) ([]int, error) { return in, nil })
		defer g.Close()
		var wg sync.WaitGroup
		for caller := range 20 {
			wg.Go(func() {
				for i := range 40 {
					asked := time.Now()
					if _, err := g.Do(context.Background(), i); err != nil {
						t.Error(err)
					}
					if took := time.Since(asked); took > 2*db.GatherPace {
						t.Errorf("call %d of caller %d waited %s", i, caller, took)
					}
				}
			})
		}
		for _, jump := range []time.Duration{-3 * time.Hour, 7 * time.Hour, -12 * time.Hour, time.Hour} {
			time.Sleep(3 * db.GatherPace)
			db.JumpWall(d, jump)
		}
		wg.Wait()
	})
}
