package lease_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// eventIDFrom is the least id of an event that was made at an instant.
func eventIDFrom(at time.Time) string { return fmt.Sprintf("%012x", at.UnixMilli()) }

func eventID(at time.Time, n int) string { return eventIDFrom(at) + fmt.Sprintf("%028x", n) }

// eventQueue is the queue of events as its owner has it.
func eventQueue() *lease.Queue[string] {
	return &lease.Queue[string]{Table: "webhook_events", ID: "webhook_id", Key: "lane", IDFrom: eventIDFrom,
		Columns: "(SELECT p.webhook_id FROM webhook_events p WHERE p.series = webhook_events.series AND p.seq < webhook_events.seq{AND OPEN} ORDER BY p.seq DESC LIMIT 1)",
		Scan: func(scan func(...any) error) (string, error) {
			var previous *string
			return "", scan(&previous)
		}}
}

// manyDays gives events partitions of so many days before today, as if the
// store were that old, and events of each, all delivered.
func manyDays(t testing.TB, d *db.DB, days, each int) {
	t.Helper()
	if d.Engine() == "postgres" && days > 0 {
		texts := []string{"DROP TABLE webhook_events_before", "UPDATE partitioned SET first_day = 1 WHERE name = 'webhook_events'"}
		for first := -days; first <= 7; first += 10 { // a few at a time: a write is given up after a while
			texts = append(texts, fmt.Sprintf("SELECT count(make_partition('webhook_events', current_date - DATE '1970-01-01' + n, 1000000000000)) FROM generate_series(%d, %d) AS n",
				first, min(first+9, 7)))
		}
		for _, text := range texts {
			must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(text) }))
		}
	}
	fillEvents(t, d, max(days, 1), each)
}

func fillEvents(t testing.TB, d *db.DB, days, each int) {
	t.Helper()
	for day := range days {
		at := d.Now().Add(-time.Duration(day+1) * 24 * time.Hour)
		rows := make([][]any, each)
		for i := range rows {
			rows[i] = []any{eventID(at, i), "c", "x", "r", "/r", fmt.Sprintf("c%03d x", i%200), "delivered", db.Micros(at),
				db.Micros(at)}
		}
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Insert("webhook_events",
				"webhook_id,client_id,event_type,resource_id,resource_path,lane,status,created_at,closed_at", rows...)
		}))
	}
}

// addEvents makes events of an instant, due at once.
func addEvents(t testing.TB, d *db.DB, at time.Time, from, n int) {
	t.Helper()
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{eventID(at, from+i), "c", "x", "r", "/r", fmt.Sprintf("c%03d x", i%200), fmt.Sprint("s", i%50),
			"pending", db.Micros(at), db.Micros(d.Now())}
	}
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Insert("webhook_events",
			"webhook_id,client_id,event_type,resource_id,resource_path,lane,series,status,created_at,due_at", rows...)
	}))
}

var eventDays = regexp.MustCompile(`webhook_events_(before|rest|\d{8})( |$)`)

func daysIn(plan string) []string {
	var days []string
	for _, found := range eventDays.FindAllStringSubmatch(plan, -1) {
		days = append(days, found[1])
	}
	slices.Sort(days)
	return slices.Compact(days)
}

// However many days there are, the statements of the queue look into those in
// which something is open and around now: the day of one old event that is
// sent again, not those between.
func TestAQueueLooksIntoTheDaysThatHaveSomethingOpen(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Postgres(t)
	manyDays(t, d, 95, 20)
	addEvents(t, d, d.Now(), 0, 3000)
	q := eventQueue()
	names := func(ago ...int) (days []string) {
		for _, n := range ago {
			days = append(days, d.Now().AddDate(0, 0, -n).Format("20060102"))
		}
		return days
	}
	look := func(want []string) {
		t.Helper()
		statements, err := lease.QueueStatements(t.Context(), q, d, "c001 x")
		must(t, err)
		for name, s := range statements {
			var lines []string
			must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
				lines, err = dbtest.Plan(r, d, s.Text, s.Args...)
				return err
			}))
			plan := strings.Join(lines, "\n")
			if got := daysIn(plan); !slices.Equal(got, want) {
				t.Errorf("%s looks into %v, want %v:\n%s", name, got, want, plan)
			}
			if strings.Contains(plan, "Seq Scan on webhook_events_"+d.Now().Format("20060102")) { // the others have a page each
				t.Errorf("%s reads the whole of today:\n%s", name, plan)
			}
		}
	}
	look(names(1, 0, -1))
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE webhook_events SET due_at = 1, status = 'pending' WHERE webhook_id = (SELECT min(webhook_id) FROM webhook_events WHERE webhook_id >= $1)", eventIDFrom(d.Now().AddDate(0, 0, -81).Truncate(24*time.Hour)))
	}))
	look(names(81, 1, 0, -1))
}

// A look for what is due walks the index of what is due, also as it is planned for
// all values, which is how it runs from the sixth time on: the days that it names
// choose partitions, and are no reason to read a whole one by its ids.
func TestALookDoesNotReadADayByItsIDs(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Postgres(t)
	addEvents(t, d, d.Now(), 0, 4000)
	statements, err := lease.QueueStatements(t.Context(), eventQueue(), d, "c001 x")
	must(t, err)
	for _, name := range []string{"oldest", "walk", "next"} {
		if plan := genericPlan(t, d, statements[name].Text, statements[name].Args); strings.Contains(plan, "_pkey") {
			t.Errorf("%s reads a day by its ids:\n%s", name, plan)
		}
	}
}

// genericPlan is the plan of a statement whatever its values are.
func genericPlan(t *testing.T, d *db.DB, text string, args []any) string {
	t.Helper()
	var values []string
	for _, a := range args {
		switch v := a.(type) {
		case string:
			values = append(values, "'"+v+"'")
		case []string:
			values = append(values, "ARRAY['"+strings.Join(v, "','")+"']")
		case []int64:
			values = append(values, strings.Join(strings.Fields(fmt.Sprintf("ARRAY%d", v)), ","))
		default:
			values = append(values, fmt.Sprint(v))
		}
	}
	var lines []string
	must(t, d.Write(t.Context(), func(tx *db.Tx) (err error) {
		if err := errors.Join(tx.Exec("SET LOCAL plan_cache_mode = force_generic_plan"), tx.Exec("PREPARE looked AS "+text)); err != nil {
			return err
		}
		lines, err = db.Collect(tx, func(scan func(...any) error) (line string, err error) {
			return line, scan(&line)
		}, "EXPLAIN EXECUTE looked("+strings.Join(values, ",")+")")
		return errors.Join(err, tx.Exec("DEALLOCATE looked"))
	}))
	return strings.Join(lines, "\n")
}

// An old row that is opened again is claimed at once where it is said, and with the next look at everything where it is
// not.
func TestOldRowsThatAreDueAgainAreFound(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Postgres(t)
	manyDays(t, d, 30, 5)
	db.StopClock(d)
	q := eventQueue()
	pump := lease.NewClaims(q)
	claimed := func() string {
		leases, err := pump.ClaimFair(t.Context(), d, 10)
		must(t, err)
		must(t, d.Write(t.Context(), func(tx *db.Tx) error { return finishAll(tx, leases, time.Time{}) }))
		return names(leases)
	}
	var ids []string
	must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
		ids, err = db.Collect(r, func(scan func(...any) error) (id string, err error) {
			return id, scan(&id)
		}, "SELECT webhook_id FROM webhook_events ORDER BY 1")
		return err
	}))
	again := func(id string) {
		t.Helper()
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.ExecOne("UPDATE webhook_events SET due_at = $1 WHERE webhook_id = $2", db.Micros(tx.Now()), id)
		}))
	}
	if got := claimed(); got != "" {
		t.Fatalf("claimed %q of nothing", got)
	}
	again(ids[0])
	if got := claimed(); got != "" {
		t.Fatalf("claimed %q: the days in which nothing is open are looked at each time", got)
	}
	pump.Forget()
	if got := claimed(); got != ids[0] {
		t.Errorf("claimed %q after it was said, want %s", got, ids[0])
	}
	again(ids[7])
	db.ShiftClock(d, lease.LowWaterWhole+time.Second)
	if got := claimed(); got != ids[7] {
		t.Errorf("claimed %q at the next look at everything, want %s", got, ids[7])
	}
	// Two that are far apart, held, prolonged and given up: what is asked of known rows needs no look.
	again(ids[1])
	again(ids[len(ids)-1])
	pump.Forget()
	leases, err := pump.ClaimFair(t.Context(), d, 10)
	if must(t, err); len(leases) != 2 {
		t.Fatalf("claimed %q", names(leases))
	}
	if lost, err := q.Renew(t.Context(), d, leases); err != nil || len(lost) != 0 {
		t.Errorf("%d of two leases are lost: %v", len(lost), err)
	}
	must(t, d.Write(t.Context(), func(tx *db.Tx) error { return finishAll(tx, leases, time.Time{}) }))
}

// Where nothing has a partition of its day any more, rows are found all the same.
func TestRowsWithoutADayAreFound(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Postgres(t)
	q := eventQueue()
	ahead := d.Now().AddDate(0, 0, 60) // behind the first partition, and the clock may have been put back since
	addEvents(t, d, ahead, 0, 3)
	_, recent, endless, err := lease.Spans(t.Context(), q, d)
	if must(t, err); !endless || recent[0] > eventIDFrom(d.Now()) {
		t.Errorf("looks from %v on, endless %v", recent, endless)
	}
	leases, err := lease.NewClaims(q).ClaimFair(t.Context(), d, 10)
	if must(t, err); len(leases) != 3 {
		t.Errorf("claimed %q", names(leases))
	}
}
