package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/db"
)

// Partition is a part of a large table on PostgreSQL, for a stretch of time. Rows
// stand where their id's time is, and a part goes as a whole.
//
// Bounds are as long as ids, with dashes in the same places, so that every order of
// text that a database may have agrees on them. Links to calls go by their call,
// not by their operation: a day of links is over exactly when its calls are. The
// look whether a filing was sent before goes through all days, however slow: it
// decides something, and no clock may hide a sending from it. A table with
// partitions takes no index concurrently and has no storage parameters of its own.
// Why days: docs/decisions/0008.
type Partition struct {
	Table, Name string
	ID          string    // the column that says in which part a row stands
	From, To    string    // ids: from the first of them on, the other is the next one's; From is "" in the oldest
	Begins      time.Time // the time of From, or zero
	Ends        time.Time // the time of To
	Rest        bool      // what has no partition of its day; without ids and times
	Bytes       int64     // of its rows, without indexes
}

// Covers is the range of ids of a partition as a condition on its rows, with its arguments behind n others.
func (p Partition) Covers(n int) (where string, args []any) {
	return fmt.Sprintf("%[1]s >= $%[2]d AND %[1]s < $%[3]d", p.ID, n+1, n+2), []any{p.From, p.To}
}

func (p Partition) holds(at time.Time) bool { return !at.Before(p.Begins) && at.Before(p.Ends) }

// Partitions are made for the days to come, and dropped when they are past. A
// round of retention does both once a day.
const (
	PartitionsAhead  = 7        // days behind today
	PartitionRestMax = 32 << 20 // bytes of rows without a partition that may be looked through while writers wait
	partitionTries   = 5        // for a lock, half a second each
	partitionPause   = time.Second
	day              = 24 * time.Hour
)

const partitionsSQL = `SELECT p.name, c.relname, p.id, e.bound = 'DEFAULT', pg_relation_size(c.oid),
	coalesce(substring(e.bound FROM 'FROM \(''([^'']+)''\)'), ''), coalesce(substring(e.bound FROM 'TO \(''([^'']+)''\)'), '')
	FROM partitioned p JOIN pg_inherits i ON i.inhparent = to_regclass(quote_ident(p.name)) JOIN pg_class c ON c.oid = i.inhrelid
	CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) e ORDER BY p.name, 7, 4`

// Partitions lists the parts of all tables that have them, oldest first; nil on SQLite.
func Partitions(ctx context.Context, d *db.DB) (list []Partition, err error) {
	if d.Engine() != "postgres" {
		return nil, nil
	}
	err = d.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (p Partition, err error) {
			if err := scan(&p.Table, &p.Name, &p.ID, &p.Rest, &p.Bytes, &p.From, &p.To); err != nil || p.Rest {
				return p, err
			}
			if p.From != "" {
				p.Begins, err = db.TimeOfID(p.From)
			}
			if err == nil {
				p.Ends, err = db.TimeOfID(p.To)
			}
			return p, err
		}, partitionsSQL)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return list, nil
}

// MakePartitions makes those of the days to come that are missing, and answers
// how many. A role without the rights of the owner may: a function of the owner does it.
//
// Failure policy: rows of a day without a partition go into the rest, where they
// are found like all others, and go one by one when they have had their time.
func MakePartitions(ctx context.Context, d *db.DB, now time.Time) (made int, err error) {
	list, err := Partitions(ctx, d)
	if err != nil {
		return 0, err
	}
	var all []error
	today := now.UTC().Truncate(day)
	for _, rest := range list {
		for at := today; rest.Rest && !at.After(today.Add(PartitionsAhead*day)); at = at.Add(day) {
			if slices.ContainsFunc(list, func(p Partition) bool { return p.Table == rest.Table && p.holds(at) }) {
				continue
			}
			var fresh bool
			err := partly(ctx, d, &fresh, "SELECT make_partition($1, $2, $3)", rest.Table, dayOf(at), int64(PartitionRestMax))
			if err != nil {
				all = append(all, fmt.Errorf("make the partition of %s of %s: %w", rest.Table, at.Format(time.DateOnly), err))
				break
			}
			if fresh {
				made++
			}
		}
	}
	return made, errors.Join(all...)
}

// Room says how far ahead a table has partitions.
type Room struct {
	Table string
	Until time.Time // from today on without a gap; today itself if it has none
	Rest  int64     // bytes of rows without a partition
}

// Rooms looks how far ahead partitions are made; nil on SQLite.
func Rooms(ctx context.Context, d *db.DB, now time.Time) (rooms []Room, err error) {
	list, err := Partitions(ctx, d)
	for _, rest := range list {
		if !rest.Rest {
			continue
		}
		room := Room{Table: rest.Table, Until: now.UTC().Truncate(day), Rest: rest.Bytes}
		for again := true; again; {
			again = false
			for _, p := range list {
				if p.Table == room.Table && p.holds(room.Until) {
					room.Until, again = p.Ends, true
				}
			}
		}
		rooms = append(rooms, room)
	}
	return rooms, err
}

// DropPartition drops a partition with all of its rows. The caller has looked
// that none of them is to stay; one that ends after an instant is refused.
func DropPartition(ctx context.Context, d *db.DB, p Partition, before time.Time) error {
	if p.Rest || p.Ends.After(before) {
		return fmt.Errorf("partition %s does not end before %s", p.Name, before.UTC().Format(time.RFC3339))
	}
	var nothing string
	if err := partly(ctx, d, &nothing, "SELECT drop_partition($1, $2)::text", p.Name, dayOf(p.Ends)-1); err != nil {
		return fmt.Errorf("drop partition %s: %w", p.Name, err)
	}
	return nil
}

// DropDays drops the partitions of a table that ended before an instant, unless
// something of them stays, and answers how many rows they had. What is due again
// when the table is held stays in any case, and is no failure.
func DropDays(ctx context.Context, d *db.DB, table string, before time.Time,
	stays func(r db.Reader, day Partition) (bool, error)) (rows int, err error) {
	all, err := Partitions(ctx, d)
	wrong := []error{err}
	for _, day := range all {
		if day.Table != table || day.Rest || day.Ends.After(before) || ctx.Err() != nil {
			continue
		}
		had, err := dropDay(ctx, d, day, before, stays)
		rows += had
		wrong = append(wrong, err)
	}
	return rows, errors.Join(wrong...)
}

func dropDay(ctx context.Context, d *db.DB, day Partition, before time.Time,
	stays func(r db.Reader, day Partition) (bool, error)) (rows int, err error) {
	kept := false
	err = d.Read(ctx, func(r db.Reader) (err error) {
		if kept, err = stays(r, day); err != nil || kept {
			return err
		}
		where, args := day.Covers(0)
		return r.Row("SELECT count(*) FROM "+day.Table+" WHERE "+where, args...).Scan(&rows)
	})
	if err != nil || kept {
		return 0, err
	}
	switch err := DropPartition(ctx, d, day, before); {
	case db.SQLState(err) == db.ObjectInUse:
		return 0, nil
	case err != nil:
		return 0, err
	}
	return rows, nil
}

// StaysWith keeps a day as long as another table, with the same ids, has rows of it.
func StaysWith(table string) func(r db.Reader, day Partition) (bool, error) {
	return func(r db.Reader, day Partition) (bool, error) {
		where, args := day.Covers(0)
		var one int64
		err := r.Row("SELECT 1 FROM "+table+" WHERE "+where+" LIMIT 1", args...).Scan(&one)
		if errors.Is(err, db.ErrNoRows) {
			return false, nil
		}
		return true, err
	}
}

// partly calls a function of the owner in a transaction of its own. It needs a
// table for itself for a moment, steps back when it does not get it soon, and
// gives up after a few tries: there is a round tomorrow.
func partly(ctx context.Context, d *db.DB, into any, text string, args ...any) (err error) {
	for try := 1; ; try++ {
		err = d.Ask(ctx, []any{into}, text, args...)
		if db.SQLState(err) != db.LockNotAvailable || try == partitionTries || ctx.Err() != nil {
			return err
		}
		db.Pause(ctx, partitionPause)
	}
}

func dayOf(at time.Time) int64 { return at.Unix() / int64(day/time.Second) }
