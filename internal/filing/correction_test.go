package filing_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"tributary/internal/filing"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func TestACreditTakesBackTheWhole(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.supplier(byNumber, "s1")
	customer := map[string]any{"legal_name": "Buyer", "type": "BUSINESS"}
	original := n.file(invoice(byNumber, supplier, "t1").with("customer", customer))
	n.succeeds(original)
	r := n.succeeds(n.submit(transaction.Credit, correction(byNumber, "t1", "c1")))
	same(t, "kind", r.Kind, transaction.Credit)
	same(t, "reference", *r.ReferenceID, "t1")
	same(t, "totals", fmt.Sprint(*r.TotalAmount, *r.TotalNetAmount, *r.TotalTaxAmount), "-22710 -18168 -4542")
	same(t, "line", fmt.Sprint(r.Items[0].UnitPrice, r.Items[0].NetPrice, r.Items[0].Taxes[0].Amount), "-7570 -18168 -4542")
	same(t, "parties", fmt.Sprint(r.Customer.LegalName, " ", *r.Supplier.ID == supplier, " ", *r.CurrencyCode), "Buyer true EUR")

	o := n.result(original)
	same(t, "the original's status", o.Status, filing.Success)
	same(t, "the original's amount", *o.TotalAmount, 22710)
	same(t, "its corrections", fmt.Sprint(o.Corrections), fmt.Sprint([]filing.CorrectionEntry{{TransactionID: "c1", OperationID: r.OperationID, Kind: transaction.Credit, Status: filing.Success}}))
	same(t, "registered", fmt.Sprint(a.registered(byNumber)), "[N-t1 N-c1]")

	// One full credit or one cancellation, and nothing after it.
	n.fails(n.submit(transaction.Credit, correction(byNumber, "t1", "c2")), fault.ReferenceAlreadyCorrected)
	n.fails(n.submit(transaction.Cancellation, correction(byNumber, "t1", "c3")), fault.ReferenceAlreadyCorrected)
	n.fails(n.submit(transaction.Adjustment, invoice(byNumber, supplier, "c4").adjusts("t1", -1)), fault.ReferenceAlreadyCorrected)
	same(t, "its corrections", len(n.result(original).Corrections), 1)
	same(t, "registrations", len(a.registered(byNumber)), 2)
}

func TestACancellationIsNotCorrected(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	supplier := n.supplier(byNumber, "s1")
	n.succeeds(n.file(invoice(byNumber, supplier, "t1")))
	r := n.succeeds(n.submit(transaction.Cancellation, correction(byNumber, "t1", "x1").with("transaction_number", "")))
	same(t, "amount", *r.TotalAmount, -22710)
	if r.Number == nil || *r.Number != *r.UniqueNumber {
		t.Errorf("without a number of its own it is known by %v, unique %v", r.Number, *r.UniqueNumber)
	}
	for _, kind := range []transaction.Kind{transaction.Credit, transaction.Cancellation} {
		n.fails(n.submit(kind, correction(byNumber, "x1", "of-x1-"+string(kind))), fault.UnsupportedOperation)
	}
	n.fails(n.submit(transaction.Adjustment, invoice(byNumber, supplier, "a1").adjusts("x1", -1)), fault.UnsupportedOperation)
}

func TestAdjustmentsGoUpToTheSumAndNotPastIt(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	supplier := n.supplier(byNumber, "s1")
	original := n.file(invoice(byNumber, supplier, "t1"))
	n.succeeds(original)
	adjust := func(id string, price int64) string {
		return n.submit(transaction.Adjustment, invoice(byNumber, supplier, id).adjusts("t1", price))
	}
	r := n.succeeds(adjust("a1", -20000))
	same(t, "an adjustment shows its own amount", *r.TotalAmount, -20000)
	n.fails(adjust("a2", -2711), fault.ReferenceExceeded) // one past the sum
	n.fails(n.submit(transaction.Credit, correction(byNumber, "t1", "c1")), fault.ReferenceExceeded)
	n.succeeds(adjust("a3", -2710)) // exactly to it
	n.fails(adjust("a4", -1), fault.ReferenceExceeded)
	n.succeeds(adjust("a2", 1)) // upwards gives room again, under an id that failed before
	n.succeeds(adjust("a4", -1))
	var ids []string
	for _, c := range n.result(original).Corrections {
		ids = append(ids, c.TransactionID)
	}
	same(t, "corrections", fmt.Sprint(ids), "[a1 a3 a2 a4]")
}

// A refused correction gives back what it had reserved.
func TestARejectedCorrectionReservesNothing(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	n.succeeds(n.file(invoice(byNumber, n.supplier(byNumber, "s1"), "t1")))
	a.script(byNumber, country.Step{Outcome: country.Reject})
	n.fails(n.submit(transaction.Credit, correction(byNumber, "t1", "c1")), fault.AuthorityRejected)
	n.succeeds(n.submit(transaction.Credit, correction(byNumber, "t1", "c2")))
}

// Two credits at once, on both engines: one succeeds.
func TestOfTwoCreditsOneSucceeds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.setup()).start()
		supplier := n.supplier(byNumber, "s1")
		for round := range 2 {
			original := fmt.Sprint("t", round)
			n.succeeds(n.file(invoice(byNumber, supplier, original)))
			var ids [4]string
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					ids[i] = n.submit(transaction.Credit, correction(byNumber, original, fmt.Sprint(original, "-c", i)))
				})
			}
			wg.Wait()
			won := 0
			for _, id := range ids {
				if r := n.settled(id); r.Status == filing.Success {
					won++
				} else if !slices.Equal(codesOf(r), []fault.Code{fault.ReferenceAlreadyCorrected}) {
					t.Errorf("a loser has %v", codesOf(r))
				}
			}
			same(t, "credits that succeeded", won, 1)
		}
		same(t, "registrations", len(a.registered(byNumber)), 4)
	})
}

// In a chain a refused correction leaves no hole and stops nobody: links after
// it are built anew.
func TestARefusedCorrectionLeavesTheChainWhole(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.setup()).start()
		supplier := n.supplier(byChain, "s1")
		n.succeeds(n.file(invoice(byChain, supplier, "t1")))
		n.stop()
		// Adjustments name their supplier and so meet in one batch.
		first := n.submit(transaction.Adjustment, invoice(byChain, supplier, "a1").adjusts("t1", -20000))
		second := n.submit(transaction.Adjustment, invoice(byChain, supplier, "a2").adjusts("t1", -20000))
		third := n.file(invoice(byChain, supplier, "t2"))
		fourth := n.submit(transaction.Adjustment, invoice(byChain, supplier, "a3").adjusts("t1", -20001))
		fifth := n.file(invoice(byChain, supplier, "t3"))
		n.start()
		n.succeeds(first)
		n.fails(second, fault.ReferenceExceeded)
		n.succeeds(third)
		n.fails(fourth, fault.ReferenceExceeded)
		n.succeeds(fifth)
		same(t, "registered", fmt.Sprint(a.registered(byChain)), "[N-t1 N-a1 N-t2 N-t3]")
		same(t, "crash counts", one[int64](t, d, "SELECT max(crashes) FROM operations"), 0)
	})
}

func TestACorrectionWaitsForItsOriginal(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.setup()).start()
		supplier := n.supplier(byNumber, "s1")
		hold := make(chan struct{})
		n.when("sent", func(string) { <-hold })
		a.script(byNumber, country.Step{Outcome: country.Reject})
		original := n.file(invoice(byNumber, supplier, "t1"))
		again := n.file(invoice(byNumber, supplier, "t1"))
		credit := n.submit(transaction.Credit, correction(byNumber, "t1", "c1"))
		ofCredit := n.submit(transaction.Credit, correction(byNumber, "c1", "c2")) // and one that waits for the waiting one
		n.until("they wait", func() bool {
			return n.stage(credit) == string(filing.Blocked) && n.stage(ofCredit) == string(filing.Blocked)
		})
		same(t, "what the client sees", n.result(credit).Status, filing.Processing)
		close(hold)
		n.fails(original, fault.AuthorityRejected) // the first attempt fails, the second succeeds
		n.succeeds(again)
		n.succeeds(credit)
		n.succeeds(ofCredit)
	})
}

func TestWhatACorrectionCannotReferTo(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.supplier(byNumber, "s1")
	n.fails(n.submit(transaction.Credit, correction(byNumber, "nobody", "c1")), fault.ReferenceUnknown)
	a.script(byNumber, country.Step{Outcome: country.Reject})
	n.fails(n.file(invoice(byNumber, supplier, "t1")), fault.AuthorityRejected)
	n.fails(n.submit(transaction.Credit, correction(byNumber, "t1", "c2")), fault.ReferenceNotSuccessful)

	n.succeeds(n.file(invoice(byNumber, supplier, "t2")))
	n.fails(n.submit(transaction.Credit, correction(byHash, "t2", "c3")), fault.ValidationMatchInvalid) // another country
	other := n.supplier(byNumber, "s2")
	n.fails(n.submit(transaction.Adjustment, invoice(byNumber, other, "c4").adjusts("t2", -1)), fault.ValidationMatchInvalid)
	_, err := n.Submit(t.Context(), caller(client), transaction.Credit, correction(byNumber, "c5", "c5").body(t))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "validation_match_invalid reference_transaction_id")
	same(t, "registrations", len(a.registered(byNumber)), 1)
}

// Corrections that refer to each other would wait for ever.
func TestCorrectionsInACircleFail(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.setup())
		supplier := n.supplier(byNumber, "s1")
		var ids []string
		for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
			ids = append(ids, n.submit(transaction.Adjustment, invoice(byNumber, supplier, pair[0]).adjusts(pair[1], -1)))
		}
		n.start()
		for _, id := range ids {
			n.fails(id, fault.ReferenceNotSuccessful)
		}
	})
}

func TestABackfilledDocumentCanBeCorrected(t *testing.T) {
	t.Parallel()
	n, a := filer(t)
	supplier := n.supplier(byNumber, "s1")
	backfill := func(id string) paper {
		return paper{"country_code": byNumber, "transaction_id": id, "transaction_number": "OLD-" + id, "transaction_date": "2025-03-01T12:30:00Z", "tax_authority_id_1": "ELSEWHERE"}
	}
	r := n.succeeds(n.submit(transaction.Backfill, backfill("b1")))
	same(t, "kind and id", fmt.Sprint(r.Kind, *r.AuthorityID1), "BACKFILLELSEWHERE")
	same(t, "registrations", len(a.registered(byNumber)), 0)
	// Without supplier and items it can be adjusted only, as far as anybody likes.
	n.fails(n.submit(transaction.Credit, correction(byNumber, "b1", "c1")), fault.UnsupportedOperation)
	n.fails(n.submit(transaction.Cancellation, correction(byNumber, "b1", "c2")), fault.UnsupportedOperation)
	n.succeeds(n.submit(transaction.Adjustment, invoice(byNumber, supplier, "a1").adjusts("b1", -999999)))

	whole := backfill("b2").with("supplier", map[string]any{"id": supplier}).with("items", []any{item(3, 7570)}).with("currency_code", "EUR")
	n.succeeds(n.submit(transaction.Backfill, whole))
	n.fails(n.submit(transaction.Adjustment, invoice(byNumber, supplier, "a2").adjusts("b2", -22711)), fault.ReferenceExceeded)
	same(t, "credit", *n.succeeds(n.submit(transaction.Credit, correction(byNumber, "b2", "c3"))).TotalAmount, -22710)
	n.fails(n.submit(transaction.Backfill, backfill("b3").with("supplier", map[string]any{"id": "nobody"})), fault.SupplierUnknown)
	same(t, "registered", fmt.Sprint(a.registered(byNumber)), "[N-a1 N-c3]")
}

// The pack's last day for an operation is FAILURE; an operation it never has is refused at once.
func TestADeadlineForCorrections(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, dbtest.SQLite(t), o.setup()).start()
	supplier := n.supplier(officeCode, "s1")
	today := n.d.Now()
	n.succeeds(n.file(invoice(officeCode, supplier, "old").with("transaction_date", filing.Stamp(today.AddDate(0, 0, -2)))))
	n.succeeds(n.file(invoice(officeCode, supplier, "new").with("transaction_date", filing.Stamp(today))))
	n.fails(n.submit(transaction.Credit, correction(officeCode, "old", "c1")), fault.UnsupportedOperation)
	n.succeeds(n.submit(transaction.Credit, correction(officeCode, "new", "c2")))
	n.succeeds(n.submit(transaction.Cancellation, correction(officeCode, "old", "c3")))
}

func TestANumberUsedBeforeIsAWarning(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	// By its own key the authority lets a number pass twice.
	supplier, other := n.supplier(byKey, "s1"), n.supplier(byKey, "s2")
	numbered := func(supplier, id string) string {
		return n.file(invoice(byKey, supplier, id).with("transaction_number", "7"))
	}
	n.succeeds(numbered(supplier, "t1"))
	n.succeeds(numbered(other, "t2")) // another supplier's numbers are its own
	r := n.succeeds(numbered(supplier, "t3"), fault.NumberReused)
	same(t, "the warning", fmt.Sprint(r.Errors[0].Type, " ", r.Errors[0].Field), "warning transaction_number")
	n.succeeds(numbered(supplier, "t4"), fault.NumberReused)
	n.succeeds(n.file(invoice(byKey, supplier, "t5")))
}

// Two in one batch: the second is told. (In parallel lanes both may pass unseen: it is a warning, not a lock.)
func TestANumberUsedTwiceInOneBatchIsAWarning(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), newOffice(country.ByKey).setup())
	supplier := n.supplier(officeCode, "s1")
	first := n.file(invoice(officeCode, supplier, "t1").with("transaction_number", "8"))
	second := n.file(invoice(officeCode, supplier, "t2").with("transaction_number", "8"))
	n.start()
	n.succeeds(first)
	n.succeeds(second, fault.NumberReused)
}
