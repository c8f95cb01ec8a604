package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/account"
	"tributary/internal/exchange"
	"tributary/internal/schema"
	"tributary/internal/webhook"
)

// days makes room for the days to come and drops those that are over for every
// client, where the database keeps days apart. What has shorter days, or shares
// a day with somebody who is held, goes row by row after it.
//
// Failure policy: who is held must be known of all clients, or no day goes; none does while the clock is doubted.
func (r *Retention) days(ctx context.Context, clients []account.Client, now time.Time, waits bool) (n Counts, err error) {
	made, failed := schema.MakePartitions(ctx, r.cfg.DB, now)
	if made > 0 {
		r.cfg.Log.Info("partitions created for the coming days", "partitions", made)
	}
	if waits {
		return n, failed
	}
	var held []exchange.Held
	var clientsHeld []string
	for _, c := range clients {
		if c.Config.LegalHold {
			held, clientsHeld = append(held, exchange.Held{Scope: c.ID}), append(clientsHeld, c.ID)
			continue
		}
		suppliers, err := r.held(ctx, c.ID)
		if err != nil {
			return n, errors.Join(failed, fmt.Errorf("list holds of %s: %w", c.ID, err))
		}
		if len(suppliers) > 0 {
			held = append(held, exchange.Held{Scope: c.ID, Suppliers: suppliers})
		}
	}
	n.Calls, n.Links, err = exchange.ForgetDays(ctx, r.cfg.DB, held, now.AddDate(0, 0, -account.DiagnosticDaysMax))
	var events error
	n.Events, n.Tries, events = r.cfg.Hooks.ForgetDays(ctx, clientsHeld, now.AddDate(0, 0, -webhook.KeptDays))
	if n != (Counts{}) {
		r.cfg.Log.Info("retention dropped whole days", "calls", n.Calls, "links", n.Links, "events", n.Events, "tries", n.Tries)
	}
	return n, errors.Join(failed, err, events)
}
