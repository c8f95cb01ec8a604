package turnstile_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// Whoever has its share inside waits for its own work, and others pass it.
func TestNobodyHoldsMoreThanItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := turnstile.New(4, 32).Sharing(3)
		inside := make(chan string, 99)
		var leave []func()
		for _, owner := range []string{"many", "many", "many", "many", "many", "one", "large"} {
			weight := map[string]int64{"large": 4}[owner] // more than its share: alone of its owner, when there is room
			go func() {
				out, err := g.Enter(t.Context(), owner, weight)
				if err != nil {
					t.Error(err)
					return
				}
				leave = append(leave, out)
				inside <- owner
			}()
			synctest.Wait()
		}
		if got := len(inside); got != 4 {
			t.Fatalf("%d are inside of four places", got)
		}
		for _, want := range []string{"many", "many", "many", "one"} {
			if got := <-inside; got != want {
				t.Errorf("%s is inside in place of %s", got, want)
			}
		}
		for len(leave) > 0 {
			out := leave[0]
			leave = leave[1:]
			out()
			synctest.Wait()
		}
		if len(inside) != 3 {
			t.Errorf("%d of three others had their turn", len(inside))
		}
	})
}

// Whoever waits hears when to come back while there is time to say so, and to do the
// work: at the last moment it is let in, behind it it is not.
func TestWhoWaitsHearsSoInTime(t *testing.T) {
	t.Parallel()
	for _, early := range []time.Duration{1, 0} {
		synctest.Test(t, func(t *testing.T) {
			g := turnstile.New(1, 32)
			leave, err := g.Enter(t.Context(), "a", 1)
			if err != nil {
				t.Fatal(err)
			}
			by := time.Now().Add(14 * time.Second)
			answer := make(chan error, 1)
			go func() {
				_, err := g.Enter(turnstile.AnswerBy(t.Context(), by), "b", 1)
				answer <- err
			}()
			time.Sleep(10*time.Second - early)
			synctest.Wait()
			leave()
			err = <-answer
			var told *fault.Error
			switch {
			case early > 0 && err != nil:
				t.Errorf("let in at the last moment: %v", err)
			case early == 0 && (!errors.As(err, &told) || told.Kind != fault.Unavailable || told.RetryAfter <= 0):
				t.Errorf("four seconds before its connection ends it hears %v", err)
			}
			if at := turnstile.AnsweredBy(turnstile.AnswerBy(t.Context(), by), by.Add(time.Hour)); !at.Equal(by) {
				t.Errorf("to be answered by %s", at)
			}
		})
	}
}

// One kind that hangs leaves room for another, and of one kind owners take turns.
func TestPartsBoundAKindAndOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := turnstile.NewParts(10, 6)
		leave, err := p.Enter(t.Context(), "slow", "many", 99) // as much as a kind may have
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 9)
		for _, owner := range []string{"many", "many", "one"} {
			go func() {
				out, err := p.Enter(t.Context(), "slow", owner, 6)
				if err != nil {
					t.Error(err)
					return
				}
				order <- owner
				out()
			}()
			synctest.Wait()
		}
		other, err := p.Enter(t.Context(), "quick", "many", 4)
		if err != nil {
			t.Fatal(err)
		}
		other()
		if len(order) > 0 {
			t.Error("a kind has more than its part")
		}
		leave()
		synctest.Wait()
		if a, b := <-order, <-order; a != "many" || b != "one" {
			t.Errorf("%s, then %s", a, b)
		}
	})
}
