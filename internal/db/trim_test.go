package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

func diary(t *testing.T, d *db.DB, days, perDay int) {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE diary (client TEXT NOT NULL, n BIGINT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (client, n))",
		"CREATE INDEX diary_by_age ON diary (at)",
		"CREATE TABLE diary_pages (client TEXT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (client, n))",
	} {
		must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(text) }))
	}
	for day := range days {
		var rows, pages [][]any
		for i := range perDay {
			rows = append(rows, []any{fmt.Sprint("c", i%3), day*perDay + i, day})
			pages = append(pages, []any{fmt.Sprint("c", i%3), day*perDay + i})
		}
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(tx.Insert("diary", "client,n,at", rows...), tx.Insert("diary_pages", "client,n", pages...))
		}))
	}
}

// What is old goes with what hangs on it, what is young or another's stays, and
// others write meanwhile.
func TestTrimTakesSmallSteps(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const days, perDay = 10, 300
		diary(t, d, days, perDay)
		stop, written := make(chan struct{}), make(chan int)
		go func() { // whoever writes beside it
			for i := 0; ; i++ {
				if err := d.Write(context.Background(), func(tx *db.Tx) error {
					return tx.Insert("diary", "client,n,at", []any{"other", i, days})
				}); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					written <- i + 1
					return
				default:
				}
			}
		}()
		steps := 0
		trim := db.Trim{Table: "diary", Key: "client, n", By: "at", Before: 7, Where: "client <> $1", Args: []any{"c2"},
			Also: func(tx *db.Tx, keys [][]any) error {
				steps++
				return tx.ExecEach("DELETE FROM diary_pages WHERE client = $1 AND n = $2", keys)
			}}
		gone, err := d.Trim(t.Context(), trim)
		close(stop)
		if want := 7 * perDay * 2 / 3; gone != want || err != nil {
			t.Errorf("%d rows are gone, want %d: %v", gone, want, err)
		}
		if others := <-written; steps < 3 || dbtest.Count(t, d, "SELECT count(*) FROM diary WHERE client = 'other'") !=
			others {
			t.Errorf("%d rows are gone in %d steps beside %d writes of others, which are not all there", gone, steps, others)
		}
		for query, want := range map[string]int{
			"SELECT count(*) FROM diary WHERE at < 7 AND client = 'c2'":                                                           7 * perDay / 3,
			"SELECT count(*) FROM diary WHERE at < 7 AND client <> 'c2'":                                                          0,
			"SELECT count(*) FROM diary WHERE at >= 7 AND client <> 'other'":                                                      3 * perDay,
			"SELECT count(*) FROM diary_pages p WHERE NOT EXISTS (SELECT 1 FROM diary d WHERE d.client = p.client AND d.n = p.n)": 0,
			"SELECT count(*) FROM diary_pages":                                                                                    7*perDay/3 + 3*perDay,
		} {
			if n := dbtest.Count(t, d, query); n != want {
				t.Errorf("%s is %d, want %d", query, n, want)
			}
		}
		if gone, err := d.Trim(t.Context(), trim); gone != 0 || err != nil {
			t.Errorf("again %d rows are gone: %v", gone, err)
		}
	})
}

// An interrupted trim keeps what it did and says so.
func TestInterruptedTrimSaysWhatItDid(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		diary(t, d, 4, 300)
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		gone, err := d.Trim(ctx, db.Trim{Table: "diary", Key: "client, n", By: "at", Before: 4,
			Also: func(*db.Tx, [][]any) error {
				if steps++; steps == 2 {
					cancel()
				}
				return nil
			}})
		left := dbtest.Count(t, d, "SELECT count(*) FROM diary")
		if !errors.Is(err, context.Canceled) || gone == 0 || gone+left != 1200 {
			t.Errorf("%d rows are gone and %d left: %v", gone, left, err)
		}
		mine := errors.New("mine")
		if gone, err := d.Trim(t.Context(), db.Trim{Table: "diary", Key: "client, n", By: "at", Before: 4,
			Also: func(*db.Tx, [][]any) error {
				return mine
			}}); gone != 0 || !errors.Is(err, mine) {
			t.Errorf("%d rows are gone: %v", gone, err)
		}
	})
}
