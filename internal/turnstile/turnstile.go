// Package turnstile bounds what costly work takes of the machine, and lets those
// who cause it take turns.
//
// It owns the waiting. It does not know what the work is, nor what it weighs.
// Law of [Gate.Enter]: what is inside never weighs more than the capacity, and
// an owner waits for at most one piece of work of each other owner per turn.
//
// A gate stops at the first that does not fit although a smaller one behind it
// would: otherwise the large would be starved by the small. What is cheap should
// not pass a gate at all, so that nobody's ordinary request waits for anybody.
package turnstile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tributary/internal/fault"
)

// Gate lets work through by weight, owners in turns. It is safe for concurrent use.
type Gate struct {
	mu       sync.Mutex
	capacity int64
	share    int64 // what one owner may have inside; 0: everything
	queue    int   // pieces of work of one owner that may wait
	inside   int64
	own      map[string]int64 // of inside, by owner; kept where owners have a share
	waiting  map[string][]*waiter
	owners   []string // that wait, in the order of their turns
}

type waiter struct {
	weight int64
	enter  chan struct{} // closed when it may
}

// New makes a gate for a capacity in whatever unit weights have. queue is how
// many pieces of work of one owner may wait: what waits holds its input.
func New(capacity int64, queue int) *Gate {
	return &Gate{capacity: capacity, queue: queue, waiting: map[string][]*waiter{}}
}

// Sharing leaves every owner at most so much of the capacity, so that there is room for
// the others even while its work hangs. Work that weighs more goes in alone of its owner.
func (g *Gate) Sharing(share int64) *Gate {
	g.share, g.own = share, map[string]int64{}
	return g
}

// Enter waits until there is room for a weight and it is the owner's turn. The
// caller must call leave once, when the work is done. Work that weighs more than
// the capacity goes in alone.
//
// Failure policy: an owner whose queue is full is told to come back
// (fault.Limited), and so is a caller whose time is over: by the deadline of ctx, or
// by [AnswerBy] so early that the work can still be done (fault.Unavailable). A
// caller who goes away gets the error of ctx. None of them has taken anything.
func (g *Gate) Enter(ctx context.Context, owner string, weight int64) (leave func(), err error) {
	weight = min(max(weight, 1), g.capacity)
	g.mu.Lock()
	if len(g.owners) == 0 && g.hasRoom(owner, weight) {
		g.admit(owner, weight)
		g.mu.Unlock()
		return g.leaver(owner, weight), nil
	}
	w := &waiter{weight: weight, enter: make(chan struct{})}
	if len(g.waiting[owner]) == 0 {
		g.owners = append(g.owners, owner)
	}
	g.waiting[owner] = append(g.waiting[owner], w)
	g.look() // those before it may all wait for their own work
	full := len(g.waiting[owner]) > g.queue
	g.mu.Unlock()
	if full && g.giveUp(owner, w) {
		return nil, &fault.Error{Kind: fault.Limited, Message: "too much costly work of this client is waiting",
			RetryAfter: time.Second,
			Faults:     []fault.Fault{{Code: fault.RateLimited, Type: fault.General, Message: "wait before the next request"}}}
	}
	ctx, cancel := inTime(ctx)
	defer cancel()
	select {
	case <-w.enter:
		return g.leaver(owner, weight), nil
	case <-ctx.Done():
	}
	if !g.giveUp(owner, w) {
		g.leaver(owner, weight)() // it was let in at the same moment
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, tooLate(ctx.Err())
	}
	return nil, ctx.Err()
}

func (g *Gate) leaver(owner string, weight int64) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.admit(owner, -weight)
		g.look()
	})
}

// admit notes a weight that goes in, or comes out.
func (g *Gate) admit(owner string, weight int64) {
	g.inside += weight
	if g.share == 0 {
		return
	}
	if g.own[owner] += weight; g.own[owner] == 0 {
		delete(g.own, owner)
	}
}

func (g *Gate) hasRoom(owner string, weight int64) bool {
	return g.inside+weight <= g.capacity && !g.usedUp(owner, weight)
}

// usedUp reports whether an owner must wait for its own work.
func (g *Gate) usedUp(owner string, weight int64) bool {
	return g.share > 0 && g.own[owner] > 0 && g.own[owner]+weight > g.share
}

// look lets in whose turn it is, as long as there is room. It stops at the
// first that has none: who is large must not wait for ever behind the small.
func (g *Gate) look() {
	for i := 0; i < len(g.owners); {
		owner := g.owners[i]
		next := g.waiting[owner][0]
		if g.usedUp(owner, next.weight) {
			i++
			continue
		}
		if g.inside+next.weight > g.capacity {
			return
		}
		g.admit(owner, next.weight)
		close(next.enter)
		g.owners = slices.Delete(g.owners, i, i+1)
		if rest := g.waiting[owner][1:]; len(rest) > 0 {
			g.waiting[owner] = rest
			g.owners = append(g.owners, owner) // behind everybody else
		} else {
			delete(g.waiting, owner)
		}
	}
}

// giveUp takes a waiter out; false: it is inside already.
func (g *Gate) giveUp(owner string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting[owner], w)
	if at < 0 {
		return false
	}
	g.waiting[owner] = slices.Delete(g.waiting[owner], at, at+1)
	if len(g.waiting[owner]) == 0 {
		delete(g.waiting, owner)
		g.owners = slices.DeleteFunc(g.owners, func(o string) bool { return o == owner })
	}
	g.look() // those behind may be smaller
	return true
}
