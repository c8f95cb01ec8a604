// Package lease is the one engine of background work: leased rows.
//
// It owns claims, their order and fairness, the pump that works rows, and periodic
// tasks with their table. It owns no other table: a [Queue] is a table of its
// owner. Law: every write of a holder carries its token, so whoever stalled and
// was taken over cannot write.
package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/db"
)

// Term is how long a row stays with a holder that says nothing. A dead
// node's rows are free again after it at the latest.
const Term = 10 * time.Second

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
// and fails with db.ErrStale, so only one holder can ever write.
type Queue[T any] struct {
	Table   string
	ID      string                                   // primary key column, TEXT
	Key     string                                   // fairness column, TEXT: client, receiver, supplier lane
	Columns string                                   // more columns to read with the claim
	Scan    func(scan func(...any) error) (T, error) // reads Columns
	Feed    *Feed                                    // what makes rows due, where it is not the row itself; Key equals ID then
	// IDFrom is the least id that could be made at an instant, where the table may stand in
	// partitions by it. Columns then have {AND OPEN} where they look for open rows of the table itself. Nil: it does not.
	IDFrom func(at time.Time) string
	// Longest is how far ahead, in microseconds, a row may be due by a pause of its own, or the lease of who holds it: an
	// expression of its columns. What is due later a wrong clock has put off. "": nobody can say.
	Longest string
	// Recalled is when such a row is due instead: an expression of its columns and of $1, which is now. "": now.
	Recalled string
	// one character: keys that are alike up to it have one owner, and owners get equal shares; needs a column in byte order
	Group string
}

// Feed is another table whose due rows make a row of the queue due. It has a
// due_at BIGINT and partial indexes (due_at) and (<Column>, due_at) WHERE
// due_at IS NOT NULL. Of the queue's own row, due_at then means "not before".
type Feed struct {
	Table  string
	Column string // holds the queue row's id

	Longest string // as that of the queue, of its own rows

	Parts   [][2]string              // columns that a row gets when it is made, with their types in PostgreSQL
	PartsOf func(id string) []string // what they hold, as text, told by its id
}

// parts are the arguments behind those of a claim, one for each part: with many
// ids an array each, in their order.
func (f *Feed) parts(ids ...string) [][]string {
	all := make([][]string, len(f.Parts))
	for _, id := range ids {
		for i := range all {
			all[i] = append(all[i], f.PartsOf(id)[i])
		}
	}
	return all
}

// Lease is one row held by this process.
type Lease[T any] struct {
	ID    string
	Key   string
	Token int64
	Row   T
	queue *Queue[T]
}

// Finish gives the row up inside the write that stores its outcome. next is
// when it is due again; the zero time means never. A lost lease fails the
// write, and so does a second Finish: after db.ErrOutcomeUnknown the same write
// may be tried again without storing its outcome twice.
func (l *Lease[T]) Finish(tx *db.Tx, next time.Time) error {
	return tx.ExecOne(l.queue.finishText(), dueOf(next), l.ID, l.Token)
}

// Guard fails the write when the lease is lost, and renews it otherwise. Every
// write in the middle of a piece of work begins with it.
func (l *Lease[T]) Guard(tx *db.Tx) error {
	until := db.Micros(tx.Now().Add(Term))
	return tx.ExecOne(l.queue.renewText(), until, l.ID, l.Token)
}

// Depth is how much there is to do in a queue.
type Depth struct {
	Waiting, Working int
	OldestAt         time.Time // since when the oldest is due that nobody works; zero: none is
}

// Depth counts what is to be done.
func (q *Queue[T]) Depth(r db.Reader) (d Depth, err error) {
	var oldest *int64
	err = r.Row("SELECT count(CASE WHEN lease_until IS NULL THEN 1 END), count(lease_until), min(CASE WHEN lease_until IS NULL AND due_at <= $1 THEN due_at END) FROM "+
		q.Table+" WHERE due_at IS NOT NULL", db.Micros(r.Now())).Scan(&d.Waiting, &d.Working, &oldest)
	if oldest != nil {
		d.OldestAt = db.FromMicros(*oldest)
	}
	return d, err
}

// Take claims one row by its id inside a write, for whoever does not want to wait
// for a pump; nil: there is nothing to do, or somebody holds it. Nobody renews it.
func (q *Queue[T]) Take(tx *db.Tx, id string) (*Lease[T], error) {
	now := tx.Now()
	got, err := q.claimed(tx.Query(q.claimText(" = $3 AND due_at <= $4", nil, 0), db.Micros(now.Add(Term)), tx.Node(), id,
		db.Micros(now)))
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return got[0], nil
}

// daysOf are the days in which these rows stand; nil where the table has none.
func (q *Queue[T]) daysOf(ids []string) *spans {
	if q.IDFrom == nil {
		return nil
	}
	return spansOf(ids)
}

func idsAndTokens[T any](leases []*Lease[T]) (ids []string, tokens []int64) {
	ids, tokens = make([]string, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		ids[i], tokens[i] = l.ID, l.Token
	}
	return ids, tokens
}

func dueOf(next time.Time) any {
	if next.IsZero() {
		return nil
	}
	return db.Micros(next)
}

// Claim is one request for rows.
type Claim struct {
	Max  int                  // rows at most
	Room func(key string) int // rows of one key at most; nil: no limit per key
	Fair bool                 // go round the keys instead of by due time alone
	From string               // fair: begin behind this key

	classes *classes // of a pump with classes: how many of each are in work
	memory  memory
}

// Renew prolongs leases; those that were lost are returned.
func (q *Queue[T]) Renew(ctx context.Context, d *db.DB, leases []*Lease[T]) (lost []*Lease[T], err error) {
	err = d.Write(ctx, func(tx *db.Tx) (err error) {
		until := db.Micros(tx.Now().Add(Term))
		if dialectOf(tx).sets {
			lost, err = q.renewSet(tx, leases, until)
		} else {
			lost, err = q.renewEach(tx, leases, until)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases of %s: %w", q.Table, err)
	}
	return lost, nil
}

func (q *Queue[T]) renewEach(tx *db.Tx, leases []*Lease[T], until int64) (lost []*Lease[T], err error) {
	for _, l := range leases {
		var id string
		err := tx.Row(q.renewText()+" RETURNING "+q.ID, until, l.ID, l.Token).Scan(&id)
		if errors.Is(err, db.ErrNoRows) {
			lost = append(lost, l)
		} else if err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// renewSet needs two round trips whatever the number of leases. It skips rows
// that are locked: their holder is writing them at this moment, which prolongs
// or ends the lease anyway, and waiting for it could deadlock.
func (q *Queue[T]) renewSet(tx *db.Tx, leases []*Lease[T], until int64) (lost []*Lease[T], err error) {
	ids, tokens := idsAndTokens(leases)
	days := q.daysOf(ids)
	err = tx.Exec(q.setText(renewSetSQL, days, 3), days.after(until, ids, tokens)...)
	if err != nil {
		return nil, err
	}
	scan := func(s func(...any) error) (l *Lease[T], err error) {
		var at int
		if err := s(&at); err != nil {
			return nil, err
		}
		return leases[at-1], nil
	}
	return db.Collect(tx, scan, q.setText(lostSetSQL, days, 2), days.after(ids, tokens)...)
}

func scanText(scan func(...any) error) (text string, err error) { return text, scan(&text) }

// release frees the rows of nodes that are known to be dead, and returns the
// nodes that look dead for the first time. Where a node's sign of life can be
// interrupted (its session is cut, the server restarts) it is believed to be
// dead only when a second look finds it so.
func (q *Queue[T]) release(ctx context.Context, d *db.DB, days *spans,
	suspects []string) (freed int, missing []string, err error) {
	var holders []string
	err = d.ReadSoon(ctx, func(r db.Reader) error {
		holders, err = db.Collect(r, scanText, q.holdersText(days), days.after(d.Node())...)
		return err
	})
	if err != nil || len(holders) == 0 {
		return 0, nil, err
	}
	live, certain, err := d.Alive()
	if err != nil {
		return 0, suspects, err
	}
	for _, node := range holders {
		if live[node] {
			continue
		}
		if !certain && !slices.Contains(suspects, node) {
			missing = append(missing, node)
			continue
		}
		err := d.Write(ctx, func(tx *db.Tx) error {
			tx.Wake(q.Table)
			return tx.Exec(q.freeText(dialectOf(d), days), days.after(db.Micros(tx.Now()), node)...)
		})
		if err != nil {
			return freed, suspects, err
		}
		freed++
	}
	return freed, missing, nil
}

// nextDue is when the next row may become due, or zero.
func (q *Queue[T]) nextDue(ctx context.Context, d *db.DB, days *spans) (at time.Time, err error) {
	texts := []string{q.nextText(days)}
	if q.Feed != nil {
		texts = append(texts, "SELECT min(due_at) FROM "+q.Feed.Table+" WHERE due_at > $1")
	}
	err = d.ReadSoon(ctx, func(r db.Reader) error {
		for i, text := range texts {
			args := []any{db.Micros(r.Now())}
			if i == 0 {
				args = days.after(args...)
			}
			var us *int64
			if err := r.Row(text, args...).Scan(&us); err != nil {
				return err
			}
			if us != nil && (at.IsZero() || db.FromMicros(*us).Before(at)) {
				at = db.FromMicros(*us)
			}
		}
		return nil
	})
	return at, err
}
