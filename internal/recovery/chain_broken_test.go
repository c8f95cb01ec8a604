package recovery_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/recovery"
	"tributary/internal/transaction"
)

// intrude lets somebody else add a link to the chain of a supplier.
func intrude(a *authorities, tax, number string) {
	a.T.Helper()
	desk, _ := a.Sims.Desk(byChain)
	must(a.T, desk.Write(func(b *authority.Book) {
		var position int64
		var hash string
		last, _ := b.Get("chain/" + tax)
		_, _ = fmt.Sscanf(last, "%d %s", &position, &hash) // nothing there is position 0
		hash = strings.Repeat("ab", 32)
		b.Register(authority.Registration{Supplier: tax, Number: number, SHA256: hash, AuthorityID: "OTHER-" + number})
		b.Put("chain/"+tax, fmt.Sprintf("%d %s", position+1, hash))
	}))
}

// Hard case 10: a link that the authority refuses because it holds another
// last one ends nothing. The chain stops, others go on, and it goes on behind
// the authority's head when a person says so.
func TestHardCase10ARefusedLinkStopsTheChainUntilAPersonDecides(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		supplier, other := n.Supplier(byChain, "s1"), n.Supplier(byChain, "s2")
		n.Succeeds(n.File(invoice(byChain, supplier, "t1")))
		n.Stop()
		intrude(a, byChain+"-s1", "N-foreign")
		ids := []string{
			n.File(invoice(byChain, supplier, "t2")), n.File(invoice(byChain, supplier, "t3")),
			n.Hand(transaction.Cancellation, correction(byChain, "t1", "c1")),
		}
		n.Start()
		n.Until("the chain is stopped", func() bool { return len(n.Raised("chain_mismatch")) > 0 })
		same(t, "state", holdOf(t, n, supplier), fault.ChainStopped)
		late := n.File(invoice(byChain, supplier, "t4"))
		n.Succeeds(n.File(invoice(byChain, other, "t1-other")))
		n.Stop()

		m := newNode(t, d, a.Setup()).Start() // a restart changes nothing
		visits := 0
		m.Until("the lane was visited again", func() bool { visits++; return visits > 3 })
		for _, id := range append(slices.Clone(ids), late) {
			same(t, "status", m.Show(id).Status, filing.Processing)
			same(t, "events", m.Events(id), 0)
		}
		same(t, "what the authority holds", fmt.Sprint(a.Registered(byChain)), "[N-t1 N-foreign N-t1-other]")
		same(t, "alerts", fmt.Sprint(m.Raised("chain_mismatch")), "map["+client+"/"+supplier+":1]")
		life, err := m.Life(t.Context(), ids[0])
		must(t, err)
		same(t, "why", fmt.Sprint(life.Wait.Why, life.Wait.CanRetry), fmt.Sprint(ledger.WhyChain, false))
		var list []recovery.RestoredSupplier
		closed := true
		must(t, d.Read(t.Context(), func(r db.Reader) (err error) { list, closed, err = recovery.Restored(r); return err }))
		if closed || len(list) != 1 || list[0].SupplierID != supplier || list[0].State != "chain" ||
			!strings.Contains(list[0].Trouble, ids[0]) {
			t.Errorf("%v %+v", closed, list)
		}
		if err := m.Recovery.Release(t.Context(), client, supplier, nil); fault.KindOf(err) != fault.Conflict {
			t.Errorf("releasing a stopped chain: %v", err)
		}

		c, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier}, recovery.From{}, nil)
		must(t, err)
		same(t, "head", c.After.Position, 2)
		same(t, "made anew", int64(c.Anew), c.Before.Position-1) // the correction may have come too late to be refused
		for _, id := range append(ids, late) {
			m.Succeeds(id)
			same(t, "events", m.Events(id), 1)
		}
		// in the order of acceptance
		same(t, "what the authority holds", fmt.Sprint(a.Registered(byChain)),
			"[N-t1 N-foreign N-t1-other N-t2 N-t3 N-c1 N-t4]")
		same(t, "alerts", fmt.Sprint(m.Raised("chain_mismatch")), "map["+client+"/"+supplier+":1]")
	})
}

// A number that another document holds fails its own transaction, and the
// authority does not count its link. Those that hang on it are made anew.
func TestHardCase10LinksBehindOneThatWasNotCountedAreMadeAnew(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for before := range 2 { // links that the authority holds already
			a := newAuthorities(t)
			n := newNode(t, d, a.Setup())
			supplier := n.Supplier(byChain, fmt.Sprint("s", before))
			name := func(id string) string { return fmt.Sprint(id, "-", before) }
			if before > 0 {
				n.Start().Succeeds(n.File(invoice(byChain, supplier, name("t1"))))
				n.Stop()
			}
			a.Script(byChain, authority.Step{Outcome: authority.Duplicate})
			used := n.File(invoice(byChain, supplier, name("used")))
			ids := []string{n.File(invoice(byChain, supplier, name("t2"))), n.File(invoice(byChain, supplier, name("t3")))}
			if before > 0 {
				ids = append(ids, n.Hand(transaction.Cancellation, correction(byChain, name("t1"), name("c1"))))
			}
			n.Start()
			n.Fails(used, fault.AuthorityNumberUsed)
			for _, id := range ids {
				n.Succeeds(id)
				same(t, "events", n.Events(id), 1)
			}
			n.Stop()
			same(t, "stopped chains", len(n.Raised("chain_mismatch")), 0)
			once(t, a.Registered(byChain))
			same(t, "registrations", len(a.Registered(byChain)), before+1+len(ids))
			same(t, "head", one[int64](t, d, "SELECT position FROM chains WHERE lane LIKE $1", "%|"+supplier),
				int64(before+len(ids)))
		}
	})
}

// keeper is an office that says where a chain stands.
type keeper struct {
	*office
	head func() (country.Link, bool, error)
}

func (k *keeper) Head(context.Context, country.Supplier, country.Credentials) (country.Link, bool, error) {
	return k.head()
}

func (k *keeper) Setup() setup {
	s := k.office.Setup()
	s.Packs[0].Connect = func(country.Endpoint) (country.Channel, error) { return k, nil }
	return s
}

func refusedLink() country.Receipt {
	return country.Receipt{Outcome: country.Rejected, ChainBroken: true}
}

// Only a head that explains the refusal lets a chain go on by itself.
func TestHardCase10TheAuthoritysHeadDecidesAboutARefusedLink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		head    func(links map[string]country.Link, asked int) (country.Link, bool, error)
		stopped bool
	}{
		{"somebody else's", func(map[string]country.Link, int) (country.Link, bool, error) {
			return country.Link{Position: 2, Hash: "another"}, true, nil
		}, true},
		{"ours at another position", func(links map[string]country.Link, _ int) (country.Link, bool, error) {
			return country.Link{Position: 1, Hash: links["N-t2"].Hash}, true, nil
		}, true},
		{"the one before the refused link", func(links map[string]country.Link, _ int) (country.Link, bool, error) {
			return links["N-t2"], true, nil
		}, true},
		{"one before a link that was confirmed", func(links map[string]country.Link, _ int) (country.Link, bool, error) {
			return links["N-t1"], true, nil
		}, true},
		{"none, and links were confirmed", func(map[string]country.Link, int) (country.Link, bool, error) {
			return country.Link{}, false, nil
		}, true},
		{"the refused link itself", func(links map[string]country.Link, _ int) (country.Link, bool, error) {
			return links["N-t3"], true, nil
		}, false},
		{"the refused link itself, at the second question",
			func(links map[string]country.Link, asked int) (country.Link, bool, error) {
				if asked == 1 {
					return country.Link{}, false, errLine
				}
				return links["N-t3"], true, nil
			}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			links, asked := map[string]country.Link{}, 0
			k := &keeper{office: newOffice(country.ByChain)}
			k.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
				mu.Lock()
				links[f.Number] = f.Link
				mu.Unlock()
				if f.Number != "N-t3" {
					return o.Take(f), nil
				}
				if !c.stopped {
					o.Take(f) // it holds it, and says so only when it is asked
				}
				return refusedLink(), nil
			}
			k.head = func() (country.Link, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return c.head(links, asked)
			}
			n := newNode(t, dbtest.SQLite(t), k.Setup()).Start()
			supplier := n.Supplier(officeCode, "s1")
			n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
			n.Succeeds(n.File(invoice(officeCode, supplier, "t2")))
			id := n.File(invoice(officeCode, supplier, "t3"))
			if !c.stopped {
				n.Succeeds(id)
				n.Succeeds(n.File(invoice(officeCode, supplier, "t4")))
				same(t, "stopped chains", len(n.Raised("chain_mismatch")), 0)
				return
			}
			n.Until("the chain is stopped", func() bool { return len(n.Raised("chain_mismatch")) > 0 })
			same(t, "status", n.Show(id).Status, filing.Processing)
			same(t, "registered", fmt.Sprint(k.Registered()), "[N-t1 N-t2]")
		})
	}
}

// A link before the refused one is still on its way: the same bytes go again.
func TestHardCase10ALinkRefusedForOneThatIsOnItsWayKeepsItsBytes(t *testing.T) {
	t.Parallel()
	k := &keeper{office: newOffice(country.ByChain)}
	var mu sync.Mutex
	var first country.Link
	tries := 0
	k.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case f.Number == "N-t1":
			first = f.Link
		case f.Number == "N-t2" && tries == 0:
			tries++
			return country.Receipt{Outcome: country.NotTaken}, nil
		case f.Number == "N-t3" && !slices.Contains(o.Registered(), "N-t2"):
			return refusedLink(), nil
		}
		return o.Take(f), nil
	}
	k.head = func() (country.Link, bool, error) { mu.Lock(); defer mu.Unlock(); return first, true, nil }
	n := newNode(t, dbtest.SQLite(t), k.Setup())
	supplier := n.Supplier(officeCode, "s1")
	var ids []string
	for _, id := range []string{"t1", "t2", "t3"} {
		ids = append(ids, n.File(invoice(officeCode, supplier, id)))
	}
	n.Start()
	for _, id := range ids {
		n.Succeeds(id)
	}
	n.Stop()
	same(t, "prepared", k.Prepared(), 3)
	same(t, "stopped chains", len(n.Raised("chain_mismatch")), 0)
}

// An authority that can say nothing about its chain leaves the head to a
// person; what it refused, and what was never sent, gets new links.
func TestHardCase10AnAuthorityWithoutAHeadStopsTheChain(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	o.Habits.Batch = 1
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if f.Link.Position < 5 && f.Number != "N-t1" {
			return refusedLink(), nil
		}
		return o.Take(f), nil
	}
	n := newNode(t, dbtest.SQLite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	second, third := n.File(invoice(officeCode, supplier, "t2")), n.File(invoice(officeCode, supplier, "t3"))
	n.Until("the chain is stopped", func() bool { return len(n.Raised("chain_mismatch")) > 0 })
	if _, err := n.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier}, recovery.From{},
		nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a head: %v", err)
	}
	_, err := n.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier},
		recovery.From{Head: country.Link{Position: 4, Hash: "abc"}}, nil)
	must(t, err)
	n.Succeeds(second)
	n.Succeeds(third)
	same(t, "registered", fmt.Sprint(o.Registered()), "[N-t1 N-t2 N-t3]")
	same(t, "head", one[int64](t, n.DB, "SELECT position FROM chains"), 6)
}

// A link that is taken with a remark is registered: its chain goes on, and
// somebody is told once.
func TestHardCase10ALinkTakenWithARemarkIsASuccess(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		r := o.Take(f)
		r.ChainBroken = true
		return r, nil
	}
	n := newNode(t, dbtest.SQLite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	n.Succeeds(n.File(invoice(officeCode, supplier, "t2")))
	same(t, "alerts", fmt.Sprint(n.Raised("chain_remarked")), "map["+client+"/"+supplier+":1]")
	same(t, "stopped chains", len(n.Raised("chain_mismatch")), 0)
}

// A refused document keeps its place in the chain. When the answer got lost,
// asking again finds a chain that has gone on by the very link: that ends the
// operation, and stops nothing.
func TestHardCase10ARefusalThatGotLostEndsItsOwnTransactionOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byChain, "s1")
		a.Script(byChain, authority.Step{Outcome: authority.DropAnswer})
		ids := []string{
			n.File(invoice(byChain, supplier, "t1")),
			n.File(invoice(byChain, supplier, "t2").With("transaction_number", "N-t2-REJECT")),
			n.File(invoice(byChain, supplier, "t3").With("transaction_number", "N-t3-REJECT")),
		}
		n.Start()
		n.Succeeds(ids[0])
		n.Fails(ids[1], fault.AuthorityRejected)
		n.Fails(ids[2], fault.AuthorityRejected)
		n.Succeeds(n.File(invoice(byChain, supplier, "t4")))
		same(t, "registered", fmt.Sprint(a.Registered(byChain)), "[N-t1 N-t4]")
		same(t, "stopped chains", len(n.Raised("chain_mismatch")), 0)
		same(t, "head", one[int64](t, d, "SELECT position FROM chains"), 4)
	})
}
