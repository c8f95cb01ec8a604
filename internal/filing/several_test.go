package filing_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
	"tributary/internal/result"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// takes is an adjustment of several sales: how much of it is for each.
func takes(supplier, id string, of ...transaction.Share) filingtest.Paper {
	p := invoice(officeCode, supplier, id)
	var list []any
	sum := int64(0)
	for _, s := range of {
		list = append(list, map[string]any{"transaction_id": s.TransactionID, "amount": s.Amount})
		sum += s.Amount
	}
	return p.With("references", list).With("items", []any{filingtest.Item(1, sum)})
}

// An adjustment of several sales is filed once, knows all of them, and counts in
// the sum of each.
func TestOneAdjustmentOfSeveralSales(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	o.Habits.Parallel = 4
	var mu sync.Mutex
	var known []string
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(in.Shares) > 0 {
			known = nil
			for _, s := range in.Shares {
				known = append(known, fmt.Sprint(s.Transaction.ID, s.Amount, in.Original.Transaction.ID, len(s.Corrections)))
			}
		}
		return o.Draft(in)
	}
	n := filingtest.NewNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	first, second := n.File(invoice(officeCode, supplier, "t1")), n.File(invoice(officeCode, supplier, "t2"))
	r := n.Succeeds(n.Hand(transaction.Adjustment,
		takes(supplier, "a1", transaction.Share{TransactionID: "t1", Amount: -20000},
			transaction.Share{TransactionID: "t2", Amount: -700})))
	same(t, "the result", fmt.Sprint(*r.ReferenceID, *r.TotalAmount, shares(r)), "t1-20700 [{t1 -20000} {t2 -700}]")
	same(t, "what the pack knows", fmt.Sprint(known), "[t1-20000t10 t2-700t10]")
	for _, id := range []string{first, second} {
		same(t, "its corrections", len(n.Show(id).Corrections), 1)
	}
	// It is refused as a whole where one of them has not enough left, and leaves nothing in the books of the others.
	op := n.Hand(transaction.Adjustment, takes(supplier, "a2", transaction.Share{TransactionID: "t2", Amount: -1},
		transaction.Share{TransactionID: "t1", Amount: -2711}))
	n.Fails(op, fault.ReferenceExceeded)
	same(t, "the field", n.Show(op).Errors[0].Field, "references.1.transaction_id")
	n.Fails(n.Hand(transaction.Adjustment,
		takes(supplier, "a3", transaction.Share{TransactionID: "t2", Amount: -1},
			transaction.Share{TransactionID: "nobody", Amount: -1})), fault.ReferenceUnknown)
	n.Succeeds(n.Hand(transaction.Adjustment,
		takes(supplier, "a4", transaction.Share{TransactionID: "t2", Amount: -22010},
			transaction.Share{TransactionID: "t1", Amount: -2710})))
	n.Fails(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "a5").Adjusts("t2", -1)), fault.ReferenceExceeded)
	same(t, "the second knows the first", fmt.Sprint(known), "[t2-22010t21 t1-2710t21]")
	// Taken back as a whole, it no longer counts in any of them.
	n.Succeeds(n.Hand(transaction.Cancellation, correction(officeCode, "a4", "c1")))
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "a6").Adjusts("t2", -22010)))
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "a7").Adjusts("t1", -2710)))
}

// Many at once over the same sales, in any order of them, never take more than there is.
func TestAdjustmentsOfSeveralSalesAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		o.Habits.Parallel = 4
		n := filingtest.NewNode(t, d, o.Setup()).Start()
		supplier := n.Supplier(officeCode, "s1")
		n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
		n.Succeeds(n.File(invoice(officeCode, supplier, "t2")))
		var ops []string
		for i := range 12 {
			of := []transaction.Share{{TransactionID: "t1", Amount: -5000}, {TransactionID: "t2", Amount: -100}}
			if i%2 == 1 {
				slices.Reverse(of)
			}
			ops = append(ops, n.Hand(transaction.Adjustment, takes(supplier, fmt.Sprintf("a%d", i), of...)))
		}
		done := 0
		for _, op := range ops {
			if r := n.Settled(op); r.Status == filing.Success {
				done++
			} else {
				same(t, "why", r.Errors[0].Code, fault.ReferenceExceeded)
			}
		}
		same(t, "taken", done, 4)
	})
}

func TestSharesOfAnAdjustmentAddUp(t *testing.T) {
	t.Parallel()
	n := filingtest.NewNode(t, sqlite(t), newOffice(country.ByNumber).Setup())
	supplier := n.Supplier(officeCode, "s1")
	two := []transaction.Share{{TransactionID: "t1", Amount: -1}, {TransactionID: "t2", Amount: -1}}
	for what, p := range map[string]filingtest.Paper{
		"references":                  takes(supplier, "a1", two...).With("items", []any{filingtest.Item(1, -3)}),
		"references.1.transaction_id": takes(supplier, "a1", two[0], two[0]),
		"reference_transaction_id":    invoice(officeCode, supplier, "a1"),
	} {
		_, err := n.Submit(t.Context(), caller(client), transaction.Adjustment, p.Body(t))
		faults := transactiontest.FaultsIn(t, err)
		if !slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Field == what }) {
			t.Errorf("%s: %v", what, faults)
		}
	}
}

// What is decided later is printed with its original all the same.
func TestPaperOfALateDecisionNamesItsOriginals(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	s := o.Setup()
	var mu sync.Mutex
	named := map[string]string{}
	s.Render = func(_ context.Context, in filing.Issued) (document.Rendering, error) {
		mu.Lock()
		defer mu.Unlock()
		if in.Original != nil {
			named[in.Transaction.ID] = fmt.Sprint(in.Original.Transaction.Number, " ", len(in.Shares))
		}
		return document.Rendering{PDF: []byte("%PDF")}, nil
	}
	o.Habits.PollEvery = time.Millisecond
	o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
		return country.Receipt{Outcome: country.Pending, Handle: "later"}, nil
	}
	o.OnPoll = func(o *office, f country.Filing, _ country.Receipt) (country.Receipt, error) { return o.Take(f), nil }
	n := filingtest.NewNode(t, sqlite(t), s).Start()
	supplier := n.Supplier(officeCode, "s1")
	n.Succeeds(n.File(invoice(officeCode, supplier, "t1")))
	n.Succeeds(n.File(invoice(officeCode, supplier, "t2")))
	n.Succeeds(n.Hand(transaction.Adjustment,
		takes(supplier, "a1", transaction.Share{TransactionID: "t1", Amount: -100},
			transaction.Share{TransactionID: "t2", Amount: -100})))
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "a2").Adjusts("t2", -100)))
	mu.Lock()
	defer mu.Unlock()
	same(t, "of several", named["a1"], "N-t1 2")
	same(t, "of one", named["a2"], "N-t2 0")
}

// shares are the references of a result: whose, and how much.
func shares(r *result.Result) (list []transaction.Share) {
	for _, s := range r.References {
		list = append(list, transaction.Share{TransactionID: string(s.TransactionID), Amount: s.Amount})
	}
	return list
}
