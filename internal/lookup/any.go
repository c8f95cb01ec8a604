package lookup

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/db"
	"tributary/internal/ids"
)

// What the operator sees: requests of all clients.

// AnyFilter narrows the operator's list. Zero members do not narrow.
type AnyFilter struct {
	ClientID string
	Status   Progress
	Limit    int // 1 to 100; 0: 20
	Cursor   string
}

// AnyBatch is a request with whose it is and how far it has come.
type AnyBatch struct {
	ID, ClientID         string
	Kind                 string // batch or single
	Name                 string
	Status               Progress
	Entries, Answered    int64 // Answered: those a register was asked for
	RequestedAt, EndedAt time.Time
}

// ListAny answers a page of the requests of all clients, newest first, and the
// cursor of the next page.
func (l *Lookups) ListAny(ctx context.Context, f AnyFilter) (page []AnyBatch, next string, err error) {
	var from ids.Cursor
	if f.Limit, from, err = ids.Page(f.Limit, pageDefault, pageMax, f.Cursor); err != nil {
		return nil, "", err
	}
	where, args := "(requested_at, lookup_id) < ($1, $2)", []any{from.At, from.ID}
	for _, narrow := range [][2]string{{"client_id", f.ClientID}, {"status", string(f.Status)}} {
		if narrow[1] != "" {
			args = append(args, narrow[1])
			where += " AND " + narrow[0] + " = $" + strconv.Itoa(len(args))
		}
	}
	err = l.db.Read(ctx, func(r db.Reader) error {
		page, err = db.Collect(r, scanAny, `SELECT lookup_id, client_id, kind, coalesce(name, ''), status, entries, requested_at, ended_at,
			(SELECT count(*) FROM lookup_answers a WHERE a.lookup_id = lookups.lookup_id)
			FROM lookups WHERE `+where+" ORDER BY requested_at DESC, lookup_id DESC LIMIT "+strconv.Itoa(f.Limit+1), args...)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list validations of all clients: %w", err)
	}
	if len(page) > f.Limit {
		page = page[:f.Limit]
		last := page[f.Limit-1]
		next = ids.Cursor{At: db.Micros(last.RequestedAt), ID: last.ID}.String()
	}
	return page, next, nil
}

func scanAny(scan func(...any) error) (b AnyBatch, err error) {
	var requested int64
	var ended *int64
	err = scan(&b.ID, &b.ClientID, &b.Kind, &b.Name, &b.Status, &b.Entries, &requested, &ended, &b.Answered)
	b.RequestedAt = db.FromMicros(requested)
	if ended != nil {
		b.EndedAt = db.FromMicros(*ended)
	}
	return b, err
}
