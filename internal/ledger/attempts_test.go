package ledger_test

import (
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
)

// Every call is a fact of its own: a refusal is none of the good ones, and a
// sending whose answer nobody stored is there after the next one too.
func TestEveryAttemptStaysAFactOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n, id := rests(t, a, d)
		failed := life(n, id)
		if x := failed.Exchanges[0]; x.Answered || x.Refused() || !x.Counted || x.Out == 0 {
			t.Errorf("the call that failed: %+v", x)
		}
		if m := failed.Moments[len(failed.Moments)-2]; m.What != "exchange" {
			t.Errorf("before the next try stands %+v", m)
		}
		// A process that ended between the mark and its record leaves the mark alone.
		execSQL(t, d, "DELETE FROM exchange_operations WHERE operation_id = $1", id)
		marked := life(n, id)
		if m := marked.Moments[len(marked.Moments)-2]; m.What != "sent" || !strings.Contains(m.Text, "no answer") {
			t.Errorf("a mark without a call is %+v", m)
		}
		_, err := n.Retry(t.Context(), id, func(*db.Tx, filing.OperationState, filing.OperationState) error { return nil })
		must(t, err)
		n.Succeeds(id)
		l := life(n, id)
		first, last := l.Exchanges[0], l.Exchanges[len(l.Exchanges)-1]
		for _, x := range l.Exchanges {
			if x.Verb == "send" && x.At.Before(first.At) {
				first = x
			}
		}
		if !first.At.Equal(marked.SentAt) || first.Answered || first.Counted || last.Decision != string(country.Accepted) {
			t.Errorf("the calls are %+v", l.Exchanges)
		}

		a.Script(byNumber, authority.Step{Outcome: authority.Reject, Times: 1})
		refused := n.File(invoice(byNumber, l.SupplierID, "refused-"+d.Engine()))
		n.Until("it is refused", func() bool { return life(n, refused).Status == filing.Failure })
		x := life(n, refused).Exchanges[0]
		if !x.Answered || !x.Refused() || x.Said == "" || x.Decision != "rejected" {
			t.Errorf("a refusal: %+v", x)
		}
	})
}
