package country_test

import (
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// The whole of what a submit costs before it is stored.
func BenchmarkExamine(b *testing.B) {
	terms := termsOf(b, strictCountry())
	terms.Now = time.Now()
	body := []byte(transactiontest.Typical)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := country.Examine(transaction.Invoice, body, terms); err != nil {
			b.Fatal(err)
		}
	}
}
