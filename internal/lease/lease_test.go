package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// work is a queue whose rows carry a payload.
func work(t testing.TB, d *db.DB) *lease.Queue[string] {
	t.Helper()
	leaseTable(t, d)
	return &lease.Queue[string]{Table: "work", ID: "id", Key: "fair", Columns: "payload",
		Scan: func(scan func(...any) error) (payload string, err error) { return payload, scan(&payload) }}
}

func addWork(t testing.TB, d *db.DB, rows ...[]any) {
	t.Helper()
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Insert("work", "id,fair,payload,due_at", rows...)
	}))
}

// fillWork adds n rows in one statement: key and due are SQL of i.
func fillWork(t testing.TB, d *db.DB, n int, prefix, key, due string) {
	t.Helper()
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec(fmt.Sprintf("WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < %d) INSERT INTO work (id, fair, due_at) SELECT '%s' || i, %s, %s FROM g",
			n-1, prefix, key, due))
	}))
}

func claim[T any](t testing.TB, q *lease.Queue[T], d *db.DB, c lease.Claim) []*lease.Lease[T] {
	t.Helper()
	leases, _, err := q.Due(context.Background(), d, c)
	must(t, err)
	return leases
}

func names[T any](leases []*lease.Lease[T]) string {
	var all []string
	for _, l := range leases {
		all = append(all, l.ID)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// state is a row's payload, token and whether it is held.
func state(t testing.TB, d *db.DB, id string) (text string) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error {
		var payload string
		var token int64
		var held bool
		err := r.Row("SELECT payload, lease_token, lease_until IS NOT NULL FROM work WHERE id = $1", id).Scan(&payload,
			&token, &held)
		text = fmt.Sprintf("%s %d %t", payload, token, held)
		return err
	}))
	return text
}

func TestClaimTakesTheOldestDueRows(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		db.StopClock(d)
		now := db.Micros(d.Now())
		for i := range 9 {
			addWork(t, d, []any{fmt.Sprintf("%d", i), fmt.Sprintf("key%d", i%2), fmt.Sprintf("payload %d", i),
				now - int64(i)*1000})
		}
		addWork(t, d, []any{"later", "key0", "", now + 3600_000_000}, []any{"never", "key0", "", nil})
		if got := claim(t, q, d, lease.Claim{Max: 4}); names(got) != "5 6 7 8" {
			t.Errorf("the first claim took %s, want the four oldest", names(got))
		}
		got := claim(t, q, d, lease.Claim{Max: 100})
		if names(got) != "0 1 2 3 4" {
			t.Errorf("the second claim took %s, want the rest that is due", names(got))
		}
		for _, l := range got {
			if l.Token != 1 || l.Row != "payload "+l.ID || !strings.HasPrefix(l.Key, "key") {
				t.Errorf("lease %+v", l)
			}
		}
		if got := claim(t, q, d, lease.Claim{Max: 100}); len(got) != 0 {
			t.Errorf("rows in work or not due were claimed: %s", names(got))
		}
	})
}

func TestOnlyTheHolderCanWrite(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		q := work(t, d)
		db.StopClock(d)
		addWork(t, d, []any{"row", "key", "new", db.Micros(d.Now())}, []any{"other", "key", "new", db.Micros(d.Now())})
		save := func(l *lease.Lease[string], text string, end func(*db.Tx) error) error {
			return d.Write(ctx, func(tx *db.Tx) error {
				if err := end(tx); err != nil {
					return err
				}
				return tx.ExecOne("UPDATE work SET payload = $1 WHERE id = $2", text, l.ID)
			})
		}
		take := func() *lease.Lease[string] {
			for _, l := range claim(t, q, d, lease.Claim{Max: 2}) {
				if l.ID == "row" {
					return l
				}
			}
			t.Fatal("the row is not due")
			return nil
		}
		first := take()
		must(t, save(first, "guarded", first.Guard))
		db.ShiftClock(d, lease.Term-time.Second)
		lost, err := q.Renew(ctx, d, []*lease.Lease[string]{first})
		if err != nil || len(lost) != 0 {
			t.Fatalf("a lease in time was not renewed: %v %v", lost, err)
		}
		db.ShiftClock(d, lease.Term-time.Second)
		if got := names(claim(t, q, d, lease.Claim{Max: 9})); got != "other" {
			t.Fatalf("claimed %q: a renewed row, or not the one that ran out", got)
		}
		db.ShiftClock(d, 2*time.Second)
		second := take()
		for name, end := range map[string]func(*db.Tx) error{
			"guard":  first.Guard,
			"finish": func(tx *db.Tx) error { return first.Finish(tx, time.Time{}) },
			"finish both": func(tx *db.Tx) error {
				return finishAll(tx, []*lease.Lease[string]{second, first}, time.Time{})
			},
		} {
			if err := save(first, "stolen by "+name, end); !errors.Is(err, db.ErrStale) {
				t.Errorf("%s of a lost lease: %v, want ErrStale", name, err)
			}
		}
		if lost, err := q.Renew(ctx, d, []*lease.Lease[string]{first, second}); err != nil || len(lost) != 1 ||
			lost[0] != first {
			t.Errorf("renewing both: lost %v, %v; want the first one", lost, err)
		}
		if got := state(t, d, "row"); got != "guarded 2 true" {
			t.Errorf("the row is %q: a lost lease wrote", got)
		}
		finish := func(tx *db.Tx) error { return second.Finish(tx, d.Now().Add(time.Hour)) }
		must(t, save(second, "done", finish))
		if err := save(second, "done twice", finish); !errors.Is(err, db.ErrStale) {
			t.Errorf("a second finish: %v, want ErrStale", err)
		}
		if got := state(t, d, "row"); got != "done 2 false" {
			t.Errorf("the row is %q", got)
		}
		db.ShiftClock(d, time.Hour)
		third := take()
		must(t, save(third, "for ever", func(tx *db.Tx) error { return third.Finish(tx, time.Time{}) }))
		db.ShiftClock(d, 1000*time.Hour)
		if got := names(claim(t, q, d, lease.Claim{Max: 9})); got != "other" {
			t.Errorf("claimed %q after the row was done for ever", got)
		}
	})
}

func TestOneKeyDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		db.StopClock(d)
		now := db.Micros(d.Now())
		fillWork(t, d, 10_000, "long", "'long'", fmt.Sprintf("%d + i", now-3600_000_000))
		addWork(t, d, []any{"a-short", "a", "", now}, []any{"z-short", "z", "", now})
		for name, c := range map[string]lease.Claim{
			"fair":           {Max: 30, Fair: true},
			"from behind":    {Max: 30, Fair: true, From: "long"},
			"fair, few":      {Max: 3, Fair: true},
			"room":           {Max: 30, Room: func(string) int { return 5 }},
			"the long is in": {Max: 30, Room: func(key string) int { return map[string]int{"long": 0}[key] + len(key)%4 }},
		} {
			leases := claim(t, q, d, c)
			share := map[string]int{}
			for _, l := range leases {
				share[l.Key]++
			}
			if share["a"] != 1 || share["z"] != 1 {
				t.Errorf("%s: %v: the short keys are behind the long one", name, share)
			}
			if c.Room != nil && share["long"] > c.Room("long") {
				t.Errorf("%s: %v: more than there is room for", name, share)
			}
			must(t, d.Write(context.Background(), func(tx *db.Tx) error {
				return finishAll(tx, leases, d.Now().Add(-time.Minute))
			}))
		}
		seen := map[string]bool{} // going round with one slot, everybody has a turn
		from := ""
		for range 3 {
			leases, next, err := q.Due(context.Background(), d, lease.Claim{Max: 1, Fair: true, From: from})
			must(t, err)
			for _, l := range leases {
				seen[l.Key] = true
			}
			from = next
		}
		if len(seen) != 3 {
			t.Errorf("three turns went to %v", seen)
		}
	})
}

// A thousand keys that wait for later, and a backlog without room, must not
// hide the one row that could be worked.
func TestWaitingKeysDoNotHideADueOne(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		db.StopClock(d)
		now := db.Micros(d.Now())
		fillWork(t, d, 2500, "waits", "'k' || i", fmt.Sprint(now+3600_000_000))
		addWork(t, d, []any{"due", "last", "", now})
		room := func(key string) int {
			if key == "full" {
				return 0
			}
			return 3
		}
		if got := names(claim(t, q, d, lease.Claim{Max: 10, Room: room})); got != "due" {
			t.Errorf("the first claim took %q, want the only due row", got)
		}
		fillWork(t, d, 300, "backlog", "'full'", fmt.Sprint(now-1000_000))
		addWork(t, d, []any{"due2", "last", "", now})
		var got []string
		from := ""
		for range 4 {
			leases, next, err := q.Due(context.Background(), d, lease.Claim{Max: 10, Room: room, From: from})
			must(t, err)
			from = next
			got = append(got, names(leases))
		}
		if text := strings.TrimSpace(strings.Join(got, " ")); text != "due2" {
			t.Errorf("a round over the keys took %q, want due2", text)
		}
	})
}

// lanes is a queue that another table feeds.
func lanes(t testing.TB, d *db.DB) *lease.Queue[struct{}] {
	t.Helper()
	for _, text := range []string{
		"CREATE TABLE test_lanes (id TEXT PRIMARY KEY, due_at BIGINT, lease_until BIGINT, lease_token BIGINT NOT NULL DEFAULT 0, lease_node TEXT)",
		"CREATE INDEX test_lanes_due ON test_lanes (due_at) WHERE due_at IS NOT NULL",
		"CREATE INDEX test_lanes_node ON test_lanes (lease_node) WHERE lease_node IS NOT NULL",
		"CREATE TABLE test_riders (id TEXT PRIMARY KEY, lane TEXT NOT NULL, due_at BIGINT)",
		"CREATE INDEX test_riders_due ON test_riders (due_at) WHERE due_at IS NOT NULL",
		"CREATE INDEX test_riders_lane ON test_riders (lane, due_at) WHERE due_at IS NOT NULL",
	} {
		must(t, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(text) }))
	}
	return &lease.Queue[struct{}]{Table: "test_lanes", ID: "id", Key: "id",
		Feed: &lease.Feed{Table: "test_riders", Column: "lane"}}
}

func addRiders(t testing.TB, d *db.DB, rows ...[]any) {
	t.Helper()
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		tx.Wake("test_lanes")
		return tx.Insert("test_riders", "id,lane,due_at", rows...)
	}))
}

func TestLanesAreDueWhenTheirRidersAre(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		q := lanes(t, d)
		db.StopClock(d)
		now := db.Micros(d.Now())
		addRiders(t, d, []any{"1", "a", now}, []any{"2", "a", now}, []any{"3", "b", now},
			[]any{"4", "c", now + 3600_000_000}, []any{"5", "d", nil})
		held := claim(t, q, d, lease.Claim{Max: 10})
		if names(held) != "a b" {
			t.Fatalf("claimed %q, want the lanes with due riders, once each", names(held))
		}
		addRiders(t, d, []any{"6", "a", now}, []any{"7", "e", now})
		if got := claim(t, q, d, lease.Claim{Max: 10, Room: func(key string) int { return len(key) }}); names(got) != "e" {
			t.Errorf("claimed %q, want only the lane nobody holds", names(got))
		}
		must(t, d.Write(ctx, func(tx *db.Tx) error { // a is done; b must wait, though its rider is due
			if err := tx.Exec("UPDATE test_riders SET due_at = NULL WHERE lane = 'a'"); err != nil {
				return err
			}
			for _, l := range held {
				if err := l.Finish(tx, map[string]time.Time{"b": d.Now().Add(time.Minute)}[l.ID]); err != nil {
					return err
				}
			}
			return nil
		}))
		if got := claim(t, q, d, lease.Claim{Max: 10}); len(got) != 0 {
			t.Errorf("claimed %q before anything was due", names(got))
		}
		addRiders(t, d, []any{"8", "a", now})
		if got := claim(t, q, d, lease.Claim{Max: 10}); names(got) != "a" || got[0].Token != 2 {
			t.Errorf("claimed %q, want lane a again with the next token", names(got))
		}
		db.ShiftClock(d, 61*time.Second)
		if got := names(claim(t, q, d, lease.Claim{Max: 10})); got != "a b e" {
			t.Errorf("claimed %q, want b whose wait is over and the leases that ran out", got)
		}
		if err := d.Write(ctx, held[1].Guard); !errors.Is(err, db.ErrStale) {
			t.Errorf("the first holder still writes: %v", err)
		}
	})
}

func TestManyWaitingLanesDoNotHideADueOne(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := lanes(t, d)
		now := db.Micros(d.Now())
		must(t, d.Write(context.Background(), func(tx *db.Tx) error {
			return tx.Exec(fmt.Sprintf(`WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < 2800) INSERT INTO test_riders (id, lane, due_at)
				SELECT 'r' || i, CASE WHEN i < 300 THEN 'busy' ELSE 'lane' || i END, CASE WHEN i < 300 THEN %d ELSE %d END FROM g`, now-1000_000, now+3600_000_000))
		}))
		addRiders(t, d, []any{"due", "zz", now})
		var got []string
		from := ""
		for range 4 {
			leases, next, err := q.Due(context.Background(), d, lease.Claim{Max: 1, From: from})
			must(t, err)
			from = next
			got = append(got, names(leases))
		}
		if text := strings.Join(got, " "); !strings.Contains(text, "busy") || !strings.Contains(text, "zz") {
			t.Errorf("four claims took %q, want both lanes that are due", text)
		}
	})
}
