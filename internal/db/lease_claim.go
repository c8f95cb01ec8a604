package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How far one fair claim looks; the next goes on behind it.
const (
	keysPerClaim = 256  // keys one claim takes rows of
	keysLook     = 1024 // keys one claim looks at, due or not
	oldestLook   = 256  // due rows that are read to learn the keys; fewer are all there are
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
	look := c.floor.begin(d)
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
	if len(keys) > 0 {
		err = d.Write(ctx, func(tx *Tx) (err error) {
			if q.Feed != nil {
				leases, err = q.claimFed(tx, keys)
			} else {
				leases, err = q.claimKeys(tx, keys, rooms)
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
	return q.claimed(tx.Query(q.updateText("SELECT "+q.ID+" FROM "+q.Table+" WHERE due_at <= $3 AND due_at >= $5 ORDER BY due_at LIMIT $4", tx.d.eng.claimSQL()),
		until, tx.d.node, Micros(tx.Now()), limit, look.from))
}

// claimKeys takes rows of the keys, of each as many as it has room for.
func (q *Queue[T]) claimKeys(tx *Tx, keys []string, rooms []int64) ([]*Lease[T], error) {
	until, now, engine := Micros(tx.Now().Add(LeaseFor)), Micros(tx.Now()), tx.d.eng.claimSQL()
	if engine.sets {
		text := q.updateText("SELECT r."+q.ID+" FROM unnest($3::text[], $4::bigint[]) AS k(key, room) CROSS JOIN LATERAL (SELECT "+q.ID+" FROM "+q.Table+
			" WHERE "+q.Key+" = k.key AND due_at <= $5 ORDER BY due_at LIMIT k.room FOR UPDATE SKIP LOCKED) AS r", claimSQL{in: " = ANY(ARRAY(%s))"})
		return q.claimed(tx.Query(text, until, tx.d.node, keys, rooms, now))
	}
	var all []*Lease[T]
	text := q.updateText("SELECT "+q.ID+" FROM "+q.Table+" WHERE "+q.Key+" = $3 AND due_at <= $4 ORDER BY due_at LIMIT $5", engine)
	for i, key := range keys {
		got, err := q.claimed(tx.Query(text, until, tx.d.node, key, now, rooms[i]))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
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
func (q *Queue[T]) fedText() string {
	return strings.NewReplacer("QUEUE", q.Table, "ID", q.ID, "RETURNED", q.returning()).Replace(`with free as (
			select ID from QUEUE where ID = any($1::text[]) and (due_at is null or due_at <= $4) order by ID for update skip locked
		), taken as (
			update QUEUE set due_at = $2::bigint, lease_until = $2::bigint, lease_token = lease_token + 1, lease_node = $3::text where ID in (select ID from free) RETURNED
		), made as (
			insert into QUEUE (ID, due_at, lease_until, lease_token, lease_node)
			select key, $2::bigint, $2::bigint, 1, $3::text from unnest($1::text[]) as k(key) where not exists (select 1 from QUEUE where ID = key) order by key
			on conflict do nothing RETURNED
		) select * from taken union all select * from made`)
}

func (q *Queue[T]) updateText(ids string, engine claimSQL) string {
	return "UPDATE " + q.Table + " SET due_at = $1, lease_until = $1, lease_token = lease_token + 1, lease_node = $2 WHERE " + q.ID +
		fmt.Sprintf(engine.in, ids) + " " + q.returning()
}

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
			switch {
			case f.turned:
				f.next = c.From
			case i <= f.ring:
				f.next = f.keys[i-1]
			}
			break
		}
		if !c.classes.take(key) {
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

// keysText puts a queue's names into the texts that look for keys.
func (q *Queue[T]) keysText() *strings.Replacer {
	source, column := q.Table, q.Key
	free := ""
	if q.Feed != nil {
		source, column = q.Feed.Table, q.Feed.Column
		free = " and not exists (select 1 from " + q.Table + " where " + q.Table + "." + q.ID + " = k.key and " + q.Table + ".due_at > $1)"
	}
	return strings.NewReplacer("F", source, "C", column, "AND_FREE", free)
}

// jumpSQL goes from key to key: those behind $2, up to $4, and whether they are due and free.
const jumpSQL = `with recursive k(key, n) as (
		select (select C from F where due_at is not null and C > $2 order by C limit 1), 1
		union all
		select (select F.C from F where due_at is not null and F.C > k.key order by F.C limit 1), n + 1 from k where k.key is not null and n < $3 and ($4 = '' or k.key <= $4)
	) select key, exists (select 1 from F where F.C = k.key and F.due_at <= $1)AND_FREE from k where key is not null and ($4 = '' or key <= $4)`

// dueKeys finds keys with due rows. With few due rows it reads them. With a
// backlog it also jumps through the index from key to key, which costs the
// number of keys and not of rows: behind the longest backlog of one key the
// others are found, and however many keys only wait for later, the next claim
// goes on where this one stopped.
func (q *Queue[T]) dueKeys(r Reader, c Claim, look look) (foundKeys, error) {
	text := q.keysText()
	oldest, all, err := oldestKeys(r, c, look, text.Replace("select key, many, 1 = 1 AND_FREE, first from (select key, count(*) as many, min(due) as first from (select C as key, due_at as due from F where due_at <= $1 and due_at >= $3 order by due_at limit $2) as o group by key) as k"))
	if err != nil {
		return foundKeys{}, err
	}
	if all {
		slices.Sort(oldest)
		behind, _ := slices.BinarySearch(oldest, c.From+"\x00")
		return foundKeys{keys: append(oldest[behind:len(oldest):len(oldest)], oldest[:behind]...), ring: len(oldest), next: c.From, seen: wholeRound, all: true}, nil
	}
	found, err := jumpKeys(r, c, text.Replace(jumpSQL))
	found.ring = len(found.keys)
	for _, key := range oldest {
		if len(found.keys) < keysPerClaim && !slices.Contains(found.keys, key) {
			found.keys = append(found.keys, key)
		}
	}
	return found, err
}

// hasRoom: nobody needs to look at a key that may not take anything.
func (c Claim) hasRoom(key string) bool {
	return c.classes.left(key) && (c.Room == nil || c.Room(key) > 0)
}

// oldestKeys reads the keys of the oldest due rows; all: there are no other due rows.
func oldestKeys(r Reader, c Claim, look look, text string) (keys []string, all bool, err error) {
	rows, err := r.Query(text, Micros(r.Now()), oldestLook, look.from)
	if err != nil {
		return nil, false, err
	}
	total, oldest := 0, Micros(r.Now())
	err = rows.Each(func(scan func(...any) error) error {
		var key string
		var many int
		var free bool
		var first int64
		err := scan(&key, &many, &free, &first)
		oldest = min(oldest, first)
		if total += many; free && c.hasRoom(key) {
			keys = append(keys, key)
		}
		return err
	})
	if err == nil {
		look.nothingBefore(oldest)
	}
	return keys, total < oldestLook, err
}

// jumpKeys goes over the keys behind c.From and, at their end, over those
// before, until it has enough.
func jumpKeys(r Reader, c Claim, text string) (foundKeys, error) {
	found := foundKeys{next: c.From}
	enough := min(keysPerClaim, c.Max)
	look := func(from, to string, limit int) (looked int, err error) {
		rows, err := r.Query(text, Micros(r.Now()), from, limit, to)
		if err != nil {
			return 0, err
		}
		for len(found.keys) < enough && rows.Next() {
			var key string
			var due bool
			if err := rows.Scan(&key, &due); err != nil {
				return 0, errors.Join(err, rows.Close())
			}
			looked++
			if found.next = key; due && c.hasRoom(key) {
				found.keys = append(found.keys, key)
			}
		}
		return looked, rows.Close()
	}
	looked, err := look(c.From, "", keysLook)
	if err != nil || looked == keysLook || len(found.keys) == enough {
		return found, err
	}
	found.seen = endOfRound
	if c.From == "" {
		found.seen = wholeRound
		return found, nil
	}
	again, err := look("", c.From, keysLook-looked)
	if err == nil && looked+again < keysLook && len(found.keys) < enough {
		found.seen = wholeRound
	}
	return found, err
}
