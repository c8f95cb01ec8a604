package transaction_test

import (
	"encoding/json"
	"testing"

	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func BenchmarkDecode(b *testing.B) {
	body := []byte(transactiontest.Typical)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := transaction.Decode(transaction.Invoice, body); err != nil {
			b.Fatal(err)
		}
	}
}

// The yardstick: what the standard library takes to read the same body without any check.
func BenchmarkStandardLibrary(b *testing.B) {
	body := []byte(transactiontest.Typical)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}
