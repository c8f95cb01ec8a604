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
	"tributary/internal/lease"
	"tributary/internal/needs"
	"tributary/internal/turnstile"
)

// endless is a question that takes longer than anybody waits; the second gives
// its first row at once and the next one never.
func endless(engine string) []string {
	if engine == "postgres" {
		return []string{"SELECT pg_sleep(3600)::text", "SELECT 'one' UNION ALL SELECT pg_sleep(3600)::text"}
	}
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
	return []string{"SELECT count(*) || '' FROM (" + numbers + ")",
		"SELECT 'one' UNION ALL SELECT i || '' FROM (" + numbers + ") WHERE i < 0"}
}

// work makes a table that is worked under leases.
func work(t testing.TB, d *db.DB) *lease.Queue[string] {
	t.Helper()
	for _, text := range dbtest.LeaseTable("work") {
		must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(text) }))
	}
	return &lease.Queue[string]{Table: "work", ID: "id", Key: "fair"}
}

// However many slow reads of callers from outside there are, commits, claims and
// the program's own reads do not wait for them: those here end only when all of
// that was done. And a read from outside ends by itself when its budget is used up.
func TestSlowReadsOfVisitorsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const visitors = 16
		q := work(t, d)
		visit := func(ctx context.Context, begun func()) []error {
			var wg sync.WaitGroup
			answers := make([]error, visitors)
			for i := range visitors {
				wg.Go(func() {
					answers[i] = d.Read(ctx, func(r db.Reader) error {
						begun()
						_, err := db.Collect(r, func(scan func(...any) error) (text string, err error) {
							return text, scan(&text)
						}, endless(d.Engine())[i%2])
						return err
					})
				})
			}
			wg.Wait()
			return answers
		}
		long, end := context.WithCancel(db.WithReadBudget(t.Context(), time.Hour))
		begun, ended := make(chan struct{}, visitors), make(chan []error)
		go func() { ended <- visit(long, func() { begun <- struct{}{} }) }()
		for range db.VisitorsAtOnce(d) {
			<-begun // and all the others wait for them
		}
		for i := range 20 {
			must(t, d.Write(t.Context(), func(tx *db.Tx) error {
				return tx.Insert("work", "id,fair,due_at", []any{fmt.Sprint(i), "key", db.Micros(tx.Now())})
			}))
			if leases, _, err := q.Due(t.Context(), d, lease.Claim{Max: 1, Fair: true}); err != nil || len(leases) != 1 {
				t.Errorf("%d leases", len(leases))
			}
			must(t, d.Read(t.Context(), func(r db.Reader) error { return r.Row("SELECT count(*) FROM work").Scan(new(int)) }))
		}
		end()
		for _, err := range <-ended {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a caller who went away hears %v", err)
			}
		}
		for _, err := range visit(db.WithReadBudget(t.Context(), 200*time.Millisecond), func() {}) {
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("a read that takes too long answers %v", err)
			}
		}
		// The connections are as good as before.
		for range visitors {
			must(t, d.Read(db.WithReadBudget(t.Context(), time.Minute), func(r db.Reader) error {
				return r.Row("SELECT count(*) FROM work").Scan(new(int))
			}))
		}
	})
}

// A budget changes nothing about what a read answers.
func TestReadWithABudgetAnswersTheSame(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		work(t, d)
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Insert("work", "id,fair,payload,due_at", []any{"b", "k1", "two", 2}, []any{"a", "k2", "one", 1},
				[]any{"c", "k1", "", nil})
		}))
		for _, text := range []string{
			"SELECT id || ' ' || payload FROM work ORDER BY id DESC LIMIT 2",
			"WITH k AS (SELECT id, payload FROM work WHERE due_at IS NOT NULL) SELECT id || ' ' || payload FROM k ORDER BY payload",
			"select id from work where fair = 'k1' order by id",
			"SELECT id FROM work WHERE id = 'nobody'",
		} {
			read := func(ctx context.Context) (list []string) {
				must(t, d.Read(ctx, func(r db.Reader) (err error) {
					list, err = db.Collect(r, func(scan func(...any) error) (text string, err error) {
						return text, scan(&text)
					}, text)
					return err
				}))
				return list
			}
			if plain, limited := fmt.Sprint(read(t.Context())),
				fmt.Sprint(read(db.WithReadBudget(t.Context(), time.Minute))); plain != limited {
				t.Errorf("%s answers %s, with a budget %s", text, plain, limited)
			}
		}
		ended, cancel := context.WithCancel(db.WithReadBudget(t.Context(), time.Minute))
		err := d.Read(ended, func(r db.Reader) error {
			cancel()
			_, err := db.Collect(r, func(scan func(...any) error) (text string, err error) {
				return text, scan(&text)
			}, endless(d.Engine())[0])
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who went away hears %v", err)
		}
		mine := errors.New("mine")
		if err := d.Read(db.WithReadBudget(t.Context(), time.Minute), func(db.Reader) error {
			return mine
		}); !errors.Is(err, mine) {
			t.Errorf("the reader's own error becomes %v", err)
		}
	})
}

// A client whose reads hang, and of whom many more wait, keeps no other client waiting.
func TestReadsOfOneClientHoldUpNoOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		visit := db.WithReadBudget(t.Context(), time.Hour)
		begun, release := make(chan struct{}, 99), make(chan struct{})
		var wg sync.WaitGroup
		for range 4 * db.VisitorsAtOnce(d) {
			wg.Go(func() {
				must(t, d.Read(db.ForClient(visit, "many"), func(db.Reader) error {
					begun <- struct{}{}
					<-release
					return nil
				}))
			})
		}
		for range db.VisitorsAtOnce(d) {
			<-begun
		}
		for range 3 {
			must(t, d.Read(db.ForClient(visit, "quiet"), func(r db.Reader) error { return r.Row("SELECT 1").Scan(new(int)) }))
		}
		if len(begun) > 0 {
			t.Errorf("%d reads more than its share are made for one client", len(begun))
		}
		close(release)
		wg.Wait()
	})
}

// Of a request whose time is over nothing is stored any more: its caller would hear nothing.
func TestAWriteEndsBeforeItsCallerHangsUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		late := turnstile.AnswerBy(t.Context(), time.Now())
		if err := d.Write(late, func(*db.Tx) error { t.Error("it is written"); return nil }); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a late write answers %v", err)
		}
		g := db.NewGather(d, func(_ *db.Tx, in []int) ([]int, error) { return in, nil })
		defer g.Close()
		if _, err := g.Do(late, 1); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a late call answers %v", err)
		}
		in := turnstile.AnswerBy(t.Context(), time.Now().Add(time.Hour))
		if got, err := g.Do(in, 2); err != nil || got != 2 {
			t.Errorf("a call in time answers %d %v", got, err)
		}
	})
}
