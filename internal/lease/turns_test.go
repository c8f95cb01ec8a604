package lease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// An owner with thousands of keys takes its share of the slots and no more:
// the others' few keys do not wait for all of its.
func TestAnOwnerOfManyKeysDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	const slots, many, small = 8, 1200, 5
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		q.Group = "|"
		fillWork(t, d, many, "m", "'many|' || i", "1")
		var rows [][]any
		for owner := range small {
			for key := range owner + 1 {
				rows = append(rows, []any{fmt.Sprint("s", owner, "-", key), fmt.Sprintf("zz%d|%d", owner, key), "", int64(2)})
			}
		}
		addWork(t, d, rows...)
		order := orderOfWork(t, d, q, slots, many+len(rows))
		last := 0
		for i, key := range order {
			if strings.HasPrefix(key, "zz") {
				last = i
			}
		}
		// Before the first claim nothing is known of a backlog, so it is by age.
		if most := 8 * slots; last > most {
			t.Errorf("the last key of the small owners was worked as number %d of %d, want within the first %d", last,
				len(order), most)
		}
	})
}

// More owners than one claim looks at, and one whose first keys all wait for
// later, more of them than one look sees: everybody is served all the same.
func TestEveryOwnerHasATurnHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	const slots, many, owners, later = 8, 1200, lease.OwnersPerClaim + 1, 200
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		q.Group = "|"
		fillWork(t, d, many, "m", "'many|' || i", "1")
		fillWork(t, d, later, "l", "'waits|' || (1000 + i)", fmt.Sprint(db.Micros(d.Now().Add(time.Hour))))
		rows := [][]any{{"due", "waits|9", "", int64(2)}} // behind all that wait
		for owner := range owners {
			rows = append(rows, []any{fmt.Sprint("s", owner), fmt.Sprintf("zz%03d|0", owner), "", int64(2)})
		}
		addWork(t, d, rows...)
		order := orderOfWork(t, d, q, slots, many+len(rows))
		last := 0
		for i, key := range order {
			if !strings.HasPrefix(key, "many|") {
				last = i
			}
		}
		if most := many / 2; last > most {
			t.Errorf("the last key of the others was worked as number %d of %d, want within the first %d", last, len(order),
				most)
		}
	})
}

// What is remembered of turns has a bound; past it only places in a round are lost.
func TestTurnsOfManyOwnersAreForgottenAtOnce(t *testing.T) {
	t.Parallel()
	for _, owners := range []int{lease.OwnersKnownMost, lease.OwnersKnownMost + 1} {
		var had []string
		for i := range owners {
			had = append(had, fmt.Sprintf("o%05d|a", i))
		}
		got := lease.OrderTurns("|", had, []string{"o00000|a", "o00000|b"})
		want := []string{"o00000|b", "o00000|a"} // a had its turn
		if owners > lease.OwnersKnownMost {
			want = []string{"o00000|a", "o00000|b"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("after turns of %d owners: %v, want %v", owners, got, want)
		}
	}
}

// Whatever had a turn before: turns lose no key, and as long as an owner has
// keys left it is at most one turn behind any other.
func TestTurnsAreEqual(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var keys, had []string
		left := map[string]int{}
		for owner := range 1 + r.IntN(6) {
			name := fmt.Sprint("o", owner)
			for key := range r.IntN(9) {
				keys = append(keys, fmt.Sprintf("%s|%d", name, key))
				left[name]++
			}
		}
		for range r.IntN(5) {
			had = append(had, fmt.Sprintf("o%d|%d", r.IntN(7), r.IntN(9)))
		}
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		got := lease.OrderTurns("|", had, keys)
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(keys))) {
			t.Fatalf("seed %d: %v became %v", seed, keys, got)
		}
		turns := map[string]int{}
		for _, key := range got {
			owner, _, _ := strings.Cut(key, "|")
			turns[owner]++
			for other, n := range left {
				if turns[other] < n && turns[owner] > turns[other]+1 {
					t.Fatalf("seed %d: %s has its turn number %d before %s its number %d: %v", seed, owner, turns[owner], other,
						turns[other]+1, got)
				}
			}
		}
		if len(had) > 0 && len(got) > 1 {
			if last := had[len(had)-1]; got[0] == last {
				t.Errorf("seed %d: %s had the last turn and has the next: %v", seed, last, got)
			}
		}
	}
}

// Who works a row is told when another owner's is due and has no slot, and no longer
// when that one was worked.
func TestARowInWorkKnowsWhoWaitsBesideIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := lanes(t, d)
		q.Group = "|"
		addRiders(t, d, []any{"r1", "many|1", db.Micros(d.Now())}, []any{"r2", "many|2", db.Micros(d.Now())})
		worked := make(chan string, 9)
		finish := laneWork(t, d, func(lane string, _ int64) { worked <- lane })
		begun, goOn := make(chan string), make(chan struct{})
		p := &lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 16, ClassMost: 1, Class: func(string) string { return "" }}
		p.Work = func(ctx context.Context, l *lease.Lease[struct{}]) {
			begun <- l.ID
			<-goOn
			finish(ctx, l)
		}
		stop := pumping(p)
		defer stop()
		lane := <-begun
		if working, waiting := p.Beside(lane); working != 0 || waiting {
			t.Errorf("beside its own: %d, %v", working, waiting)
		}
		must(t, d.Write(context.Background(), func(tx *db.Tx) error {
			tx.Wake("test_lanes")
			return tx.Insert("test_riders", "id,lane,due_at", []any{"small", "small|1", db.Micros(tx.Now())})
		}))
		for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, waiting := p.Beside(lane); waiting {
				break
			}
			if time.Now().After(late) {
				t.Fatal("nobody is seen to wait")
			}
		}
		for range 2 {
			goOn <- struct{}{}
			lane = <-begun
			if working, _ := p.Beside(lane); working != 0 {
				t.Errorf("%d are in work beside %s, of one slot", working, lane)
			}
		}
		goOn <- struct{}{}
		<-worked
	})
}

// Where several owners are at work, the last slots of a class are for those that have
// less than their share: a newcomer waits for nobody's end. One alone has all of them.
func TestTheLastSlotsAreNotForThoseWhoHaveMost(t *testing.T) {
	t.Parallel()
	const slots = 8
	for _, several := range []bool{false, true} {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			q := lanes(t, d)
			q.Group = "|"
			now, want := db.Micros(d.Now()), slots
			var rows [][]any
			for i := range 2 * slots {
				rows = append(rows, []any{fmt.Sprint("m", i), fmt.Sprintf("many|%02d", i), now})
			}
			if several {
				rows, want = append(rows, []any{"b", "b|1", now}), slots-1
			}
			addRiders(t, d, rows...)
			finish := laneWork(t, d, func(string, int64) {})
			begun, goOn := make(chan string, 99), make(chan struct{})
			stop := pumping(&lease.Pump[struct{}]{DB: d, Queue: q, InFlight: 64, ClassMost: slots,
				Class: func(string) string { return "" },
				Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
					begun <- l.ID
					<-goOn
					finish(ctx, l)
				}})
			for range want {
				<-begun
			}
			if several {
				must(t, d.Write(context.Background(), func(tx *db.Tx) error {
					tx.Wake("test_lanes")
					return tx.Insert("test_riders", "id,lane,due_at", []any{"new", "new|1", db.Micros(tx.Now())})
				}))
				if lane := <-begun; lane != "new|1" {
					t.Errorf("%s has the last slot", lane)
				}
			}
			if len(begun) > 0 {
				t.Errorf("%s is in work beside all slots", <-begun)
			}
			close(goOn)
			stop()
		})
	}
}

// orderOfWork works rows until all are done, and answers their keys. The rows in flight
// end together: however late one of them gets a processor, it is overtaken by none that
// was claimed after it had a slot.
func orderOfWork(t *testing.T, d *db.DB, q *lease.Queue[string], slots, total int) (order []string) {
	t.Helper()
	var mu sync.Mutex
	full, done := make(chan struct{}), make(chan struct{})
	begin := func(key string) (others chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		order, others = append(order, key), full
		if len(order)%slots == 0 || len(order) == total {
			close(full)
			full = make(chan struct{})
		}
		if len(order) == total {
			close(done)
		}
		return others
	}
	stop := pumping(&lease.Pump[string]{DB: d, Queue: q, InFlight: slots, Poll: time.Hour,
		Work: func(ctx context.Context, l *lease.Lease[string]) {
			<-begin(l.Key)
			must(t, d.Write(ctx, func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) }))
		}})
	defer stop()
	<-done
	return order
}
