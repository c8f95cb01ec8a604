package filing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing/filingtest"
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

// A clock that was a year ahead has put periods off: with the right time one that
// has ended is closed by the next start, its pause included, and one that is still
// open is due at its end.
func TestAfterAClockThatWasAheadPeriodsEndInTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		s, open := n.Supplier(byNumber, "s1", gathers(country.Daily)), n.Supplier(byNumber, "s2", gathers(country.Daily))
		n.Succeeds(n.File(invoice(byNumber, s, "t1")), fault.WaitsForPeriod)
		n.Succeeds(n.File(invoice(byNumber, open, "t2")), fault.WaitsForPeriod)
		n.Stop()
		ahead, end := db.Micros(d.Now().AddDate(1, 0, 0)), db.Micros(d.Now().AddDate(0, 0, 5))
		filingtest.ExecSQL(t, d, "UPDATE periods SET due_at = $1, retry_at = $1", ahead)
		filingtest.ExecSQL(t, d, "UPDATE periods SET ends_at = $1 WHERE supplier_id = $2", end, open)
		next := newNode(t, d, a.Setup()).Start()
		holds(next, a, "D20260301-EUR-1 PERIOD 22710")
		same(t, "when the open one is due", one[int64](t, d, "SELECT due_at FROM periods WHERE closed_at IS NULL"), end)
		next.Stop()
	})
}
