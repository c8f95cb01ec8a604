package filing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// A process that is killed at `sent`, started, and killed at `sent` again leaves
// links behind that are suspects. Nobody is linked or sent ahead of them.
func TestAChainIsFiledInOrderAfterTwoKills(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	s.Documents = "file://" + t.TempDir()
	url := dbtest.SQLiteURL(t)
	supplier := ""
	t.Run("furnish", func(t *testing.T) {
		supplier = newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Supplier(byChain, "s1")
	})
	var ids []string
	for i := range 2 {
		ids = append(ids, killAt(t, errand{Database: url, Simulators: a.URL, Documents: s.Documents, Point: "sent",
			Body: invoice(byChain, supplier, fmt.Sprint("e", i)).Body(t)}))
	}
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s)
	n.SuspectLater(300 * time.Millisecond)
	same(t, "crashes of the first link", one[int64](t, n.DB, "SELECT crashes FROM operations WHERE operation_id = $1",
		ids[0]), 2)
	for i := 2; i < 5; i++ {
		ids = append(ids, n.File(invoice(byChain, supplier, fmt.Sprint("e", i))))
	}
	n.Start()
	for _, id := range ids {
		n.Succeeds(id)
	}
	same(t, "order at the authority", fmt.Sprint(a.Registered(byChain)), "[N-e0 N-e1 N-e2 N-e3 N-e4]")
	same(t, "alerts", len(n.Raised("chain_mismatch"))+len(n.Raised("chain_remarked")), 0)
}

// The same at an authority that takes whatever comes, as AEAT does, and only
// remarks that a link does not follow.
func TestNobodyIsLinkedOrSentAheadOfSuspects(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	o.Habits.Batch = 2
	setDown := outage(o)
	d := sqlite(t)
	n := newNode(t, d, o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	ids := []string{n.File(invoice(officeCode, supplier, "t1")), n.File(invoice(officeCode, supplier, "t2"))}
	n.Start()
	n.Until("both are prepared", func() bool {
		return n.Stage(ids[0]) == string(filing.Prepared) && n.Stage(ids[1]) == string(filing.Prepared)
	})
	n.Stop()
	execSQL(t, d, "UPDATE operations SET crashes = CASE operation_id WHEN $1 THEN 2 ELSE 1 END", ids[0])
	execSQL(t, d, "UPDATE lanes SET due_at = NULL, failures = 0, reason = '', trouble = ''")
	setDown(false)
	next := newNode(t, d, o.Setup())
	next.SuspectLater(300 * time.Millisecond)
	ids = append(ids, next.File(invoice(officeCode, supplier, "t3")))
	next.Start()
	for _, id := range ids {
		next.Succeeds(id)
	}
	same(t, "order at the authority", fmt.Sprint(o.Registered()), "[N-t1 N-t2 N-t3]")
}

// A link that was set aside keeps its place: nothing is filed behind it until
// somebody releases it, and the result says so.
func TestNothingOvertakesALinkThatWasSetAside(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	o.Habits.Batch = 2
	setDown := outage(o)
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	ids := []string{n.File(invoice(officeCode, supplier, "t1")), n.File(invoice(officeCode, supplier, "t2"))}
	n.Start()
	n.Until("both are prepared", func() bool {
		return n.Stage(ids[0]) == string(filing.Prepared) && n.Stage(ids[1]) == string(filing.Prepared)
	})
	n.Stop()
	execSQL(t, n.DB, "UPDATE operations SET crashes = 6 WHERE operation_id = $1", ids[1])
	execSQL(t, n.DB, "UPDATE lanes SET due_at = NULL, failures = 0, reason = '', trouble = ''")
	setDown(false)
	ids = append(ids, n.File(invoice(officeCode, supplier, "t3")))
	n.Start()
	n.Succeeds(ids[0])
	n.Until("the lane stands still", func() bool { return one[string](t, n.DB, "SELECT reason FROM lanes") == "held" })
	for _, id := range ids[1:] {
		same(t, "why", fmt.Sprint(codesOf(n.Show(id))), "[held]")
	}
	same(t, "registered", fmt.Sprint(o.Registered()), "[N-t1]")
	_, err := n.Retry(t.Context(), ids[1], nil)
	must(t, err)
	n.Succeeds(ids[1])
	n.Succeeds(ids[2])
	same(t, "registered", fmt.Sprint(o.Registered()), "[N-t1 N-t2 N-t3]")
}

// Credentials that are replaced while filings are being sent destroy nothing:
// every success keeps its bytes, and nothing empty is ever sent.
func TestReplacingCredentialsUnderLoadDestroysNoFiling(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		o.Habits.Batch, o.Habits.Parallel = 5, 4
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			if len(f.Report) == 0 {
				t.Errorf("an empty filing was sent: %+v", f)
			}
			return o.Take(f), nil
		}
		n := newNode(t, d, o.Setup()).Start()
		supplier := n.Supplier(officeCode, "s1")
		done := make(chan struct{})
		var replacing sync.WaitGroup
		var replaced atomic.Int64
		replacing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				must(t, d.Write(context.Background(), func(tx *db.Tx) error {
					return filing.CredentialsChanged(tx, client, supplier)
				}))
				replaced.Add(1)
			}
		})
		var ids []string
		for i := 0; i < 80 || replaced.Load() < 20; i++ {
			ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
		}
		for _, id := range ids {
			n.Succeeds(id)
		}
		close(done)
		replacing.Wait()
		n.Stop()
		same(t, "successes without their filing", one[int64](t, d, `SELECT count(*) FROM operations o WHERE o.status = 'SUCCESS'
			AND NOT EXISTS (SELECT 1 FROM filings f WHERE f.operation_id = o.operation_id AND length(f.report) > 0)`), 0)
		same(t, "registered", len(o.Registered()), len(ids))
	})
}

// A pause that the authority asked for is kept, whoever replaces credentials.
func TestNewCredentialsDoNotShortenAPauseThatTheAuthorityAskedFor(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		r := o.Take(f)
		r.Wait = time.Hour
		return r, nil
	}
	n := newNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	n.Stop()
	must(t, n.DB.Write(t.Context(), func(tx *db.Tx) error { return filing.CredentialsChanged(tx, client, supplier) }))
	until := db.FromMicros(one[int64](t, n.DB, "SELECT due_at FROM lanes"))
	if left := until.Sub(n.DB.Now()); left < 50*time.Minute {
		t.Errorf("the lane may be worked again in %s", left)
	}
	id := n.File(invoice(officeCode, supplier, "t2"))
	same(t, "why", fmt.Sprint(codesOf(n.Show(id))), "[authority_wait]")
}

// An operation that lost its bytes is neither sent nor ended; somebody is told,
// and the others of its lane go on.
func TestAnOperationWithoutItsBytesIsRefusedLoudly(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	setDown := outage(o)
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	id := n.File(invoice(officeCode, supplier, "t1"))
	n.Start()
	n.Until("it is prepared", func() bool { return n.Stage(id) == string(filing.Prepared) })
	n.Stop()
	execSQL(t, n.DB, "DELETE FROM filings")
	setDown(false)
	other := n.File(invoice(officeCode, supplier, "t2"))
	n.Start()
	n.Succeeds(other)
	n.Until("somebody is told", func() bool { return n.Raised("filing_missing")[id] == 1 })
	same(t, "status", n.Show(id).Status, filing.Processing)
	same(t, "registered", fmt.Sprint(o.Registered()), "[N-t2]")
}

// Settling compares digests that the intake took: it reads no body of those that waited.
func TestSettlingReadsNoWaitingBodies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		n := newNode(t, d, o.Setup())
		supplier := n.Supplier(officeCode, "s1")
		p := invoice(officeCode, supplier, "t1")
		first := n.File(p)
		var reordered map[string]any
		must(t, json.Unmarshal(p.Body(t), &reordered))
		spaced, err := json.MarshalIndent(reordered, "", "   ")
		must(t, err)
		same, err := n.Submit(t.Context(), caller(client), transaction.Invoice, spaced)
		must(t, err)
		other := n.File(invoice(officeCode, supplier, "t1").With("note", "something else"))
		execSQL(t, d, "UPDATE bodies SET body = 'gone' WHERE operation_id <> $1", first)
		n.Start()
		n.Succeeds(first)
		n.Succeeds(same)
		n.Succeeds(other, fault.PayloadDiffers)
	})
}

// A body that is not there is trouble of the storage; the transaction goes on
// when it is back.
func TestAMissingBodyIsNeverAFailure(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	p := invoice(officeCode, supplier, "t1")
	id := n.File(p)
	execSQL(t, n.DB, "DELETE FROM bodies")
	n.Start()
	n.Until("a visit failed", func() bool {
		return one[int64](t, n.DB, "SELECT coalesce(max(failures), 0) FROM lanes") > 1
	})
	same(t, "status", one[string](t, n.DB, "SELECT status FROM operations WHERE operation_id = $1", id), "PROCESSING")
	execSQL(t, n.DB, "INSERT INTO bodies (operation_id, body) VALUES ($1, $2)", id, p.Body(t))
	n.Succeeds(id)
}

// Replaying a success is safe whatever a body would be told today.
func TestReplayingASuccessThatWouldBeRefusedToday(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		n := newNode(t, d, o.Setup()).Start()
		supplier := n.Supplier(officeCode, "s1")
		id := n.File(invoice(officeCode, supplier, "t1"))
		n.Succeeds(id)
		for name, p := range map[string]paper{
			"an unknown country": invoice("ZZ", supplier, "t1"),
			"no items":           invoice(officeCode, supplier, "t1").With("items", []any{}),
			"almost nothing":     {"transaction_id": "t1"},
		} {
			before := n.Events(id)
			again, err := n.Submit(t.Context(), caller(client), transaction.Invoice, p.Body(t))
			if err != nil || again != id {
				t.Errorf("%s: %q, %v", name, again, err)
			}
			same(t, "events for "+name, n.Events(id), before+1)
		}
		for name, body := range map[string]string{
			"no success": `{"transaction_id": "t2"}`, "no id": `{}`, "another's": `{"transaction_id": 7}`,
			"no JSON": `{"transaction_id": "t1"`, "an array": `["t1"]`,
		} {
			if _, err := n.Submit(t.Context(), caller(client), transaction.Invoice,
				[]byte(body)); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := n.Submit(t.Context(), caller("c_two"), transaction.Invoice,
			[]byte(`{"transaction_id": "t1"}`)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("another client: %v", err)
		}
		same(t, "registered", len(o.Registered()), 1)
	})
}

// Amounts of different currencies are not added up.
func TestACorrectionIsInItsOriginalsCurrency(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	r := n.Fails(n.Hand(transaction.Adjustment,
		invoice(officeCode, supplier, "a1").Adjusts("t1", -100).With("currency_code", "USD")), fault.ValidationMatchInvalid)
	same(t, "field", r.Errors[0].Field, "currency_code")
	n.Succeeds(n.Hand(transaction.Adjustment,
		invoice(officeCode, supplier, "a2").Adjusts("t1", -100).With("currency_code", "eur")))
}

// The second of two credits waits for the first, and is refused only if that succeeds.
func TestASecondCreditWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		var mu sync.Mutex
		answer := map[string]country.Receipt{"N-c1": {Outcome: country.Pending}, "N-k1": {Outcome: country.Pending}}
		said := func(o *office, f country.Filing) (country.Receipt, error) {
			mu.Lock()
			r, special := answer[f.Number]
			mu.Unlock()
			if !special {
				return o.Take(f), nil
			}
			return r, nil
		}
		o.OnSend, o.OnPoll = said, func(o *office, f country.Filing, _ country.Receipt) (country.Receipt, error) {
			return said(o, f)
		}
		n := newNode(t, d, o.Setup()).Start()
		supplier := n.Supplier(officeCode, "s1")
		for _, id := range []string{"t1", "t2"} {
			n.Succeeds(n.File(invoice(officeCode, supplier, id).With("transaction_date", time.Now().UTC().Format(time.RFC3339))))
		}
		today := func(p paper) paper { return p.With("transaction_date", time.Now().UTC().Format(time.RFC3339)) }
		first, second := n.Hand(transaction.Credit, today(correction(officeCode, "t1", "c1"))), ""
		n.Until("the first is undecided", func() bool { return n.Stage(first) == string(filing.Pending) })
		second = n.Hand(transaction.Credit, today(correction(officeCode, "t1", "c2")))
		n.Until("the second waits", func() bool { return n.Stage(second) == string(filing.Blocked) })
		same(t, "why", fmt.Sprint(codesOf(n.Show(second))), "[behind_another]")
		mu.Lock()
		answer["N-c1"] = country.Receipt{Outcome: country.Rejected}
		mu.Unlock()
		n.Fails(first, fault.AuthorityRejected)
		n.Succeeds(second)

		winner := n.Hand(transaction.Credit, today(correction(officeCode, "t2", "k1")))
		n.Until("it is undecided", func() bool { return n.Stage(winner) == string(filing.Pending) })
		loser := n.Hand(transaction.Cancellation, today(correction(officeCode, "t2", "k2")))
		n.Until("the cancellation waits", func() bool { return n.Stage(loser) == string(filing.Blocked) })
		mu.Lock()
		delete(answer, "N-k1")
		mu.Unlock()
		n.Succeeds(winner)
		n.Fails(loser, fault.ReferenceAlreadyCorrected)
	})
}

// An adjustment that was itself credited no longer counts against its original.
func TestACreditedAdjustmentNoLongerCounts(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	today := time.Now().UTC().Format(time.RFC3339)
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1").With("transaction_date", today)))
	whole := func(id string) paper {
		return invoice(officeCode, supplier, id).Adjusts("t1", -22710).With("transaction_date", today)
	}
	n.Succeeds(n.Hand(transaction.Adjustment, whole("a1")))
	n.Fails(n.Hand(transaction.Adjustment, whole("a2")), fault.ReferenceExceeded)
	n.Succeeds(n.Hand(transaction.Credit, correction(officeCode, "a1", "c1").With("transaction_date", today)))
	n.Succeeds(n.Hand(transaction.Adjustment, whole("a3")))
	n.Fails(n.Hand(transaction.Adjustment, whole("a4")), fault.ReferenceExceeded)
}

// A country without an address is told at once, in the result and to the operator.
func TestAnAuthorityWithoutAnAddressIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	s := o.Setup()
	s.Simulators = ""
	n := newNode(t, sqlite(t), s).Start()
	supplier := n.Supplier(officeCode, "s1")
	id := n.File(invoice(officeCode, supplier, "t1"))
	n.Until("somebody is told", func() bool { return len(n.Raised("authority_not_configured")) == 1 })
	r := n.Show(id)
	same(t, "result", fmt.Sprint(r.Status, codesOf(r)), "PROCESSING[authority_not_configured]")
	same(t, "type", r.Errors[0].Type, fault.Warning)
	same(t, "subject", fmt.Sprint(n.Raised("authority_not_configured")), "map["+officeCode+" test:1]")
}

// Dates in documents are those of the wall clock, at once after it was corrected;
// leases and pauses go by the other one, which only creeps towards it.
func TestDocumentsAreDatedByTheWallClock(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-20 * time.Minute, 20 * time.Minute} {
		o := newOffice(country.ByNumber)
		var drafted, issued time.Time
		o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
			drafted = in.Now
			return o.Draft(in)
		}
		s := o.Setup()
		s.Render = func(_ context.Context, in filing.Issued) (document.Rendering, error) {
			issued = in.At
			return document.Rendering{PDF: []byte("%PDF")}, nil
		}
		d := sqlite(t)
		n := newNode(t, d, s)
		supplier := n.Supplier(officeCode, "s1")
		db.JumpWall(d, jump)
		id := n.File(invoice(officeCode, supplier, "t1"))
		n.Start()
		r := n.Succeeds(id)
		n.Stop()
		wall := time.Now().Add(jump)
		generated, err := time.Parse(time.RFC3339, *r.GeneratedAt)
		must(t, err)
		for what, at := range map[string]time.Time{"the draft": drafted, "the document": issued,
			"document_generated_at": generated} {
			if off := at.Sub(wall).Abs(); off > 10*time.Second {
				t.Errorf("after a jump of %s %s is off by %s", jump, what, off)
			}
		}
		if off := d.Now().Sub(wall).Abs(); off < 10*time.Minute {
			t.Errorf("the other clock jumped, too: it is off by %s", off)
		}
	}
}
