package transaction_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

// FuzzDecode: whatever arrives is answered with a transaction or with faults.
// The standard library is the oracle for what is JSON at all, and for the
// numbers and texts of what was accepted.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(transactiontest.Typical))
	f.Add(transactiontest.ManyItems(20))
	kinds := []transaction.Kind{transaction.Invoice, transaction.Adjustment, transaction.Credit, transaction.Cancellation,
		transaction.Backfill}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range kinds {
			before := bytes.Clone(body)
			tx, warnings, err := transaction.Decode(kind, body)
			if !bytes.Equal(before, body) {
				t.Fatal("the body was changed")
			}
			found := transactiontest.FaultsIn(t, err)
			if len(found) > 100 || len(warnings) > 100 {
				t.Fatalf("%d faults, %d warnings", len(found), len(warnings))
			}
			if tx == nil {
				if len(found) != 1 || found[0].Code != fault.JSONNotValid {
					t.Fatalf("no transaction, but %v", found)
				}
				continue
			}
			if !json.Valid(body) || !utf8.Valid(body) {
				t.Fatal("accepted what is not JSON")
			}
			for _, w := range warnings {
				if w.Type != fault.Warning || w.Code != fault.FieldUnknown || !utf8.ValidString(w.Field) {
					t.Fatalf("warning %+v", w)
				}
			}
			if err == nil {
				compareWithStandardLibrary(t, tx, body)
				transaction.Calculate(tx.Items)
			}
		}
	})
}

func compareWithStandardLibrary(t *testing.T, tx *transaction.Transaction, body []byte) {
	var plain map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	if plain["transaction_id"] != tx.ID || plain["country_code"] != tx.CountryCode {
		t.Fatalf("read %q and %q of %v", tx.ID, tx.CountryCode, plain)
	}
	items, _ := plain["items"].([]any)
	if len(items) != len(tx.Items) {
		t.Fatalf("%d items, want %d", len(tx.Items), len(items))
	}
	for i, item := range items {
		members := item.(map[string]any)
		price, ok := exact(members["unit_price"])
		if !ok {
			continue
		}
		if price.Cmp(new(big.Rat).SetInt64(tx.Items[i].UnitPrice)) != 0 {
			t.Fatalf("unit_price %v is read as %d", members["unit_price"], tx.Items[i].UnitPrice)
		}
		quantity, ok := exact(members["quantity"])
		if mine, mineOK := new(big.Rat).SetString(tx.Items[i].Quantity.String()); ok && (!mineOK || quantity.Cmp(mine) != 0) {
			t.Fatalf("quantity %v is read as %v", members["quantity"], tx.Items[i].Quantity)
		}
		if members["name"] != tx.Items[i].Name {
			t.Fatalf("name %q is read as %q", members["name"], tx.Items[i].Name)
		}
	}
}

// exact is the fraction a number says. 0e999999999 is a zero that the oracle
// would take hours for.
func exact(number any) (*big.Rat, bool) {
	text := string(number.(json.Number))
	if e := strings.IndexAny(text, "eE"); e >= 0 && len(text)-e > 5 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
