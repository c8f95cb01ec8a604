package lookup

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/db"
)

// KeptDays is how long a validation can be read after it has ended. It is an
// answer of a moment: what a client wants to keep of it, it keeps itself.
const KeptDays = 90

// What one write of forgetting takes: many small requests, or one large one.
const (
	forgetSet     = 200
	forgetEntries = 2000
)

const oldSQL = `SELECT lookup_id, entries, requested_at, CASE WHEN client_id = $1 AND status <> 'running' AND ended_at < $2 THEN 1 ELSE 0 END FROM lookups
	WHERE requested_at < $2 AND (requested_at, lookup_id) > ($3, $4) ORDER BY requested_at, lookup_id LIMIT $5`

// Forget deletes the requests of a client, with what was asked and answered, that
// ended before an instant, in steps that keep no other write waiting. It answers
// how many.
func (l *Lookups) Forget(ctx context.Context, clientID string, endedBefore time.Time) (forgotten int, err error) {
	at := place{requested: -1}
	for more := true; more; {
		ids, next, err := l.old(ctx, clientID, endedBefore, at)
		if err == nil && len(ids) > 0 {
			err = l.db.Write(ctx, func(tx *db.Tx) error { return l.remove(tx, ids) })
		}
		if err != nil {
			return forgotten, fmt.Errorf("delete lookups of client %s: %w", clientID, err)
		}
		forgotten, more, at = forgotten+len(ids), next != at, next
	}
	return forgotten, nil
}

// place is where a walk over requests by age stands.
type place struct {
	requested int64
	id        string
}

// old finds the next requests to go, and how far it looked.
func (l *Lookups) old(ctx context.Context, clientID string, before time.Time,
	from place) (ids []string, to place, err error) {
	err = l.db.Read(ctx, func(r db.Reader) error {
		ids, to = nil, from
		rows, err := r.Query(oldSQL, clientID, db.Micros(before), from.requested, from.id, forgetSet)
		if err != nil {
			return err
		}
		entries, full := int64(0), false
		return rows.Each(func(scan func(...any) error) error {
			var at place
			var size, old int64
			if err := scan(&at.id, &size, &at.requested, &old); err != nil {
				return err
			}
			if full = full || entries > 0 && entries+old*size > forgetEntries; full {
				return nil // the next step's
			}
			if entries, to = entries+old*size, at; old == 1 {
				ids = append(ids, at.id)
			}
			return nil
		})
	})
	return ids, to, err
}

func (l *Lookups) remove(tx *db.Tx, ids []string) error {
	in, list := l.db.In("lookup_id", "$1"), db.Strings(ids)
	for _, table := range []string{"lookup_answers", "lookup_entries", "lookups"} {
		if err := tx.Exec("DELETE FROM "+table+" WHERE "+in, list); err != nil {
			return err
		}
	}
	return nil
}
