package filing_test

import (
	"fmt"
	"sync"
	"testing"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// Links whose answer was lost are asked about along the chain, not by age: a
// correction that waited for its original is older than the link before it, and
// where asking means sending again the authority would refuse it for a gap, and
// everything after it for ever. (Found by the simulation, seeds 430 and 924.)
func TestLostLinksAreAskedAboutInTheOrderOfTheChain(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByChain)
	var mu sync.Mutex
	var asked []string
	lost := false
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case f.Number == "N-t1" || lost:
			return o.Take(f), nil
		case o.Calls() == 1 || o.LastCall() < 2: // until both go in one call
			return country.Receipt{Outcome: country.NotTaken}, nil
		}
		lost = true
		return country.Receipt{}, errLine
	}
	o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprintf("%d %s", f.Link.Position, f.Number))
		if len(asked) == 1 {
			return country.Receipt{}, errLine // so that the next visit finds them in the table
		}
		return o.Held(f), nil
	}
	n := newNode(t, sqlite(t), o.Setup())
	supplier := n.Supplier(officeCode, "s1")
	first := n.File(invoice(officeCode, supplier, "t1"))
	waiting := n.Hand(transaction.Cancellation, correction(officeCode, "t1", "c1"))
	second := n.File(invoice(officeCode, supplier, "t2"))
	if waiting > second {
		t.Fatal("the correction is not the older one")
	}
	n.Start()
	for _, id := range []string{first, second, waiting} {
		n.Succeeds(id)
	}
	n.Stop()
	same(t, "registered", fmt.Sprint(o.Registered()), "[N-t1 N-t2 N-c1]")
	same(t, "asked", fmt.Sprint(asked), "[2 N-t2 2 N-t2 3 N-c1]")
}
