package filing_test

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
)

func TestABatchIsWhatTheAuthorityTakes(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.Batch = 7
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	var ids []string
	for i := range 15 {
		ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprintf("t%02d", i))))
	}
	n.Start()
	for _, id := range ids {
		n.Succeeds(id)
	}
	n.Stop()
	same(t, "calls", o.Calls(), 3)
	same(t, "in the last call", o.LastCall(), 1)
	if got := o.Registered(); !sort.StringsAreSorted(got) {
		t.Errorf("registered in the order %v", got)
	}
}

// A chain is filed in its own order, however calls fail and attempts overtake
// each other, and never forks.
func TestAChainKeepsItsOrderThroughOutages(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	n := newNode(t, sqlite(t), a.Setup())
	supplier := n.Supplier(byChain, "s1")
	a.Script(byChain,
		authority.Step{Outcome: authority.Reject}, authority.Step{Outcome: authority.Accept, Times: 5},
		authority.Step{Outcome: authority.Unavailable, Times: 2}, authority.Step{Outcome: authority.Garbage, Times: 2},
		authority.Step{Outcome: authority.DropAnswer}, authority.Step{Outcome: authority.Unavailable, Times: 2})
	var ids []string
	// the second attempt is older than its place in the chain
	ids = append(ids, n.File(invoice(byChain, supplier, "first")), n.File(invoice(byChain, supplier, "first")))
	n.Start()
	for i := range 40 {
		ids = append(ids, n.File(invoice(byChain, supplier, fmt.Sprintf("t%02d", i))))
	}
	failed := 0
	for _, id := range ids {
		if r := n.Settled(id); r.Status == filing.Failure {
			failed++
			same(t, "why", fmt.Sprint(codesOf(r)), "[authority_rejected]")
			if strings.Contains(r.Errors[0].Message, "chain") {
				t.Errorf("the chain broke: %v", r.Errors)
			}
		}
	}
	same(t, "failures", failed, 1)
	same(t, "registrations", len(a.Registered(byChain)), 41)
	same(t, "chain positions", one[int64](t, n.DB, "SELECT position FROM chains"), 42)
}

// The chain goes on from its head after links were fixed and never sent.
func TestLinksPreparedBeforeAKillAreSentFirst(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	o.Habits.Batch = 3
	down := true
	var mu sync.Mutex
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return country.Receipt{}, country.ErrNotTaken
		}
		if want := int64(len(o.Registered()) + 1); f.Link.Position != want {
			t.Errorf("position %d came where %d belongs", f.Link.Position, want)
		}
		return o.Take(f), nil
	}
	d := sqlite(t)
	n := newNode(t, d, o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	ids := []string{n.File(invoice(officeCode, supplier, "t0"))}
	n.Start()
	n.Until("one is prepared", func() bool { return n.Stage(ids[0]) == string(filing.Prepared) })
	for i := range 10 {
		ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i+1))))
	}
	n.Until("some more are prepared", func() bool {
		return one[int64](t, d, "SELECT count(*) FROM operations WHERE stage = 'prepared'") == 3
	})
	n.Stop()
	mu.Lock()
	down = false
	mu.Unlock()
	next := newNode(t, d, o.Setup()).Start()
	for _, id := range ids {
		next.Succeeds(id)
	}
}

// Bytes prepared by one version of a pack are sent unchanged by the next.
func TestBytesOfAnOlderVersionAreSentUnchanged(t *testing.T) {
	t.Parallel()
	old := newOffice(country.ByNumber)
	old.OnSend = func(*office, country.Filing) (country.Receipt, error) {
		return country.Receipt{}, country.ErrNotTaken
	}
	d := sqlite(t)
	n := newNode(t, d, old.Setup())
	supplier := n.Supplier(officeCode, "s1")
	id := n.File(invoice(officeCode, supplier, "t1"))
	n.Start()
	n.Until("it is prepared", func() bool { return n.Stage(id) == string(filing.Prepared) })
	n.Stop()
	bytes := one[[]byte](t, d, "SELECT report FROM filings")

	next := newOffice(country.ByNumber)
	next.Version = "office-2"
	var sent []byte
	next.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if f.Number == "N-t1" {
			sent = f.Report
		}
		return o.Take(f), nil
	}
	m := newNode(t, d, next.Setup()).Start()
	m.Succeeds(id)
	same(t, "sent", string(sent), string(bytes))
	same(t, "version of its pack", one[string](t, d, "SELECT pack_version FROM operations WHERE operation_id = $1", id),
		"office-1")
	m.Succeeds(m.File(invoice(officeCode, supplier, "t2")))
	if report := one[string](t, d, "SELECT filing FROM filings WHERE operation_id <> $1", id); report == "" {
		t.Error("nothing was filed by the next version")
	}
	same(t, "versions", one[int64](t, d, "SELECT count(DISTINCT pack_version) FROM operations"), 2)
}

// Hard case 16: a body on which the pack panics is set aside after three
// times; its neighbours in the very same batch are not concerned.
func TestHardCase16APanickingTransactionIsQuarantined(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		if in.Transaction.Number == "poison" {
			panic("out of cheese")
		}
		return o.Draft(in)
	}
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	var ids []string
	for i := range 5 {
		ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
	}
	poison := n.File(invoice(officeCode, supplier, "p").With("transaction_number", "poison"))
	n.Start()
	n.Until("the poison is set aside", func() bool { return n.Stage(poison) == string(filing.Quarantined) })
	for _, id := range ids {
		n.Succeeds(id)
	}
	n.Succeeds(n.File(invoice(officeCode, supplier, "later")))
	same(t, "what the client sees", n.Show(poison).Status, filing.Processing)
	same(t, "alerts", fmt.Sprint(n.Raised("operation_quarantined")), "map["+poison+":1]")
	same(t, "registrations", len(o.Registered()), 6)
	n.Stop()
	if n.T.Failed() {
		return
	}
	same(t, "it was tried", strings.Count(n.Log.String(), "out of cheese"), filing.CrashesMax)
}

// Hard case 16: an operation that kills the whole process is found by the count
// that is raised before any work, first among others, then alone.
// What was in work when the process ended twice waits until the process has
// lived for a while; what comes meanwhile does not wait with it, however many
// suspects there are.
func TestNewcomersDoNotWaitForSuspects(t *testing.T) {
	t.Parallel()
	for _, suspects := range []int{1, filing.SuspectsLook, filing.SuspectsLook + 1} {
		o := newOffice(country.ByNumber)
		o.Habits.Batch = 1
		n := newNode(t, sqlite(t), o.Setup())
		n.SuspectLater(time.Hour)
		supplier := n.Supplier(officeCode, "s1")
		for i := range suspects {
			n.File(invoice(officeCode, supplier, fmt.Sprint("suspect", i)))
		}
		execSQL(t, n.DB, "UPDATE operations SET crashes = 2")
		n.Start()
		n.Until("the suspects are put off", func() bool {
			return one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE due_at > $1",
				db.Micros(n.DB.Now().Add(time.Minute))) == int64(suspects)
		})
		n.Succeeds(n.File(invoice(officeCode, supplier, "newcomer")))
		n.Stop()
		same(t, "registered", len(o.Registered()), 1)
	}
}

func TestHardCase16AnOperationThatKillsTheProcessIsIsolated(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	o := newOffice(country.ByNumber)
	fine := newNode(t, d, o.Setup())
	supplier := fine.Supplier(officeCode, "s1")
	var ids []string
	poison := ""
	for i := range 40 {
		p := invoice(officeCode, supplier, fmt.Sprintf("t%02d", i))
		if i == 20 {
			poison = fine.File(p.With("transaction_number", "poison"))
			continue
		}
		ids = append(ids, fine.File(p))
	}
	deaths := 0
	for len(fine.Raised("operation_quarantined")) == 0 {
		if deaths++; deaths > 10 {
			t.Fatal("the poison kills process after process")
		}
		die(t, d, o)
	}
	if deaths < filing.CrashesMax {
		t.Errorf("quarantined after %d deaths", deaths)
	}
	fine.Start()
	for _, id := range ids {
		fine.Succeeds(id)
	}
	same(t, "alerts", fmt.Sprint(fine.Raised("operation_quarantined")), "map["+poison+":1]")
	same(t, "registrations", len(o.Registered()), 39)
	same(t, "what the client sees", fine.Show(poison).Status, filing.Processing) // it may have left: a person must look
	same(t, "innocents still suspected", one[int64](t, d,
		"SELECT count(*) FROM operations WHERE crashes > 0 AND operation_id <> $1", poison), 0)
}

// die runs a process that ends, without a word, in the middle of a call that
// carries the poison; or until there is nothing to do.
func die(t *testing.T, d *db.DB, o *office) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		mortal := &mortalOffice{office: o}
		p := o.Pack()
		s := o.Setup()
		p.Simulator = s.Packs[0].Simulator
		p.Connect = func(country.Endpoint) (country.Channel, error) { return mortal, nil }
		s.Packs = []country.Pack{p}
		n := newNode(t, d, s).Start()
		n.Until("it is dead or idle", func() bool {
			return mortal.dead.Load() || one[int64](t, d, "SELECT count(*) FROM operations WHERE due_at <= $1",
				db.Micros(d.Now())) == 0
		})
		n.Stop()
		// The process is gone: nobody holds its lanes.
		execSQL(t, d, "UPDATE lanes SET due_at = NULL, lease_until = NULL, lease_node = NULL")
	})
}

// mortalOffice takes the process with it when the poison is sent: nothing that
// knows transactions recovers that panic, and no write comes after it.
type mortalOffice struct {
	*office
	dead atomic.Bool
}

func (m *mortalOffice) Send(ctx context.Context, filings []country.Filing,
	c country.Credentials) ([]country.Receipt, error) {
	for _, f := range filings {
		if f.Number == "poison" {
			m.dead.Store(true)
			panic("the process dies here")
		}
	}
	return m.office.Send(ctx, filings, c)
}

// One client's long backlog does not starve another's single transaction.
func TestABacklogOfOneClientDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	const backlog = 60
	o := newOffice(country.ByNumber)
	o.Habits.Batch = 1
	var n *node
	gate := make(chan struct{})
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if strings.HasPrefix(f.Number, "N-big") {
			<-gate // each of the big client's calls waits for a token
		}
		return o.Take(f), nil
	}
	n = newNode(t, sqlite(t), o.Setup())
	big := n.SupplierOf("c_big", officeCode, "big")
	small := n.Supplier(officeCode, "small")
	for i := range backlog {
		n.HandAs("c_big", transaction.Invoice, invoice(officeCode, big, fmt.Sprint("big", i)))
	}
	n.Start()
	gate <- struct{}{} // the backlog is under way
	n.Succeeds(n.File(invoice(officeCode, small, "t1")))
	if done := len(o.Registered()); done > 3 {
		t.Errorf("the small one came after %d of the backlog", done)
	}
	close(gate)
	n.Until("the backlog is done", func() bool {
		return one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'") == 0
	})
}

// A client with many suppliers, all of them waiting for a slow authority,
// gets no more than its share of the slots: another client's one sale waits for
// those that are under way and not for the backlog.
func TestAClientOfManySuppliersDoesNotStarveAnother(t *testing.T) {
	t.Parallel()
	const slots, suppliers = 8, 72
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		o.Habits.Batch = 1
		under, gate := make(chan struct{}, suppliers), make(chan struct{})
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			if strings.HasPrefix(f.Number, "N-big") {
				under <- struct{}{}
				<-gate // each of the big client's calls waits for a token
			}
			return o.Take(f), nil
		}
		s := o.Setup()
		s.Slots = slots
		n := newNode(t, d, s)
		small := n.SupplierOf("c_small", officeCode, "small") // behind c_big in every order but that of turns
		for i := range suppliers {
			n.HandAs("c_big", transaction.Invoice,
				invoice(officeCode, n.SupplierOf("c_big", officeCode, fmt.Sprintf("big%03d", i)), fmt.Sprint("big", i)))
		}
		n.Start()
		for range slots {
			<-under
		}
		id := n.HandAs("c_small", transaction.Invoice, invoice(officeCode, small, "t1"))
		released := 0
		for done := false; !done; released++ {
			if released == suppliers-1 {
				t.Fatal("the small client's sale came last")
			}
			select {
			case gate <- struct{}{}:
			case <-under: // the next of the big client's
				released--
			}
			done = one[string](t, d, "SELECT status FROM operations WHERE operation_id = $1", id) == "SUCCESS"
		}
		if most := 3 * slots; released > most {
			t.Errorf("the small client's sale came after %d of the backlog of %d, want at most %d", released, suppliers, most)
		}
		close(gate)
		n.Until("the backlog is done", func() bool {
			return one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'") == 0
		})
	})
}

// New credentials: what is certainly not at the authority is signed again, what may be there is not.
func TestHardCase12NewCredentialsSignAgainOnlyWhatIsNotAtTheAuthority(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	var mode atomic.Pointer[error]
	mode.Store(&errLine)
	var sent []string
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if err := *mode.Load(); err != errWorks {
			return country.Receipt{}, err
		}
		sent = append(sent, string(f.Report))
		return o.Take(f), nil
	}
	o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
		if err := *mode.Load(); err != errWorks {
			return country.Receipt{}, err
		}
		return o.Held(f), nil
	}
	s := o.Setup()
	s.Master = newMaster(t)
	n := newNode(t, sqlite(t), s)
	supplier := n.Supplier(officeCode, "s1", func(c *onboarding.NewCompany) { c.Credentials.Secret = "old" })
	doubtful := n.File(invoice(officeCode, supplier, "t1"))
	n.Start()
	n.Until("one is in doubt", func() bool { return n.Stage(doubtful) == string(filing.Sent) })
	n.Stop()
	mode.Store(&errRefused)
	unsent := n.File(invoice(officeCode, supplier, "t2"))
	execSQL(t, n.DB, "UPDATE operations SET due_at = accepted_at") // both are due in one visit
	n.Start()
	n.Until("the lane is paused", func() bool { return len(n.Raised("lane_paused_credentials")) == 1 })
	n.Stop()
	same(t, "what was sent", n.Stage(doubtful), string(filing.Sent))
	same(t, "what was not", n.Stage(unsent), string(filing.Prepared))
	waiting := n.File(invoice(officeCode, supplier, "t3"))
	// it rests for long
	execSQL(t, n.DB, "UPDATE lanes SET due_at = $1, failures = 9", db.Micros(n.DB.Now().Add(time.Hour)))
	mode.Store(&errWorks)
	replaceSecret(n, supplier, "new")
	n.Start()
	for _, id := range []string{doubtful, unsent, waiting} {
		n.Succeeds(id)
	}
	for number, secret := range map[string]string{"N-t1": "old", "N-t2": "new", "N-t3": "new"} {
		if !strings.Contains(lineOf(sent, number), fmt.Sprintf("%q", secret)) {
			t.Errorf("%s was not sent with the %s credentials: %v", number, secret, sent)
		}
	}
	same(t, "alerts", fmt.Sprint(n.Raised("lane_paused_credentials")), "map["+client+"/"+supplier+":1]")
}

// What was refused for its signature is not sent with it again: the sale that
// showed that a certificate was revoked goes through with the next one.
func TestNewCredentialsSignAgainWhatWasRefusedForTheOldOnes(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	refused := make(chan struct{}, 100)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if strings.Contains(string(f.Report), `"old"`) {
			refused <- struct{}{}
			return country.Receipt{}, fmt.Errorf("%w: %w", country.ErrNotTaken, errRefused)
		}
		return o.Take(f), nil
	}
	s := o.Setup()
	s.Master = newMaster(t)
	n := newNode(t, sqlite(t), s)
	supplier := n.Supplier(officeCode, "s1", func(c *onboarding.NewCompany) { c.Credentials.Secret = "old" })
	ids := []string{n.File(invoice(officeCode, supplier, "t1")), n.File(invoice(officeCode, supplier, "t2"))}
	n.Start()
	<-refused
	n.Until("the lane is paused", func() bool { return len(n.Raised("lane_paused_credentials")) == 1 })
	n.Stop()
	same(t, "what was refused", n.Stage(ids[0]), string(filing.Prepared))
	replaceSecret(n, supplier, "new")
	n.Start()
	for _, id := range ids {
		n.Succeeds(id)
	}
}

var (
	errWorks   = errors.New("it works")
	errRefused = fmt.Errorf("%w: revoked", country.ErrCredentials)
)

// replaceSecret changes a company's credentials as its owner would.
func replaceSecret(n *node, company, secret string) {
	n.T.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Companies.Run(ctx) }()
	e, err := n.Companies.Patch(context.Background(), client, company,
		[]byte(`{"tax_credentials": {"password": "`+secret+`"}}`))
	must(n.T, err)
	deadline := time.Now().Add(patience)
	for {
		job, err := n.Companies.Job(context.Background(), client, e.Data.JobID)
		must(n.T, err)
		if job.Status == onboarding.Success {
			break
		}
		if job.Status == onboarding.Failed || time.Now().After(deadline) {
			n.T.Fatalf("the new credentials are %s: %v", job.Status, job.Errors)
		}
		time.Sleep(time.Millisecond) // a job has no signal to give
	}
	stop()
	must(n.T, <-done)
}

func lineOf(lines []string, number string) string {
	for _, l := range lines {
		if strings.Contains(l, fmt.Sprintf("%q", number)) {
			return l
		}
	}
	return ""
}
