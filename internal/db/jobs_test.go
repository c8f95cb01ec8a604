package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// errand is a job of these tests.
type errand struct {
	Name string `json:"name"`
}

func (errand) Kind() string { return "errand" }

// runner works errands and tells which.
type runner struct {
	river.WorkerDefaults[errand]
	ran  chan string
	work func(ctx context.Context) error
}

func (r *runner) Work(ctx context.Context, job *river.Job[errand]) error {
	r.ran <- job.Args.Name
	if r.work != nil {
		return r.work(ctx)
	}
	return nil
}

func jobsOf(r *runner, periodic ...*river.PeriodicJob) db.Jobs {
	workers := river.NewWorkers()
	river.AddWorker(workers, r)
	return db.Jobs{Workers: workers, Periodic: periodic}
}

// stopJobs stops the job engine, which waits for nothing when no job runs.
func stopJobs(t *testing.T, d *db.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	must(t, d.StopJobs(ctx))
}

func enqueue(d *db.DB, name string, err error) error {
	return d.Write(context.Background(), func(tx *db.Tx) error {
		tx.Enqueue(errand{Name: name}, nil)
		return err
	})
}

func hear(t *testing.T, ran <-chan string, want string) {
	t.Helper()
	select {
	case got := <-ran:
		if got != want {
			t.Fatalf("job %q ran, want %q", got, want)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("job %q did not run", want)
	}
}

func TestJobRunsIfAndOnlyIfItsWriteCommits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := &runner{ran: make(chan string, 9)}
		must(t, enqueue(d, "before the start", nil))
		must(t, d.StartJobs(context.Background(), jobsOf(r)))
		if err := d.StartJobs(context.Background(), jobsOf(r)); err == nil {
			t.Error("the job engine was started twice")
		}
		hear(t, r.ran, "before the start")
		if err := enqueue(d, "lost", errors.New("no")); err == nil {
			t.Error("a failing write was acknowledged")
		}
		must(t, enqueue(d, "while it runs", nil))
		hear(t, r.ran, "while it runs")
		stopJobs(t, d)
		stopJobs(t, d) // twice does nothing
		must(t, enqueue(d, "after the stop", nil))
		must(t, d.StartJobs(context.Background(), jobsOf(r)))
		hear(t, r.ran, "after the stop")
		stopJobs(t, d)
		if len(r.ran) > 0 {
			t.Errorf("job %q ran, too", <-r.ran)
		}
	})
}

func TestJobSurvivesARestart(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one job after the other")
	for name, url := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLiteURL, "postgres": dbtest.MigratedURL} {
		t.Run(name, func(t *testing.T) {
			address := url(t)
			first := dbtest.Open(t, db.Config{URL: address})
			begun := &runner{ran: make(chan string, 9), work: func(ctx context.Context) error {
				<-ctx.Done() // until it is cancelled
				return ctx.Err()
			}}
			must(t, first.StartJobs(context.Background(), jobsOf(begun)))
			must(t, enqueue(first, "interrupted", nil))
			hear(t, begun.ran, "interrupted")
			hurry, cancel := context.WithCancel(context.Background())
			cancel()
			if err := first.StopJobs(hurry); err != nil && !errors.Is(err, context.DeadlineExceeded) { // a slow machine needs longer than it has
				t.Error(err)
			}
			for count(t, first, "SELECT count(*) FROM river_job WHERE state = 'running'") > 0 {
				time.Sleep(time.Millisecond) // River has no signal to give
			}
			must(t, enqueue(first, "not begun", nil))
			must(t, first.Close())

			second := dbtest.Open(t, db.Config{URL: address})
			again := &runner{ran: make(chan string, 9)}
			must(t, second.StartJobs(context.Background(), jobsOf(again)))
			defer stopJobs(t, second)
			seen := map[string]bool{<-again.ran: true, <-again.ran: true}
			if !seen["interrupted"] || !seen["not begun"] {
				t.Errorf("after the restart ran %v", seen)
			}
		})
	}
}

func TestPeriodicJobRuns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := &runner{ran: make(chan string, 99)}
		must(t, d.StartJobs(context.Background(), jobsOf(r, river.NewPeriodicJob(river.PeriodicInterval(time.Hour),
			func() (river.JobArgs, *river.InsertOpts) { return errand{Name: "tick"}, nil }, &river.PeriodicJobOpts{RunOnStart: true}))))
		defer stopJobs(t, d)
		hear(t, r.ran, "tick")
	})
}

func TestGuestWorksNoJobs(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	server := dbtest.Open(t, db.Config{URL: url})
	guest := dbtest.Open(t, db.Config{URL: url, Guest: true})
	r := &runner{ran: make(chan string, 9)}
	if err := guest.StartJobs(context.Background(), jobsOf(r)); err == nil {
		t.Error("a guest works jobs")
	}
	must(t, enqueue(guest, "from a guest", nil))
	must(t, server.StartJobs(context.Background(), jobsOf(r)))
	defer stopJobs(t, server)
	hear(t, r.ran, "from a guest")
}
