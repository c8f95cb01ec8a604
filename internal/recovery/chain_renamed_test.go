package recovery_test

import (
	"fmt"
	"testing"

	"tributary/internal/country"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/recovery"
)

// A company's settings may not let its chain go on under another name: it is
// stopped, and a person puts them back or begins the new chain.
func TestAChainIsNotRenamedSilently(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from     recovery.From
		back     bool
		position int64
		chain    string
	}{
		"put back": {recovery.From{Own: true}, true, 2, "one"},
		"anew":     {recovery.From{Anew: true}, false, 1, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(country.ByChain)
			o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
				f, err := o.Draft(in)
				f.Link.Name, _ = in.Supplier.Settings["name"].(string)
				return f, err
			}
			var links []country.Link
			o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
				links = append(links, f.Link)
				return o.Take(f), nil
			}
			s := o.Setup()
			s.Packs[0].Facts.Settings = []country.Setting{{Key: "name", Type: "string"}}
			n := newNode(t, dbtest.SQLite(t), s).Start()
			supplier := n.Supplier(officeCode, "s1", func(c *onboarding.NewCompany) {
				c.Settings = country.Settings{"name": "one"}
			})
			n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
			n.Stop()
			change := "UPDATE companies SET profile = replace(profile, '\"%s\"', '\"%s\"')"
			execSQL(t, n.DB, fmt.Sprintf(change, "one", "two"))
			id := n.File(invoice(officeCode, supplier, "t2"))
			n.Start()
			n.Until("the chain is stopped", func() bool { return len(n.Raised("chain_mismatch")) == 1 })
			same(t, "held for", holdOf(t, n, supplier), fault.ChainStopped)
			n.Until("the result says why", func() bool { return fmt.Sprint(codesOf(n.Show(id))) == "[chain_stopped]" })
			same(t, "registered", fmt.Sprint(o.Registered()), "[N-t1]")
			if c.back {
				execSQL(t, n.DB, fmt.Sprintf(change, "two", "one"))
			}
			_, err := n.ResumeChain(t.Context(), filing.Place{Scope: client, SupplierID: supplier}, c.from, nil)
			must(t, err)
			n.Succeeds(id)
			n.Stop()
			last := links[len(links)-1]
			same(t, "position", last.Position, c.position)
			same(t, "chain", last.Name, c.chain)
		})
	}
}
