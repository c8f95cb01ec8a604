package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
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

// stopSoon stops the job engine, which must not take long.
func stopSoon(t *testing.T, d *db.DB) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	must(t, d.StopJobs(ctx))
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("stopping the job engine took %s", took)
	} else {
		t.Logf("the job engine stopped in %s", took)
	}
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
		stopSoon(t, d)
		stopSoon(t, d) // twice does nothing
		must(t, enqueue(d, "after the stop", nil))
		must(t, d.StartJobs(context.Background(), jobsOf(r)))
		hear(t, r.ran, "after the stop")
		stopSoon(t, d)
		if len(r.ran) > 0 {
			t.Errorf("job %q ran, too", <-r.ran)
		}
	})
}

func TestJobSurvivesARestart(t *testing.T) {
	t.Parallel()
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
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			must(t, first.StopJobs(ctx))
			must(t, enqueue(first, "not begun", nil))
			must(t, first.Close())

			second := dbtest.Open(t, db.Config{URL: address})
			again := &runner{ran: make(chan string, 9)}
			must(t, second.StartJobs(context.Background(), jobsOf(again)))
			defer stopSoon(t, second)
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
		defer stopSoon(t, d)
		hear(t, r.ran, "tick")
	})
}

func TestGuestWorksNoJobs(t *testing.T) {
	url := dbtest.SQLiteURL(t)
	server := dbtest.Open(t, db.Config{URL: url})
	guest := dbtest.Open(t, db.Config{URL: url, Guest: true})
	r := &runner{ran: make(chan string, 9)}
	if err := guest.StartJobs(context.Background(), jobsOf(r)); err == nil {
		t.Error("a guest works jobs")
	}
	must(t, enqueue(guest, "from a guest", nil))
	must(t, server.StartJobs(context.Background(), jobsOf(r)))
	defer stopSoon(t, server)
	hear(t, r.ran, "from a guest")
}
