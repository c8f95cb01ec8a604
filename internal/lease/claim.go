package lease

import (
	"context"
	"fmt"
	"slices"

	"tributary/internal/db"
)

// How far one fair claim looks; the next goes on behind it.
const (
	keysPerClaim = 256  // keys one claim takes rows of
	keysLook     = 1024 // keys one claim looks at, due or not
	oldestLook   = 64   // due rows that are read to learn the keys; fewer are all there are
)

// Due claims rows that are due, the oldest ones, each with a fresh token. A
// fair claim goes round the keys, so that one with a long backlog takes no
// more than its share; it returns where the next one should begin. The order
// of the leases in the answer is not fixed.
func (q *Queue[T]) Due(ctx context.Context, d *db.DB, c Claim) (leases []*Lease[T], next string, err error) {
	got, err := q.due(ctx, d, c)
	return got.leases, got.next, err
}

// got is what one claim brought.
type got[T any] struct {
	leases []*Lease[T]
	next   string // where the next one should begin
	seen   round

	unclaimed []string // keys that are due and had no slot
}

// round says how far a claim got on its way over all keys.
type round int

const (
	partOfRound round = iota
	endOfRound        // it passed the last key and went on from the first
	wholeRound        // it has looked at every key
)

func (q *Queue[T]) due(ctx context.Context, d *db.DB, c Claim) (got[T], error) {
	look, err := c.memory.low.begin(ctx, d, q.openDays)
	if err != nil {
		return got[T]{next: c.From}, err
	}
	c.memory.scan.begin()
	if q.Feed == nil && !c.Fair && c.Room == nil && c.classes == nil {
		leases, err := q.dueByAge(ctx, d, look, c.Max)
		return got[T]{leases: leases, seen: wholeRound}, err
	}
	found, err := q.findKeys(ctx, d, c, look)
	if err != nil {
		return got[T]{next: c.From}, fmt.Errorf("find due keys of %s: %w", q.Table, err)
	}
	keys, rooms := found.share(c, q.Feed != nil)
	c.memory.ready.keep(found.unclaimed, keys)
	leases, err := q.claimFound(ctx, d, look.days, keys, rooms)
	return got[T]{leases, found.next, found.seen, found.unclaimed}, err
}

// dueByAge claims the oldest rows, whosever they are.
func (q *Queue[T]) dueByAge(ctx context.Context, d *db.DB, look look, limit int) (leases []*Lease[T], err error) {
	err = d.Write(ctx, func(tx *db.Tx) (err error) {
		leases, err = q.claimOldest(tx, look, limit)
		return err
	})
	if err == nil && len(leases) < limit {
		look.nothingBefore(db.Micros(d.Now()))
	}
	return leases, err
}

// findKeys finds the keys whose rows to claim, on a snapshot, so that looking around
// does not keep the writer busy; the claim itself sees what is there by then.
func (q *Queue[T]) findKeys(ctx context.Context, d *db.DB, c Claim, look look) (found foundKeys, err error) {
	err = d.ReadSoon(ctx, func(r db.Reader) (err error) {
		found, err = q.dueKeys(r, c, look)
		if err == nil && q.Group != "" {
			err = q.takeTurns(r, dialectOf(d), c, &found)
		}
		return err
	})
	return found, err
}

func (q *Queue[T]) claimFound(ctx context.Context, d *db.DB, days *spans, keys []string,
	rooms []int64) (leases []*Lease[T], err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	err = d.Write(ctx, func(tx *db.Tx) (err error) {
		if q.Feed != nil {
			leases, err = q.claimFed(tx, keys)
		} else {
			leases, err = q.claimKeys(tx, keys, rooms, days)
		}
		return err
	})
	return leases, err
}

func (q *Queue[T]) claimOldest(tx *db.Tx, look look, limit int) ([]*Lease[T], error) {
	until := db.Micros(tx.Now().Add(Term))
	return q.claimed(tx.Query(q.oldestText(dialectOf(tx), look.days),
		look.days.after(until, tx.Node(), db.Micros(tx.Now()), limit, look.from)...))
}

// claimKeys takes rows of the keys, of each as many as it has room for.
func (q *Queue[T]) claimKeys(tx *db.Tx, keys []string, rooms []int64, days *spans) ([]*Lease[T], error) {
	until, now, by := db.Micros(tx.Now().Add(Term)), db.Micros(tx.Now()), dialectOf(tx)
	if by.sets {
		return q.claimed(tx.Query(q.keySetText(days), days.after(until, tx.Node(), keys, rooms, now)...))
	}
	var all []*Lease[T]
	text := q.keyText(by)
	for i, key := range keys {
		got, err := q.claimed(tx.Query(text, until, tx.Node(), key, now, rooms[i]))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// claimFed claims the rows that the feed makes due and nobody holds, and makes
// those that do not exist yet.
func (q *Queue[T]) claimFed(tx *db.Tx, keys []string) ([]*Lease[T], error) {
	until, now := db.Micros(tx.Now().Add(Term)), db.Micros(tx.Now())
	if dialectOf(tx).sets {
		keys = slices.Sorted(slices.Values(keys))
		args := []any{keys, until, tx.Node(), now}
		for _, column := range q.Feed.parts(keys...) {
			args = append(args, column)
		}
		return q.claimed(tx.Query(q.fedSetText(), args...))
	}
	var all []*Lease[T]
	text := q.fedText()
	for _, key := range keys {
		args := []any{key, until, tx.Node(), now}
		for _, column := range q.Feed.parts(key) {
			args = append(args, column[0])
		}
		got, err := q.claimed(tx.Query(text, args...))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

func (q *Queue[T]) claimed(rows *db.Rows, err error) ([]*Lease[T], error) {
	if err != nil {
		return nil, fmt.Errorf("claim rows of %s: %w", q.Table, err)
	}
	var all []*Lease[T]
	err = rows.Each(func(func(...any) error) error {
		l := &Lease[T]{queue: q}
		var err error
		if q.Scan == nil {
			err = rows.Scan(&l.ID, &l.Key, &l.Token)
		} else {
			l.Row, err = q.Scan(func(dest ...any) error {
				return rows.Scan(append([]any{&l.ID, &l.Key, &l.Token}, dest...)...)
			})
		}
		all = append(all, l)
		return err
	})
	return all, err
}
