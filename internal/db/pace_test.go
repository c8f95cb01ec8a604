package db

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func newPace(processors int) *Pace {
	start := time.Now()
	return &Pace{elapsed: func() time.Duration { return time.Since(start) }, processors: processors}
}

// crowd is a pace with so many submits that wait.
func crowd(processors, submits int) *Pace {
	p := newPace(processors)
	for range submits {
		p.Submit()
	}
	return p
}

// busy lets twenty workers compute pieces of ten milliseconds for a minute, and
// returns how many processors they used on average, and how many at most.
func busy(t *testing.T, p *Pace) (average float64, most int) {
	t.Helper()
	const piece, lasts = 10 * time.Millisecond, time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	var pieces, now int
	for range 20 {
		go func() {
			for ctx.Err() == nil {
				done := p.Turn(ctx)
				if ctx.Err() != nil {
					done()
					return
				}
				p.mu.Lock()
				pieces++
				now++
				most = max(most, now)
				p.mu.Unlock()
				time.Sleep(piece)
				p.mu.Lock()
				now--
				p.mu.Unlock()
				done()
			}
		}()
	}
	time.Sleep(lasts)
	p.mu.Lock()
	average = float64(pieces) * float64(piece) / float64(lasts)
	p.mu.Unlock()
	cancel()
	synctest.Wait()
	time.Sleep(time.Second) // pieces and waits end
	return average, most
}

func TestWorkKeepsAQuarterWhileSubmitsWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		processors, submits int
		late                time.Duration
		average             float64
		most                int
	}{
		{"few submits", 2, 2*pressedFrom - 1, 0, 20, 20},
		{"one processor", 1, pressedFrom, 0, 0.25, 2},
		{"two processors", 2, 2 * pressedFrom, 0, 0.5, 3},
		{"eight processors", 8, 8 * pressedFrom, 0, 2, 10},
		{"late by less than a minute", 2, 2 * pressedFrom, lateFrom - 1, 0.5, 3},
		{"late", 8, 8 * pressedFrom, lateFrom, 4, 12},
		{"late on two", 2, 2 * pressedFrom, lateFrom, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := crowd(c.processors, c.submits)
				p.typical = 10 * time.Millisecond
				if c.late > 0 {
					stop := make(chan struct{})
					defer close(stop)
					go func() { // it stays late
						for tick := time.NewTicker(lateFor / 2); ; {
							p.Waited(c.late)
							select {
							case <-tick.C:
							case <-stop:
								tick.Stop()
								return
							}
						}
					}()
				}
				average, most := busy(t, p)
				if average < c.average*0.97 || average > c.average*1.03 || most > c.most {
					t.Errorf("%.2f processors on average, %d at most; want %.2f and at most %d", average, most, c.average, c.most)
				}
			})
		})
	}
}

// What is computed without a turn is paid for, too.
func TestWhatIsSpentIsNotComputedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom)
		p.typical = 10 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				p.Spent(time.Millisecond)
				time.Sleep(4 * time.Millisecond) // a quarter of a processor
			}
		}()
		average, _ := busy(t, p)
		cancel()
		time.Sleep(time.Second) // it ends
		if average < 0.24 || average > 0.26 {
			t.Errorf("turns take %.2f processors where a quarter of two is half spent", average)
		}
	})
}

// Submits that wait for one commit are answered together. The moment between them
// and the next ones is no end of a burst.
func TestAMomentWithoutSubmitsEndsNoBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(2)
		wave := func() (leave []func()) {
			for range 2 * pressedFrom {
				leave = append(leave, p.Submit())
			}
			return leave
		}
		for _, leave := range wave() {
			leave()
		}
		if !p.Pressed() {
			t.Error("a burst is over as soon as one wave of it is answered")
		}
		time.Sleep(pressedFor)
		if p.Pressed() {
			t.Error("a burst is not over after its end")
		}
		first := p.Submit()
		first()
		if p.Pressed() {
			t.Error("one submit is a burst")
		}
	})
}

func TestWorkGoesOnWhenTheCrowdLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom-1)
		leave := p.Submit()
		p.Spent(time.Second)
		order := make(chan int, 3)
		for i := range 3 {
			go func() { p.Turn(t.Context()); order <- i }()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Error("a piece is computed while submits wait and time is owed")
		}
		leave()
		time.Sleep(2 * pressedFor)
		synctest.Wait()
		if len(order) != 3 {
			t.Fatalf("%d of 3 go on", len(order))
		}
	})
}

func TestTurnsAreGivenInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom)
		p.typical = 10 * time.Millisecond
		p.Spent(time.Second)
		order := make(chan int, 3)
		for i := range 3 {
			go func() { p.Turn(t.Context()); order <- i }()
			synctest.Wait()
		}
		for i := range 3 {
			if next := <-order; next != i {
				t.Errorf("number %d goes in place of %d", next, i)
			}
		}
	})
}

// A client whose work waits in numbers is one among those that wait.
func TestTurnsAreGivenClientByClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom)
		p.typical = 10 * time.Millisecond
		p.Spent(time.Second)
		order := make(chan string, 9)
		for _, owner := range []string{"many", "many", "many", "", "one"} {
			go func() { p.Turn(WorkOf(t.Context(), owner)); order <- owner }()
			synctest.Wait()
		}
		for _, want := range []string{"many", "", "one", "many", "many"} {
			if next := <-order; next != want {
				t.Errorf("%q goes in place of %q", next, want)
			}
		}
	})
}

// A piece of a minute must not stop the others for as long.
func TestWhatIsOwedHasABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom)
		done := p.Turn(t.Context())
		time.Sleep(time.Minute)
		done()
		began := time.Now()
		p.Turn(t.Context())()
		if waited := time.Since(began); waited < owedMost || waited > 2*owedMost+pressedFor {
			t.Errorf("the next piece waited for %s", waited)
		}
	})
}

// Whoever gives up while it waits takes nothing with it.
func TestAGivenUpTurnIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom)
		p.typical = 10 * time.Millisecond
		p.Spent(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { p.Turn(ctx)(); close(gone) }()
		synctest.Wait()
		cancel()
		<-gone
		time.Sleep(2 * time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if left := p.earn(); left != 2*savedMost || len(p.queue) != 0 {
			t.Errorf("%s are left, %d wait", left, len(p.queue))
		}
	})
}
