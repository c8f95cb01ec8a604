// Package quota keeps the service within what an authority grants of calls.
//
// It owns the table authority_quotas: how many calls of a kind were taken in a
// window, by all nodes. What is granted is the pack's to say ([country.Quota]).
//
// A node takes calls in blocks, one statement for what is granted in a second, and
// gives single ones out of its memory; of a day's calls it takes each by itself, because
// a node that is started ten times a day must not use it up. Failure policy: what a node
// has taken counts as used, whether it was or not: after a crash less is called than
// allowed, never more. A tenth is kept back for calls that others make, and for clocks that differ.
package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/operation"
)

const (
	keptBack = 10          // one call of so many
	ahead    = time.Second // a node takes what is granted in this time
)

// forgottenAtOnce is how many windows that are over go with each that begins.
const forgottenAtOnce = 20

// heldMax is how many blocks a node remembers before it forgets those that are over.
const heldMax = 4096

// Quotas are the calls that this node may make. It is safe for concurrent use.
type Quotas struct {
	db   *db.DB
	wall func() time.Time
	mu   sync.Mutex
	held map[key]block
}

type key struct {
	at             country.Environment
	quota, subject string
}

// block are calls that were taken from the store and not made yet.
type block struct {
	left  int64
	ends  time.Time
	spent bool // the store has no more
}

// New makes them.
func New(d *db.DB) *Quotas { return &Quotas{db: d, wall: d.Wall, held: map[key]block{}} }

// Of counts the calls to an endpoint.
func (q *Quotas) Of(at country.Environment) country.Meter {
	return func(ctx context.Context, of country.Quota, subject string) error {
		return q.spend(ctx, key{at, of.Name, subject}, of)
	}
}

// spend makes one call of a kind.
func (q *Quotas) spend(ctx context.Context, k key, of country.Quota) error {
	from, to := of.Window(q.wall())
	for range 2 {
		q.mu.Lock()
		b := q.held[k]
		b.spent = b.spent && b.ends.Equal(to)
		if b.left > 0 && b.ends.Equal(to) {
			b.left--
			q.held[k] = b
			q.mu.Unlock()
			return nil
		}
		q.mu.Unlock()
		if b.spent {
			break
		}
		if err := q.take(ctx, k, of, from, to); err != nil {
			return err
		}
	}
	return &country.Exhausted{Quota: of.Name, Subject: k.subject, Until: to, Alone: of.Alone}
}

// take takes a block from the store.
func (q *Quotas) take(ctx context.Context, k key, of country.Quota, from, to time.Time) error {
	size := max(1, of.Most*int64(ahead)/int64(of.Per))
	most := max(1, of.Most-of.Most/keptBack)
	var granted int64
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		var used int64
		err := tx.Row(takeSQL, k.at.Code, operation.Environment(k.at.Live), k.quota, k.subject, db.Micros(from), db.Micros(to), size, most).Scan(&used)
		switch {
		case errors.Is(err, db.ErrNoRows):
			granted = 0
			return nil
		case err != nil:
			return err
		}
		granted = size - max(0, used-most)
		if used > size {
			return nil
		}
		return tx.Exec(forgetSQL, db.Micros(q.wall()), forgottenAtOnce)
	})
	if err != nil {
		return fmt.Errorf("%w: take calls from the quota %s: %w", country.ErrNotTaken, k.quota, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.held) > heldMax {
		for other, b := range q.held {
			if !b.ends.After(from) {
				delete(q.held, other)
			}
		}
	}
	b := q.held[k]
	if !b.ends.Equal(to) {
		b = block{ends: to}
	}
	b.left, b.spent = b.left+granted, granted == 0
	q.held[k] = b
	return nil
}

const takeSQL = `INSERT INTO authority_quotas (country, environment, quota, subject, began_at, ends_at, used) VALUES ($1, $2, $3, $4, $5, $6, $7)
	ON CONFLICT (country, environment, quota, subject, began_at) DO UPDATE SET used = authority_quotas.used + excluded.used WHERE authority_quotas.used < $8 RETURNING used`

const forgetSQL = `DELETE FROM authority_quotas WHERE ends_at < $1 AND (country, environment, quota, subject, began_at) IN
	(SELECT country, environment, quota, subject, began_at FROM authority_quotas WHERE ends_at < $1 ORDER BY ends_at LIMIT $2)`
