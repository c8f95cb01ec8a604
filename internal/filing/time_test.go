package filing_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/transaction"
)

func TestRetryLadder(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 8: 128 * time.Second, 9: 256 * time.Second,
		10: 5 * time.Minute, 11: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		same(t, fmt.Sprintf("after failure %d", n), filing.Backoff(filing.RetryBase, n, 0.5), want)
		same(t, "at least", filing.Backoff(filing.RetryBase, n, 0), want*8/10)
		if most := filing.Backoff(filing.RetryBase, n, 0.999999); most > want*12/10 || most < want*119/100 {
			t.Errorf("after failure %d at most %s", n, most)
		}
	}
}

// virtual runs a node in virtual time.
func virtual(t *testing.T, s setup, fn func(t *testing.T, n *node)) {
	t.Helper()
	sqlite(t) // the template is made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		s.RetryBase = filing.RetryBase
		n := newNode(t, sqlite(t), s)
		n.LookEvery(time.Hour)
		fn(t, n)
	})
}

// The calls of an outage go out on the ladder.
func TestCallsOfAnOutageFollowTheLadder(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"refused": country.ErrNotTaken, "no answer": errLine} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(country.ByNumber)
			var calls []time.Time
			o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
				calls = append(calls, time.Now())
				return country.Receipt{}, err
			}
			virtual(t, o.Setup(), func(t *testing.T, n *node) {
				n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
				n.Start()
				time.Sleep(20 * time.Minute)
				n.Stop()
				want := time.Second
				for i := 1; i < len(calls); i++ {
					// Looking for due lanes costs a moment, never more than a tenth here.
					if pause := calls[i].Sub(calls[i-1]); pause < want*8/10 || pause > want*13/10+50*time.Millisecond {
						t.Errorf("pause %d is %s, want about %s", i, pause, want)
					}
					want = min(2*want, filing.RetryMax)
				}
				if len(calls) < 10 {
					t.Errorf("%d calls in 20 minutes", len(calls))
				}
			})
		})
	}
}

// fate is what a number asks of the office in the test of the 48 hours.
type fate struct {
	send, find error
	pending    bool
}

// After 48 hours: provably unregistered is FAILURE, everything else goes on
// with a warning, and each is told at 24 and at 48 hours, once.
//
// Visits are an hour apart here instead of five minutes: hundreds of them show nothing more.
func TestFortyEightHours(t *testing.T) {
	t.Parallel()
	fates := map[string]fate{
		"down":    {send: country.ErrNotTaken, find: errLine},
		"garbage": {send: errLine}, // Find works and knows nothing: provably unregistered
		"revoked": {send: country.ErrCredentials, find: country.ErrCredentials},
		"lost":    {send: errLine, find: errLine},
		"asleep":  {pending: true},
	}
	o := newOffice(country.ByNumber)
	o.Habits.PendingMax = 72 * time.Hour
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if fates[f.Supplier].pending {
			return country.Receipt{Outcome: country.Pending, Awaiting: true}, nil
		}
		return country.Receipt{}, fates[f.Supplier].send
	}
	o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
		if err := fates[f.Supplier].find; err != nil {
			return country.Receipt{}, err
		}
		return country.Receipt{Outcome: country.Absent}, nil
	}
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		n.PauseAtMost(time.Hour)
		ids, suppliers := map[string]string{}, map[string]string{}
		for name := range fates {
			suppliers[name] = n.Supplier(officeCode, name, taxNumber(name))
			ids[name] = n.File(invoice(officeCode, suppliers[name], name))
		}
		n.Start()
		look := func(after time.Duration, want map[string]string) {
			t.Helper()
			for name, status := range want {
				r := n.Show(ids[name])
				if got := fmt.Sprint(r.Status, codesOf(r)); got != status {
					t.Errorf("%s after %s: %s, want %s", name, after, got, status)
				}
			}
		}
		time.Sleep(47 * time.Hour)
		waiting := "PROCESSING[authority_error authority_unavailable]"
		look(47*time.Hour, map[string]string{"down": waiting, "garbage": waiting,
			"revoked": "PROCESSING[credentials_invalid]", "lost": waiting, "asleep": "PROCESSING[awaiting_acceptance]"})
		onceEach(t, n, ids, suppliers, 1, 0)
		time.Sleep(3 * time.Hour)
		look(50*time.Hour, map[string]string{
			"down": "FAILURE[authority_unavailable]", "garbage": "FAILURE[authority_unavailable]",
			"revoked": "FAILURE[credentials_invalid]",
			"lost":    "PROCESSING[outcome_unknown authority_error authority_unavailable]",
			"asleep":  "PROCESSING[awaiting_acceptance]",
		})
		onceEach(t, n, ids, suppliers, 1, 1)
		time.Sleep(26 * time.Hour) // past the pack's own deadline for pending ones
		look(76*time.Hour, map[string]string{"lost": "PROCESSING[outcome_unknown authority_error authority_unavailable]",
			"asleep": "PROCESSING[outcome_unknown]"})
		for _, name := range []string{"down", "garbage", "revoked"} {
			same(t, "events of "+name, n.Events(ids[name]), 1)
		}
		same(t, "registered", len(o.Registered()), 0)
		n.Stop()
	})
}

// onceEach compares how often the alerts of 24 and of 48 hours were raised.
func onceEach(t *testing.T, n *node, ids, suppliers map[string]string, at24, at48 int64) {
	t.Helper()
	want := func(name alert.Name, subject string, times int64) {
		t.Helper()
		if got := n.Raised(name)[subject]; got != times {
			t.Errorf("%s of %s was raised %d times, want %d", name, subject, got, times)
		}
	}
	for _, name := range []string{"down", "garbage", "lost"} {
		want(alert.AuthorityUnavailable24h, client+"/"+suppliers[name], at24)
	}
	want(alert.OutcomeUnknown24h, ids["lost"], at24)
	want(alert.OutcomeUnknown48h, ids["lost"], at48)
	want(alert.AwaitingAcceptance24h, ids["asleep"], at24)
	want(alert.AwaitingAcceptance48h, ids["asleep"], at48)
	want(alert.LanePausedCredentials, client+"/"+suppliers["revoked"], 1+at24+at48)
}

// Prepared in a chain: it is sent whenever the authority returns, until then
// PROCESSING with a warning. What was never prepared fails.
func TestFortyEightHoursInAChain(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	o.Habits.Batch = 2
	setDown := outage(o)
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		n.PauseAtMost(2 * time.Hour)
		supplier := n.Supplier(officeCode, "s1")
		var ids []string
		for i := range 5 {
			ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
		}
		n.Start()
		time.Sleep(51 * time.Hour)
		for _, id := range ids[:2] {
			r := n.Show(id)
			same(t, "prepared in the chain", fmt.Sprint(r.Status, codesOf(r)),
				"PROCESSING[authority_error authority_unavailable]")
			same(t, "type", r.Errors[0].Type, fault.Warning)
		}
		for _, id := range ids[2:] {
			n.Fails(id, fault.AuthorityUnavailable)
		}
		same(t, "alerts", fmt.Sprint(n.Raised(alert.AuthorityUnavailable24h), n.Raised(alert.AuthorityUnavailable48h)),
			fmt.Sprintf("map[%[1]s/%[2]s:1] map[%[1]s/%[2]s:1]", client, supplier))
		setDown(false)
		time.Sleep(3 * time.Hour)
		for _, id := range ids[:2] {
			n.Succeeds(id)
		}
		same(t, "registered", fmt.Sprint(o.Registered()), "[N-t0 N-t1]")
		n.Stop()
	})
}

// Class N tells a person at 24 and 48 hours, though nothing can be asked.
func TestClassNIsToldAtTwentyFourAndFortyEightHours(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNothing)
	o.OnSend = func(*office, country.Filing) (country.Receipt, error) { return country.Receipt{}, errLine }
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		for _, hours := range []struct{ sleep, at24, at48 int64 }{{23, 0, 0}, {2, 1, 0}, {24, 1, 1}} {
			time.Sleep(time.Duration(hours.sleep) * time.Hour)
			same(t, "status", n.Show(id).Status, filing.Processing)
			same(t, "24 h", n.Raised(alert.OutcomeUnknown24h)[id], hours.at24)
			same(t, "48 h", n.Raised(alert.OutcomeUnknown48h)[id], hours.at48)
		}
		same(t, "calls", o.Calls(), 1)
		n.Stop()
	})
}

// A quarantined operation that certainly is not registered ends after 48 hours.
func TestAQuarantinedOperationFailsAfterFortyEightHours(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnPrepare = func(*office, country.Draft) (country.Filing, error) { panic("poison") }
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(47 * time.Hour)
		same(t, "stage", n.Stage(id), string(filing.Quarantined))
		same(t, "status", n.Show(id).Status, filing.Processing)
		time.Sleep(2 * time.Hour)
		n.Fails(id, fault.InternalError)
		same(t, "events", n.Events(id), 1)
		n.Stop()
	})
}

// An operation whose neighbour stands in doubt is not taken for a poison.
func TestRestingWithoutCrashesQuarantinesNobody(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if f.Number == "N-t1" {
			return country.Receipt{}, errLine
		}
		return country.Receipt{}, country.ErrNotTaken
	}
	o.OnFind = func(*office, country.Filing) (country.Receipt, error) { return country.Receipt{}, errLine }
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		for i := range 4 {
			n.File(invoice(officeCode, supplier, fmt.Sprint("t", i)))
			n.Start()
			time.Sleep(5 * time.Minute)
			n.Stop()
		}
		same(t, "quarantined", len(n.Raised(alert.OperationQuarantined)), 0)
		same(t, "crash counts", one[int64](t, n.DB, "SELECT max(crashes) FROM operations"), 0)
	})
}

// Hard case 11: a long outage with a backlog, then recovery: what is past its
// 48 hours has failed, in sets; the rest is filed in order, in whole batches,
// without a herd; each has one event.
func TestHardCase11ABacklogAfterALongOutage(t *testing.T) {
	t.Parallel()
	const old, fresh = 120, 50
	o := newOffice(country.ByNumber)
	o.Habits.Batch = 20
	setDown := outage(o)
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		n.PauseAtMost(3 * time.Hour)
		supplier := n.Supplier(officeCode, "s1")
		bulk := func(prefix string, count int) {
			var wg sync.WaitGroup
			for i := range count {
				wg.Go(func() {
					_, err := n.Submit(context.Background(), caller(client), transaction.Invoice,
						invoice(officeCode, supplier, fmt.Sprintf("%s%04d", prefix, i)).Body(t))
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		bulk("old", old)
		n.Start()
		time.Sleep(40 * time.Hour)
		bulk("new", fresh)
		time.Sleep(12 * time.Hour)
		same(t, "failed", one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'FAILURE'"), old)
		same(t, "waiting", one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'"), fresh)
		before := o.Calls()
		setDown(false)
		time.Sleep(4 * time.Hour)
		callsUp := o.Calls() - before
		same(t, "succeeded", one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'"), fresh)
		if callsUp > fresh/o.Habits.Batch+3 {
			t.Errorf("%d calls for %d filings in batches of %d", callsUp, fresh, o.Habits.Batch)
		}
		if got := o.Registered(); len(got) != fresh || !strings.HasPrefix(got[0], "N-new") {
			t.Errorf("%d registered", len(got))
		}
		same(t, "events", one[int64](t, n.DB, "SELECT count(*) FROM webhook_events"), old+fresh)
		same(t, "of different operations", one[int64](t, n.DB, "SELECT count(DISTINCT resource_id) FROM webhook_events"),
			old+fresh)
		n.Stop()
	})
}

// The pause until "not found" is believed is kept.
func TestNotFoundIsBelievedAfterTheAuthoritysDelay(t *testing.T) {
	t.Parallel()
	for _, class := range []country.Class{country.ByNumber, country.ByChain} {
		o := newOffice(class)
		o.Habits.VisibleAfter = 10 * time.Minute
		var calls []time.Time
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			if calls = append(calls, time.Now()); len(calls) == 1 {
				return country.Receipt{}, errLine
			}
			return o.Take(f), nil
		}
		virtual(t, o.Setup(), func(t *testing.T, n *node) {
			supplier := n.Supplier(officeCode, "s1")
			id := n.File(invoice(officeCode, supplier, "t1"))
			n.Start()
			time.Sleep(time.Minute)
			behind := n.File(invoice(officeCode, supplier, "t2"))
			time.Sleep(20 * time.Minute)
			n.Succeeds(id)
			n.Succeeds(behind)
			n.Stop()
			want := "[N-t2 N-t1]" // others go on meanwhile, except in a chain
			if class == country.ByChain {
				want = "[N-t1 N-t2]"
			}
			same(t, "registered", fmt.Sprint(o.Registered()), want)
			if pause := calls[len(calls)-1].Sub(calls[0]); pause < o.Habits.VisibleAfter ||
				pause > o.Habits.VisibleAfter+time.Minute {
				t.Errorf("sent again after %s", pause)
			}
		})
	}
}

// A channel that reads once for many lost answers sends nothing again that the authority took: neither what the
// authority did not show yet when it was read, nor what was sent after that.
func TestAReadingTellsOnlyOfWhatWasLostBeforeIt(t *testing.T) {
	t.Parallel()
	const documents = 12
	for _, visible := range []time.Duration{0, 10 * time.Minute} {
		o := newOffice(country.ByNumber)
		o.Habits.VisibleAfter, o.Habits.Batch = visible, 1
		taken, over, sent := map[string]time.Time{}, map[string]time.Time{}, map[string]int{}
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			time.Sleep(20 * time.Second)
			if sent[f.Number]++; sent[f.Number] > 1 {
				return o.Take(f), nil
			}
			if !strings.HasSuffix(f.Number, "0") { // these never arrived
				o.Take(f)
				taken[f.Number] = time.Now()
			}
			over[f.Number] = time.Now()
			return country.Receipt{}, errLine
		}
		var readAt time.Time
		var shown map[string]bool
		finds, readings := 0, 0
		o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
			if f.LostAt.Before(over[f.Number]) {
				t.Errorf("%s was lost at %s, in its call", f.Number, f.LostAt)
			}
			if finds++; readAt.IsZero() || readAt.Before(f.LostAt) {
				readings++
				readAt, shown = time.Now(), map[string]bool{}
				for number, at := range taken {
					shown[number] = time.Since(at) >= visible*9/10
				}
			}
			found := shown[f.Number]
			time.Sleep(40 * time.Second)
			if !found {
				return country.Receipt{Outcome: country.Absent}, nil
			}
			return o.Held(f), nil
		}
		virtual(t, o.Setup(), func(t *testing.T, n *node) {
			supplier := n.Supplier(officeCode, "s1")
			var ids []string
			for i := range documents {
				ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
			}
			n.Start()
			time.Sleep(6 * time.Hour)
			for _, id := range ids {
				n.Succeeds(id)
			}
			n.Stop()
		})
		for number, times := range sent {
			if again := strings.HasSuffix(number, "0"); times > 1 != again {
				t.Errorf("shown after %s: %s was sent %d times", visible, number, times)
			}
		}
		if visible > 0 && readings >= finds {
			t.Errorf("%d readings for %d lookups", readings, finds)
		}
	}
}

// An authority without an address is one that cannot be reached.
func TestFortyEightHoursWithoutAnAddress(t *testing.T) {
	t.Parallel()
	s := newOffice(country.ByNumber).Setup()
	s.Simulators = ""
	virtual(t, s, func(t *testing.T, n *node) {
		n.PauseAtMost(2 * time.Hour)
		supplier := n.Supplier(officeCode, "s1")
		id := n.File(invoice(officeCode, supplier, "t1"))
		n.Start()
		time.Sleep(47 * time.Hour)
		same(t, "status", n.Show(id).Status, filing.Processing)
		time.Sleep(4 * time.Hour)
		n.Fails(id, fault.AuthorityUnavailable)
		same(t, "alerts", n.Raised(alert.AuthorityUnavailable48h)[client+"/"+supplier], 1)
		n.Stop()
	})
}

// The 48 hours of a correction begin when its original is settled.
func TestWaitingForTheOriginalDoesNotCount(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	var mu sync.Mutex
	decided, down := false, false
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return country.Receipt{}, country.ErrNotTaken
		}
		return country.Receipt{Outcome: country.Pending}, nil
	}
	o.OnPoll = func(o *office, f country.Filing, _ country.Receipt) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		if !decided {
			return country.Receipt{Outcome: country.Pending}, nil
		}
		down = true
		return o.Take(f), nil
	}
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		n.PauseAtMost(3 * time.Hour)
		original := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(time.Minute)
		late := n.Hand(transaction.Cancellation, correction(officeCode, "t1", "x1"))
		time.Sleep(60 * time.Hour)
		same(t, "behind its original", n.Stage(late), string(filing.Blocked))
		mu.Lock()
		decided = true
		mu.Unlock()
		time.Sleep(40 * time.Hour)
		n.Succeeds(original)
		same(t, "100 hours after its submit", n.Show(late).Status, filing.Processing)
		time.Sleep(18 * time.Hour)
		r := n.Fails(late, fault.AuthorityUnavailable)
		same(t, "it still shows what it would have taken back", *r.TotalAmount, -22710)
		n.Stop()
	})
}

// An authority that hangs is told of long before the call ends.
func TestAHangingAuthorityIsToldOfWithinTenSeconds(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		time.Sleep(50 * time.Second) // its calls may take a minute
		return o.Take(f), nil
	}
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(5 * time.Second)
		same(t, "while it may yet answer", fmt.Sprint(codesOf(n.Show(id))), "[]")
		time.Sleep(5 * time.Second)
		same(t, "ten seconds later", fmt.Sprint(codesOf(n.Show(id))), "[authority_unreachable]")
		same(t, "stage", n.Stage(id), string(filing.Sent))
		n.Succeeds(id)
		n.Stop()
	})
}

// A clock that was a year ahead has put everything off; the next start, with the
// right time, does it now. What waits for a person is left alone.
func TestAfterAClockThatWasAheadNothingWaitsForIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		n := newNode(t, d, o.Setup()).Start()
		supplier := n.Supplier(officeCode, "s1")
		n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
		n.Stop()
		id, aside := n.File(invoice(officeCode, supplier, "t2")), n.File(invoice(officeCode, supplier, "t3"))
		ahead, soon := db.Micros(d.Now().AddDate(1, 0, 0)), db.Micros(d.Now().Add(filing.HopelessAfter))
		filingtest.ExecSQL(t, d, "UPDATE operations SET due_at = $1 WHERE operation_id = $2", ahead, id)
		filingtest.ExecSQL(t, d, "UPDATE operations SET stage = 'quarantined', due_at = $1 WHERE operation_id = $2", soon, aside)
		filingtest.ExecSQL(t, d, "UPDATE lanes SET due_at = $1, asked_until = $1, lease_until = $1, lease_node = 'gone'", ahead)
		next := newNode(t, d, o.Setup()).Start()
		next.Succeeds(id)
		same(t, "what was set aside", next.Stage(aside), string(filing.Quarantined))
		next.Stop()
	})
}
