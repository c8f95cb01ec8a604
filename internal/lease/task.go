package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
)

// Task is work that is done again and again, by one node among all.
type Task struct {
	name  string
	every time.Duration
	run   func(ctx context.Context) error
}

// Every is a task: its name, which is stored and so must not change, the time from
// the beginning of one run to that of the next, and what is done.
func Every(name string, interval time.Duration, run func(ctx context.Context) error) Task {
	return Task{name, interval, run}
}

// Name of the task.
func (t Task) Name() string { return t.name }

// Run does it once, now.
func (t Task) Run(ctx context.Context) error { return t.run(ctx) }

const (
	tasksTable     = "periodic_tasks"
	taskRetry      = 10 * time.Second // after the first failure, doubled by every further one up to the interval
	taskUnknown    = time.Minute      // a task of another version is left to its nodes
	taskGrace      = 2 * time.Second  // for a run that is under way when the node stops
	taskErrorMax   = 500              // bytes that are kept of an error
	taskStoreLimit = 5 * time.Second
)

var taskQueue = &Queue[int64]{
	Table: tasksTable, ID: "name", Key: "name", Columns: "failures",
	Scan: func(scan func(...any) error) (failures int64, err error) { return failures, scan(&failures) },
}

// RunTasks does tasks until ctx ends. A new one is due at once; one that has run
// keeps its time, however often nodes are started.
//
// Failure policy: a task is a leased row like any other. A run that fails is
// tried again soon and says why in its row; one whose node dies, or stops, is
// begun again by another.
func RunTasks(ctx context.Context, d *db.DB, tasks ...Task) error {
	t := &taskRunner{d: d, tasks: map[string]Task{}}
	for _, one := range tasks {
		t.tasks[one.name] = one
	}
	err := d.Write(ctx, func(tx *db.Tx) error {
		for name, task := range t.tasks {
			if err := tx.Exec("INSERT INTO periodic_tasks (name, due_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name,
				db.Micros(tx.Now())); err != nil {
				return err
			}
			// A clock that was ahead has put it off.
			if err := tx.Exec("UPDATE periodic_tasks SET due_at = $2 WHERE name = $1 AND due_at > $3", name, db.Micros(tx.Now()),
				db.Micros(tx.Now().Add(max(task.every, Term)))); err != nil {
				return err
			}
		}
		tx.Wake(tasksTable)
		return nil
	})
	if err != nil {
		return fmt.Errorf("store periodic tasks: %w", err)
	}
	pump := &Pump[int64]{DB: d, Queue: taskQueue, Work: t.work, InFlight: max(1, len(tasks)), Grace: taskGrace}
	return pump.Run(ctx)
}

type taskRunner struct {
	d     *db.DB
	tasks map[string]Task
}

func (t *taskRunner) work(ctx context.Context, l *Lease[int64]) {
	began := t.d.Now()
	task, known := t.tasks[l.ID]
	if !known {
		t.store(ctx, l, func(tx *db.Tx) error { return l.Finish(tx, tx.Now().Add(taskUnknown)) })
		return
	}
	err := task.run(ctx)
	if ctx.Err() != nil { // the lease is lost, or the node stops: another begins again
		t.store(ctx, l, func(tx *db.Tx) error { return l.Finish(tx, tx.Now()) })
		return
	}
	next, failures, text := began.Add(task.every), int64(0), ""
	if err != nil {
		failures = l.Row + 1
		next = t.d.Now().Add(min(task.every, taskRetry<<min(l.Row, 16)))
		text = err.Error()
		text = text[:min(len(text), taskErrorMax)]
		t.d.Log().Warn("a periodic task failed and is tried again", "task", l.ID, "failures", failures, "at", next, "error", err)
	}
	t.store(ctx, l, func(tx *db.Tx) error {
		err := tx.ExecOne("UPDATE periodic_tasks SET ran_at = $1, took = $2, failures = $3, error = $4 WHERE name = $5 AND lease_token = $6",
			db.Micros(began), tx.Now().Sub(began).Microseconds(), failures, text, l.ID, l.Token)
		if err != nil {
			return err
		}
		return l.Finish(tx, next)
	})
}

func (t *taskRunner) store(ctx context.Context, l *Lease[int64], fn func(tx *db.Tx) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskStoreLimit)
	defer cancel()
	if err := t.d.Write(ctx, fn); err != nil && !errors.Is(err, db.ErrStale) {
		t.d.Log().Warn("a periodic task runs once more", "task", l.ID, "error", err)
	}
}

// TaskState is how a task fares.
type TaskState struct {
	Name     string
	RanAt    time.Time // the last run began; zero: none has ended yet
	Took     time.Duration
	Error    string // of the last run
	Failures int    // in a row
	DueAt    time.Time
	Running  bool
}

// Tasks answers how all tasks fare, by name.
func Tasks(r db.Reader) ([]TaskState, error) {
	return db.Collect(r, func(scan func(...any) error) (s TaskState, err error) {
		var ran, took, due *int64
		if err := scan(&s.Name, &ran, &took, &s.Error, &s.Failures, &due, &s.Running); err != nil {
			return s, err
		}
		if ran != nil {
			s.RanAt, s.Took = db.FromMicros(*ran), time.Duration(*took)*time.Microsecond
		}
		if due != nil {
			s.DueAt = db.FromMicros(*due)
		}
		return s, nil
	}, "SELECT name, ran_at, took, error, failures, due_at, lease_until IS NOT NULL FROM periodic_tasks ORDER BY name")
}
