package generic_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/l10n"
	"github.com/invopop/gobl/num"
	"github.com/invopop/gobl/tax"
	"golang.org/x/text/language"
	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/country/generic"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

func packs(tb testing.TB) map[string]country.Pack {
	tb.Helper()
	all, err := generic.Packs()
	if err != nil {
		tb.Fatal(err)
	}
	byCode := map[string]country.Pack{}
	for _, p := range all {
		byCode[p.Code] = p
	}
	if len(byCode) != len(all) {
		tb.Fatalf("%d packs for %d countries", len(all), len(byCode))
	}
	return byCode
}

func TestEveryCountryOfISO3166IsThere(t *testing.T) {
	all := packs(t)
	if len(all) != 249 {
		t.Errorf("%d countries instead of 249", len(all))
	}
	for _, c := range l10n.Countries().ISO() {
		if all[string(c.Code)].Name == "" {
			t.Errorf("%s %s is missing", c.Code, c.Name)
		}
	}
}

func TestEveryCountryHasACurrencyLanguagesAndATimeZone(t *testing.T) {
	for code, p := range packs(t) {
		if _, known := transaction.CurrencyExponent(p.Facts.Currency); !known {
			t.Errorf("%s: currency %s", code, p.Facts.Currency)
		}
		for _, l := range p.Facts.Languages {
			if base, err := language.ParseBase(strings.ToLower(l)); err != nil || len(base.String()) != 2 && l != "NO" {
				t.Errorf("%s: language %s", code, l)
			}
		}
		if _, err := time.LoadLocation(p.Facts.TimeZone); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if regime := tax.RegimeDefFor(l10n.Code(code)); regime != nil && regime.Currency.String() != p.Facts.Currency {
			t.Errorf("%s: currency %s, the tax library says %s", code, p.Facts.Currency, regime.Currency)
		}
		if p.Connect != nil || !slices.Equal(p.Facts.UseCases, []country.UseCase{country.Invoicing}) {
			t.Errorf("%s: a documents-only country offers %v", code, p.Facts.UseCases)
		}
		for _, kind := range []transaction.Kind{transaction.Adjustment, transaction.Credit, transaction.Cancellation,
			transaction.Backfill} {
			if c, ok := p.Facts.Correction(kind); !ok || c.Days != 0 {
				t.Errorf("%s: %s has a deadline or is missing", code, kind)
			}
		}
	}
}

func TestTheAtlasTakesThemAll(t *testing.T) {
	all, err := generic.Packs()
	if err != nil {
		t.Fatal(err)
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: all})
	if err != nil {
		t.Fatal(err)
	}
	atlas.Close()
}

func TestEveryMemberStateHasAStandardRateToday(t *testing.T) {
	all := packs(t)
	for _, code := range strings.Fields(
		"AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK") {
		standard := 0
		for _, r := range all[code].Facts.Rates {
			if r.Regime == transaction.VAT && r.Type == transaction.TaxStandard && r.Until == "" {
				standard++
			}
		}
		if standard == 0 || len(all[code].Sources) == 0 {
			t.Errorf("%s: %d standard rates in force, sources %v", code, standard, all[code].Sources)
		}
	}
}

func TestRatesChangeOnTheirDay(t *testing.T) {
	all := packs(t)
	for _, c := range []struct {
		code, day, percent string
		kind               string // "": unusual
	}{
		{"DE", "2020-06-15", "19", transaction.TaxStandard},
		{"DE", "2020-08-15", "19", ""},
		{"DE", "2020-08-15", "16", transaction.TaxStandard},
		{"DE", "2021-02-01", "16", ""},
		{"DE", "2026-05-01", "7", transaction.TaxReduced},
		{"EE", "2025-06-29", "22", transaction.TaxStandard},
		{"EE", "2025-07-02", "22", ""},
		{"EE", "2025-07-02", "24", transaction.TaxStandard},
		{"FI", "2026-03-01", "25.5", transaction.TaxStandard},
		{"FI", "2026-03-01", "13.5", transaction.TaxReduced},
		{"FI", "2026-03-01", "14", ""},
		{"PT", "2026-03-01", "22", transaction.TaxStandard}, // Madeira
		{"BE", "2026-03-01", "20", ""},
		{"US", "2026-03-01", "7.25", transaction.TaxStandard}, // no table: nothing is unusual
	} {
		p := all[c.code]
		rate, err := num.AmountFromString(c.percent)
		if err != nil {
			t.Fatal(err)
		}
		in := sale(c.code, c.day, rate)
		typed := p.TypedItems(in)[0].Taxes[0].Type
		faults := findings(p, in)
		if c.kind == "" {
			if len(faults) != 1 || faults[0].Code != fault.RateUnusual || faults[0].Type != fault.Warning ||
				faults[0].Field != "items.0.tax_breakdowns.0.rate" {
				t.Errorf("%s %s %s: %v", c.code, c.day, c.percent, faults)
			}
			continue
		}
		if len(faults) != 0 || typed != c.kind {
			t.Errorf("%s %s %s: %s, %v", c.code, c.day, c.percent, typed, faults)
		}
	}
}

// findings is what a client reads of a transaction.
func findings(p country.Pack, in country.Case) []fault.Fault {
	return append(country.CheckRates(p.Facts, in), p.Check(in)...)
}

func sale(code, day string, rate num.Amount) country.Case {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return country.Case{UseCase: country.Invoicing, Now: at, Transaction: &transaction.Transaction{
		Kind: transaction.Invoice, CountryCode: code, CurrencyCode: "EUR", Date: at.Add(12 * time.Hour),
		Items: []transaction.Item{{
			Number: 1, Name: "Tea", Quantity: num.MakeAmount(1, 0), UnitPrice: 100, Type: transaction.Goods,
			Taxes: []transaction.Tax{{Rate: rate, Regime: transaction.VAT, Mode: transaction.Included}},
		}},
	}}
}

func TestADoubtfulNumberOfABusinessIsAWarning(t *testing.T) {
	p := packs(t)["IE"]
	in := sale("IE", "2026-03-01", num.MakeAmount(23, 0))
	in.Transaction.Customer = &transaction.Party{LegalName: "Rot GmbH", Type: transaction.Business,
		TaxNumber: "DE123456789", Address: &transaction.Address{CountryCode: "de"}}
	faults := p.Check(in)
	if len(faults) != 1 || faults[0].Code != fault.TaxNumberDoubtful || faults[0].Type != fault.Warning ||
		faults[0].Field != "customer.tax_information.tax_number" {
		t.Errorf("a number with wrong check digits: %v", faults)
	}
	in.Transaction.Customer.TaxNumber = "DE111111125"
	if faults := p.Check(in); len(faults) != 0 {
		t.Errorf("a good number: %v", faults)
	}
	in.Transaction.Customer.TaxNumber, in.Transaction.Customer.Type = "anything", transaction.Individual
	if faults := p.Check(in); len(faults) != 0 {
		t.Errorf("a person's number: %v", faults)
	}
}

// In a documents-only country nothing is ever an error, whatever comes.
func TestNoFindingIsAnError(t *testing.T) {
	all := packs(t)
	codes := make([]string, 0, len(all))
	for code := range all {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom(codes).Draw(t, "country")
		in := sale(code, "2026-03-01", num.MakeAmount(rapid.Int64Range(0, 1_000_000).Draw(t, "rate"), 4))
		in.Transaction.Customer = &transaction.Party{
			Type:      rapid.SampledFrom([]string{"", transaction.Individual, transaction.Business}).Draw(t, "type"),
			TaxNumber: rapid.String().Draw(t, "number"),
			Address:   &transaction.Address{CountryCode: rapid.StringMatching(`[A-Za-z]{0,2}`).Draw(t, "address")},
		}
		for _, f := range findings(all[code], in) {
			if f.Type != fault.Warning {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func TestDocumentsOnlyCountriesPassTheSuite(t *testing.T) {
	all := packs(t)
	for _, code := range []string{"IE", "DE", "US", "HU", "JP"} {
		t.Run(code, func(t *testing.T) {
			var cases []packtest.Case
			for _, rate := range []int64{0, 5, 19, 23, 27} {
				in := sale(code, "2026-03-01", num.MakeAmount(rate, 0))
				cases = append(cases, packtest.Case{Name: "sale at " + num.MakeAmount(rate, 0).String(),
					Draft: country.Draft{Transaction: *in.Transaction, Now: in.Now}})
			}
			packtest.Exercise(t, all[code], packtest.Options{Name: code, Cases: cases})
		})
	}
}

// A start is cheap: this takes about two milliseconds. The best of some runs
// counts, because others may want the same processor.
func TestLoadingIsCheap(t *testing.T) {
	needs.Long(t, "it looks at the clock")
	best := time.Hour
	for range 5 {
		begun := time.Now()
		packs(t)
		best = min(best, time.Since(begun))
	}
	if best > 30*time.Millisecond {
		t.Errorf("loading all packs takes %s", best)
	}
}

func BenchmarkPacks(b *testing.B) {
	for b.Loop() {
		all, err := generic.Packs()
		if err != nil {
			b.Fatal(err)
		}
		atlas, err := country.NewAtlas(country.AtlasConfig{Packs: all})
		if err != nil {
			b.Fatal(err)
		}
		atlas.Close()
	}
}

func BenchmarkCheck(b *testing.B) {
	p := packs(b)["IE"]
	in := sale("IE", "2026-03-01", num.MakeAmount(23, 0))
	b.ReportAllocs()
	for b.Loop() {
		findings(p, in)
	}
}

func BenchmarkCheckWithTaxNumber(b *testing.B) {
	p := packs(b)["IE"]
	in := sale("IE", "2026-03-01", num.MakeAmount(23, 0))
	in.Transaction.Customer = &transaction.Party{Type: transaction.Business, TaxNumber: "DE111111125",
		Address: &transaction.Address{CountryCode: "DE"}}
	b.ReportAllocs()
	for b.Loop() {
		findings(p, in)
	}
}
