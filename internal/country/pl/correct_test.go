package pl_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// The filing of an original is read once, not for every line: what a correction
// costs grows with its lines and not with their square.
func TestALongCorrectionReadsItsOriginalOnce(t *testing.T) {
	ch, err := pl.Pack().Connect(country.Endpoint{BaseURL: "https://ksef.example", HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(d country.Draft) country.Filing {
		f, err := ch.Prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	cost := func(lines int) float64 {
		items := make([]transaction.Item, lines)
		for i := range items {
			items[i] = item(fmt.Sprint("Towar ", i+1), num.MakeAmount(2, 0), int64(100+i), vat("23", transaction.Included))
		}
		original := draft("L-1", polishBuyer(), items...)
		credit := correct(transaction.Credit, draft("L-2", nil, items...), original)
		credit.Original.Report = prepare(original).Report
		return testing.AllocsPerRun(2, func() { prepare(credit) })
	}
	if short, long := cost(50), cost(400); long > 12*short {
		t.Errorf("50 lines take %.0f allocations, 400 lines %.0f: more than their share", short, long)
	}
}

// A base that changes is converted at the rate of the original, whatever rate the
// correction was told, and the client hears of it (VAT act, art. 31b).
func TestACorrectionInForeignCurrencyHasItsOriginalsRate(t *testing.T) {
	m := newMinistry(t)
	euros := func(number, rate, day string, price int64) country.Draft {
		d := draft(number, german(), item("Towar", num.MakeAmount(1, 0), price, vat("23", transaction.Added)))
		of, err := num.AmountFromString(rate)
		if err != nil {
			t.Fatal(err)
		}
		d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "EUR", &of, day
		d.Transaction.Date, d.Now = m.clock(), m.clock()
		return d
	}
	sold := euros("R-1", "4.25", "2025-10-06", 100_00)
	for told, warned := range map[string]bool{"4.31": true, "4.25": false} {
		f := m.prepare(correct(transaction.Adjustment, euros("R-2-"+told, told, "2025-11-06", -10_00), sold))
		// 2.30 × 4.25
		if text := string(f.Report); !strings.Contains(text, "<P_14_1W>-9.78<") ||
			!strings.Contains(text, "<KursWaluty>4.25<") {
			t.Errorf("told %s: %s", told, text)
		}
		r, err := m.sendFiling(f, token())
		if err != nil || r.Outcome != country.Accepted {
			t.Fatalf("%+v %v", r, err)
		}
		if got := slices.ContainsFunc(r.Faults, func(f fault.Fault) bool {
			return f.Field == "exchange_rate" && f.Code == fault.RateUnusual && strings.Contains(f.Message, "4.25")
		}); got != warned {
			t.Errorf("told %s: %v", told, r.Faults)
		}
	}
}

// An exemption whose ground nobody named is filed, and the client hears of it.
func TestAnExemptionWithoutItsGroundIsTold(t *testing.T) {
	m := newMinistry(t)
	for code, warned := range map[string]bool{"": true, "43.1.18": false} {
		d := draft("Z-1"+code, polishBuyer(), goods(vat("23", transaction.Added)),
			work(coded(vat("0", transaction.Added), transaction.TaxExempt, code)))
		d.Supplier.Settings = country.Settings{"auth": "token"}
		d.Transaction.Date, d.Now = m.clock(), m.clock()
		r, err := m.sendFiling(m.prepare(d), token())
		if err != nil || r.Outcome != country.Accepted {
			t.Fatalf("%+v %v", r, err)
		}
		if got := slices.ContainsFunc(r.Faults, func(f fault.Fault) bool {
			return f.Field == "items.1.tax_breakdowns.0.code" && f.Code == fault.ValueAssumed
		}); got != warned {
			t.Errorf("code %q: %v", code, r.Faults)
		}
	}
}
