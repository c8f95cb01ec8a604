package webhook_test

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

// orderly is a receiver that fails as scripted and remembers when it first heard of each event.
type orderly struct {
	mu     sync.Mutex
	first  []string       // resource ids in the order of their first tries
	heard  map[string]int // requests per resource
	failed map[string]int // how often each is to fail
}

func (o *orderly) answer(_ int, r received, w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heard[r.ResourceID]++; o.heard[r.ResourceID] == 1 {
		o.first = append(o.first, r.ResourceID)
	}
	if o.heard[r.ResourceID] <= o.failed[r.ResourceID] {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (o *orderly) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.first, o.heard, o.failed = nil, map[string]int{}, map[string]int{}
}

func (o *orderly) fail(id string, times int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed[id] = times
}

func (o *orderly) order() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.first)
}

// fewer lowers the number of checks for a property that needs the disk for each,
// unless the command line says otherwise.
func fewer(t *testing.T, checks string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if before := f.Value.String(); before == f.DefValue {
		t.Cleanup(func() { _ = f.Value.Set(before) }) // it was accepted before
		if err := f.Value.Set(checks); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever fails, on however many nodes: of each series the first tries come in
// the order of the events, and every event is delivered.
func TestFirstTriesOfASeriesKeepTheirOrder(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		if strings.HasPrefix(url, "sqlite:") {
			needs.NotRaced(t, "SQLite is Go here")
		}
		d := dbtest.Open(t, db.Config{URL: url})
		b, script := newInbox(), &orderly{}
		b.answer = script.answer
		target, roots := b.receiver(t)
		quick := func(c *webhook.Config) {
			c.Ladder.Base = 2 * time.Millisecond
			c.Pace = webhook.Pace{TriesMax: 4, FailuresToOpen: 1 << 20}
		}
		o := newOffice(t, d, roots, quick)
		o.setTarget(client, target)
		o.open(t)
		if d.Engine() == "postgres" {
			second := newOffice(t, dbtest.Open(t, db.Config{URL: url}), roots, quick)
			second.setTarget(client, target)
			second.open(t)
		}
		round := 0
		checks := "6"
		if needs.IsLong() {
			checks = "100"
		}
		fewer(t, checks)
		rapid.Check(t, func(rt *rapid.T) {
			round++
			series := rapid.IntRange(1, 3).Draw(rt, "series")
			order := rapid.SliceOfN(rapid.IntRange(0, series-1), 1, 10).Draw(rt, "events")
			batch, next := []webhook.Event(nil), make([]int, series)
			script.reset()
			for i, n := range order {
				id := fmt.Sprintf("r%d-s%d-%d", round, n, next[n])
				next[n]++
				script.fail(id, rapid.IntRange(0, 2).Draw(rt, "failures"))
				e := event(id)
				e.Series = fmt.Sprintf("r%d-s%d", round, n)
				batch = append(batch, e)
				if i == len(order)-1 || rapid.Bool().Draw(rt, "commit") {
					o.notify(t, batch...)
					batch = nil
				}
			}
			eventually(t, "all delivered", func() bool {
				rows := o.list(t, webhook.Filter{Limit: len(order)})
				return !slices.ContainsFunc(rows, func(r webhook.EventRow) bool { return r.Status != webhook.Delivered })
			})
			got := script.order()
			if len(got) != len(order) {
				rt.Fatalf("%d of %d events arrived", len(got), len(order))
			}
			for n := range series {
				var of []string
				for _, id := range got {
					if prefix := fmt.Sprintf("r%d-s%d-", round, n); len(id) > len(prefix) && id[:len(prefix)] == prefix {
						of = append(of, id)
					}
				}
				for i, id := range of {
					if want := fmt.Sprintf("r%d-s%d-%d", round, n, i); id != want {
						rt.Fatalf("first tries %v: %s should come before %s", of, want, id)
					}
				}
			}
		})
		b.check(t)
	})
}

func TestRetriesAndRedeliveriesDoNotHoldNewerEventsBack(t *testing.T) {
	t.Parallel()
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b.set(func(_ int, r received, w http.ResponseWriter, _ *http.Request) {
			if r.ResourceID == "stubborn" {
				w.WriteHeader(http.StatusTeapot)
			}
		})
		o := newOffice(t, d, roots, func(c *webhook.Config) { c.Ladder.Base = time.Hour })
		o.setTarget(client, url)
		stop := o.open(t)
		in := func(id string) webhook.Event { e := event(id); e.Series = "one"; return e }
		o.notify(t, in("stubborn"), in("second"))
		eventually(t, "the second is delivered, the first was tried", func() bool {
			waiting := o.list(t, webhook.Filter{Status: "pending"})
			return len(waiting) == 1 && waiting[0].Tries == 1
		})
		waiting := o.list(t, webhook.Filter{Status: "pending"})
		if waiting[0].ResourceID != "stubborn" {
			t.Fatalf("waiting: %+v", waiting)
		}
		stop() // a redelivery is now waiting in front of a new event
		if err := o.Redeliver(t.Context(), client, waiting[0].WebhookID); err != nil {
			t.Fatal(err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE webhook_events SET due_at = due_at + 3600000000 WHERE webhook_id = $1", waiting[0].WebhookID)
		}); err != nil {
			t.Fatal(err)
		}
		o.notify(t, in("third"))
		stop = o.open(t)
		eventually(t, "the third is delivered", func() bool {
			return len(o.list(t, webhook.Filter{Status: "delivered"})) == 2
		})
		stop()
	})
	b.check(t)
}

// A thousand resubmits of one transaction make a thousand events of one series.
func TestALongSeriesFlows(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const events = 200
		seen := len(b.all())
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		for i := range events / 50 {
			var batch []webhook.Event
			for j := range 50 {
				e := event(fmt.Sprintf("op-%04d", 50*i+j))
				e.Series = "one"
				batch = append(batch, e)
			}
			o.notify(t, batch...)
		}
		stop := o.open(t)
		got := b.wait(t, seen+events)[seen:]
		for i, r := range got {
			if want := fmt.Sprintf("op-%04d", i); r.ResourceID != want {
				t.Fatalf("request %d is of %s", i, r.ResourceID)
			}
		}
		eventually(t, "recorded", func() bool { return len(o.list(t, webhook.Filter{Status: "pending"})) == 0 })
		stop()
	})
	b.check(t)
}
