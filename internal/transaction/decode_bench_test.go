package transaction_test

import (
	"encoding/json"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

func BenchmarkDecode(b *testing.B) {
	body := []byte(typicalBody)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := transaction.Decode(country.Invoice, body); err != nil {
			b.Fatal(err)
		}
	}
}

// The whole of what a submit costs before it is stored.
func BenchmarkExamine(b *testing.B) {
	terms := termsOf(b, strictCountry())
	terms.Now = time.Now()
	body := []byte(typicalBody)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transaction.Examine(country.Invoice, body, terms); err != nil {
			b.Fatal(err)
		}
	}
}

// The yardstick: what the standard library takes to read the same body without any check.
func BenchmarkStandardLibrary(b *testing.B) {
	body := []byte(typicalBody)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}
