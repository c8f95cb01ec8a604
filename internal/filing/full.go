package filing

import (
	"context"
	"sync/atomic"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// backlogMaxDefault is how many operations that could be worked now may wait.
const backlogMaxDefault = 2_000_000

const (
	countEvery   = 10 * time.Second
	countTimeout = 2 * time.Second
	fullFor      = 10 * time.Second // what a caller is told to wait
)

// backlog is what this process knows of how much waits that could be worked now.
// What waits for an authority, a person or its original does not count: a day of
// outage is a million rows that wait, and no reason to refuse one.
type backlog struct {
	most    int
	counted atomic.Int64 // when, on the clock that nobody sets; 0: never
	full    atomic.Bool
}

// full counts again when the last count is old; whoever comes first does it.
//
// Failure policy: without an answer the last one stands. The count protects
// nothing but patience: what was accepted is on disk.
func (s *Service) full(ctx context.Context) bool {
	b := &s.backlog
	last, now := b.counted.Load(), int64(s.db.Elapsed())+1
	if (last == 0 || now-last >= int64(countEvery)) && b.counted.CompareAndSwap(last, now) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		n := 0
		err := s.db.Read(db.AsService(ctx), func(r db.Reader) error { // of all clients, whoever asks
			return r.Row(runnable, db.Micros(r.Now()), b.most).Scan(&n)
		})
		if err != nil {
			s.log.Warn("count what waits", "error", err)
		} else {
			b.full.Store(n >= b.most)
		}
	}
	return b.full.Load()
}

// runnable counts up to a limit, in the order in which the index has them.
const runnable = `SELECT count(*) FROM (
	SELECT 1 FROM operations o WHERE o.due_at <= $1
	AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = o.lane AND l.due_at > $1) LIMIT $2) AS waiting`

func errFull() error {
	e := fault.Overloaded("the queue of transactions")
	e.RetryAfter = fullFor
	return e
}
