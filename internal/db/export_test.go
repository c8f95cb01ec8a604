package db

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	GatherPace      = gatherPace
	SchemaLock      = schemaLock
	FloorWhole      = floorWhole
	OwnersPerClaim  = ownersPerClaim
	OwnersKnownMost = ownersKnownMost
)

// ShiftClock moves a database's time on, as if by had passed: exactly by, whatever
// the server's clock says.
func ShiftClock(d *DB, by time.Duration) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	d.clock.last = d.clock.advance().Add(by)
	d.clock.seen.mono += by
	read := d.clock.read
	d.clock.read = func() reading {
		r := read()
		r.mono += by
		r.wall = r.wall.Add(by)
		return r
	}
}

// StopClock lets a database's time stand still, but for ShiftClock: what a test
// asks about instants does not depend on how fast the machine is.
func StopClock(d *DB) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	still := d.clock.read()
	d.clock.read = func() reading { return still }
}

// Clock is the database's clock with hands that a test moves.
type Clock struct {
	c    *clock
	hand reading
}

// NewClock returns a clock whose wall clock shows wall.
func NewClock(wall time.Time) *Clock {
	c := &Clock{hand: reading{wall: wall}}
	c.c = &clock{read: func() reading { return c.hand }}
	return c
}

// Pass lets time go by.
func (c *Clock) Pass(d time.Duration) { c.hand.mono += d; c.hand.wall = c.hand.wall.Add(d) }

// Jump sets the wall clock by d without time going by.
func (c *Clock) Jump(d time.Duration) { c.hand.wall = c.hand.wall.Add(d) }

// Sleep suspends the machine: the wall clock and the boot clock go on.
func (c *Clock) Sleep(d time.Duration) { c.hand.asleep += d; c.hand.wall = c.hand.wall.Add(d) }

// Server is a sample of the server's clock that took a round trip.
func (c *Clock) Server(at time.Time, trip time.Duration) {
	c.Pass(trip)
	c.c.observe(at, trip/2)
}

// Now is the clock's time.
func (c *Clock) Now() time.Time { return c.c.now() }

// Wall is the time of day by the clock.
func (c *Clock) Wall() time.Time { return c.c.wall() }

// Elapsed is how long the process was at work.
func (c *Clock) Elapsed() time.Duration { return c.c.elapsed() }

// MigrateSteps applies a test's own steps instead of the program's.
func MigrateSteps(ctx context.Context, d *DB, steps ...Step) (int, error) {
	all := make([]migration, len(steps))
	for i, s := range steps {
		all[i] = migration{version: s.Version, name: s.Name, script: s.Script}
	}
	return d.migrate(ctx, all)
}

// Step is one migration as the tests see it.
type Step struct {
	Version      int
	Name, Script string
}

// Steps are the migrations of an engine.
func Steps(engine string) ([]Step, error) {
	all, err := migrations(engine)
	steps := make([]Step, len(all))
	for i, m := range all {
		steps[i] = Step{m.version, m.name, m.script}
	}
	return steps, err
}

// Release frees the rows of dead nodes now; it returns how many nodes were
// found dead, and those that only look so.
func Release[T any](ctx context.Context, q *Queue[T], d *DB, suspects []string) (int, []string, error) {
	return q.release(ctx, d, nil, suspects)
}

// SetPatience says how long a write takes at most.
func SetPatience(d *DB, patience time.Duration) { d.patience = patience }

// VisitorsAtOnce is how many reads with a budget run at the same time.
func VisitorsAtOnce(d *DB) int {
	if e, ok := d.eng.(*pgEngine); ok {
		return int(e.visitors.Config().MaxConns)
	}
	return sqliteReaders
}

// ResetConnections gives up all connections to a server.
func ResetConnections(d *DB) { d.eng.(*pgEngine).reset() }

// SampleClock asks the server for its time.
func SampleClock(d *DB) error { return d.eng.(*pgEngine).sampleClock(context.Background()) }

// DialOptions are the options of a connection to a server.
func DialOptions(ctx context.Context, address string) (keepalive bool, timeout time.Duration, err error) {
	c, err := dialServer(ctx, "tcp", address)
	if err != nil {
		return false, 0, err
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false, 0, err
	}
	var alive, ms int
	var first, second error
	err = raw.Control(func(fd uintptr) {
		alive, first = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		ms, second = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	})
	return alive == 1, time.Duration(ms) * time.Millisecond, errors.Join(err, first, second)
}

// OrderTurns puts keys into the order of their turns; had are the keys that had one before.
func OrderTurns(group string, had, keys []string) []string {
	t := newTurns(group)
	for _, key := range had {
		t.had(key)
	}
	return t.order(keys)
}

// ClassifyPostgres is what callers hear of an error of PostgreSQL.
func ClassifyPostgres(err error) error { return (&pgEngine{}).classify(err) }

// Claims are those of one pump, one after the other.
type Claims[T any] struct {
	q     *Queue[T]
	turns *turns
	floor *floor
	from  string
}

// NewClaims claims as a pump of the queue does.
func NewClaims[T any](q *Queue[T]) *Claims[T] {
	return &Claims[T]{q: q, turns: newTurns(q.Group), floor: &floor{}}
}

// Claim takes up to so many rows.
func (c *Claims[T]) Claim(ctx context.Context, d *DB, most int) ([]*Lease[T], error) {
	leases, next, _, err := c.q.due(ctx, d, Claim{Max: most, From: c.from, turns: c.turns, floor: c.floor})
	c.from = next
	return leases, err
}

// NotifyEvery is the pause between two wake-ups that a node hears under load.
const NotifyEvery = notifyEvery

// CountNodes has a node on PostgreSQL look now how many nodes there are.
func CountNodes(d *DB) error { return d.eng.(*pgEngine).peers.look() }

// ClaimFair takes rows as a pump does that has a room for each key.
func (c *Claims[T]) ClaimFair(ctx context.Context, d *DB, most int) ([]*Lease[T], error) {
	leases, next, _, err := c.q.due(ctx, d, Claim{Max: most, Fair: true, From: c.from, Room: func(string) int { return most }, floor: c.floor})
	c.from = next
	return leases, err
}

// Forget has the next claim look at everything.
func (c *Claims[T]) Forget() { c.floor.forget() }

// Statement is one statement with its arguments.
type Statement struct {
	Text string
	Args []any
}

// QueueStatements are those of a pump that knows in which days rows are open, and the look for them.
func QueueStatements[T any](ctx context.Context, q *Queue[T], d *DB, key string) (map[string]Statement, error) {
	days, err := q.openDays(ctx, d)
	now, until := Micros(d.Now()), Micros(d.Now().Add(LeaseFor))
	texts := q.keysText(days.where(q.ID, 4))
	return map[string]Statement{
		"oldest":  {q.keysText(days.where(q.ID, 3)).Replace(oldestSQL), days.after(now, oldestLook, int64(0))},
		"walk":    {texts.Replace(jumpSQL), days.after(now, "", keysLook, "")},
		"claim":   {q.claimSetText(days), days.after(until, d.node, []string{key}, []int64{10}, now)},
		"next":    {q.nextText(days), days.after(now)},
		"holders": {q.holdersText(days), days.after(d.node)},
		"free":    {q.freeText(d, days), days.after(now, "1")},
	}, err
}

// Spans are the ids among which rows are open: up to where, from where on.
func Spans[T any](ctx context.Context, q *Queue[T], d *DB) (old, recent [2]string, endless bool, err error) {
	s, err := q.openDays(ctx, d)
	if s == nil {
		return old, recent, false, err
	}
	return [2]string{s.old.from, s.old.to}, [2]string{s.recent.from, s.recent.to}, s.endless, err
}

// OpenDaysText is the look for days in which something is open.
func OpenDaysText[T any](q *Queue[T]) string { return q.daysText().Replace(openDaysSQL) }

// Looks is how often a pump that has ended looked for what is due.
func Looks[T any](p *Pump[T]) int { return p.looks }
