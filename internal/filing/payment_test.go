package filing_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/transaction"
)

func received(code, id string, amount int64, of ...string) filingtest.Paper {
	p := filingtest.Paper{"country_code": code, "transaction_date": "2026-03-05T12:30:00Z", "transaction_id": id,
		"payments": []any{map[string]any{"type": "CASH", "amount": amount}}}
	if len(of) == 1 {
		return p.With("reference_transaction_id", of[0])
	}
	var list []any
	for _, each := range of {
		list = append(list, map[string]any{"transaction_id": each, "amount": amount / int64(len(of))})
	}
	return p.With("references", list)
}

// Payments for one sale are filed one after another, each knowing all before
// it, whatever order they come in and however many at once.
func TestPaymentsOfASaleFollowEachOther(t *testing.T) {
	t.Parallel()
	office := filingtest.NewOffice(country.ByNumber)
	office.Habits.Parallel = 4
	var mu sync.Mutex
	known := map[string][]int64{}
	office.OnPrepare = func(o *filingtest.Office, in country.Draft) (country.Filing, error) {
		mu.Lock()
		defer mu.Unlock()
		if in.Transaction.Kind == transaction.PaymentReport {
			var before []int64
			for _, paid := range in.Shares {
				sum := int64(0)
				for _, e := range paid.Corrections {
					for _, p := range e.Transaction.Shares {
						if p.TransactionID == paid.Transaction.ID && !e.Cancelled {
							sum += p.Amount
						}
					}
				}
				before = append(before, sum)
			}
			known[in.Transaction.ID] = before
		}
		return o.Draft(in)
	}
	n := filingtest.NewNode(t, sqlite(t), office.Setup()).Start()
	code := filingtest.OfficeCode
	supplier := n.Supplier(code, "s1")
	first := n.File(invoice(code, supplier, "t1"))
	n.File(invoice(code, supplier, "t2"))
	var ops []string
	for i := range 5 {
		ops = append(ops, n.Hand(transaction.PaymentReport, received(code, fmt.Sprintf("p%d", i), 100, "t1")))
	}
	both := n.Hand(transaction.PaymentReport, received(code, "pb", 1000, "t1", "t2"))
	for _, op := range ops {
		r := n.Succeeds(op)
		same(t, "what was received", fmt.Sprint(r.Kind, " ", *r.TotalAmount, shares(r), " ", *r.CurrencyCode, " ",
			*r.Supplier.ID == supplier, r.TotalNetAmount), "PAYMENT 100 [{t1 100}] EUR true <nil>")
	}
	same(t, "for two", fmt.Sprint(shares(n.Succeeds(both))), "[{t1 500} {t2 500}]")
	var sums []int64
	for i := range 5 {
		sums = append(sums, known[fmt.Sprintf("p%d", i)][0])
	}
	sums = append(sums, known["pb"][0])
	slices.Sort(sums)
	if slices.Equal(sums, slices.Compact(slices.Clone(sums))) == false || sums[0] != 0 || sums[5] > 900 {
		t.Errorf("two payments knew the same before them: %v", known)
	}
	same(t, "its payments", len(n.Show(first).Corrections), 6)
	same(t, "idempotent", n.Hand(transaction.PaymentReport, received(code, "p0", 100, "t1")), ops[0])
	// A payment hinders no correction, and is itself only cancelled.
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(code, supplier, "a1").Adjusts("t1", -22710)))
	for _, kind := range []transaction.Kind{transaction.Credit, transaction.PaymentReport} {
		body := correction(code, "p0", "of-p0-"+string(kind))
		if kind == transaction.PaymentReport {
			body = received(code, "of-p0", 5, "p0")
		}
		n.Fails(n.Hand(kind, body), fault.UnsupportedOperation)
	}
	n.Succeeds(n.Hand(transaction.Cancellation, correction(code, "p0", "x1")))
	n.Succeeds(n.Hand(transaction.PaymentReport, received(code, "p9", 7, "t1")))
	same(t, "the cancelled one does not count", known["p9"][0], 4*100+500)
	n.Fails(n.Hand(transaction.PaymentReport, received(code, "p10", 7, "nobody")), fault.ReferenceUnknown)
	n.Succeeds(n.Hand(transaction.Cancellation, correction(code, "t2", "x2")))
	n.Fails(n.Hand(transaction.PaymentReport, received(code, "p11", 7, "t2")), fault.ReferenceAlreadyCorrected)
	same(t, "one document each", len(office.Registered()), 12)
	same(t, "status", n.Show(first).Status, filing.Success)
}
