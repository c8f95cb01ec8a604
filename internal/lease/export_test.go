package lease

import (
	"context"

	"tributary/internal/db"
)

const (
	LowWaterWhole   = lowWaterWhole
	OwnersPerClaim  = ownersPerClaim
	OwnersKnownMost = ownersKnownMost
)

// Release frees the rows of dead nodes now; it returns how many nodes were
// found dead, and those that only look so.
func Release[T any](ctx context.Context, q *Queue[T], d *db.DB, suspects []string) (int, []string, error) {
	return q.release(ctx, d, nil, suspects)
}

// OrderTurns puts keys into the order of their turns; had are the keys that had one before.
func OrderTurns(group string, had, keys []string) []string {
	t := newTurns(group)
	for _, key := range had {
		t.had(key)
	}
	return t.order(keys)
}

// Claims are those of one pump, one after the other.
type Claims[T any] struct {
	q      *Queue[T]
	memory memory
	from   string
}

// NewClaims claims as a pump of the queue does.
func NewClaims[T any](q *Queue[T]) *Claims[T] {
	return &Claims[T]{q: q, memory: memory{turns: newTurns(q.Group), low: &lowWater{}}}
}

// Claim takes up to so many rows.
func (c *Claims[T]) Claim(ctx context.Context, d *db.DB, most int) ([]*Lease[T], error) {
	leases, next, err := c.q.Due(ctx, d, Claim{Max: most, From: c.from, memory: c.memory})
	c.from = next
	return leases, err
}

// ClaimFair takes rows as a pump does that has a room for each key.
func (c *Claims[T]) ClaimFair(ctx context.Context, d *db.DB, most int) ([]*Lease[T], error) {
	leases, next, err := c.q.Due(ctx, d, Claim{Max: most, Fair: true, From: c.from, Room: func(string) int {
		return most
	}, memory: memory{low: c.memory.low}})
	c.from = next
	return leases, err
}

// Forget has the next claim look at everything.
func (c *Claims[T]) Forget() { c.memory.low.forget() }

// Statement is one statement with its arguments.
type Statement struct {
	Text string
	Args []any
}

// QueueStatements are those of a pump that knows in which days rows are open, and the look for them.
func QueueStatements[T any](ctx context.Context, q *Queue[T], d *db.DB, key string) (map[string]Statement, error) {
	days, err := q.openDays(ctx, d)
	now, until := db.Micros(d.Now()), db.Micros(d.Now().Add(Term))
	return map[string]Statement{
		"oldest":  {q.keysText(oldestKeysSQL, days, 3), days.after(now, oldestLook, int64(0))},
		"walk":    {q.keysText(keyScanSQL, days, 4), days.after(now, "", keysLook, "")},
		"claim":   {q.keySetText(days), days.after(until, d.Node(), []string{key}, []int64{10}, now)},
		"next":    {q.nextText(days), days.after(now)},
		"holders": {q.holdersText(days), days.after(d.Node())},
		"free":    {q.freeText(dialectOf(d), days), days.after(now, "1")},
	}, err
}

// Spans are the ids among which rows are open: up to where, from where on.
func Spans[T any](ctx context.Context, q *Queue[T], d *db.DB) (old, recent [2]string, endless bool, err error) {
	s, err := q.openDays(ctx, d)
	if s == nil {
		return old, recent, false, err
	}
	return [2]string{s.old.from, s.old.to}, [2]string{s.recent.from, s.recent.to}, s.endless, err
}

// OpenDaysText is the look for days in which something is open.
func OpenDaysText[T any](q *Queue[T]) string { return q.setText(openDaysSQL, nil, 0) }

// Looks is how often a pump that has ended looked for what is due.
func Looks[T any](p *Pump[T]) int { return p.looks }
