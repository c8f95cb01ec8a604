package webhook

import (
	"context"
	"sync"
	"time"

	"tributary/internal/db"
)

// turnLook is how often the record of another node's try is looked for.
const turnLook = 250 * time.Millisecond

// turns keeps the order of first tries within a series. An event waits until the
// first try of the one before it has come to its end: on this node it is told so
// at once, of another node's try it reads in the database. Since each waits for
// its direct predecessor, the whole series is in order.
type turns struct {
	mu    *sync.Mutex
	gates map[string]*gate
}

// gate stands behind the first try of one event. It is made by whoever comes
// first: who makes the try or who waits for it.
type gate struct {
	users int
	made  bool          // the try was made
	over  chan struct{} // closed when it was made or given up
	ended bool          // over is closed
}

func newTurns() turns { return turns{mu: new(sync.Mutex), gates: map[string]*gate{}} }

// take returns the gate of an event; every taker leaves it again.
func (t *turns) take(id string) *gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gates[id]
	if g == nil {
		g = &gate{over: make(chan struct{})}
		t.gates[id] = g
	}
	g.users++
	return g
}

func (t *turns) leave(id string, g *gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.users--; g.users == 0 && t.gates[id] == g {
		delete(t.gates, id)
	}
}

// tried opens the gate: the first try was made, its record may still be on its way.
func (t *turns) tried(g *gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.made = true; !g.ended {
		g.ended = true
		close(g.over)
	}
}

// done ends the work on an event. Without a try those who wait give up, too: they
// would only stand in the way of the event they wait for.
func (t *turns) done(id string, g *gate) {
	t.mu.Lock()
	if !g.ended {
		g.ended = true
		close(g.over)
		delete(t.gates, id)
	}
	t.mu.Unlock()
	t.leave(id, g)
}

// wait returns true when the first try of id was made.
func (t *turns) wait(ctx context.Context, id string, recorded func(context.Context, string) bool) bool {
	g := t.take(id)
	defer t.leave(id, g)
	patience := time.NewTimer(turnWait)
	defer patience.Stop()
	look := time.NewTicker(turnLook)
	defer look.Stop()
	for {
		select {
		case <-g.over:
			t.mu.Lock()
			defer t.mu.Unlock()
			return g.made
		default:
		}
		if recorded(ctx, id) {
			return true
		}
		select {
		case <-g.over:
		case <-look.C:
		case <-patience.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// tried looks in the database whether the first try of an event is recorded.
func (h *Hooks) tried(ctx context.Context, id string) bool {
	waiting := 1
	err := h.cfg.DB.ReadEach(ctx, func(r db.Reader) error { return r.Row(triedSQL, id).Scan(&waiting) })
	return err == nil && waiting == 0
}
