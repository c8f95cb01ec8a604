// Package alert tells operators what needs a person.
//
// It owns the names of alerts, their table and their metric. It does not own
// the decision that something is wrong: slices raise. Law of [Alerts.Raise]: an
// alert is a count in a metric, a log line with alert=NAME, and one open row
// per name and subject until somebody acknowledges it; raising an open alert
// again counts it up instead of adding another.
//
// Failure policy: [Alerts.Raise] logs and counts even when the row cannot be
// stored, because trouble with storage is itself a reason to raise. An alert of
// [Alerts.RaiseIn] belongs to its write: when that is not stored, what it
// speaks of did not happen, and nothing is logged or counted.
package alert

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
)

// Limits of what is stored; longer texts are cut, an alert is never refused for its length.
const (
	SubjectBytesMax = 200
	MessageBytesMax = 2000
	listMax         = 1000
)

// Alert is one row.
type Alert struct {
	ID             string    `json:"alert_id"`
	Name           Name      `json:"name"`
	Subject        string    `json:"subject"`
	Message        string    `json:"message"` // of the last time
	FirstAt        time.Time `json:"first_at"`
	LastAt         time.Time `json:"last_at"`
	Times          int64     `json:"times"`
	AcknowledgedAt time.Time `json:"acknowledged_at,omitzero"` // zero: open
	AcknowledgedBy string    `json:"acknowledged_by,omitempty"`
}

// Alerts raises and lists. It is safe for concurrent use.
type Alerts struct {
	db     *db.DB
	log    *slog.Logger
	raised *prometheus.CounterVec
}

// New registers the metric tributary_alerts_raised_total, by name. Every name
// begins at zero, so that a monitoring rule sees the first alert as an increase.
func New(d *db.DB, log *slog.Logger, reg prometheus.Registerer) (*Alerts, error) {
	raised := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tributary_alerts_raised_total", Help: "Alerts raised, by name; repetitions of an open alert count.",
	}, []string{"name"})
	if err := reg.Register(raised); err != nil {
		return nil, fmt.Errorf("register the metric of alerts: %w", err)
	}
	for _, m := range Meanings() {
		raised.WithLabelValues(string(m.Name))
	}
	return &Alerts{db: d, log: log, raised: raised}, nil
}

// Raise stores an alert in a write of its own.
func (a *Alerts) Raise(ctx context.Context, name Name, subject, message string) error {
	err := a.db.Write(ctx, func(tx *db.Tx) error { return a.store(tx, name, subject, message) })
	if err != nil {
		err = fmt.Errorf("store alert %s of %q: %w", name, subject, err)
	}
	a.tell(name, subject, message, err)
	return err
}

// RaiseIn stores an alert with the caller's write; it is logged and counted once that is on disk.
func (a *Alerts) RaiseIn(tx *db.Tx, name Name, subject, message string) error {
	if err := a.store(tx, name, subject, message); err != nil {
		return fmt.Errorf("store alert %s of %q: %w", name, subject, err)
	}
	tx.OnCommit(func() { a.tell(name, subject, message, nil) })
	return nil
}

// RaiseOnceIn is RaiseIn for a condition that is met again and again: it does
// nothing when the alert was raised for the subject at or after since, even if
// somebody has acknowledged it meanwhile.
func (a *Alerts) RaiseOnceIn(tx *db.Tx, since time.Time, what Alert) error {
	var times int64
	if err := tx.Row(raisedSinceSQL, string(what.Name), clip(what.Subject, SubjectBytesMax),
		db.Micros(since)).Scan(&times); err != nil {
		return fmt.Errorf("look for alert %s of %q: %w", what.Name, what.Subject, err)
	}
	if times > 0 {
		return nil
	}
	return a.RaiseIn(tx, what.Name, what.Subject, what.Message)
}

func (a *Alerts) store(tx *db.Tx, name Name, subject, message string) error {
	if name.Title() == "" {
		return fmt.Errorf("%q is not in the list of alerts", name)
	}
	now := db.Micros(tx.Now())
	return tx.Exec(raiseSQL, ids.New(), string(name), clip(subject, SubjectBytesMax), clip(message, MessageBytesMax), now)
}

func (a *Alerts) tell(name Name, subject, message string, err error) {
	if name.Title() != "" { // a label from outside the list could be anything, and as many
		a.raised.WithLabelValues(string(name)).Inc()
	}
	attrs := []any{"alert", string(name), "subject", subject}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	a.log.Error(message, attrs...)
}

// Filter narrows a list.
type Filter struct {
	Open  bool // only those nobody has acknowledged
	Name  Name // "" for all
	Limit int  // at most 1000, which is also the default
}

// List returns alerts, the last raised first.
func List(r db.Reader, f Filter) ([]Alert, error) {
	if f.Limit <= 0 || f.Limit > listMax {
		f.Limit = listMax
	}
	all, err := db.Collect(r, scanAlert, listSQL, f.Open, string(f.Name), f.Limit)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return all, nil
}

// Open counts alerts that nobody has acknowledged, by name.
func Open(r db.Reader) (map[Name]int, error) {
	counts := map[Name]int{}
	_, err := db.Collect(r, func(scan func(...any) error) (name Name, err error) {
		var n int
		err = scan(&name, &n)
		counts[name] = n
		return name, err
	}, openSQL)
	if err != nil {
		return nil, fmt.Errorf("count open alerts: %w", err)
	}
	return counts, nil
}

func scanAlert(scan func(...any) error) (Alert, error) {
	var a Alert
	var first, last int64
	var acked *int64
	var by *string
	err := scan(&a.ID, &a.Name, &a.Subject, &a.Message, &first, &last, &a.Times, &acked, &by)
	a.FirstAt, a.LastAt = db.FromMicros(first), db.FromMicros(last)
	if acked != nil {
		a.AcknowledgedAt = db.FromMicros(*acked)
	}
	if by != nil {
		a.AcknowledgedBy = *by
	}
	return a, err
}

// Acknowledge closes an open alert; raised again it opens a new one. Unknown or
// already acknowledged: fault.NotFound.
func Acknowledge(tx *db.Tx, id, who string) error {
	var open int
	if err := tx.Row(countOpenSQL, id).Scan(&open); err != nil {
		return fmt.Errorf("acknowledge alert %s: %w", id, err)
	}
	if open == 0 {
		return fault.New(fault.NotFound, "no open alert with this id").
			With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "the alert is unknown or already acknowledged"})
	}
	return tx.Exec(acknowledgeSQL, db.Micros(tx.Now()), clip(who, SubjectBytesMax), id)
}

// Forget removes alerts that were acknowledged before an instant, in steps that
// keep no other write waiting, and answers how many. Open ones stay.
func (a *Alerts) Forget(ctx context.Context, before time.Time) (int, error) {
	at := db.Micros(before)
	return a.db.Trim(ctx, db.Trim{Table: "alerts", Key: "alert_id", By: "last_at", Before: at,
		Where: "acknowledged_at IS NOT NULL AND acknowledged_at < $1", Args: []any{at}})
}

// clip is [fault.Clip] with a mark where something was cut off.
func clip(text string, bytesMax int) string {
	const mark = "…"
	if len(text) <= bytesMax {
		return fault.Clip(text, bytesMax)
	}
	return fault.Clip(text, bytesMax-len(mark)) + mark
}
