package turnstile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tributary/internal/fault"
	"tributary/internal/turnstile"
)

// enter takes a place in a bubble of synctest and tells when it has it.
func enter(t *testing.T, g *turnstile.Gate, owner string, weight int64, order chan<- string) {
	t.Helper()
	go func() {
		leave, err := g.Enter(t.Context(), owner, weight)
		if err != nil {
			t.Error(err)
			return
		}
		order <- owner
		leave()
	}()
	synctest.Wait()
}

func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := turnstile.New(10, 32)
		leave, err := g.Enter(t.Context(), "first", 10)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 99)
		for range 20 {
			enter(t, g, "many", 10, order)
		}
		enter(t, g, "one", 10, order)
		leave()
		leave() // twice is once
		synctest.Wait()
		if a, b := <-order, <-order; a != "many" || b != "one" {
			t.Errorf("%s, then %s: the owner of one waits for all of another's", a, b)
		}
		if len(order) != 19 {
			t.Errorf("%d of 19 others had their turn", len(order))
		}
	})
}

func TestTheCapacityHoldsAndTheLargeAreNotStarved(t *testing.T) {
	t.Parallel()
	g := turnstile.New(100, 32)
	var inside, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			weight := int64(1 + i%7*30) // the largest weigh more than there is room
			leave, err := g.Enter(context.Background(), fmt.Sprint(i%40), weight)
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			now := inside.Add(min(weight, 100))
			defer inside.Add(-min(weight, 100))
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
		})
	}
	wg.Wait()
	if most.Load() > 100 || inside.Load() != 0 {
		t.Errorf("%d were inside at most, %d at the end", most.Load(), inside.Load())
	}
}

func TestWaitingIsBoundedAndCanBeGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := turnstile.New(1, 32)
		leave, err := g.Enter(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		impatient, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 99)
		for range 32 {
			go func() {
				_, err := g.Enter(impatient, "a", 1)
				gone <- err
			}()
		}
		synctest.Wait()
		if _, err := g.Enter(t.Context(), "a", 1); fault.KindOf(err) != fault.Limited {
			t.Errorf("the thirty-third that waits: %v", err)
		}
		order := make(chan string, 1)
		enter(t, g, "b", 1, order) // another owner still may
		cancel()
		for range 32 {
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("given up with %v", err)
			}
		}
		leave()
		if got := <-order; got != "b" {
			t.Error(got)
		}
	})
}
