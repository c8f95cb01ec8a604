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
// While few submits wait it does nothing. While many do, the work has an account:
// it earns a quarter of the processors' time, pays for what it computes, and a new
// piece begins when something is left. Work that is late itself earns half. Those
// that wait are let go client by client, and of each in their order, so that nobody starves.
//
// Law: who takes a turn computes in it. Waits for an authority or a receiver would
// be paid like computing, and leave nothing for the others.
type Pace struct {
	elapsed    func() time.Duration // the clock that nobody sets
	processors int

	submits atomic.Int64
	pressed atomic.Int64 // until then submits are taken to come in numbers
	late    atomic.Int64 // until then the work is taken for late

	mu      sync.Mutex
	left    time.Duration                   // on the account; less than nothing: owed
	counted time.Duration                   // until when it was earned
	typical time.Duration                   // what a piece takes, paid when it begins and put right when it ends
	queue   map[string][]chan time.Duration // by whose work it is, see WorkOf; each hears what was paid for it
	owners  []string                        // of those that wait, in the order of their turns
	again   *time.Timer                     // looks whether the first of the queue may go
}

const (
	// pressedFrom is how many submits of a processor wait at once where they come
	// in numbers: a lone client has one or two.
	pressedFrom = 4
	// pressedFor is how long they are taken to come after the last time that many
	// waited. Those that wait together are answered together, so that none waits
	// for a moment in the midst of a burst.
	pressedFor = 100 * time.Millisecond

	share     = 4 // the work earns one of so many processors
	shareLate = 2
	savedMost = 10 * time.Millisecond  // of a processor: more would be a burst of its own
	owedMost  = 500 * time.Millisecond // one piece of minutes must not stop the others for as long
	pieceMost = 10 * time.Millisecond  // what is paid in advance at most

	lateFrom = time.Minute
	lateFor  = 5 * time.Second // after the last piece that was late
)

// Elapsed is the time since this process began, on a clock that nobody sets.
func (d *DB) Elapsed() time.Duration { return d.clock.elapsed() }

// Pace of this process.
func (d *DB) Pace() *Pace { return &d.pace }

// Pressed reports whether submits come in numbers.
func (p *Pace) Pressed() bool {
	return p.submits.Load() >= p.pressure() || p.pressed.Load() > int64(p.elapsed())
}

func (p *Pace) pressure() int64 { return pressedFrom * int64(p.processors) }

// Waited notes for how long a piece of work could have been done and was not.
func (p *Pace) Waited(d time.Duration) {
	if d >= lateFrom {
		p.late.Store(int64(p.elapsed() + lateFor))
	}
}

// Submit notes a submit that is waited for, until what it returns is called.
func (p *Pace) Submit() (done func()) {
	p.submits.Add(1)
	return p.leave
}

func (p *Pace) leave() {
	if p.submits.Add(-1) == p.pressure()-1 {
		p.pressed.Store(int64(p.elapsed() + pressedFor))
	}
}

// rate is how many processors the work earns now.
func (p *Pace) rate() float64 {
	if p.late.Load() > int64(p.elapsed()) {
		return float64(p.processors) / shareLate
	}
	return float64(p.processors) / share
}

// Turn waits until a piece of work may be computed, and returns what ends it.
// When ctx ends first the piece may go on: it is about to notice.
func (p *Pace) Turn(ctx context.Context) (done func()) { return p.TurnWithin(ctx, 0) }

// TurnWithin is Turn for work that has a share of its own: it waits so long at
// most, and then goes on. 0: as long as it takes.
func (p *Pace) TurnWithin(ctx context.Context, most time.Duration) (done func()) {
	if !p.Pressed() {
		return p.begun(0)
	}
	p.mu.Lock()
	if len(p.owners) == 0 && p.earn() > 0 {
		paid := p.advance()
		p.mu.Unlock()
		return p.begun(paid)
	}
	mine, owner := make(chan time.Duration, 1), workOf(ctx)
	p.join(owner, mine)
	p.look()
	p.mu.Unlock()
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case paid := <-mine:
		return p.begun(paid)
	case <-late:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue[owner], mine); i >= 0 {
		p.drop(owner, i)
	} else {
		p.left += <-mine // it was let go a moment ago
	}
	return func() {}
}

// join waits behind the others of the same owner.
func (p *Pace) join(owner string, mine chan time.Duration) {
	if p.queue == nil {
		p.queue = map[string][]chan time.Duration{}
	}
	if len(p.queue[owner]) == 0 {
		p.owners = append(p.owners, owner)
	}
	p.queue[owner] = append(p.queue[owner], mine)
}

// drop takes one out, and an owner who has no other.
func (p *Pace) drop(owner string, i int) {
	if p.queue[owner] = slices.Delete(p.queue[owner], i, i+1); len(p.queue[owner]) == 0 {
		delete(p.queue, owner)
		p.owners = slices.DeleteFunc(p.owners, func(o string) bool { return o == owner })
	}
}

// next takes out whose turn it is; its owner goes behind the others.
func (p *Pace) next() chan time.Duration {
	owner := p.owners[0]
	first := p.queue[owner][0]
	if p.drop(owner, 0); len(p.queue[owner]) > 0 {
		p.owners = append(p.owners[1:], owner)
	}
	return first
}

type workKey struct{}

// WorkOf says for which client work is done: clients take turns, see [Pace.Turn].
func WorkOf(ctx context.Context, clientID string) context.Context {
	return context.WithValue(ctx, workKey{}, clientID)
}

func workOf(ctx context.Context) string {
	owner, _ := ctx.Value(workKey{}).(string)
	return owner
}

// begun returns what ends a turn that begins now and for which something is paid.
func (p *Pace) begun(paid time.Duration) func() {
	began := p.elapsed()
	return func() {
		took := p.elapsed() - began
		p.mu.Lock()
		p.typical += (min(took, pieceMost) - p.typical) / 8
		p.mu.Unlock()
		p.Spent(took - paid)
	}
}

// Spent pays for what was computed without a turn: it could not wait, or nobody
// knows where it began.
func (p *Pace) Spent(d time.Duration) {
	if !p.Pressed() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.earn()
	p.left = max(p.left-d, -owedMost)
}

// earn brings the account up to date and returns what is left. Whoever was not
// pressed owes nothing.
func (p *Pace) earn() time.Duration {
	now := p.elapsed()
	p.left += time.Duration(float64(now-p.counted) * p.rate())
	p.left, p.counted = min(p.left, savedMost*time.Duration(p.processors)), now
	return p.left
}

// advance pays for a piece that begins.
func (p *Pace) advance() time.Duration {
	p.left -= p.typical
	return p.typical
}

// look admits those that may go, and looks again when the next may.
func (p *Pace) look() {
	free := !p.Pressed()
	for len(p.owners) > 0 && (free || p.earn() > 0) {
		p.next() <- p.advance()
	}
	if len(p.owners) == 0 || p.again != nil {
		return
	}
	wait := min(time.Duration(float64(1-p.left)/p.rate())+1, pressedFor) // somebody may be late by then, or nobody wait
	p.again = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.again = nil
		p.look()
	})
}
