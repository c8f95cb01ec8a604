package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/simulation"
)

// seedsHere is this machine's share of simulation.SeedsAll.
const seedsHere = 350

// yard is a table of work with pumps that do it, workers that stall longer than
// their lease, and ends of the process.
type yard struct {
	t       *testing.T
	dice    simulation.Dice
	rounds  map[string]int // how often each row is to be finished
	flights sync.WaitGroup

	url   string
	d     *db.DB
	q     *lease.Queue[string]
	halt  context.CancelFunc
	tally sync.Mutex
	turn  int
}

// Leases under stalls, lost workers, slow work, killed processes and wall clocks
// that are set by hours: every row is finished as often as it must be, of its
// holders only the latest writes, and no intake waits.
func TestSimulation(t *testing.T) {
	t.Parallel()
	simulation.Run(t, seedsHere, func(t *testing.T, dice simulation.Dice) {
		y := &yard{t: t, dice: dice, rounds: map[string]int{}, url: "sqlite:" + filepath.Join(t.TempDir(), "tributary.db")}
		y.open(true)
		y.run()
		y.settle()
		y.halt()
		y.flights.Wait()
		y.check()
	})
}

// open starts a process: two pumps, two workers that do not renew, and an intake.
func (y *yard) open(fresh bool) {
	d, err := db.Open(context.Background(), db.Config{URL: y.url})
	must(y.t, err)
	y.t.Cleanup(func() { must(y.t, d.Close()) })
	y.d = d
	if fresh {
		y.q = work(y.t, d)
		must(y.t, d.Write(context.Background(), func(tx *db.Tx) error {
			return tx.Exec("CREATE TABLE journal (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, token BIGINT NOT NULL, what TEXT NOT NULL)")
		}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	y.halt = cancel
	for range 2 {
		pump := &lease.Pump[string]{DB: d, Queue: y.q, InFlight: 3, Poll: time.Minute,
			Work: func(ctx context.Context, l *lease.Lease[string]) {
				y.carry(ctx, d, l)
			}}
		y.flights.Go(func() { must(y.t, pump.Run(ctx)) })
	}
	for range 2 {
		y.flights.Go(func() { y.stall(ctx, d) })
	}
	y.intake(ctx, d)
}

// intake takes crowds of calls, each of which must be answered soon: in virtual
// time only waiting takes time, and sets wait for no longer than their distance.
func (y *yard) intake(ctx context.Context, d *db.DB) {
	g := db.NewGather(d, func(tx *db.Tx, in []int) ([]int, error) { return in, nil })
	y.flights.Go(func() {
		defer g.Close()
		r := y.luck()
		for ctx.Err() == nil {
			rest(ctx, simulation.Between(r, 0, 5*time.Second))
			var crowd sync.WaitGroup
			for n := range 12 {
				crowd.Go(func() {
					asked := time.Now()
					if _, err := g.Do(context.Background(), n); err != nil {
						y.t.Error(err)
					}
					if took := time.Since(asked); took > 4*time.Millisecond { // twice the pause between two sets
						y.t.Errorf("a call of the intake took %s", took)
					}
				})
			}
			crowd.Wait()
		}
	})
}

// luck numbers the pieces of work, so that each has dice of its own.
func (y *yard) luck() *rand.Rand {
	y.tally.Lock()
	defer y.tally.Unlock()
	y.turn++
	return y.dice.Of("work", y.turn)
}

func (y *yard) roundsOf(id string) int {
	y.tally.Lock()
	defer y.tally.Unlock()
	return y.rounds[id]
}

// carry is honest work: it takes its time, writes in the middle, and ends, or
// is left lying by a worker that vanished.
func (y *yard) carry(ctx context.Context, d *db.DB, l *lease.Lease[string]) {
	r := y.luck()
	rest(ctx, simulation.Between(r, 0, 8*time.Second))
	if y.write(d, l, "guard", l.Guard) != nil || r.IntN(8) == 0 {
		return
	}
	if r.IntN(10) == 0 {
		panic("a worker's own mistake")
	}
	rest(ctx, simulation.Between(r, 0, 20*time.Second)) // the pump renews meanwhile
	y.finish(d, l, r)
}

// stall claims as another node would, says nothing for longer than a lease
// lasts, and then writes as if nothing had happened.
func (y *yard) stall(ctx context.Context, d *db.DB) {
	for ctx.Err() == nil {
		r := y.luck()
		rest(ctx, simulation.Between(r, 0, 20*time.Second))
		leases, _, err := y.q.Due(ctx, d, lease.Claim{Max: 1 + r.IntN(2), Fair: r.IntN(2) == 0})
		if err != nil {
			if ctx.Err() == nil {
				y.t.Error(err)
			}
			return
		}
		for _, l := range leases {
			rest(ctx, simulation.Between(r, 0, 3*lease.Term))
			if r.IntN(3) > 0 {
				y.finish(d, l, r)
			}
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// finish ends one round of a row; the last round ends the row.
func (y *yard) finish(d *db.DB, l *lease.Lease[string], r *rand.Rand) {
	again := simulation.Between(r, 0, 15*time.Second)
	_ = y.write(d, l, "finish", func(tx *db.Tx) error { // a lost lease is what this is about
		done, err := strconv.Atoi(l.Row)
		if err != nil {
			return err
		}
		next := tx.Now().Add(again)
		if done++; done == y.roundsOf(l.ID) {
			next = time.Time{}
		}
		if err := l.Finish(tx, next); err != nil {
			return err
		}
		return tx.ExecOne("UPDATE work SET payload = $1 WHERE id = $2", strconv.Itoa(done), l.ID)
	})
}

// write does something under a lease and notes that it was done.
func (y *yard) write(d *db.DB, l *lease.Lease[string], what string, fn func(*db.Tx) error) error {
	err := d.Write(context.Background(), func(tx *db.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Exec("INSERT INTO journal (id, token, what) VALUES ($1, $2, $3)", l.ID, l.Token, what)
	})
	if err != nil && !errors.Is(err, db.ErrStale) {
		y.t.Errorf("%s of %s: %v", what, l.ID, err)
	}
	return err
}

// run adds rows and ends processes.
func (y *yard) run() {
	r := y.dice.Of("plan")
	for i := range 3 + r.IntN(8) {
		time.Sleep(simulation.Between(r, 0, 10*time.Second))
		switch r.IntN(8) {
		case 0:
			y.die()
			continue
		case 1: // an operator or NTP sets the wall clock
			db.JumpWall(y.d, simulation.Between(r, -12*time.Hour, 12*time.Hour))
		}
		var rows [][]any
		for n := range 1 + r.IntN(4) {
			id := fmt.Sprintf("%02d-%d", i, n)
			y.tally.Lock()
			y.rounds[id] = 1 + r.IntN(3)
			y.tally.Unlock()
			rows = append(rows, []any{id, fmt.Sprint("key", r.IntN(3)), "0",
				db.Micros(y.d.Now().Add(simulation.Between(r, -time.Second, 20*time.Second)))})
		}
		addWork(y.t, y.d, rows...)
	}
}

// die kills the process and starts the next on what it leaves. The dead one
// works on, on a file that nobody looks at again.
func (y *yard) die() {
	y.url = simulation.Remains(y.t, y.url)
	y.halt()
	y.open(false)
}

func (y *yard) settle() {
	for range 120 {
		if dbtest.Count(y.t, y.d, "SELECT count(*) FROM work WHERE due_at IS NOT NULL") == 0 {
			return
		}
		time.Sleep(time.Minute)
	}
	y.t.Error("after two hours something is still due")
}

func (y *yard) check() {
	if n := dbtest.Count(y.t, y.d,
		"SELECT count(*) FROM work WHERE lease_until IS NOT NULL OR lease_node IS NOT NULL"); n > 0 {
		y.t.Errorf("%d rows are still held", n)
	}
	if n := dbtest.Count(y.t, y.d,
		"SELECT count(*) FROM journal a JOIN journal b ON a.id = b.id AND a.n < b.n AND a.token > b.token"); n > 0 {
		y.t.Errorf("%d writes of a holder came after those of a later one", n)
	}
	if n := dbtest.Count(y.t, y.d,
		"SELECT count(*) FROM journal a JOIN journal b ON a.id = b.id AND a.n < b.n AND a.token = b.token AND a.what = 'finish'"); n > 0 {
		y.t.Errorf("%d writes came under a lease that had been finished", n)
	}
	for id, rounds := range y.rounds {
		if n := dbtest.Count(y.t, y.d, "SELECT count(*) FROM journal WHERE what = 'finish' AND id = '"+id+"'"); n != rounds {
			y.t.Errorf("row %s was finished %d times, want %d", id, n, rounds)
		}
	}
}
