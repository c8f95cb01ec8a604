package country_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func TestWhatNeverBecomesADocumentIsNotPrepared(t *testing.T) {
	flaw := []fault.Fault{fault.At("items", fault.FieldNotValid, "too much")}
	for name, c := range map[string]struct {
		kind     transaction.Kind
		original bool
		lines    int
		flaws    []fault.Fault
		says     string // "": it is prepared
		client   bool   // the client can do something about it
	}{
		"a sale":                 {kind: transaction.Invoice, lines: 1, flaws: flaw},
		"a sale without amounts": {kind: transaction.Invoice, says: "1 lines with 0 amounts"},
		"a credit":               {kind: transaction.Credit, original: true, lines: 1},
		"a credit of nothing":    {kind: transaction.Credit, lines: 1, says: "without its original"},
		"an adjustment that goes wrong": {kind: transaction.Adjustment, original: true, lines: 1, flaws: flaw,
			says: "too much", client: true},
		"a cancellation": {kind: transaction.Cancellation, original: true, lines: 1, says: "use a credit", client: true},
	} {
		d := country.Draft{Transaction: transaction.Transaction{Kind: c.kind, ID: "t", Items: make([]transaction.Item, 1)},
			Totals: transaction.Totals{Lines: make([]transaction.Line, c.lines)}}
		if c.original {
			d.Original = &country.Original{}
		}
		err := country.Preparable(&d, func() []fault.Fault { return c.flaws }, "there is no document", "use a credit")
		if (err == nil) != (c.says == "") || err != nil &&
			(!strings.Contains(err.Error(), c.says) || (fault.KindOf(err) == fault.Invalid) != c.client) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
