package country_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// FuzzExamine: the checks never panic, whatever passed the decoder.
func FuzzExamine(f *testing.F) {
	f.Add([]byte(transactiontest.Typical))
	terms := termsOf(f, strictCountry())
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := country.Examine(transaction.Invoice, body, terms)
		if found := transactiontest.FaultsIn(t, err); (err == nil) != (got != nil) || len(found) > 100 {
			t.Fatalf("got %v with %d faults", got, len(found))
		}
		if err == nil && got.Totals.Net+got.Totals.Tax != got.Totals.Gross {
			t.Fatalf("totals %+v", got.Totals)
		}
	})
}
