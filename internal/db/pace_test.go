package db

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is a pace with so many submits that wait.
func crowd(processors, submits int) *Pace {
	start := time.Now()
	p := &Pace{elapsed: func() time.Duration { return time.Since(start) }, processors: processors}
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
	time.Sleep(time.Second) // pieces and rests end
	return average, most
}

func TestWorkKeepsAQuarterWhileSubmitsWait(t *testing.T) {
	for _, c := range []struct {
		name                string
		processors, submits int
		late                time.Duration
		average             float64
		most                int
	}{
		{"few submits", 2, 2*pressedFrom - 1, 0, 20, 20},
		{"one processor", 1, pressedFrom, 0, 0.25, 1},
		{"two processors", 2, 2 * pressedFrom, 0, 0.5, 1},
		{"eight processors", 8, 8 * pressedFrom, 0, 2, 2},
		{"late by less than a minute", 2, 2 * pressedFrom, lateFrom - 1, 0.5, 1},
		{"late", 8, 8 * pressedFrom, lateFrom, 4, 4},
		{"late on two", 2, 2 * pressedFrom, lateFrom, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := crowd(c.processors, c.submits)
				if c.late > 0 {
					p.elapsed = func() time.Duration { return 0 } // it stays late
					p.Waited(c.late)
				}
				average, most := busy(t, p)
				if average < c.average*0.97 || average > c.average*1.03 || most != c.most {
					t.Errorf("%.2f processors on average, %d at most; want %.2f and %d", average, most, c.average, c.most)
				}
			})
		})
	}
}

func TestWorkGoesOnWhenTheCrowdLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom-1)
		leave := p.Submit()
		first := p.Turn(t.Context())
		order := make(chan int, 3)
		for i := range 3 {
			go func() { p.Turn(t.Context()); order <- i }()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Error("a second piece is computed while submits wait")
		}
		leave()
		synctest.Wait()
		if len(order) != 3 {
			t.Errorf("%d of 3 go on", len(order))
		}
		first()
	})
}

// Whoever gives up while it waits takes no turn with it.
func TestAGivenUpTurnIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := crowd(2, 2*pressedFrom)
		first := p.Turn(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { p.Turn(ctx)(); close(gone) }()
		synctest.Wait()
		cancel()
		<-gone
		first()
		time.Sleep(time.Second)
		p.Turn(t.Context())()
		time.Sleep(time.Second)
		if p.turns != 0 || len(p.queue) != 0 {
			t.Errorf("%d turns are taken, %d wait", p.turns, len(p.queue))
		}
	})
}
