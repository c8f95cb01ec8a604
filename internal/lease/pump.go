package lease

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// Pump moves due rows of a queue to a handler: it claims, calls Work for each
// row in a goroutine of its own, renews what is in work, and sleeps until a
// commit, another node or the next due time wakes it.
type Pump[T any] struct {
	DB    *db.DB
	Queue *Queue[T]
	Log   *slog.Logger

	// Work handles one row. It ends by calling lease.Finish inside the write
	// that stores the outcome; when it returns without, the row is due again
	// once the lease ran out. ctx is cancelled when the lease is lost and, on
	// shutdown, after Grace.
	Work func(ctx context.Context, lease *Lease[T])

	// Room limits rows of one key in work at the same time. Nil: no limit.
	Room func(key string) int

	// Class bounds the rows in work by the class of their keys, ClassMost of each,
	// for a queue whose keys have one row each. A pump with classes claims as soon as one slot is
	// free. Nil: no limit.
	Class     func(key string) string
	ClassMost int

	InFlight int           // rows in work at the same time
	Poll     time.Duration // looks for due rows at least that often; default 1 s
	Grace    time.Duration // how long work in progress may go on after Run's ctx ended; default 5 s
	TurnMost time.Duration // how long a claim waits for other work of this process, see db.Pace; 0: as long as it takes

	mu    sync.Mutex
	held  map[*Lease[T]]*inWork
	freed chan struct{}
	old   <-chan struct{} // rows of earlier days are due again

	unclaimed map[string]bool // owners of keys that the last look found due, without a slot

	memory memory
	fair   bool
	from   string
	rounds round     // over the keys since a claim last found something
	fresh  bool      // something may be due that the last look did not see
	looks  int       // how often it looked for what is due
	nextOf int       // the look behind which nextAt was found
	nextAt time.Time // when something will be due, as far as is known; zero: nothing
}

// inWork is what the pump knows of a row that is being worked.
type inWork struct {
	cancel context.CancelFunc
	until  time.Time // the lease's end as far as is known
}

const (
	pollDefault  = time.Second
	graceDefault = 5 * time.Second
	// claimAtLeast keeps claims from trickling: with most slots busy, a claim
	// waits until this share of them is free.
	claimAtLeast = 8
	// missingAgain is when a node that looks dead gets its second look: longer
	// than a living one needs to connect again.
	missingAgain = db.ReconnectEvery + 250*time.Millisecond
)

// Run works until ctx ends, then waits for the work in progress.
//
// Failure policy: rows still in work after Grace are abandoned, not lost: they
// become due again when their lease ends, or at once when this node restarts.
func (p *Pump[T]) Run(ctx context.Context) error {
	if err := p.DB.RunsWorkers(); err != nil {
		return err
	}
	p.setUp()
	if err := p.Queue.recall(ctx, p.DB); err != nil && p.Log != nil && ctx.Err() == nil {
		p.Log.Error("begin to work", "error", err) // they come by themselves, later
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	wake, leave := p.DB.Listen(p.Queue.Table)
	defer leave()
	var leaveOld func()
	p.old, leaveOld = p.DB.Listen(db.OldRows(p.Queue.Table))
	defer leaveOld()

	var loops, workers sync.WaitGroup
	loops.Go(func() { p.renewLoop(work) })
	loops.Go(func() { p.releaseLoop(ctx) })
	for ctx.Err() == nil {
		more := p.claim(ctx, func(leases []*Lease[T], asked time.Time) {
			for _, l := range leases {
				p.begin(work, l, asked.Add(Term), &workers)
			}
		})
		if !more {
			p.sleep(ctx, wake)
		}
	}
	grace := time.AfterFunc(p.Grace, cancel)
	defer grace.Stop()
	workers.Wait()
	cancel()
	loops.Wait()
	return nil
}

// setUp gives the pump its defaults and an empty memory.
func (p *Pump[T]) setUp() {
	p.held, p.freed = map[*Lease[T]]*inWork{}, make(chan struct{}, 1)
	if p.Poll == 0 {
		p.Poll = pollDefault
	}
	if p.Grace == 0 {
		p.Grace = graceDefault
	}
	if p.Log == nil {
		p.Log = p.DB.Log()
	}
	p.fresh = true
	p.memory = memory{turns: newTurns(p.Queue.Group), low: &lowWater{}, scan: &keyScan{elapsed: p.DB.Elapsed}}
	if p.Class != nil && p.Queue.Feed != nil {
		p.memory.ready = &readyKeys{elapsed: p.DB.Elapsed, turns: p.memory.turns, shared: dialectOf(p.DB).sets}
	}
}

// claim takes rows for the free slots and has them worked; true when there may be more at once.
func (p *Pump[T]) claim(ctx context.Context, work func(leases []*Lease[T], asked time.Time)) (more bool) {
	free := p.free()
	if free < p.claimFrom() {
		return false
	}
	p.DB.Pace().TurnWithin(ctx, p.TurnMost)() // it mostly waits; what it writes is paid for where it is written
	select {
	case <-p.old:
		p.memory.low.forget()
		p.fresh = true
	default:
	}
	asked := p.DB.Now()
	if !p.fresh && p.memory.ready != nil {
		leases, done := p.claimReady(ctx, free)
		work(leases, asked)
		if done {
			return false // until the next slot is free, or something new is due
		}
		free -= len(leases)
	}
	p.fresh, p.looks = false, p.looks+1
	taken := p.classesNow()
	got, err := p.Queue.due(ctx, p.DB, Claim{Max: free, Room: p.roomNow(), Fair: p.fair, From: p.from, classes: taken,
		memory: p.memory})
	if err != nil {
		if ctx.Err() == nil {
			p.Log.Error("claim due rows", "queue", p.Queue.Table, "error", err)
			db.Pause(ctx, p.Poll/4)
		}
		return false
	}
	p.noteUnclaimed(got.unclaimed)
	work(got.leases, asked)
	return p.goOn(got, free, taken.refusals())
}

// goOn notes what a claim brought for so many free slots and decides whether another
// one may bring more at once.
func (p *Pump[T]) goOn(got got[T], free int, refused bool) bool {
	p.from = got.next
	n := len(got.leases)
	// A claim that could not take everything means a backlog: go round the keys
	// until it is gone, so that the oldest backlog does not starve the others.
	p.fair = n == free || (p.fair && n > 0)
	if p.memory.scan.short && (n == 0 || refused) {
		return false // until a slot is free, something new is due, or it is time to look further
	}
	switch p.rounds += got.seen; {
	case n == free, n > 0 && p.fair:
		p.rounds = partOfRound
	case p.rounds >= wholeRound: // every key was looked at and has nothing for us
		p.rounds = partOfRound
		return false
	}
	return p.free() >= p.claimFrom()
}

// claimFrom is how many slots must be free for a claim.
func (p *Pump[T]) claimFrom() int {
	if p.Class != nil {
		return 1
	}
	return max(1, p.InFlight/claimAtLeast)
}

// begin works one row in a goroutine of its own.
//
// Failure policy: a panic in Work is logged and costs its row one lease, not
// the process its life: others' work is in progress beside it.
func (p *Pump[T]) begin(work context.Context, l *Lease[T], until time.Time, workers *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(work)
	p.mu.Lock()
	p.held[l] = &inWork{cancel: cancel, until: until}
	p.mu.Unlock()
	workers.Go(func() {
		defer p.done(l, cancel)
		defer func() {
			if cause := recover(); cause != nil {
				p.Log.Error("work on a row panicked", "alert", "worker_panic", "queue", p.Queue.Table, "row", l.ID, "panic", cause,
					"stack", string(debug.Stack()))
			}
		}()
		p.Work(ctx, l)
	})
}

func (p *Pump[T]) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.InFlight - len(p.held)
}

// roomNow is the room per key less what is in work.
func (p *Pump[T]) roomNow() func(string) int {
	if p.Room == nil {
		return nil
	}
	p.mu.Lock()
	busy := make(map[string]int, len(p.held))
	for l := range p.held {
		busy[l.Key]++
	}
	p.mu.Unlock()
	return func(key string) int { return p.Room(key) - busy[key] }
}

func (p *Pump[T]) done(l *Lease[T], cancel context.CancelFunc) {
	cancel()
	p.mu.Lock()
	delete(p.held, l)
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default: // it has been told
	}
}

// sleep waits for a reason to claim again.
func (p *Pump[T]) sleep(ctx context.Context, wake <-chan struct{}) {
	wait := p.Poll
	if p.free() > 0 {
		if at := p.next(ctx); !at.IsZero() {
			wait = min(wait, max(at.Sub(p.DB.Now()), time.Millisecond))
		}
	}
	p.fresh = true
	if again, wanted := p.memory.scan.again(); wanted {
		wait = min(wait, again)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-p.old:
		p.memory.low.forget()
	case <-p.freed:
		p.fresh = false
	case <-t.C:
	}
}

// next is when something will be due. It is not asked again after claims that did
// not look either: what was put off since then is found by the next that does.
func (p *Pump[T]) next(ctx context.Context) time.Time {
	if p.looks == p.nextOf && p.memory.ready != nil {
		return p.nextAt
	}
	at, err := p.Queue.nextDue(ctx, p.DB, p.memory.low.open())
	if err != nil {
		return time.Time{}
	}
	p.nextOf, p.nextAt = p.looks, at
	return at
}

// renewLoop keeps what is in work until work ends, also while draining.
func (p *Pump[T]) renewLoop(work context.Context) {
	for {
		db.Pause(work, Term/3)
		if work.Err() != nil {
			return
		}
		if held := p.heldNow(); len(held) > 0 {
			p.renew(work, held)
		}
	}
}

func (p *Pump[T]) heldNow() []*Lease[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := make([]*Lease[T], 0, len(p.held))
	for l := range p.held {
		held = append(held, l)
	}
	return held
}

// renew prolongs leases and cancels work whose lease is lost: taken over by
// another holder, or run out while the database could not be reached.
func (p *Pump[T]) renew(ctx context.Context, held []*Lease[T]) {
	asked := p.DB.Now()
	lost, err := p.Queue.Renew(ctx, p.DB, held)
	if err != nil && ctx.Err() == nil {
		p.Log.Warn("renew leases", "queue", p.Queue.Table, "rows", len(held), "error", err, "kind", fault.KindOf(err))
	}
	now := p.DB.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range held {
		w := p.held[l]
		switch {
		case w == nil: // done meanwhile
		case err == nil && !slices.Contains(lost, l):
			w.until = asked.Add(Term)
		case err == nil || now.After(w.until):
			// Finish may just have committed, its handler about to return:
			// cancelling is right for that, too.
			w.cancel()
		}
	}
}

// releaseLoop frees rows of dead nodes, at the start and then every poll interval.
func (p *Pump[T]) releaseLoop(ctx context.Context) {
	var missing []string
	for ctx.Err() == nil {
		var freed int
		var err error
		freed, missing, err = p.Queue.release(ctx, p.DB, p.memory.low.open(), missing)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("free rows of dead nodes", "queue", p.Queue.Table, "error", err)
		} else if freed > 0 {
			p.Log.Info("took over rows of dead nodes", "queue", p.Queue.Table, "nodes", freed)
		}
		if len(missing) > 0 {
			db.Pause(ctx, min(p.Poll, missingAgain))
		} else {
			db.Pause(ctx, p.Poll)
		}
	}
}
