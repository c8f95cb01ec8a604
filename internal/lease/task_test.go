package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
)

// runTasks runs tasks until stop is called.
func runTasks(t *testing.T, d *db.DB, tasks ...lease.Task) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- lease.RunTasks(ctx, d, tasks...) }()
	ended := false
	stop = func() {
		if cancel(); !ended {
			ended = true
			must(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

func taskState(t *testing.T, d *db.DB, name string) (found lease.TaskState) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error {
		list, err := lease.Tasks(r)
		for _, s := range list {
			if s.Name == name {
				found = s
			}
		}
		return err
	}))
	return found
}

func untilTask(t *testing.T, d *db.DB, name string, is func(lease.TaskState) bool) lease.TaskState {
	t.Helper()
	for {
		if s := taskState(t, d, name); is(s) {
			return s
		}
		time.Sleep(time.Millisecond) // a task has no signal to give
	}
}

// letDue puts a task's next run into the past.
func letDue(t *testing.T, d *db.DB, name string) {
	t.Helper()
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		tx.Wake("periodic_tasks")
		return tx.ExecOne("UPDATE periodic_tasks SET due_at = 1 WHERE name = $1 AND lease_until IS NULL", name)
	}))
}

func TestATaskRunsAtOnceAndThenInItsTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var runs atomic.Int64
		task := lease.Every("sweep", time.Hour, func(context.Context) error { runs.Add(1); return nil })
		stop := runTasks(t, d, task)
		s := untilTask(t, d, "sweep", func(s lease.TaskState) bool { return !s.RanAt.IsZero() && !s.Running })
		if runs.Load() != 1 || !s.DueAt.Equal(s.RanAt.Add(time.Hour)) || s.Error != "" {
			t.Errorf("%d runs, %+v", runs.Load(), s)
		}
		stop()
		stop = runTasks(t, d, task) // a restart puts nothing forward
		letDue(t, d, "sweep")
		untilTask(t, d, "sweep", func(n lease.TaskState) bool { return n.RanAt.After(s.RanAt) })
		if stop(); runs.Load() != 2 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

func TestATaskThatFailsSaysWhyAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	var works atomic.Bool
	long := errors.New("the disk is full" + strings.Repeat("!", 1000))
	runTasks(t, d, lease.Every("sweep", time.Hour, func(context.Context) error {
		if works.Load() {
			return nil
		}
		return long
	}))
	for failures := 1; failures <= 3; failures++ {
		s := untilTask(t, d, "sweep", func(s lease.TaskState) bool { return s.Failures == failures && !s.Running })
		if wait := s.DueAt.Sub(d.Now()); s.Error != long.Error()[:500] || wait > 10*time.Second<<(failures-1) {
			t.Errorf("%d: %+v, in %s", failures, s, wait)
		}
		works.Store(failures == 3)
		letDue(t, d, "sweep")
	}
	if s := untilTask(t, d, "sweep", func(s lease.TaskState) bool {
		return s.Failures == 0 && !s.Running
	}); s.Error != "" {
		t.Errorf("%+v", s)
	}
}

// Of all nodes one runs a task; when it stops in the middle, another begins again.
func TestOneNodeRunsATaskAndAnotherGoesOn(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedURL(t)
	first, second := dbtest.Open(t, db.Config{URL: url}), dbtest.Open(t, db.Config{URL: url})
	var running, most, runs atomic.Int64
	begun := make(chan string, 8)
	task := func(node string, wait bool) lease.Task {
		return lease.Every("sweep", time.Hour, func(ctx context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			runs.Add(1)
			begun <- node
			if wait {
				<-ctx.Done()
			}
			return ctx.Err()
		})
	}
	stop := runTasks(t, first, task("first", true))
	<-begun
	runTasks(t, second, task("second", false))
	if s := taskState(t, second, "sweep"); !s.Running {
		t.Errorf("%+v", s)
	}
	stop()
	if node := <-begun; node != "second" {
		t.Errorf("%s went on", node)
	}
	untilTask(t, second, "sweep", func(s lease.TaskState) bool { return !s.RanAt.IsZero() })
	if runs.Load() != 2 || most.Load() != 1 {
		t.Errorf("%d runs, %d at the same time", runs.Load(), most.Load())
	}
}

// A task of another version is left to the nodes that know it.
func TestAnUnknownTaskIsLeftAlone(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Insert("periodic_tasks", "name,due_at", []any{"later", 1})
	}))
	runTasks(t, d)
	s := untilTask(t, d, "later", func(s lease.TaskState) bool { return !s.Running && s.DueAt.After(d.Now()) })
	if !s.RanAt.IsZero() || s.Error != "" {
		t.Errorf("%+v", s)
	}
	guest := dbtest.Open(t, db.Config{URL: dbtest.MigratedURL(t), NoWorkers: true})
	if err := lease.RunTasks(t.Context(), guest); err == nil {
		t.Error("a guest runs tasks")
	}
}
