package en16931_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tributary/internal/country/en16931"
	"tributary/internal/needs"
)

// Whatever lines a transaction has, its document breaks no rule: sums are
// exact, taxes near enough, prices fit their lines.
func TestRandomDocumentsBreakNoRule(t *testing.T) {
	seeds := uint64(100)
	if needs.IsLong() {
		seeds = 400
	}
	for _, p := range []en16931.Profile{en16931.PeppolBIS(), en16931.XRechnung(false), en16931.FacturX()} {
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 1))
			lines := 1 + r.IntN(40)
			if seed%100 == 99 {
				lines = 5000
			}
			d := randomInvoice(r, p, lines)
			if found := en16931.Check(d, p); len(found) > 0 {
				t.Fatalf("%s, seed %d, %d lines: %d findings, first %+v", p.Code, seed, lines, len(found), found[0])
			}
		}
	}
}

// Three lines of 0.99 with 19 % inside: per line 0.16, by category 0.47.
func TestTaxOfTheLinesStandsWhileItIsNear(t *testing.T) {
	for _, c := range []struct {
		lines      int
		byCategory bool
		tax, gross string
		rounding   string
	}{
		{3, false, "0.48", "2.97", ""},
		{3, true, "0.47", "2.96", "0.01"},
		{300, false, "47.31", "296.31", "0.69"}, // the rules would take 48.00; ours ends at half a unit
		{500, false, "78.85", "493.85", "1.15"},
	} {
		t.Run(fmt.Sprint(c.lines, c.byCategory), func(t *testing.T) {
			d := sample(en16931.PeppolBIS())
			d.Lines, d.Allowances, d.Charges = nil, nil, nil
			for i := range c.lines {
				d.Lines = append(d.Lines, en16931.Line{ID: fmt.Sprint(i), Quantity: dec("1"), Unit: "C62", Net: dec("0.83"),
					Price: en16931.PriceFor(83, dec("1"), 2), Category: "S", Rate: dec("19"), Item: en16931.Item{Name: "Pin"}})
			}
			n := int64(c.lines)
			d.Settle(en16931.Settlement{Decimals: 2, Gross: 99 * n, ByCategory: c.byCategory,
				Taxes: []en16931.CategoryTax{{Category: "S", Rate: dec("19"), Amount: 16 * n, Lines: c.lines}}})
			if got := d.Totals; got.Tax.String() != c.tax || got.Gross.String() != c.gross ||
				got.Rounding.Given() != (c.rounding != "") ||
				c.rounding != "" && got.Rounding.String() != c.rounding || !got.Due.Equal(en16931.Dec(99*n, 2)) {
				t.Errorf("tax %s, gross %s, rounding %s, due %s", got.Tax, got.Gross, got.Rounding, got.Due)
			}
			if found := en16931.Check(d, en16931.PeppolBIS()); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestPricesFitTheirLines(t *testing.T) {
	for _, c := range []struct {
		amount   int64
		quantity string
		price    string
		base     string
	}{
		{18168, "3", "60.56", ""},
		{19084, "3", "63.613", ""},
		{8562, "8", "10.703", ""},
		{5882353, "1000000", "0.058824", "58823.53/1000000"},
		{0, "3", "0.00", ""},
		{1, "0.000001", "10000.00", ""},
	} {
		got := en16931.PriceFor(c.amount, dec(c.quantity), 2)
		if c.base != "" {
			if got.Net.String()+"/"+got.BaseQuantity.String() != c.base {
				t.Errorf("%d ÷ %s: %s per %s", c.amount, c.quantity, got.Net, got.BaseQuantity)
			}
			continue
		}
		if got.Net.String() != c.price || got.BaseQuantity.Given() {
			t.Errorf("%d ÷ %s: %s per %s", c.amount, c.quantity, got.Net, got.BaseQuantity)
		}
	}
}

func TestDecimals(t *testing.T) {
	for in, out := range map[string]string{"1": "1", "-1.50": "-1.50", "+3": "3", "007.10": "7.10", ".5": "0.5",
		"-0.05": "-0.05", "5.": "5",
		"123456789012345678": "123456789012345678", "0.000000000000000001": "0.000000000000000001"} {
		if d, err := en16931.ParseDecimal(in); err != nil || d.String() != out || !d.Given() {
			t.Errorf("%q: %s %v", in, d, err)
		}
	}
	for _, in := range []string{"", "-", ".", "1e3", "1,5", "1.2.3", " 1", "NaN", "1234567890123456789",
		"0.1234567890123456789"} {
		if d, err := en16931.ParseDecimal(in); err == nil {
			t.Errorf("%q was read as %s", in, d)
		}
	}
	if !dec("10.50").Equal(dec("10.5")) || dec("0").Equal(en16931.Decimal{}) {
		t.Error("equality is by value, and nothing is not zero")
	}
}
