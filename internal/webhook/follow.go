package webhook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/db"
)

// Told is an event as those see it who follow what happened.
type Told struct {
	WebhookID  string
	EventType  string
	ResourceID string
	CreatedAt  time.Time
}

// Since answers events behind a webhook_id that were created before an instant,
// oldest first. Events get their ids in the order of time but are not committed
// in it, so whoever must not miss one keeps the instant a little behind.
func (h *Hooks) Since(r db.Reader, afterID string, before time.Time, limit int) ([]Told, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (t Told, err error) {
		var created int64
		err = scan(&t.WebhookID, &t.EventType, &t.ResourceID, &created)
		t.CreatedAt = db.FromMicros(created)
		return t, err
	}, sinceSQL+strconv.Itoa(limit), afterID, idFrom(before))
	if err != nil {
		return nil, fmt.Errorf("follow events: %w", err)
	}
	return list, nil
}

const sinceSQL = `SELECT webhook_id, event_type, resource_id, created_at FROM webhook_events
	WHERE webhook_id > $1 AND webhook_id < $2 ORDER BY webhook_id LIMIT `

// Find answers one event of any client, and whose it is. Unknown: fault.NotFound.
func (h *Hooks) Find(ctx context.Context, webhookID string) (e EventRow, clientID string, err error) {
	if !ValidID(webhookID) {
		return e, "", unknownEvent()
	}
	err = h.cfg.DB.Read(ctx, func(r db.Reader) error {
		e, clientID, err = h.find(r, webhookID)
		return err
	})
	return e, clientID, err
}

func (h *Hooks) find(r db.Reader, webhookID string) (e EventRow, clientID string, err error) {
	e, err = h.scanRow(func(dest ...any) error {
		return r.Row("SELECT "+rowColumns+", client_id FROM "+eventsTable+" WHERE webhook_id = $1",
			webhookID).Scan(append(dest, &clientID)...)
	})
	if errors.Is(err, db.ErrNoRows) {
		return EventRow{}, "", unknownEvent()
	}
	if err != nil {
		return EventRow{}, "", fmt.Errorf("read event %s: %w", webhookID, err)
	}
	return e, clientID, nil
}

// ResourceOf names what an event of any client is about; "" when there is no such event.
func (h *Hooks) ResourceOf(r db.Reader, webhookID string) (resourceID string, err error) {
	if !ValidID(webhookID) {
		return "", nil
	}
	err = r.Row("SELECT resource_id FROM "+eventsTable+" WHERE webhook_id = $1", webhookID).Scan(&resourceID)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return resourceID, err
}

// EventsAt answers a client's events about a resource that were stored by the
// write of one instant. An event's id begins with that instant, so no index by
// resource is needed, which every event would have to pay for.
func (h *Hooks) EventsAt(r db.Reader, clientID, resourceID string, at time.Time) ([]EventRow, error) {
	first := idFrom(at.Truncate(time.Millisecond))
	end := idFrom(at.Truncate(time.Millisecond).Add(time.Millisecond))
	list, err := db.Collect(r, h.scanRow, "SELECT "+rowColumns+" FROM "+eventsTable+
		" WHERE client_id = $1 AND webhook_id >= $2 AND webhook_id < $3 AND resource_id = $4 ORDER BY webhook_id", clientID,
		first, end, resourceID)
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", resourceID, err)
	}
	return list, nil
}
