package country_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// ratesOfNowhere has a standard rate that changed, two reduced ones and a zero rate.
func ratesOfNowhere() country.Facts {
	return country.Facts{Rates: []country.Rate{
		{Regime: "VAT", Type: transaction.TaxStandard, Percent: "20", Since: "2020-01-01"},
		{Regime: "VAT", Type: transaction.TaxStandard, Percent: "19", Since: "2010-01-01", Until: "2020-01-01"},
		{Regime: "VAT", Type: transaction.TaxReduced, Percent: "5.5", Since: "2010-01-01"},
		{Regime: "GST", Type: transaction.TaxStandard, Percent: "10"},
		{Regime: "GST", Type: transaction.TaxZero, Percent: "0"},
	}}
}

func saleOf(regime, percent, itemType string) country.Case {
	rate, err := num.AmountFromString(percent)
	if err != nil {
		panic(err)
	}
	return country.Case{Transaction: &transaction.Transaction{
		CountryCode: "de", Date: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Items: []transaction.Item{{Type: itemType, Taxes: []transaction.Tax{{Rate: rate, Regime: regime}}}},
	}}
}

func buyer(code, kind, number string) *transaction.Party {
	return &transaction.Party{Type: kind, TaxNumber: number, Address: &transaction.Address{CountryCode: code}}
}

func TestTaxTypesAreDerivedByTheRulesShown(t *testing.T) {
	for _, c := range []struct {
		name, from, regime, percent, item string
		customer                          *transaction.Party
		want                              string
	}{
		{"standard of the day", "de", "VAT", "20.00", transaction.Goods, nil, transaction.TaxStandard},
		{"reduced", "de", "VAT", "5.5", transaction.Goods, nil, transaction.TaxReduced},
		{"unknown below the standard", "de", "VAT", "6", transaction.Goods, nil, transaction.TaxReduced},
		{"unknown above the standard", "de", "VAT", "25", transaction.Goods, nil, transaction.TaxStandard},
		{"no table", "de", "IGIC", "7", transaction.Goods, nil, transaction.TaxStandard},
		{"zero without a zero rate", "de", "VAT", "0", transaction.Goods, nil, transaction.TaxExempt},
		{"zero with a zero rate", "de", "GST", "0", transaction.Goods, nil, transaction.TaxZero},
		{"zero without a table", "de", "IGIC", "0.0", transaction.Goods, nil, transaction.TaxZero},
		{"withheld", "de", "RET", "15", transaction.Goods, nil, "RET"},
		{"goods within the Union", "DE", "VAT", "0", transaction.Goods, buyer("FR", transaction.Business, "1"),
			transaction.TaxIntraEU},
		{"services within the Union", "DE", "VAT", "0", transaction.Services, buyer("fr", transaction.Business, "1"),
			transaction.TaxReverse},
		{"to a consumer in the Union", "DE", "VAT", "0", transaction.Goods, buyer("FR", transaction.Individual, "1"),
			transaction.TaxExempt},
		{"to a business without a number", "DE", "VAT", "0", transaction.Goods, buyer("FR", transaction.Business, ""),
			transaction.TaxExempt},
		{"goods out of the Union", "DE", "VAT", "0", transaction.Goods, buyer("US", transaction.Individual, ""),
			transaction.TaxExport},
		{"services out of the Union", "DE", "VAT", "0", transaction.Services, buyer("US", transaction.Business, ""),
			transaction.TaxOutside},
		{"services from elsewhere", "CH", "VAT", "0", transaction.Services, buyer("DE", transaction.Business, "1"),
			transaction.TaxExport},
		{"to Britain after it left", "DE", "VAT", "0", transaction.Goods, buyer("GB", transaction.Business, "1"),
			transaction.TaxExport},
		{"at home", "DE", "VAT", "0", transaction.Goods, buyer("de", transaction.Business, "1"), transaction.TaxExempt},
		{"taxed abroad", "DE", "VAT", "20", transaction.Goods, buyer("US", transaction.Business, "1"),
			transaction.TaxStandard},
	} {
		in := saleOf(c.regime, c.percent, c.item)
		in.Transaction.CountryCode, in.Transaction.Customer = c.from, c.customer
		before := fmt.Sprint(in.Transaction.Items)
		if got := country.ClassifyTaxes(ratesOfNowhere(), in)[0].Taxes[0].Type; got != c.want {
			t.Errorf("%s: %s instead of %s", c.name, got, c.want)
		}
		if fmt.Sprint(in.Transaction.Items) != before {
			t.Errorf("%s: the transaction changed", c.name)
		}
	}
}

func TestATypeThatWasSentIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := saleOf(rapid.SampledFrom([]string{"VAT", "RET", "GST"}).Draw(t, "regime"),
			rapid.SampledFrom([]string{"0", "5", "20"}).Draw(t, "rate"), transaction.Goods)
		in.Transaction.Items[0].Taxes[0].Type = rapid.SampledFrom([]string{"REVERSE", "ISR", "OUTSIDE"}).Draw(t, "type")
		if got := country.ClassifyTaxes(ratesOfNowhere(), in); got[0].Taxes[0].Type != in.Transaction.Items[0].Taxes[0].Type {
			t.Fatalf("%+v", got)
		}
	})
}

func TestADiscountFollowsTheOtherLines(t *testing.T) {
	for want, types := range map[string][]string{
		transaction.TaxReverse: {transaction.Services, transaction.Discount, transaction.Services},
		transaction.TaxIntraEU: {transaction.Services, transaction.Discount, transaction.Goods},
	} {
		in := saleOf("VAT", "0", "")
		in.Transaction.Customer = buyer("FR", transaction.Business, "1")
		line := in.Transaction.Items[0]
		in.Transaction.Items = nil
		for _, kind := range types {
			line.Type = kind
			in.Transaction.Items = append(in.Transaction.Items, line)
		}
		if got := country.ClassifyTaxes(ratesOfNowhere(), in)[1].Taxes[0].Type; got != want {
			t.Errorf("%v: %s instead of %s", types, got, want)
		}
	}
}

func TestUnusualRatesAreWarningsOrErrors(t *testing.T) {
	facts := ratesOfNowhere()
	if got := country.CheckRates(facts, saleOf("VAT", "19", transaction.Goods)); len(got) != 1 ||
		got[0].Code != fault.RateUnusual || got[0].Type != fault.Warning {
		t.Errorf("the old rate: %v", got)
	}
	facts.StrictRates = true
	if got := country.CheckRates(facts, saleOf("VAT", "19", transaction.Goods)); len(got) != 1 ||
		got[0].Code != fault.FieldNotValid || got[0].Type != fault.Validation {
		t.Errorf("the old rate where the authority refuses it: %v", got)
	}
	for _, fine := range []country.Case{
		saleOf("VAT", "20", transaction.Goods), saleOf("VAT", "0", transaction.Goods),
		saleOf("IGIC", "9", transaction.Goods), saleOf("RET", "33", transaction.Goods),
	} {
		if got := country.CheckRates(facts, fine); len(got) != 0 {
			t.Errorf("%v", got)
		}
	}
}

// Around midnight of a change both rates pass: the supplier's zone decides later.
func TestOnTheNightOfAChangeBothRatesHold(t *testing.T) {
	facts := ratesOfNowhere()
	for at, want := range map[string]int{
		"2019-12-31T09:59:59Z": 1, "2019-12-31T10:00:00Z": 2, "2020-01-01T11:59:59Z": 2, "2020-01-01T12:00:00Z": 1,
	} {
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		usual := 0
		for _, percent := range []string{"19", "20"} {
			in := saleOf("VAT", percent, transaction.Goods)
			in.Transaction.Date = instant
			if len(country.CheckRates(facts, in)) == 0 {
				usual++
			}
		}
		if usual != want {
			t.Errorf("%s: %d of the two rates pass instead of %d", at, usual, want)
		}
	}
}

func TestModelTypeAndRegimeOfATransaction(t *testing.T) {
	tx := &transaction.Transaction{}
	if country.BusinessModel(tx) != transaction.B2C || country.DocumentType(tx) != transaction.Simplified ||
		country.OperationRegime(tx, nil) != transaction.General {
		t.Error("a sale to nobody in particular")
	}
	tx.Customer = buyer("DE", transaction.Business, "DE 123")
	if country.BusinessModel(tx) != transaction.B2B || country.DocumentType(tx) != transaction.Full {
		t.Error("a sale to a business")
	}
	tx.Issuer = &transaction.Party{TaxNumber: "de-123"}
	if country.OperationRegime(tx, nil) != transaction.SelfBilling {
		t.Error("the buyer issues")
	}
	tx.Issuer.TaxNumber = "DE124"
	export := []transaction.Item{{Taxes: []transaction.Tax{{Regime: "VAT", Type: transaction.TaxExport},
		{Regime: "RET", Type: "IRPF"}}}}
	if country.OperationRegime(tx, export) != transaction.Export {
		t.Error("every line is exported")
	}
	mixed := append(export, transaction.Item{Taxes: []transaction.Tax{{Regime: "VAT", Type: transaction.TaxStandard}}})
	if country.OperationRegime(tx, mixed) != transaction.General {
		t.Error("one line stays")
	}
	if country.OperationRegime(tx, []transaction.Item{{}}) != transaction.General {
		t.Error("no tax at all")
	}
}

func TestTheRulesAreSentences(t *testing.T) {
	for _, rule := range country.DerivationRules() {
		if !strings.HasSuffix(rule, ".") {
			t.Errorf("%q", rule)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	in, facts := saleOf("VAT", "20", transaction.Goods), ratesOfNowhere()
	b.ReportAllocs()
	for b.Loop() {
		country.ClassifyTaxes(facts, in)
	}
}
