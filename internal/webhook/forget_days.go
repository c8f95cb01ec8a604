package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/schema"
)

// ForgetDays drops whole days of events, and of their tries, that were over
// before an instant, where the database keeps days apart. A day is over when all
// of its events were closed before it; one that was closed later or is open, or
// is of a client who is held, keeps its day, and ForgetEvents takes what others
// have of it. It answers how many events and tries are gone.
func (h *Hooks) ForgetDays(ctx context.Context, held []string, closedBefore time.Time) (events, tries int, err error) {
	events, wrong := schema.DropDays(ctx, h.cfg.DB, eventsTable, closedBefore,
		func(r db.Reader, day schema.Partition) (bool, error) {
			return stayIn(r, day, held, closedBefore)
		})
	tries, err = schema.DropDays(ctx, h.cfg.DB, "webhook_tries", closedBefore, schema.StaysWith(eventsTable))
	if err := errors.Join(wrong, err); err != nil {
		return events, tries, fmt.Errorf("forget days of events: %w", err)
	}
	return events, tries, nil
}

// stayIn reports whether an event of a day is not over, or its client is held.
func stayIn(r db.Reader, day schema.Partition, held []string, closedBefore time.Time) (bool, error) {
	where, args := day.Covers(1)
	var late int64
	err := r.Row(`SELECT count(*) FROM (SELECT 1 FROM webhook_events WHERE (closed_at IS NULL OR closed_at >= $1 OR due_at IS NOT NULL OR lease_until IS NOT NULL)
		AND `+where+" LIMIT 1) AS late", append([]any{db.Micros(closedBefore)}, args...)...).Scan(&late)
	if err != nil || late > 0 {
		return true, err
	}
	for _, client := range held {
		err := r.Row("SELECT count(*) FROM (SELECT 1 FROM webhook_events WHERE client_id = $1 AND "+where+
			" LIMIT 1) AS theirs", append([]any{client}, args...)...).Scan(&late)
		if err != nil || late > 0 {
			return true, err
		}
	}
	return false, nil
}
