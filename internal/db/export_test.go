package db

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	GatherPace = gatherPace
)

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

// SetPatience says how long a write takes at most.
func SetPatience(d *DB, patience time.Duration) { d.patience = patience }

// VisitorsAtOnce is how many reads with a budget run at the same time, of one caller:
// one less than there are connections.
func VisitorsAtOnce(d *DB) int { return d.eng.visitorConns() - 1 }

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

// ClassifyPostgres is what callers hear of an error of PostgreSQL.
func ClassifyPostgres(err error) error { return (&pgEngine{}).classify(err) }

// NotifyEvery is the pause between two wake-ups that a node hears under load.
const NotifyEvery = notifyEvery

// CountNodes has a node on PostgreSQL look now how many nodes there are.
func CountNodes(d *DB) error { return d.eng.(*pgEngine).peers.look() }

// WorkConns is how many connections the program's own reads have.
const WorkConns = pgWorkConns

// Waits are how long connecting to a server, and a write, may take.
func Waits(d *DB) (connect, write time.Duration) {
	return d.eng.(*pgEngine).cfg.ConnConfig.ConnectTimeout, d.patience
}
