package recovery_test

import (
	"fmt"
	"slices"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/recovery"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

// restoreCase is a column of the matrix of restores: what was done before the
// backup, and what was done after it and is lost.
type restoreCase struct {
	name     string
	supplier string
	series   bool
	periods  bool
	before   []sold
	lost     []sold
	fresh    sold
}

// restoreCases are those of one authority: each has a supplier, and transactions, of
// its own, so that one restore is enough for all.
func restoreCases(code string, supplier func(i int) string) []restoreCase {
	all := []restoreCase{{name: "numbers of the client"}, {name: "series", series: true}, {name: "cancellation"},
		{name: "credit without a number"}, {name: "adjustment"}, {name: "period", periods: true}}
	if code == filingtest.Numbered {
		all = all[:len(all)-1] // its corrections are numbered, and a period's document is none
	}
	for i := range all {
		c, from := &all[i], supplier(i)
		id := func(text string) string { return fmt.Sprintf("%s%d", text, i) }
		sale := func(text string) sold {
			return sold{kind: transaction.Invoice, body: invoice(code, from, id(text))}
		}
		drawn := func(text string, price int64) sold {
			return sold{kind: transaction.Invoice, body: unnumbered(code, from, id(text), price)}
		}
		c.supplier, c.before = from, []sold{sale("a")}
		c.fresh = sold{kind: transaction.Invoice, body: sale("new").body.With("items", []any{item(1, 999)})}
		switch c.name {
		case "numbers of the client":
			c.lost = []sold{sale("b"), sale("c")}
		case "series":
			c.before, c.lost, c.fresh = []sold{drawn("a", 100)}, []sold{drawn("b", 200), drawn("c", 300)}, drawn("new", 999)
		case "cancellation":
			c.lost = []sold{{kind: transaction.Cancellation, body: correction(code, id("a"), id("x"))}}
		case "credit without a number":
			c.lost = []sold{{kind: transaction.Credit, body: correction(code, id("a"), id("cr")).With("transaction_number", nil)}}
		case "adjustment":
			c.lost = []sold{{kind: transaction.Adjustment, body: invoice(code, from, id("adj")).Adjusts(id("a"), -10)}}
		case "period":
			c.lost = []sold{sale("b")}
		}
	}
	return all
}

// Restores as a matrix: every habit of an authority, every kind of document, with
// a list and without. One legal document per sale, and no number twice. The table
// is in docs/reliability.md.
func TestTheMatrixOfRestores(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byHash, byKey, byChain, byNothing, filingtest.AnyOrder, filingtest.Sequenced,
		filingtest.Numbered} {
		for _, listed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/listed=%v", code, listed), func(t *testing.T) {
				t.Parallel()
				restoreAll(t, code, listed)
			})
		}
	}
}

// file submits sales and waits for their success.
func file(n *node, list []sold) (ids []string) {
	n.T.Helper()
	for _, s := range list {
		id := n.Hand(s.kind, s.body)
		same(n.T, fmt.Sprint(s.body["transaction_id"]), n.Settled(id).Status, filing.Success)
		ids = append(ids, id)
	}
	return ids
}

func restoreAll(t *testing.T, code string, listed bool) {
	a := newAuthorities(t)
	s := a.Setup()
	if !listed {
		s = withoutLists(s)
	}
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	cases := restoreCases(code, func(i int) string {
		if i == 5 {
			return n.Supplier(code, "periods", gathersDaily)
		}
		return n.Supplier(code, fmt.Sprint("s", i))
	})
	for _, c := range cases {
		if c.series {
			counts(t, n, series.Series{SupplierID: c.supplier, Pattern: "F{N:4}"})
		}
		file(n, c.before)
	}
	restored := photographed(t, n.DB, url)
	for _, c := range cases {
		ids := file(n, c.lost)
		if c.periods {
			closePeriods(t, n.DB)
			told(n, ids[0])
		}
	}
	n.Stop()
	before := a.Registered(code)

	m := restore(t, restored, s).Start()
	complete(m)
	if !listed {
		nothingIsFiled(t, m, cases)
		same(t, "what the authority holds", fmt.Sprint(a.Registered(code)), fmt.Sprint(before))
		return
	}
	restoredComesBack(t, m, cases)
	if after := a.Registered(code); !slices.Equal(after, before) {
		t.Fatalf("the authority held %v and holds %v", before, after)
	}
	for _, c := range cases {
		ids := file(m, []sold{c.fresh})
		if c.periods {
			closePeriods(t, restored)
			told(m, ids[0])
		}
	}
	once(t, a.Registered(code))
	same(t, "documents", len(a.Registered(code)), len(before)+len(cases))
}

// nothingIsFiled submits what was lost to authorities without a list: it waits for a person.
func nothingIsFiled(t *testing.T, m *node, cases []restoreCase) {
	t.Helper()
	for _, c := range cases {
		same(t, "state of "+c.name, restoredState(m, c.supplier), "unlisted")
		for _, s := range c.lost {
			m.Hand(s.kind, s.body)
		}
	}
	closePeriods(t, m.DB)
	m.Until("the lanes rest", func() bool {
		return one[int64](t, m.DB, "SELECT count(DISTINCT supplier_id) FROM lanes WHERE reason = 'held'") == int64(len(cases))
	})
}

// restoredComesBack submits what was lost again, once chains may go on.
func restoredComesBack(t *testing.T, m *node, cases []restoreCase) {
	t.Helper()
	for _, c := range cases {
		if restoredState(m, c.supplier) == "chain" {
			_, err := m.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: c.supplier}, recovery.From{}, nil)
			must(t, err)
		}
		ids := file(m, c.lost)
		if c.periods {
			closePeriods(t, m.DB)
			told(m, ids[0])
		}
	}
}
