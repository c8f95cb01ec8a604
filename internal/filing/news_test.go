package filing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/country/xx"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/official/xxwire"
	"tributary/internal/webhook"
)

// listening is a reference authority whose documents may be spoken of later.
const listening = "XL"

func listeningPack() country.Pack {
	return world.ReferenceWith(listening, country.ByNumber,
		xx.Habits{Listen: country.Listening{First: 10 * time.Millisecond, Most: 20 * time.Millisecond, For: time.Hour}})
}

// say leaves a notice at the reference authority.
func say(t *testing.T, a *authorities, said xxwire.Said) int {
	t.Helper()
	text, err := json.Marshal(said)
	must(t, err)
	r, err := http.Post(a.URL+"/"+strings.ToLower(listening)+xxwire.PathNotices, "application/json", bytes.NewReader(text))
	must(t, err)
	must(t, r.Body.Close())
	return r.StatusCode
}

// hears is where events of every type go: nowhere that answers, but they are kept.
func hears(context.Context, string, string) (webhook.Target, bool, error) {
	return webhook.Target{URL: "https://receiver.example.test/"}, true, nil
}

// events lists the types of a transaction's notifications in their order.
func events(t *testing.T, d *db.DB, operationID string) (types []string) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) (err error) {
		types, err = db.Collect(r, func(scan func(...any) error) (one string, err error) { return one, scan(&one) },
			"SELECT event_type FROM webhook_events WHERE resource_id = $1 ORDER BY seq", operationID)
		return err
	}))
	return types
}

// What is said after SUCCESS is shown by every attempt that succeeded, once per
// message, each with one event behind the completed one; the result stays.
func TestNewsAfterSuccessIsKeptOncePerMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t, listeningPack())
		s := a.Setup()
		s.Target = hears
		n := newNode(t, d, s).Start()
		supplier := n.Supplier(listening, "s1")
		first := n.File(invoice(listening, supplier, "t1"))
		before := n.Succeeds(first)
		same(t, "entries before anybody spoke", len(before.Lifecycle), 0)
		notice := xxwire.Notice{Key: "m1", At: "2026-03-05T10:00:00Z", Code: "205", Name: "Approuvée", Source: "BUYER",
			Severity: "INFO"}
		said := xxwire.Said{Supplier: listening + "-s1", Number: "N-t1", Notice: notice}
		same(t, "a notice", say(t, a, said), http.StatusNoContent)
		same(t, "the same again", say(t, a, said), http.StatusNoContent)
		n.Until("the news is there", func() bool { return len(n.Show(first).Lifecycle) == 1 })
		said.Notice = xxwire.Notice{Key: "m2", At: "2026-03-04T10:00:00Z", Code: "EC02", Name: "Refusée", Source: "BUYER",
			Severity: "PROBLEM", Message: "wrong amount"}
		same(t, "another", say(t, a, said), http.StatusNoContent)
		n.Until("both are there", func() bool { return len(n.Show(first).Lifecycle) == 2 })
		again := n.File(invoice(listening, supplier, "t1"))
		same(t, "a resubmission's operation", again, first)
		looks := one[int64](t, d, "SELECT looks FROM listening")
		n.Until("it was looked for again", func() bool { return one[int64](t, d, "SELECT looks FROM listening") > looks+2 })

		r := n.Show(first)
		same(t, "life cycle, oldest first", fmt.Sprint(r.Lifecycle),
			"[{2026-03-04T10:00:00Z EC02 Refusée BUYER PROBLEM wrong amount} {2026-03-05T10:00:00Z 205 Approuvée BUYER INFO }]")
		same(t, "events", strings.Join(events(t, d, first), " "),
			"transactions.transaction_completed transactions.transaction_updated transactions.transaction_updated transactions.transaction_completed")
		same(t, "contested", n.Raised(alert.OutcomeContested)[first], 1)
		r.Lifecycle, before.Lifecycle = nil, nil
		for i := range r.Attachments {
			r.Attachments[i].ResourceURL, before.Attachments[i].ResourceURL = "", ""
		}
		same(t, "the rest of the result", encoded(t, r), encoded(t, before))
		if err := d.Write(context.Background(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE lifecycle SET code = 'other'")
		}); err == nil {
			t.Error("an entry was changed")
		}
	})
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// Attempts that waited behind a success show its life cycle, failed ones none.
func TestAttemptsShowTheLifeCycleOfTheSuccess(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		r, err := o.Take(f), error(nil)
		if f.Number == "N-refused" {
			r = country.Receipt{Outcome: country.Rejected}
		}
		r.News = []country.News{{Key: "k", Code: "7", Name: "Seen", Source: country.FromPlatform, Severity: country.Caution}}
		return r, err
	}
	s := o.Setup()
	s.Target = hears
	n := newNode(t, sqlite(t), s)
	supplier := n.Supplier(officeCode, "s1")
	failed := n.File(invoice(officeCode, supplier, "t1").With("transaction_number", "N-refused"))
	won := n.File(invoice(officeCode, supplier, "t1"))
	joined := n.File(invoice(officeCode, supplier, "t1"))
	n.Start()
	n.Settled(joined)
	same(t, "of the failure", len(n.Show(failed).Lifecycle), 0)
	same(t, "of the success", len(n.Show(won).Lifecycle), 1)
	same(t, "of the one behind it", fmt.Sprint(n.Show(joined).Lifecycle), fmt.Sprint(n.Show(won).Lifecycle))
	same(t, "events of the failure", strings.Join(events(t, n.DB, failed), " "), webhook.TransactionCompleted)
	same(t, "events of the success", strings.Join(events(t, n.DB, won), " "),
		webhook.TransactionCompleted+" "+webhook.TransactionUpdated)
	same(t, "events of the one behind it", strings.Join(events(t, n.DB, joined), " "), webhook.TransactionCompleted)
}

// News that comes before the decision is kept at once and told behind the completed event.
func TestNewsBeforeTheOutcomeIsToldBehindIt(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	seen := country.News{Key: "k1", Code: "1", Name: "Received", Severity: country.Info}
	o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
		return country.Receipt{Outcome: country.Pending, Handle: "h", News: []country.News{seen}}, nil
	}
	var decided atomic.Bool
	o.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
		if !decided.Load() {
			return country.Receipt{Outcome: country.Pending, News: []country.News{seen}}, nil
		}
		r, err := o.Take(f), error(nil)
		r.News = []country.News{seen, {Key: "k2", Code: "2", Name: "Done", Severity: country.Info}}
		return r, err
	}
	s := o.Setup()
	s.Target = hears
	virtual(t, s, func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(time.Minute)
		same(t, "kept while it is pending", one[int64](t, n.DB, "SELECT count(*) FROM lifecycle"), 1)
		same(t, "shown while it is pending", len(n.Show(id).Lifecycle), 0)
		same(t, "events while it is pending", len(events(t, n.DB, id)), 0)
		decided.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		same(t, "shown", len(n.Show(id).Lifecycle), 2)
		same(t, "events", strings.Join(events(t, n.DB, id), " "),
			webhook.TransactionCompleted+" "+webhook.TransactionUpdated+" "+webhook.TransactionUpdated)
	})
}

// A problem is one of a registered document: what refuses before success is the
// outcome itself and alerts nobody; what was said before a success is told with it.
func TestAProblemAlertsOnlyWithASuccess(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		problem := []country.News{{Key: "k1", Code: "213", Name: "Rejetée", Source: country.FromPlatform, Severity: country.Problem, Message: "REJ_COH"}}
		o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
			return country.Receipt{Outcome: country.Pending, Handle: "h", News: problem}, nil
		}
		o.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
			if f.Number == "N-refused" {
				return country.Receipt{Outcome: country.Rejected, News: problem}, nil
			}
			r, err := o.Take(f), error(nil)
			r.News = problem
			return r, err
		}
		s := o.Setup()
		s.Target = hears
		n := newNode(t, d, s).Start()
		supplier := n.Supplier(officeCode, "s1")
		refused := n.File(invoice(officeCode, supplier, "t1").With("transaction_number", "N-refused"))
		n.Fails(refused, "authority_rejected")
		same(t, "alerts of a refusal", len(n.Raised(alert.OutcomeContested)), 0)
		won := n.File(invoice(officeCode, supplier, "t2"))
		n.Succeeds(won)
		same(t, "entries of the success", len(n.Show(won).Lifecycle), 1)
		same(t, "alerts of the success", fmt.Sprint(n.Raised(alert.OutcomeContested)), fmt.Sprint(map[string]int{won: 1}))
	})
}

// The authority is asked as the pack says, doubling, through outages, until the deadline, and never after it.
func TestListeningFollowsItsScheduleAndEnds(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.Listen = country.Listening{First: time.Hour, Most: 8 * time.Hour, For: 72 * time.Hour}
	var mu sync.Mutex
	var asked []time.Duration
	var begun time.Time
	o.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, time.Since(begun))
		if len(asked) == 2 {
			return country.Receipt{}, errLine
		}
		r, err := o.Take(f), error(nil)
		if len(asked) > 4 {
			r.Outcome = country.Rejected // it takes back what it said
		}
		return r, err
	}
	s := o.Setup()
	s.Target = hears
	virtual(t, s, func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		begun = time.Now()
		n.Start()
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) < 10 || len(asked) > 18 {
			t.Errorf("asked %d times: %v", len(asked), asked)
		}
		if asked[0] < 40*time.Minute || asked[0] > 3*time.Hour || asked[2]-asked[1] > 3*time.Hour {
			t.Errorf("asked after %v", asked)
		}
		if last := asked[len(asked)-1]; last < 70*time.Hour || last > 75*time.Hour {
			t.Errorf("the last look was after %s", last)
		}
		same(t, "rows left", one[int64](t, n.DB, "SELECT count(*) FROM listening"), 0)
		r := n.Show(id)
		same(t, "status", r.Status, filing.Success)
		same(t, "entries", len(r.Lifecycle), 1)
		same(t, "what it says", r.Lifecycle[0].Severity, country.Problem)
		same(t, "contested", n.Raised(alert.OutcomeContested)[id], 1)
	})
}

// Where the authority grants no more questions, it is asked when it does: no failure,
// and no doubled pause.
func TestListeningWaitsForWhatIsGranted(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.Listen = country.Listening{First: time.Hour, Most: time.Hour, For: 72 * time.Hour}
	var mu sync.Mutex
	var asked []time.Time
	o.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, time.Now()); len(asked) == 1 {
			return country.Receipt{}, fmt.Errorf("polling: %w", &country.Exhausted{Quota: "state", Until: time.Now().Add(20 * time.Hour)})
		}
		return o.Take(f), nil
	}
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) < 3 {
			t.Fatalf("asked at %v", asked)
		}
		if pause := asked[1].Sub(asked[0]); pause < 20*time.Hour || pause > 21*time.Hour {
			t.Errorf("asked again after %s", pause)
		}
		same(t, "failures", one[int64](t, n.DB, "SELECT max(failures) FROM listening"), 0)
		n.Stop()
	})
}

// calling is an office that calls us.
func calling(o *office) setup {
	s := o.Setup()
	s.Packs[0].Callbacks = &country.Callbacks{}
	s.Target = hears
	return s
}

func hear(t *testing.T, n *node, m country.Message) (id string) {
	t.Helper()
	must(t, n.DB.Write(context.Background(), func(tx *db.Tx) (err error) {
		id, err = n.HandleMessage(tx, country.Environment{Code: officeCode}, country.Mailbox{}, m)
		return err
	}))
	return id
}

// A decision that comes by itself ends an operation whose answer was lost and
// that nobody can ask for; what comes later is life cycle.
func TestADecisionThatComesByItselfIsAnAnswer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNothing)
		o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
			f, err := o.Draft(in)
			f.DedupeKey = "key-" + in.Transaction.ID
			return f, err
		}
		o.OnSend = func(*office, country.Filing) (country.Receipt, error) { return country.Receipt{}, errLine }
		n := newNode(t, d, calling(o)).Start()
		supplier := n.Supplier(officeCode, "s1")
		id := n.File(invoice(officeCode, supplier, "t1"))
		refused := n.File(invoice(officeCode, supplier, "t2"))
		n.Until("both may be there", func() bool { return n.Stage(id) == "sent" && n.Stage(refused) == "sent" })
		calls := o.Calls()
		same(t, "of a stranger", hear(t, n, country.Message{Key: "m0", Handle: "key-nobody",
			Receipt: country.Receipt{Outcome: country.Accepted}}), "")
		yes := country.Message{Key: "m1", Handle: "key-t1", Raw: []byte("<yes/>"),
			Receipt: country.Receipt{Outcome: country.Accepted, AuthorityID1: "A1", Document: []byte("<yes/>"), Format: "XML",
				News: []country.News{{Key: "n1", Code: "MC", Name: "Delivered", Severity: country.Info}}}}
		same(t, "whose", hear(t, n, yes), id)
		same(t, "whose", hear(t, n, country.Message{Key: "m2", Handle: "key-t2",
			Receipt: country.Receipt{Outcome: country.Rejected}}), refused)
		r := n.Succeeds(id)
		same(t, "id", *r.AuthorityID1, "A1")
		n.Fails(refused, "authority_rejected")
		same(t, "kinds of attachments", len(r.Attachments), 2)
		same(t, "whose, again", hear(t, n, yes), id)
		same(t, "entries", len(n.Show(id).Lifecycle), 1)

		hear(t, n, country.Message{Key: "m3", Handle: "key-t1", Receipt: country.Receipt{Outcome: country.Rejected}})
		hear(t, n, country.Message{Key: "m4", Handle: "key-t1",
			Receipt: country.Receipt{News: []country.News{{Key: "n2", Code: "AT", Name: "Too late",
				Severity: country.Caution}}}})
		hear(t, n, country.Message{Key: "m5", Handle: "key-t2", Receipt: country.Receipt{Outcome: country.Accepted}})
		r = n.Show(id)
		same(t, "status", r.Status, filing.Success)
		same(t, "entries", len(r.Lifecycle), 3)
		same(t, "events", len(events(t, d, id)), 4)
		same(t, "events of the failure", len(events(t, d, refused)), 1)
		same(t, "contested", len(n.Raised(alert.OutcomeContested)), 2)
		same(t, "decisions left", one[int64](t, d, "SELECT count(*) FROM told"), 0)
		if o.Calls() > calls+1 { // the second may have been on its way
			t.Errorf("%d calls, %d before the decisions came", o.Calls(), calls)
		}
	})
}

// What a source says is cut to what is kept, and an unnamed message is known by its words.
func TestNewsIsBounded(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByKey)
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		f, err := o.Draft(in)
		f.DedupeKey = "k"
		return f, err
	}
	n := newNode(t, sqlite(t), calling(o)).Start()
	id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
	n.Succeeds(id)
	for _, length := range []int{1999, 2000, 2001, 5000} {
		text := strings.Repeat("x", length-1) + "é"
		for range 2 {
			hear(t, n, country.Message{Handle: "k",
				Receipt: country.Receipt{News: []country.News{{At: time.Unix(int64(length), 0), Code: "c", Message: text,
					Source: "NOBODY", Severity: "LOUD"}}}})
		}
	}
	all := n.Show(id).Lifecycle
	same(t, "entries", len(all), 4)
	for i, want := range []int{2000, 1999, 2000, 2000} {
		same(t, "length", len(all[i].Message), want)
		same(t, "source", all[i].Source, country.FromAuthority)
		same(t, "severity", all[i].Severity, country.Info)
	}
}
