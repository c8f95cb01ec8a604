package filing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestIdempotencyTable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byNumber, "s1")

		// One has not ended: the next waits, whatever its body.
		first := n.File(invoice(byNumber, supplier, "t1"))
		second := n.File(invoice(byNumber, supplier, "t1").With("note", "another body"))
		if first == second {
			t.Fatal("an attempt that waits has an operation of its own")
		}
		same(t, "the second", n.Stage(second), string(filing.Waiting))
		n.Start()
		n.Succeeds(first)
		n.Succeeds(second, fault.PayloadDiffers)
		same(t, "registrations", len(a.Registered(byNumber)), 1)
		same(t, "events of the second", n.Events(second), 1)

		// One is SUCCESS: any body answers it, no new operation, a new event.
		for _, p := range []paper{invoice(byNumber, supplier, "t1"),
			invoice(byNumber, supplier, "t1").With("transaction_number", "other")} {
			same(t, "resubmit after SUCCESS", n.File(p), first)
		}
		same(t, "events of the success", n.Events(first), 3)
		history(t, n, "t1", filing.Success, filing.Success)

		// All ended in FAILURE: a new attempt with its own body.
		failed := n.File(invoice(byNumber, supplier, "t2").With("transaction_number", "n-REJECT"))
		n.Fails(failed, fault.AuthorityRejected)
		next := n.File(invoice(byNumber, supplier, "t2"))
		if next == failed {
			t.Fatal("after a FAILURE there is a new attempt")
		}
		r := n.Succeeds(next)
		same(t, "its number", *r.Number, "N-t2")
		history(t, n, "t2", filing.Failure, filing.Success)
		same(t, "registrations", len(a.Registered(byNumber)), 2)

		// ids are one space for all kinds.
		same(t, "another kind under a registered id", n.Hand(transaction.Backfill, paper{
			"country_code": byNumber, "transaction_id": "t1", "transaction_number": "B-1",
			"transaction_date": "2026-03-01T12:30:00Z"}), first)
		same(t, "open attempts", one[int64](t, d, "SELECT sum(open) FROM transactions"), 0)
	})
}

func history(t *testing.T, n *node, id string, want ...filing.Status) {
	t.Helper()
	entries, err := n.History(t.Context(), client, id)
	must(t, err)
	var got []filing.Status
	for _, e := range entries {
		got = append(got, e.Status)
	}
	same(t, "history of "+id, fmt.Sprint(got), fmt.Sprint(want))
}

func TestHardCase07AThousandParallelSubmitsRegisterOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const submits = 1000
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byNumber, "s1")
		bodies := [2][]byte{invoice(byNumber, supplier, "t1").Body(t),
			invoice(byNumber, supplier, "t1").With("note", "another").Body(t)}
		n.Start()
		answered := submitMany(t, n, submits, bodies)
		events := map[string]int64{}
		for _, id := range answered {
			events[id]++ // one answered after the success names the success again
		}
		n.Until("all have ended", func() bool { return one[int64](t, d, "SELECT open FROM transactions") == 0 })
		same(t, "registrations", len(a.Registered(byNumber)), 1)
		same(t, "events", one[int64](t, d, "SELECT count(*) FROM webhook_events"), submits)
		same(t, "results", one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'"), int64(len(events)))
		registered := one[string](t, d, "SELECT success_id FROM transactions")
		winner := n.Show(registered)
		var warned, differed int64
		for i, id := range answered {
			differs := id != registered && (i%2 == 0) != (winner.Note == nil)
			if differs {
				differed++
			}
			if i%20 > 1 {
				continue // two of twenty are read as a client would
			}
			r := n.Show(id)
			if r.Status != filing.Success || *r.AuthorityID1 != *winner.AuthorityID1 || *r.UniqueNumber != *winner.UniqueNumber {
				t.Fatalf("attempt %d: %+v", i, r)
			}
			if got := fmt.Sprint(codesOf(r)); id != registered && (got == "[payload_differs]") != differs {
				t.Errorf("attempt %d with body %d: warnings %s, registered note %v", i, i%2, got, winner.Note)
			}
			same(t, "events of "+id, n.Events(id), events[id])
		}
		warned = one[int64](t, d,
			"SELECT count(*) FROM operations WHERE settled_by IS NOT NULL AND result LIKE '%payload_differs%'")
		same(t, "warnings", warned, differed)
	})
}

// submitMany submits in parallel, the bodies in turn, and returns the operations.
func submitMany(t *testing.T, n *node, submits int, bodies [2][]byte) []string {
	t.Helper()
	answered := make([]string, submits)
	var wg sync.WaitGroup
	for i := range submits {
		wg.Go(func() {
			id, err := n.Submit(context.Background(), caller(client), transaction.Invoice, bodies[i%2])
			if err != nil {
				t.Errorf("submit %d: %v", i, err)
			}
			answered[i] = id
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return answered
}

func TestAThousandMayWaitAndNoMore(t *testing.T) {
	needs.NotRaced(t, "a thousand operations")
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byNumber, "s1")
		bodies := [2][]byte{invoice(byNumber, supplier, "t1").Body(t), invoice(byNumber, supplier, "t1").Body(t)}
		first := n.File(invoice(byNumber, supplier, "t1"))
		submitMany(t, n, filing.WaitingMax, bodies) // each is fine
		_, err := n.Submit(t.Context(), caller(client), transaction.Invoice, bodies[0])
		var limited *fault.Error
		if !errors.As(err, &limited) || limited.Kind != fault.Limited || limited.RetryAfter <= 0 ||
			len(limited.Faults) != 1 || limited.Faults[0].Code != fault.RateLimited {
			t.Fatalf("one more answers %v", err)
		}
		same(t, "attempts", one[int64](t, d, "SELECT attempts FROM transactions"), filing.WaitingMax+1)
		same(t, "stored", one[int64](t, d, "SELECT count(*) FROM operations"), filing.WaitingMax+1)
		n.File(invoice(byNumber, supplier, "t2")) // others are not concerned
		n.Start()
		n.Succeeds(first)
		n.Until("all have ended", func() bool { return one[int64](t, d, "SELECT sum(open) FROM transactions") == 0 })
		same(t, "registrations", len(a.Registered(byNumber)), 2)
		same(t, "a resubmit after SUCCESS", n.File(invoice(byNumber, supplier, "t1")), first)
	})
}

func TestHardCase08AChangedBodyWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	// The first fails: the second is processed with its own body.
	a.Script(byNumber, authority.Step{Outcome: authority.Reject})
	hold := make(chan struct{})
	n.When("sent", func(string) { <-hold })
	first := n.File(invoice(byNumber, supplier, "t1"))
	second := n.File(invoice(byNumber, supplier, "t1").With("transaction_number", "changed"))
	third := n.File(invoice(byNumber, supplier, "t1").With("transaction_number", "never filed"))
	same(t, "the second", n.Stage(second), string(filing.Waiting))
	close(hold)
	n.Fails(first, fault.AuthorityRejected)
	same(t, "the second's number", *n.Succeeds(second).Number, "changed")
	same(t, "what the third sees", *n.Succeeds(third, fault.PayloadDiffers).Number, "changed")
	same(t, "registered", fmt.Sprint(a.Registered(byNumber)), "[changed]")
	for _, id := range []string{first, second, third} {
		same(t, "events", n.Events(id), 1)
	}
	history(t, n, "t1", filing.Failure, filing.Success, filing.Success)
}

func TestHardCase09SuccessNeverChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		id := n.File(invoice(byNumber, n.Supplier(byNumber, "s1"), "t1"))
		n.Succeeds(id)
		for _, attack := range []string{
			"UPDATE operations SET status = 'FAILURE' WHERE operation_id = $1",
			"UPDATE operations SET result = '{}' WHERE operation_id = $1",
			"UPDATE operations SET due_at = 1, stage = 'received' WHERE operation_id = $1",
			"DELETE FROM operations WHERE operation_id = $1",
			"UPDATE transactions SET success_id = NULL WHERE success_id = $1",
			"UPDATE transactions SET success_id = 'another' WHERE success_id = $1",
		} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(attack, id) }); err == nil {
				t.Errorf("%s: the database lets it happen", attack)
			}
		}
		n.Succeeds(id)
		same(t, "a resubmit", n.File(invoice(byNumber, n.Supplier(byNumber, "s1"), "t1")), id)
		same(t, "registrations", len(a.Registered(byNumber)), 1)
	})
}
