package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
func (q *Queue[T]) Due(ctx context.Context, d *DB, c Claim) (leases []*Lease[T], next string, err error) {
	leases, next, _, err = q.due(ctx, d, c)
	return leases, next, err
}

// due also tells how much of the round over the keys this claim has made.
func (q *Queue[T]) due(ctx context.Context, d *DB, c Claim) (leases []*Lease[T], next string, seen round, err error) {
	look, err := c.floor.begin(ctx, d, q.openDays)
	if err != nil {
		return nil, c.From, partOfRound, err
	}
	c.jumps.begin()
	if q.Feed == nil && !c.Fair && c.Room == nil && c.classes == nil {
		err = d.Write(ctx, func(tx *Tx) (err error) {
			leases, err = q.claimOldest(tx, look, c.Max)
			return err
		})
		if err == nil && len(leases) < c.Max {
			look.nothingBefore(Micros(d.Now()))
		}
		return leases, "", wholeRound, err
	}
	// Which keys to visit is found on a snapshot, so that looking around does
	// not keep the writer busy; the claim itself sees what is there by then.
	var found foundKeys
	err = d.readSoon(ctx, func(r Reader) (err error) {
		found, err = q.dueKeys(r, c, look)
		if err == nil && q.Group != "" {
			err = q.takeTurns(r, d.eng.claimSQL(), c, &found)
		}
		return err
	})
	if err != nil {
		return nil, c.From, partOfRound, fmt.Errorf("find due keys of %s: %w", q.Table, err)
	}
	keys, rooms := found.share(c, q.Feed != nil)
	c.spares.keep(found.spare, keys)
	if len(keys) > 0 {
		err = d.Write(ctx, func(tx *Tx) (err error) {
			if q.Feed != nil {
				leases, err = q.claimFed(tx, keys)
			} else {
				leases, err = q.claimKeys(tx, keys, rooms, look.days)
			}
			return err
		})
	}
	return leases, found.next, found.seen, err
}

// round says how far a claim got on its way over all keys.
type round int

const (
	partOfRound round = iota
	endOfRound        // it passed the last key and went on from the first
	wholeRound        // it has looked at every key
)

func (q *Queue[T]) claimOldest(tx *Tx, look look, limit int) ([]*Lease[T], error) {
	until := Micros(tx.Now().Add(LeaseFor))
	open := look.days.where(q.ID, 5)
	return q.claimed(tx.Query(q.updateText("SELECT "+q.ID+" FROM "+q.Table+" WHERE due_at <= $3 AND due_at >= $5"+open+" ORDER BY due_at LIMIT $4", tx.d.eng.claimSQL(), look.days, 5),
		look.days.after(until, tx.d.node, Micros(tx.Now()), limit, look.from)...))
}

// claimKeys takes rows of the keys, of each as many as it has room for.
func (q *Queue[T]) claimKeys(tx *Tx, keys []string, rooms []int64, days *spans) ([]*Lease[T], error) {
	until, now, engine := Micros(tx.Now().Add(LeaseFor)), Micros(tx.Now()), tx.d.eng.claimSQL()
	if engine.sets {
		return q.claimed(tx.Query(q.claimSetText(days), days.after(until, tx.d.node, keys, rooms, now)...))
	}
	var all []*Lease[T]
	text := q.updateText("SELECT "+q.ID+" FROM "+q.Table+" WHERE "+q.Key+" = $3 AND due_at <= $4 ORDER BY due_at LIMIT $5", engine, nil, 0)
	for i, key := range keys {
		got, err := q.claimed(tx.Query(text, until, tx.d.node, key, now, rooms[i]))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// claimSetText is claimKeys with all keys in one statement.
func (q *Queue[T]) claimSetText(days *spans) string {
	return q.updateText("SELECT r."+q.ID+" FROM unnest($3::text[], $4::bigint[]) AS k(key, room) CROSS JOIN LATERAL (SELECT "+q.ID+" FROM "+q.Table+
		" WHERE "+q.Key+" = k.key AND due_at <= $5"+days.where(q.ID, 5)+" ORDER BY due_at LIMIT k.room FOR UPDATE SKIP LOCKED) AS r", claimSQL{in: " = ANY(ARRAY(%s))"}, days, 5)
}

// claimFed claims the rows that the feed makes due and nobody holds, and makes
// those that do not exist yet.
func (q *Queue[T]) claimFed(tx *Tx, keys []string) ([]*Lease[T], error) {
	until, now, engine := Micros(tx.Now().Add(LeaseFor)), Micros(tx.Now()), tx.d.eng.claimSQL()
	if engine.sets {
		return q.claimed(tx.Query(q.fedText(), slices.Sorted(slices.Values(keys)), until, tx.d.node, now))
	}
	text := "INSERT INTO " + q.Table + " (" + q.ID + ", due_at, lease_until, lease_token, lease_node) VALUES ($1, $2, $2, 1, $3) ON CONFLICT (" + q.ID +
		") DO UPDATE SET due_at = $2, lease_until = $2, lease_token = " + q.Table + ".lease_token + 1, lease_node = $3 WHERE " +
		q.Table + ".due_at IS NULL OR " + q.Table + ".due_at <= $4 " + q.returning()
	var all []*Lease[T]
	for _, key := range keys {
		got, err := q.claimed(tx.Query(text, key, until, tx.d.node, now))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// fedText is claimFed where nodes compete. A claim never waits for a row: one
// that is locked is being claimed or written by somebody else, and an upsert
// would lock it even where it then changes nothing. Only new rows can make it
// wait, for another node that makes the same one, and all make them in one order.
// A plain comparison of due_at would be planned anew for each claim. What another
// node has worked off since it was found is not claimed.
func (q *Queue[T]) fedText() string {
	return strings.NewReplacer("QUEUE", q.Table, "ID", q.ID, "RETURNED", q.returning(), "FEED", q.Feed.Table, "COLUMN", q.Feed.Column).Replace(`with free as (
			select ID from QUEUE where ID = any($1::text[]) and coalesce(due_at, 0) <= $4
				and exists (select 1 from FEED where FEED.COLUMN = QUEUE.ID and FEED.due_at is not null) order by ID for update skip locked
		), taken as (
			update QUEUE set due_at = $2::bigint, lease_until = $2::bigint, lease_token = lease_token + 1, lease_node = $3::text where ID in (select ID from free) RETURNED
		), made as (
			insert into QUEUE (ID, due_at, lease_until, lease_token, lease_node)
			select key, $2::bigint, $2::bigint, 1, $3::text from unnest($1::text[]) as k(key) where not exists (select 1 from QUEUE where ID = key) order by key
			on conflict do nothing RETURNED
		) select * from taken union all select * from made`)
}

// updateText leases the rows with these ids, which are of some days; those are the arguments behind n others.
func (q *Queue[T]) updateText(ids string, engine claimSQL, days *spans, n int) string {
	return "UPDATE " + q.Table + " SET due_at = $1, lease_until = $1, lease_token = lease_token + 1, lease_node = $2 WHERE " + q.ID +
		fmt.Sprintf(engine.in, ids) + days.where(q.ID, n) + " " + strings.ReplaceAll(q.returning(), openMark, days.where("p."+q.ID, n))
}

// openMark in a queue's columns stands where rows of its own table, called p, are
// looked for that are open.
const openMark = "{AND OPEN}"

func (q *Queue[T]) returning() string {
	columns := ""
	if q.Columns != "" {
		columns = ", " + q.Columns
	}
	return "RETURNING " + q.ID + ", " + q.Key + ", lease_token" + columns
}

func (q *Queue[T]) claimed(rows *Rows, err error) ([]*Lease[T], error) {
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

// foundKeys are keys with due rows and room, in the order in which they have their turn.
type foundKeys struct {
	keys []string
	ring int    // so many of them stand in the order of the round, others have only the oldest rows
	next string // where the next claim should begin when all of them had their turn
	seen round
	all  bool // there are no others

	spare []string // due, and without room: see spares

	turned bool // the order is that of turns, not of the round
}

// share gives each key an equal part of what may be claimed.
func (f *foundKeys) share(c Claim, single bool) (keys []string, rooms []int64) {
	left := c.Max
	part := max(1, c.Max/max(1, len(f.keys)))
	if single {
		part = 1 // a lane is one row
	}
	for i, key := range f.keys {
		if left == 0 {
			f.seen = partOfRound
			f.spare = append(f.spare, f.keys[i:]...)
			switch {
			case f.turned:
				f.next = c.From
			case i <= f.ring:
				f.next = f.keys[i-1]
			}
			break
		}
		if !c.classes.take(key) {
			f.spare = append(f.spare, key)
			continue // it has its turn when its class has room
		}
		n := min(part, left)
		if c.Room != nil {
			n = min(n, c.Room(key))
		}
		keys, rooms, left = append(keys, key), append(rooms, int64(n)), left-n
		c.turns.had(key)
	}
	return keys, rooms
}

// keysText puts a queue's names into the texts that look for keys, and the days
// in which they look.
func (q *Queue[T]) keysText(open string) *strings.Replacer {
	source, column := q.Table, q.Key
	free := ""
	if q.Feed != nil {
		source, column = q.Feed.Table, q.Feed.Column
		free = " and not exists (select 1 from " + q.Table + " where " + q.Table + "." + q.ID + " = k.key and " + q.Table + ".due_at > $1)"
	}
	return strings.NewReplacer("F", source, "C", column, "AND_FREE", free, "AND_OPEN", open)
}

// jumpSQL goes from key to key: those behind $2, up to $4, and whether they are due and free.
const jumpSQL = `with recursive k(key, n) as (
		select (select C from F where due_at is not null and C > $2AND_OPEN order by C limit 1), 1
		union all
		select (select F.C from F where due_at is not null and F.C > k.keyAND_OPEN order by F.C limit 1), n + 1 from k where k.key is not null and n < $3 and ($4 = '' or k.key <= $4)
	) select key, exists (select 1 from F where F.C = k.key and F.due_at <= $1AND_OPEN)AND_FREE from k where key is not null and ($4 = '' or key <= $4)`

// oldestSQL reads the keys of the oldest rows that are due at $1, $2 of them, due
// from $3 on, and newestSQL those of the newest.
const (
	oldestSQL = dueSQL + " limit $2) as o group by key) as k"
	newestSQL = dueSQL + " desc limit $2) as o group by key) as k"
	dueSQL    = `select key, many, 1 = 1 AND_FREE, first from (select key, count(*) as many, min(due) as first from (
	select C as key, due_at as due from F where due_at <= $1 and due_at >= $3AND_OPEN order by due_at`
)

// dueKeys finds keys with due rows. With few due rows it reads them. With a
// backlog it also jumps through the index from key to key, which costs the
// number of keys and not of rows: behind the longest backlog of one key the
// others are found, and however many keys only wait for later, the next claim
// goes on where this one stopped.
func (q *Queue[T]) dueKeys(r Reader, c Claim, look look) (foundKeys, error) {
	oldest, all, err := oldestKeys(r, c, look, q.keysText(look.days.where(q.ID, 3)).Replace(oldestSQL))
	if err != nil {
		return foundKeys{}, err
	}
	if all {
		oldest.keys = behind(slices.Sorted(slices.Values(oldest.keys)), c.From)
		oldest.ring, oldest.next, oldest.seen, oldest.all = len(oldest.keys), c.From, wholeRound, true
		return oldest, nil
	}
	found, err := jumpKeys(r, c, look, q.keysText(look.days.where(q.ID, 4)).Replace(jumpSQL))
	found.ring = len(found.keys)
	if err == nil && c.jumps != nil && c.jumps.short {
		// It did not look behind the keys without room. What was made due a moment
		// ago, of another class, does not wait until it does.
		fresh, _, wrong := oldestKeys(r, c, look.lately(r.Now()), q.keysText(look.days.where(q.ID, 3)).Replace(newestSQL))
		oldest.keys, err = append(oldest.keys, fresh.keys...), wrong
		oldest.spare = append(oldest.spare, fresh.spare...)
	}
	for _, key := range oldest.keys {
		if len(found.keys) < keysPerClaim && !slices.Contains(found.keys, key) {
			found.keys = append(found.keys, key)
		}
	}
	found.spare = append(found.spare, oldest.spare...)
	return found, err
}

// hasRoom: nobody needs to look at a key that may not take anything.
func (c Claim) hasRoom(key string) bool {
	return c.classes.left(key) && (c.Room == nil || c.Room(key) > 0)
}

// oldestKeys reads the keys of the oldest due rows; all: there are no other due rows.
func oldestKeys(r Reader, c Claim, look look, text string) (found foundKeys, all bool, err error) {
	rows, err := r.Query(text, look.days.after(Micros(r.Now()), oldestLook, look.from)...)
	if err != nil {
		return found, false, err
	}
	total, oldest := 0, Micros(r.Now())
	err = rows.Each(func(scan func(...any) error) error {
		var key string
		var many int
		var free bool
		var first int64
		err := scan(&key, &many, &free, &first)
		oldest = min(oldest, first)
		switch total += many; {
		case free && c.hasRoom(key):
			found.keys = append(found.keys, key)
		case free:
			found.spare = append(found.spare, key)
		}
		return err
	})
	if err == nil {
		look.nothingBefore(oldest)
	}
	return found, total < oldestLook, err
}
