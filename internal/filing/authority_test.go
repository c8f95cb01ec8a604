package filing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// In every class that can be asked, or recognises the same bytes, a lost answer
// is found again: one registration, one result with the authority's own id.
func TestHardCase01AnswerLostIsAdopted(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byKey, byChain} {
		t.Run(code, func(t *testing.T) {
			n, a := filer(t)
			a.Script(code, authority.Step{Outcome: authority.DropAnswer})
			id := n.File(invoice(code, n.Supplier(code, "s1"), "t1"))
			r := n.Succeeds(id)
			held := a.Registrations(code)
			if len(held) != 1 {
				t.Fatalf("the authority holds %v", held)
			}
			same(t, "authority id", *r.AuthorityID1, held[0].AuthorityID)
			same(t, "reported at", *r.ReportedAt, result.Stamp(held[0].At))
			same(t, "hash of the filing", one[string](t, n.DB, "SELECT sha256 FROM filings WHERE operation_id = $1", id),
				held[0].SHA256)
			same(t, "events", n.Events(id), 1)
		})
	}
}

// What the authority cannot say any more is null, with a warning.
func TestAnIDLostWithItsAnswerIsNullWithAWarning(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		o.Take(f)
		return country.Receipt{}, errLine
	}
	o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
		r := o.Held(f)
		r.AuthorityID1 = ""
		return r, nil
	}
	n := newNode(t, sqlite(t), o.Setup()).Start()
	r := n.Succeeds(n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1")), fault.AuthorityIDUnavailable)
	if r.AuthorityID1 != nil {
		t.Errorf("id %v", *r.AuthorityID1)
	}
}

func TestHardCase03AnothersDocumentUnderOurNumberIsFailure(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byChain} {
		t.Run(code, func(t *testing.T) {
			n, a := filer(t)
			supplier := n.Supplier(code, "s1")
			a.Script(code, authority.Step{Outcome: authority.Duplicate, Of: authority.OfOther})
			r := n.Fails(n.File(invoice(code, supplier, "t1")), fault.AuthorityNumberUsed)
			if held := a.Registrations(code)[0].AuthorityID; !strings.Contains(r.Errors[0].Message, held) {
				t.Errorf("%q does not name what is held, %s", r.Errors[0].Message, held)
			}
			if r.AuthorityID1 != nil || r.UniqueNumber != nil || len(r.Attachments) > 0 {
				t.Errorf("a failure shows %+v", r)
			}
			// Two of our own transactions with one number: the second is refused, the first stands.
			if code == byNumber {
				n.Succeeds(n.File(invoice(code, supplier, "t2").With("transaction_number", "shared")))
				n.Fails(n.File(invoice(code, supplier, "t3").With("transaction_number", "shared")), fault.AuthorityNumberUsed)
			}
		})
	}
}

func TestADuplicateOfOursIsSuccess(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byKey, byChain} {
		n, a := filer(t)
		a.Script(code, authority.Step{Outcome: authority.Duplicate, Of: authority.OfOurs})
		n.Succeeds(n.File(invoice(code, n.Supplier(code, "s1"), "t1")))
		same(t, code+" registrations", len(a.Registered(code)), 1)
	}
}

// Found under our number after a lost answer, with another's content.
func TestALostAnswerAboutAnothersDocumentIsFailure(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	a.Script(byNumber, authority.Step{Outcome: authority.Garbage},
		authority.Step{Outcome: authority.Unavailable, On: authority.OnQuery, Times: 2})
	n.When("answered", func(string) {
		desk, _ := a.Sims.Desk(byNumber)
		must(t, desk.Write(func(b *authority.Book) {
			if b.Count() == 0 {
				b.Register(authority.Registration{Supplier: byNumber + "-s1", Number: "N-t1", SHA256: strings.Repeat("0", 64),
					AuthorityID: "THEIRS"})
			}
		}))
	})
	r := n.Fails(n.File(invoice(byNumber, supplier, "t1")), fault.AuthorityNumberUsed)
	if !strings.Contains(r.Errors[0].Message, "THEIRS") {
		t.Error(r.Errors)
	}
	same(t, "registrations", len(a.Registered(byNumber)), 1)
}

// An outage in any dress is never a rejection: PROCESSING stays, then SUCCESS.
func TestHardCase05AnOutageIsNeverARejection(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byKey, byChain} {
		for _, dress := range []authority.Behaviour{authority.Unavailable, authority.Garbage, authority.DropAnswer} {
			if (code == byHash || code == byKey) && dress == authority.Unavailable {
				continue // as by number: nothing was taken, nothing is asked
			}
			t.Run(code+" "+string(dress), func(t *testing.T) {
				n, a := filer(t)
				supplier := n.Supplier(code, "s1")
				// The outage befalls filing and asking alike.
				a.Script(code, authority.Step{Outcome: dress, Times: 3, On: authority.OnAny})
				var seen []filing.Status
				var id string
				n.When("left", func(string) {
					if id != "" {
						seen = append(seen, n.Show(id).Status)
					}
				})
				n.Stop()
				id = n.File(invoice(code, supplier, "t1"))
				n.Start()
				n.Succeeds(id)
				n.Stop()
				if len(seen) < 2 || slices.Contains(seen, filing.Failure) || seen[0] != filing.Processing {
					t.Errorf("on the way it was %v", seen)
				}
				same(t, "registrations", len(a.Registered(code)), 1)
				same(t, "events", n.Events(id), 1)
				same(t, "lane's failures", one[int64](t, n.DB, "SELECT max(failures) FROM lanes"), 0)
			})
		}
	}
}

func TestRejectionIsFailureAndTheNumberStaysFree(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	a.Script(byNumber, authority.Step{Outcome: authority.Reject})
	n.Fails(n.File(invoice(byNumber, supplier, "t1")), fault.AuthorityRejected)
	same(t, "registrations", len(a.Registered(byNumber)), 0)
	n.Succeeds(n.File(invoice(byNumber, supplier, "t1")))
}

func TestPendingThenAccepted(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.PollEvery = time.Millisecond
	polls := 0
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		return country.Receipt{Outcome: country.Pending, Handle: "ticket-7"}, nil
	}
	o.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
		same(t, "handle", last.Handle, "ticket-7") // also when a poll in between did not repeat it
		switch polls++; polls {
		case 1:
			return country.Receipt{Outcome: country.Pending}, nil
		case 2:
			return country.Receipt{}, errLine
		}
		return o.Take(f), nil
	}
	n := newNode(t, sqlite(t), o.Setup()).Start()
	id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
	n.Succeeds(id)
	same(t, "sent", o.Calls(), 1)
	same(t, "polls", polls, 3)
	n.Stop()
}

func TestPendingThenRejected(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	a.Script(byNumber, authority.Step{Outcome: authority.Suspend}, authority.Step{Outcome: authority.Reject})
	id := n.File(invoice(byNumber, supplier, "t1"))
	n.Until("it is pending", func() bool {
		return n.Stage(id) == string(filing.Pending) || n.Show(id).Status != filing.Processing
	})
	n.Fails(id, fault.AuthorityRejected)
	same(t, "registrations", len(a.Registered(byNumber)), 0)
}

func TestACancellationAwaitsAcceptance(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1", func(c *onboarding.NewCompany) {
		c.Settings = country.Settings{"acceptance": true}
	})
	n.Succeeds(n.File(invoice(byNumber, supplier, "t1")))
	a.Script(byNumber, authority.Step{Outcome: authority.Suspend, Times: 2})
	id := n.Hand(transaction.Cancellation, correction(byNumber, "t1", "x1"))
	n.Until("it waits for acceptance", func() bool { return n.Stage(id) == string(filing.Pending) })
	r := n.Show(id)
	if r.Status != filing.Processing || fmt.Sprint(codesOf(r)) != "[awaiting_acceptance]" ||
		r.Errors[0].Type != fault.Warning {
		t.Fatalf("%s with %v", r.Status, r.Errors)
	}
	same(t, "what the original shows", n.Show(one[string](t, n.DB,
		"SELECT success_id FROM transactions WHERE transaction_id = 't1'")).Corrections[0].Status, filing.Processing)
	n.Succeeds(id)
	same(t, "registrations", len(a.Registered(byNumber)), 2)
}

func TestClassNWithoutAnswerIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	// Of the authority, and of one company at an authority that others can ask.
	for code, settings := range map[string]country.Settings{byNothing: nil, byNumber: {"class": string(country.ByNothing)}} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			n, a := filer(t)
			supplier := n.Supplier(code, "s1", func(c *onboarding.NewCompany) { c.Settings = settings })
			a.Script(code, authority.Step{Outcome: authority.DropAnswer})
			id := n.File(invoice(code, supplier, "t1"))
			n.Until("its outcome is in doubt", func() bool { return slices.Contains(codesOf(n.Show(id)), fault.OutcomeUnknown) })
			n.Until("its lane is left", func() bool {
				return one[int64](t, n.DB, "SELECT count(*) FROM lanes WHERE lease_until IS NOT NULL") == 0
			})
			same(t, "what is said of it", fmt.Sprint(codesOf(n.Show(id))), "[outcome_unknown]")
			other := n.File(invoice(code, supplier, "t2")) // the lane goes on without it
			n.Succeeds(other)
			r := n.Show(id)
			same(t, "status", r.Status, filing.Processing)
			same(t, "registrations", len(a.Registered(code)), 2)
			same(t, "events", n.Events(id), 0)
			// "Nothing was taken" is certain in this class, too.
			a.Script(code, authority.Step{Outcome: authority.Unavailable})
			n.Succeeds(n.File(invoice(code, supplier, "t3")))
			same(t, "registrations", len(a.Registered(code)), 3)
		})
	}
}

// "Not taken" by the second sending says nothing about the first.
func TestASecondSendingThatIsNotTakenLeavesTheFirstInDoubt(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByHash)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		switch o.Calls() {
		case 1:
			o.Take(f)
			return country.Receipt{}, errLine // taken, answer lost
		case 2, 3:
			return country.Receipt{}, country.ErrNotTaken
		case 4:
			return country.Receipt{Outcome: country.NotTaken}, nil
		}
		r := o.Held(f)
		r.Duplicate = true
		return r, nil
	}
	n := newNode(t, sqlite(t), o.Setup())
	id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
	n.When("left", func(string) {
		if n.Show(id).Status == filing.Processing && n.Stage(id) != string(filing.Sent) {
			t.Errorf("after %d sendings it is %s", o.Calls(), n.Stage(id))
		}
	})
	n.Start()
	n.Succeeds(id)
	same(t, "registered", len(o.Registered()), 1)
}

// An authority that knows the number and cannot say whose document it is.
func TestADocumentWithoutAHashIsNotBelieved(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	var finds atomic.Int64
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if f.Number != "N-t1" {
			return o.Take(f), nil
		}
		return country.Receipt{Outcome: country.Accepted, Duplicate: true}, nil
	}
	o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
		if finds.Add(1) < 3 {
			return country.Receipt{Outcome: country.Accepted}, nil
		}
		return country.Receipt{Outcome: country.Accepted, SHA256: f.SHA256, AuthorityID1: "found"}, nil
	}
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	n.Start()
	id := n.File(invoice(officeCode, supplier, "t1"))
	n.Until("it was asked", func() bool { return finds.Load() > 0 })
	n.Succeeds(n.File(invoice(officeCode, supplier, "t2"))) // others go on
	same(t, "adopted id", *n.Succeeds(id).AuthorityID1, "found")
}

// Flow control: what the authority asks for is obeyed, also by the next
// process. It is stored together with the answer, so that no kill loses it.
func TestAStatedWaitIsObeyedAcrossARestart(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second
	o := newOffice(country.ByChain)
	var calls []time.Time
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		calls = append(calls, time.Now())
		r := o.Take(f)
		r.Wait = wait
		return r, nil
	}
	s := o.Setup()
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		n.When("settled", func(string) {
			until := db.FromMicros(one[int64](t, n.DB, "SELECT due_at FROM lanes"))
			if left := until.Sub(n.DB.Now()); left < wait/2 || left > wait {
				t.Errorf("when the outcome is on disk the lane rests for %s", left)
			}
			same(t, "holders of the lane", one[int64](t, n.DB, "SELECT count(lease_until) FROM lanes"), 0)
		})
		first := n.File(invoice(officeCode, supplier, "t1"))
		n.Start()
		n.Succeeds(first)
		second := n.File(invoice(officeCode, supplier, "t2"))
		n.Stop()
		next := newNode(t, n.DB, s).Start()
		next.Succeeds(second)
		next.Stop()
		if pause := calls[1].Sub(calls[0]); pause < wait {
			t.Errorf("the second was filed after %s, the authority asked for %s", pause, wait)
		}
	})
}

// A pause is asked of the company: its other lanes keep it, too.
func TestAStatedWaitHoldsForAllLanesOfTheCompany(t *testing.T) {
	t.Parallel()
	const wait = 30 * time.Second
	o := newOffice(country.ByNumber)
	o.Habits.Parallel = 4
	var mu sync.Mutex
	calls := map[string]time.Time{}
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		calls[f.Number] = time.Now()
		r := o.Take(f)
		if f.Number == "N-first" {
			r.Wait = wait
		}
		return r, nil
	}
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		supplier, neighbour := n.Supplier(officeCode, "s1"), n.Supplier(officeCode, "s2")
		n.Start()
		n.Succeeds(n.File(invoice(officeCode, supplier, "first")))
		ids := []string{n.File(invoice(officeCode, neighbour, "neighbour"))}
		lanes := func() int64 {
			return one[int64](t, n.DB, "SELECT count(*) FROM lanes WHERE supplier_id = $1", supplier)
		}
		for i := 0; i < 12 || lanes() < 4; i++ { // by chance of their ids
			ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
		}
		synctest.Wait()
		same(t, "why it waits", fmt.Sprint(codesOf(n.Show(ids[12]))), "[authority_wait]")
		for _, id := range ids {
			n.Succeeds(id)
		}
		n.Stop()
		same(t, "lanes of the company", lanes(), 4)
		for number, at := range calls {
			pause := at.Sub(calls["N-first"])
			if own := number != "N-first" && number != "N-neighbour"; own && pause < wait || !own && pause >= wait {
				t.Errorf("%s was filed after %s; the authority asked this company for %s", number, pause, wait)
			}
		}
	})
}

// Hard case 6: a node stalls before its call with a lease that runs out;
// another one files; the first wakes, sends the same bytes, and may write no
// outcome. What it heard is kept as evidence.
func TestHardCase06AStalledNodeCannotWrite(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	s.Packs = slices.Clone(s.Packs)
	connect := s.Packs[0].Connect
	s.Packs[0].Connect = func(at country.Endpoint) (country.Channel, error) {
		line, err := connect(at)
		return stubborn{line}, err
	}
	same(t, "what the stalled node heard", stalledNode(t, s, byNumber), "answered")
	same(t, "registrations", len(a.Registered(byNumber)), 1)
}

// stubborn makes its calls also when the lease is known to be lost: a node that
// stalls as a whole does not learn of that before its call.
type stubborn struct{ country.Channel }

func (s stubborn) Send(ctx context.Context, filings []country.Filing,
	c country.Credentials) ([]country.Receipt, error) {
	return s.Channel.Send(context.WithoutCancel(ctx), filings, c)
}

// Hard case 4: the late answer is even a rejection. The first outcome stands.
func TestHardCase04ALateAnswerIsEvidenceOnly(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if o.Calls() > 1 {
			return country.Receipt{Outcome: country.Rejected, Raw: []byte("rejected, too late")}, nil
		}
		return o.Take(f), nil
	}
	stalledNode(t, o.Setup(), officeCode)
	same(t, "registered", len(o.Registered()), 1)
}

// stalledNode lets a node sleep between "sent" and the call while another ends
// the operation, and returns the evidence of what it heard when it woke.
func stalledNode(t *testing.T, s setup, code string) (heard string) {
	t.Helper()
	url := dbtest.MigratedURL(t)
	asleepAlone := s
	asleepAlone.Slots = 1 // it claims nothing else while it sleeps
	stalled := newNode(t, dbtest.Open(t, db.Config{URL: url}), asleepAlone)
	other := newNode(t, dbtest.Open(t, db.Config{URL: url}), s)
	supplier := stalled.Supplier(code, "s1")
	asleep, wake := make(chan struct{}), make(chan struct{})
	stalled.When("sent", func(string) {
		close(asleep)
		<-wake
	})
	id := stalled.File(invoice(code, supplier, "t1"))
	stalled.Start()
	<-asleep
	execSQL(t, other.DB, "UPDATE lanes SET due_at = NULL, lease_until = NULL, lease_node = NULL") // its lease has run out
	other.Start()
	r := other.Succeeds(id)
	other.Stop()
	const last = "SELECT outcome FROM exchanges ORDER BY at DESC LIMIT 1"
	before := one[int64](t, other.DB, "SELECT count(*) FROM exchanges")
	close(wake)
	stalled.Until("the stalled node has given up", func() bool {
		return one[int64](t, other.DB, "SELECT count(*) FROM exchanges") > before
	})
	stalled.Stop()
	after := other.Show(id)
	same(t, "status", after.Status, filing.Success)
	same(t, "authority id", *after.AuthorityID1, *r.AuthorityID1)
	same(t, "errors", len(after.Errors), 0)
	same(t, "events", other.Events(id), 1)
	same(t, "open", one[int64](t, other.DB, "SELECT open FROM transactions"), 0)
	same(t, "evidence", one[int64](t, other.DB, "SELECT count(*) FROM exchange_operations WHERE operation_id = $1", id),
		before+1)
	return one[string](t, other.DB, last)
}

// Hard case 22: an authority whose clock differs is told to the operator; it
// decides nothing.
func TestHardCase22ClockSkewIsToldAndDecidesNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Skew = 61 * time.Second
	n := newNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	for i := range 3 {
		n.Succeeds(n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
	}
	same(t, "alerts", fmt.Sprint(n.Raised("clock_skew")), "map["+officeCode+":1]")

	right := newOffice(country.ByNumber)
	right.Skew = 59 * time.Second
	m := newNode(t, sqlite(t), right.Setup()).Start()
	m.Succeeds(m.File(invoice(officeCode, m.Supplier(officeCode, "s1"), "t1")))
	same(t, "alerts within a minute", len(m.Raised("clock_skew")), 0)
}

// An authority that drops what it had taken for decision, and says that it holds
// nothing of it: the same bytes go again.
func TestAPendingFilingThatWasDroppedGoesAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.PollEvery = time.Millisecond
	var sent sync.Map
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if before, again := sent.LoadOrStore(f.Number, f.SHA256); again {
			if before != f.SHA256 {
				t.Errorf("other bytes were sent")
			}
			return o.Take(f), nil
		}
		return country.Receipt{Outcome: country.Pending, Handle: "first"}, nil
	}
	o.OnPoll = func(*office, country.Filing, country.Receipt) (country.Receipt, error) {
		return country.Receipt{Outcome: country.NotTaken}, nil
	}
	n := newNode(t, sqlite(t), o.Setup())
	id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
	n.Start()
	n.Succeeds(id)
	same(t, "registered", len(o.Registered()), 1)
}
