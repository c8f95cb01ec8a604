package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// AnyClient is the operator's way past the question whose event it is.
const AnyClient = "*"

// The length of a page, by specification.
const (
	LimitDefault = 20
	LimitMax     = 100
)

// Filter narrows a list. Zero members do not narrow.
type Filter struct {
	Status   string    // one of the statuses
	From, To time.Time // of created_at, both inclusive
	Limit    int       // 1 to LimitMax; 0: LimitDefault
	After    string    // webhook_id of the last row seen
}

// EventRow is one row of the list of events. Its JSON form is part of the API.
type EventRow struct {
	WebhookID   string
	EventType   string
	ResourceID  string
	ResourceURL string
	Status      Status
	Tries       int
	NextTryAt   time.Time // zero: none is planned, or one is under way
	LastStatus  int       // 0: no reply yet
	CreatedAt   time.Time
}

// MarshalJSON writes the members of the specification; what is not there is null.
func (e EventRow) MarshalJSON() ([]byte, error) {
	row := struct {
		WebhookID   string  `json:"webhook_id"`
		EventType   string  `json:"event_type"`
		ResourceID  string  `json:"resource_id"`
		ResourceURL string  `json:"resource_url"`
		Status      Status  `json:"status"`
		Tries       int     `json:"tries"`
		NextTryAt   *string `json:"next_try_at"`
		LastStatus  *int    `json:"last_status"`
		CreatedAt   string  `json:"created_at"`
	}{e.WebhookID, e.EventType, e.ResourceID, e.ResourceURL, e.Status, e.Tries, nil, nil, e.CreatedAt.UTC().Format(timeLayout)}
	if !e.NextTryAt.IsZero() {
		next := e.NextTryAt.UTC().Format(timeLayout)
		row.NextTryAt = &next
	}
	if e.LastStatus != 0 {
		row.LastStatus = &e.LastStatus
	}
	return json.Marshal(row)
}

// List answers a client's events, or everybody's with [AnyClient], newest first,
// and the cursor of the next page.
func (h *Hooks) List(ctx context.Context, clientID string, f Filter) (rows []EventRow, next string, err error) {
	if f.Limit == 0 {
		f.Limit = LimitDefault
	}
	if err := f.check(); err != nil {
		return nil, "", err
	}
	where, args := f.conditions(clientID)
	err = h.cfg.DB.Read(ctx, func(r db.Reader) (err error) {
		rows, err = db.Collect(r, h.scanRow, "SELECT "+rowColumns+" FROM "+eventsTable+" WHERE "+where+
			" ORDER BY webhook_id DESC LIMIT "+strconv.Itoa(f.Limit+1), args...)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list events: %w", err)
	}
	if len(rows) > f.Limit {
		rows = rows[:f.Limit]
		next = rows[f.Limit-1].WebhookID
	}
	return rows, next, nil
}

func (f Filter) check() error {
	var wrong []fault.Fault
	if f.Limit < 1 || f.Limit > LimitMax {
		wrong = append(wrong, fault.At("limit", fault.FieldNotValid, "must be from 1 to %d", LimitMax))
	}
	if f.Status != "" && !Status(f.Status).valid() {
		wrong = append(wrong, fault.At("status", fault.FieldNotValid, "must be %s, %s, %s or %s", Pending, Delivered,
			Discarded, Unsubscribed))
	}
	if f.After != "" && !ValidID(f.After) {
		wrong = append(wrong, fault.At("cursor", fault.FieldNotValid, "is not a valid cursor"))
	}
	if len(wrong) > 0 {
		return fault.New(fault.Invalid, "invalid list request").With(wrong...)
	}
	return nil
}

// conditions narrow by the webhook_id alone where they can: it begins with the
// time of creation.
func (f Filter) conditions(clientID string) (string, []any) {
	var where []string
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, condition+" $"+strconv.Itoa(len(args)))
	}
	if clientID != AnyClient {
		add("client_id =", clientID)
	}
	if f.Status != "" {
		add("status =", f.Status)
		if Status(f.Status) != Delivered {
			where = append(where, "status <> 'delivered'") // the words of the index of what is not delivered
		}
	}
	if !f.From.IsZero() {
		add("webhook_id >=", idFrom(f.From))
	}
	if !f.To.IsZero() {
		add("webhook_id <", idFrom(f.To.Truncate(time.Second).Add(time.Second))) // the second it prints is meant as a whole
	}
	if f.After != "" {
		add("webhook_id <", f.After)
	}
	if len(where) == 0 {
		return "1 = 1", nil
	}
	return strings.Join(where, " AND "), args
}

func (h *Hooks) scanRow(scan func(...any) error) (e EventRow, err error) {
	var path string
	var due, held *int64
	var last *int
	var created int64
	err = scan(&e.WebhookID, &e.EventType, &e.ResourceID, &path, &e.Status, &e.Tries, &due, &held, &last, &created)
	e.ResourceURL, e.CreatedAt = h.resourceURL(path), db.FromMicros(created)
	if due != nil && held == nil {
		e.NextTryAt = db.FromMicros(*due)
	}
	if last != nil {
		e.LastStatus = *last
	}
	return e, err
}

func unknownEvent() error {
	return fault.New(fault.NotFound, "unknown webhook_id").
		With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "unknown webhook_id"})
}

// stored is what Redeliver and Tries read of an event.
type stored struct {
	clientID, event string
	firstTry        *string
}

func readEvent(r db.Reader, clientID, webhookID string) (e stored, err error) {
	err = r.Row(eventSQL, webhookID).Scan(&e.clientID, &e.event, &e.firstTry)
	if errors.Is(err, db.ErrNoRows) || err == nil && clientID != AnyClient && e.clientID != clientID {
		return stored{}, unknownEvent()
	}
	return e, err
}

// Redeliver sends an event again, whatever became of it: at once, with its
// webhook_id, at the beginning of a fresh ladder; while a try is under way, when
// that has ended. A client's own event, or any
// with [AnyClient]; unknown and foreign ones are fault.NotFound. Without an
// address for the event's type it is fault.Conflict.
func (h *Hooks) Redeliver(ctx context.Context, clientID, webhookID string) error {
	if !ValidID(webhookID) {
		return unknownEvent()
	}
	return h.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		e, err := readEvent(tx, clientID, webhookID)
		if err != nil {
			return err
		}
		if _, ok, err := h.cfg.Target(tx.Context(), e.clientID, e.event); err != nil {
			return fmt.Errorf("find the URL of %s: %w", webhookID, err)
		} else if !ok {
			return fault.New(fault.Conflict, "no URL is configured for %s", e.event).
				With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: "have a URL configured, then try again"})
		}
		tx.WakeOld(eventsTable)
		return tx.ExecOne(redeliverSQL, webhookID, db.Micros(tx.Now()))
	})
}

// Tries answers the record of every try of an event, oldest first. A client's own
// event, or any with [AnyClient]; unknown and foreign ones are fault.NotFound.
func (h *Hooks) Tries(ctx context.Context, clientID, webhookID string) (tries []Try, err error) {
	if !ValidID(webhookID) {
		return nil, unknownEvent()
	}
	err = h.cfg.DB.Read(ctx, func(r db.Reader) error {
		tries = nil
		e, err := readEvent(r, clientID, webhookID)
		if err != nil {
			return err
		}
		if e.firstTry != nil {
			t, err := decodeTry(*e.firstTry)
			if err != nil {
				return err
			}
			tries = append(tries, t)
		}
		more, err := db.Collect(r, func(scan func(...any) error) (Try, error) {
			var text string
			if err := scan(&text); err != nil {
				return Try{}, err
			}
			return decodeTry(text)
		}, triesSQL, webhookID)
		tries = append(tries, more...)
		return err
	})
	return tries, err
}
