package db

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync"
	"time"
)

// clock is the database's time. On SQLite it is the wall clock at Open plus
// monotonic time since; on PostgreSQL the server's clock, sampled now and then
// and carried on monotonically, so that all nodes agree without a round trip.
//
// Failure policy: a jump of this machine's wall clock neither fires nor holds
// back a retry or a lease, and the time handed out never goes back.
type clock struct {
	mu     sync.Mutex
	anchor time.Time     // with a monotonic reading
	offset time.Duration // database time at anchor minus anchor's wall time
	last   time.Time
}

func newClock() *clock { return &clock{anchor: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.anchor.Add(time.Since(c.anchor) + c.offset).UTC().Round(0).Truncate(time.Microsecond)
	if t.Before(c.last) {
		t = c.last
	}
	c.last = t
	return t
}

// observe corrects the clock by a sample of the server's; asked and answered
// bracket the round trip.
func (c *clock) observe(server, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	middle := asked.Add(answered.Sub(asked) / 2)
	c.anchor = middle
	c.offset = server.Sub(middle.Round(0))
}

// newNode names this process. It is also the key of its advisory lock on
// PostgreSQL, hence a positive 63-bit number.
func newNode() string {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never fails
	return strconv.FormatUint(binary.BigEndian.Uint64(b[:])>>1, 10)
}
