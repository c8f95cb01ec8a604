package transaction_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/invopop/gobl/bill"
	"github.com/invopop/gobl/cal"
	"github.com/invopop/gobl/currency"
	"github.com/invopop/gobl/l10n"
	"github.com/invopop/gobl/num"
	"github.com/invopop/gobl/org"
	"github.com/invopop/gobl/tax"
	"pgregory.net/rapid"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func quantity(t testing.TB, text string) num.Amount {
	t.Helper()
	a, err := num.AmountFromString(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func vat(rate int64, decimals uint32) transaction.Tax {
	return transaction.Tax{Rate: num.MakeAmount(rate, decimals), Regime: transaction.VAT, Mode: transaction.Included}
}

func TestWorkedExampleOfTheContract(t *testing.T) {
	totals, faults := transaction.Calculate(
		[]transaction.Item{{Quantity: quantity(t, "3"), UnitPrice: 7570, Taxes: []transaction.Tax{vat(25, 0)}}})
	if len(faults) != 0 || totals.Gross != 22710 || totals.Net != 18168 || totals.Tax != 4542 || totals.Withheld != 0 {
		t.Fatalf("got %+v %v, want 22710, 18168, 4542", totals, faults)
	}
}

func TestLines(t *testing.T) {
	added := func(x transaction.Tax) transaction.Tax { x.Mode = transaction.Added; return x }
	held := func(rate int64) transaction.Tax {
		return transaction.Tax{Rate: num.MakeAmount(rate, 0), Regime: transaction.Withholding}
	}
	ten := func(x transaction.Tax) (all []transaction.Tax) {
		for range 10 {
			all = append(all, x)
		}
		return all
	}
	cases := []struct {
		name       string
		quantity   string
		price      int64
		taxes      []transaction.Tax
		gross, net int64
		amounts    []int64
	}{
		{"no tax", "2", 150, nil, 300, 300, nil},
		{"half is rounded away from zero", "0.5", 1, nil, 1, 1, nil},
		{"half is rounded away from zero below it too", "0.5", -1, nil, -1, -1, nil},
		{"less than half is rounded to zero", "0.499999", 1, nil, 0, 0, nil},
		{"six decimals", "0.000001", 500000, nil, 1, 1, nil},
		{"net ends in a half", "1", 3, []transaction.Tax{vat(100, 0)}, 3, 2, []int64{1}},
		{"negative net ends in a half", "1", -3, []transaction.Tax{vat(100, 0)}, -3, -2, []int64{-1}},
		{"zero rate", "1", 999, []transaction.Tax{vat(0, 0)}, 999, 999, []int64{0}},
		{"two rates share, the last takes the rest", "1", 11501, []transaction.Tax{vat(5, 0), vat(9975, 3)}, 11501, 10003,
			[]int64{500, 998}},
		{"three rates whose parts round up", "1", 103, []transaction.Tax{vat(1, 0), vat(1, 0), vat(1, 0)}, 103, 100,
			[]int64{1, 1, 1}},
		{"the last takes what rounding left", "1", 5, []transaction.Tax{vat(10, 0), vat(10, 0), vat(10, 0)}, 5, 4,
			[]int64{0, 0, 1}},
		{"the remainder may be negative", "1", 115, ten(vat(15, 1)), 115, 100, []int64{2, 2, 2, 2, 2, 2, 2, 2, 2, -3}},
		{"withholding lies outside the totals", "1", 12100, []transaction.Tax{vat(21, 0), held(15)}, 12100, 10000,
			[]int64{2100, 1500}},
		{"withholding before the tax takes no remainder", "1", 12100, []transaction.Tax{held(15), vat(21, 0)}, 12100, 10000,
			[]int64{1500, 2100}},
		{"withholding alone", "1", 1000, []transaction.Tax{held(19)}, 1000, 1000, []int64{190}},
		{"withholding of a negative line", "1", -12100, []transaction.Tax{vat(21, 0), held(15)}, -12100, -10000,
			[]int64{-2100, -1500}},
		{"added", "3", 333, []transaction.Tax{added(vat(21, 0))}, 1209, 999, []int64{210}},
		{"added twice, each rounded", "1", 50, []transaction.Tax{added(vat(1, 0)), added(vat(1, 0))}, 52, 50, []int64{1, 1}},
		{"added to a negative line", "1", -50, []transaction.Tax{added(vat(1, 0))}, -51, -50, []int64{-1}},
		{"added with withholding on the net", "1", 10000, []transaction.Tax{added(vat(16, 0)), held(10)}, 11600, 10000,
			[]int64{1600, 1000}},
		{"an empty mode is included", "1", 125, []transaction.Tax{{Rate: num.MakeAmount(25, 0), Regime: "IGIC"}}, 125, 100,
			[]int64{25}},
		{"trailing zeros of a rate", "1", 125, []transaction.Tax{vat(25_000000, 6)}, 125, 100, []int64{25}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			totals, faults := transaction.Calculate(
				[]transaction.Item{{Quantity: quantity(t, c.quantity), UnitPrice: c.price, Taxes: c.taxes}})
			line := totals.Lines[0]
			if len(faults) != 0 || line.Gross != c.gross || line.Net != c.net ||
				fmt.Sprint(line.Taxes) != fmt.Sprint(c.amounts) {
				t.Fatalf("got %+v %v, want gross %d, net %d, taxes %v", line, faults, c.gross, c.net, c.amounts)
			}
		})
	}
}

func TestAmountsAtAndPastTheLargest(t *testing.T) {
	const most = transaction.AmountMax
	one, thousand := num.MakeAmount(1, 0), num.MakeAmount(1000, 0)
	many := make([]transaction.Item, 5000) // sums that leave 64 bits on the way and come back
	for i := range many {
		many[i] = transaction.Item{Quantity: one, UnitPrice: most}
		if i%2 == 1 {
			many[i].UnitPrice = -most
		}
	}
	half := append([]transaction.Item(nil), many...)
	for i := range half {
		half[i].UnitPrice = most
		if i >= 2500 {
			half[i].UnitPrice = -most
		}
	}
	cases := []struct {
		name  string
		items []transaction.Item
		field string
		code  fault.Code
	}{
		{"largest", []transaction.Item{{Quantity: one, UnitPrice: most}}, "", ""},
		{"largest negative", []transaction.Item{{Quantity: one, UnitPrice: -most}}, "", ""},
		{"past it by quantity", []transaction.Item{{Quantity: num.MakeAmount(1000001, 6), UnitPrice: most}},
			"items.0.unit_price", fault.FieldNotValid},
		{"past it by one", []transaction.Item{{Quantity: num.MakeAmount(2, 0), UnitPrice: 1 << 52}}, "items.0.unit_price",
			fault.FieldNotValid},
		{"just past 64 bits", []transaction.Item{{Quantity: num.MakeAmount(4096, 0), UnitPrice: most}}, "items.0.unit_price",
			fault.FieldNotValid},
		{"far past it", []transaction.Item{{Quantity: num.MakeAmount(1e18-1, 0), UnitPrice: most}}, "items.0.unit_price",
			fault.FieldNotValid},
		{"past it by a price", []transaction.Item{{Quantity: one, UnitPrice: most + 1}}, "items.0.unit_price",
			fault.FieldNotValid},
		{"past it by added tax", []transaction.Item{{Quantity: one, UnitPrice: most,
			Taxes: []transaction.Tax{{Rate: num.MakeAmount(1, 4), Mode: transaction.Added}}}}, "items.0.unit_price",
			fault.FieldNotValid},
		{"largest with included tax", []transaction.Item{{Quantity: one, UnitPrice: most,
			Taxes: []transaction.Tax{vat(100, 0), vat(1, 4)}}}, "", ""},
		{"sum at it", []transaction.Item{{Quantity: one, UnitPrice: most - 1}, {Quantity: one, UnitPrice: 1}}, "", ""},
		{"sum past it", []transaction.Item{{Quantity: one, UnitPrice: most}, {Quantity: one, UnitPrice: 1}}, "items",
			fault.FieldNotValid},
		{"negative sum past it", []transaction.Item{{Quantity: one, UnitPrice: -most}, {Quantity: one, UnitPrice: -1}},
			"items", fault.FieldNotValid},
		{"5,000 largest lines that cancel out", many, "", ""},
		{"the same in two blocks", half, "", ""},
		{"second line past it", []transaction.Item{{Quantity: one, UnitPrice: 1}, {Quantity: thousand, UnitPrice: most}},
			"items.1.unit_price", fault.FieldNotValid},
		{"modes mixed", []transaction.Item{{Quantity: one, UnitPrice: 1,
			Taxes: []transaction.Tax{vat(1, 0), {Rate: one, Mode: transaction.Added}}}}, "items.0.tax_breakdowns",
			fault.ValidationMatchInvalid},
		{"a rate over 100", []transaction.Item{{Quantity: one, UnitPrice: 1, Taxes: []transaction.Tax{vat(1000001, 4)}}},
			"items.0.tax_breakdowns.0.rate", fault.FieldNotValid},
		{"a negative rate", []transaction.Item{{Quantity: one, UnitPrice: 1,
			Taxes: []transaction.Tax{vat(5, 0), vat(-1, 0)}}}, "items.0.tax_breakdowns.1.rate", fault.FieldNotValid},
		{"a rate with 5 decimals", []transaction.Item{{Quantity: one, UnitPrice: 1,
			Taxes: []transaction.Tax{vat(100001, 5)}}}, "items.0.tax_breakdowns.0.rate", fault.FieldNotValid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			totals, faults := transaction.Calculate(c.items)
			if c.field == "" {
				if len(faults) != 0 || totals.Net+totals.Tax != totals.Gross {
					t.Fatalf("got %v, want no faults", faults)
				}
				return
			}
			if len(faults) != 1 || faults[0].Field != c.field || faults[0].Code != c.code {
				t.Fatalf("got %v, want one %s on %s", faults, c.code, c.field)
			}
		})
	}
}

func TestPaymentsAddUpToWhatIsPayable(t *testing.T) {
	totals := transaction.Totals{Gross: 12100, Net: 10000, Tax: 2100, Withheld: 1500}
	for _, c := range []struct {
		amounts []int64
		ok      bool
	}{
		{nil, true}, {[]int64{10600}, true}, {[]int64{600, 10000}, true}, {[]int64{11000, -400}, true},
		{[]int64{12100}, false}, {[]int64{10599}, false}, {[]int64{0}, false},
		{[]int64{transaction.AmountMax, transaction.AmountMax}, false},
	} {
		var payments []transaction.Payment
		for _, a := range c.amounts {
			payments = append(payments, transaction.Payment{Amount: a})
		}
		faults := transaction.CheckPayments(payments, totals)
		if c.ok != (len(faults) == 0) || !c.ok && (faults[0].Field != "payments" || faults[0].Code != fault.FieldNotValid) {
			t.Errorf("payments %v: got %v, want ok %v", c.amounts, faults, c.ok)
		}
	}
}

// drawItem draws a line of up to size minor units, with up to four tax entries in one mode.
func drawItem(t *rapid.T, size int64) transaction.Item {
	decimals := rapid.Uint32Range(0, 6).Draw(t, "decimals")
	item := transaction.Item{
		Quantity:  num.MakeAmount(rapid.Int64Range(1, 5_000_000).Draw(t, "quantity"), decimals),
		UnitPrice: rapid.Int64Range(-size, size).Draw(t, "unit_price"),
	}
	mode := rapid.SampledFrom([]string{transaction.Included, transaction.Added, ""}).Draw(t, "mode")
	for range rapid.IntRange(0, 4).Draw(t, "entries") {
		entry := transaction.Tax{Regime: transaction.VAT, Mode: mode}
		if rapid.IntRange(0, 3).Draw(t, "withheld") == 0 {
			entry = transaction.Tax{Regime: transaction.Withholding}
		}
		d := rapid.Uint32Range(0, 4).Draw(t, "rate decimals")
		hundred := int64(100)
		for range d {
			hundred *= 10
		}
		entry.Rate = num.MakeAmount(rapid.OneOf(rapid.Int64Range(0, hundred), rapid.SampledFrom([]int64{0, hundred})).Draw(t,
			"rate"), d)
		item.Taxes = append(item.Taxes, entry)
	}
	item.Discount = drawDiscount(t, item)
	return item
}

// drawDiscount draws none, a rate, or an amount of at most the line.
func drawDiscount(t *rapid.T, item transaction.Item) *transaction.LineDiscount {
	switch rapid.IntRange(0, 3).Draw(t, "discount") {
	case 0:
		rate := num.MakeAmount(rapid.OneOf(rapid.Int64Range(0, 100_0000), rapid.SampledFrom([]int64{0, 100_0000})).Draw(t,
			"discount rate"), 4)
		return &transaction.LineDiscount{Rate: &rate}
	case 1:
		most := new(big.Int).Abs(round(new(big.Rat).Mul(rat(item.Quantity), new(big.Rat).SetInt64(item.UnitPrice))))
		if !fits(most) {
			return nil
		}
		return &transaction.LineDiscount{Amount: rapid.Int64Range(0, most.Int64()).Draw(t, "discount amount")}
	}
	return nil
}

// contractDiscount is what section 16 takes from a line of this size.
func contractDiscount(d *transaction.LineDiscount, line *big.Int) *big.Int {
	taken := new(big.Int)
	switch {
	case d == nil:
	case d.Rate != nil:
		return round(new(big.Rat).Mul(new(big.Rat).SetInt(line), new(big.Rat).Quo(rat(*d.Rate), big.NewRat(100, 1))))
	default:
		taken.SetInt64(d.Amount)
	}
	if line.Sign() < 0 {
		taken.Neg(taken)
	}
	return taken
}

func rat(a num.Amount) *big.Rat {
	den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Exp())), nil)
	return new(big.Rat).SetFrac(big.NewInt(a.Value()), den)
}

// round is half away from zero, by the definition.
func round(x *big.Rat) *big.Int {
	twice := new(big.Int).Mul(new(big.Int).Abs(x.Num()), big.NewInt(2))
	twice.Add(twice, x.Denom())
	q := new(big.Int).Quo(twice, new(big.Int).Mul(x.Denom(), big.NewInt(2)))
	if x.Sign() < 0 {
		q.Neg(q)
	}
	return q
}

// contractLine is section 3 of docs/specification.md in exact fractions, slow and plain.
func contractLine(item transaction.Item) (gross, net *big.Int, taxes []*big.Int) {
	hundred := big.NewRat(100, 1)
	rates, last, mode := new(big.Rat), -1, ""
	for j, e := range item.Taxes {
		if !e.Withheld() {
			rates.Add(rates, new(big.Rat).Quo(rat(e.Rate), hundred))
			last, mode = j, e.Mode
		}
	}
	amount := round(new(big.Rat).Mul(rat(item.Quantity), new(big.Rat).SetInt64(item.UnitPrice)))
	amount.Sub(amount, contractDiscount(item.Discount, amount))
	taxes = make([]*big.Int, len(item.Taxes))
	if mode == transaction.Added {
		net, gross = amount, new(big.Int).Set(amount)
	} else {
		gross = amount
		net = round(new(big.Rat).Quo(new(big.Rat).SetInt(gross), new(big.Rat).Add(big.NewRat(1, 1), rates)))
	}
	tax := new(big.Int).Sub(gross, net)
	rest := new(big.Int).Set(tax)
	for j, e := range item.Taxes {
		rate := new(big.Rat).Quo(rat(e.Rate), hundred)
		switch {
		case e.Withheld() || mode == transaction.Added:
			taxes[j] = round(new(big.Rat).Mul(new(big.Rat).SetInt(net), rate))
			if !e.Withheld() {
				gross.Add(gross, taxes[j])
			}
		case j == last:
			taxes[j] = rest
		case rates.Sign() == 0:
			taxes[j] = new(big.Int)
		default:
			taxes[j] = round(new(big.Rat).Mul(new(big.Rat).SetInt(tax), new(big.Rat).Quo(rate, rates)))
			rest.Sub(rest, taxes[j])
		}
	}
	return gross, net, taxes
}

func fits(x *big.Int) bool {
	return new(big.Int).Abs(x).Cmp(big.NewInt(transaction.AmountMax)) <= 0
}

// TestEveryIdentityOfMoney compares with exact fractions, from cents up to the
// largest integers: every amount, every sum, and which of them are refused.
func TestEveryIdentityOfMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int64{10, 100_000, 1 << 40, transaction.AmountMax}).Draw(t, "size")
		items := make([]transaction.Item, rapid.IntRange(1, 8).Draw(t, "items"))
		sumGross, sumNet, sumHeld := new(big.Int), new(big.Int), new(big.Int)
		tooLarge := false
		for i := range items {
			items[i] = drawItem(t, size)
			gross, net, taxes := contractLine(items[i])
			amount := round(new(big.Rat).Mul(rat(items[i].Quantity), new(big.Rat).SetInt64(items[i].UnitPrice)))
			tooLarge = tooLarge || !fits(gross) || !fits(amount)
			sumGross.Add(sumGross, gross)
			sumNet.Add(sumNet, net)
			for j, e := range items[i].Taxes {
				if e.Withheld() {
					sumHeld.Add(sumHeld, taxes[j])
				}
			}
		}
		sumTax := new(big.Int).Sub(sumGross, sumNet)
		tooLarge = tooLarge || !fits(sumGross) || !fits(sumNet) || !fits(sumTax) || !fits(sumHeld)
		totals, faults := transaction.Calculate(items)
		if tooLarge != (len(faults) > 0) {
			t.Fatalf("refused %v, want refused %v", faults, tooLarge)
		}
		if tooLarge {
			return
		}
		for i, line := range totals.Lines {
			gross, net, taxes := contractLine(items[i])
			if line.Gross != gross.Int64() || line.Net != net.Int64() || fmt.Sprint(line.Taxes) != fmt.Sprint(taxes) {
				t.Fatalf("line %d is %+v, want %v %v %v", i, line, gross, net, taxes)
			}
			sum := line.Net
			for j, e := range items[i].Taxes {
				if !e.Withheld() {
					sum += line.Taxes[j]
				}
			}
			whole := items[i]
			whole.Discount = nil
			wholeGross, wholeNet, _ := contractLine(whole)
			inTerms := wholeGross
			if len(items[i].Taxes) > 0 && priceAdded(items[i]) {
				inTerms = wholeNet
			}
			if taken := contractDiscount(items[i].Discount, inTerms); line.Discount != taken.Int64() ||
				line.NetDiscount != wholeNet.Int64()-line.Net {
				t.Fatalf("line %d: %d is taken, %d net, want %v of %v", i, line.Discount, line.NetDiscount, taken, inTerms)
			}
			if sum != line.Gross {
				t.Fatalf("line %d: net and taxes make %d, gross is %d", i, sum, line.Gross)
			}
		}
		if totals.Gross != sumGross.Int64() || totals.Net != sumNet.Int64() || totals.Tax != sumTax.Int64() ||
			totals.Withheld != sumHeld.Int64() {
			t.Fatalf("totals %+v, want %v %v %v %v", totals, sumGross, sumNet, sumTax, sumHeld)
		}
		if totals.Net+totals.Tax != totals.Gross || totals.Payable() != totals.Gross-totals.Withheld {
			t.Fatalf("totals %+v contradict themselves", totals)
		}
		if again := transaction.CheckPayments([]transaction.Payment{{Amount: totals.Payable()}},
			totals); fits(big.NewInt(totals.Payable())) && len(again) != 0 {
			t.Fatalf("paying what is payable gives %v", again)
		}
	})
}

func priceAdded(item transaction.Item) bool {
	for _, e := range item.Taxes {
		if !e.Withheld() {
			return e.Mode == transaction.Added
		}
	}
	return false
}

func TestDiscountsOfLines(t *testing.T) {
	percent := func(value int64, decimals uint32) *transaction.LineDiscount {
		rate := num.MakeAmount(value, decimals)
		return &transaction.LineDiscount{Rate: &rate}
	}
	amount := func(value int64) *transaction.LineDiscount { return &transaction.LineDiscount{Amount: value} }
	added := vat(25, 0)
	added.Mode = transaction.Added
	for _, c := range []struct {
		name                                string
		quantity                            string
		price                               int64
		tax                                 transaction.Tax
		discount                            *transaction.LineDiscount
		gross, net, discounted, netDiscount int64
	}{
		{"an amount with tax", "3", 7570, vat(25, 0), amount(2710), 20000, 16000, 2710, 2168},
		{"a rate with tax", "3", 7570, vat(25, 0), percent(10, 0), 20439, 16351, 2271, 1817},
		{"an amount without tax", "3", 7570, added, amount(2710), 25000, 20000, 2710, 2710},
		{"a rate without tax", "3", 7570, added, percent(10, 0), 25549, 20439, 2271, 2271},
		{"half a unit is rounded away from zero", "1", 5, vat(0, 0), percent(10, 0), 4, 4, 1, 1},
		{"of the rounded line", "0.5", 1, vat(0, 0), percent(50, 0), 0, 0, 1, 1},
		{"four decimals", "1", 1_000_000, vat(0, 0), percent(333333, 4), 666667, 666667, 333333, 333333},
		{"all of it", "3", 7570, vat(25, 0), amount(22710), 0, 0, 22710, 18168},
		{"everything per cent", "3", 7570, vat(25, 0), percent(100, 0), 0, 0, 22710, 18168},
		{"nothing", "3", 7570, vat(25, 0), amount(0), 22710, 18168, 0, 0},
		{"of a line that is given back", "3", -7570, vat(25, 0), amount(2710), -20000, -16000, -2710, -2168},
		{"a rate of a line that is given back", "1", -5, vat(0, 0), percent(10, 0), -4, -4, -1, -1},
	} {
		totals, faults := transaction.Calculate(
			[]transaction.Item{{Quantity: quantity(t, c.quantity), UnitPrice: c.price, Taxes: []transaction.Tax{c.tax},
				Discount: c.discount}})
		l := totals.Lines[0]
		if len(faults) != 0 || l.Gross != c.gross || l.Net != c.net || l.Discount != c.discounted ||
			l.NetDiscount != c.netDiscount {
			t.Errorf("%s: got %+v %v", c.name, l, faults)
		}
		if totals.Gross != c.gross || totals.Net != c.net || totals.Tax != c.gross-c.net {
			t.Errorf("%s: totals %+v", c.name, totals)
		}
	}
	for price, more := range map[int64]int64{100: 101, -100: 101, 0: 1} {
		_, faults := transaction.Calculate([]transaction.Item{{Quantity: quantity(t, "1"), UnitPrice: price,
			Discount: amount(more)}})
		if len(faults) != 1 || faults[0].Field != "items.0.discount.amount" ||
			faults[0].Code != fault.ValidationMatchInvalid {
			t.Errorf("%d of %d: %v", more, price, faults)
		}
	}
}

// goblTotals has GOBL calculate the same lines, in units of the currency.
func goblTotals(t *rapid.T, code currency.Code, items []transaction.Item) (gross, net, taxed int64) {
	exp := uint32(0)
	if d, ok := transaction.CurrencyExponent(code.String()); ok {
		exp = uint32(d)
	}
	inv := &bill.Invoice{
		Code: "1", Currency: code, IssueDate: cal.MakeDate(2026, 3, 1),
		Supplier: &org.Party{Name: "Supplier"}, Customer: &org.Party{Name: "Customer"},
	}
	for _, item := range items {
		line := &bill.Line{Quantity: item.Quantity, Item: &org.Item{Name: "x", Price: num.NewAmount(item.UnitPrice, exp)}}
		if d := item.Discount; d != nil && d.Rate != nil {
			percent := num.MakePercentage(d.Rate.Value(), d.Rate.Exp()+2)
			line.Discounts = []*bill.LineDiscount{{Percent: &percent}}
		} else if d != nil {
			line.Discounts = []*bill.LineDiscount{{Amount: num.MakeAmount(d.Amount, exp)}}
		}
		for _, e := range item.Taxes {
			percent := num.MakePercentage(e.Rate.Value(), e.Rate.Exp()+2)
			line.Taxes = append(line.Taxes, &tax.Combo{Category: tax.CategoryVAT, Percent: &percent})
			if e.Mode == transaction.Included {
				inv.Tax = &bill.Tax{PricesInclude: tax.CategoryVAT}
			}
		}
		inv.Lines = append(inv.Lines, line)
	}
	if err := inv.Calculate(); err != nil {
		t.Fatalf("GOBL: %v", err)
	}
	return inv.Totals.TotalWithTax.Rescale(exp).Value(), inv.Totals.Total.Rescale(exp).Value(),
		inv.Totals.Tax.Rescale(exp).Value()
}

// TestGOBLAgreesWithinOneMinorUnitPerLine uses GOBL as the oracle. It taxes
// sums where the specification rounds lines, so one unit per line may lie between.
func TestGOBLAgreesWithinOneMinorUnitPerLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]currency.Code{currency.EUR, currency.JPY, currency.KWD}).Draw(t, "currency")
		mode := rapid.SampledFrom([]string{transaction.Included, transaction.Added}).Draw(t, "mode")
		items := make([]transaction.Item, rapid.IntRange(1, 6).Draw(t, "items"))
		for i := range items {
			items[i] = transaction.Item{
				Quantity: num.MakeAmount(rapid.Int64Range(1, 50_000).Draw(t, "quantity"),
					rapid.Uint32Range(0, 3).Draw(t, "decimals")),
				UnitPrice: rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "unit_price"),
				Taxes: []transaction.Tax{{
					Regime: transaction.VAT, Mode: mode,
					Rate: num.MakeAmount(rapid.Int64Range(0, 4000).Draw(t, "rate"), 2),
				}},
			}
			if items[i].UnitPrice > 0 { // GOBL does not turn an amount's sign with the line's
				items[i].Discount = drawDiscount(t, items[i])
			}
		}
		totals, faults := transaction.Calculate(items)
		if len(faults) != 0 {
			t.Fatal(faults)
		}
		gross, net, taxed := goblTotals(t, code, items)
		for _, d := range []int64{totals.Gross - gross, totals.Net - net, totals.Tax - taxed} {
			if n := int64(len(items)); d > n || d < -n {
				t.Fatalf("ours %d %d %d, GOBL %d %d %d: more than %d apart", totals.Gross, totals.Net, totals.Tax, gross, net,
					taxed, n)
			}
		}
	})
}

func TestCurrencyExponents(t *testing.T) {
	for code, want := range map[string]int{"EUR": 2, "USD": 2, "HUF": 2, "JPY": 0, "KRW": 0, "CLP": 0, "KWD": 3, "BHD": 3,
		"TND": 3, "CLF": 4, "UYW": 4, "XAF": 0, "BGN": 2} {
		if got, ok := transaction.CurrencyExponent(code); !ok || got != want {
			t.Errorf("%s: got %d %v, want %d", code, got, ok, want)
		}
	}
	for _, code := range []string{"", "XXX", "XTS", "XAU", "XDR", "eur", "EURO", "ABC"} {
		if _, ok := transaction.CurrencyExponent(code); ok {
			t.Errorf("%s must not be known", code)
		}
	}
	// GOBL keeps a list too. Where the two differ, the difference is meant:
	// GOBL's forint has no decimals, its ariary and ouguiya count fifths, and
	// what we do not know is long gone, no currency, or without a minor unit.
	differ := map[string]bool{"HUF": true, "MGA": true, "MRU": true}
	unknown := map[string]bool{}
	for _, code := range strings.Fields(
		"BYR SKK XAG XAU XBA XBB XBC XBD XDR XPD XPT XTS ZMK BCH BTC JEP GGP IMP XFU GBX CNH USDC") {
		unknown[code] = true
	}
	for _, def := range currency.Definitions() {
		code := def.ISOCode.String()
		got, ok := transaction.CurrencyExponent(code)
		if ok == unknown[code] {
			t.Errorf("%s %s: known %v", code, def.Name, ok)
		}
		if ok && (uint32(got) != def.Subunits) != differ[code] {
			t.Errorf("%s has %d decimals here and %d in GOBL", code, got, def.Subunits)
		}
	}
}

func TestCountriesAreThoseOfISO3166(t *testing.T) {
	listed := map[string]bool{"XK": true, "XX": true, "IC": true, "EA": true}
	for _, def := range l10n.Countries().ISO() {
		listed[def.Code.String()] = true
	}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if code := string(a) + string(b); transaction.CountryKnown(code) != listed[code] {
				t.Errorf("%s: known %v, listed %v", code, transaction.CountryKnown(code), listed[code])
			}
		}
	}
	if transaction.CountryKnown("de") || transaction.CountryKnown("") || transaction.CountryKnown("DEU") {
		t.Error("only two capital letters are a code")
	}
}

func threeLines() []transaction.Item {
	item := transaction.Item{Quantity: num.MakeAmount(15, 1), UnitPrice: 7570,
		Taxes: []transaction.Tax{vat(25, 0), vat(125, 1)}}
	return []transaction.Item{item, item, item}
}

// Only the result itself may be allocated: the lines and one block of taxes.
func TestCalculateAllocatesNothingButItsResult(t *testing.T) {
	items := threeLines()
	if n := testing.AllocsPerRun(100, func() { transaction.Calculate(items) }); n > 2 {
		t.Errorf("%v allocations, want at most 2", n)
	}
}

func BenchmarkCalculate(b *testing.B) {
	items := threeLines()
	b.ReportAllocs()
	for b.Loop() {
		transaction.Calculate(items)
	}
}

// A quota is due whatever the price, and IVA on the price with it. What is
// included comes out as what is added.
func TestQuotasAreDueWhateverThePrice(t *testing.T) {
	tax := func(mode string, quota, base int64) []transaction.Tax {
		q, b := num.MakeAmount(quota, 2), num.MakeAmount(base, 0)
		return []transaction.Tax{{Regime: transaction.IEPS, Mode: mode, Quota: &q, QuotaBase: &b},
			{Rate: num.MakeAmount(16, 0), Regime: transaction.VAT, Mode: mode}}
	}
	for name, c := range map[string]struct {
		price            int64
		taxes            []transaction.Tax
		gross, net, ieps int64
		fault            bool
	}{
		"added":                     {1000, tax(transaction.Added, 30818, 6), 13745, 10000, 1849, false},
		"included":                  {1375, tax(transaction.Included, 30818, 6), 13750, 10004, 1849, false},
		"given back":                {-1375, tax(transaction.Included, 30818, 6), -13750, -10004, -1849, false},
		"all of the price":          {145, tax(transaction.Included, 12500, 10), 1450, 0, 1250, false},
		"a cent more than there is": {145, tax(transaction.Included, 12510, 10), 0, 0, 0, true},
	} {
		totals, faults := transaction.Calculate(
			[]transaction.Item{{Quantity: quantity(t, "10"), UnitPrice: c.price, Taxes: c.taxes}})
		if (len(faults) > 0) != c.fault {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		if c.fault {
			continue
		}
		l := totals.Lines[0]
		if l.Gross != c.gross || l.Net != c.net || l.Taxes[0] != c.ieps || l.Net+l.Taxes[0]+l.Taxes[1] != l.Gross ||
			totals.Net+totals.Tax != totals.Gross {
			t.Errorf("%s: %+v", name, l)
		}
	}
	q := num.MakeAmount(250, 2) // of the line's own quantity
	totals, _ := transaction.Calculate([]transaction.Item{{Quantity: quantity(t, "3"), UnitPrice: 100,
		Taxes: []transaction.Tax{{Regime: transaction.IEPS, Mode: transaction.Added, Quota: &q}}}})
	if totals.Gross != 308 {
		t.Errorf("%+v", totals)
	}
}

func TestTheOnlyTaxOfALineIsTheOneThatIsNotWithheld(t *testing.T) {
	vat, held := transaction.Tax{Regime: transaction.VAT}, transaction.Tax{Regime: transaction.Withholding}
	for _, c := range []struct {
		taxes []transaction.Tax
		want  int
	}{{nil, -1}, {[]transaction.Tax{held}, -1}, {[]transaction.Tax{vat}, 0}, {[]transaction.Tax{held, vat, held}, 1},
		{[]transaction.Tax{vat, vat}, -1}} {
		if got := (&transaction.Item{Taxes: c.taxes}).OnlyTax(); got != c.want {
			t.Errorf("%v: %d, want %d", c.taxes, got, c.want)
		}
	}
}
