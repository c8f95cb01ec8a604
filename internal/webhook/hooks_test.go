package webhook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

func TestAnEventIsDeliveredSignedAndRecorded(t *testing.T) {
	t.Parallel()
	b := newInbox()
	b.answer = func(_ int, _ received, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.Write([]byte(strings.Repeat("thanks ", 1000)))
	}
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		stop := o.open(t)
		begun := time.Now().Truncate(time.Second)
		o.notify(t, event("op-1"))
		got := b.wait(t, seen+1)[seen]
		eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
		stop()

		row := o.one(t)
		want := webhook.Notification{
			EventType: "transactions.transaction_completed", ResourceID: "op-1",
			ResourceURL: "https://api.example/v1/transactions/op-1",
			WebhookID:   row.WebhookID, DeliveredAt: got.DeliveredAt,
		}
		if got.Notification != want || got.DeliveredAt.Before(begun) || got.header.Get("X-Service-Hmac-SHA256-Next") != "" {
			t.Errorf("received %s", got.body)
		}
		text := must(json.Marshal(row))(t)
		members := `{"webhook_id":"` + row.WebhookID +
			`","event_type":"transactions.transaction_completed","resource_id":"op-1",` +
			`"resource_url":"https://api.example/v1/transactions/op-1","status":"delivered","tries":1,"next_try_at":null,"last_status":202,` +
			`"created_at":"` + row.CreatedAt.Format("2006-01-02T15:04:05Z") + `"}`
		if string(text) != members {
			t.Errorf("row\n%s, want\n%s", text, members)
		}
		tries := o.tries(t, row.WebhookID)
		if len(tries) != 1 {
			t.Fatalf("%d tries", len(tries))
		}
		try := tries[0]
		if try.URL != url || !strings.HasPrefix(try.Address, "127.0.0.1:") || try.Status != 202 || try.Class != "" ||
			try.KeyID != "k1" ||
			try.Latency <= 0 || try.At.Before(begun) || len(try.Reply) != webhook.ReplyBytesKept ||
			!strings.HasPrefix(string(try.Reply), "thanks") {
			t.Errorf("record of the try: %+v", try)
		}
	})
	b.check(t)
}

func TestAnEventBelongsToItsWrite(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		undo := errors.New("undo")
		err := d.Write(t.Context(), func(tx *db.Tx) error { return errors.Join(o.Notify(tx, event("op-1")), undo) })
		if !errors.Is(err, undo) {
			t.Fatal(err)
		}
		if rows := o.list(t, webhook.Filter{}); len(rows) != 0 {
			t.Errorf("events of a write that failed: %+v", rows)
		}
		for name, e := range map[string]webhook.Event{
			"no client":   {Type: webhook.TransactionCompleted, ResourceID: "x", ResourcePath: "/x"},
			"no type":     {ClientID: client, ResourceID: "x", ResourcePath: "/x"},
			"no resource": {ClientID: client, Type: webhook.TransactionCompleted, ResourcePath: "/x"},
			"no path":     {ClientID: client, Type: webhook.TransactionCompleted, ResourceID: "x", ResourcePath: "x"},
			"blank":       {ClientID: "c x", Type: webhook.TransactionCompleted, ResourceID: "x", ResourcePath: "/x"},
		} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return o.Notify(tx, e) }); err == nil {
				t.Errorf("%s: stored", name)
			}
		}
	})
}

func TestAnEventWithoutAnAddressIsKeptAndCanBeSentLater(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, roots)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		row := o.one(t)
		if row.Status != webhook.Unsubscribed || row.Tries != 0 || !row.NextTryAt.IsZero() {
			t.Errorf("without an address: %+v", row)
		}
		if err := o.Redeliver(t.Context(), client, row.WebhookID); fault.KindOf(err) != fault.Conflict {
			t.Errorf("redelivered to nowhere: %v", err)
		}
		seen := len(b.all())
		o.setTarget(client, url)
		if err := o.Redeliver(t.Context(), client, row.WebhookID); err != nil {
			t.Fatal(err)
		}
		if got := b.wait(t, seen+1)[seen]; got.WebhookID != row.WebhookID {
			t.Errorf("received %s", got.body)
		}
		eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
		stop()
		if len(b.all()) != seen+1 {
			t.Errorf("%d requests", len(b.all())-seen)
		}
	})
	b.check(t)
}

// TestEventsBeyondTheCommonOnesAreKeptOnlyForWhoAskedForThem: one address for
// all covers what was there when it was given.
func TestEventsBeyondTheCommonOnesAreKeptOnlyForWhoAskedForThem(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		o := newOffice(t, d, roots)
		news := func(id string) webhook.Event {
			e := event(id)
			e.Type = webhook.TransactionUpdated
			return e
		}
		o.notify(t, news("nobody asked"), event("kept"))
		if rows := o.list(t, webhook.Filter{}); len(rows) != 1 || rows[0].ResourceID != "kept" ||
			rows[0].Status != webhook.Unsubscribed {
			t.Errorf("stored %+v", rows)
		}
		o.notify(t, news("nobody asked either"))
		o.setTarget(client+" "+webhook.TransactionUpdated, url)
		stop := o.open(t)
		o.notify(t, news("asked for"))
		if got := b.wait(t, seen+1)[seen]; got.EventType != "transactions.transaction_updated" ||
			got.ResourceID != "asked for" {
			t.Errorf("received %s", got.body)
		}
		stop()
		if rows := o.list(t, webhook.Filter{}); len(rows) != 2 {
			t.Errorf("stored %+v", rows)
		}
	})
	b.check(t)
}

func TestEachEventTypeCanHaveItsOwnAddress(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	one, two := newInbox(), newInbox()
	s, roots := serveTimeless(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		map[string]*inbox{"/one": one, "/two": two}[r.URL.Path].ServeHTTP(w, r)
	}))
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, roots)
		o.setTarget(client+" "+webhook.TransactionCompleted, s.URL+"/one")
		o.setTarget(client+" "+webhook.LookupBatchCompleted, s.URL+"/two")
		seen := len(one.all())
		stop := o.open(t)
		batch := webhook.Event{ClientID: client, Type: webhook.LookupBatchCompleted, ResourceID: "b-1",
			ResourcePath: "/lookup/v2/batch-validations/b-1"}
		single := webhook.Event{ClientID: client, Type: webhook.LookupSingleCompleted, ResourceID: "v-1",
			ResourcePath: "/lookup/v2/single-validations/v-1"}
		o.notify(t, event("op-1"), batch, single)
		if got := one.wait(t, seen+1)[seen]; got.ResourceID != "op-1" {
			t.Errorf("the first address received %s", got.body)
		}
		if got := two.wait(t, seen+1)[seen]; got.ResourceID != "b-1" ||
			got.ResourceURL != "https://api.example/lookup/v2/batch-validations/b-1" {
			t.Errorf("the second address received %s", got.body)
		}
		eventually(t, "recorded", func() bool { return len(o.list(t, webhook.Filter{Status: "delivered"})) == 2 })
		stop()
		if rows := o.list(t, webhook.Filter{Status: "unsubscribed"}); len(rows) != 1 || rows[0].ResourceID != "v-1" {
			t.Errorf("unsubscribed: %+v", rows)
		}
	})
}

func TestListNarrowsAndPages(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, nil)
		begun := d.Now()
		for _, id := range []string{"a", "b", "c"} {
			o.notify(t, event(id)) // no address: unsubscribed
		}
		o.setTarget(client, "https://127.0.0.1:1/hook") // nobody sends: the deliverer is closed
		o.notify(t, event("d"), event("e"))
		o.notify(t, webhook.Event{ClientID: "c_other", Type: webhook.TransactionCompleted, ResourceID: "theirs",
			ResourcePath: "/x"})

		if got := ids(o.list(t, webhook.Filter{Status: "unsubscribed"})); !slices.Equal(got, []string{"c", "b", "a"}) {
			t.Errorf("unsubscribed: %v", got)
		}
		if got := ids(o.list(t, webhook.Filter{Status: "pending"})); len(got) != 2 {
			t.Errorf("pending: %v", got)
		}
		var walked []string
		f := webhook.Filter{Limit: 2}
		for pages := 0; ; pages++ {
			rows, next, err := o.List(t.Context(), client, f)
			if err != nil || pages > 3 {
				t.Fatal(pages, err)
			}
			walked = append(walked, ids(rows)...)
			if next == "" {
				break
			}
			f.After = next
		}
		if len(walked) != 5 || slices.Contains(walked, "theirs") {
			t.Errorf("pages: %v", walked)
		}
		if got := o.list(t, webhook.Filter{From: begun.Add(-time.Millisecond), To: d.Now()}); len(got) != 5 {
			t.Errorf("in the time: %d", len(got))
		}
		if got := o.list(t, webhook.Filter{From: d.Now().Add(time.Second)}); len(got) != 0 {
			t.Errorf("after the time: %d", len(got))
		}
		if got := o.list(t, webhook.Filter{To: begun.Add(-time.Second)}); len(got) != 0 {
			t.Errorf("before the time: %d", len(got))
		}
		if all, _, err := o.List(t.Context(), webhook.AnyClient, webhook.Filter{}); err != nil || len(all) != 6 {
			t.Errorf("the operator sees %d, %v", len(all), err)
		}
	})
}

func ids(rows []webhook.EventRow) (list []string) {
	for _, r := range rows {
		list = append(list, r.ResourceID)
	}
	return list
}

func TestListRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	o := newOffice(t, dbtest.SQLite(t), nil)
	for name, c := range map[string]struct {
		f  webhook.Filter
		ok bool
	}{
		"limit 1":   {webhook.Filter{Limit: 1}, true},
		"limit 100": {webhook.Filter{Limit: 100}, true},
		"limit 101": {webhook.Filter{Limit: 101}, false},
		"limit -1":  {webhook.Filter{Limit: -1}, false},
		"status":    {webhook.Filter{Status: "gone"}, false},
		"cursor":    {webhook.Filter{After: "' OR 1=1"}, false},
	} {
		if _, _, err := o.List(t.Context(), client, c.f); (err == nil) != c.ok ||
			!c.ok && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForeignAndUnknownEventsLookAlike(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, nil)
		o.setTarget(client, "https://127.0.0.1:1/hook")
		o.setTarget("c_other", "https://127.0.0.1:1/hook")
		o.notify(t, event("op-1"))
		id := o.one(t).WebhookID
		var answers []string
		for _, c := range []struct{ client, id string }{{"c_other", id}, {client, webhook.NewID()}, {client, "not an id"}} {
			err := o.Redeliver(t.Context(), c.client, c.id)
			_, triesErr := o.Tries(t.Context(), c.client, c.id)
			if fault.KindOf(err) != fault.NotFound || fault.KindOf(triesErr) != fault.NotFound {
				t.Errorf("%v: %v, %v", c, err, triesErr)
				continue
			}
			answers = append(answers, err.Error())
		}
		if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
		if err := o.Redeliver(t.Context(), webhook.AnyClient, id); err != nil {
			t.Errorf("the operator cannot redeliver: %v", err)
		}
	})
}

func TestRedeliveryDuringATryFollowsIt(t *testing.T) {
	t.Parallel()
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		reached, release := make(chan struct{}), make(chan struct{})
		b.set(func(n int, _ received, _ http.ResponseWriter, _ *http.Request) {
			if n == seen+1 {
				close(reached)
				<-release
			}
		})
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		<-reached
		row := o.one(t)
		if row.Status != webhook.Pending || !row.NextTryAt.IsZero() {
			t.Errorf("during the try: %+v", row)
		}
		if err := o.Redeliver(t.Context(), client, row.WebhookID); err != nil {
			t.Fatal(err)
		}
		if n := len(b.all()); n != seen+1 {
			t.Errorf("%d requests while one is under way", n-seen)
		}
		close(release)
		b.wait(t, seen+2)
		eventually(t, "delivered twice", func() bool { r := o.one(t); return r.Status == webhook.Delivered && r.Tries == 2 })
		stop()
		if tries := o.tries(t, row.WebhookID); len(tries) != 2 || !tries[0].Delivered() || !tries[1].Delivered() {
			t.Errorf("tries: %+v", tries)
		}
		if n := len(b.all()); n != seen+2 {
			t.Errorf("%d requests", n-seen)
		}
	})
	b.check(t)
}

func TestForgottenTriesLeaveTheEvent(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	b := newInbox()
	url, roots := b.receiver(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := len(b.all())
		b.set(func(n int, r received, w http.ResponseWriter, _ *http.Request) {
			if n == seen+1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		stop := o.open(t)
		o.notify(t, event("op-1"))
		eventually(t, "delivered", func() bool { return o.one(t).Status == webhook.Delivered })
		stop()
		row := o.one(t)
		forget := func(clientID string, before time.Time) int {
			if _, err := o.ForgetTries(t.Context(), clientID, before); err != nil {
				t.Fatal(err)
			}
			return len(o.tries(t, row.WebhookID))
		}
		made := o.tries(t, row.WebhookID)
		later := d.Now().Add(time.Second)
		if n := forget("c_other", later); n != 2 {
			t.Errorf("another client's: %d left", n)
		}
		if n := forget(client, made[0].At); n != 2 {
			t.Errorf("before the first: %d left", n)
		}
		if n := forget(client, made[1].At); n != 1 { // each try has an age of its own
			t.Errorf("before the second: %d left", n)
		}
		if n := forget(client, later); n != 0 || o.one(t).Status != webhook.Delivered || o.one(t).Tries != 2 {
			t.Errorf("%d left of %+v", n, o.one(t))
		}
		// In several steps, and to the last one.
		for i := range 2*webhook.ForgetSet + 1 {
			o.notify(t, event(fmt.Sprint("many-", i)))
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE webhook_events SET first_try = '{}' WHERE resource_id LIKE 'many-%'")
		}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{2*webhook.ForgetSet + 1, 0} {
			if n, err := o.ForgetTries(t.Context(), client, d.Now().Add(time.Second)); n != want || err != nil {
				t.Errorf("forgot the tries of %d events, want %d: %v", n, want, err)
			}
		}
	})
}
