package recovery_test

import (
	"fmt"
	"slices"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/recovery"
	"tributary/internal/series"
)

// replacedMax is how many numbers an operation gets in place of others without a person.
const replacedMax = 5

// taken are so many steps of a script that say: another's document has this number.
func taken(times int) []authority.Step {
	return slices.Repeat([]authority.Step{{Outcome: authority.Duplicate, Of: authority.OfOther}}, times)
}

// Numbers that are taken are replaced as often as a restore explains it, in a chain
// as well; then a person looks, and says whether it goes on.
func TestNumbersAreReplacedUpToALimit(t *testing.T) {
	t.Parallel()
	for _, code := range []string{byNumber, byChain} {
		for _, times := range []int{1, replacedMax, replacedMax + 1} {
			t.Run(fmt.Sprintf("%s/%d", code, times), func(t *testing.T) {
				t.Parallel()
				a := newAuthorities(t)
				url := dbtest.SQLiteURL(t)
				n := newNode(t, dbtest.Open(t, db.Config{URL: url}), a.Setup()).Start()
				supplier := n.Supplier(code, "s1")
				counts(t, n, series.Series{SupplierID: supplier, Pattern: "F{N:3}"})
				n.Succeeds(n.File(unnumbered(code, supplier, "before", 900)))
				n.Stop()
				m := restore(t, photographed(t, n.DB, url), a.Setup()).Start()
				complete(m)
				a.Script(code, taken(times)...)
				id := m.File(unnumbered(code, supplier, "a", 1000))
				m.Until("it has ended, or waits for a person", func() bool {
					return m.Stage(id) == string(filing.Quarantined) || m.Show(id).Status != filing.Processing
				})
				same(t, "held", m.Stage(id) == string(filing.Quarantined), times > replacedMax)
				if times > replacedMax {
					same(t, "alerts", fmt.Sprint(m.Raised("operation_held")), "map["+id+":1]")
					same(t, "replaced", one[int64](t, m.DB, "SELECT count(*) FROM lifecycle WHERE operation_id = $1", id), replacedMax)
					must(t, m.Decide(t.Context(), id, recovery.Word{}, nil))
				}
				got := m.Succeeds(id)
				same(t, "life cycle", len(got.Lifecycle), times)
				once(t, a.Registered(code))
				same(t, "the next sale", m.Settled(m.File(unnumbered(code, supplier, "b", 1100))).Status, filing.Success)
				same(t, "documents", len(a.Registered(code)), times+3)
			})
		}
	}
}

// Spain's records hang in a chain: a refused one keeps its place, and the same sale
// goes on behind it under the next number.
func TestASpanishNumberThatIsTakenIsReplacedInTheChain(t *testing.T) {
	t.Parallel()
	x := examplesOf(t, "ES")
	a := newAuthorities(t, x.pack)
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s)
	supplier := n.Supplier("ES", "s1", x.company)
	counts(t, n, series.Series{SupplierID: supplier, Pattern: "F-{N:4}"})
	m := restore(t, photographed(t, n.DB, url), s).Start()
	complete(m)
	a.Script("ES", taken(1)...)
	got := m.Succeeds(m.File(x.sale(t, supplier, "a", nil)))
	same(t, "life cycle", fmt.Sprint(got.Lifecycle[0].Code, " ", got.Lifecycle[0].Source), "NUMBER_REPLACED SERVICE")
	once(t, a.Registered("ES"))
	same(t, "documents", len(a.Registered("ES")), 2)
	same(t, "links out of order", len(m.Raised("chain_remarked")), 0)
	same(t, "links", headOf(t, m, filing.Place{Scope: client, Code: "ES", SupplierID: supplier}).Position, 2)
}
