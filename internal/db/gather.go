package db

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/fault"
	"tributary/internal/turnstile"
)

// Gather stores calls that wait at the same time with one write function, so
// that it can use set-based statements. A lone call is stored at once; where
// calls come in numbers, sets keep a short distance, because a commit costs the
// same for one call and for twenty.
//
// Failure policy: when a set fails, each of its calls is stored alone, so that
// one bad call never spoils another. When the outcome of the commit is unknown
// or storage is unavailable, all hear so and nothing is repeated.
type Gather[I, O any] struct {
	d       *DB
	store   func(tx *Tx, in []I) ([]O, error)
	submits bool // calls are submits: see Pace
	calls   chan *gathered[I, O]
	max     int // calls in one set
	wg      sync.WaitGroup
	mu      sync.RWMutex
	ended   bool

	began atomic.Int64 // when the last set was taken, on the clock that nobody sets: see clock.elapsed
	many  atomic.Bool  // it had so many calls that the next one may wait for company
}

type gathered[I, O any] struct {
	ctx   context.Context
	until time.Time // when its caller must have heard
	in    I
	out   O
	err   error
	done  chan struct{}

	panicked any
}

const (
	gatherMax            = 256  // calls in one set
	gatherQueueMax       = 2048 // calls that wait; past it Do answers Unavailable
	gatherParallelPG     = 2
	gatherParallelSQLite = 2  // one commits while the other is put together
	gatherParallelAlone  = 16 // benchmarks: one commit per call

	gatherPace = 2 * time.Millisecond // between two sets of many
	gatherMany = 4                    // calls in a set that make it one of many
)

// NewGather starts the goroutines that store; end them with Close.
func NewGather[I, O any](d *DB, store func(tx *Tx, in []I) ([]O, error)) *Gather[I, O] {
	return newGather(d, false, store)
}

// NewIntake is NewGather for submits: what is written for them is not work that steps back.
func NewIntake[I, O any](d *DB, store func(tx *Tx, in []I) ([]O, error)) *Gather[I, O] {
	return newGather(d, true, store)
}

func newGather[I, O any](d *DB, submits bool, store func(tx *Tx, in []I) ([]O, error)) *Gather[I, O] {
	g := &Gather[I, O]{d: d, store: store, submits: submits, calls: make(chan *gathered[I, O], gatherQueueMax), max: gatherMax}
	n := gatherParallelSQLite
	if d.Engine() == "postgres" {
		n = gatherParallelPG
	}
	if d.cfg.NoGroups {
		g.max, n = 1, gatherParallelAlone
	}
	for range n {
		g.wg.Go(g.loop)
	}
	return g
}

// Do stores one call and returns its answer once it is on disk.
func (g *Gather[I, O]) Do(ctx context.Context, in I) (O, error) {
	until := turnstile.AnsweredBy(ctx, time.Now().Add(g.d.patience))
	c := &gathered[I, O]{ctx: ctx, until: until, in: in, done: make(chan struct{})}
	if err := g.add(c); err != nil {
		return c.out, err
	}
	<-c.done
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.out, c.err
}

func (g *Gather[I, O]) add(c *gathered[I, O]) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.ended {
		return unavailable(errors.New("closing"))
	}
	select {
	case g.calls <- c:
		return nil
	default:
		return fault.Overloaded("the intake")
	}
}

// Close stores what was accepted and ends.
func (g *Gather[I, O]) Close() {
	g.mu.Lock()
	if !g.ended {
		g.ended = true
		close(g.calls)
	}
	g.mu.Unlock()
	g.wg.Wait()
}

func (g *Gather[I, O]) loop() {
	set := make([]*gathered[I, O], 0, g.max)
	for c := range g.calls {
		set = append(set[:0], c)
		g.storeSet(g.company(g.more(set)))
	}
}

// company lets a set wait until it keeps its distance to the one before, where
// that one shows that others will come. At half load this halves the commits,
// and with them what is written to disk. The wait has an upper bound whatever a
// clock says: a wall clock that is set back must not hold up the intake.
func (g *Gather[I, O]) company(set []*gathered[I, O]) []*gathered[I, O] {
	if g.many.Load() && len(set) < g.max {
		passed := g.d.clock.elapsed() - time.Duration(g.began.Load())
		if early := min(gatherPace-passed, gatherPace); early > 0 {
			time.Sleep(early)
			set = g.more(set)
		}
	}
	g.began.Store(int64(g.d.clock.elapsed()))
	g.many.Store(len(set) >= gatherMany && g.max > 1)
	return set
}

// more adds the calls that are waiting. It does not wait for one: another loop
// may take what was there a moment ago.
func (g *Gather[I, O]) more(set []*gathered[I, O]) []*gathered[I, O] {
	for len(set) < g.max {
		select {
		case c, ok := <-g.calls:
			if !ok {
				return set
			}
			set = append(set, c)
		default:
			return set
		}
	}
	return set
}

func (g *Gather[I, O]) storeSet(set []*gathered[I, O]) {
	live := set[:0]
	for _, c := range set {
		if c.err = c.ctx.Err(); c.err != nil {
			close(c.done) // its caller went away before anything was stored
			continue
		}
		if time.Until(c.until) < g.d.patience/patienceShare {
			c.err = unavailable(errTooLate) // alone: the others of the set have their time
			close(c.done)
			continue
		}
		live = append(live, c)
	}
	if len(live) == 0 {
		return
	}
	err := g.storeTogether(live)
	if err != nil && len(live) > 1 && fault.KindOf(err) != fault.Unavailable {
		for _, c := range live {
			c.err = g.storeTogether([]*gathered[I, O]{c})
			close(c.done)
		}
		return
	}
	for _, c := range live {
		c.err = err
		close(c.done)
	}
}

// storeTogether stores a set. A panic of the write function is for the caller
// whose call caused it, not for this goroutine: that would end the process.
func (g *Gather[I, O]) storeTogether(set []*gathered[I, O]) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errPanicked
			if len(set) == 1 {
				set[0].panicked = cause
			}
		}
	}()
	in, until := make([]I, len(set)), set[0].until
	for i, c := range set {
		if in[i] = c.in; c.until.Before(until) {
			until = c.until
		}
	}
	var out []O
	err = g.d.store(&write{ctx: context.WithoutCancel(set[0].ctx), until: until, submits: g.submits,
		fn: func(tx *Tx) (err error) {
			out, err = g.store(tx, in)
			return err
		}})
	if err != nil {
		return err
	}
	for i, c := range set {
		c.out = out[i]
	}
	return nil
}
