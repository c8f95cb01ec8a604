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
	"tributary/internal/fault"
)

// endless is a question that takes longer than anybody waits; the second gives
// its first row at once and the next one never.
func endless(engine string) []string {
	if engine == "postgres" {
		return []string{"SELECT count(*)::text FROM generate_series(1, 100000000000) AS n", "SELECT 'one' UNION ALL SELECT pg_sleep(3600)::text"}
	}
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
	return []string{"SELECT count(*) || '' FROM (" + numbers + ")", "SELECT 'one' UNION ALL SELECT i || '' FROM (" + numbers + ") WHERE i < 0"}
}

// Reads of callers from outside end after their budget, and however many there
// are, commits, claims and the program's own reads do not wait for them.
func TestSlowReadsOfVisitorsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const visitors, budget, soon = 16, 2 * time.Second, 1500 * time.Millisecond
		q := work(t, d)
		stalls := dbtest.WatchStalls(t)
		outside := db.WithReadBudget(t.Context(), budget)
		var wg sync.WaitGroup
		for i := range visitors {
			wg.Go(func() {
				asked := time.Now()
				err := d.Read(outside, func(r db.Reader) error {
					_, err := db.Collect(r, func(scan func(...any) error) (text string, err error) { return text, scan(&text) }, endless(d.Engine())[i%2])
					return err
				})
				if fault.KindOf(err) != fault.Unavailable {
					t.Errorf("a read that takes too long answers %v", err)
				}
				if took := time.Since(asked); took-stalls.Total() > 2*budget+soon {
					t.Errorf("a read with a budget of %s ended after %s", budget, took)
				}
			})
		}
		var slowest [3]time.Duration
		began := time.Now()
		for i := 0; time.Since(began) < budget; i++ {
			measure := func(what int, fn func() error) {
				asked, stalled := time.Now(), stalls.Total()
				must(t, fn())
				slowest[what] = max(slowest[what], time.Since(asked)-(stalls.Total()-stalled))
			}
			measure(0, func() error {
				return d.Write(t.Context(), func(tx *db.Tx) error {
					return tx.Insert("work", "id,fair,due_at", []any{fmt.Sprint(i), "key", db.Micros(tx.Now())})
				})
			})
			measure(1, func() error {
				leases, _, err := q.Due(t.Context(), d, db.Claim{Max: 1, Fair: true})
				if err == nil && len(leases) != 1 {
					err = fmt.Errorf("%d leases", len(leases))
				}
				return err
			})
			measure(2, func() error {
				return d.Read(t.Context(), func(r db.Reader) error { return r.Row("SELECT count(*) FROM work").Scan(new(int)) })
			})
		}
		wg.Wait()
		for i, what := range []string{"a commit", "a claim", "a read of our own"} {
			if slowest[i] > soon {
				t.Errorf("beside %d slow reads %s took %s", visitors, what, slowest[i])
			}
		}
		t.Logf("slowest commit %s, claim %s, own read %s", slowest[0], slowest[1], slowest[2])
		// The connections are as good as before.
		for range visitors {
			must(t, d.Read(outside, func(r db.Reader) error { return r.Row("SELECT count(*) FROM work").Scan(new(int)) }))
		}
	})
}

// A budget changes nothing about what a read answers.
func TestReadWithABudgetAnswersTheSame(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		work(t, d)
		addWork(t, d, []any{"b", "k1", "two", 2}, []any{"a", "k2", "one", 1}, []any{"c", "k1", "", nil})
		for _, text := range []string{
			"SELECT id || ' ' || payload FROM work ORDER BY id DESC LIMIT 2",
			"WITH k AS (SELECT id, payload FROM work WHERE due_at IS NOT NULL) SELECT id || ' ' || payload FROM k ORDER BY payload",
			"select id from work where fair = 'k1' order by id",
			"SELECT id FROM work WHERE id = 'nobody'",
		} {
			read := func(ctx context.Context) (list []string) {
				must(t, d.Read(ctx, func(r db.Reader) (err error) {
					list, err = db.Collect(r, func(scan func(...any) error) (text string, err error) { return text, scan(&text) }, text)
					return err
				}))
				return list
			}
			if plain, limited := fmt.Sprint(read(t.Context())), fmt.Sprint(read(db.WithReadBudget(t.Context(), time.Minute))); plain != limited {
				t.Errorf("%s answers %s, with a budget %s", text, plain, limited)
			}
		}
		ended, cancel := context.WithCancel(db.WithReadBudget(t.Context(), time.Minute))
		err := d.Read(ended, func(r db.Reader) error {
			cancel()
			_, err := db.Collect(r, func(scan func(...any) error) (text string, err error) { return text, scan(&text) }, endless(d.Engine())[0])
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who went away hears %v", err)
		}
		mine := errors.New("mine")
		if err := d.Read(db.WithReadBudget(t.Context(), time.Minute), func(db.Reader) error { return mine }); !errors.Is(err, mine) {
			t.Errorf("the reader's own error becomes %v", err)
		}
	})
}
