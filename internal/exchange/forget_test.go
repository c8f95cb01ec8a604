package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/exchange"
	"tributary/internal/leaks"
	"tributary/internal/needs"
	"tributary/internal/operation"
	"tributary/internal/schema"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// callAt stores the record of a call that was made then, of a lane.
func callAt(tx *db.Tx, lane, operationID string, at time.Time) error {
	id := operation.IDAt(at) + uuid.Must(uuid.NewV7()).String()[13:]
	if err := tx.Insert("exchanges", "exchange_id,lane,verb,at,took,filings,outcome",
		[]any{id, lane, "send", db.Micros(at), 1, 1, "answered"}); err != nil {
		return err
	}
	return tx.Insert("exchange_operations", "operation_id,exchange_id", []any{operationID, id})
}

func forgetDays(t *testing.T, d *db.DB, held []exchange.Held, before time.Time) [2]int {
	t.Helper()
	calls, links, err := exchange.ForgetDays(context.Background(), d, held, before)
	must(t, err)
	return [2]int{calls, links}
}

// A day goes as a whole when it is over and nobody is held who called on it,
// the links with it; a day with somebody who is held stays, and the rest of it
// goes row by row. A SQLite file has no days.
func TestDaysOfCallsGoAsAWhole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 40)
		second(t)(schema.MakePartitions(t.Context(), d, first))
		dbtest.Ahead(t, d, 40+4+90)
		for day := range 4 {
			for _, lane := range []string{"a|XX|test|0|s1", "a|XX|test|0|s2", "b|XX|test|0|s3"} {
				if day == 1 && strings.HasPrefix(lane, "b") || day == 2 && strings.HasSuffix(lane, "s2") {
					continue
				}
				must(t, d.Write(t.Context(), func(tx *db.Tx) error {
					return errors.Join(callAt(tx, lane, uuid.Must(uuid.NewV7()).String(), first.AddDate(0, 0, day).Add(12*time.Hour)),
						tx.Exec("INSERT INTO lanes (lane, "+operation.LaneFields+
							") VALUES ($1, $2, 'XX', 'test', 0, $3) ON CONFLICT DO NOTHING", lane, lane[:1], lane[len(lane)-2:]))
				}))
			}
		}
		held := []exchange.Held{{Scope: "b"}, {Scope: "a", Suppliers: map[string]bool{"s2": true}}}
		before := first.AddDate(0, 0, 3).Add(time.Hour) // the fourth is not over
		left := func() (list string) {
			for day := range 4 {
				from, to := operation.IDAt(first.AddDate(0, 0, day)), operation.IDAt(first.AddDate(0, 0, day+1))
				for _, table := range []string{"exchanges", "exchange_operations"} {
					list += fmt.Sprint(one[int64](t, d, "SELECT count(*) FROM "+table+" WHERE exchange_id >= $1 AND exchange_id < $2",
						from, to))
				}
				list += " "
			}
			return strings.TrimSpace(list)
		}
		if d.Engine() == "sqlite" {
			if gone := forgetDays(t, d, held, before); gone != [2]int{} || left() != "33 22 22 33" {
				t.Errorf("%v are gone, %s are left", gone, left())
			}
			return
		}
		// The second day has a held supplier, the first and the third a held client.
		if gone := forgetDays(t, d, held, before); gone != [2]int{} || left() != "33 22 22 33" {
			t.Errorf("with holds %v are gone, %s are left", gone, left())
		}
		if gone := forgetDays(t, d, held[1:], before); gone != [2]int{2, 2} || left() != "33 22 00 33" {
			t.Errorf("with a held supplier %v are gone, %s are left", gone, left())
		}
		for _, scope := range []string{"a", "b"} {
			second(t)(exchange.ForgetCalls(t.Context(), d, exchange.Held{Scope: scope, Suppliers: map[string]bool{"s2": true}},
				before))
		}
		second(t)(exchange.ForgetLinks(t.Context(), d, first.AddDate(1, 0, 0)))
		if left() != "11 11 00 33" {
			t.Errorf("row by row %s are left", left())
		}
		if gone := forgetDays(t, d, nil, before); gone != [2]int{2, 2} || left() != "00 00 00 33" {
			t.Errorf("without holds %v are gone, %s are left", gone, left())
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one[T any](t testing.TB, d *db.DB, sql string, args ...any) (got T) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error { return r.Row(sql, args...).Scan(&got) }))
	return got
}

// second fails a test for the second of two results.
func second(t *testing.T) func(int, error) {
	t.Helper()
	return func(_ int, err error) {
		t.Helper()
		must(t, err)
	}
}

// However many days there are, and before the server has learned anything of
// them, calls are looked for by their ids, in the days that can have them.
func TestCallsAreFoundByIndexAmongManyDays(t *testing.T) {
	needs.NotRaced(t, "hundreds of partitions")
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 40)
		last := first
		for ; last.Before(first.AddDate(0, 0, 90)); last = last.AddDate(0, 0, schema.PartitionsAhead) {
			second(t)(schema.MakePartitions(t.Context(), d, last))
		}
		filed, lane := "", "a|XX|test|0|s"
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			var err error
			for day := first; err == nil && day.Before(last); day = day.Add(6 * time.Hour) {
				filed = operation.IDAt(day) + uuid.Must(uuid.NewV7()).String()[13:]
				err = callAt(tx, lane, filed, day.Add(time.Minute))
			}
			return err
		}))
		// days at most that are looked at, the rest among them
		wants := map[string]int{"last told": 2 * (2 + schema.PartitionsAhead + 1), "old lanes": 4}
		for name, s := range exchange.Statements(d, filed, lane,
			[2]time.Time{last.AddDate(0, 0, -1), first.AddDate(0, 0, 1)}) {
			plan := planOf(t, d, s)
			whole := "Seq Scan on exchange"
			if d.Engine() == "sqlite" {
				whole = "SCAN e"
			}
			if strings.Contains(plan, whole) && !strings.Contains(plan, "SCAN e USING") {
				t.Errorf("%s reads a whole table:\n%s", name, plan)
			}
			days := map[string]bool{}
			for _, found := range dayNames.FindAllString(plan, -1) {
				days[found] = true
			}
			if most, bounded := wants[name]; bounded && d.Engine() == "postgres" && (len(days) > most || len(days) == 0) {
				t.Errorf("%s looks at %d days:\n%s", name, len(days), plan)
			}
		}
	})
}

var dayNames = regexp.MustCompile(`on exchange(s|_operations)_(before|rest|\d{8})`)

func planOf(t *testing.T, d *db.DB, s exchange.Statement) string {
	t.Helper()
	var lines []string
	must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
		lines, err = dbtest.Plan(r, d, s.Text, s.Args...)
		return err
	}))
	return strings.Join(lines, "\n")
}
