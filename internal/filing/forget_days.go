package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
)

// Held is who is under a legal hold: a client, or some of its suppliers.
type Held struct {
	Scope     string
	Suppliers map[string]bool // nil: all
}

// ForgetDays drops whole days of calls, and of links to them, that were over
// before an instant, where the database keeps days apart. A day with a call of
// somebody who is held stays: ForgetCalls takes what others have of it. It
// answers how many calls and links are gone.
func (s *Service) ForgetDays(ctx context.Context, held []Held, before time.Time) (calls, links int, err error) {
	all, err := s.db.Partitions(ctx)
	if err != nil {
		return 0, 0, err
	}
	var wrong []error
	forget := func(table string, into *int, stays func(r db.Reader, day db.Partition) (bool, error)) {
		for _, day := range all {
			if day.Table != table || day.Rest || day.Ends.After(before) || ctx.Err() != nil {
				continue
			}
			rows, err := s.dropDay(ctx, day, before, stays)
			*into += rows
			wrong = append(wrong, err)
		}
	}
	forget("exchanges", &calls, func(r db.Reader, day db.Partition) (bool, error) { return heldIn(r, day, held) })
	forget("exchange_operations", &links, callsIn) // after the calls: a link without its call is forgotten by ForgetLinks, too
	if err := errors.Join(wrong...); err != nil {
		return calls, links, fmt.Errorf("forget days of calls: %w", err)
	}
	return calls, links, nil
}

// dropDay drops a day unless something of it stays, and answers how many rows it had.
func (s *Service) dropDay(ctx context.Context, day db.Partition, before time.Time, stays func(r db.Reader, day db.Partition) (bool, error)) (rows int, err error) {
	kept := false
	err = s.db.Read(ctx, func(r db.Reader) (err error) {
		if kept, err = stays(r, day); err != nil || kept {
			return err
		}
		where, args := day.Covers("exchange_id", 0)
		return r.Row("SELECT count(*) FROM "+day.Table+" WHERE "+where, args...).Scan(&rows)
	})
	if err != nil || kept {
		return 0, err
	}
	if err := s.db.DropPartition(ctx, day, before); err != nil {
		return 0, err
	}
	return rows, nil
}

// heldIn reports whether a day has a call of somebody who is held.
func heldIn(r db.Reader, day db.Partition, held []Held) (bool, error) {
	where, args := day.Covers("exchange_id", 2)
	for _, h := range held {
		lanes, err := db.Collect(r, func(scan func(...any) error) (lane string, err error) { return lane, scan(&lane) },
			"SELECT DISTINCT lane FROM exchanges WHERE lane >= $1 AND lane < $2 AND "+where, append([]any{h.Scope + "|", h.Scope + "}"}, args...)...)
		if err != nil {
			return true, err
		}
		for _, lane := range lanes {
			if place, unreadable := ParseLane(lane); h.Suppliers == nil || unreadable != nil || h.Suppliers[place.SupplierID] {
				return true, nil
			}
		}
	}
	return false, nil
}

// callsIn reports whether there is a call that links of a day lead to.
func callsIn(r db.Reader, day db.Partition) (bool, error) {
	where, args := day.Covers("exchange_id", 0)
	var one int64
	err := r.Row("SELECT 1 FROM exchanges WHERE "+where+" LIMIT 1", args...).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return true, err
}
