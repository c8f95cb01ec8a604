package webhook_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

func TestASlowReceiverDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	const clients, perClient = 10, 20
	release := make(chan struct{})
	var blocked, blockedMost, others atomic.Int64
	handler := func(i int) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if i > 0 {
				others.Add(1)
				return
			}
			for n := blocked.Add(1); ; {
				most := blockedMost.Load()
				if n <= most || blockedMost.CompareAndSwap(most, n) {
					break
				}
			}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			blocked.Add(-1)
		})
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		others.Store(0)
		release = make(chan struct{})
		o, _ := newTown(t, d, clients, handler)
		// The slow one has a long backlog in front of everybody.
		var events []webhook.Event
		add := func(i, n int) {
			id := fmt.Sprintf("op-%d-%d", i, n)
			events = append(events, webhook.Event{ClientID: clientNo(i), Type: webhook.TransactionCompleted, ResourceID: id,
				ResourcePath: "/" + id})
		}
		for n := range 5 * perClient {
			add(0, n)
		}
		for n := range perClient {
			for i := 1; i < clients; i++ {
				add(i, n)
			}
		}
		o.notify(t, events...)
		stop := o.open(t)
		eventually(t, "everybody else is served", func() bool { return others.Load() == perClient*(clients-1) })
		if most := blockedMost.Load(); most > webhook.ReceiverTriesMax {
			t.Errorf("%d tries at once to one receiver", most)
		}
		close(release)
		eventually(t, "the slow one, too", func() bool {
			rows, _, err := o.List(t.Context(), webhook.AnyClient, webhook.Filter{Status: "pending", Limit: 1})
			return err == nil && len(rows) == 0
		})
		stop()
	})
}

func TestAHolderThatLostItsLeaseRecordsNothing(t *testing.T) {
	t.Parallel()
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		reached, release := make(chan struct{}), make(chan struct{})
		b.set(func(n int, _ received, w http.ResponseWriter, _ *http.Request) {
			if n == seen+1 {
				close(reached)
				<-release
				w.WriteHeader(http.StatusConflict)
			}
		})
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		<-reached
		// Another node takes over, as after a stall longer than the lease.
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Wake("webhook_events")
			return tx.Exec("UPDATE webhook_events SET lease_until = NULL, lease_node = NULL, due_at = $1", db.Micros(tx.Now()))
		}); err != nil {
			t.Fatal(err)
		}
		b.wait(t, seen+2)
		eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
		close(release)
		eventually(t, "the first one gives up", func() bool { return strings.Contains(o.logged(), "it may be sent again") })
		stop()
		row := o.one(t)
		if tries := o.tries(t, row.WebhookID); row.Status != webhook.Delivered || row.Tries != 1 || len(tries) != 1 ||
			tries[0].Status != 200 {
			t.Errorf("%+v, tries %+v", row, tries)
		}
	})
	b.check(t)
}

func TestDeliveredAtOfARetryNeverGoesBack(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	b.answer = func(n int, _ received, w http.ResponseWriter, _ *http.Request) {
		if n < 4 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	url, roots := b.receiver(t)
	begun := time.Now()
	var calls atomic.Int64
	o := newOffice(t, dbtest.SQLite(t), roots, func(c *webhook.Config) {
		// a clock that runs backwards
		c.Now = func() time.Time { return begun.Add(-time.Duration(calls.Add(1)) * time.Minute) }
	})
	o.setTarget(client, url)
	stop := o.open(t)
	o.notify(t, event("op-1"))
	got := b.wait(t, 4)
	stop()
	for i := 1; i < len(got); i++ {
		if got[i].DeliveredAt.Before(got[i-1].DeliveredAt) {
			t.Errorf("try %d says %s after %s", i+1, got[i].DeliveredAt, got[i-1].DeliveredAt)
		}
	}
	b.check(t)
}

func TestShutdownSpendsNoTry(t *testing.T) {
	t.Parallel()
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		reached := make(chan struct{})
		var once sync.Once
		b.set(func(n int, _ received, _ http.ResponseWriter, req *http.Request) {
			if n == seen+1 {
				once.Do(func() { close(reached) })
				<-req.Context().Done()
				panic(http.ErrAbortHandler) // an answer, even a late one, would be a delivery
			}
		})
		o := newOffice(t, d, roots, func(c *webhook.Config) { c.Grace = 50 * time.Millisecond })
		o.setTarget(client, url)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		<-reached
		stop() // after its grace
		if row := o.one(t); row.Status != webhook.Pending || row.Tries != 0 || row.NextTryAt.IsZero() {
			t.Errorf("after the shutdown: %+v", row)
		}
		stop = o.open(t)
		eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
		stop()
		if row := o.one(t); row.Tries != 1 {
			t.Errorf("in the end: %+v", row)
		}
	})
	b.check(t)
}

func TestAnAlertIsRaisedForABreakerThatOpens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newInbox()
		b.answer = status(http.StatusInternalServerError)
		url, roots := b.receiver(t)
		o := newOffice(t, d, roots, func(c *webhook.Config) { c.Ladder.Base = time.Hour; c.Pace.ProbeEvery = time.Hour })
		o.setTarget(client, url+"?token=hidden")
		stop := o.open(t)
		for i := range 40 {
			o.notify(t, event(fmt.Sprint("op-", i)))
		}
		eventually(t, "an alert", func() bool { return len(o.alerts(t, alert.WebhookBreakerOpen)) == 1 })
		stop()
		a := o.alerts(t, alert.WebhookBreakerOpen)[0]
		if a.Subject != client || !strings.Contains(a.Message, url) || strings.Contains(a.Message, "hidden") {
			t.Errorf("alert: %+v", a)
		}
		states := o.Receivers(webhook.AnyClient)
		if len(states) != 1 || !states[0].Breaker.Open || states[0].URL != url || states[0].ClientID != client ||
			len(o.Receivers("c_other")) != 0 {
			t.Errorf("receivers: %+v", states)
		}
		tried := 0
		for _, row := range o.list(t, webhook.Filter{Status: "pending"}) {
			tried += row.Tries
		}
		if tried < webhook.FailuresToOpen || tried > 40 || tried != len(b.all()) {
			t.Errorf("%d tries, %d requests", tried, len(b.all()))
		}
		b.check(t)
	})
}

func TestATryIsStoredAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := webhook.Try{
			At: db.FromMicros(rapid.Int64Range(0, 1<<51).Draw(rt, "at")), URL: rapid.String().Draw(rt, "url"),
			Address: rapid.String().Draw(rt, "address"),
			Status:  rapid.IntRange(0, 999).Draw(rt, "status"), Reply: rapid.SliceOfN(rapid.Byte(), 1, 4096).Draw(rt, "reply"),
			Latency: time.Duration(rapid.Int64Range(0, 1<<40).Draw(rt, "latency")) * time.Microsecond,
			Class:   webhook.Class(rapid.String().Draw(rt, "class")),
			Detail:  rapid.String().Draw(rt, "detail"), KeyID: rapid.String().Draw(rt, "kid"),
			Hops:       rapid.IntRange(0, 3).Draw(rt, "hops"),
			RetryAfter: time.Duration(rapid.Int64Range(0, 1<<40).Draw(rt, "retry")) * time.Microsecond,
		}
		text, err := webhook.EncodeTry(want)
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := webhook.DecodeTry(text); err != nil || !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
}

func FuzzDecodeTry(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	f.Add(`{"at":1,"url":"https://x","status":200,"reply":"AAEC","latency_us":5}`)
	f.Add(`{"replY":""}`)
	f.Add(`{`)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		try, err := webhook.DecodeTry(text)
		if err != nil {
			return
		}
		once, err := webhook.EncodeTry(try)
		if err != nil {
			t.Fatal(err)
		}
		if try, err = webhook.DecodeTry(once); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if again, err := webhook.EncodeTry(try); err != nil || again != once {
			t.Fatalf("%s, then %s, %v", once, again, err)
		}
	})
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(rt, "at"))
		from := time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(rt, "from"))
		if rapid.Bool().Draw(rt, "near") {
			from = at.Add(time.Duration(rapid.IntRange(-3000, 3000).Draw(rt, "by")) * time.Microsecond)
		}
		serial := rapid.Uint32Range(0, 1<<24-2).Draw(rt, "serial")
		id, next := webhook.NewEventID(at, serial), webhook.NewEventID(at, serial+1)
		if !webhook.ValidID(id) || id >= next {
			rt.Fatalf("id %s, then %s", id, next)
		}
		if in := id >= webhook.IDFrom(from); in != !at.Truncate(time.Millisecond).Before(from) {
			rt.Fatalf("%s is after %s: %v", at, from, in)
		}
	})
}
