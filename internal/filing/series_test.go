package filing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

// unnumbered is a sale without a number.
func unnumbered(t *testing.T, supplier, id, at string) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"country_code": byNumber, "currency_code": "EUR", "transaction_date": at, "transaction_id": id,
		"supplier": map[string]any{"id": supplier},
		"items": []any{map[string]any{"number": 1, "name": "Chair", "quantity": 1, "unit_price": 1000,
			"tax_breakdowns": []any{map[string]any{"rate": 20, "regime": "VAT"}}}},
	})
	must(t, err)
	return text
}

const seriesDay = "2026-01-31T10:00:00Z"

// 64 submits at once draw 64 consecutive numbers, and each transaction keeps
// its own whatever happens to its attempts.
func TestSixtyFourParallelSubmitsDrawConsecutiveNumbers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup())
		supplier := n.Supplier(byNumber, "one")
		made, err := n.Series.Create(t.Context(), client,
			series.Series{SupplierID: supplier, Pattern: "F{YYYY}-{N:6}", Yearly: true, Next: 7})
		must(t, err)
		const parallel = 64
		var wg sync.WaitGroup
		errs := make([]error, parallel)
		for i := range parallel {
			wg.Go(func() {
				_, errs[i] = n.Submit(t.Context(), caller(client), transaction.Invoice,
					unnumbered(t, supplier, fmt.Sprintf("s-%02d", i), seriesDay))
			})
		}
		wg.Wait()
		for _, err := range errs {
			must(t, err)
		}
		var numbers []string
		must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
			numbers, err = db.Collect(r, func(scan func(...any) error) (number string, err error) {
				return number, scan(&number)
			},
				"SELECT number FROM operations WHERE series = $1 ORDER BY number", made.ID)
			return err
		}))
		first := int64(1) // the year of the documents is not the one in which the series was made
		if d.Wall().UTC().Year() == 2026 {
			first = 7
		}
		for i, number := range numbers {
			if want := fmt.Sprintf("F2026-%06d", first+int64(i)); number != want {
				t.Fatalf("number %d is %s, want %s", i, number, want)
			}
		}
		same(t, "numbers", len(numbers), parallel)

		// Another attempt of the same transaction, and one of another year.
		before := one[string](t, d, "SELECT number FROM drawn_numbers WHERE transaction_id = $1", "s-00")
		again, err := n.Submit(t.Context(), caller(client), transaction.Invoice, unnumbered(t, supplier, "s-00", seriesDay))
		must(t, err)
		same(t, "number of a later attempt", one[string](t, d, "SELECT number FROM operations WHERE operation_id = $1",
			again), before)
		other, err := n.Submit(t.Context(), caller(client), transaction.Invoice,
			unnumbered(t, supplier, "of 2025", "2025-12-31T10:00:00Z"))
		must(t, err)
		same(t, "number of the year before", one[string](t, d, "SELECT number FROM operations WHERE operation_id = $1",
			other), "F2025-000001")
		same(t, "its result", *n.Show(other).Number+" "+*n.Show(other).Series, "F2025-000001 "+made.ID)
	})
}

// A filed document bears the drawn number; a failure keeps it, and a credit
// draws from a series of its own kind.
func TestDrawnNumbersAreFiledAndKeptByFailures(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	n := newNode(t, sqlite(t), a.Setup()).Start()
	supplier := n.Supplier(byNumber, "one")
	for kind, pattern := range map[transaction.Kind]string{transaction.Invoice: "F{N:3}", transaction.Credit: "C{N:3}"} {
		_, err := n.Series.Create(t.Context(), client, series.Series{SupplierID: supplier, Kind: kind, Pattern: pattern})
		must(t, err)
	}
	submit := func(kind transaction.Kind, body []byte) string {
		t.Helper()
		id, err := n.Submit(t.Context(), caller(client), kind, body)
		must(t, err)
		return id
	}
	a.Script(byNumber, authority.Step{Outcome: authority.Reject})
	failed := n.Fails(submit(transaction.Invoice, unnumbered(t, supplier, "a", seriesDay)), fault.AuthorityRejected)
	same(t, "a failure's number", *failed.Number, "F001")
	again := n.Succeeds(submit(transaction.Invoice, unnumbered(t, supplier, "a", seriesDay)))
	same(t, "the number of the next attempt", *again.Number, "F001")
	n.Succeeds(submit(transaction.Invoice, unnumbered(t, supplier, "b", seriesDay)))
	credit := fmt.Sprintf(`{"country_code": %q, "transaction_date": %q, "transaction_id": "credit of a", "reference_transaction_id": "a"}`, byNumber, seriesDay)
	credited := n.Succeeds(submit(transaction.Credit, []byte(credit)))
	same(t, "the credit's number", *credited.Number, "C001")
	if got := a.Registered(byNumber); !slices.Equal(got, []string{"F001", "F002", "C001"}) {
		t.Errorf("the authority holds %v", got)
	}
}

func TestSeriesThatCouldRepeatANumberAreRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, sqlite(t), newAuthorities(t).Setup())
	supplier := n.Supplier(byNumber, "one")
	for pattern, want := range map[string]fault.Code{
		"F{N:6}": "", "": fault.FieldRequired, "F": fault.FieldNotValid, "{N:6}{N:6}": fault.FieldNotValid,
		"{N}": fault.FieldNotValid, "{N:0}": fault.FieldNotValid,
		"{N:13}": fault.FieldNotValid, "{M}{N:1}": fault.FieldNotValid, "}{N:1}": fault.FieldNotValid,
		" {N:1}": fault.FieldNotValid, "{YYYY}{YY}-{N:12}": "",
		"0123456789012345678901234567890123456789{N:1}": fault.FieldNotValid, // with twelve digits longer than 50
	} {
		_, err := n.Series.Create(t.Context(), client, series.Series{SupplierID: supplier, Pattern: pattern})
		if got := codeOfFirst(err); want != got && !(want == "" && got == fault.CodeConflict) {
			t.Errorf("%q: %q (%v), want %q", pattern, got, err, want)
		}
	}
	if _, err := n.Series.Create(t.Context(), client,
		series.Series{SupplierID: supplier, Kind: transaction.Credit, Pattern: "C{N:1}", Yearly: true}); codeOfFirst(err) !=
		fault.FieldNotValid {
		t.Errorf("by years without a year: %v", err)
	}
	if _, err := n.Series.Create(t.Context(), client,
		series.Series{SupplierID: "nobody", Pattern: "C{N:1}"}); codeOfFirst(err) != fault.SupplierUnknown {
		t.Errorf("nobody's: %v", err)
	}
	if _, err := n.Series.Create(t.Context(), "another client",
		series.Series{SupplierID: supplier, Pattern: "C{N:1}"}); codeOfFirst(err) != fault.SupplierUnknown {
		t.Errorf("another client's: %v", err)
	}
	// Without a fitting series the number stays required.
	if _, err := n.Submit(t.Context(), caller("another client"), transaction.Invoice,
		unnumbered(t, supplier, "x", seriesDay)); codeOfFirst(err) != fault.FieldRequired {
		t.Errorf("without a series: %v", err)
	}
}

func codeOfFirst(err error) fault.Code {
	if refused, ok := errors.AsType[*fault.Error](err); ok && len(refused.Faults) > 0 {
		return refused.Faults[0].Code
	}
	return ""
}
