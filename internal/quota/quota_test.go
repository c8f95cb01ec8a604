package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/leaks"
	"tributary/internal/quota"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// calls makes as many calls as are granted, and answers how many and until when no more are.
func calls(t *testing.T, spend country.Meter, of country.Quota, subject string) (n int, until time.Time) {
	t.Helper()
	for {
		err := spend(context.Background(), of, subject)
		var used *country.Exhausted
		switch {
		case err == nil:
			n++
		case errors.As(err, &used) && errors.Is(err, country.ErrNotTaken):
			return n, used.Until
		default:
			t.Fatal(err)
		}
	}
}

func one(t *testing.T, d *db.DB, text string) (n int64) {
	t.Helper()
	if err := d.Read(t.Context(), func(r db.Reader) error { return r.Row(text).Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// Nine tenths of what is granted are called, by however many nodes, and after a
// restart no more; the next day everything anew, for each subject by itself.
func TestNodesShareWhatIsGranted(t *testing.T) {
	t.Parallel()
	bucharest, err := time.LoadLocation("Europe/Bucharest")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 11, 18, 23, 30, 0, 0, bucharest)
		clock := func() time.Time { return now }
		at := country.Environment{Code: "RO", Live: true}
		day := country.Quota{Name: "day", Per: 24 * time.Hour, Most: 100, Zone: "Europe/Bucharest"}
		first := dbtest.Open(t, db.Config{URL: url})
		second := first // a SQLite file is one process's: what a node remembers is its own all the same
		if strings.HasPrefix(url, "postgres") {
			second = dbtest.Open(t, db.Config{URL: url})
		}
		a, b := quota.New(first).Clock(clock).Of(at), quota.New(second).Clock(clock).Of(at)
		for range 25 {
			if err := errors.Join(a(t.Context(), day, "1"), b(t.Context(), day, "1")); err != nil {
				t.Fatal(err)
			}
		}
		if n := one(t, first, "SELECT used FROM authority_quotas"); n != 50 {
			t.Errorf("%d calls are taken for 50", n)
		}
		again := quota.New(second).Clock(clock).Of(at) // b ended
		left, until := calls(t, again, day, "1")
		if rest, _ := calls(t, a, day, "1"); left != 40 || rest != 0 {
			t.Errorf("%d and %d calls are left instead of 40 and none", left, rest)
		}
		if want := time.Date(2026, 11, 19, 0, 0, 0, 0, bucharest); !until.Equal(want) {
			t.Errorf("until %s instead of %s", until, want)
		}
		if n, _ := calls(t, a, day, "2"); n != 90 {
			t.Errorf("another subject has %d calls", n)
		}
		if n, _ := calls(t, quota.New(first).Clock(clock).Of(country.Environment{Code: "RO"}), day, "1"); n != 90 {
			t.Errorf("another environment has %d calls", n)
		}
		now = now.Add(time.Hour)
		if n, _ := calls(t, a, day, "1"); n != 90 {
			t.Errorf("the next day has %d calls", n)
		}
		if n := one(t, first, "SELECT count(*) FROM authority_quotas"); n != 1 {
			t.Errorf("%d windows are kept", n)
		}
	})
}

// A node that is started again and again loses nothing of a day's calls, and of a minute's
// what is granted in a second.
func TestStartsUseNothingUp(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	now := time.Date(2026, 11, 18, 12, 0, 30, 0, time.UTC)
	for _, q := range []struct {
		country.Quota
		lives, left int
	}{
		{country.Quota{Name: "day", Per: 24 * time.Hour, Most: 1500}, 50, 1300},
		{country.Quota{Name: "minute", Per: time.Minute, Most: 1200}, 4, 1000},
	} {
		life := func() country.Meter {
			return quota.New(d).Clock(func() time.Time { return now }).Of(country.Environment{Code: "RO"})
		}
		for range q.lives {
			if err := life()(t.Context(), q.Quota, "1"); err != nil {
				t.Fatal(err)
			}
		}
		if left, _ := calls(t, life(), q.Quota, "1"); left != q.left {
			t.Errorf("%d of %s are left instead of %d", left, q.Name, q.left)
		}
	}
}

// A thousand calls of a minute cost the store sixty statements, and what is used up none.
func TestCallsAreTakenInBlocks(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	now := time.Date(2026, 11, 18, 12, 0, 30, 0, time.UTC)
	minute := country.Quota{Name: "minute", Per: time.Minute, Most: 1000}
	spend := quota.New(d).Clock(func() time.Time { return now }).Of(country.Environment{Code: "RO"})
	n, until := calls(t, spend, minute, "")
	more, _ := calls(t, spend, minute, "")
	if n != 900 || more != 0 || !until.Equal(now.Add(30*time.Second)) {
		t.Errorf("%d and %d calls until %s", n, more, until)
	}
	if used := one(t, d, "SELECT used FROM authority_quotas"); used != 57*16 {
		t.Errorf("%d are taken, not 57 blocks", used)
	}
	few := country.Quota{Name: "few", Per: time.Minute, Most: 3}
	if n, _ := calls(t, spend, few, ""); n != 3 {
		t.Errorf("of three calls %d are made", n)
	}
}

// Windows that are over go with those that begin.
func TestWindowsThatAreOverGo(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	spend := quota.New(d).Clock(func() time.Time { return now }).Of(country.Environment{Code: "RO"})
	minute := country.Quota{Name: "minute", Per: time.Minute, Most: 10}
	for i := range 30 {
		if err := spend(t.Context(), minute, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(2 * time.Minute)
	for i := range 2 {
		if err := spend(t.Context(), minute, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := one(t, d, "SELECT count(*) FROM authority_quotas"); n != 2 {
		t.Errorf("%d windows are kept", n)
	}
}
