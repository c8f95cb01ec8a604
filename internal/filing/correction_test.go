package filing_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/result"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func TestACreditTakesBackTheWhole(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	customer := map[string]any{"legal_name": "Buyer", "type": "BUSINESS"}
	original := n.File(invoice(byNumber, supplier, "t1").With("customer", customer))
	n.Succeeds(original)
	r := n.Succeeds(n.Hand(transaction.Credit, correction(byNumber, "t1", "c1")))
	same(t, "kind", r.Kind, transaction.Credit)
	same(t, "reference", *r.ReferenceID, "t1")
	same(t, "totals", fmt.Sprint(*r.TotalAmount, *r.TotalNetAmount, *r.TotalTaxAmount), "-22710 -18168 -4542")
	same(t, "line", fmt.Sprint(r.Items[0].UnitPrice, r.Items[0].NetPrice, r.Items[0].Taxes[0].Amount),
		"-7570 -18168 -4542")
	same(t, "parties", fmt.Sprint(r.Customer.LegalName, " ", *r.Supplier.ID == supplier, " ", *r.CurrencyCode),
		"Buyer true EUR")

	o := n.Show(original)
	same(t, "the original's status", o.Status, filing.Success)
	same(t, "the original's amount", *o.TotalAmount, 22710)
	same(t, "its corrections", fmt.Sprint(o.Corrections),
		fmt.Sprint([]result.CorrectionEntry{{TransactionID: "c1", OperationID: r.OperationID, Kind: transaction.Credit,
			Status: filing.Success}}))
	same(t, "registered", fmt.Sprint(a.Registered(byNumber)), "[N-t1 N-c1]")

	// One full credit or one cancellation, and nothing after it.
	n.Fails(n.Hand(transaction.Credit, correction(byNumber, "t1", "c2")), fault.ReferenceAlreadyCorrected)
	n.Fails(n.Hand(transaction.Cancellation, correction(byNumber, "t1", "c3")), fault.ReferenceAlreadyCorrected)
	n.Fails(n.Hand(transaction.Adjustment, invoice(byNumber, supplier, "c4").Adjusts("t1", -1)),
		fault.ReferenceAlreadyCorrected)
	same(t, "its corrections", len(n.Show(original).Corrections), 1)
	same(t, "registrations", len(a.Registered(byNumber)), 2)
}

func TestACancellationIsNotCorrected(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	n.Succeeds(n.File(invoice(byNumber, supplier, "t1")))
	r := n.Succeeds(n.Hand(transaction.Cancellation, correction(byNumber, "t1", "x1").With("transaction_number", "")))
	same(t, "amount", *r.TotalAmount, -22710)
	if r.Number == nil || *r.Number != *r.UniqueNumber {
		t.Errorf("without a number of its own it is known by %v, unique %v", r.Number, *r.UniqueNumber)
	}
	for _, kind := range []transaction.Kind{transaction.Credit, transaction.Cancellation} {
		n.Fails(n.Hand(kind, correction(byNumber, "x1", "of-x1-"+string(kind))), fault.UnsupportedOperation)
	}
	n.Fails(n.Hand(transaction.Adjustment, invoice(byNumber, supplier, "a1").Adjusts("x1", -1)),
		fault.UnsupportedOperation)
}

func TestAdjustmentsGoUpToTheSumAndNotPastIt(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	original := n.File(invoice(byNumber, supplier, "t1"))
	n.Succeeds(original)
	adjust := func(id string, price int64) string {
		return n.Hand(transaction.Adjustment, invoice(byNumber, supplier, id).Adjusts("t1", price))
	}
	r := n.Succeeds(adjust("a1", -20000))
	same(t, "an adjustment shows its own amount", *r.TotalAmount, -20000)
	n.Fails(adjust("a2", -2711), fault.ReferenceExceeded) // one past the sum
	n.Fails(n.Hand(transaction.Credit, correction(byNumber, "t1", "c1")), fault.ReferenceExceeded)
	n.Succeeds(adjust("a3", -2710)) // exactly to it
	n.Fails(adjust("a4", -1), fault.ReferenceExceeded)
	n.Succeeds(adjust("a2", 1)) // upwards gives room again, under an id that failed before
	n.Succeeds(adjust("a4", -1))
	var ids []string
	for _, c := range n.Show(original).Corrections {
		ids = append(ids, c.TransactionID)
	}
	same(t, "corrections", fmt.Sprint(ids), "[a1 a3 a2 a4]")
}

// A refused correction gives back what it had reserved.
func TestARejectedCorrectionReservesNothing(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	n.Succeeds(n.File(invoice(byNumber, n.Supplier(byNumber, "s1"), "t1")))
	a.Script(byNumber, authority.Step{Outcome: authority.Reject})
	n.Fails(n.Hand(transaction.Credit, correction(byNumber, "t1", "c1")), fault.AuthorityRejected)
	n.Succeeds(n.Hand(transaction.Credit, correction(byNumber, "t1", "c2")))
}

// Two credits at once, on both engines: one succeeds.
func TestOfTwoCreditsOneSucceeds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		for round := range 2 {
			original := fmt.Sprint("t", round)
			n.Succeeds(n.File(invoice(byNumber, supplier, original)))
			var ids [4]string
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					ids[i] = n.Hand(transaction.Credit, correction(byNumber, original, fmt.Sprint(original, "-c", i)))
				})
			}
			wg.Wait()
			won := 0
			for _, id := range ids {
				if r := n.Settled(id); r.Status == filing.Success {
					won++
				} else if !slices.Equal(codesOf(r), []fault.Code{fault.ReferenceAlreadyCorrected}) {
					t.Errorf("a loser has %v", codesOf(r))
				}
			}
			same(t, "credits that succeeded", won, 1)
		}
		same(t, "registrations", len(a.Registered(byNumber)), 4)
	})
}

// In a chain a refused correction leaves no hole and stops nobody: links after
// it are built anew.
func TestARefusedCorrectionLeavesTheChainWhole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byChain, "s1")
		n.Succeeds(n.File(invoice(byChain, supplier, "t1")))
		n.Stop()
		// Adjustments name their supplier and so meet in one batch.
		first := n.Hand(transaction.Adjustment, invoice(byChain, supplier, "a1").Adjusts("t1", -20000))
		second := n.Hand(transaction.Adjustment, invoice(byChain, supplier, "a2").Adjusts("t1", -20000))
		third := n.File(invoice(byChain, supplier, "t2"))
		fourth := n.Hand(transaction.Adjustment, invoice(byChain, supplier, "a3").Adjusts("t1", -20001))
		fifth := n.File(invoice(byChain, supplier, "t3"))
		n.Start()
		n.Succeeds(first)
		n.Fails(second, fault.ReferenceExceeded)
		n.Succeeds(third)
		n.Fails(fourth, fault.ReferenceExceeded)
		n.Succeeds(fifth)
		same(t, "registered", fmt.Sprint(a.Registered(byChain)), "[N-t1 N-a1 N-t2 N-t3]")
		same(t, "crash counts", one[int64](t, d, "SELECT max(crashes) FROM operations"), 0)
	})
}

func TestACorrectionWaitsForItsOriginal(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		hold := make(chan struct{})
		n.When("sent", func(string) { <-hold })
		a.Script(byNumber, authority.Step{Outcome: authority.Reject})
		original := n.File(invoice(byNumber, supplier, "t1"))
		again := n.File(invoice(byNumber, supplier, "t1"))
		credit := n.Hand(transaction.Credit, correction(byNumber, "t1", "c1"))
		ofCredit := n.Hand(transaction.Credit, correction(byNumber, "c1", "c2")) // and one that waits for the waiting one
		n.Until("they wait", func() bool {
			return n.Stage(credit) == string(filing.Blocked) && n.Stage(ofCredit) == string(filing.Blocked)
		})
		same(t, "what the client sees", n.Show(credit).Status, filing.Processing)
		close(hold)
		n.Fails(original, fault.AuthorityRejected) // the first attempt fails, the second succeeds
		n.Succeeds(again)
		n.Succeeds(credit)
		n.Succeeds(ofCredit)
	})
}

func TestWhatACorrectionCannotReferTo(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	n.Fails(n.Hand(transaction.Credit, correction(byNumber, "nobody", "c1")), fault.ReferenceUnknown)
	a.Script(byNumber, authority.Step{Outcome: authority.Reject})
	n.Fails(n.File(invoice(byNumber, supplier, "t1")), fault.AuthorityRejected)
	n.Fails(n.Hand(transaction.Credit, correction(byNumber, "t1", "c2")), fault.ReferenceNotSuccessful)

	n.Succeeds(n.File(invoice(byNumber, supplier, "t2")))
	n.Fails(n.Hand(transaction.Credit, correction(byHash, "t2", "c3")), fault.ValidationMatchInvalid) // another country
	other := n.Supplier(byNumber, "s2")
	n.Fails(n.Hand(transaction.Adjustment, invoice(byNumber, other, "c4").Adjusts("t2", -1)), fault.ValidationMatchInvalid)
	_, err := n.Submit(t.Context(), caller(client), transaction.Credit, correction(byNumber, "c5", "c5").Body(t))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "validation_match_invalid reference_transaction_id")
	same(t, "registrations", len(a.Registered(byNumber)), 1)
}

// Corrections that refer to each other would wait for ever.
func TestCorrectionsInACircleFail(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup())
		supplier := n.Supplier(byNumber, "s1")
		var ids []string
		for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
			ids = append(ids, n.Hand(transaction.Adjustment, invoice(byNumber, supplier, pair[0]).Adjusts(pair[1], -1)))
		}
		n.Start()
		for _, id := range ids {
			n.Fails(id, fault.ReferenceNotSuccessful)
		}
	})
}

func TestABackfilledDocumentCanBeCorrected(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.Supplier(byNumber, "s1")
	backfill := func(id string) paper {
		return paper{"country_code": byNumber, "transaction_id": id, "transaction_number": "OLD-" + id,
			"transaction_date": "2025-03-01T12:30:00Z", "tax_authority_id_1": "ELSEWHERE"}
	}
	r := n.Succeeds(n.Hand(transaction.Backfill, backfill("b1")))
	same(t, "kind and id", fmt.Sprint(r.Kind, *r.AuthorityID1), "BACKFILLELSEWHERE")
	same(t, "registrations", len(a.Registered(byNumber)), 0)
	// Without supplier and items it can be adjusted only, as far as anybody likes.
	n.Fails(n.Hand(transaction.Credit, correction(byNumber, "b1", "c1")), fault.UnsupportedOperation)
	n.Fails(n.Hand(transaction.Cancellation, correction(byNumber, "b1", "c2")), fault.UnsupportedOperation)
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(byNumber, supplier, "a1").Adjusts("b1", -999999)))

	whole := backfill("b2").With("supplier", map[string]any{"id": supplier}).With("items",
		[]any{item(3, 7570)}).With("currency_code", "EUR")
	n.Succeeds(n.Hand(transaction.Backfill, whole))
	n.Fails(n.Hand(transaction.Adjustment, invoice(byNumber, supplier, "a2").Adjusts("b2", -22711)),
		fault.ReferenceExceeded)
	same(t, "credit", *n.Succeeds(n.Hand(transaction.Credit, correction(byNumber, "b2", "c3"))).TotalAmount, -22710)
	n.Fails(n.Hand(transaction.Backfill, backfill("b3").With("supplier", map[string]any{"id": "nobody"})),
		fault.SupplierUnknown)
	same(t, "registered", fmt.Sprint(a.Registered(byNumber)), "[N-a1 N-c3]")
}

// The pack's last day for an operation is FAILURE; an operation it never has is refused at once.
func TestADeadlineForCorrections(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, sqlite(t), o.Setup()).Start()
	supplier := n.Supplier(officeCode, "s1")
	today := n.DB.Now()
	n.Succeeds(n.File(invoice(officeCode, supplier, "old").With("transaction_date",
		result.Stamp(today.AddDate(0, 0, -2)))))
	n.Succeeds(n.File(invoice(officeCode, supplier, "new").With("transaction_date", result.Stamp(today))))
	n.Fails(n.Hand(transaction.Credit, correction(officeCode, "old", "c1")), fault.UnsupportedOperation)
	n.Succeeds(n.Hand(transaction.Credit, correction(officeCode, "new", "c2")))
	n.Succeeds(n.Hand(transaction.Cancellation, correction(officeCode, "old", "c3")))
}

func TestANumberUsedBeforeIsAWarning(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	// By its own key the authority lets a number pass twice.
	supplier, other := n.Supplier(byKey, "s1"), n.Supplier(byKey, "s2")
	numbered := func(supplier, id string) string {
		return n.File(invoice(byKey, supplier, id).With("transaction_number", "7"))
	}
	n.Succeeds(numbered(supplier, "t1"))
	n.Succeeds(numbered(other, "t2")) // another supplier's numbers are its own
	r := n.Succeeds(numbered(supplier, "t3"), fault.NumberReused)
	same(t, "the warning", fmt.Sprint(r.Errors[0].Type, " ", r.Errors[0].Field), "warning transaction_number")
	n.Succeeds(numbered(supplier, "t4"), fault.NumberReused)
	n.Succeeds(n.File(invoice(byKey, supplier, "t5")))
}

// Two in one batch: the second is told. (In parallel lanes both may pass unseen: it is a warning, not a lock.)
func TestANumberUsedTwiceInOneBatchIsAWarning(t *testing.T) {
	t.Parallel()
	n := newNode(t, sqlite(t), newOffice(country.ByKey).Setup())
	supplier := n.Supplier(officeCode, "s1")
	first := n.File(invoice(officeCode, supplier, "t1").With("transaction_number", "8"))
	second := n.File(invoice(officeCode, supplier, "t2").With("transaction_number", "8"))
	n.Start()
	n.Succeeds(first)
	n.Succeeds(second, fault.NumberReused)
}
