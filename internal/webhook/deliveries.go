package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
)

// What the operator sees: deliveries by receiver.

// discardedLook bounds the count of a client's discarded events.
const discardedLook = 10_000

// Delivery is how things stand with what has one address: a client and an event type.
type Delivery struct {
	ClientID, EventType string
	URL                 string // without its query, which may hold a token
	Configured          bool   // false: there is no address; URL is empty
	Pending             int
	OldestAt            time.Time // when the first of them was due, or is
	Discarded           int       // of the client, all event types
	DiscardedMore       bool      // there are more than were counted
	Breaker             Breaker   // the breaker, as this node sees it
	Known               bool      // false: this node has sent it nothing since it began
}

// Deliveries answers every address of the clients, and every lane that has
// something pending, by client and event type.
func (h *Hooks) Deliveries(ctx context.Context, clients []string) ([]Delivery, error) {
	all := map[string]*Delivery{}
	of := func(clientID, eventType string) *Delivery {
		lane := laneOf(clientID, eventType)
		if all[lane] == nil {
			all[lane] = h.breaker(ctx, clientID, eventType)
		}
		return all[lane]
	}
	for _, client := range clients {
		for _, event := range EventTypes() {
			of(client, event)
		}
	}
	discarded := map[string]int{}
	err := h.cfg.DB.Read(ctx, func(r db.Reader) error {
		if err := h.cfg.DB.PlanByValue(r); err != nil {
			return err
		}
		if err := pendingByLane(r, of); err != nil {
			return err
		}
		for _, client := range clients {
			var n int
			if err := r.Row(discardedSQL, client, discardedLook).Scan(&n); err != nil {
				return err
			}
			discarded[client] = n
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	var list []Delivery
	for _, d := range all {
		d.Discarded = discarded[d.ClientID]
		d.DiscardedMore = d.Discarded >= discardedLook
		if d.Configured || d.Pending > 0 {
			list = append(list, *d)
		}
	}
	slices.SortFunc(list, func(a, b Delivery) int {
		return strings.Compare(laneOf(a.ClientID, a.EventType), laneOf(b.ClientID, b.EventType))
	})
	return list, nil
}

// Receiver is how things stand with the address of a client's event type,
// without what is pending for it.
func (h *Hooks) Receiver(ctx context.Context, clientID, eventType string) Delivery {
	return *h.breaker(ctx, clientID, eventType)
}

// breaker is what memory knows of a lane.
func (h *Hooks) breaker(ctx context.Context, clientID, eventType string) *Delivery {
	d := &Delivery{ClientID: clientID, EventType: eventType}
	target, ok, err := h.cfg.Target(ctx, clientID, eventType)
	if err != nil || !ok {
		return d
	}
	d.URL, d.Configured = shown(target.URL), true
	d.Breaker, d.Known = h.receivers.breaker(clientID, target.URL)
	return d
}

// breaker is the state of a receiver; false when nothing is remembered of it.
func (rs *receivers) breaker(clientID, target string) (Breaker, bool) {
	rs.mu.Lock()
	r := rs.all[receiverKey{clientID, target}]
	rs.mu.Unlock()
	if r == nil {
		return NewReceiver(rs.pace).Breaker(), false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Breaker(), true
}

func pendingByLane(r db.Reader, of func(clientID, eventType string) *Delivery) error {
	rows, err := r.Query(pendingSQL)
	if err != nil {
		return err
	}
	return rows.Each(func(scan func(...any) error) error {
		var lane string
		var pending int
		var oldest int64
		if err := scan(&lane, &pending, &oldest); err != nil {
			return err
		}
		d := of(splitLane(lane))
		d.Pending, d.OldestAt = pending, db.FromMicros(oldest)
		return nil
	})
}

const (
	pendingSQL = "SELECT lane, count(*), min(due_at) FROM webhook_events WHERE due_at IS NOT NULL GROUP BY lane"

	discardedSQL = `SELECT count(*) FROM (SELECT 1 FROM webhook_events
		WHERE client_id = $1 AND status = 'discarded' AND status <> 'delivered' ORDER BY webhook_id LIMIT $2) AS d`
)

// Window is a stretch of a client's events.
type Window struct {
	ClientID  string    `json:"client_id"`
	EventType string    `json:"event_type,omitempty"` // "": all
	Status    Status    `json:"status,omitempty"`     // "": all
	From      time.Time `json:"from"`                 // of creation, inclusive
	To        time.Time `json:"to"`                   // exclusive
}

// windowCountMax bounds the count; a replay itself has no bound.
const windowCountMax = 100_000

func (w Window) conditions(afterID string) (string, []any) {
	where := "client_id = $1 AND webhook_id >= $2 AND webhook_id < $3 AND webhook_id > $4"
	args := []any{w.ClientID, idFrom(w.From), idFrom(w.To), afterID}
	if w.EventType != "" {
		args = append(args, w.EventType)
		where += " AND event_type = $" + strconv.Itoa(len(args))
	}
	if w.Status != "" {
		args = append(args, string(w.Status))
		where += " AND status = $" + strconv.Itoa(len(args))
		if w.Status != Delivered {
			where += " AND status <> 'delivered'" // the words of the index of what is not delivered
		}
	}
	return where, args
}

// CountWindow answers how many events a replay would send again; more: at least so many.
func (h *Hooks) CountWindow(ctx context.Context, w Window) (n int, more bool, err error) {
	if err := w.check(); err != nil {
		return 0, false, err
	}
	where, args := w.conditions("")
	err = h.cfg.DB.Read(ctx, func(r db.Reader) error {
		if err := h.cfg.DB.PlanByValue(r); err != nil {
			return err
		}
		return r.Row("SELECT count(*) FROM (SELECT 1 FROM "+eventsTable+" WHERE "+where+" ORDER BY webhook_id LIMIT "+strconv.Itoa(windowCountMax+1)+") AS w", args...).Scan(&n)
	})
	if err != nil {
		return 0, false, fmt.Errorf("count events: %w", err)
	}
	return min(n, windowCountMax), n > windowCountMax, nil
}
