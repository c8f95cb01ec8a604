package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/recovery"
	"tributary/internal/transaction"
)

// Sales that wait for a callback, as rows of the matrix: one that the backup knows
// as waiting, and one that is lost with it. The decision came to the database that
// is gone; where the authority repeats it, it may find nobody who knows the sale.
func TestTheMatrixOfRestoresOfSalesThatWaitForACallback(t *testing.T) {
	t.Parallel()
	for _, class := range []country.Class{country.ByNumber, country.ByHash, country.ByNothing} {
		for _, known := range []bool{true, false} {
			for _, listed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/known=%v/listed=%v", class, known, listed), func(t *testing.T) {
					t.Parallel()
					restoreWaiting(t, class, known, listed)
				})
			}
		}
	}
}

// calls is an office that takes what it is sent and says so by a callback.
func calls(class country.Class, listed bool) (*listing, setup) {
	l := &listing{office: newOffice(class)}
	l.office.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		f, err := o.Draft(in)
		f.DedupeKey = "key-" + f.Number
		return f, err
	}
	l.office.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		o.Take(f)
		return country.Receipt{Outcome: country.Pending, Handle: f.DedupeKey}, nil
	}
	l.list = func(on country.Day) (list []country.Entry, err error) {
		if !listed {
			return nil, country.ErrNoList
		}
		for _, number := range l.office.Registered() {
			if held := l.office.Held(country.Filing{Number: number}); on.String() == "2026-03-01" {
				list = append(list, country.Entry{Number: number, AuthorityID1: held.AuthorityID1, SHA256: held.SHA256,
					At: held.At})
			}
		}
		return list, nil
	}
	s := l.Setup()
	s.Packs[0].Callbacks = &country.Callbacks{}
	return l, s
}

// tell is the authority's callback about a number; "" where nobody knows it.
func tell(t *testing.T, n *node, l *listing, number string) (operation string) {
	t.Helper()
	m := country.Message{Key: "call-" + number, Handle: "key-" + number,
		Receipt: l.office.Held(country.Filing{Number: number})}
	must(t, n.DB.Write(context.Background(), func(tx *db.Tx) (err error) {
		operation, err = n.HandleMessage(tx, country.Environment{Code: officeCode}, country.Mailbox{}, m)
		return err
	}))
	return operation
}

func restoreWaiting(t *testing.T, class country.Class, known, listed bool) {
	l, s := calls(class, listed)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(officeCode, "s1")
	file := func(n *node) string { return n.File(invoice(officeCode, supplier, "a")) }
	waits := func(id string) {
		n.Until("it waits", func() bool { return n.Stage(id) == string(filing.Pending) })
	}
	other := n.File(invoice(officeCode, supplier, "before"))
	waits(other)
	tell(t, n, l, "N-before")
	n.Succeeds(other)
	var restored *db.DB
	if known {
		waits(file(n))
		restored = photographed(t, n.DB, url)
	} else {
		restored = photographed(t, n.DB, url)
		waits(file(n))
	}
	n.Stop()
	before := l.office.Registered()

	m := restore(t, restored, s).Start()
	complete(m)
	same(t, "who hears the callback", tell(t, m, l, "N-a") != "", known)
	id := file(m)
	if !listed {
		same(t, "state", restoredState(m, supplier), "unlisted")
		m.Until("the lane rests", func() bool {
			return one[int64](t, restored, "SELECT count(*) FROM lanes WHERE reason = 'held'") > 0
		})
		same(t, "what the authority holds", fmt.Sprint(l.office.Registered()), fmt.Sprint(before))
		if !known {
			return // a person looks, and adopts or releases
		}
		must(t, m.Recovery.Release(t.Context(), client, supplier, nil))
	}
	same(t, "status", m.Settled(id).Status, filing.Success)
	same(t, "what the authority holds", fmt.Sprint(l.office.Registered()), fmt.Sprint(before))
}

// Payments have numbers of our own, which are lost with the backup: they are known
// again by the sale, the day and what was paid. Two of one day stay two.
func TestTheMatrixOfRestoresOfPayments(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{true, false} {
		t.Run(fmt.Sprintf("numbered=%v", numbered), func(t *testing.T) {
			t.Parallel()
			restorePayments(t, examplesOf(t, "MX"), numbered)
		})
	}
}

func restorePayments(t *testing.T, x examples, numbered bool) {
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier("MX", "s1", x.company)
	n.Succeeds(n.File(x.sale(t, supplier, "sale", "M-sale")))
	pays := func(n *node, id string, amount int64) string {
		p := paper{"country_code": "MX", "transaction_date": x.day.Format(time.RFC3339), "transaction_id": id,
			"reference_transaction_id": "sale", "payments": []any{map[string]any{"type": "TRANSFER", "amount": amount}}}
		if numbered {
			p["transaction_number"] = "P-" + id
		}
		return n.Hand(transaction.PaymentReport, p)
	}
	restored := photographed(t, n.DB, url)
	lost := map[string]string{}
	for id, amount := range map[string]int64{"p1": 5000, "p2": 7000} {
		r := n.Settled(pays(n, id, amount))
		same(t, id, r.Status, filing.Success)
		lost[id] = *r.AuthorityID1
	}
	n.Stop()
	m := restore(t, restored, s).Start()
	complete(m)
	same(t, "a new one", m.Settled(pays(m, "p3", 900)).Status, filing.Success)
	for id, amount := range map[string]int64{"p1": 5000, "p2": 7000} {
		r := m.Settled(pays(m, id, amount))
		same(t, id, r.Status, filing.Success)
		same(t, "the registration of "+id, *r.AuthorityID1, lost[id])
	}
	once(t, a.Registered("MX"))
	same(t, "documents", len(a.Registered("MX")), 4)
}

// ear is the address at which an authority calls: the same before a restore and
// after it. It hands over what it hears as the inbox does.
type ear struct {
	pack  country.Pack
	url   string
	node  atomic.Pointer[node]
	heard chan struct{} // something was
}

func listens(t *testing.T, pack country.Pack) *ear {
	t.Helper()
	e := &ear{pack: pack, heard: make(chan struct{}, 1)}
	if pack.Callbacks == nil {
		return e
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		n := e.node.Load()
		at, absent := n.Atlas.Endpoint(pack.Code, false)
		if err != nil || absent != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		list, reply, err := pack.Callbacks.Read(at, country.Call{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(),
			Header: r.Header.Clone(), Body: body, At: time.Now()})
		for _, m := range list {
			err = errors.Join(err, n.DB.Write(r.Context(), func(tx *db.Tx) error {
				_, err := n.HandleMessage(tx, country.Environment{Code: pack.Code}, country.Mailbox{}, m)
				return err
			}))
		}
		if err != nil {
			reply.Status = http.StatusServiceUnavailable // it calls again
		}
		w.WriteHeader(reply.Status)
		select {
		case e.heard <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// hears lets a node hear what comes from now on.
func (e *ear) hears(n *node) *node {
	if e.url != "" {
		n.Atlas.Configure(map[country.Environment]country.Setup{{Code: e.pack.Code}: {Version: 1, Callback: e.url}})
		e.node.Store(n)
	}
	return n
}

// SdI decides after the restore: on a file that the backup knows as waiting, or on
// one that is lost. Its word comes once, and its file is never handed over again.
func TestTheMatrixOfRestoresWhileSdIDecides(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			t.Parallel()
			restoreUndecided(t, examplesOf(t, "IT"), known)
		})
	}
}

func restoreUndecided(t *testing.T, x examples, known bool) {
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	ear := listens(t, x.pack)
	n := ear.hears(newNode(t, dbtest.Open(t, db.Config{URL: url}), s)).Start()
	supplier := n.Supplier("IT", "s1", x.company)
	n.Succeeds(n.File(x.sale(t, supplier, "a", "M-1a")))
	a.Script("IT", authority.Step{Outcome: authority.Suspend, Times: 1_000_000})
	file := func(n *node) string { return n.File(x.sale(t, supplier, "b", "M-1b")) }
	waits := func() {
		id := file(n)
		n.Until("it waits", func() bool { return n.Stage(id) == string(filing.Pending) })
	}
	var restored *db.DB
	if known {
		waits()
		restored = photographed(t, n.DB, url)
	} else {
		restored = photographed(t, n.DB, url)
		waits()
	}
	n.Stop()
	m := ear.hears(restore(t, restored, s)).Start()
	complete(m)
	same(t, "state", restoredState(m, supplier), "unlisted")
	a.Script("IT") // it decides now
	for len(a.Registered("IT")) < 2 {
		select {
		case <-ear.heard:
		case <-time.After(patience):
			t.Fatal("SdI never decides")
		}
	}
	id := file(m)
	if !known {
		must(t, m.Decide(t.Context(), id, recovery.Word{Adopt: true, Number: "M-1b", ID: "A-7"}, nil))
	}
	must(t, m.Recovery.Release(t.Context(), client, supplier, nil))
	m.Ends(id, filing.Success, codesOf(m.Settled(id))...)
	same(t, "what SdI holds", fmt.Sprint(a.Registered("IT")), "[M-1a M-1b]")
}
