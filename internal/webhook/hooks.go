package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/db"
)

// ErrNoKey says that a client has no key to sign with: its deliveries wait.
var ErrNoKey = errors.New("the client has no key to sign with")

// Config says what the hooks stand on. DB, Alerts, BaseURL, Sender, Target and
// Keys are needed.
type Config struct {
	DB      *db.DB
	Alerts  *alert.Alerts
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: none
	BaseURL string                // public, what resource_url begins with
	Sender  *Sender
	Ladder  Ladder
	Pace    Pace // of every receiver

	// Target says where events of a type go at this instant; false: nowhere. It
	// answers from memory: it is called in write functions.
	Target func(ctx context.Context, clientID, eventType string) (to Target, ok bool, err error)
	// Keys are the keys valid at this instant. While it answers an error nothing is
	// sent for the client and no try is spent.
	Keys func(ctx context.Context, clientID string) (Keys, error)
	// Changed returns a channel that is closed when a target or a key changes next;
	// nil: what waits for a key is looked at every few seconds.
	Changed func() <-chan struct{}

	InFlight int           // tries at the same time, over all receivers
	Poll     time.Duration // how often to look for due deliveries besides being woken; default 1 s
	Grace    time.Duration // how long tries in progress may go on at shutdown; default 5 s
	Now      func() time.Time
	Random   func(n int64) int64 // the ladder's jitter; default math/rand/v2
}

// Target is where events of a type go.
type Target struct {
	URL   string
	Allow []netip.Prefix // private networks that the operator opened to this client's receivers
}

// Notify stores events in the caller's write and wakes the deliverer when that
// is on disk. A common event without a configured address is kept as
// unsubscribed; one of another type is not kept unless the client asked for it.
//
// Failure policy: an event exists if and only if the caller's write does. Where
// the address cannot be told at this moment the event is kept as pending; the
// deliverer asks again at each try.
func (h *Hooks) Notify(tx *db.Tx, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(events))
	now, wake := db.Micros(tx.Now()), false
	for _, e := range events {
		if err := e.check(); err != nil {
			return err
		}
		status, due, closed, series := Pending, any(now), any(nil), db.Null(e.Series)
		if _, ok, err := h.cfg.Target(tx.Context(), e.ClientID, e.Type); err == nil && !ok {
			if !slices.Contains(commonEvents(), e.Type) {
				continue
			}
			status, due, closed, series = Unsubscribed, nil, now, nil
		}
		wake = wake || status == Pending
		rows = append(rows, []any{newEventID(tx.Now(), h.serial.Add(1)), e.ClientID, e.Type, e.ResourceID, e.ResourcePath,
			laneOf(e.ClientID, e.Type), series, string(status), now, closed, due})
	}
	if len(rows) == 0 {
		return nil
	}
	if err := tx.Insert(eventsTable,
		"webhook_id,client_id,event_type,resource_id,resource_path,lane,series,status,created_at,closed_at,due_at",
		rows...); err != nil {
		return fmt.Errorf("store events: %w", err)
	}
	if wake {
		tx.Wake(eventsTable)
	}
	return nil
}

func (h *Hooks) resourceURL(path string) string { return h.base + path }

func trimBase(base string) string { return strings.TrimSuffix(base, "/") }
