package filing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/alert"
	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/recovery"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

// sequenceOf reads the numbers that filed documents carry.
func sequenceOf(t *testing.T, d *db.DB, code string) (list []int64) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error {
		reports, err := db.Collect(r, func(scan func(...any) error) (text []byte, err error) { return text, scan(&text) },
			"SELECT f.report FROM filings f JOIN operations o ON o.operation_id = f.operation_id WHERE o.country = $1", code)
		for _, text := range reports {
			var doc struct{ Sequence int64 }
			if err := json.Unmarshal(text, &doc); err != nil {
				return err
			}
			list = append(list, doc.Sequence)
		}
		return err
	}))
	slices.Sort(list)
	return list
}

// Documents of many suppliers carry numbers of one sequence, none of them twice;
// what is filed again after an outage keeps its own.
func TestNumbersOfASequenceAreGivenOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		a.Script(sequenced, authority.Step{Outcome: authority.Unavailable, Times: 3},
			authority.Step{Outcome: authority.DropAnswer, Times: 2})
		n := newNode(t, d, a.Setup())
		var ids []string
		for s := range 3 {
			supplier := n.Supplier(sequenced, fmt.Sprint("s", s))
			for i := range 10 {
				ids = append(ids, n.File(invoice(sequenced, supplier, fmt.Sprintf("t%d-%d", s, i))))
			}
		}
		n.Start()
		for _, id := range ids {
			n.Succeeds(id)
		}
		given := sequenceOf(t, d, sequenced)
		same(t, "documents", len(given), 30)
		same(t, "different numbers", len(slices.Compact(slices.Clone(given))), 30)
		same(t, "the first", given[0], 1)
		if next := one[int64](t, d, "SELECT next FROM sequences WHERE country = $1 AND live = $2", sequenced,
			false); next <= given[29] {
			t.Errorf("next is %d, and %d is given", next, given[29])
		}
		same(t, "registered", len(a.Registered(sequenced)), 30)
	})
}

// Nobody draws more than the bounds that a restored backup counts with: the rest waits.
func TestDrawsOfASequenceAreBounded(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	var mu sync.Mutex
	var given []int64
	var at []time.Time
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		mu.Lock()
		given, at = append(given, in.Sequence), append(at, time.Now())
		mu.Unlock()
		return o.Draft(in)
	}
	s := o.Setup()
	s.Packs[0].Sequence = true
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		execSQL(t, n.DB, "INSERT INTO sequences (country, live, next, room, at) VALUES ($1, $2, 100, 3, $3)", officeCode,
			false, db.Micros(n.DB.Wall()))
		for i := range 10 {
			n.File(invoice(officeCode, supplier, fmt.Sprint("t", i)))
		}
		n.Start()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		same(t, "numbers", fmt.Sprint(given), "[100 101 102 103 104 105 106 107 108 109]")
		if took := at[9].Sub(at[2]); took < 7*time.Second/series.Rate {
			t.Errorf("seven more than the room were drawn within %s", took)
		}
		same(t, "successes", one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'"), 10)
	})
}

// Corrections of one original go one after another where the authority wants it,
// each knowing those before; the authority refuses any other.
func TestCorrectionsInSuccessionKnowThoseBefore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(numbered, "s1")
		ids := []string{n.File(invoice(numbered, supplier, "t1"))}
		for i := range 4 {
			ids = append(ids, n.Hand(transaction.Adjustment,
				invoice(numbered, supplier, fmt.Sprint("c", i)).Adjusts("t1", -100)))
		}
		n.Start()
		for _, id := range ids {
			n.Succeeds(id)
		}
		failed := n.Hand(transaction.Adjustment,
			invoice(numbered, supplier, "c9").Adjusts("t1", -100).With("transaction_number", "N-c9-REJECT"))
		n.Fails(failed, fault.AuthorityRejected)
		n.Succeeds(n.Hand(transaction.Adjustment, invoice(numbered, supplier, "c5").Adjusts("t1", -100)))
		same(t, "registered", len(a.Registered(numbered)), 6)
	})
}

// The drafts of later corrections hold the earlier ones in the order of their filing.
func TestEarlierCorrectionsAreHandedOver(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	var mu sync.Mutex
	seen := map[string]string{}
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		if in.Original != nil {
			var list []string
			for _, e := range in.Original.Corrections {
				list = append(list, fmt.Sprintf("%s %s %s %d %v", e.Number, e.AuthorityID1, e.Transaction.ID, e.Totals.Gross,
					len(e.Report) > 0))
			}
			mu.Lock()
			seen[in.Transaction.ID] = strings.Join(list, ", ")
			mu.Unlock()
		}
		return o.Draft(in)
	}
	n := newNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	var length int64
	for _, id := range []string{"c1", "c2", "c3"} {
		n.Succeeds(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, id).Adjusts("t1", -100)))
		length = one[int64](t, n.DB, "SELECT bytes FROM operations WHERE transaction_id = $1", id)
	}
	same(t, "the first knows", seen["c1"], "")
	same(t, "the third knows", seen["c3"], "N-c1 A-2 c1 -100 true, N-c2 A-3 c2 -100 true")

	n.EarlierAtMost(3 * length)
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "c4").Adjusts("t1", -100)))
	n.Fails(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "c5").Adjusts("t1", -100)),
		fault.UnsupportedOperation)
}

// A chain that stops at a refused link: the sale fails, everything behind it
// waits for a person, and goes on behind the last link that counts.
func TestARefusedLinkStopsTheChain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(stopping, "s1")
		first := n.File(invoice(stopping, supplier, "t1"))
		refused := n.File(invoice(stopping, supplier, "t2").With("transaction_number", "N-t2-REJECT"))
		behind := n.File(invoice(stopping, supplier, "t3"))
		n.Start()
		n.Succeeds(first)
		n.Fails(refused, fault.AuthorityRejected)
		later := n.File(invoice(stopping, supplier, "t4"))
		n.Until("the chain is stopped", func() bool { return slices.Contains(codesOf(n.Show(later)), fault.ChainStopped) })
		same(t, "what hangs on it", n.Show(behind).Status, filing.Processing)
		same(t, "registered meanwhile", strings.Join(a.Registered(stopping), " "), "N-t1")
		same(t, "told", len(n.Raised(alert.ChainMismatch)), 1)
		_, err := n.ResumeChain(t.Context(), filing.Place{Scope: client, Code: stopping, SupplierID: supplier},
			recovery.From{}, nil)
		must(t, err)
		n.Succeeds(behind)
		n.Succeeds(later)
		same(t, "registered", strings.Join(a.Registered(stopping), " "), "N-t1 N-t3 N-t4")
	})
}

// Where links may arrive in any order, one that is unclear holds up nobody; its
// place is kept. Where they may not, everything waits for it.
func TestLinksInAnyOrderDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{true, false} {
		t.Run(fmt.Sprint("any order ", free), func(t *testing.T) {
			o := newOffice(country.ByChain)
			o.Habits.AnyOrder, o.Habits.Batch = free, 1
			begun := time.Now()
			o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
				if f.Number == "N-t1" && time.Since(begun) < time.Hour {
					return country.Receipt{}, errLine
				}
				return o.Take(f), nil
			}
			o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
				if time.Since(begun) < time.Hour {
					return country.Receipt{}, errLine
				}
				return o.Held(f), nil
			}
			virtual(t, o.Setup(), func(t *testing.T, n *node) {
				begun = time.Now()
				supplier := n.Supplier(officeCode, "s1")
				for i := range 3 {
					n.File(invoice(officeCode, supplier, fmt.Sprint("t", i+1)))
				}
				n.Start()
				time.Sleep(30 * time.Minute)
				n.File(invoice(officeCode, supplier, "t4"))
				time.Sleep(29 * time.Minute)
				synctest.Wait()
				want := ""
				if free {
					want = "N-t2 N-t3 N-t4"
				}
				same(t, "registered while the first is unclear", strings.Join(o.Registered(), " "), want)
				time.Sleep(time.Hour)
				synctest.Wait()
				same(t, "registered in the end", len(o.Registered()), 4)
				same(t, "successes", one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'"), 4)
				same(t, "the head", one[int64](t, n.DB, "SELECT position FROM chains"), 4)
				if !free {
					same(t, "in order", strings.Join(o.Registered(), " "), "N-t1 N-t2 N-t3 N-t4")
				}
			})
		})
	}
}
