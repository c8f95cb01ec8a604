package webhook

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/db"
)

// KeptDays is how long an event stays after it was closed. Its client can have it
// sent again so long; nobody who missed it comes later than that.
const KeptDays = 90

// forgetSet is how many events one step looks at.
const forgetSet = 100

// ForgetEvents deletes the events of a client, with their tries, that were closed
// before an instant, in steps that keep no other write waiting. It answers how many.
func (h *Hooks) ForgetEvents(ctx context.Context, clientID string, closedBefore time.Time) (int, error) {
	return h.cfg.DB.Trim(ctx, db.Trim{
		Table: eventsTable, Key: "webhook_id", By: "webhook_id", Before: idFrom(closedBefore), // none was closed before it was made
		Of: "client_id = $1", Where: "closed_at IS NOT NULL AND closed_at < $2 AND due_at IS NULL AND lease_until IS NULL",
		Args: []any{clientID, db.Micros(closedBefore)},
		Also: func(tx *db.Tx, keys [][]any) error {
			return tx.ExecEach("DELETE FROM webhook_tries WHERE webhook_id = $1", keys)
		},
	})
}

// ForgetTries removes the records of a client's tries, replies included, that were
// made before an instant, in steps that keep no other write waiting. They are
// diagnostics and may hold personal data; their events stay. It answers how many.
func (h *Hooks) ForgetTries(ctx context.Context, clientID string, before time.Time) (forgotten int, err error) {
	for after := ""; ; {
		old, err := h.oldTries(ctx, clientID, after, before)
		if n := len(old.first) + len(old.later); err == nil && n > 0 {
			err = h.cfg.DB.Write(ctx, func(tx *db.Tx) error {
				if err := tx.ExecEach("UPDATE webhook_events SET first_try = NULL WHERE webhook_id = $1", old.first); err != nil {
					return err
				}
				return tx.ExecEach("DELETE FROM webhook_tries WHERE webhook_id = $1 AND try = $2", old.later)
			})
			if err == nil {
				forgotten += n
			}
		}
		if err != nil {
			return forgotten, fmt.Errorf("forget tries of client %s: %w", clientID, err)
		}
		if after = old.last; old.looked < forgetSet {
			return forgotten, nil
		}
	}
}

// oldTries is what a stretch of events has of them.
type oldTries struct {
	looked int
	last   string
	first  [][]any // webhook_id
	later  [][]any // webhook_id, try
}

func (h *Hooks) oldTries(ctx context.Context, clientID, after string, before time.Time) (old oldTries, err error) {
	err = h.cfg.DB.Read(ctx, func(r db.Reader) error {
		old = oldTries{}
		var ids []string
		rows, err := r.Query(forgettableSQL, clientID, after, idFrom(before), forgetSet)
		if err != nil {
			return err
		}
		err = rows.Each(func(scan func(...any) error) error {
			var record string
			if err := scan(&old.last, &record); err != nil {
				return err
			}
			old.looked, ids = old.looked+1, append(ids, old.last)
			gone, err := madeBefore(record, before)
			if gone {
				old.first = append(old.first, []any{old.last})
			}
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if rows, err = r.Query(oldTriesSQL+h.cfg.DB.In("webhook_id", "$1"), db.Strings(ids)); err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var id, record string
			var try int64
			if err := scan(&id, &try, &record); err != nil {
				return err
			}
			gone, err := madeBefore(record, before)
			if gone {
				old.later = append(old.later, []any{id, try})
			}
			return err
		})
	})
	return old, err
}

// madeBefore reports whether a recorded try is older than an instant; no record is not.
func madeBefore(record string, at time.Time) (bool, error) {
	if record == "" {
		return false, nil
	}
	t, err := decodeTry(record)
	return t.At.Before(at), err
}
