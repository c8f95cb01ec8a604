package filing_test

import (
	"maps"
	"testing"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lifecycle"
)

// A name of the authority's is that of the filing whose bytes it stands for, where the company's answer to it was lost.
func TestANameBelongsToTheFilingWithItsBytes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		o.Habits.Batch, o.Habits.Parallel = 1, 4
		lost := make(chan country.Filing, 100)
		o.OnSend = func(_ *office, f country.Filing) (country.Receipt, error) {
			lost <- f
			return country.Receipt{}, errLine
		}
		o.OnFind = func(*office, country.Filing) (country.Receipt, error) { return country.Receipt{}, errLine }
		n := newNode(t, d, o.Setup())
		mine, other := n.Supplier(officeCode, "s1"), n.Supplier(officeCode, "s2")
		for _, name := range []string{"t1", "t2", "t3"} {
			n.File(invoice(officeCode, mine, name))
		}
		n.File(invoice(officeCode, other, "o1"))
		n.Start()
		sent := map[string]country.Filing{}
		for len(sent) < 4 {
			f := <-lost
			sent[f.Number] = f
		}
		names := lifecycle.Names(d)(country.Environment{Code: officeCode})
		first, second, third := sent["N-t1"], sent["N-t2"], sent["N-t3"]
		for _, of := range []struct{ name, sha256 string }{{"two", second.SHA256}, {"two", second.SHA256}, {"others", sent["N-o1"].SHA256}, {"nobody", "00"}} {
			must(t, names.Belongs(t.Context(), first.OperationID, of.name, of.sha256))
		}
		for asks, want := range map[string]map[string]bool{first.OperationID: {"two": true}, second.OperationID: {}, third.OperationID: {"two": true}} {
			got, err := names.Others(t.Context(), asks, []string{"two", "others", "nobody"})
			must(t, err)
			if !maps.Equal(got, want) {
				t.Errorf("%v", got)
			}
		}
	})
}
