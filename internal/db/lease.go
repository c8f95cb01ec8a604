package db

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// LeaseFor is how long a row stays with a holder that says nothing. A dead
// node's rows are free again after it at the latest.
const LeaseFor = 10 * time.Second

// Queue is a table whose rows are worked under leases: operations, lanes,
// deliveries. The table has, besides its owner's columns,
//
//	due_at      BIGINT  when it may be claimed; NULL: nothing to do. While
//	                    leased it is the lease's end, so that an index on due_at
//	                    alone finds everything that can be claimed
//	lease_until BIGINT  NULL when nobody holds it
//	lease_token BIGINT  NOT NULL DEFAULT 0; raised by every claim
//	lease_node  TEXT    who holds it
//
// with partial indexes (due_at) and (<Key>, due_at) WHERE due_at IS NOT NULL,
// and (lease_node) WHERE lease_node IS NOT NULL.
//
// With a Feed the rows are made on demand: a lane is due when one of the
// operations that ride in it is, and nobody has to remember to say so.
//
// Failure policy: a claim is at-least-once work. A holder that stalls may find
// its row worked by another; every write it makes then carries an old token
// and fails with ErrStale, so only one holder can ever write.
type Queue[T any] struct {
	Table   string
	ID      string                                   // primary key column, TEXT
	Key     string                                   // fairness column, TEXT: client, receiver, supplier lane
	Columns string                                   // more columns to read with the claim
	Scan    func(scan func(...any) error) (T, error) // reads Columns
	Feed    *Feed                                    // what makes rows due, where it is not the row itself; Key equals ID then
}

// Feed is another table whose due rows make a row of the queue due. It has a
// due_at BIGINT and partial indexes (due_at) and (<Column>, due_at) WHERE
// due_at IS NOT NULL. Of the queue's own row, due_at then means "not before".
type Feed struct {
	Table  string
	Column string // holds the queue row's id
}

// Lease is one row held by this process.
type Lease[T any] struct {
	ID    string
	Key   string
	Token int64
	Row   T
	queue *Queue[T]
}

// claimSQL are the texts that differ between the engines; %s is a SELECT of ids.
type claimSQL struct {
	in string // "is one of these": PostgreSQL must be kept from joining the whole table, and skips locked rows
}

// Finish gives the row up inside the write that stores its outcome. next is
// when it is due again; the zero time means never. A lost lease fails the write.
func (l *Lease[T]) Finish(tx *Tx, next time.Time) error {
	return tx.ExecOne("UPDATE "+l.queue.Table+" SET due_at = $1, lease_until = NULL, lease_node = NULL WHERE "+l.queue.ID+" = $2 AND lease_token = $3",
		dueOf(next), l.ID, l.Token)
}

// Guard fails the write when the lease is lost, and renews it otherwise. Every
// write in the middle of a piece of work begins with it.
func (l *Lease[T]) Guard(tx *Tx) error {
	until := Micros(tx.Now().Add(LeaseFor))
	return tx.ExecOne("UPDATE "+l.queue.Table+" SET due_at = $1, lease_until = $1 WHERE "+l.queue.ID+" = $2 AND lease_token = $3 AND lease_until IS NOT NULL",
		until, l.ID, l.Token)
}

// FinishAll gives many rows up at once.
func (q *Queue[T]) FinishAll(tx *Tx, leases []*Lease[T], next time.Time) error {
	rows := make([][]any, len(leases))
	for i, l := range leases {
		rows[i] = []any{dueOf(next), l.ID, l.Token}
	}
	return tx.ExecEachOne("UPDATE "+q.Table+" SET due_at = $1, lease_until = NULL, lease_node = NULL WHERE "+q.ID+" = $2 AND lease_token = $3", rows)
}

func dueOf(next time.Time) any {
	if next.IsZero() {
		return nil
	}
	return Micros(next)
}

// Claim is one request for rows.
type Claim struct {
	Max  int                  // rows at most
	Room func(key string) int // rows of one key at most; nil: no limit per key
	Fair bool                 // go round the keys instead of by due time alone
	From string               // fair: begin behind this key
}

// keysPerClaim bounds how many keys one fair claim looks at; the next goes on behind them.
const keysPerClaim = 256

// Due claims rows that are due, oldest first, each with a fresh token. A fair
// claim goes round the keys, so that one with a long backlog takes no more
// than its share; it returns where the next one should begin.
func (q *Queue[T]) Due(ctx context.Context, d *DB, c Claim) (leases []*Lease[T], next string, err error) {
	err = d.Write(ctx, func(tx *Tx) error {
		leases, next = nil, ""
		var err error
		if q.Feed != nil {
			leases, next, err = q.claimFed(tx, c)
		} else if c.Fair || c.Room != nil {
			leases, next, err = q.claimFair(tx, c)
		} else {
			leases, err = q.claimOldest(tx, c.Max)
		}
		return err
	})
	return leases, next, err
}

func (q *Queue[T]) claimOldest(tx *Tx, limit int) ([]*Lease[T], error) {
	until := Micros(tx.Now().Add(LeaseFor))
	return q.claimed(tx.Query(q.updateText("WHERE due_at <= $3 ORDER BY due_at LIMIT $4", tx.d.eng.claimSQL()),
		until, tx.d.node, Micros(tx.Now()), limit))
}

// claimFair visits the keys behind c.From in order, wraps around once, and
// takes an equal share of each.
func (q *Queue[T]) claimFair(tx *Tx, c Claim) ([]*Lease[T], string, error) {
	keys, err := q.keys(tx, c.From)
	if err != nil || len(keys) == 0 {
		return nil, "", err
	}
	share := max(1, c.Max/len(keys))
	var all []*Lease[T]
	var next string
	text := q.updateText("WHERE "+q.Key+" = $3 AND due_at <= $4 ORDER BY due_at LIMIT $5", tx.d.eng.claimSQL())
	until, now := Micros(tx.Now().Add(LeaseFor)), Micros(tx.Now())
	for _, key := range keys {
		n := min(share, c.Max-len(all))
		if c.Room != nil {
			n = min(n, c.Room(key))
		}
		if len(all) >= c.Max {
			break
		}
		next = key
		if n <= 0 {
			continue
		}
		got, err := q.claimed(tx.Query(text, until, tx.d.node, key, now, n))
		if err != nil {
			return nil, "", err
		}
		all = append(all, got...)
	}
	return all, next, nil
}

// keys lists keys that have rows with a due time, by jumping through the index
// from key to key: its cost is the number of keys, not of rows.
func (q *Queue[T]) keys(tx *Tx, from string) ([]string, error) {
	text := strings.NewReplacer("T", q.Table, "K", q.Key).Replace(
		`with recursive k(key, n) as (
			select (select K from T where due_at is not null and K > $1 order by K limit 1), 1
			union all
			select (select T.K from T where due_at is not null and T.K > k.key order by T.K limit 1), n + 1 from k where k.key is not null and n < $2
		) select key from k where key is not null`)
	scan := func(s func(...any) error) (key string, err error) { return key, s(&key) }
	keys, err := Collect(tx, scan, text, from, keysPerClaim)
	if err != nil || from == "" || len(keys) >= keysPerClaim {
		return keys, err
	}
	start, err := Collect(tx, scan, text, "", keysPerClaim-len(keys))
	for _, key := range start {
		if key > from {
			break
		}
		keys = append(keys, key)
	}
	return keys, err
}

func (q *Queue[T]) updateText(where string, engine claimSQL) string {
	return "UPDATE " + q.Table + " SET due_at = $1, lease_until = $1, lease_token = lease_token + 1, lease_node = $2 WHERE " + q.ID +
		fmt.Sprintf(engine.in, "SELECT "+q.ID+" FROM "+q.Table+" "+where) + " " + q.returning()
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

// claimFed claims rows that the feed makes due and nobody holds.
func (q *Queue[T]) claimFed(tx *Tx, c Claim) ([]*Lease[T], string, error) {
	now := Micros(tx.Now())
	keys, err := q.fedKeys(tx, c, now)
	if err != nil || len(keys) == 0 {
		return nil, "", err
	}
	text := "INSERT INTO " + q.Table + " (" + q.ID + ", due_at, lease_until, lease_token, lease_node) VALUES ($1, $2, $2, 1, $3) ON CONFLICT (" + q.ID +
		") DO UPDATE SET due_at = $2, lease_until = $2, lease_token = " + q.Table + ".lease_token + 1, lease_node = $3 WHERE " +
		q.Table + ".due_at IS NULL OR " + q.Table + ".due_at <= $4 " + q.returning()
	var all []*Lease[T]
	next := ""
	for _, key := range keys {
		if len(all) >= c.Max {
			break
		}
		next = key
		if c.Room != nil && c.Room(key) <= 0 {
			continue
		}
		got, err := q.claimed(tx.Query(text, key, Micros(tx.Now().Add(LeaseFor)), tx.d.node, now))
		if err != nil {
			return nil, "", err
		}
		all = append(all, got...)
	}
	return all, next, nil
}

// fedKeys jumps through the feed's index from key to key and keeps those that
// are due and free.
func (q *Queue[T]) fedKeys(tx *Tx, c Claim, now int64) ([]string, error) {
	text := strings.NewReplacer("F", q.Feed.Table, "C", q.Feed.Column, "Q", q.Table, "I", q.ID).Replace(
		`with recursive k(key, n) as (
			select (select C from F where due_at is not null and C > $1 order by C limit 1), 1
			union all
			select (select F.C from F where due_at is not null and F.C > k.key order by F.C limit 1), n + 1 from k where k.key is not null and n < $2
		) select key from k where key is not null
			and exists (select 1 from F where F.C = k.key and F.due_at <= $3)
			and not exists (select 1 from Q where Q.I = k.key and Q.due_at > $3)`)
	scan := func(s func(...any) error) (key string, err error) { return key, s(&key) }
	keys, err := Collect(tx, scan, text, c.From, keysPerClaim, now)
	if err != nil || c.From == "" || len(keys) >= c.Max {
		return keys, err
	}
	start, err := Collect(tx, scan, text, "", keysPerClaim, now)
	for _, key := range start {
		if key > c.From {
			break
		}
		keys = append(keys, key)
	}
	return keys, err
}

// Renew prolongs leases; those that were lost are returned.
func (q *Queue[T]) Renew(ctx context.Context, d *DB, leases []*Lease[T]) (lost []*Lease[T], err error) {
	err = d.Write(ctx, func(tx *Tx) error {
		lost = nil
		until := Micros(tx.Now().Add(LeaseFor))
		for _, l := range leases {
			var id string
			err := tx.Row("UPDATE "+q.Table+" SET due_at = $1, lease_until = $1 WHERE "+q.ID+" = $2 AND lease_token = $3 AND lease_until IS NOT NULL RETURNING "+q.ID,
				until, l.ID, l.Token).Scan(&id)
			if err == ErrNoRows { //nolint:errorlint // our own sentinel, never wrapped by Scan
				lost = append(lost, l)
			} else if err != nil {
				return fmt.Errorf("renew leases of %s: %w", q.Table, err)
			}
		}
		return nil
	})
	return lost, err
}

// release frees the rows of nodes that are known to be dead.
func (q *Queue[T]) release(ctx context.Context, d *DB) (int, error) {
	var holders []string
	scan := func(s func(...any) error) (node string, err error) { return node, s(&node) }
	err := d.Read(ctx, func(r Reader) error {
		var err error
		holders, err = Collect(r, scan, "SELECT DISTINCT lease_node FROM "+q.Table+" WHERE lease_node IS NOT NULL")
		return err
	})
	if err != nil || len(holders) == 0 {
		return 0, err
	}
	live, err := d.eng.alive()
	if err != nil {
		return 0, err
	}
	freed := 0
	for _, node := range holders {
		if live[node] {
			continue
		}
		err := d.Write(ctx, func(tx *Tx) error {
			freed++
			tx.Wake(q.Table)
			return tx.Exec("UPDATE "+q.Table+" SET due_at = $1, lease_until = NULL, lease_node = NULL WHERE lease_node = $2", Micros(tx.Now()), node)
		})
		if err != nil {
			return freed, err
		}
	}
	return freed, nil
}

// nextDue is when the next row may become due, or zero.
func (q *Queue[T]) nextDue(ctx context.Context, d *DB) (at time.Time, err error) {
	tables := []string{q.Table}
	if q.Feed != nil {
		tables = append(tables, q.Feed.Table)
	}
	err = d.Read(ctx, func(r Reader) error {
		for _, table := range tables {
			var us *int64
			if err := r.Row("SELECT min(due_at) FROM "+table+" WHERE due_at > $1", Micros(r.Now())).Scan(&us); err != nil {
				return err
			}
			if us != nil && (at.IsZero() || FromMicros(*us).Before(at)) {
				at = FromMicros(*us)
			}
		}
		return nil
	})
	return at, err
}

func (e *sqliteEngine) claimSQL() claimSQL { return claimSQL{in: " IN (%s)"} }
func (e *pgEngine) claimSQL() claimSQL     { return claimSQL{in: " = ANY(ARRAY(%s FOR UPDATE SKIP LOCKED))"} }
