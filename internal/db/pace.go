package db

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Pace lets the work behind the intake step back while submits wait: somebody
// stands at the door for those, and nobody for a document that is ready a minute
// later.
//
// While few submits wait it does nothing. While many do, the work keeps a quarter
// of the processors: so many pieces are computed at once or, where there are
// fewer than four processors, one, which then rests. Work that is late itself
// gets half of them, at least two. Those that wait are let go in their order, so
// that nobody starves.
//
// Law: who holds a turn computes. It waits for no authority, no receiver and no
// other turn.
type Pace struct {
	elapsed    func() time.Duration // the clock that nobody sets
	processors int

	submits atomic.Int64
	late    atomic.Int64 // until then the work is taken for late

	mu    sync.Mutex
	turns int
	queue []chan struct{}
}

const (
	// pressedFrom is how many submits of a processor wait at once where they come
	// in numbers: a lone client has one or two.
	pressedFrom = 4
	share       = 4 // the work keeps one of so many processors
	restMost    = 50 * time.Millisecond
	lateFrom    = time.Minute
	lateFor     = 5 * time.Second // after the last piece that was late
)

// Elapsed is the time since this process began, on a clock that nobody sets.
func (d *DB) Elapsed() time.Duration { return d.clock.elapsed() }

// Pace of this process.
func (d *DB) Pace() *Pace { return &d.pace }

// Pressed reports whether submits wait in numbers.
func (p *Pace) Pressed() bool { return p.submits.Load() >= p.pressure() }

func (p *Pace) pressure() int64 { return pressedFrom * int64(p.processors) }

// Waited notes for how long a piece of work could have been done and was not.
func (p *Pace) Waited(d time.Duration) {
	if d >= lateFrom {
		p.late.Store(int64(p.elapsed() + lateFor))
		p.admit()
	}
}

// Submit notes a submit that is waited for, until what it returns is called.
func (p *Pace) Submit() (done func()) {
	p.submits.Add(1)
	return p.leave
}

func (p *Pace) leave() {
	if p.submits.Add(-1) == p.pressure()-1 {
		p.admit()
	}
}

// most is how many turns there are now; 0: any number.
func (p *Pace) most() int {
	n := p.processors
	switch {
	case !p.Pressed():
		return 0
	case p.isLate():
		return max(2, n/2)
	}
	return max(1, n/share)
}

func (p *Pace) isLate() bool { return p.late.Load() > int64(p.elapsed()) }

// rest is how long a turn stays taken after a piece that took so long.
func (p *Pace) rest(took time.Duration) time.Duration {
	n := p.processors
	if n >= share || !p.Pressed() || p.isLate() {
		return 0
	}
	return min(restMost, took*time.Duration(share-n)/time.Duration(n))
}

// Turn waits until a piece of work may be computed, and returns what ends it.
// When ctx ends first the piece may go on: it is about to notice.
func (p *Pace) Turn(ctx context.Context) (done func()) {
	p.mu.Lock()
	if most := p.most(); most == 0 || p.turns < most && len(p.queue) == 0 {
		p.turns++
		p.mu.Unlock()
		return p.begun()
	}
	mine := make(chan struct{})
	p.queue = append(p.queue, mine)
	p.mu.Unlock()
	select {
	case <-mine:
		return p.begun()
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.queue, mine)
	if i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 {
		p.end() // it was given a moment ago
	}
	return func() {}
}

// begun returns what ends a turn that begins now.
func (p *Pace) begun() func() {
	began := time.Now()
	return func() {
		if rest := p.rest(time.Since(began)); rest > 0 {
			time.AfterFunc(rest, p.end)
			return
		}
		p.end()
	}
}

func (p *Pace) end() {
	p.mu.Lock()
	p.turns--
	p.mu.Unlock()
	p.admit()
}

// admit gives out the turns that there are.
func (p *Pace) admit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for most := p.most(); len(p.queue) > 0 && (most == 0 || p.turns < most); {
		p.turns++
		close(p.queue[0])
		p.queue = p.queue[1:]
	}
}
