package recovery_test

import (
	"fmt"
	"slices"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/onboarding"
	"tributary/internal/recovery"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

// restoreCase is a column of the matrix of restores: what was done before the
// backup, and what was done after it and is lost.
type restoreCase struct {
	name    string
	change  []func(*onboarding.NewCompany)
	series  bool
	periods bool
	before  []sold
	lost    []sold
}

func restoreCases(code, supplier string) []restoreCase {
	sale := func(id string) sold {
		return sold{kind: transaction.Invoice, body: invoice(code, supplier, id)}
	}
	drawn := func(id string, price int64) sold {
		return sold{kind: transaction.Invoice, body: unnumbered(code, supplier, id, price)}
	}
	return []restoreCase{
		{name: "numbers of the client", before: []sold{sale("a")}, lost: []sold{sale("b"), sale("c")}},
		{name: "series", series: true, before: []sold{drawn("a", 100)}, lost: []sold{drawn("b", 200), drawn("c", 300)}},
		{name: "cancellation", before: []sold{sale("a")},
			lost: []sold{{kind: transaction.Cancellation, body: correction(code, "a", "x")}}},
		{name: "credit without a number", before: []sold{sale("a")},
			lost: []sold{{kind: transaction.Credit, body: correction(code, "a", "cr").With("transaction_number", nil)}}},
		{name: "adjustment", before: []sold{sale("a")},
			lost: []sold{{kind: transaction.Adjustment, body: invoice(code, supplier, "adj").Adjusts("a", -10)}}},
		{name: "period", change: []func(*onboarding.NewCompany){gathersDaily}, periods: true, before: []sold{sale("a")},
			lost: []sold{sale("b")}},
	}
}

// Restores as a matrix: every habit of an authority, every kind of document, with
// a list and without. One legal document per sale, and no number twice. The table
// is in docs/reliability.md.
func TestTheMatrixOfRestores(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byKey, byChain, byNothing, filingtest.AnyOrder, filingtest.Sequenced,
		filingtest.Numbered} {
		for i := range restoreCases(code, "") {
			for _, listed := range []bool{true, false} {
				if restoreCases(code, "")[i].periods && code == filingtest.Numbered {
					continue // its corrections are numbered, and a period's document is none
				}
				t.Run(fmt.Sprintf("%s/%s/listed=%v", code, restoreCases(code, "")[i].name, listed), func(t *testing.T) {
					t.Parallel()
					restoreOnce(t, code, i, listed)
				})
			}
		}
	}
}

func restoreOnce(t *testing.T, code string, i int, listed bool) {
	a := newAuthorities(t)
	s := a.Setup()
	if !listed {
		s = withoutLists(s)
	}
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier := n.Supplier(code, "s1", restoreCases(code, "")[i].change...)
	c := restoreCases(code, supplier)[i]
	if c.series {
		counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{N:4}"})
	}
	file := func(n *node, list []sold) (ids []string) {
		for _, s := range list {
			id := n.Hand(s.kind, s.body)
			same(t, fmt.Sprint(s.body["transaction_id"]), n.Settled(id).Status, filing.Success)
			ids = append(ids, id)
		}
		return ids
	}
	file(n, c.before)
	restored := copier(t, url)()
	ids := file(n, c.lost)
	if c.periods {
		closePeriods(t, n.DB)
		told(n, ids[0])
	}
	n.Stop()
	before := a.Registered(code)

	m := restore(t, restored, s).Start()
	complete(m)
	if !listed { // nothing is filed before a person has looked
		same(t, "state", restoredState(m, supplier), "unlisted")
		for _, s := range c.lost {
			m.Hand(s.kind, s.body)
		}
		if c.periods {
			closePeriods(t, restored)
		}
		m.Until("the lane rests", func() bool {
			return one[int64](t, restored, "SELECT count(*) FROM lanes WHERE reason = 'held'") > 0
		})
		same(t, "what the authority holds", fmt.Sprint(a.Registered(code)), fmt.Sprint(before))
		return
	}
	if restoredState(m, supplier) == "chain" {
		_, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier}, recovery.From{}, nil)
		must(t, err)
	}
	again := file(m, c.lost)
	if c.periods {
		closePeriods(t, restored)
		told(m, again[0])
	}
	if after := a.Registered(code); !slices.Equal(after, before) {
		t.Fatalf("the authority held %v and holds %v", before, after)
	}
	fresh := sold{kind: transaction.Invoice, body: invoice(code, supplier, "new").With("items", []any{item(1, 999)})}
	if c.series {
		delete(fresh.body, "transaction_number")
	}
	fresh.op = file(m, []sold{fresh})[0]
	if c.periods {
		closePeriods(t, restored)
		told(m, fresh.op)
	}
	once(t, a.Registered(code))
	same(t, "documents", len(a.Registered(code)), len(before)+1)
}
