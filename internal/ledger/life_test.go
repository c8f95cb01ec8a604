package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/transaction"
)

func life(n *node, id string) *ledger.Life {
	n.T.Helper()
	l, err := n.Life(context.Background(), id)
	must(n.T, err)
	return l
}

// rests makes every call fail and waits until a lane rests for minutes.
func rests(t testing.TB, a *authorities, d *db.DB) (*node, string) {
	t.Helper()
	s := a.Setup()
	s.RetryBase = time.Hour
	n := newNode(t, d, s).Start()
	supplier := n.Supplier(byNumber, "s-"+d.Engine())
	a.Script(byNumber, authority.Step{Outcome: authority.Unavailable, Times: 1, On: authority.OnAny})
	id := n.File(invoice(byNumber, supplier, "stuck-"+d.Engine()))
	n.Until("the lane rests", func() bool {
		w := life(n, id).Wait
		return w != nil && w.Why == ledger.WhyError
	})
	return n, id
}

func TestTheLifeOfASettledOperationTellsAll(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "s-"+d.Engine())
		sale := "sale-" + d.Engine()
		body := invoice(byNumber, supplier, sale).With("surprise", 1)
		id := n.File(body)
		n.Succeeds(id, fault.FieldUnknown)
		credit := n.Hand(transaction.Credit, correction(byNumber, sale, "credit-"+sale))
		n.Succeeds(credit)
		l := life(n, id)
		if !bytes.Equal(l.Body, body.Body(t)) || len(l.Warnings) != 1 || l.Wait != nil ||
			l.Result.Status != filing.Success || len(l.Attempts) != 1 {
			t.Errorf("%+v", l)
		}
		if l.Filing == nil || len(l.Filing.Report) == 0 || l.Filing.AuthorityID1 != *l.Result.AuthorityID1 ||
			l.Filing.Receipt == "" {
			t.Errorf("the filing: %+v", l.Filing)
		}
		if len(l.Exchanges) != 1 || l.Exchanges[0].Verb != "send" || !l.Exchanges[0].Answered ||
			len(l.Exchanges[0].Reply) == 0 || l.Exchanges[0].Took < 0 ||
			l.Exchanges[0].Decision != "accepted" || !l.Exchanges[0].Counted || l.Exchanges[0].Out == 0 ||
			l.Exchanges[0].In == 0 {
			t.Errorf("the exchanges: %+v", l.Exchanges)
		}
		if len(l.Events) != 1 || l.Events[0].ResourceID != id {
			t.Errorf("the events: %+v", l.Events)
		}
		if len(l.Documents) != 2 {
			t.Errorf("the documents: %+v", l.Documents)
		}
		if len(l.Corrections) != 1 || l.Corrections[0].OperationID != credit || l.Original != nil {
			t.Errorf("corrected by %+v, corrects %+v", l.Corrections, l.Original)
		}
		if back := life(n, credit); back.Original == nil || back.Original.OperationID != id {
			t.Errorf("the credit corrects %+v", back.Original)
		}
		var what []string
		for i, m := range l.Moments {
			what = append(what, m.What)
			if i > 0 && m.At.Before(l.Moments[i-1].At) {
				t.Errorf("%s stands after what came later", m.What)
			}
		}
		if first, last := what[0], what[len(what)-1]; first != "accepted" || last != "settled" ||
			!slices.Contains(what, "exchange") || slices.Contains(what, "sent") {
			t.Errorf("the moments: %v", what)
		}
		execSQL(t, n.DB, `INSERT INTO lifecycle (operation_id, source, message_key, client_id, at, code, name, severity, message, learned_at)
			VALUES ($1, 'BUYER', 'k', $2, 1, '210', 'Refused', 'PROBLEM', 'never ordered', $3)`, id, l.ClientID, db.Micros(l.SettledAt.Add(time.Hour)))
		l = life(n, id)
		if m := l.Moments[len(l.Moments)-1]; m.What != "news" || m.Text != "buyer: 210 Refused never ordered" ||
			m.Severity != "PROBLEM" {
			t.Errorf("news is shown as %+v", m)
		}
		if _, err := n.Life(t.Context(), "0190c1f0-0000-7000-8000-000000000000"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("an unknown operation: %v", err)
		}
	})
}

func TestRetryEndsOurOwnPause(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n, id := rests(t, a, d)
		l := life(n, id)
		if w := l.Wait; !w.CanRetry || w.Failures != 1 || w.Trouble == "" || w.NextAt.Before(d.Now().Add(3*time.Minute)) ||
			w.Since.IsZero() {
			t.Fatalf("%+v", l.Wait)
		}
		if last := l.Moments[len(l.Moments)-1]; last.What != "next" || !last.At.Equal(l.Wait.NextAt) {
			t.Errorf("the last moment is %+v", last)
		}
		if len(l.Exchanges) == 0 || l.Exchanges[0].Answered || l.Exchanges[0].Outcome == "" {
			t.Errorf("the failed call: %+v", l.Exchanges)
		}
		var noted []filing.OperationState
		_, err := n.Retry(t.Context(), id, func(tx *db.Tx, before, after filing.OperationState) error {
			noted = []filing.OperationState{before, after}
			return nil
		})
		must(t, err)
		n.Succeeds(id)
		if len(noted) != 2 || noted[0].OperationID != id || noted[1].DueAt.After(d.Now()) {
			t.Errorf("noted %+v", noted)
		}
		same(t, "registered", len(slices.DeleteFunc(a.Registered(byNumber), func(s string) bool {
			return s != "N-stuck-"+d.Engine()
		})), 1)
		if _, err := n.Retry(t.Context(), id, nil); fault.KindOf(err) != fault.Conflict {
			t.Errorf("retrying what has ended: %v", err)
		}
	})
}

func TestARetryWhoseLogFailsChangesNothing(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	n, id := rests(t, a, dbtest.SQLite(t))
	full := errors.New("the log is full")
	if _, err := n.Retry(t.Context(), id, func(*db.Tx, filing.OperationState, filing.OperationState) error {
		return full
	}); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if w := life(n, id).Wait; w == nil || w.Why != ledger.WhyError {
		t.Errorf("%+v", w)
	}
}

func TestRetryObeysThePauseTheAuthorityAskedFor(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	n := newNode(t, dbtest.SQLite(t), s).Start()
	supplier := n.Supplier(byChain, "s")
	a.Script(byChain, authority.Step{Outcome: authority.Accept, Wait: time.Hour})
	n.Succeeds(n.File(invoice(byChain, supplier, "first")))
	next := n.File(invoice(byChain, supplier, "second"))
	w := life(n, next).Wait
	if w.Why != ledger.WhyAsked || w.CanRetry {
		t.Fatalf("%+v", w)
	}
	due := one[int64](t, n.DB, "SELECT due_at FROM lanes")
	_, err := n.Retry(t.Context(), next, nil)
	must(t, err)
	same(t, "the lane's pause", one[int64](t, n.DB, "SELECT due_at FROM lanes"), due)
	same(t, "registered", len(a.Registered(byChain)), 1)
}

func TestRetryKeepsTheOrderOfAChain(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	s.RetryBase = time.Hour
	n := newNode(t, dbtest.SQLite(t), s)
	supplier := n.Supplier(byChain, "s")
	a.Script(byChain, authority.Step{Outcome: authority.Unavailable, On: authority.OnAny})
	var ids []string
	for i := range 3 {
		ids = append(ids, n.File(invoice(byChain, supplier, fmt.Sprintf("t%d", i))))
	}
	n.Start() // all three are there: the first visit links them
	n.Until("the lane rests", func() bool {
		return life(n, ids[0]).Wait.Why == ledger.WhyError && life(n, ids[2]).Wait != nil
	})
	execSQL(t, n.DB, "UPDATE operations SET due_at = NULL, crashes = 9 WHERE operation_id = $1", ids[1]) // set aside
	released, err := n.Retry(t.Context(), ids[1], nil)
	must(t, err)
	if place := life(n, ids[1]).Filing.Link; place != 2 || db.Micros(released.DueAt) != place {
		t.Errorf("link %d is due at %d", place, db.Micros(released.DueAt))
	}
	_, err = n.Retry(t.Context(), ids[2], nil) // the last one, ahead of the others
	if err != nil && fault.KindOf(err) != fault.Conflict {
		t.Fatal(err)
	}
	for _, id := range ids {
		n.Succeeds(id)
	}
	if got := a.Registered(byChain); !slices.Equal(got, []string{"N-t0", "N-t1", "N-t2"}) {
		t.Errorf("registered in the order %v", got)
	}
}

func TestRetryReleasesWhatWasSetAside(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byNumber, "s-"+d.Engine())
		unsent, sent := n.File(invoice(byNumber, supplier, "unsent-"+d.Engine())),
			n.File(invoice(byNumber, supplier, "sent-"+d.Engine()))
		n.When("sent", func(string) { panic("stop here") })
		execSQL(t, d, "UPDATE operations SET stage = 'quarantined', due_at = $1, crashes = 9 WHERE operation_id = $2",
			db.Micros(d.Now().Add(time.Hour)), unsent)
		execSQL(t, d, "UPDATE operations SET due_at = NULL, crashes = 9 WHERE operation_id = $1", sent)
		for _, id := range []string{unsent, sent} {
			if w := life(n, id).Wait; w.Why != ledger.WhyHeld || !w.CanRetry || !w.Release || !w.NextAt.IsZero() {
				t.Errorf("%+v", w)
			}
			after, err := n.Retry(t.Context(), id, nil)
			must(t, err)
			if after.Stage != filing.Received || after.Crashes != 0 || after.DueAt.IsZero() {
				t.Errorf("released as %+v", after)
			}
		}
		n.When("sent", nil)
		n.Start()
		n.Succeeds(unsent)
		n.Succeeds(sent)
	})
}

func TestWhatWaitsForAnotherSaysForWhich(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	n, first := rests(t, a, dbtest.SQLite(t))
	supplier := life(n, first).SupplierID
	again := n.File(invoice(byNumber, supplier, "stuck-sqlite"))
	w := life(n, again).Wait
	if w.Why != ledger.WhyBehind || w.Behind != first || w.CanRetry {
		t.Errorf("a second attempt: %+v", w)
	}
	if _, err := n.Retry(t.Context(), again, nil); fault.KindOf(err) != fault.Conflict {
		t.Errorf("retrying it: %v", err)
	}
	adjustment := n.Hand(transaction.Adjustment,
		invoice(byNumber, n.Supplier(byNumber, "elsewhere"), "adj").Adjusts("stuck-sqlite", -100))
	n.Until("the correction is blocked", func() bool { return n.Stage(adjustment) == "blocked" })
	w = life(n, adjustment).Wait
	if w.Why != ledger.WhyBehind || w.Behind == "" || w.CanRetry {
		t.Errorf("a correction: %+v", w)
	}
	if attempts := life(n, first).Attempts; len(attempts) != 2 {
		t.Errorf("%d attempts", len(attempts))
	}
}

func TestHealthAndDepthsTellWhatStandsStill(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n, id := rests(t, a, d)
		n.File(invoice(byNumber, life(n, id).SupplierID, "stuck-"+d.Engine())) // waits behind it
		var h ledger.Authority
		n.Until("its call is counted", func() bool { // after its commit, and not while counts are being stored
			health, err := n.Health(t.Context())
			must(t, err)
			if len(health) != 1 {
				t.Fatalf("%+v", health)
			}
			h = health[0]
			return h.Calls > 0
		})
		if h.At.String() != byNumber+".test" || !h.Files || h.Queued != 1 || h.QueuedMore || len(h.Waits) != 2 ||
			h.Calls != 1 || h.Unanswered != 1 || !h.AnsweredAt.IsZero() || !h.OldestAt.Equal(life(n, id).AcceptedAt) {
			t.Errorf("%+v", h)
		}
		if o := h.Outage; o == nil || o.Failures != 1 || o.Trouble == "" || o.Since.IsZero() ||
			o.NextAt.IsZero() || o.SupplierID != life(n, id).SupplierID {
			t.Errorf("%+v", h.Outage)
		}
		depths, err := n.Depths(t.Context())
		must(t, err)
		var got []string
		for _, s := range depths {
			got = append(got, fmt.Sprintf("%s %d %t", s.Stage, s.Count, s.More))
		}
		if !slices.Equal(got, []string{"prepared 1 false", "waiting 1 false"}) {
			t.Errorf("%v", got)
		}
		_, err = n.Retry(t.Context(), id, nil)
		must(t, err)
		n.Succeeds(id)
		n.Until("the waiting one is settled, too", func() bool {
			h, err := n.Health(t.Context())
			return err == nil && len(h) == 1 && h[0].Queued == 0 && len(h[0].Waits) == 0 && !h[0].AnsweredAt.IsZero()
		})
		execSQL(t, d, "UPDATE lanes SET failures = 3, trouble = 'given up', trouble_at = 1")
		if h, err := n.Health(t.Context()); err != nil || len(h) != 1 || h[0].Outage != nil {
			t.Errorf("a lane with nothing to send is in trouble: %+v, %v", h, err)
		}
	})
}

func TestCountsAddUp(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "s-"+d.Engine())
		began := d.Now().Add(-2 * time.Minute)
		name := func(s string) string { return s + "-" + d.Engine() }
		n.Succeeds(n.File(invoice(byNumber, supplier, name("a"))))
		n.Fails(n.File(invoice(byNumber, supplier, name("b")).With("transaction_number", name("b")+"-REJECT")),
			fault.AuthorityRejected)
		n.Succeeds(n.File(invoice(byNumber, supplier, name("a")))) // answered with the first: nothing new was accepted
		check := func(when string) {
			t.Helper()
			var sum ledger.Count
			n.Until("everything is counted", func() bool { // after its commit, and not while counts are being stored
				counts, err := n.Counts(t.Context(), began, d.Now().Add(time.Minute), time.Hour)
				must(t, err)
				sum = ledger.Count{}
				for _, c := range counts {
					if c.Environment.Code != byNumber || c.Environment.Live || c.At.Minute() != 0 {
						t.Errorf("%s: %+v", when, c)
					}
					sum.Accepted, sum.Succeeded, sum.Failed = sum.Accepted+c.Accepted, sum.Succeeded+c.Succeeded, sum.Failed+c.Failed
					sum.Calls, sum.CallsFailed, sum.CallsTook = sum.Calls+c.Calls, sum.CallsFailed+c.CallsFailed, sum.CallsTook+c.CallsTook
				}
				return sum.Accepted >= 2 && sum.Succeeded >= 1 && sum.Failed >= 1 && sum.Calls >= 2
			})
			if sum.Accepted != 2 || sum.Succeeded != 1 || sum.Failed != 1 || sum.Calls < 2 || sum.CallsFailed != 0 || sum.CallsTook == 0 {
				t.Errorf("%s: %+v", when, sum)
			}
		}
		check("before they are stored")
		must(t, n.FlushCounts(t.Context()))
		check("stored")
		usage, err := n.Usage(t.Context(), client, began, d.Now())
		must(t, err)
		var used ledger.Usage
		for _, u := range usage {
			used.Accepted, used.Succeeded, used.Failed = used.Accepted+u.Accepted, used.Succeeded+u.Succeeded,
				used.Failed+u.Failed
		}
		if used.Accepted != 2 || used.Succeeded != 1 || used.Failed != 1 {
			t.Errorf("usage %+v", usage)
		}
		if other, err := n.Usage(t.Context(), "c_other", began, d.Now()); err != nil || len(other) != 0 {
			t.Errorf("another client used %v, %v", other, err)
		}
		// Two days later a new process makes hours of the minutes; nothing is lost or doubled.
		execSQL(t, d, "UPDATE transaction_counts SET minute = minute - 2880")
		n.Stop()
		fresh := newNode(t, d, a.Setup()).Start()
		fresh.Succeeds(fresh.File(invoice(byNumber, supplier, name("c"))))
		must(t, fresh.FlushCounts(t.Context()))
		same(t, "rows of single nodes that are old",
			one[int](t, d, "SELECT count(*) FROM transaction_counts WHERE minute < $1 AND (node <> '' OR minute % 60 <> 0)",
				d.Now().Add(-26*time.Hour).Unix()/60), 0)
		same(t, "accepted in all", one[int64](t, d, "SELECT CAST(sum(accepted) AS BIGINT) FROM transaction_counts"), int64(3))
	})
}
