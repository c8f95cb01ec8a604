package webhook_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/guard"
	"tributary/internal/guard/guardtest"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

func TestHardCase17AnAnswerThatNeverEndsIsADelivery(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	gone := make(chan struct{})
	b.answer = func(_ int, _ received, w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Encoding", "gzip") // and the body is a lie as well
		chunk := []byte(strings.Repeat("x", 32<<10))
		for req.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				break
			}
		}
		close(gone)
	}
	url, roots := b.receiver(t)
	o := newOffice(t, dbtest.SQLite(t), roots)
	o.setTarget(client, url)
	stop := o.open(t)
	o.notify(t, event("op-1"))
	eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
	<-gone // the connection was closed on it
	stop()
	tries := o.tries(t, o.one(t).WebhookID)
	if len(b.all()) != 1 || len(tries) != 1 || tries[0].Status != 200 || len(tries[0].Reply) > webhook.ReplyBytesKept {
		t.Errorf("%d requests, tries %+v", len(b.all()), tries)
	}
	b.check(t)
}

func TestHardCase18TheReceiverDiesAfterReadingAndHearsItAgain(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	b.answer = func(n int, _ received, _ http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			panic(http.ErrAbortHandler) // read everything, never answers
		}
	}
	inVirtualTime(t, b, func(t *testing.T, url string, roots *x509.CertPool) {
		o := newOffice(t, dbtest.SQLite(t), roots, jitter(1))
		o.setTarget(client, url)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		time.Sleep(6 * time.Second)
		stop()
		got := b.all()
		if len(got) != 2 || got[0].WebhookID != got[1].WebhookID ||
			got[1].DeliveredAt.Sub(got[0].DeliveredAt) != 5*time.Second ||
			got[0].header.Get(webhook.HeaderSignature) == got[1].header.Get(webhook.HeaderSignature) {
			t.Errorf("received %+v", got)
		}
		if tries := o.tries(t, got[0].WebhookID); len(tries) != 2 || tries[0].Class != webhook.ClassClosed ||
			tries[1].Class != "" {
			t.Errorf("tries: %+v", tries)
		}
	})
	b.check(t)
}

func TestHardCase19ABadRedirectFailsAndTheRetryGoesToTheConfiguredURL(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	for name, c := range map[string]struct {
		location string
		class    webhook.Class
		alerts   int
	}{
		"plain http":  {"http://127.0.0.1:1/x", webhook.ClassRedirectInsecure, 1},
		"metadata":    {"https://169.254.169.254/latest", webhook.ClassRedirectRefused, 1},
		"userinfo":    {"https://user@127.0.0.1:1/x", webhook.ClassRedirectRefused, 1},
		"loop":        {"/hook", webhook.ClassRedirectDepth, 0},
		"no location": {"", webhook.ClassNoLocation, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := len(b.all())
			hops := 1
			if c.class == webhook.ClassRedirectDepth {
				hops = 4
			}
			b.set(func(n int, _ received, w http.ResponseWriter, _ *http.Request) {
				if n-seen <= hops {
					w.Header().Set("Location", c.location)
					w.WriteHeader(http.StatusFound)
				}
			})
			url, roots := b.receiver(t)
			o := newOffice(t, dbtest.SQLite(t), roots)
			o.setTarget(client, url)
			stop := o.open(t)
			o.notify(t, event("op-1"))
			eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
			stop()
			tries := o.tries(t, o.one(t).WebhookID)
			if len(tries) != 2 || tries[0].Class != c.class || tries[1].URL != url || tries[1].Hops != 0 {
				t.Errorf("tries: %+v", tries)
			}
			if a := o.alerts(t, alert.WebhookAddressRefused); len(a) != c.alerts {
				t.Errorf("alerts: %+v", a)
			}
		})
	}
	b.check(t)
}

func TestHardCase20ARefusedAddressIsAFailedTryWithOneAlert(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := guardtest.NewForbidden(t, "127.0.0.1:0")
		z := guardtest.NewZone(t)
		z.Set("rebound.example", guardtest.Addrs("127.0.0.1"))
		s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{}), Resolver: z.Resolver()})
		o := newOffice(t, d, nil, func(c *webhook.Config) { c.Sender = s })
		o.setTarget(client, "https://rebound.example:"+f.Port()+"/hook")
		stop := o.open(t)
		o.notify(t, event("op-1"))
		eventually(t, "three tries", func() bool { return o.one(t).Tries >= 3 })
		stop()
		for _, try := range o.tries(t, o.one(t).WebhookID) {
			if try.Class != webhook.ClassAddressRefused || try.Status != 0 {
				t.Errorf("try: %+v", try)
			}
		}
		if a := o.alerts(t, alert.WebhookAddressRefused); len(a) != 1 || a[0].Times != 1 || a[0].Subject != client {
			t.Errorf("alerts: %+v", a)
		}
		if n := f.Seen.Load(); n != 0 {
			t.Errorf("the forbidden listener saw %d connections", n)
		}
	})
}

func TestHardCase21TheNextTryUsesTheAddressAndKeysOfItsInstant(t *testing.T) {
	t.Parallel()
	old, now := newInbox(), newInbox()
	now.key = keyText("k2")
	old.answer = status(http.StatusGone)
	s, roots := serveTimeless(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		map[string]*inbox{"/old": old, "/new": now}[r.URL.Path].ServeHTTP(w, r)
	}))
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const events = 40 // more than a breaker takes
		seen := len(now.all())
		o := newOffice(t, d, roots, func(c *webhook.Config) { c.Ladder.Base = 200 * time.Millisecond })
		o.setTarget(client, s.URL+"/old")
		stop := o.open(t)
		for i := range events {
			o.notify(t, event(fmt.Sprint("op-", i)))
		}
		eventually(t, "the breaker opens", func() bool { r := o.Receivers(client); return len(r) == 1 && r[0].Breaker.Open })
		o.change(func(targets map[string]string, keys map[string]webhook.Keys) {
			targets[client], keys[client] = s.URL+"/new", webhook.Keys{Current: key("k2")}
		})
		now.wait(t, seen+events)
		eventually(t, "all delivered", func() bool { return len(o.list(t, webhook.Filter{Status: "delivered"})) == events })
		stop()
		for _, row := range o.list(t, webhook.Filter{}) {
			tries := o.tries(t, row.WebhookID)
			if last := tries[len(tries)-1]; last.URL != s.URL+"/new" || last.KeyID != "k2" {
				t.Errorf("last try: %+v", last)
			}
		}
	})
	old.check(t)
	now.check(t)
}

func TestHardCase21ARemovedSubscriptionClosesWhatWaits(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	b.answer = status(http.StatusInternalServerError)
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, roots, func(c *webhook.Config) { c.Ladder.Base = 300 * time.Millisecond })
		o.setTarget(client, url)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		eventually(t, "a try", func() bool { return o.one(t).Tries > 0 })
		o.setTarget(client, "")
		eventually(t, "closed", func() bool { return o.one(t).Status == webhook.Unsubscribed })
		stop()
		seen := len(b.all())
		row := o.one(t)
		if row.Tries == 0 || !row.NextTryAt.IsZero() || row.LastStatus != 500 || len(o.tries(t, row.WebhookID)) != row.Tries {
			t.Errorf("closed: %+v", row)
		}
		if !strings.Contains(o.logged(), "its URL was removed") {
			t.Errorf("nothing in the log:\n%s", o.logged())
		}
		b.set(nil)
		o.setTarget(client, url)
		stop = o.open(t)
		if err := o.Redeliver(t.Context(), client, row.WebhookID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
		stop()
		if got := b.wait(t, seen+1)[seen]; got.WebhookID != row.WebhookID {
			t.Errorf("received %s", got.body)
		}
		b.set(status(http.StatusInternalServerError))
	})
	b.check(t)
}

func TestWithoutAKeyDeliveriesWaitUnsigned(t *testing.T) {
	t.Parallel()
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		o := newOffice(t, d, roots)
		o.change(func(targets map[string]string, keys map[string]webhook.Keys) {
			targets[client] = url
			delete(keys, client)
		})
		stop := o.open(t)
		for i := range 5 {
			o.notify(t, event(fmt.Sprint("op-", i)))
		}
		eventually(t, "an alert", func() bool { return len(o.alerts(t, alert.SigningKeyMissing)) == 1 })
		if rows := o.list(t, webhook.Filter{Status: "pending"}); len(rows) != 5 || rows[0].Tries != 0 ||
			len(b.all()) != seen {
			t.Errorf("without a key: %+v, %d requests", rows, len(b.all())-seen)
		}
		o.change(func(_ map[string]string, keys map[string]webhook.Keys) {
			keys[client] = webhook.Keys{Current: key("k1")}
		})
		eventually(t, "delivered", func() bool { return len(o.list(t, webhook.Filter{Status: "delivered"})) == 5 })
		stop()
		if a := o.alerts(t, alert.SigningKeyMissing); a[0].Times != 1 || a[0].Subject != client {
			t.Errorf("alerts: %+v", a)
		}
		if len(b.all()) != seen+5 {
			t.Errorf("%d requests", len(b.all())-seen)
		}
	})
	b.check(t)
}

// A receiver has one key at a time and accepts it in either header. Whenever it
// switches between the rotation and the promotion, nothing may be refused.
func TestRotationNeverCostsADelivery(t *testing.T) {
	t.Parallel()
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		stop := o.open(t)
		b.mu.Lock()
		b.key = keyText("k1")
		b.mu.Unlock()
		var sent atomic.Int64
		end, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-end:
					return
				default:
					o.notify(t, event(fmt.Sprint("op-", sent.Add(1))))
				}
			}
		}()
		more := func() { // a few deliveries in the present state
			from := len(b.all())
			b.wait(t, from+10)
		}
		set := func(k webhook.Keys) {
			o.change(func(_ map[string]string, keys map[string]webhook.Keys) { keys[client] = k })
		}
		for n := 1; n <= 3; n++ {
			older, newer := fmt.Sprint("k", n), fmt.Sprint("k", n+1)
			more()
			set(webhook.Keys{Current: key(older), Next: key(newer)}) // rotate
			more()
			// In flight may still be what was signed before the rotation, by the older key alone.
			settled := sent.Load()
			eventually(t, "what was signed before is there", func() bool {
				heard := b.heard()
				for i := range settled {
					if heard[fmt.Sprint("op-", i+1)] == 0 {
						return false
					}
				}
				return true
			})
			b.mu.Lock()
			b.key = keyText(newer) // the receiver switches
			b.mu.Unlock()
			more()
			set(webhook.Keys{Current: key(newer)}) // promote; the older one retires or is revoked
		}
		more()
		close(end)
		<-done
		eventually(t, "everything delivered", func() bool { return len(o.list(t, webhook.Filter{Status: "pending"})) == 0 })
		stop()
		b.check(t)
		if n := int64(len(b.all())); n < sent.Load() {
			t.Errorf("%d requests for %d events", n, sent.Load())
		}
		b.mu.Lock()
		b.got = nil
		b.mu.Unlock()
	})
}
