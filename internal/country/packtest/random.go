package packtest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// RandomSales is how many random sales of a country official rules judge: a handful
// in the gate, forty in make conformance.
func RandomSales() int {
	if needs.Conformance() || needs.IsLong() {
		return 40
	}
	return 8
}

// RandomReports prepares random sales that the country's own checks accept.
func RandomReports(t testing.TB, pack country.Pack, ch country.Channel, draft func(number string, seed int) country.Draft) (reports [][]byte) {
	t.Helper()
	refused := 0
	for seed := 1; len(reports) < RandomSales(); seed++ {
		d := draft("R-"+strconv.Itoa(seed), seed)
		found := pack.Check(country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both, Now: d.Now})
		if slices.ContainsFunc(found, func(f fault.Fault) bool { return f.Type != fault.Warning }) {
			if refused++; refused > RandomSales() {
				t.Fatalf("our own checks refuse nearly everything: %v", found)
			}
			continue
		}
		d.Sequence = int64(seed)
		f, err := ch.Prepare(d)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		reports = append(reports, f.Report)
	}
	return reports
}

// RandomItems are lines that a shop of a country may sell: several rates, prices
// with tax or without, fractions, discounts of lines, and allowances and charges of
// the document. Equal seeds give equal lines; what they come to is above nothing.
func RandomItems(seed int, rates ...string) []transaction.Item {
	random := rand.New(rand.NewPCG(uint64(seed), 31))
	mode := []string{transaction.Included, transaction.Added}[random.IntN(2)]
	var items []transaction.Item
	add := func(item transaction.Item) {
		item.Number = int64(len(items) + 1)
		item.Name = "Article " + strconv.Itoa(len(items)+1)
		items = append(items, item)
	}
	for range 1 + random.IntN(9) {
		item := transaction.Item{Quantity: num.MakeAmount(100+random.Int64N(90_000), uint32(random.IntN(3))),
			UnitPrice: 100 + random.Int64N(50_000), Unit: []string{"", "h", "kg", "pcs"}[random.IntN(4)],
			Type:  []string{transaction.Goods, transaction.Services}[random.IntN(2)],
			Taxes: []transaction.Tax{VAT(rates[random.IntN(len(rates))], mode)}}
		if random.IntN(4) == 0 {
			rate := num.MakeAmount(1+random.Int64N(500_000), 4)
			item.Discount = &transaction.LineDiscount{Rate: &rate}
		}
		add(item)
	}
	first := items[0]
	if random.IntN(2) == 0 {
		e := transaction.Extra{Amount: 1 + random.Int64N(50), Reason: "Loyalty"}
		add(transaction.Item{Quantity: num.MakeAmount(1, 0), UnitPrice: -e.Amount, Type: transaction.Discount,
			Taxes: first.Taxes, Extra: &e})
	}
	if random.IntN(2) == 0 {
		e := transaction.Extra{Charge: true, Amount: 1 + random.Int64N(5_000), Reason: "Freight"}
		add(transaction.Item{Quantity: num.MakeAmount(1, 0), UnitPrice: e.Amount, Type: first.Type, Taxes: first.Taxes, Extra: &e})
	}
	return items
}
