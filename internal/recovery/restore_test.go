package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/hold"
	"tributary/internal/ledger"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
	"tributary/internal/recovery"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// eachBackup runs fn once per engine, with a way to copy the database while it
// is used: the tools that an operator has.
func eachBackup(t *testing.T, fn func(t *testing.T, d *db.DB, backup func() *db.DB)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := dbtest.SQLiteURL(t)
		fn(t, dbtest.Open(t, db.Config{URL: url}), copier(t, url))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		needs.Tool(t, "pg_dump", "postgresql-client")
		needs.Tool(t, "pg_restore", "postgresql-client")
		from := dbtest.MigratedURL(t)
		fn(t, dbtest.Open(t, db.Config{URL: from}), func() *db.DB {
			into, dump := dbtest.PostgresURL(t), filepath.Join(t.TempDir(), "dump")
			for _, c := range []*exec.Cmd{
				exec.Command("pg_dump", "--format=custom", "--file="+dump, from),
				exec.Command("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+into, dump),
			} {
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", c.Path, err, out)
				}
			}
			return dbtest.Open(t, db.Config{URL: into})
		})
	})
}

// copier makes backups as an operator does. [photographed] is cheaper.
func copier(t *testing.T, url string) func() *db.DB {
	return func() *db.DB {
		to := filepath.Join(t.TempDir(), "copy.db")
		if err := db.Backup(context.Background(), url, to); err != nil {
			t.Error(err)
		}
		return dbtest.Open(t, db.Config{URL: "sqlite:" + to})
	}
}

// photographed copies a database as it is on disk, while nobody writes: what
// [db.Backup] makes of one is tested beside it, at a fifth of a test's time.
func photographed(t *testing.T, d *db.DB, url string) *db.DB {
	t.Helper()
	from, to := strings.TrimPrefix(url, "sqlite:"), filepath.Join(t.TempDir(), "copy.db")
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		err := tx.Exec("UPDATE restorations SET one = one") // the only writer is this one
		for _, part := range []string{"", "-wal"} {         // in this order: what is moved meanwhile stays in the log
			text, readErr := os.ReadFile(from + part)
			if readErr == nil {
				readErr = os.WriteFile(to+part, text, 0o600)
			}
			err = errors.Join(err, readErr)
		}
		return err
	}))
	return dbtest.Open(t, db.Config{URL: "sqlite:" + to})
}

// restore starts a node on a restored database, with its intake closed.
func restore(t *testing.T, d *db.DB, s setup) *node {
	t.Helper()
	n := newNode(t, d, s)
	must(t, n.Begin(t.Context(), country.Day{}))
	return n
}

// complete lets a node ask the authorities until the intake is open.
func complete(n *node) (stop func()) {
	n.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.Recovery.Run(ctx, true); err != nil {
			n.T.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	n.T.Cleanup(stop)
	select {
	case <-n.Intake.Opened():
	case <-time.After(patience):
		n.T.Fatalf("the intake stays closed\n%s", n.Log)
	}
	return stop
}

// learn lets a process find out whether the intake is open, as a start does.
func learn(t *testing.T, n *node) {
	t.Helper()
	_, err := n.Intake.Learn(t.Context())
	must(t, err)
}

// holdOf is what a supplier is held for; "" when it is not.
func holdOf(t *testing.T, n *node, supplier string) (reason fault.Code) {
	t.Helper()
	must(t, n.DB.Read(t.Context(), func(r db.Reader) error {
		h, _, err := hold.Of(r, client, supplier)
		reason = h.Reason
		return err
	}))
	return reason
}

// closedToSubmits asserts that a submission is told to come back.
func closedToSubmits(n *node, p paper) {
	n.T.Helper()
	_, err := n.Submit(context.Background(), caller(client), transaction.Invoice, p.Body(n.T))
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Unavailable || e.RetryAfter <= 0 || len(e.Faults) == 0 {
		n.T.Fatalf("a submit while the intake is closed: %v", err)
	}
}

// state is where the restoration stands with a supplier.
func restoredState(n *node, supplier string) string {
	n.T.Helper()
	return one[string](n.T, n.DB, "SELECT state FROM restored_suppliers WHERE supplier_id = $1", supplier)
}

// once asserts that an authority holds each number once.
func once(t *testing.T, numbers []string) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(numbers))
	if len(slices.Compact(sorted)) != len(numbers) {
		t.Errorf("the authority holds %v", numbers)
	}
}

// sold is a submission of the life that is lost.
type sold struct {
	kind transaction.Kind
	body paper
	op   string
	ids  [3]string // both of the authority's, and the code
}

func authorityIDs(r *result.Result) (ids [3]string) {
	for i, id := range []*string{r.AuthorityID1, r.AuthorityID2, r.QRCode} {
		if id != nil {
			ids[i] = *id
		}
	}
	return ids
}

// Hard case 15: what was accepted after the backup is adopted, never filed
// again, whether the backup knows the operation or the client submits it anew.
func TestHardCase15AnOldBackupIsCompletedByTheAuthority(t *testing.T) {
	t.Parallel()
	eachBackup(t, func(t *testing.T, d *db.DB, backup func() *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byNumber, "s1")
		life := []*sold{
			{kind: transaction.Invoice, body: invoice(byNumber, supplier, "t1")},
			{kind: transaction.Invoice, body: invoice(byNumber, supplier, "t2")},
			{kind: transaction.Invoice, body: invoice(byNumber, supplier, "t3")},
			{kind: transaction.Invoice, body: invoice(byNumber, supplier, "t4")},
			{kind: transaction.Adjustment, body: invoice(byNumber, supplier, "a1").Adjusts("t1", -100)},
			{kind: transaction.Credit, body: correction(byNumber, "t3", "cr1").With("transaction_number", nil)},
			{kind: transaction.Cancellation, body: correction(byNumber, "t4", "x1")},
		}
		file := func(s *sold) { s.op = n.Hand(s.kind, s.body) }
		file(life[0])
		n.Start().Succeeds(life[0].op)
		n.Stop()
		file(life[1])
		restored := backup() // knows t1 as SUCCESS, t2 as received, nothing else
		n.Start()
		for i, s := range life {
			if i > 1 {
				file(s)
			}
			s.ids = authorityIDs(n.Succeeds(s.op))
		}
		n.Stop()
		before := a.Registered(byNumber)

		m := restore(t, restored, a.Setup()).Start()
		closedToSubmits(m, life[2].body)
		m.Until("the lane of t2 was visited", func() bool {
			return one[string](t, restored, "SELECT coalesce(max(reason), '') FROM lanes") == "held"
		})
		same(t, "t2 while the intake is closed", m.Stage(life[1].op), string(filing.Received))
		same(t, "reading", m.Show(life[0].op).Status, filing.Success)
		m.Stop()

		next := newNode(t, restored, a.Setup()).Start() // a restart forgets the flag, the database does not
		learn(t, next)
		closedToSubmits(next, life[2].body)
		complete(next)
		same(t, "t2, which the backup knew", authorityIDs(next.Succeeds(life[1].op)), life[1].ids)
		for _, s := range life {
			op := next.Hand(s.kind, s.body)
			same(t, fmt.Sprint(s.body["transaction_id"], " ids"), authorityIDs(next.Succeeds(op)), s.ids)
		}
		if after := a.Registered(byNumber); !slices.Equal(after, before) {
			t.Errorf("the authority held %v and holds %v", before, after)
		}
		next.Succeeds(next.File(invoice(byNumber, supplier, "t5")))
		once(t, a.Registered(byNumber))
		same(t, "gaps that nobody adopted", one[int64](t, restored,
			"SELECT count(*) FROM adoptions WHERE operation_id IS NULL"), 0)
		same(t, "alerts of gaps", fmt.Sprint(next.Raised("restored_gaps")), "map["+client+"/"+supplier+":1]")
	})
}

// Content decides where the authority tells it; a gap is adopted once.
func TestHardCase15AnotherDocumentDoesNotAdoptAGap(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	d := dbtest.Open(t, db.Config{URL: url})
	n := newNode(t, d, a.Setup()).Start()
	supplier := n.Supplier(byNumber, "s1")
	n.Succeeds(n.File(invoice(byNumber, supplier, "t1")))
	desk, _ := a.Sims.Desk(byNumber)
	must(t, desk.Write(func(b *authority.Book) { // somebody else's, long before the backup
		b.Register(authority.Registration{Supplier: byNumber + "-s1", Number: "N-old", SHA256: "00", AuthorityID: "OLD",
			At: time.Now().Add(-3 * time.Hour), Note: `{"day":"2026-03-01","kind":"INVOICE"}`})
	}))
	restored := copier(t, url)()
	lost := authorityIDs(n.Succeeds(n.File(invoice(byNumber, supplier, "t2"))))
	n.Succeeds(n.File(invoice(byNumber, supplier, "t3"))) // a gap that stays open
	n.Stop()
	before := a.Registered(byNumber)

	m := restore(t, restored, a.Setup()).Start()
	complete(m)
	dearer := func(id string) paper { return invoice(byNumber, supplier, id).With("items", []any{item(1, 999)}) }
	m.Fails(m.File(dearer("other").With("transaction_number", "N-t2")), fault.AuthorityNumberUsed)
	m.Fails(m.File(invoice(byNumber, supplier, "old")), fault.AuthorityNumberUsed)
	m.Fails(m.File(invoice(byNumber, supplier, "late").With("transaction_number", "N-t2").With("transaction_date",
		"2026-05-01T12:00:00Z")), fault.AuthorityNumberUsed)
	same(t, "t2", authorityIDs(m.Succeeds(m.File(invoice(byNumber, supplier, "t2")))), lost)
	m.Fails(m.File(invoice(byNumber, supplier, "twin").With("transaction_number", "N-t2")), fault.AuthorityNumberUsed)
	if after := a.Registered(byNumber); !slices.Equal(after, before) {
		t.Errorf("the authority held %v and holds %v", before, after)
	}
}

// What the backup has as prepared may have been sent since: it is asked for.
func TestHardCase15WhatWasPreparedIsTakenForSent(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byKey, byChain} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t)
			url := dbtest.SQLiteURL(t)
			n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup())
			supplier := n.Supplier(code, "s1")
			var restored *db.DB
			n.When("prepared", func(string) { restored = copier(t, url)() })
			id := n.File(invoice(code, supplier, "t1"))
			want := authorityIDs(n.Start().Succeeds(id))
			n.Stop()

			m := restore(t, restored, a.Setup())
			same(t, "stage", m.Stage(id), string(filing.Sent))
			complete(m.Start())
			same(t, "ids", authorityIDs(m.Succeeds(id)), want)
			m.Succeeds(m.File(invoice(code, supplier, "t2")))
			once(t, a.Registered(code))
			same(t, "registrations", len(a.Registered(code)), 2)
			same(t, "open gaps", one[int64](t, restored, "SELECT count(*) FROM adoptions WHERE operation_id IS NULL"), 0)
		})
	}
}

// Hard case 10: a chain that went on without us is stopped until a person
// decides; everybody else goes on. It then goes on behind the authority's head.
func TestHardCase10ARestoredChainIsStoppedUntilAPersonDecides(t *testing.T) {
	t.Parallel()
	eachBackup(t, func(t *testing.T, d *db.DB, backup func() *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		chained, other := n.Supplier(byChain, "s1"), n.Supplier(byNumber, "s2")
		n.Succeeds(n.File(invoice(byChain, chained, "t1")))
		restored := backup()
		want := authorityIDs(n.Succeeds(n.File(invoice(byChain, chained, "t2"))))
		n.Succeeds(n.File(invoice(byChain, chained, "t3")))
		n.Stop()

		m := restore(t, restored, a.Setup()).Start()
		complete(m)
		same(t, "state", restoredState(m, chained), "chain")
		same(t, "alerts", fmt.Sprint(m.Raised("chain_mismatch")), "map["+client+"/"+chained+":1]")
		again, fresh := m.File(invoice(byChain, chained, "t2")), m.File(invoice(byChain, chained, "t4"))
		m.Succeeds(m.File(invoice(byNumber, other, "t1")))
		m.Until("the chain's lane was visited", func() bool {
			return one[int64](t, restored, "SELECT count(*) FROM lanes WHERE reason IN ('held', 'chain_stopped')") > 0
		})
		same(t, "what the authority holds", fmt.Sprint(a.Registered(byChain)), "[N-t1 N-t2 N-t3]")
		same(t, "t4", m.Show(fresh).Status, filing.Processing)
		life, err := m.Life(t.Context(), again)
		must(t, err)
		same(t, "why", life.Wait.Why, ledger.WhyChain)

		var noted recovery.Chain
		c, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: chained}, recovery.From{},
			func(_ *db.Tx, c recovery.Chain) error {
				noted = c
				return nil
			})
		must(t, err)
		same(t, "noted", noted, c)
		same(t, "positions", fmt.Sprint(c.Before.Position, c.After.Position, c.Anew), "1 3 0")
		same(t, "t2", authorityIDs(m.Succeeds(again)), want)
		m.Succeeds(fresh)
		m.Succeeds(m.File(invoice(byChain, chained, "t3")))
		same(t, "what the authority holds", fmt.Sprint(a.Registered(byChain)), "[N-t1 N-t2 N-t3 N-t4]")
		if _, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: chained}, recovery.From{},
			nil); fault.KindOf(err) != fault.Conflict {
			t.Errorf("resuming a chain that goes on: %v", err)
		}
		if err := m.Recovery.Release(t.Context(), client, chained, nil); fault.KindOf(err) != fault.Conflict {
			t.Errorf("releasing a chain that goes on: %v", err)
		}
		if _, err := m.ResumeChain(t.Context(), filing.Place{Scope: "c_two", SupplierID: chained}, recovery.From{},
			nil); fault.KindOf(err) != fault.NotFound {
			t.Errorf("resuming another client's chain: %v", err)
		}
	})
}

// A link that was prepared and is not the one the authority took gets a new place.
func TestHardCase10ALinkThatLeadsNowhereIsMadeAnew(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup()).Start()
	supplier := n.Supplier(byChain, "s1")
	n.Succeeds(n.File(invoice(byChain, supplier, "t1")))
	n.Stop()
	early := copier(t, url)()
	var late *db.DB
	blocked, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the node is stopped
	n.When("prepared", func(string) {
		late = copier(t, url)()
		close(blocked)
		<-release
	})
	id := n.File(invoice(byChain, supplier, "t2"))
	n.Start()
	<-blocked // t2 has position 2, and is never sent
	foreign := newNode(t, early, a.Setup()).Start()
	foreign.Succeeds(foreign.File(invoice(byChain, supplier, "t9"))) // takes position 2
	foreign.Stop()

	m := restore(t, late, a.Setup()).Start()
	complete(m)
	same(t, "state", restoredState(m, supplier), "chain")
	c, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier}, recovery.From{}, nil)
	must(t, err)
	same(t, "made anew", c.Anew, 1)
	m.Succeeds(id)
	same(t, "what the authority holds", fmt.Sprint(a.Registered(byChain)), "[N-t1 N-t9 N-t2]")
}

// An authority that does not answer holds up its own suppliers only, and only
// until it answers.
func TestARestoredSupplierIsHeldUntilItsAuthorityAnswers(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup()).Start()
	silent, other := n.Supplier(byNumber, "s1"), n.Supplier(byHash, "s2")
	restored := copier(t, url)()
	sale := invoice(byNumber, silent, "t1").With("transaction_date", time.Now().UTC().Format(time.RFC3339))
	want := authorityIDs(n.Succeeds(n.File(sale)))
	n.Stop()

	a.Script(byNumber, authority.Step{Outcome: authority.Unavailable, Times: 1_000_000, On: authority.OnQuery})
	m := restore(t, restored, a.Setup()).Start()
	complete(m)
	same(t, "state", restoredState(m, silent), "unasked")
	same(t, "alerts", fmt.Sprint(m.Raised("restored_unasked")), "map["+client+"/"+silent+":1]")
	id := m.File(sale)
	m.Succeeds(m.File(invoice(byHash, other, "t2")))
	same(t, "held", m.Show(id).Status, filing.Processing)
	same(t, "registrations", len(a.Registered(byNumber)), 1)
	a.Script(byNumber)
	same(t, "ids", authorityIDs(m.Succeeds(id)), want)
	same(t, "registrations", len(a.Registered(byNumber)), 1)
}

// listing is an office that can list, as a test wants it to.
type listing struct {
	*office
	list func(day country.Day) ([]country.Entry, error)
}

func (l *listing) Registered(_ context.Context, _ country.Supplier, day country.Day,
	_ country.Credentials) ([]country.Entry, error) {
	return l.list(day)
}

func (l *listing) Setup() setup {
	s := l.office.Setup()
	s.Packs[0].Connect = func(country.Endpoint) (country.Channel, error) { return l, nil }
	return s
}

// An authority without a list leaves the decision to a person.
func TestARestoredSupplierWithoutAListIsReleasedByAPerson(t *testing.T) {
	t.Parallel()
	none := func(country.Day) ([]country.Entry, error) {
		return nil, fmt.Errorf("by this provider: %w", country.ErrNoList)
	}
	for name, s := range map[string]setup{
		"no ability": newOffice(country.ByHash).Setup(), "no list": (&listing{newOffice(country.ByHash), none}).Setup(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, dbtest.SQLite(t), s)
			supplier := n.Supplier(officeCode, "s1")
			must(t, n.Begin(t.Context(), country.Day{}))
			complete(n.Start())
			same(t, "state", restoredState(n, supplier), "unlisted")
			same(t, "alerts", fmt.Sprint(n.Raised("restored_unasked")), "map["+client+"/"+supplier+":1]")
			id := n.File(invoice(officeCode, supplier, "t1"))
			n.Until("the lane was visited", func() bool {
				return one[int64](t, n.DB, "SELECT count(*) FROM lanes WHERE reason IN ('held', 'chain_stopped')") > 0
			})
			same(t, "held", n.Show(id).Status, filing.Processing)
			noted := false
			must(t, n.Recovery.Release(t.Context(), client, supplier, func(*db.Tx) error { noted = true; return nil }))
			same(t, "noted", noted, true)
			n.Succeeds(id)
		})
	}
}

// A crash in the middle asks on from the last day on record, and ends.
func TestARestorationGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	l := &listing{office: o}
	n := newNode(t, dbtest.SQLite(t), l.Setup())
	supplier := n.Supplier(officeCode, "s1")
	today := time.Now().UTC()
	day := func(back int) country.Day {
		at := today.AddDate(0, 0, -back)
		return country.Day{Year: at.Year(), Month: at.Month(), Day: at.Day()}
	}
	must(t, n.Begin(t.Context(), day(50)))
	var asked []string
	ctx, crash := context.WithCancel(t.Context())
	defer crash()
	l.list = func(on country.Day) ([]country.Entry, error) {
		asked = append(asked, on.String())
		if on == day(10) {
			crash()
			return nil, errLine
		}
		if on == day(15) {
			return []country.Entry{{Number: "N-lost", AuthorityID1: "A-lost", At: today}}, nil
		}
		return nil, nil
	}
	must(t, n.Recovery.Run(ctx, true))
	same(t, "first day", asked[0], day(50).String())
	same(t, "last day", asked[len(asked)-1], day(10).String())
	closedToSubmits(n, invoice(officeCode, supplier, "t1"))

	asked = nil
	next := newNode(t, n.DB, l.Setup())
	must(t, next.Begin(t.Context(), day(90))) // the flag again does not begin again
	l.list = func(on country.Day) ([]country.Entry, error) {
		asked = append(asked, on.String())
		return nil, nil
	}
	complete(next)
	same(t, "days after the crash", fmt.Sprintln(asked[0], asked[len(asked)-1], len(asked)),
		fmt.Sprintln(day(14), day(-1), 16))
	next.Start()
	r := next.Succeeds(next.File(invoice(officeCode, supplier, "lost").With("transaction_date",
		today.AddDate(0, 0, -15).Format(time.RFC3339))),
		fault.AuthorityIDUnavailable) // its code is lost
	same(t, "adopted", *r.AuthorityID1, "A-lost")
	same(t, "sent", o.Calls(), 0)
	if len(r.Attachments) != 0 {
		t.Errorf("attachments of what is not here: %+v", r.Attachments)
	}
}

// Where a list shows cancellations only at their originals, they are adopted by
// these. Without an id the result says so.
func TestACancellationThatIsSeenAtItsOriginalIsAdopted(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	l := &listing{office: o}
	n := newNode(t, dbtest.SQLite(t), l.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	n.Succeeds(n.File(invoice(officeCode, supplier, "t2")))
	n.Stop()
	l.list = func(on country.Day) ([]country.Entry, error) {
		if on.String() != "2026-03-01" {
			return nil, nil
		}
		at := time.Now().Add(-2 * time.Hour) // of the originals: before the backup
		return []country.Entry{
			{Number: "N-t1", AuthorityID1: "A-1", At: at, Cancelled: true}, {Number: "N-t2", AuthorityID1: "A-2", At: at},
			{Number: "N-t3", At: time.Now(), Cancelled: true},
		}, nil
	}
	m := restore(t, n.DB, l.Setup()).Start()
	complete(m)
	sent := o.Calls()
	m.Succeeds(m.Hand(transaction.Cancellation, correction(officeCode, "t1", "x1")), fault.AuthorityIDUnavailable)
	m.Succeeds(m.File(invoice(officeCode, supplier, "t3")), fault.AuthorityIDUnavailable)
	m.Succeeds(m.Hand(transaction.Cancellation, correction(officeCode, "t3", "x3")), fault.AuthorityIDUnavailable)
	same(t, "sent", o.Calls(), sent)
	m.Succeeds(m.Hand(transaction.Cancellation, correction(officeCode, "t2", "x2")))
	same(t, "sent", o.Calls(), sent+1)
	same(t, "open gaps", one[int64](t, m.DB, "SELECT count(*) FROM adoptions WHERE operation_id IS NULL"), 0)
	list, closed := []recovery.RestoredSupplier(nil), true
	must(t, m.DB.Read(t.Context(), func(r db.Reader) (err error) {
		list, closed, err = recovery.Restored(r)
		return err
	}))
	if closed || len(list) != 1 || list[0].Found != 3 || list[0].Adopted != 3 || list[0].State != "asked" {
		t.Errorf("%v %+v", closed, list)
	}
}

// A chain whose authority cannot say its head is judged by its list, and its
// new head is a person's to give.
func TestAChainWithoutAHeadIsJudgedByItsList(t *testing.T) {
	t.Parallel()
	for _, gap := range []bool{false, true} {
		t.Run(fmt.Sprint("gap ", gap), func(t *testing.T) {
			t.Parallel()
			l := &listing{office: newOffice(country.ByChain)}
			n := newNode(t, dbtest.SQLite(t), l.Setup()).Start()
			supplier := n.Supplier(officeCode, "s1")
			n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
			n.Stop()
			l.list = func(on country.Day) (list []country.Entry, err error) {
				if gap && on.String() == "2026-03-01" {
					list = append(list, country.Entry{Number: "N-t2", AuthorityID1: "A-2", At: time.Now()})
				}
				return list, nil
			}
			m := restore(t, n.DB, l.Setup()).Start()
			complete(m)
			if !gap {
				same(t, "state", restoredState(m, supplier), "asked")
				m.Succeeds(m.File(invoice(officeCode, supplier, "t3")))
				return
			}
			same(t, "state", restoredState(m, supplier), "chain")
			if _, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier}, recovery.From{},
				nil); fault.KindOf(err) != fault.Invalid {
				t.Errorf("without a head: %v", err)
			}
			c, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier},
				recovery.From{Head: country.Link{Position: 2, Hash: "abc"}}, nil)
			must(t, err)
			same(t, "after", c.After.Position, 2)
			m.Succeeds(m.File(invoice(officeCode, supplier, "t3")))
			same(t, "head", one[int64](t, m.DB, "SELECT position FROM chains"), 3)
		})
	}
}

// The first day asked for follows from what the backup knows: its last
// acceptance, how late documents came, and what has not ended.
func TestTheFirstDayAskedForFollowsFromTheBackup(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, dbtest.SQLite(t), o.Setup()).Start()
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	sale := func(supplier, id string, days int) paper {
		return invoice(officeCode, supplier, id).With("transaction_date",
			time.Now().UTC().AddDate(0, 0, days).Format(time.RFC3339))
	}
	prompt, late, idle, open := n.Supplier(officeCode, "prompt"), n.Supplier(officeCode, "late"),
		n.Supplier(officeCode, "idle"), n.Supplier(officeCode, "open")
	n.Succeeds(n.File(sale(prompt, "t1", 0)))
	n.Succeeds(n.File(sale(late, "t2", -20)))
	n.Stop()
	n.File(sale(open, "t3", -20))
	// it came in time and has waited since
	execSQL(t, n.DB, "UPDATE operations SET accepted_at = dated_at WHERE supplier_id = $1", open)
	must(t, n.Begin(t.Context(), country.Day{}))
	first := func(supplier string) string {
		return one[string](t, n.DB, "SELECT first_day FROM restored_suppliers WHERE supplier_id = $1", supplier)
	}
	same(t, "prompt", first(prompt), day(-3))
	same(t, "late", first(late), day(-23))
	same(t, "without a sale", first(idle), day(-23)) // as late as the client's others
	same(t, "with an open sale", first(open), day(-20))

	other := newNode(t, dbtest.SQLite(t), o.Setup())
	since := other.Supplier(officeCode, "s1")
	must(t, other.Begin(t.Context(), country.Day{Year: 2026, Month: time.January, Day: 2}))
	same(t, "as the operator said", one[string](t, other.DB,
		"SELECT first_day FROM restored_suppliers WHERE supplier_id = $1", since), "2026-01-02")
}

// A node that does not work waits for one that does.
func TestANodeWithoutWorkersOpensWhenAnotherHasAsked(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	d := dbtest.SQLite(t)
	worker := newNode(t, d, a.Setup())
	worker.Supplier(byNumber, "s1")
	must(t, worker.Begin(t.Context(), country.Day{}))
	reader := newNode(t, d, a.Setup())
	learn(t, reader)
	done := make(chan error, 1)
	go func() { done <- reader.Recovery.Run(t.Context(), false) }()
	closedToSubmits(reader, invoice(byNumber, "x", "t1"))
	stop := complete(worker)
	<-reader.Intake.Opened()
	must(t, <-done)
	stop()
	execSQL(t, d, "UPDATE restorations SET started_at = started_at - $1", (91 * 24 * time.Hour).Microseconds())
	must(t, worker.Recovery.Run(t.Context(), true)) // long ago: nothing is left, nothing can come
}

// A company that was onboarded after the backup is lost with its sales. It
// comes back under a new id, and its authority is asked before it files.
func TestHardCase15ACompanyOnboardedAgainAdoptsItsSales(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup()).Start()
	old := n.Supplier(byKey, "old")
	n.Succeeds(n.File(invoice(byKey, old, "t1")))
	restored := copier(t, url)()
	young := n.Supplier(byKey, "young")
	want := authorityIDs(n.Succeeds(n.File(invoice(byKey, young, "t2"))))
	n.Stop()

	m := restore(t, restored, a.Setup()).Start()
	complete(m)
	again := m.Supplier(byKey, "young")
	if again == young {
		t.Fatal("the company was not lost")
	}
	same(t, "ids", authorityIDs(m.Succeeds(m.File(invoice(byKey, again, "t2")))), want)
	same(t, "what the authority holds", fmt.Sprint(a.Registered(byKey)), "[N-t1 N-t2]")
	same(t, "state", restoredState(m, again), "asked")
	m.Succeeds(m.File(invoice(byKey, again, "t3")))
}

// Hard case 15 at several points of a life, for several ways in which an
// authority recognises what it has: K and N would register a second filing without a word.
func TestHardCase15WhereverTheBackupWasTaken(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup())
	date := time.Now().UTC().Add(-24 * time.Hour).Format(time.RFC3339)
	var life []*sold
	for _, class := range []country.Class{country.ByNumber, country.ByKey, country.ByNothing} {
		supplier := n.Supplier(byNumber, string(class), func(c *onboarding.NewCompany) {
			c.Settings = country.Settings{"class": string(class)}
		})
		id := func(what string) string { return string(class) + what }
		life = append(life,
			&sold{kind: transaction.Invoice, body: invoice(byNumber, supplier, id("sale")).With("transaction_date", date)},
			&sold{kind: transaction.Adjustment, body: invoice(byNumber, supplier, id("adjustment")).Adjusts(id("sale"),
				-10).With("transaction_date", date)},
			&sold{kind: transaction.Invoice, body: invoice(byNumber, supplier, id("second")).With("transaction_date", date)},
			&sold{kind: transaction.Credit, body: correction(byNumber, id("second"), id("credit")).With("transaction_number",
				nil).With("transaction_date", date)},
		)
	}
	backups := []*db.DB{copier(t, url)()}
	n.Start()
	for i, s := range life {
		s.op = n.Hand(s.kind, s.body)
		if i == 1 || i == 7 { // not of class N: nobody could say what became of what was on its way
			backups = append(backups, copier(t, url)())
		}
		s.ids = authorityIDs(n.Succeeds(s.op))
	}
	backups = append(backups, copier(t, url)())
	n.Stop()
	before := a.Registered(byNumber)
	for i, restored := range backups {
		m := restore(t, restored, a.Setup()).Start()
		stop := complete(m)
		for _, s := range life {
			s.op = m.Hand(s.kind, s.body)
		}
		for _, s := range life {
			same(t, fmt.Sprint("backup ", i, ": ", s.body["transaction_id"]), authorityIDs(m.Succeeds(s.op)), s.ids)
		}
		stop()
		m.Stop()
		if after := a.Registered(byNumber); !slices.Equal(after, before) {
			t.Fatalf("backup %d: the authority held %v and holds %v", i, before, after)
		}
	}
}

// Where the authority knows documents under other numbers than the client's,
// the filing's number is what counts, here and there.
func TestAGapIsFoundUnderTheAuthoritysOwnNumber(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		in.Transaction.Number = "S/" + in.Transaction.Number
		return o.Draft(in)
	}
	l := &listing{office: o}
	n := newNode(t, dbtest.SQLite(t), l.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	n.Stop()
	l.list = func(on country.Day) (list []country.Entry, err error) {
		if on.String() == "2026-03-01" {
			list = []country.Entry{{Number: "S/N-t1", AuthorityID1: "A-1", At: time.Now()},
				{Number: "S/N-t2", AuthorityID1: "A-2", QRCode: "code", At: time.Now()}}
		}
		return list, nil
	}
	m := restore(t, n.DB, l.Setup()).Start()
	complete(m)
	same(t, "gaps", one[int64](t, m.DB, "SELECT count(*) FROM adoptions"), 1)
	same(t, "ids", authorityIDs(m.Succeeds(m.File(invoice(officeCode, supplier, "t2")))), [3]string{"A-2", "", "code"})
	same(t, "sent", o.Calls(), 1)
}

// What the authority holds is entered in its original's book, whatever today's
// rules would say.
func TestACorrectionThatIsRegisteredIsNotRefusedAfterwards(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup()).Start()
	supplier := n.Supplier(byNumber, "s1")
	n.Succeeds(n.File(invoice(byNumber, supplier, "t1")))
	restored := copier(t, url)()
	want := authorityIDs(n.Succeeds(n.Hand(transaction.Credit, correction(byNumber, "t1", "cr1"))))
	n.Stop()

	m := restore(t, restored, a.Setup()).Start()
	complete(m)
	m.Succeeds(m.Hand(transaction.Credit, correction(byNumber, "t1", "other"))) // nobody here could know better
	same(t, "ids", authorityIDs(m.Succeeds(m.Hand(transaction.Credit, correction(byNumber, "t1", "cr1")))), want)
	m.Fails(m.Hand(transaction.Credit, correction(byNumber, "t1", "third")), fault.ReferenceAlreadyCorrected)
	once(t, a.Registered(byNumber))
}

// An authority that shows late what it took is not asked before it can know: the
// supplier is held meanwhile, and the intake does not wait for it.
func TestAListThatComesLateIsNotBelievedEarly(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.VisibleAfter = time.Hour
	l := &listing{office: o}
	var asked atomic.Int64
	l.list = func(country.Day) ([]country.Entry, error) {
		asked.Add(1)
		return nil, nil
	}
	n := newNode(t, dbtest.SQLite(t), l.Setup())
	supplier := n.Supplier(officeCode, "s1")
	must(t, n.Begin(t.Context(), country.Day{}))
	stop := complete(n)
	n.Start()
	same(t, "held", holdOf(t, n, supplier), fault.Held)
	id := n.File(invoice(officeCode, supplier, "t1"))
	same(t, "asked within the hour", asked.Load(), 0)
	must(t, n.DB.Write(t.Context(), func(tx *db.Tx) error { // the hour is over
		tx.Wake("restored_suppliers")
		return errors.Join(tx.Exec("UPDATE restorations SET started_at = started_at - $1", time.Hour.Microseconds()),
			tx.Exec("UPDATE restored_suppliers SET due_at = $1", db.Micros(tx.Now())))
	}))
	n.Succeeds(id)
	stop()
	if asked.Load() == 0 {
		t.Error("it was never asked")
	}
}

// An authority that grants no more questions is asked when it does: the supplier is
// held meanwhile with the reason, and what a person compares says the same.
func TestARestoredSupplierWaitsForWhatIsGranted(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	l := &listing{office: o}
	var granted atomic.Bool
	l.list = func(country.Day) ([]country.Entry, error) {
		if granted.Load() {
			return nil, nil
		}
		return nil, &country.Exhausted{Quota: "lists", Until: time.Now().Add(3 * time.Hour)}
	}
	n := newNode(t, dbtest.SQLite(t), l.Setup())
	supplier := n.Supplier(officeCode, "s1")
	must(t, n.Begin(t.Context(), country.Day{}))
	stop := complete(n)
	n.Start()
	same(t, "held", holdOf(t, n, supplier), fault.Held)
	id := n.File(invoice(officeCode, supplier, "t1"))
	same(t, "failures", one[int64](t, n.DB, "SELECT max(failures) FROM restored_suppliers"), 0)
	if trouble := one[string](t, n.DB, "SELECT max(trouble) FROM restored_suppliers"); !strings.Contains(trouble, "used up until") {
		t.Errorf("the trouble is %q", trouble)
	}
	if due := one[int64](t, n.DB, "SELECT max(due_at) FROM restored_suppliers"); due < db.Micros(n.DB.Now().Add(2*time.Hour)) {
		t.Error("it is asked again before more is granted")
	}
	_, err := n.Reconcile(t.Context(), filing.Place{Scope: client, Code: officeCode, SupplierID: supplier}, country.Day{Year: 2026, Month: time.March, Day: 4})
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "used up until") {
		t.Errorf("comparing: %v", err)
	}
	granted.Store(true)
	must(t, n.DB.Write(t.Context(), func(tx *db.Tx) error {
		tx.Wake("restored_suppliers")
		return tx.Exec("UPDATE restored_suppliers SET due_at = $1", db.Micros(tx.Now()))
	}))
	n.Succeeds(id)
	stop()
}
