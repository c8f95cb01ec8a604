package recovery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/recovery"
	"tributary/internal/result"
	"tributary/internal/series"
)

// unnumbered is a sale that gets its number from a series.
func unnumbered(code, supplier, id string, price int64) paper {
	p := invoice(code, supplier, id).With("items", []any{item(1, price)})
	delete(p, "transaction_number")
	return p
}

func counts(t *testing.T, n *node, in series.Series) series.Series {
	t.Helper()
	made, err := n.Series.Create(t.Context(), client, in)
	must(t, err)
	return made
}

// gapsOf are what a client's only series left out.
func gapsOf(t *testing.T, n *node) []series.SeriesGap {
	t.Helper()
	list, _, err := n.Series.List(t.Context(), client, "", series.Max)
	must(t, err)
	return list[0].Gaps
}

// After a restore a new sale never takes a number, or a registration, that was
// another's; what was lost gets its own back when it comes again.
func TestARestoredSeriesLeapsAndLostSalesKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	eachBackup(t, func(t *testing.T, d *db.DB, backup func() *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{YYYY}-{N:4}", Yearly: true})
		n.Succeeds(n.File(unnumbered(byNumber, supplier, "a", 1000)))
		restored := backup()
		b := n.Succeeds(n.File(unnumbered(byNumber, supplier, "b", 2000)))
		c := n.Succeeds(n.File(unnumbered(byNumber, supplier, "c", 2000))) // says the same as b
		n.Stop()

		m := restore(t, restored, a.Setup()).Start()
		complete(m)
		fresh := m.Succeeds(m.File(unnumbered(byNumber, supplier, "d", 3000)))
		if slices.Contains([]string{*b.Number, *c.Number}, *fresh.Number) || *fresh.AuthorityID1 == *b.AuthorityID1 {
			t.Errorf("a new sale is %s %s, which was another's", *fresh.Number, *fresh.AuthorityID1)
		}
		same(t, "b", identity(m.Succeeds(m.File(unnumbered(byNumber, supplier, "b", 2000)))), identity(b))
		same(t, "c", identity(m.Succeeds(m.File(unnumbered(byNumber, supplier, "c", 2000)))), identity(c))
		later := m.Succeeds(m.File(unnumbered(byNumber, supplier, "e", 2000)))
		if slices.Contains([]string{*b.Number, *c.Number}, *later.Number) {
			t.Errorf("a number twice: %s", *later.Number)
		}
		held := a.Registered(byNumber)
		once(t, held)
		same(t, "documents", len(held), 5)
		gaps := gapsOf(t, m)
		same(t, "gaps", len(gaps), 3) // the leap, and what b and c drew before they were recognised
		same(t, "the leap", gaps[0].From+" "+gaps[0].Reason, "F2026-0002 "+series.GapRestored)
		same(t, "left out for b", gaps[1].Reason, series.GapRegistered)
		if gaps[0].To >= *fresh.Number && len(gaps[0].To) == len(*fresh.Number) {
			t.Errorf("%s was drawn and is in the gap up to %s", *fresh.Number, gaps[0].To)
		}
	})
}

// identity is what must stay the same: number and registration.
func identity(r *result.Result) string {
	return *r.Number + " " + *r.AuthorityID1
}

// A country without an authority has nobody to ask, and no number twice either; a
// year whose first document came after the backup leaps like the others.
func TestASeriesThatTheBackupDoesNotKnowOfAYearLeapsToo(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup())
	supplier := n.Supplier(byNumber, "s1")
	counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{YYYY}-{N:1}", Yearly: true})
	restored := copier(t, url)()
	sale := func(id string) paper {
		return unnumbered(byNumber, supplier, id, 1000).With("transaction_date", "2025-12-31T12:00:00Z")
	}
	lost := n.Show(n.File(sale("lost")))
	m := restore(t, restored, a.Setup())
	complete(m)
	fresh := m.Show(m.File(sale("fresh")))
	if *fresh.Number == *lost.Number || !strings.HasPrefix(*fresh.Number, "F2025-") {
		t.Errorf("%s was drawn twice", *fresh.Number)
	}
	if gaps := gapsOf(t, m); len(gaps) != 2 || gaps[0].From != "F2025-1" {
		t.Errorf("gaps: %+v", gaps)
	}
}

// Without a restore there are no gaps, however often a node starts.
func TestSeriesLeapAfterARestoreOnly(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	d := dbtest.SQLite(t)
	n := newNode(t, d, a.Setup()).Start()
	supplier := n.Supplier(byNumber, "s1")
	counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{N:3}"})
	n.Succeeds(n.File(unnumbered(byNumber, supplier, "a", 1000)))
	n.Stop()
	m := newNode(t, d, a.Setup()).Start()
	same(t, "the next", *m.Succeeds(m.File(unnumbered(byNumber, supplier, "b", 1000))).Number, "F002")
	same(t, "gaps", len(gapsOf(t, m)), 0)
}

// A number of our own that the authority holds for something else is replaced by
// the next, and the life cycle says so; a client's own number ends in FAILURE.
func TestANumberOfOursThatIsTakenIsReplaced(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]time.Duration{"listed": 0, "found out by filing": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t)
			url := dbtest.SQLiteURL(t)
			n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup())
			supplier := n.Supplier(byNumber, "s1")
			counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{N:3}"})
			ours := n.File(unnumbered(byNumber, supplier, "a", 1000)) // F001 is drawn, and not filed
			theirs := n.File(invoice(byNumber, supplier, "b"))
			restored := copier(t, url)()
			others(t, a, "F001", when)
			others(t, a, "N-b", when)

			m := restore(t, restored, a.Setup()).Start()
			complete(m)
			got := m.Succeeds(ours)
			if *got.Number == "F001" {
				t.Fatal("it kept a number that is another's")
			}
			same(t, "life cycle", fmt.Sprint(got.Lifecycle[0].Code, " ", got.Lifecycle[0].Source), "NUMBER_REPLACED SERVICE")
			same(t, "another attempt", *m.Show(m.File(unnumbered(byNumber, supplier, "a", 1000))).Number, *got.Number)
			m.Fails(theirs, fault.AuthorityNumberUsed)
			once(t, a.Registered(byNumber))
		})
	}
}

// Where a list tells no sums, a drawn number proves nothing: a person decides.
func TestWhatCannotBeComparedWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, said := range []adoption.Decision{adoption.Adopt, adoption.File} {
		t.Run(string(said), func(t *testing.T) {
			t.Parallel()
			l := &listing{office: newOffice(country.ByNumber)}
			url := dbtest.SQLiteURL(t)
			n := newNode(t, dbtest.Open(t, db.Config{URL: url}), l.Setup()).Start()
			supplier := n.Supplier(officeCode, "s1")
			counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{N:3}"})
			n.Succeeds(n.File(invoice(officeCode, supplier, "before"))) // its sales come late, so the days before are asked for
			restored := copier(t, url)()
			lost := n.Succeeds(n.File(unnumbered(officeCode, supplier, "a", 1000)))
			n.Stop()
			l.list = func(on country.Day) (list []country.Entry, err error) {
				if on.String() == "2026-03-01" {
					list = []country.Entry{{Number: *lost.Number, AuthorityID1: *lost.AuthorityID1, At: time.Now()}}
				}
				return list, nil
			}
			m := restore(t, restored, l.Setup()).Start()
			complete(m)
			id := m.File(unnumbered(officeCode, supplier, "a", 1000))
			m.Until("it waits for a person", func() bool { return m.Stage(id) == string(filing.Quarantined) })
			life, err := m.Life(t.Context(), id)
			must(t, err)
			same(t, "why", life.Wait.Why, ledger.WhyHeld)
			same(t, "alerts", fmt.Sprint(m.Raised("operation_held")), "map["+id+":1]")
			same(t, "registered", len(l.office.Registered()), 2)
			must(t, m.Decide(t.Context(), id, recovery.Word{Adopt: said == adoption.Adopt}, nil))
			got := m.Succeeds(id, codesOf(m.Settled(id))...)
			want := map[adoption.Decision]int{adoption.Adopt: 2, adoption.File: 3}[said]
			same(t, "registered", len(l.office.Registered()), want)
			same(t, "it is the lost one", *got.Number == *lost.Number, said == adoption.Adopt)
			if err := m.Decide(t.Context(), id, recovery.Word{Adopt: said == adoption.Adopt},
				nil); fault.KindOf(err) != fault.Conflict {
				t.Errorf("deciding twice: %v", err)
			}
		})
	}
}

// others registers another's document of the day under a number.
func others(t *testing.T, a *authorities, number string, ago time.Duration) {
	t.Helper()
	desk, _ := a.Sims.Desk(byNumber)
	must(t, desk.Write(func(b *authority.Book) {
		b.Register(authority.Registration{Supplier: byNumber + "-s1", Number: number, SHA256: "00",
			AuthorityID: "OTHER-" + number,
			At:          time.Now().Add(ago), Note: `{"day":"2026-03-01","kind":"INVOICE","gross":777}`})
	}))
}
