package packtest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/fault"
	"tributary/internal/incoming"
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
		readBack(t, pack, &d, f.Report)
		reports = append(reports, f.Report)
	}
	return reports
}

// readBack reads what a pack wrote as somebody who receives it would: who sold what to whom, and for how much. A pack
// whose documents nobody reads is left out.
func readBack(t testing.TB, pack country.Pack, d *country.Draft, report []byte) {
	t.Helper()
	space, root := incoming.Root(report)
	formats := append(en16931.Formats(), pack.Formats...)
	at := slices.IndexFunc(formats, func(f country.Format) bool { return f.Begins == nil && f.Space == space && f.Root == root })
	if at < 0 {
		return
	}
	all, err := formats[at].Read(report)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s is not read back: %d documents, %v", d.Transaction.Number, len(all), err)
	}
	got, lines := all[0], len(d.Transaction.Items)
	for _, item := range d.Transaction.Items {
		if item.Extra != nil {
			lines--
		}
	}
	var base, tax int64
	for _, one := range got.Taxes {
		if one.Regime != transaction.Withholding {
			base, tax = base+one.Base, tax+one.Amount
		}
	}
	if got.Total() != d.Totals.Gross || got.Net+got.Tax+got.Rounding != got.Total() || tax != got.Tax || base != got.Net ||
		got.Currency != d.Transaction.CurrencyCode || len(got.Lines) < lines || letters(got.Sender.LegalName) != letters(d.Supplier.LegalName) ||
		d.Transaction.Customer != nil && letters(got.Receiver.LegalName) != letters(d.Transaction.Customer.LegalName) {
		t.Fatalf("%s is read back as %d = %d + %d (rounded by %d) in %s from %q to %q, %d lines, rates of %d and %d; it was %d in %s from %q, %d lines",
			d.Transaction.Number, got.Gross, got.Net, got.Tax, got.Rounding, got.Currency, got.Sender.LegalName, got.Receiver.LegalName,
			len(got.Lines), base, tax, d.Totals.Gross, d.Transaction.CurrencyCode, d.Supplier.LegalName, lines)
	}
}

// letters are what every country writes of a name.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
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
