package hu_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// failure is why a draft is not filed.
func failure(t *testing.T, d country.Draft) []fault.Fault {
	t.Helper()
	_, err := open(t).channel.Prepare(d)
	var wrong *fault.Error
	if errors.As(err, &wrong) {
		return wrong.Faults
	}
	return nil
}

func TestASecondCreditIsRefusedAsOne(t *testing.T) {
	whole := draft("2026/A", homeBuyer(), item("Szék", num.MakeAmount(1, 0), 100000, vat("27", transaction.Added)))
	first := correct(transaction.Credit, draft("2026/AS1", homeBuyer(), whole.Transaction.Items...), whole)
	second := correct(transaction.Credit, draft("2026/AS2", homeBuyer(), whole.Transaction.Items...), whole, first)
	if got := failure(t, second); len(got) != 1 || got[0].Code != fault.ReferenceAlreadyCorrected ||
		got[0].Field != "reference_transaction_id" {
		t.Errorf("%+v", got)
	}
	if got := failure(t, first); len(got) > 0 {
		t.Errorf("the first: %+v", got)
	}
}

func TestNobodySellsToThemselves(t *testing.T) {
	own := homeBuyer()
	own.TaxNumber = supplierNumber[:8]
	got := failure(t, draft("2026/B", own, item("Szék", num.MakeAmount(1, 0), 100000, vat("27", transaction.Added))))
	if len(got) != 1 || got[0].Field != "customer.tax_information.tax_number" ||
		!strings.Contains(got[0].Message, "SUPPLIER_CUSTOMER_MATCH_TAXPAYER") {
		t.Errorf("%+v", got)
	}
}

func TestLateReportsAreWarnedOf(t *testing.T) {
	d := invoice("2026/C")
	for days, want := range map[int]bool{0: false, 1: false, 2: true, 300: true} {
		found := pack().Check(country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both,
			Now: d.Transaction.Date.AddDate(0, 0, days)})
		if got := slices.ContainsFunc(found, func(f fault.Fault) bool {
			return f.Field == "transaction_date" && f.Type == fault.Warning
		}); got != want {
			t.Errorf("after %d days: %+v", days, found)
		}
	}
}

// The period of supply is reported, and NAV takes it.
func TestThePeriodIsReported(t *testing.T) {
	o := open(t)
	d := invoice("2026/D")
	d.Transaction.Period = &transaction.Span{From: "2026-10-01", To: "2026-10-31"}
	d.Transaction.Items[0].Period = &transaction.Span{From: "2026-10-05", To: "2026-10-09"}
	f := o.prepare(d)
	if !strings.Contains(string(f.Report),
		"<invoiceDeliveryPeriodStart>2026-10-01</invoiceDeliveryPeriodStart><invoiceDeliveryPeriodEnd>2026-10-31<") {
		t.Errorf("%s", f.Report)
	}
	if !strings.Contains(string(f.Report), "<dataValue>2026-10-05/2026-10-09</dataValue></additionalLineData></line>") {
		t.Errorf("no period of the line: %s", f.Report)
	}
	if r := o.settle(f); r.Outcome != country.Accepted {
		t.Errorf("%s %+v", r.Outcome, r.Faults)
	}
	schema(t, [][]byte{f.Report})
}

// Paper has the tax in forints once, as it was filed.
func TestForintsAreOnPaperOnceAsFiled(t *testing.T) {
	d := euros(draft("2026/E", homeBuyer(), item("Gép", num.MakeAmount(333, 2), 10001, vat("27", transaction.Added)),
		item("Alkatrész", num.MakeAmount(7, 0), 333, vat("27", transaction.Added))))
	f := open(t).prepare(d)
	_, filed, _ := strings.Cut(string(f.Report), "<invoiceVatAmountHUF>")
	filed, _, _ = strings.Cut(filed, "<")
	out := pack().Printed(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Supplier: &d.Supplier,
		Location: budapest(), At: d.Now, Filing: &f})
	if out.LocalTax == nil || fmt.Sprintf("%d.%02d", *out.LocalTax/100, *out.LocalTax%100) != filed {
		t.Errorf("%v is printed, %s filed", out.LocalTax, filed)
	}
	for _, text := range out.Texts {
		if strings.Contains(text, "HUF") {
			t.Errorf("again: %s", text)
		}
	}
}
