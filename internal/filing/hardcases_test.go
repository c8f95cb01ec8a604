package filing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/result"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// Hard case 13: the client hears 503 of a submit that is stored, and retries:
// one registration, and every operation has its result and its event.
func TestHardCase13ARetryAfterAnUnknownCommitFilesOnce(t *testing.T) {
	t.Parallel()
	address := dbtest.MigratedURL(t)
	u, err := url.Parse(address)
	must(t, err)
	c := dbtest.StartProxy(t, u.Host)
	u.Host = c.Addr()
	a := newAuthorities(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: u.String()}), a.Setup())
	body := invoice(byNumber, n.Supplier(byNumber, "s1"), "t1").Body(t)
	c.Cut.Store(int64(len(dbtest.CommitMessage))) // the server commits, and its answer is lost
	_, err = n.Submit(t.Context(), caller(client), transaction.Invoice, body)
	if fault.KindOf(err) != fault.Unavailable || c.Fired.Load() != 1 {
		t.Fatalf("the submit whose commit was cut answers %v", err)
	}
	again, err := n.Submit(t.Context(), caller(client), transaction.Invoice, body)
	must(t, err)
	n.Start()
	n.Succeeds(again)
	entries, err := n.History(t.Context(), client, "t1")
	must(t, err)
	same(t, "attempts", len(entries), 2) // the first had been stored
	for _, e := range entries {
		same(t, "status", e.Status, filing.Success)
		same(t, "events", n.Events(e.OperationID), 1)
	}
	same(t, "registrations", len(a.Registered(byNumber)), 1)
}

// Hard case 23: hostile text is kept as sent, and what is filed stays well-formed.
func TestHardCase23HostileTextIsKeptAndFiledWellFormed(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	const note = "<script>alert(1)</script><img src=http://169.254.169.254/>]]>{{.}}&amp;\""
	line := item(1, 100)
	line["name"] = "\"}]}, <b>]]>"
	body := invoice(byNumber, supplier, "t1").With("note", note).With("items", []any{line})
	id := n.File(body)
	r := n.Succeeds(id)
	same(t, "note in the result", *r.Note, note)
	same(t, "name in the result", r.Items[0].Name, line["name"].(string))
	same(t, "body in the record", string(one[[]byte](t, n.DB, "SELECT body FROM bodies WHERE operation_id = $1", id)),
		string(body.Body(t)))
	_, err := n.Submit(t.Context(), caller(client), transaction.Invoice,
		invoice(byNumber, supplier, "t2").With("note", "right to left \u202e").Body(t))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "field_not_valid note")
	if report := one[[]byte](t, n.DB, "SELECT report FROM filings"); !json.Valid(report) {
		t.Errorf("filed %s", report)
	}
}

// Hard case 24: whatever is another client's is as unknown as what nobody has.
func TestHardCase24AnothersIDsAreUnknown(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	const stranger = "c_two"
	mine := n.Supplier(byNumber, "s1")
	id := n.File(invoice(byNumber, mine, "t1"))
	n.Succeeds(id)
	ctx := context.Background()
	_, foreign := n.Result(ctx, stranger, id)
	_, unknown := n.Result(ctx, stranger, "019f0000-0000-7000-8000-000000000000")
	if fault.KindOf(foreign) != fault.NotFound || fmt.Sprint(foreign) != fmt.Sprint(unknown) {
		t.Errorf("another's operation answers %v, an unknown one %v", foreign, unknown)
	}
	history, err := n.History(ctx, stranger, "t1")
	must(t, err)
	list, _, err := n.List(ctx, stranger, ledger.Filter{Limit: 10})
	must(t, err)
	same(t, "what a stranger sees", len(history)+len(list), 0)

	ends := func(id string) string {
		var r *result.Result
		n.Until("it is settled", func() bool {
			r, err = n.Result(ctx, stranger, id)
			must(t, err)
			return r.Status != filing.Processing
		})
		return fmt.Sprint(r.Status, codesOf(r))
	}
	same(t, "another's supplier", ends(n.HandAs(stranger, transaction.Invoice, invoice(byNumber, mine, "f1"))),
		"FAILURE[supplier_unknown]")
	same(t, "nobody's supplier", ends(n.HandAs(stranger, transaction.Invoice, invoice(byNumber, "nobody", "f2"))),
		"FAILURE[supplier_unknown]")
	same(t, "another's original", ends(n.HandAs(stranger, transaction.Credit, correction(byNumber, "t1", "f3"))),
		"FAILURE[reference_unknown]")
	// The same transaction_id is each client's own.
	theirs := n.SupplierOf(stranger, byNumber, "s2")
	same(t, "their t1", ends(n.HandAs(stranger, transaction.Invoice, invoice(byNumber, theirs, "t1"))), "SUCCESS[]")
	same(t, "registrations", len(a.Registered(byNumber)), 2)
	same(t, "corrections of mine", len(n.Show(id).Corrections), 0)
}

// Many nodes, suppliers, outages and lost answers: each transaction once.
func TestTwoNodesFileEachTransactionOnce(t *testing.T) {
	t.Parallel()
	const suppliers, each = 4, 12
	address := dbtest.MigratedURL(t)
	a := newAuthorities(t)
	nodes := []*node{newNode(t, dbtest.Open(t, db.Config{URL: address}), a.Setup()),
		newNode(t, dbtest.Open(t, db.Config{URL: address}), a.Setup())}
	nodes[1].Beside(nodes[0])
	a.Script(byNumber, authority.Step{Outcome: authority.DropAnswer}, authority.Step{Outcome: authority.Unavailable},
		authority.Step{Outcome: authority.Garbage})
	var wg sync.WaitGroup
	ids := make(chan string, suppliers*each*2)
	for s := range suppliers {
		supplier := nodes[0].Supplier(byNumber, fmt.Sprint("s", s))
		for i := range each {
			for _, n := range nodes { // both nodes are asked for the same
				wg.Go(func() { ids <- n.File(invoice(byNumber, supplier, fmt.Sprintf("t%d-%d", s, i))) })
			}
		}
	}
	for _, n := range nodes {
		n.Start()
	}
	wg.Wait()
	close(ids)
	for id := range ids {
		nodes[0].Until("it is settled", func() bool { return nodes[0].Show(id).Status == filing.Success })
	}
	same(t, "registrations", len(a.Registered(byNumber)), suppliers*each)
	same(t, "events", one[int64](t, nodes[0].DB, "SELECT count(*) FROM webhook_events"), suppliers*each*2)
	same(t, "open", one[int64](t, nodes[0].DB, "SELECT sum(open) FROM transactions"), 0)
}
