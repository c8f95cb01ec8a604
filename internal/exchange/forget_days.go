package exchange

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/operation"
	"tributary/internal/schema"
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
func ForgetDays(ctx context.Context, d *db.DB, held []Held, before time.Time) (calls, links int, err error) {
	calls, wrong := schema.DropDays(ctx, d, "exchanges", before, func(r db.Reader, day schema.Partition) (bool, error) {
		return heldIn(r, day, held)
	})
	// a link without its call is forgotten by ForgetLinks, too
	links, err = schema.DropDays(ctx, d, "exchange_operations", before, schema.StaysWith("exchanges"))
	if err := errors.Join(wrong, err); err != nil {
		return calls, links, fmt.Errorf("forget days of calls: %w", err)
	}
	return calls, links, nil
}

// heldIn reports whether a day has a call of somebody who is held.
func heldIn(r db.Reader, day schema.Partition, held []Held) (bool, error) {
	where, args := day.Covers(2) // '}' is the character behind '|', so that these are the lanes of one client
	for _, h := range held {
		lanes, err := db.Collect(r, func(scan func(...any) error) (lane string, err error) { return lane, scan(&lane) },
			"SELECT DISTINCT lane FROM exchanges WHERE lane >= $1 AND lane < $2 AND "+where,
			append([]any{h.Scope + "|", h.Scope + "}"}, args...)...)
		if err != nil {
			return true, err
		}
		for _, lane := range lanes {
			if place, unreadable := operation.ParseLane(lane); h.Suppliers == nil || unreadable != nil ||
				h.Suppliers[place.SupplierID] {
				return true, nil
			}
		}
	}
	return false, nil
}
