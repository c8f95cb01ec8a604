package filing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Of two documents of a period one is refused: neither the acceptance of the
// other nor a sale that leaves has the refused one made anew before its pause is over.
func TestAPauseAfterARefusalIsKeptWhateverWakesThePeriod(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	setup := a.Setup()
	setup.Packs = slices.Clone(a.Packs)
	few := *setup.Packs[0].Periods
	few.LinesMax = 1
	setup.Packs[0].Periods = &few
	d := sqlite(t)
	n := newNode(t, d, setup).Start()
	s := n.Supplier(byNumber, "s1", gathers(country.Daily))
	for i := range 2 {
		n.Succeeds(n.File(invoice(byNumber, s, fmt.Sprint("t", i))), fault.WaitsForPeriod)
	}
	a.Script(byNumber, authority.Step{Outcome: authority.Reject, Times: 1})
	closeAll(t, d)
	ended := func(want int64) func() bool {
		return func() bool {
			return one[int64](t, d, "SELECT count(*) FROM period_documents WHERE state != 'open'") == want &&
				one[int64](t, d, "SELECT count(*) FROM periods WHERE lease_until IS NULL AND due_at > $1",
					d.Now().Add(50*time.Minute).UnixMicro()) == 1
		}
	}
	n.Until("one is accepted, one is refused, and the period rests", ended(2))
	same(t, "failures in a row", one[int64](t, d, "SELECT failures FROM periods"), 1)

	accepted := one[string](t, d,
		`SELECT e.transaction_id FROM period_entries e JOIN period_documents p ON p.operation_id = e.document_id WHERE p.state = 'accepted'`)
	n.Settled(n.Hand(transaction.Cancellation, correction(byNumber, accepted, "x1")))
	n.Until("the period rests again", ended(2))
	same(t, "documents", one[int64](t, d, "SELECT count(*) FROM period_documents"), 2)

	closeAll(t, d) // its time has come
	n.Until("it was made anew, and what a sale has left is withdrawn", func() bool {
		return one[int64](t, d, "SELECT count(*) FROM period_documents WHERE state IN ('accepted', 'withdrawn')") == 3
	})
	n.Until("the failures are forgotten", func() bool { return one[int64](t, d, "SELECT failures FROM periods") == 0 })
}
