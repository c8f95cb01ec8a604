package transaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func paidBody(members string) []byte {
	return []byte(`{"country_code":"MX","transaction_date":"2026-03-01T12:30:00Z","transaction_id":"p1",` + members + `}`)
}

func manyPaid(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"transaction_id":"t%d","amount":1}`, i)
	}
	return fmt.Sprintf(`"payments":[{"type":"CASH","amount":%d}],"references":[%s]`, n, strings.Join(list, ","))
}

func TestReportsOfPaymentsAreRead(t *testing.T) {
	t.Parallel()
	const cash = `"payments":[{"type":"CASH","amount":700}]`
	for _, c := range []struct {
		name, members, field string
		code                 fault.Code
	}{
		{"one", cash + `,"reference_transaction_id":"t1"`, "", ""},
		{"as many as may be", manyPaid(100), "", ""},
		{"one too many", manyPaid(101), "references.100", fault.FieldNotValid},
		{"nothing that was paid", cash, "reference_transaction_id", fault.FieldRequired},
		{"both names", cash + `,"reference_transaction_id":"t1","references":[{"transaction_id":"t2","amount":700}]`,
			"references", fault.ValidationMatchInvalid},
		{"no payments", `"reference_transaction_id":"t1"`, "payments", fault.FieldRequired},
		{"no amount", cash + `,"references":[{"transaction_id":"t2"}]`, "references.0.amount", fault.FieldRequired},
		{"no transaction", cash + `,"references":[{"amount":700}]`, "references.0.transaction_id", fault.FieldRequired},
		{"items", cash + `,"reference_transaction_id":"t1","items":[]`, "items", fault.UnsupportedField},
		{"no payment in the list", `"payments":[],"reference_transaction_id":"t1"`, "payments", fault.FieldRequired},
		{"nothing received", `"payments":[{"type":"CASH","amount":0}],"reference_transaction_id":"t1"`, "payments.0.amount",
			fault.FieldNotValid},
		{"less received than paid for",
			cash + `,"references":[{"transaction_id":"t1","amount":700},{"transaction_id":"t2","amount":1}]`, "references",
			fault.ValidationMatchInvalid},
		{"the same twice", cash + `,"references":[{"transaction_id":"t1","amount":350},{"transaction_id":"t1","amount":350}]`, "references.1.transaction_id", fault.ValidationMatchInvalid},
	} {
		tx, _, err := transaction.Decode(transaction.PaymentReport, paidBody(c.members))
		var faults []fault.Fault
		if err != nil {
			faults = transactiontest.FaultsIn(t, err)
		} else {
			faults = transaction.CheckPaid(tx)
		}
		if c.code == "" {
			if len(faults) > 0 || tx.ReferenceID == "" || len(tx.Shares) == 0 || tx.Shares[0].TransactionID != tx.ReferenceID {
				t.Errorf("%s: %v %+v", c.name, faults, tx)
			}
			continue
		}
		if !slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Field == c.field && f.Code == c.code }) {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}

// A tax beside IEPS is due on the price with it, in either mode.
func TestTaxBesideIEPSIsDueOnIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		price            int64
		mode, rate       string
		net, ieps, other int64
	}{
		{14674, transaction.Included, "26.5", 10000, 2650, 2024}, {10000, transaction.Added, "26.5", 10000, 2650, 2024},
		{11948, transaction.Included, "3", 10000, 300, 1648}, {23200, transaction.Included, "100", 10000, 10000, 3200},
		{11600, transaction.Added, "0", 11600, 0, 1856},
	} {
		rate, err := num.AmountFromString(c.rate)
		if err != nil {
			t.Fatal(err)
		}
		totals, faults := transaction.Calculate(
			[]transaction.Item{{Quantity: num.MakeAmount(1, 0), UnitPrice: c.price, Taxes: []transaction.Tax{
				{Rate: num.MakeAmount(16, 0), Regime: transaction.VAT, Mode: c.mode},
				{Rate: rate, Regime: transaction.IEPS, Mode: c.mode}}}})
		if len(faults) > 0 || totals.Net != c.net || totals.Lines[0].Taxes[1] != c.ieps ||
			totals.Lines[0].Taxes[0] != c.other || totals.Gross != c.net+c.ieps+c.other {
			t.Errorf("%+v: %+v %v", c, totals, faults)
		}
	}
}
