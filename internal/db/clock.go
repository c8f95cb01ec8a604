package db

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"
	"time"
)

// clock tells three times, each for something else.
//
//   - now, the database's time, is for leases, due times and every comparison
//     with an instant that was stored by it: monotonic time that follows a
//     reference. On SQLite the reference is the wall clock, on PostgreSQL the
//     server's clock, sampled now and then, so that all nodes agree without a
//     round trip.
//   - wall is the reference itself, as it is: for what people and authorities
//     read, such as the date of a document. It can be set, and then jumps.
//   - elapsed is for distances and waits inside this process. Nobody sets it.
//
// Failure policy: when the reference jumps (a step by NTP, an operator, a
// resumed virtual machine) the clock neither jumps nor stands still. It runs
// up to a tenth faster or slower until it is right again, so a jump of an hour
// neither fires nor holds back a retry or a lease, and the time handed out
// never goes back. Time the machine was asleep has really passed and counts at once.
type clock struct {
	mu     sync.Mutex
	read   func() reading
	sample time.Time     // the server's time when it was last asked; zero: the wall clock is the reference
	at     time.Duration // instant of the sample: monotonic time and sleep
	last   time.Time
	seen   reading // the reading that gave last
}

// reading is one look at this machine's clocks.
type reading struct {
	mono   time.Duration // since the clock was made, without sleep
	wall   time.Time
	asleep time.Duration // how long the machine has slept since it was started
}

const (
	clockSlew  = 10              // the clock is off by a tenth at most while it catches up
	clockStray = 2 * time.Second // a difference past which the machine may have slept
)

func newClock() *clock {
	start := time.Now()
	return &clock{read: func() reading {
		now := time.Now()
		return reading{mono: now.Sub(start), wall: now.Round(0), asleep: timeAsleep()}
	}}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.advance().UTC().Truncate(time.Microsecond)
}

// wall is the time of day: see [DB.Wall].
func (c *clock) wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reference(c.read()).UTC().Truncate(time.Microsecond)
}

// elapsed is how long this process has been at work, without sleep.
func (c *clock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read().mono
}

func (c *clock) reference(r reading) time.Time {
	if c.sample.IsZero() {
		return r.wall
	}
	return c.sample.Add(r.mono + r.asleep - c.at)
}

func (c *clock) advance() time.Time {
	r := c.read()
	reference := c.reference(r)
	if c.last.IsZero() {
		c.last, c.seen = reference, r
		return c.last
	}
	passed := r.mono - c.seen.mono
	t := c.last.Add(passed)
	if reference.Sub(t) > clockStray {
		t = t.Add(min(max(r.asleep-c.seen.asleep, 0), reference.Sub(t)))
	}
	most := passed / clockSlew
	c.last, c.seen = t.Add(min(max(reference.Sub(t), -most), most)), r
	return c.last
}

// observe gives the clock a sample: what the server's clock showed age ago. The
// first sample is taken as it is.
func (c *clock) observe(server time.Time, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.sample.IsZero()
	r := c.read()
	c.sample, c.at = server, r.mono+r.asleep-age
	if first {
		c.last = time.Time{}
	}
	c.advance()
}

// newNode names this process. It is also the key of its advisory lock on
// PostgreSQL, hence a positive 63-bit number.
func newNode() string {
	var b [8]byte
	rand.Read(b[:]) // crypto/rand.Read never fails
	return strconv.FormatUint(binary.BigEndian.Uint64(b[:])>>1, 10)
}
