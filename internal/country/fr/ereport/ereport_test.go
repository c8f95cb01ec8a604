package ereport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/country/fr/ereport"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

func paris(t testing.TB) *time.Location {
	t.Helper()
	where, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// line is a line of a sale: GOODS 10000 at 20.
type line struct {
	kind, rate, tax, code, regime string
	net                           int64
}

func percent(t testing.TB, text string) num.Amount {
	t.Helper()
	a, err := num.AmountFromString(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sale is a sale with its amounts, taxed line by line.
func sale(t testing.TB, number, currency string, at time.Time, lines ...line) country.Draft {
	t.Helper()
	d := country.Draft{Location: paris(t), Now: at, Transaction: transaction.Transaction{Kind: transaction.Invoice, ID: number,
		Number: number, CountryCode: "FR", CurrencyCode: currency, Date: at}}
	for i, l := range lines {
		rate := percent(t, l.rate)
		tax := num.MakeAmount(l.net, 0).Multiply(rate).Rescale(4).Divide(num.MakeAmount(100, 0)).Rescale(0).Value()
		d.Transaction.Items = append(d.Transaction.Items, transaction.Item{Number: int64(i + 1), Name: "n", Type: l.kind,
			Quantity: num.MakeAmount(1, 0), Taxes: []transaction.Tax{{Rate: rate, Regime: orVAT(l.regime), Type: l.tax, Code: l.code}}})
		d.Totals.Lines = append(d.Totals.Lines, transaction.Line{Net: l.net, Gross: l.net + tax, Taxes: []int64{tax}})
		d.Totals.Net, d.Totals.Tax, d.Totals.Gross = d.Totals.Net+l.net, d.Totals.Tax+tax, d.Totals.Gross+l.net+tax
	}
	return d
}

func orVAT(regime string) string {
	if regime == "" {
		return transaction.VAT
	}
	return regime
}

func day(t testing.TB, d, hour int) time.Time {
	return time.Date(2026, 11, d, hour, 0, 0, 0, paris(t))
}

// entries hands contributions over as the service does.
func entries(t testing.TB, list ...*ereport.Contribution) iter.Seq2[country.PeriodSale, error] {
	t.Helper()
	return func(yield func(country.PeriodSale, error) bool) {
		for i, c := range list {
			data, err := c.Encode()
			if !yield(country.PeriodSale{TransactionID: fmt.Sprint("t", i), Data: data}, err) {
				return
			}
		}
	}
}

func got(t testing.TB, c *ereport.Contribution, err error) *ereport.Contribution {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// report is the document of contributions.
func report(t testing.TB, span country.Span, replaces string, sales iter.Seq2[country.PeriodSale, error]) []byte {
	t.Helper()
	sum, err := ereport.Sum(sales)
	if err != nil {
		t.Fatal(err)
	}
	p := &country.Period{Span: span, Number: "T20261101-EUR-2", Replaces: replaces, Sum: sum}
	out, err := ereport.Write(ereport.Head{At: day(t, 12, 0), Where: paris(t), Platform: "0042", Name: "PA", SIREN: "552100554", Company: "Société É"}, p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// documents are reports of every kind, by name.
func documents(t testing.TB) map[string][]byte {
	t.Helper()
	rules, out := ereport.Rules{}, map[string][]byte{}
	shop := sale(t, "S-1", "EUR", day(t, 3, 9), line{kind: transaction.Goods, rate: "20", net: 10000},
		line{kind: transaction.Services, rate: "10", net: 5000}, line{kind: transaction.Goods, rate: "5.5", net: 333})
	dollars := sale(t, "S-2", "USD", day(t, 3, 10), line{kind: transaction.Goods, rate: "20", net: 10000})
	rate := percent(t, "0.9173")
	dollars.Transaction.ExchangeRate = &rate
	abroad := sale(t, "S-3", "EUR", day(t, 4, 0), line{kind: transaction.Goods, rate: "19", net: 8403, regime: "OSS"},
		line{kind: transaction.Goods, rate: "0", net: 2000, tax: transaction.TaxExempt, code: "VATEX-EU-F"})
	back := sale(t, "S-4", "EUR", day(t, 5, 12), line{kind: transaction.Goods, rate: "20", net: 4000})
	one, err := rules.Sale(&shop, 1)
	two, wrong := rules.Sale(&dollars, 1)
	three, also := rules.Sale(&abroad, 1)
	four, last := rules.Sale(&back, -1)
	if err := errors.Join(err, wrong, also, last); err != nil {
		t.Fatal(err)
	}
	span := ereport.RealMonthly.Sales(day(t, 3, 0))
	out["transactions"] = report(t, span, "", entries(t, one, two, three, four, one))
	out["replaced"] = report(t, span, "T20261101-EUR-1", entries(t, one, three))
	out["nothing"] = report(t, span, "T20261101-EUR-1", left(entries(t, one, two)))
	debits, err := ereport.Rules{Debits: true}.Sale(&shop, 1)
	out["debits"] = report(t, ereport.Simplified.Sales(day(t, 3, 0)), "", entries(t, got(t, debits, err)))

	german := sale(t, "F-1", "EUR", day(t, 2, 9), line{kind: transaction.Goods, rate: "0", net: 70000, tax: transaction.TaxIntraEU},
		line{kind: transaction.Services, rate: "0", net: 20000, tax: transaction.TaxReverse})
	credit := sale(t, "A-1", "EUR", day(t, 6, 9), line{kind: transaction.Goods, rate: "0", net: 70000, tax: transaction.TaxIntraEU})
	credit.Transaction.Kind, credit.Original = transaction.Credit, &country.Original{Transaction: german.Transaction}
	swiss := sale(t, "F-2", "CHF", day(t, 7, 9), line{kind: transaction.Services, rate: "20", net: 10000, tax: transaction.TaxStandard})
	franc := percent(t, "1.0712")
	swiss.Transaction.ExchangeRate = &franc
	seller := ereport.Party{ID: "552100554", Scheme: ereport.SchemeSIREN, VAT: "FR40552100554", Country: "FR"}
	var list []*ereport.Contribution
	for _, v := range []struct {
		d     *country.Draft
		buyer ereport.Party
	}{{&german, ereport.Abroad(&transaction.Party{LegalName: "Müller GmbH", TaxNumber: "136695976"}, "DE", true)},
		{&credit, ereport.Abroad(&transaction.Party{LegalName: "Müller GmbH", TaxNumber: "DE136695976"}, "DE", true)},
		{&swiss, ereport.Abroad(&transaction.Party{LegalName: "Schweizer Uhren und Werke AG"}, "CH", false)}} {
		c, err := rules.Invoice(v.d, seller, v.buyer)
		list = append(list, got(t, c, err))
	}
	out["invoices"] = report(t, span, "", entries(t, append(list, one)...))

	paid := country.Draft{Location: paris(t), Transaction: transaction.Transaction{Kind: transaction.PaymentReport, ID: "p", CurrencyCode: "EUR",
		Date: day(t, 8, 9)}, Shares: []country.Share{
		{Original: country.Original{Transaction: shop.Transaction, Totals: shop.Totals}, Amount: shop.Totals.Gross},
		{Original: country.Original{Transaction: swiss.Transaction, Totals: swiss.Totals}, Amount: 6000}}}
	c, err := rules.Payments(&paid, func(o country.Original) ereport.Flow {
		if strings.HasPrefix(o.Transaction.Number, "F-") {
			return ereport.OfInvoice
		}
		return ereport.OfSales
	})
	out["payments"] = report(t, ereport.RealMonthly.Payments(day(t, 8, 0)), "", entries(t, got(t, c, err)))
	return out
}

func left(sales iter.Seq2[country.PeriodSale, error]) iter.Seq2[country.PeriodSale, error] {
	return func(yield func(country.PeriodSale, error) bool) {
		for s, err := range sales {
			if s.Left = true; !yield(s, err) {
				return
			}
		}
	}
}

func TestReportsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	for name, doc := range documents(t) {
		path := filepath.Join("testdata", name+".xml")
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(want, doc) {
			t.Errorf("%s (%v):\n%s", path, err, doc)
			if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
				if err := os.WriteFile(path, doc, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// The official schema and rules take every report; what they must refuse they do.
func TestTheOfficialRulesTakeEveryReport(t *testing.T) {
	t.Parallel()
	rules := needs.Schemas(t, "fr-ctc", "flux10-xslt", "PPF_Flux10_v1_0.xslt")
	schema := packtest.XSD{Path: needs.Schemas(t, "fr-ctc", "flux10-xsd", "ereporting.xsd")}
	var list [][]byte
	for _, doc := range documents(t) {
		list = append(list, doc)
	}
	for i, err := range schema.CheckAll(t, list) {
		if err != nil {
			t.Errorf("%v\n%s", err, list[i])
		}
	}
	trials := []packtest.Trial{{Rules: rules, Document: bytes.Replace(documents(t)["transactions"], []byte("<TaxPercent>20<"), []byte("<TaxPercent>19<"), 1)}}
	for _, doc := range list {
		trials = append(trials, packtest.Trial{Rules: rules, Document: doc})
	}
	for i, v := range packtest.Judge(t, trials) {
		switch {
		case i == 0 && len(v.Errors) == 0:
			t.Error("a rate that France does not have is taken")
		case i > 0 && (v.Fired == 0 || len(v.Errors) > 0):
			t.Errorf("refused: %s\n%s", strings.Join(v.Texts, "\n"), trials[i].Document)
		}
	}
}

// Sums are those of the transactions, per day, currency and category, and so are the
// taxes, in whatever order they come.
func TestSumsAreThoseOfTheTransactions(t *testing.T) {
	t.Parallel()
	where := paris(t)
	rapid.Check(t, func(rt *rapid.T) {
		want, tax := map[string]int64{}, map[string]int64{}
		var list []*ereport.Contribution
		for range rapid.IntRange(1, 40).Draw(rt, "sales") {
			at := time.Date(2026, 11, rapid.IntRange(1, 10).Draw(rt, "day"), rapid.IntRange(0, 23).Draw(rt, "hour"), 59, 59, 0, where).UTC()
			currency := rapid.SampledFrom([]string{"EUR", "USD", "JPY"}).Draw(rt, "currency")
			kind := rapid.SampledFrom([]string{transaction.Goods, transaction.Services}).Draw(rt, "kind")
			rate := rapid.SampledFrom([]string{"20", "5.5", "2.1", "19", "0"}).Draw(rt, "rate")
			d := sale(t, "x", currency, at, line{kind: kind, rate: rate, net: rapid.Int64Range(0, 1<<40).Draw(rt, "net")},
				line{kind: kind, rate: rate, net: rapid.Int64Range(0, 1<<40).Draw(rt, "net")})
			exchange := num.MakeAmount(rapid.Int64Range(1, 3_000_000).Draw(rt, "exchange"), 6)
			d.Transaction.ExchangeRate = &exchange
			sign := rapid.SampledFrom([]int64{1, 1, 1, -1}).Draw(rt, "sign")
			c, err := ereport.Rules{}.Sale(&d, sign)
			if err != nil {
				rt.Fatal(err)
			}
			category := map[string]string{transaction.Goods: ereport.Goods, transaction.Services: ereport.Services}[kind]
			if rate == "19" || rate == "0" {
				category = ereport.Untaxed
			}
			key := at.In(where).Format("20060102") + currency + category
			want[key] += sign * d.Totals.Net
			if category != ereport.Untaxed && currency == "EUR" {
				tax[key] += sign * d.Totals.Tax
			}
			list = append(list, c)
		}
		sum, err := ereport.Sum(entries(t, list...))
		if err != nil {
			rt.Fatal(err)
		}
		var out ereport.Contribution
		if err := json.Unmarshal(sum, &out); err != nil || len(out.Groups) != len(want) {
			rt.Fatalf("%v: %d groups instead of %d", err, len(out.Groups), len(want))
		}
		count := int64(0)
		for _, g := range out.Groups {
			key, charged := g.Day+g.Currency+g.Category, int64(0)
			for _, r := range g.Rates {
				charged += r.Tax
			}
			if g.Net != want[key] || g.Currency == "EUR" && charged != tax[key] {
				rt.Fatalf("%s: %d and %d of tax instead of %d and %d", key, g.Net, charged, want[key], tax[key])
			}
			count += g.Count
		}
		if count != int64(len(list)) {
			rt.Fatalf("%d transactions instead of %d", count, len(list))
		}
	})
}

// Table 13 of the external specifications, at its edges and where clocks change.
func TestPeriodsAndTheirDueDays(t *testing.T) {
	t.Parallel()
	where := paris(t)
	for _, x := range []struct {
		regime      ereport.Regime
		at          string
		sales, pays string
	}{
		{ereport.RealMonthly, "2026-11-10T23:59:59", "2026-11-01–2026-11-10 2026-11-20", "2026-11-01–2026-11-30 2026-12-10"},
		{ereport.RealMonthly, "2026-11-11T00:00:00", "2026-11-11–2026-11-20 2026-11-30", "2026-11-01–2026-11-30 2026-12-10"},
		{ereport.RealMonthly, "2026-12-31T23:59:59", "2026-12-21–2026-12-31 2027-01-10", "2026-12-01–2026-12-31 2027-01-10"},
		{ereport.RealMonthly, "2027-02-11T12:00:00", "2027-02-11–2027-02-20 2027-02-28", "2027-02-01–2027-02-28 2027-03-10"},
		{ereport.RealMonthly, "2026-10-25T02:30:00", "2026-10-21–2026-10-31 2026-11-10", "2026-10-01–2026-10-31 2026-11-10"},
		{ereport.RealMonthly, "2027-03-28T03:30:00", "2027-03-21–2027-03-31 2027-04-10", "2027-03-01–2027-03-31 2027-04-10"},
		{ereport.RealQuarterly, "2026-11-15T12:00:00", "2026-11-01–2026-11-30 2026-12-10", "2026-11-01–2026-11-30 2026-12-10"},
		{ereport.Simplified, "2026-12-15T12:00:00", "2026-12-01–2026-12-31 2027-01-31", "2026-12-01–2026-12-31 2027-01-31"},
		{ereport.Simplified, "2027-01-31T23:00:00", "2027-01-01–2027-01-31 2027-02-28", "2027-01-01–2027-01-31 2027-02-28"},
		{ereport.Franchise, "2026-12-31T23:59:59", "2026-11-01–2026-12-31 2027-01-31", "2026-11-01–2026-12-31 2027-01-31"},
		{ereport.Franchise, "2027-01-01T00:00:00", "2027-01-01–2027-02-28 2027-03-31", "2027-01-01–2027-02-28 2027-03-31"},
	} {
		at, err := time.ParseInLocation("2006-01-02T15:04:05", x.at, where)
		if err != nil {
			t.Fatal(err)
		}
		text := func(s country.Span) string {
			return s.First.Format(time.DateOnly) + "–" + s.Next.Add(-1).Format(time.DateOnly) + " " + s.Due.Add(-1).Format(time.DateOnly)
		}
		if got := text(x.regime.Sales(at)); got != x.sales {
			t.Errorf("%s, sales of %s: %s instead of %s", x.regime, x.at, got, x.sales)
		}
		if got := text(x.regime.Payments(at)); got != x.pays || x.regime.Payments(at).Report != ereport.Payments {
			t.Errorf("%s, payments of %s: %s instead of %s", x.regime, x.at, got, x.pays)
		}
	}
}

// What of a payment is for services is reported, to the cent, and nothing where VAT is
// due with the invoice.
func TestWhatAPaymentContributes(t *testing.T) {
	t.Parallel()
	mixed := sale(t, "S-1", "EUR", day(t, 3, 9), line{kind: transaction.Goods, rate: "20", net: 10000},
		line{kind: transaction.Services, rate: "10", net: 5000}, line{kind: transaction.Services, rate: "20", net: 5000})
	of := func(amount int64) *country.Draft {
		return &country.Draft{Location: paris(t), Transaction: transaction.Transaction{CurrencyCode: "EUR", Date: day(t, 8, 23)},
			Shares: []country.Share{{Original: country.Original{Transaction: mixed.Transaction, Totals: mixed.Totals}, Amount: amount}}}
	}
	to := func(f ereport.Flow) func(country.Original) ereport.Flow {
		return func(country.Original) ereport.Flow { return f }
	}
	for amount, want := range map[int64]string{23500: "10:5500 20:6000", 11750: "10:2750 20:3000", 1: "10:0 20:0", 100: "10:23 20:26"} {
		c, err := ereport.Rules{}.Payments(of(amount), to(ereport.OfSales))
		text := ""
		for _, r := range got(t, c, err).Paid[0].Rates {
			text += fmt.Sprintf(" %s:%d", r.Percent, r.Base)
		}
		if text != " "+want || c.Paid[0].Day != "20261108" {
			t.Errorf("of %d:%s instead of %s", amount, text, want)
		}
	}
	for name, c := range map[string]func() (*ereport.Contribution, error){
		"debits": func() (*ereport.Contribution, error) {
			return ereport.Rules{Debits: true}.Payments(of(5), to(ereport.OfSales))
		},
		"elsewhere": func() (*ereport.Contribution, error) { return ereport.Rules{}.Payments(of(5), to(ereport.Elsewhere)) },
	} {
		if got, err := c(); got != nil || err != nil {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestWhatCannotBeReportedIsRefused(t *testing.T) {
	t.Parallel()
	dollars := sale(t, "S-2", "USD", day(t, 3, 10), line{kind: transaction.Goods, rate: "20", net: 10000})
	_, err := ereport.Rules{}.Sale(&dollars, 1)
	named(t, err, "exchange_rate")
	long := sale(t, strings.Repeat("9", 36), "EUR", day(t, 3, 10), line{kind: transaction.Goods, rate: "20", net: 1})
	_, err = ereport.Rules{}.Invoice(&long, ereport.Party{}, ereport.Party{})
	named(t, err, "transaction_number")
	free := sale(t, "F-9", "EUR", day(t, 3, 10), line{kind: transaction.Goods, rate: "0", tax: transaction.TaxExempt, net: 1})
	_, err = ereport.Rules{}.Invoice(&free, ereport.Party{}, ereport.Party{})
	named(t, err, "items.0.tax_breakdowns.0.code")
	if _, err := ereport.Write(ereport.Head{}, &country.Period{Sum: []byte("{}")}); err == nil {
		t.Error("an empty report is made")
	}
	large := &ereport.Contribution{Groups: []ereport.Group{{Net: 1 << 61}}}
	if _, err := ereport.Sum(entries(t, large, large, large)); err == nil {
		t.Error("a sum that is too large is made")
	}
}

func named(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *fault.Error
	if !errors.As(err, &wrong) || wrong.Kind != fault.Invalid || len(wrong.Faults) != 1 || wrong.Faults[0].Field != field {
		t.Errorf("%v does not name %s", err, field)
	}
}
