package webhook

import (
	"context"
	"time"

	"tributary/internal/db"
	"tributary/internal/lease"
)

// ReplaySet is how many events one step of a replay sends again.
const ReplaySet = replaySet

// RunReplays works replays, and delivers nothing.
func (h *Hooks) RunReplays(ctx context.Context) error { return h.runReplays(ctx) }

// ReplayStep takes one step of a replay.
func (h *Hooks) ReplayStep(ctx context.Context, id string) (done bool, err error) {
	var lease *lease.Lease[struct{}]
	err = h.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec("UPDATE webhook_replays SET due_at = 1, lease_until = NULL WHERE replay_id = $1 AND due_at IS NOT NULL", id); err != nil {
			return err
		}
		lease, err = replayQueue.Take(tx, id)
		return err
	})
	if err != nil || lease == nil {
		return lease == nil, err
	}
	return h.replayStep(ctx, lease)
}

// ReplayNow works on a replay until it has ended.
func (h *Hooks) ReplayNow(ctx context.Context, id string) error {
	for {
		if done, err := h.ReplayStep(ctx, id); done || err != nil {
			return err
		}
	}
}

// Statement is one query with its arguments.
type Statement struct {
	Text string
	Args []any
}

// PageStatements are the queries of the operator's pages.
func PageStatements() []Statement {
	w := Window{ClientID: "c", From: time.Unix(0, 0), To: time.Unix(1e9, 0)}
	plain, plainArgs := w.conditions("")
	w.Status, w.EventType = Discarded, TransactionCompleted
	narrow, narrowArgs := w.conditions("00")
	list := func(clientID string, f Filter) Statement {
		where, args := f.conditions(clientID)
		return Statement{"SELECT " + rowColumns + " FROM webhook_events WHERE " + where +
			" ORDER BY webhook_id DESC LIMIT 20", args}
	}
	return []Statement{
		{pendingSQL, nil}, {discardedSQL, []any{"c", 10}}, {sinceSQL + "10", []any{"", "f"}},
		{"SELECT webhook_id FROM webhook_events WHERE " + plain + " ORDER BY webhook_id LIMIT 500", plainArgs},
		{"SELECT webhook_id FROM webhook_events WHERE " + narrow + " ORDER BY webhook_id LIMIT 500", narrowArgs},
		list("c", Filter{}), list("c", Filter{Status: string(Discarded)}), list(AnyClient, Filter{After: "ff"}),
	}
}
