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
	"slices"
	"sync"
	"time"

	"tributary/internal/fault"
)

// Gate lets work through by weight, owners in turns. It is safe for concurrent use.
type Gate struct {
	mu       sync.Mutex
	capacity int64
	queue    int // pieces of work of one owner that may wait
	inside   int64
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

// Enter waits until there is room for a weight and it is the owner's turn. The
// caller must call leave once, when the work is done. Work that weighs more than
// the capacity goes in alone.
//
// Failure policy: an owner whose queue is full is told to come back
// (fault.Limited); a caller whose ctx ends gets its error and has taken nothing.
func (g *Gate) Enter(ctx context.Context, owner string, weight int64) (leave func(), err error) {
	weight = min(max(weight, 1), g.capacity)
	g.mu.Lock()
	if len(g.owners) == 0 && g.inside+weight <= g.capacity {
		g.inside += weight
		g.mu.Unlock()
		return g.leaver(weight), nil
	}
	if len(g.waiting[owner]) >= g.queue {
		g.mu.Unlock()
		return nil, &fault.Error{Kind: fault.Limited, Message: "too much costly work of this client is waiting",
			RetryAfter: time.Second,
			Faults:     []fault.Fault{{Code: fault.RateLimited, Type: fault.General, Message: "wait before the next request"}}}
	}
	w := &waiter{weight: weight, enter: make(chan struct{})}
	if len(g.waiting[owner]) == 0 {
		g.owners = append(g.owners, owner)
	}
	g.waiting[owner] = append(g.waiting[owner], w)
	g.mu.Unlock()
	select {
	case <-w.enter:
		return g.leaver(weight), nil
	case <-ctx.Done():
	}
	if g.giveUp(owner, w) {
		return nil, ctx.Err()
	}
	g.leaver(weight)() // it was let in at the same moment
	return nil, ctx.Err()
}

func (g *Gate) leaver(weight int64) func() {
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside -= weight
		g.admit()
	})
}

// admit lets in whose turn it is, as long as there is room. It stops at the
// first that has none: who is large must not wait for ever behind the small.
func (g *Gate) admit() {
	for len(g.owners) > 0 {
		owner := g.owners[0]
		next := g.waiting[owner][0]
		if g.inside+next.weight > g.capacity {
			return
		}
		g.inside += next.weight
		close(next.enter)
		g.owners = g.owners[1:]
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
	g.admit() // those behind may be smaller
	return true
}
