package onboarding_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
	"tributary/internal/schema"
	"tributary/internal/secret"
)

// childVariable makes the test binary a program that works jobs until it is
// killed: database, authority and the job's body follow.
const childVariable = "TRIBUTARY_ONBOARDING_TEST_CHILD"

// workUntilKilled onboards one company at an authority that never answers.
func workUntilKilled() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	ctx := context.Background()
	d, err := db.Open(ctx, db.Config{URL: os.Getenv(childVariable)})
	fail(err)
	atlas, err := country.NewAtlas(country.AtlasConfig{
		Packs:     []country.Pack{filing("ES", nil)},
		Addresses: map[string]country.Addresses{"ES": {Test: os.Getenv(childVariable + "_OFFICE")}},
	})
	fail(err)
	c := onboarding.New(onboarding.Config{DB: d, Atlas: atlas, BaseURL: base})
	go func() { fail(c.Run(ctx)) }()
	e, err := c.Create(ctx, client, false, encode(company()))
	fail(err)
	fmt.Println(e.Data.JobID)
	select {}
}

func TestAJobSurvivesAKill(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "programs beside this one")
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d, err := db.Open(t.Context(), db.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := schema.Migrate(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		asked, hang := make(chan string), make(chan struct{})
		o := newOffice(t)
		o.answers(func(call int64, supplier string) int {
			asked <- supplier
			if call == 1 {
				<-hang
			}
			return http.StatusOK
		})
		job, first := startAndKill(t, url, o, asked)
		close(hang)

		w := newWorld(t, dbtest.Open(t, db.Config{URL: url}))
		w.office.answers(func(_ int64, supplier string) int { asked <- supplier; return http.StatusOK })
		if e, err := w.Job(t.Context(), client, job); err != nil || e.Status != onboarding.Processing {
			t.Fatalf("after the kill: %+v %v", e, err)
		}
		w.start()
		if second := <-asked; second != first {
			t.Errorf("the authority heard of company %s, then of %s", first, second)
		}
		<-w.ended
		e, err := w.Job(t.Context(), client, job)
		if err != nil || e.Status != onboarding.Success || e.Data.ID != first {
			t.Errorf("%+v %v", e, err)
		}
		if page, _, err := w.List(t.Context(), client, 0, ""); err != nil || len(page) != 1 {
			t.Errorf("%d companies %v", len(page), err)
		}
	})
}

// startAndKill lets another process take the job, waits until its authority is
// asked, and kills it.
func startAndKill(t *testing.T, url string, o *office, asked chan string) (job, supplier string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+url, childVariable+"_OFFICE="+o.URL)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	supplier = <-asked
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out) // until it is gone
	_ = cmd.Wait()                  // it was killed
	return strings.TrimSpace(line), supplier
}

func TestAClaimedJobIsLeftToItsHolder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		job := w.create(company())
		if claimed, err := w.Abandon(t.Context(), job); err != nil || !claimed {
			t.Fatal(claimed, err)
		}
		if _, err := w.WorkNow(t.Context(), job); err != nil || w.office.calls.Load() != 0 {
			t.Errorf("a second worker worked: %v", err)
		}
		expire(t, w)
		if e := w.settle(job); e.Status != onboarding.Success {
			t.Errorf("%+v", e)
		}
		if _, err := w.WorkNow(t.Context(), job); err != nil || w.office.calls.Load() != 1 {
			t.Errorf("an ended job was worked again: %v", err)
		}
	})
}

func TestAJobThatKeepsCrashingIsGivenUpWithAnAlert(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		job := w.create(company())
		for i := range onboarding.CrashesMax {
			if claimed, err := w.Abandon(t.Context(), job); err != nil || !claimed {
				t.Fatal(i, claimed, err)
			}
			expire(t, w)
		}
		e := w.settle(job)
		if e.Status != onboarding.Failed || len(e.Errors) != 1 || e.Errors[0].Code != "internal_error" ||
			w.office.calls.Load() != 0 {
			t.Errorf("%+v, %d calls", e, w.office.calls.Load())
		}
		var open []alert.Alert
		err := d.Read(t.Context(), func(r db.Reader) (err error) {
			open, err = alert.List(r, alert.Filter{Open: true, Name: alert.JobDiscarded})
			return err
		})
		if err != nil || len(open) != 1 || open[0].Subject != job {
			t.Errorf("%+v %v", open, err)
		}
	})
}

func TestTroubleOfOursIsNoCrash(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	down := true
	w := newWorld(t, dbtest.SQLite(t), func(cfg *onboarding.Config) {
		inner := cfg.Sealer
		cfg.Sealer = func(ctx context.Context, clientID string) (s sealer, err error) {
			if down {
				return nil, context.DeadlineExceeded
			}
			return inner(ctx, clientID)
		}
	})
	down = false
	job := w.create(company("tax_credentials.password", "x"))
	down = true
	for range onboarding.CrashesMax + 2 {
		if _, err := w.WorkNow(t.Context(), job); err == nil {
			t.Fatal("the key was not needed")
		}
	}
	down = false
	if e := w.settle(job); e.Status != onboarding.Success {
		t.Errorf("%+v", e)
	}
}

type sealer = *secret.Sealer
