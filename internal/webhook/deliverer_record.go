package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
)

const (
	recordTimes = 5 // how often a record is tried before the row is left to its lease
	recordAgain = 200 * time.Millisecond
)

// What became of a claimed row.
type kind uint8

const (
	tried     kind = iota // a try was made
	postponed             // not now; nothing is spent
	closed                // there is no address any more
)

// outcome is one write of a claimed row.
type outcome struct {
	*leased
	kind        kind
	client      string
	try         Try
	deliveredAt time.Time
	status      Status
	rung        int
	next        time.Time
	alerts      []raised
}

type raised struct {
	name    alert.Name
	message string
}

func (h *Hooks) postpone(ctx context.Context, a *attempt, delay time.Duration) {
	h.record(ctx, a, outcome{leased: a.leased, kind: postponed, client: a.client, next: h.cfg.DB.Now().Add(delay)})
}

// record stores an outcome, together with others that wait at the same time.
//
// Failure policy: an outcome that cannot be stored is tried a few times, since
// losing it repeats a delivery. A lease that was taken over means that another
// node records its own try; ours is then only in the log.
func (h *Hooks) record(ctx context.Context, a *attempt, o outcome) {
	whole := context.WithoutCancel(ctx)
	var err error
	for n := range recordTimes {
		if _, err = a.gather.Do(whole, o); err == nil || errors.Is(err, db.ErrStale) {
			break
		}
		if n+1 < recordTimes && !pause(ctx, recordAgain) {
			break
		}
	}
	if err != nil {
		h.cfg.Log.Warn("record a delivery attempt: it may be sent again", "client", o.client, "webhook_id", a.ID, "status",
			o.try.Status, "error", err)
	}
}

// pause waits unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// store writes a set of outcomes in one commit.
func (h *Hooks) store(tx *db.Tx, set []outcome) ([]struct{}, error) {
	var records, postpones, closes, tries [][]any
	for _, o := range set {
		switch o.kind {
		case postponed:
			postpones = append(postpones, []any{o.ID, o.Token, db.Micros(o.next)})
		case closed:
			closes = append(closes, []any{o.ID, o.Token, db.Micros(tx.Now())})
		default:
			text, err := encodeTry(o.try)
			if err != nil {
				return nil, fmt.Errorf("record a delivery attempt of %s: %w", o.ID, err)
			}
			number, inline := o.Row.tries+1, any(nil)
			if number == 1 && o.status == Delivered {
				inline = text
			} else {
				tries = append(tries, []any{o.ID, int64(number), text})
			}
			records = append(records, o.arguments(tx.Now(), inline))
		}
	}
	err := errors.Join(tx.UpdateEachOne(recordSQL, byID(records)),
		tx.Insert("webhook_tries", "webhook_id,try,record", tries...),
		tx.UpdateEachOne(postponeSQL, byID(postpones)), tx.UpdateEachOne(closeSQL, byID(closes)))
	if err != nil {
		return nil, err
	}
	for _, o := range set {
		for _, r := range o.alerts {
			if err := h.cfg.Alerts.RaiseIn(tx, r.name, o.client, r.message); err != nil {
				return nil, err
			}
		}
	}
	return make([]struct{}, len(set)), nil
}

// byID puts rows into the order in which a replay asks for theirs: who locks
// several of them at once never waits in a circle.
func byID(rows [][]any) [][]any {
	slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return rows
}

func (o outcome) arguments(now time.Time, inline any) []any {
	var closedAt, next any = db.Micros(now), nil
	if o.status == Pending {
		closedAt, next = nil, db.Micros(o.next)
	}
	return []any{o.ID, o.Token, int64(o.Row.tries + 1), int64(o.try.Status), db.Micros(o.deliveredAt), inline,
		string(o.status), int64(o.rung), closedAt, next}
}

// tryRecord is a try as it is stored.
type tryRecord struct {
	At        int64  `json:"at"` // microseconds
	URL       string `json:"url,omitempty"`
	Address   string `json:"address,omitempty"`
	Status    int    `json:"status,omitempty"`
	Reply     []byte `json:"reply,omitempty"`
	LatencyUS int64  `json:"latency_us"`
	Class     Class  `json:"class,omitempty"`
	Detail    string `json:"detail,omitempty"`
	KeyID     string `json:"kid,omitempty"`
	Hops      int    `json:"hops,omitempty"`
	RetryUS   int64  `json:"retry_after_us,omitempty"`

	Body    []byte      `json:"body,omitempty"`
	Headers [][2]string `json:"headers,omitempty"`
}

func encodeTry(t Try) (string, error) {
	text, err := json.Marshal(tryRecord{
		At: db.Micros(t.At), URL: t.URL, Address: t.Address, Status: t.Status, Reply: t.Reply, LatencyUS: t.Latency.Microseconds(),
		Class: t.Class, Detail: t.Detail, KeyID: t.KeyID, Hops: t.Hops, RetryUS: t.RetryAfter.Microseconds(),
		Body: t.Body, Headers: t.Headers,
	})
	return string(text), err
}

func decodeTry(text string) (Try, error) {
	var r tryRecord
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Try{}, fmt.Errorf("read the record of a delivery attempt: %w", err)
	}
	return Try{
		At: db.FromMicros(r.At), URL: r.URL, Address: r.Address, Status: r.Status, Reply: r.Reply,
		Latency: time.Duration(r.LatencyUS) * time.Microsecond,
		Class:   r.Class, Detail: r.Detail, KeyID: r.KeyID, Hops: r.Hops, RetryAfter: time.Duration(r.RetryUS) * time.Microsecond,
		Body: r.Body, Headers: r.Headers,
	}, nil
}
