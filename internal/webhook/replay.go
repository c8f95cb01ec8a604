package webhook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
)

// replaySet is how many events one step sends again: a step is one write, and
// the writer must soon be free for others.
const replaySet = 500

// replaySpanMax is the longest stretch of one replay; a longer one is a mistake more often than a wish.
const replaySpanMax = 366 * 24 * time.Hour

func (w Window) check() error {
	var wrong []fault.Fault
	if w.ClientID == "" || w.ClientID == AnyClient {
		wrong = append(wrong, fault.At("client_id", fault.FieldRequired, "is required"))
	}
	if w.Status != "" && !w.Status.valid() {
		wrong = append(wrong, fault.At("status", fault.FieldNotValid, "must be %s, %s, %s or %s", Pending, Delivered,
			Discarded, Unsubscribed))
	}
	switch {
	case w.From.IsZero() || w.To.IsZero():
		wrong = append(wrong, fault.At("from", fault.FieldRequired, "and to are required"))
	case !w.From.Before(w.To):
		wrong = append(wrong, fault.At("to", fault.FieldNotValid, "must be after from"))
	case w.To.Sub(w.From) > replaySpanMax:
		wrong = append(wrong, fault.At("to", fault.FieldNotValid, "must be within a year of from"))
	}
	if len(wrong) > 0 {
		return fault.New(fault.Invalid, "invalid time range").With(wrong...)
	}
	return nil
}

// Replay is a window that is being sent again, or was.
type Replay struct {
	ID                 string
	Window             Window
	By                 string
	Sent               int64 // events made due again so far
	StartedAt, EndedAt time.Time
}

const replaysTable = "webhook_replays"

// replaysAtOnce is how many replays a node works at the same time, one of each client.
const replaysAtOnce = 4

var replayQueue = &lease.Queue[struct{}]{Table: replaysTable, ID: "replay_id", Key: "client_id",
	Longest: fmt.Sprint(time.Hour.Microseconds())} // it never pauses

// Replay sends all events of a window again, oldest first, whatever became of
// them: each with its webhook_id, at the beginning of a fresh ladder. Events
// without an address stay as they are. by is who asked; also joins the commit
// that begins it, for whoever keeps a log, and may be nil.
//
// Failure policy: a replay is a leased row. A step makes its events due and moves
// the row's position in one commit that carries the lease's token, so a worker
// that dies or has a rival repeats nothing and leaves nothing out. The window ends at the latest now: what happens
// later is not in it.
func (h *Hooks) Replay(ctx context.Context, w Window, by string, also func(tx *db.Tx) error) (replayID string, err error) {
	if now := h.cfg.DB.Now(); w.To.After(now) {
		w.To = now
	}
	if err := w.check(); err != nil {
		return "", err
	}
	replayID = NewID()
	err = h.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Insert(replaysTable,
			"replay_id,client_id,event_type,status,from_at,to_at,asked_by,position,sent,started_at,due_at",
			[]any{replayID, w.ClientID, w.EventType, string(w.Status), db.Micros(w.From), db.Micros(w.To), by, "", 0,
				db.Micros(tx.Now()), db.Micros(tx.Now())}); err != nil {
			return err
		}
		tx.Wake(replaysTable)
		if also == nil {
			return nil
		}
		return also(tx)
	})
	if err != nil {
		return "", fmt.Errorf("start a replay: %w", err)
	}
	return replayID, nil
}

// runReplays works replays until ctx ends, clients in turns.
func (h *Hooks) runReplays(ctx context.Context) error {
	pump := &lease.Pump[struct{}]{DB: h.cfg.DB, Queue: replayQueue, Log: h.cfg.Log, Poll: h.cfg.Poll, Grace: h.cfg.Grace,
		InFlight: replaysAtOnce, Room: func(string) int {
			return 1
		},
		Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
			for done := false; !done && ctx.Err() == nil; {
				var err error
				if done, err = h.replayStep(ctx, l); err != nil {
					if !errors.Is(err, db.ErrStale) && ctx.Err() == nil {
						h.cfg.Log.Warn("a replay continues when its lease expires", "replay_id", l.ID, "error", err)
					}
					return
				}
			}
		}}
	return pump.Run(ctx)
}

// replayStep makes the next events due again; true when there are no more.
func (h *Hooks) replayStep(ctx context.Context, l *lease.Lease[struct{}]) (done bool, err error) {
	err = h.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		done = false
		var position string
		if err := l.Guard(tx); err != nil {
			return err
		}
		w, err := scanReplay(tx.Row(replaySQL+" WHERE replay_id = $1", l.ID).Scan, &position)
		if err != nil {
			return err
		}
		where, args := w.Window.conditions(position)
		events, err := db.Collect(tx, func(scan func(...any) error) (e replayed, err error) { return e, scan(&e.id, &e.event) },
			"SELECT webhook_id, event_type FROM "+eventsTable+" WHERE "+where+" ORDER BY webhook_id LIMIT "+
				strconv.Itoa(replaySet), args...)
		if err != nil {
			return err
		}
		if done = len(events) < replaySet; done {
			if err := tx.ExecOne("UPDATE webhook_replays SET ended_at = $1 WHERE replay_id = $2", db.Micros(tx.Now()),
				l.ID); err != nil {
				return err
			}
			if err := l.Finish(tx, time.Time{}); err != nil {
				return err
			}
		}
		if len(events) == 0 {
			return nil
		}
		due := h.dueAgain(tx, w.Window, events)
		tx.WakeOld(eventsTable)
		return errors.Join(tx.ExecEachOne(redeliverSQL, due),
			tx.ExecOne("UPDATE webhook_replays SET position = $1, sent = sent + $2 WHERE replay_id = $3",
				events[len(events)-1].id, len(due), l.ID))
	})
	return done, err
}

type replayed struct{ id, event string }

// dueAgain are the events that have an address.
func (h *Hooks) dueAgain(tx *db.Tx, w Window, events []replayed) (rows [][]any) {
	for _, e := range events {
		if _, ok, err := h.cfg.Target(tx.Context(), w.ClientID, e.event); err == nil && !ok {
			continue
		}
		rows = append(rows, []any{e.id, db.Micros(tx.Now())})
	}
	return rows
}

const replaySQL = "SELECT replay_id, client_id, event_type, status, from_at, to_at, asked_by, sent, started_at, ended_at, position FROM webhook_replays"

func scanReplay(scan func(...any) error, position *string) (p Replay, err error) {
	var from, to, started int64
	var ended *int64
	err = scan(&p.ID, &p.Window.ClientID, &p.Window.EventType, &p.Window.Status, &from, &to, &p.By, &p.Sent, &started,
		&ended, position)
	p.Window.From, p.Window.To, p.StartedAt = db.FromMicros(from), db.FromMicros(to), db.FromMicros(started)
	if ended != nil {
		p.EndedAt = db.FromMicros(*ended)
	}
	return p, err
}

// Replays lists replays, the last begun first.
func (h *Hooks) Replays(ctx context.Context, limit int) (list []Replay, err error) {
	err = h.cfg.DB.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (Replay, error) {
			var position string
			return scanReplay(scan, &position)
		}, replaySQL+" ORDER BY started_at DESC LIMIT $1", limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	return list, nil
}
