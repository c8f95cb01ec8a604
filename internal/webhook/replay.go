package webhook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// replaySet is how many events one step sends again: a step is one write, and
// the writer must soon be free for others.
const replaySet = 500

// replaySpanMax is the longest stretch of one replay; a longer one is a mistake more often than a wish.
const replaySpanMax = 366 * 24 * time.Hour

func (w Window) check() error {
	var wrong []fault.Fault
	if w.ClientID == "" || w.ClientID == AnyClient {
		wrong = append(wrong, fault.At("client_id", fault.FieldRequired, "is needed"))
	}
	if w.Status != "" && !w.Status.valid() {
		wrong = append(wrong, fault.At("status", fault.FieldNotValid, "must be %s, %s, %s or %s", Pending, Delivered, Discarded, Unsubscribed))
	}
	switch {
	case w.From.IsZero() || w.To.IsZero():
		wrong = append(wrong, fault.At("from", fault.FieldRequired, "and to are needed"))
	case !w.From.Before(w.To):
		wrong = append(wrong, fault.At("to", fault.FieldNotValid, "must be after from"))
	case w.To.Sub(w.From) > replaySpanMax:
		wrong = append(wrong, fault.At("to", fault.FieldNotValid, "must be within a year of from"))
	}
	if len(wrong) > 0 {
		return fault.New(fault.Invalid, "the window is not valid").With(wrong...)
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

// replayJob works on one replay, resumeJob on all that were left behind.
type (
	replayJob struct {
		ReplayID string `json:"replay_id"`
	}
	resumeJob struct{}
)

// Kind names the job.
func (replayJob) Kind() string { return "webhook_replay" }

// Kind names the job.
func (resumeJob) Kind() string { return "webhook_replay_resume" }

// replayResumeEvery is how soon a replay goes on whose worker died.
const replayResumeEvery = time.Minute

// Replay sends all events of a window again, oldest first, whatever became of
// them: each with its webhook_id, at the beginning of a fresh ladder. Events
// without an address stay as they are. by is who asked; also joins the commit
// that begins it, for whoever keeps a log, and may be nil.
//
// Failure policy: the row is the truth, the job only says when to look at it. A
// step makes its events due and moves the row's position from where it was
// read, in one commit, so a worker that dies or has a rival repeats nothing
// and leaves nothing out. The window ends at the latest now: what happens
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
		if err := tx.Insert("webhook_replays", "replay_id,client_id,event_type,status,from_at,to_at,asked_by,position,sent,started_at",
			[]any{replayID, w.ClientID, w.EventType, string(w.Status), db.Micros(w.From), db.Micros(w.To), by, "", 0, db.Micros(tx.Now())}); err != nil {
			return err
		}
		tx.Enqueue(replayJob{replayID}, nil)
		if also == nil {
			return nil
		}
		return also(tx)
	})
	if err != nil {
		return "", fmt.Errorf("begin a replay: %w", err)
	}
	return replayID, nil
}

// Workers adds what works on this slice's jobs.
func (h *Hooks) Workers(w *river.Workers) {
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, job *river.Job[replayJob]) error { return h.replay(ctx, job.Args.ReplayID) }))
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, _ *river.Job[resumeJob]) error { return h.resumeReplays(ctx) }))
}

// Periodic lists what is done again and again.
func (h *Hooks) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(replayResumeEvery),
		func() (river.JobArgs, *river.InsertOpts) { return resumeJob{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})}
}

// resumeReplays goes on with what has not ended, whoever began it.
func (h *Hooks) resumeReplays(ctx context.Context) error {
	var open []string
	err := h.cfg.DB.Read(ctx, func(r db.Reader) (err error) {
		open, err = db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
			"SELECT replay_id FROM webhook_replays WHERE ended_at IS NULL ORDER BY started_at LIMIT 100")
		return err
	})
	if err != nil {
		return fmt.Errorf("look for replays: %w", err)
	}
	for _, id := range open {
		if err := h.replay(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// replay takes steps until the window is through. Another worker that takes
// them at the same time makes this one stop.
func (h *Hooks) replay(ctx context.Context, id string) error {
	for ctx.Err() == nil {
		done, err := h.replayStep(ctx, id)
		if done || errors.Is(err, db.ErrStale) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("replay %s: %w", id, err)
		}
	}
	return ctx.Err()
}

// replayStep makes the next events due again; true when there are no more.
func (h *Hooks) replayStep(ctx context.Context, id string) (done bool, err error) {
	err = h.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		done = false
		var position string
		w, err := scanReplay(tx.Row(replaySQL+" WHERE replay_id = $1 AND ended_at IS NULL", id).Scan, &position)
		if errors.Is(err, db.ErrNoRows) {
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		where, args := w.Window.conditions(position)
		events, err := db.Collect(tx, func(scan func(...any) error) (e replayed, err error) { return e, scan(&e.id, &e.event) },
			"SELECT webhook_id, event_type FROM "+eventsTable+" WHERE "+where+" ORDER BY webhook_id LIMIT "+strconv.Itoa(replaySet), args...)
		if err != nil {
			return err
		}
		if done = len(events) < replaySet; done {
			if err := tx.ExecOne("UPDATE webhook_replays SET ended_at = $1 WHERE replay_id = $2 AND ended_at IS NULL", db.Micros(tx.Now()), id); err != nil {
				return err
			}
		}
		if len(events) == 0 {
			return nil
		}
		due := h.dueAgain(tx, w.Window, events)
		tx.WakeOld(eventsTable)
		return errors.Join(tx.ExecEachOne(redeliverSQL, due),
			tx.ExecOne("UPDATE webhook_replays SET position = $1, sent = sent + $2 WHERE replay_id = $3 AND position = $4", events[len(events)-1].id, len(due), id, position))
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
	err = scan(&p.ID, &p.Window.ClientID, &p.Window.EventType, &p.Window.Status, &from, &to, &p.By, &p.Sent, &started, &ended, position)
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
