package filing_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// A document that names the operator's identity waits for it as a call does: it says
// why, the operator is told at once, and nothing of it is filed with a made-up name.
func TestADocumentWaitsForTheOperatorsIdentity(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	var set atomic.Bool
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		if !set.Load() {
			return country.Filing{}, country.Unidentified(errors.New("platform_number"))
		}
		return o.Draft(in)
	}
	virtual(t, o.Setup(), func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		first, second := n.File(invoice(officeCode, supplier, "t1")), n.File(invoice(officeCode, supplier, "t2"))
		n.Start()
		time.Sleep(time.Hour)
		for _, id := range []string{first, second} {
			if r := n.Show(id); r.Status != filing.Processing || !slices.Contains(codesOf(r), fault.AuthorityNotConfigured) {
				t.Errorf("%s %v", r.Status, r.Errors)
			}
		}
		same(t, "calls", len(o.Registered()), 0)
		same(t, "subjects of the alert", len(n.Raised(alert.AuthorityNotConfigured)), 1)
		if trouble := one[string](t, n.DB, "SELECT max(trouble) FROM lanes"); !strings.Contains(trouble, "platform_number") {
			t.Errorf("the trouble %q does not name what is missing", trouble)
		}
		set.Store(true)
		time.Sleep(time.Hour)
		n.Succeeds(first)
		n.Succeeds(second)
		n.Stop()
	})
}
