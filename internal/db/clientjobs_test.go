package db_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// bell works client jobs and tells which; a held client's wait until it is rung.
type bell struct {
	ran  chan string
	held chan struct{}
}

func (b *bell) work(ctx context.Context, subject string) (time.Duration, error) {
	b.ran <- subject
	if b.held != nil {
		select {
		case <-b.held:
		case <-ctx.Done():
		}
	}
	return 0, nil
}

func enqueueFor(t *testing.T, d *db.DB, client string, many int) {
	t.Helper()
	jobs := make([]db.ClientJob, many)
	for i := range jobs {
		jobs[i] = db.ClientJob{Client: client, Kind: "errand", Subject: fmt.Sprint(client, " ", i)}
	}
	must(t, d.Write(context.Background(), func(tx *db.Tx) error { return tx.EnqueueFor(jobs...) }))
}

func heard(t *testing.T, ran <-chan string) string {
	t.Helper()
	select {
	case got := <-ran:
		return got
	case <-time.After(2 * time.Minute):
		t.Fatal("no job ran")
	}
	return ""
}

func jobsLeft(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error { return r.Row("SELECT count(*) FROM client_jobs").Scan(&n) }))
	return n
}

func untilNone(t *testing.T, d *db.DB) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); jobsLeft(t, d) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d jobs are left", jobsLeft(t, d))
		}
	}
}

func TestAClientWithManyJobsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := &bell{ran: make(chan string, 9999), held: make(chan struct{})}
		many := 250
		if testing.Short() {
			many = 30
		}
		enqueueFor(t, d, "many", many)
		must(t, d.StartJobs(context.Background(), db.Jobs{Workers: jobsOf(&runner{}).Workers, Clients: map[string]db.ClientWorker{"errand": {Work: b.work, Room: 3}}}))
		defer stopJobs(t, d)
		for range 3 {
			heard(t, b.ran) // and none of them ends
		}
		enqueueFor(t, d, "one", 1)
		if got := heard(t, b.ran); got != "one 0" {
			t.Errorf("%q ran before the only job of another client", got)
		}
		close(b.held)
		untilNone(t, d)
		if n := len(b.ran); n != many-3 {
			t.Errorf("%d jobs ran after that", n)
		}
	})
}

func TestAClientJobIsTriedAgainAndSurvivesAStop(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var mu sync.Mutex
		tries := map[string]int{}
		ran := make(chan string, 99)
		work := func(ctx context.Context, subject string) (time.Duration, error) {
			mu.Lock()
			tries[subject]++
			n := tries[subject]
			mu.Unlock()
			ran <- subject
			switch {
			case subject == "fails 0" && n == 1:
				return 0, errors.New("the disk is full")
			case subject == "waits 0" && n == 1:
				return 10 * time.Millisecond, nil
			case subject == "hangs 0" && n == 1:
				<-ctx.Done()
			}
			return 0, nil
		}
		jobs := db.Jobs{Workers: jobsOf(&runner{}).Workers, Clients: map[string]db.ClientWorker{"errand": {Work: work, Room: 3}}}
		must(t, d.StartJobs(context.Background(), jobs))
		if err := d.Write(context.Background(), func(tx *db.Tx) error {
			return errors.Join(tx.EnqueueFor(db.ClientJob{Client: "lost", Kind: "errand", Subject: "lost"}), errors.New("no"))
		}); err == nil {
			t.Error("a failing write was acknowledged")
		}
		enqueueFor(t, d, "hangs", 1)
		heard(t, ran)
		hurry, cancel := context.WithCancel(context.Background())
		cancel()
		must(t, d.StopJobs(hurry))
		if n := jobsLeft(t, d); n != 1 {
			t.Fatalf("%d jobs after the stop", n)
		}
		enqueueFor(t, d, "fails", 1)
		enqueueFor(t, d, "waits", 1)
		must(t, d.StartJobs(context.Background(), jobs))
		defer stopJobs(t, d)
		untilNone(t, d)
		for _, subject := range []string{"hangs 0", "fails 0", "waits 0"} {
			if tries[subject] != 2 {
				t.Errorf("%s was worked %d times", subject, tries[subject])
			}
		}
		if tries["lost"] != 0 {
			t.Error("a job of a write that failed ran")
		}
	})
}
