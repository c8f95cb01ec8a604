package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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

// works runs the jobs of an office until the test ends.
func (o *office) works(t testing.TB) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.RunReplays(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("work replays: %v", err)
		}
	})
}

func (o *office) replay(t testing.TB, id string) webhook.Replay {
	t.Helper()
	all := must(o.Replays(t.Context(), 10))(t)
	i := slices.IndexFunc(all, func(r webhook.Replay) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("replay %s is not listed", id)
	}
	return all[i]
}

// deliverAll notifies n events and lets all be delivered.
func (o *office) deliverAll(t testing.TB, box *inbox, n int) {
	t.Helper()
	var events []webhook.Event
	for i := range n {
		events = append(events, event(fmt.Sprintf("r%04d", i)))
	}
	o.notify(t, events...)
	box.wait(t, n)
	eventually(t, "everything is delivered", func() bool {
		return o.count(t, "status = 'delivered' AND due_at IS NULL") == n
	})
}

func (o *office) count(t testing.TB, where string) (n int) {
	t.Helper()
	if err := o.d.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT count(*) FROM webhook_events WHERE " + where).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAReplaySendsEveryEventOfItsWindowOnceMore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		box := newInbox()
		url, roots := box.receiver(t)
		o := newOffice(t, d, roots)
		o.setTarget(client, url)
		o.open(t)
		began := d.Now().Add(-time.Second)
		const n = webhook.ReplaySet + 3 // more than one step
		o.deliverAll(t, box, n)
		w := webhook.Window{ClientID: client, From: began, To: d.Now().Add(time.Hour)}
		if got, more, err := o.CountWindow(t.Context(), w); err != nil || got != n || more {
			t.Fatalf("counted %d, %t, %v", got, more, err)
		}
		o.works(t)
		id := must(o.Replay(t.Context(), w, "ana", nil))(t)
		box.wait(t, 2*n)
		eventually(t, "the replay has ended", func() bool { return !o.replay(t, id).EndedAt.IsZero() })
		if r := o.replay(t, id); r.Sent != n || r.By != "ana" || r.Window.To.After(d.Now()) {
			t.Errorf("%+v", r)
		}
		eventually(t, "everything is delivered again", func() bool {
			return o.count(t, "tries = 2 AND status = 'delivered'") == n
		})
		if again := len(box.all()); again != 2*n {
			t.Errorf("%d notifications for %d events sent twice", again, n)
		}
		box.check(t)
	})
}

func TestAReplayLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, nil) // nothing is sent
		o.setTarget(client, "https://receiver.example/")
		o.setTarget("c_other", "https://receiver.example/")
		o.setTarget(client+" "+webhook.LookupBatchCompleted, "")
		lookup := webhook.Event{ClientID: client, Type: webhook.LookupBatchCompleted, ResourceID: "b", ResourcePath: "/b"}
		foreign := event("foreign")
		foreign.ClientID = "c_other"
		o.notify(t, event("one"), lookup, foreign)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE webhook_events SET due_at = NULL, status = 'discarded' WHERE status = 'pending'")
		}); err != nil {
			t.Fatal(err)
		}
		w := webhook.Window{ClientID: client, From: d.Now().Add(-time.Minute), To: d.Now().Add(time.Minute)}
		count := func(w webhook.Window) int {
			n, _, err := o.CountWindow(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		discarded, typed, earlier := w, w, w
		discarded.Status, typed.EventType = webhook.Discarded, webhook.LookupBatchCompleted
		earlier.From, earlier.To = w.From.Add(-time.Hour), w.From
		if a, b, c, e := count(w), count(discarded), count(typed), count(earlier); a != 2 || b != 1 || c != 1 || e != 0 {
			t.Errorf("counted %d, %d, %d, %d", a, b, c, e)
		}
		id := must(o.Replay(t.Context(), w, "ana", nil))(t)
		if err := o.ReplayNow(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if r := o.replay(t, id); r.Sent != 1 || r.EndedAt.IsZero() {
			t.Errorf("%+v", r)
		}
		if due := o.count(t, "due_at IS NOT NULL"); due != 1 {
			t.Errorf("%d events are due", due)
		}
		if err := o.ReplayNow(t.Context(), id); err != nil || o.replay(t, id).Sent != 1 {
			t.Errorf("a job that runs twice: %v, %+v", err, o.replay(t, id))
		}
	})
}

func TestAReplayGoesOnWhereItsWorkerDied(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	d := dbtest.SQLite(t)
	o := newOffice(t, d, nil)
	o.setTarget(client, "https://receiver.example/")
	var events []webhook.Event
	for i := range 2*webhook.ReplaySet + 1 {
		events = append(events, event(fmt.Sprint("r", i)))
	}
	o.notify(t, events...)
	id := must(o.Replay(t.Context(), webhook.Window{ClientID: client, From: d.Now().Add(-time.Minute),
		To: d.Now().Add(time.Minute)}, "ana", nil))(t)
	if done, err := o.ReplayStep(t.Context(), id); done || err != nil {
		t.Fatalf("%t, %v", done, err)
	}
	if r := o.replay(t, id); r.Sent != webhook.ReplaySet || !r.EndedAt.IsZero() {
		t.Fatalf("after one step: %+v", r)
	}
	again := newOffice(t, d, nil) // another process
	again.setTarget(client, "https://receiver.example/")
	if err := again.ReplayNow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if r := again.replay(t, id); r.Sent != int64(len(events)) || r.EndedAt.IsZero() {
		t.Errorf("after resuming: %+v", r)
	}
}

func TestAReplayAndItsLogEntryAreOneCommit(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	o := newOffice(t, dbtest.SQLite(t), nil)
	full := errors.New("the log is full")
	w := webhook.Window{ClientID: client, From: o.d.Now().Add(-time.Hour), To: o.d.Now()}
	if _, err := o.Replay(t.Context(), w, "ana", func(*db.Tx) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if all := must(o.Replays(t.Context(), 10))(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestWindowsAreChecked(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	o := newOffice(t, dbtest.SQLite(t), nil)
	to := o.d.Now()
	year := webhook.Window{ClientID: client, From: to.Add(-366 * 24 * time.Hour), To: to}
	if _, _, err := o.CountWindow(t.Context(), year); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*webhook.Window){
		"no client":        func(w *webhook.Window) { w.ClientID = "" },
		"all clients":      func(w *webhook.Window) { w.ClientID = webhook.AnyClient },
		"no beginning":     func(w *webhook.Window) { w.From = time.Time{} },
		"backwards":        func(w *webhook.Window) { w.From = w.To },
		"more than a year": func(w *webhook.Window) { w.From = w.From.Add(-time.Second) },
		"another status":   func(w *webhook.Window) { w.Status = "lost" },
	} {
		w := year
		change(&w)
		if _, _, err := o.CountWindow(t.Context(), w); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := o.Replay(t.Context(), w, "ana", nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("replaying %s: %v", what, err)
		}
	}
}

func TestDeliveriesShowEveryReceiverWithItsBreaker(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		box := newInbox()
		box.set(status(500))
		url, roots := box.receiver(t)
		o := newOffice(t, d, roots, func(c *webhook.Config) {
			c.Pace = webhook.Pace{FailuresToOpen: 2, EventsToOpen: 2, ProbeEvery: time.Hour}
			c.Ladder = webhook.Ladder{Base: time.Hour}
		})
		o.setTarget(client, url+"/hook?token=secret")
		o.setTarget("c_quiet", "https://quiet.example/")
		o.notify(t, event("one"), event("two"))
		o.open(t)
		eventually(t, "the breaker is open", func() bool {
			list := must(o.Deliveries(t.Context(), []string{client}))(t)
			return len(list) > 0 && slices.ContainsFunc(list, func(d webhook.Delivery) bool { return d.Breaker.Open })
		})
		eventually(t, "both tries are recorded", func() bool { return o.count(t, "tries = 1 AND lease_until IS NULL") == 2 })
		list := must(o.Deliveries(t.Context(), []string{client, "c_quiet", "c_unconfigured"}))(t)
		if len(list) != 2*len(webhook.EventTypes()) {
			t.Fatalf("%+v", list)
		}
		for _, l := range list {
			if strings.Contains(l.URL, "secret") || !l.Configured {
				t.Errorf("%+v", l)
			}
			pending := 0
			if l.ClientID == client && l.EventType == webhook.TransactionCompleted {
				pending = 2
			}
			if l.Pending != pending || (pending > 0) == l.OldestAt.IsZero() || l.Known != (l.ClientID == client) ||
				l.Breaker.Open != l.Known {
				t.Errorf("%+v", l)
			}
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE webhook_events SET status = 'discarded', due_at = NULL")
		}); err != nil {
			t.Fatal(err)
		}
		if l := must(o.Deliveries(t.Context(), []string{client}))(t)[0]; l.Discarded != 2 || l.DiscardedMore {
			t.Errorf("%+v", l)
		}
	})
}

func TestEventsAreFoundByIdAndByTheWriteThatMadeThem(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(t, d, nil)
		var at time.Time
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			at = tx.Now()
			return o.Notify(tx, event("mine"), event("other"))
		}); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(t.Context(), func(r db.Reader) error {
			found, err := o.EventsAt(r, client, "mine", at)
			if err != nil || len(found) != 1 || found[0].ResourceID != "mine" {
				t.Fatalf("%+v, %v", found, err)
			}
			if id, err := o.ResourceOf(r, found[0].WebhookID); err != nil || id != "mine" {
				t.Errorf("%q, %v", id, err)
			}
			for _, elsewhere := range []time.Time{at.Add(-time.Millisecond), at.Add(time.Millisecond)} {
				if late, err := o.EventsAt(r, client, "mine", elsewhere); err != nil || len(late) != 0 {
					t.Errorf("%+v, %v", late, err)
				}
			}
			told, err := o.Since(r, "", at.Add(time.Second), 10)
			if err != nil || len(told) != 2 || told[0].WebhookID > told[1].WebhookID {
				t.Errorf("%+v, %v", told, err)
			}
			if rest, err := o.Since(r, told[0].WebhookID, at.Add(time.Second), 10); err != nil || len(rest) != 1 {
				t.Errorf("%+v, %v", rest, err)
			}
			if young, err := o.Since(r, "", at.Add(-time.Millisecond), 10); err != nil || len(young) != 0 {
				t.Errorf("%+v, %v", young, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		row := o.list(t, webhook.Filter{})[0]
		if found, whose, err := o.Find(t.Context(), row.WebhookID); err != nil || whose != client || found != row {
			t.Errorf("%+v of %s, %v", found, whose, err)
		}
		for _, id := range []string{"", "x", strings.Repeat("0", 40)} {
			if _, _, err := o.Find(t.Context(), id); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

var wholeEvents = regexp.MustCompile(`SCAN webhook_events$|Seq Scan on webhook_events`)

func TestNoPageReadsAllEvents(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, s := range webhook.PageStatements() {
			if err := d.Read(t.Context(), func(r db.Reader) error {
				// a small table is read as a whole whatever indexes it has; this asks whether it must be
				if d.Engine() == "postgres" {
					var off string
					if err := r.Row("SELECT set_config('enable_seqscan', 'off', true)").Scan(&off); err != nil {
						return err
					}
				}
				lines, err := dbtest.Plan(r, d, s.Text, s.Args...)
				for _, line := range lines {
					if wholeEvents.MatchString(strings.TrimSpace(line)) {
						t.Errorf("%s\n%s", line, s.Text)
					}
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
