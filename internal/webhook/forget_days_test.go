package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

// pastDays gives events and tries partitions of a few days that long before today and
// of those around it, as if the store were that old. Its owner does.
func pastDays(t testing.TB, owner string, days int) {
	t.Helper()
	d := dbtest.Open(t, db.Config{URL: owner, NoWorkers: true})
	for _, table := range []string{"webhook_events", "webhook_tries"} {
		for _, text := range []string{"DROP TABLE " + table + "_before",
			"UPDATE partitioned SET first_day = 1 WHERE name = '" + table + "'",
			fmt.Sprintf("SELECT count(make_partition('%s', current_date - DATE '1970-01-01' + n, 1000000000000)) FROM generate_series(%d, 2) AS n WHERE n < %d OR n > -2", table, -days, 7-days)} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(text) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// daysLeft counts days of the past that have a partition, and all rows.
func daysLeft(t testing.TB, d *db.DB) string {
	t.Helper()
	return fmt.Sprint(rowsOf(t, d, "SELECT count(*) FROM pg_class WHERE relname ~ '^webhook_events_[0-9]{8}$' AND relname < 'webhook_events_'||to_char(now() - interval '90 days', 'YYYYMMDD')"), " ",
		rowsOf(t, d, "SELECT count(*) FROM webhook_events"), " ", rowsOf(t, d, "SELECT count(*) FROM webhook_tries"))
}

// A day goes as a whole when all of its events were closed long enough ago and
// nobody is held who had one on it, the tries with it; else what is over of it
// goes row by row. A SQLite file has no days.
func TestDaysOfEventsGoAsAWhole(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	test := func(t *testing.T, d *db.DB) {
		t.Helper()
		o := newOffice(t, d, nil)
		first := d.Now().Truncate(24*time.Hour).AddDate(0, 0, -96)
		before := d.Now().AddDate(0, 0, -webhook.KeptDays)
		for day := range 5 { // 8 events and 2 tries of each
			closedEvents(t, d, client, first.AddDate(0, 0, day), 4)
			closedEvents(t, d, []string{"c_other", "c_held"}[day%2], first.AddDate(0, 0, day), 4)
		}
		set := func(day int, text string, args ...any) {
			t.Helper()
			at := first.AddDate(0, 0, day)
			args = append(args, webhook.IDFrom(at), webhook.IDFrom(at.AddDate(0, 0, 1)))
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				return tx.Exec(fmt.Sprintf("UPDATE webhook_events SET %s WHERE client_id = 'c_acme' AND resource_id = 'op-1' AND webhook_id >= $%d AND webhook_id < $%d", text, len(args)-1, len(args)), args...)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		set(2, "closed_at = $1", db.Micros(before)) // closed late
		set(4, "due_at = $1, closed_at = NULL, status = 'pending'", db.Micros(d.Now().Add(time.Hour)))
		forget := func(held ...string) [2]int {
			t.Helper()
			events, tries, err := o.ForgetDays(t.Context(), held, before)
			if err != nil {
				t.Fatal(err)
			}
			return [2]int{events, tries}
		}
		if d.Engine() == "sqlite" {
			if gone := forget(); gone != [2]int{} || rowsOf(t, d, "SELECT count(*) FROM webhook_events") != 40 {
				t.Errorf("%v are gone", gone)
			}
			return
		}
		// Days 1 and 3 have somebody who is held, 2 one that was closed late, 4 one that is open, 5 nothing.
		if gone := forget("c_held"); gone != [2]int{8, 2} || daysLeft(t, d) != "4 32 8" {
			t.Errorf("%v are gone, days, events and tries: %s", gone, daysLeft(t, d))
		}
		if gone := forget(); gone != [2]int{16, 4} || daysLeft(t, d) != "2 16 4" {
			t.Errorf("without a hold %v are gone, days, events and tries: %s", gone, daysLeft(t, d))
		}
		gone := 0
		for _, c := range []string{client, "c_other", "c_held"} {
			gone += must(o.ForgetEvents(t.Context(), c, before))(t)
		}
		if gone != 14 || daysLeft(t, d) != "2 2 0" {
			t.Errorf("row by row %d are gone, days, events and tries: %s", gone, daysLeft(t, d))
		}
		set(4, "due_at = NULL, closed_at = $1", db.Micros(before.Add(-time.Hour)))
		if gone := forget(); gone != [2]int{1, 0} || daysLeft(t, d) != "1 1 0" {
			t.Errorf("after its end %v are gone, days, events and tries: %s", gone, daysLeft(t, d))
		}
	}
	t.Run("sqlite", func(t *testing.T) { test(t, dbtest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) {
		served, owner := dbtest.ServedURL(t) // days are dropped by a role that changes no schema
		pastDays(t, owner, 96)
		test(t, dbtest.Open(t, db.Config{URL: served}))
	})
}

// An event of a day long past that is asked for again is sent at once, by
// whichever node; its day stays until it was closed for long enough.
func TestAnOldEventIsSentAgainAtOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	url, owner := dbtest.ServedURL(t)
	d, other := dbtest.Open(t, db.Config{URL: url}), dbtest.Open(t, db.Config{URL: url})
	box := newInbox()
	target, roots := box.receiver(t)
	// One delivers, the other is asked. Without a word the old one would be found at a look an hour later.
	seldom := func(c *webhook.Config) { c.Poll = time.Hour }
	o, asks := newOffice(t, d, roots, seldom), newOffice(t, other, roots, seldom)
	for _, office := range []*office{o, asks} {
		office.setTarget(client, target)
	}
	pastDays(t, owner, 95)
	old := d.Now().AddDate(0, 0, -94)
	ids := []string{webhook.IDFrom(old) + strings.Repeat("0", 28), webhook.IDFrom(old) + strings.Repeat("1", 28)}
	for _, id := range ids {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Insert("webhook_events",
				"webhook_id,client_id,event_type,resource_id,resource_path,lane,status,tries,created_at,closed_at",
				[]any{id, client, webhook.TransactionCompleted, "r", "/r", client + " " + webhook.TransactionCompleted,
					"delivered", 1, db.Micros(old), db.Micros(old)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.open(t)
	o.notify(t, event("new"))
	box.wait(t, 1) // from now on the deliverer knows in which days something is open
	for i, office := range []*office{o, asks} {
		if err := office.Redeliver(t.Context(), client, ids[i]); err != nil {
			t.Fatal(err)
		}
		if got := box.wait(t, i+2)[i+1]; got.WebhookID != ids[i] {
			t.Errorf("%s was sent, want %s", got.WebhookID, ids[i])
		}
	}
	eventually(t, "all is recorded", func() bool { return o.count(t, "due_at IS NOT NULL") == 0 })
	if events, _, err := o.ForgetDays(t.Context(), nil, d.Now().AddDate(0, 0, -webhook.KeptDays)); events != 0 ||
		err != nil {
		t.Errorf("%d events are gone with the day: %v", events, err)
	}
	dbtest.Ahead(t, d, 90)
	if _, tries, err := o.ForgetDays(t.Context(), nil, d.Now()); tries != 2 || err != nil ||
		rowsOf(t, d, "SELECT count(*) FROM webhook_events WHERE webhook_id < $1", ids[1]+"0") != 0 {
		t.Errorf("in due time the day is not gone, but %d tries: %v", tries, err)
	}
	box.check(t)
}
