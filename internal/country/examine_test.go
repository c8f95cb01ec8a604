package country_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/transaction/transactiontest"
)

func examine(t *testing.T, pack country.Pack, kind transaction.Kind,
	changes map[string]any) (*country.Examined, error) {
	t.Helper()
	return country.Examine(kind, transactiontest.Edit(t, transactiontest.Typical, changes), termsOf(t, pack))
}

func TestExaminedBodyCarriesItsTotals(t *testing.T) {
	got, err := examine(t, strictCountry(), transaction.Invoice, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Totals.Gross != 40210 || got.Totals.Net != 33768 || got.Totals.Tax != 6442 || len(got.Totals.Lines) != 3 {
		t.Errorf("totals %+v", got.Totals)
	}
	if got.Pack.Code != "ZZ" || got.UseCase != country.Both || len(got.Warnings) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFactsOfTheCountry(t *testing.T) {
	cases := []struct {
		name    string
		changes map[string]any
		want    []string
	}{
		{"nothing wrong", nil, nil},
		{"number required", map[string]any{"transaction_number": nil}, []string{"field_required transaction_number"}},
		{"required in every line", map[string]any{"items.0.tax_breakdowns": nil, "items.2.tax_breakdowns": []any{}},
			[]string{"field_required items.0.tax_breakdowns", "field_required items.2.tax_breakdowns"}},
		{"required of a business", map[string]any{"customer.tax_information": nil},
			[]string{"field_required customer.tax_information.tax_number"}},
		{"not required of a person", map[string]any{"customer.tax_information": nil, "customer.type": "INDIVIDUAL"}, nil},
		{"required below an absent object", map[string]any{"customer.address": nil},
			[]string{"field_required customer.address.city"}},
		{"nothing is required of an absent party", map[string]any{"customer": nil}, nil},
		{"forbidden", map[string]any{"issuer": map[string]any{"legal_name": "x", "type": "BUSINESS"}},
			[]string{"unsupported_field issuer"}},
		{"forbidden in a use case", map[string]any{"items.1.ean": "1"}, []string{"unsupported_field items.1.ean"}},
		{"value not allowed", map[string]any{"payments.0.type": "CHECK"}, []string{"field_not_valid payments.0.type"}},
		{"currency not allowed", map[string]any{"currency_code": "GBP", "exchange_rate": 1,
			"exchange_rate_date": "2026-01-01"}, []string{"field_not_valid currency_code"}},
		{"allowed in either case", map[string]any{"currency_code": "eur"}, nil},
		{"length at its limit", map[string]any{"transaction_number": strings.Repeat("é", 20)}, nil},
		{"length past its limit", map[string]any{"transaction_number": strings.Repeat("é", 21)},
			[]string{"field_not_valid transaction_number"}},
		{"own currency needs an exchange rate", map[string]any{"currency_code": "USD"},
			[]string{"field_required exchange_rate", "field_required exchange_rate_date"}},
		{"own currency with an exchange rate",
			map[string]any{"currency_code": "USD", "exchange_rate": json.Number("0.92"), "exchange_rate_date": "2026-01-01"},
			nil},
		{"rate not in the table", map[string]any{"items.0.tax_breakdowns.0.rate": 24},
			[]string{"field_not_valid items.0.tax_breakdowns.0.rate"}},
		{"zero is in every table", map[string]any{"items.0.tax_breakdowns.0.rate": 0}, nil},
		{"regime of another country", map[string]any{"items.0.tax_breakdowns.0.regime": "IGIC"},
			[]string{"field_not_valid items.0.tax_breakdowns.0.regime"}},
		{"withholding is no regime of the table",
			map[string]any{"items.2.tax_breakdowns.1": map[string]any{"rate": 7, "regime": "RET"}, "payments": nil}, nil},
		{"payments that do not add up", map[string]any{"payments.0.amount": 1}, []string{"field_not_valid payments"}},
		{"modes mixed", map[string]any{"items.0.tax_breakdowns.1": map[string]any{"rate": 25, "regime": "VAT",
			"application_mode": transaction.Added}}, []string{"validation_match_invalid items.0.tax_breakdowns"}},
		{"due on the day of the document", map[string]any{"due_date": "2026-03-01"}, nil},
		{"due before the document", map[string]any{"due_date": "2026-02-28"}, []string{"validation_match_invalid due_date"}},
		{"due on the day where the client is",
			map[string]any{"transaction_date": "2026-02-28T20:00:00-05:00", "due_date": "2026-02-28"}, nil},
		{"due before the day where the client is",
			map[string]any{"transaction_date": "2026-02-28T20:00:00-05:00", "due_date": "2026-02-27"},
			[]string{"validation_match_invalid due_date"}},
		{"supplied before the document", map[string]any{"delivery_date": "2025-12-31"}, nil},
		{"shape and facts in one answer", map[string]any{"items.0.name": nil, "transaction_number": nil,
			"payments.0.type": "CHECK"},
			[]string{"field_required items.0.name", "field_not_valid payments.0.type", "field_required transaction_number"}},
		{"what the shape refused is not said twice",
			map[string]any{"transaction_number": 5, "items.0.tax_breakdowns": "x", "customer.tax_information": 1,
				"payments.0.type": "?"},
			[]string{"field_not_valid customer.tax_information", "field_not_valid items.0.tax_breakdowns",
				"field_not_valid payments.0.type", "field_not_valid transaction_number"}},
		{"no rule of a business model while the customer is in doubt",
			map[string]any{"customer.type": "?", "customer.tax_information": nil}, []string{"field_not_valid customer.type"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.changes["items.0.tax_breakdowns.0.rate"] != nil || c.changes["items.0.tax_breakdowns"] != nil ||
				c.changes["items.2.tax_breakdowns"] != nil {
				if _, asked := c.changes["payments.0.type"]; !asked {
					c.changes["payments"] = nil // the total is not the point here
				}
			}
			_, err := examine(t, strictCountry(), transaction.Invoice, c.changes)
			transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), c.want...)
		})
	}
}

// The typical body comes to 40210 with tax, 33768 without; its first line is
// 18168 and 4542 tax. What a client says of it must be that, to the unit.
func TestTotalsOfTheClientAreCompared(t *testing.T) {
	right := map[string]any{"total_amount": 40210, "total_net_amount": 33768, "total_tax_amount": 6442,
		"items.0.net_price": 18168, "items.0.tax_breakdowns.0.amount": 4542}
	if _, err := examine(t, strictCountry(), transaction.Invoice, right); err != nil {
		t.Errorf("right ones: %v", err)
	}
	lowered := map[string]any{"items.0.discount": map[string]any{"amount": 710}, "total_amount": 39500,
		"items.0.net_price": 17600, "items.0.tax_breakdowns.0.amount": 4400, "payments": nil}
	if _, err := examine(t, strictCountry(), transaction.Invoice, lowered); err != nil {
		t.Errorf("after a discount: %v", err)
	}
	for field, value := range right {
		for _, off := range []int{-1, 1} {
			_, err := examine(t, strictCountry(), transaction.Invoice, map[string]any{field: value.(int) + off})
			transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "validation_match_invalid "+field)
		}
	}
	wrong := map[string]any{"total_amount": 40209, "items.0.tax_breakdowns.0.amount": 4541}
	_, err := examine(t, strictCountry(), transaction.Invoice, wrong)
	if got := transactiontest.FaultsIn(t, err); len(got) != 2 ||
		got[0].Message != "total_amount is 40209, but the items come to 40210" ||
		got[1].Message != "items.0.tax_breakdowns.0.amount is 4541, but the tax comes to 4542" {
		t.Errorf("got %v", got)
	}
	terms := termsOf(t, strictCountry())
	terms.WarnTotals = true
	got, err := country.Examine(transaction.Invoice, transactiontest.Edit(t, transactiontest.Typical, wrong), terms)
	if err != nil {
		t.Fatal(err)
	}
	transactiontest.WantFaults(t, got.Warnings, "validation_match_invalid total_amount",
		"validation_match_invalid items.0.tax_breakdowns.0.amount")
	if got.Warnings[0].Type != fault.Warning || got.Totals.Gross != 40210 {
		t.Errorf("%+v of %d", got.Warnings, got.Totals.Gross)
	}
}

func TestUnusualRateIsAWarningWhereTheAuthorityWouldNotRefuse(t *testing.T) {
	lax := strictCountry()
	lax.Facts.StrictRates = false
	got, err := examine(t, lax, transaction.Invoice,
		map[string]any{"items.0.tax_breakdowns.0.rate": 24, "items.1.tax_breakdowns.0.regime": "IGIC", "extra": 1,
			"payments": nil})
	if err != nil {
		t.Fatal(err)
	}
	transactiontest.WantFaults(t, got.Warnings, "field_unknown extra", "rate_unusual items.1.tax_breakdowns.0.regime",
		"rate_unusual items.0.tax_breakdowns.0.rate")
}

func TestPathsAreThoseTheClientSpelled(t *testing.T) {
	body := strings.Replace(transactiontest.Typical, `"tax_breakdowns": [{"rate": 25`, `"tax_breakdown": [{"rate": 24`, 1)
	_, err := country.Examine(transaction.Invoice, []byte(body), termsOf(t, strictCountry()))
	got := transactiontest.FaultsIn(t, err)
	if len(got) == 0 || got[0].Field != "items.0.tax_breakdown.0.rate" ||
		!strings.HasPrefix(got[0].Message, "items.0.tax_breakdown.0.rate ") {
		t.Errorf("got %v", got)
	}
}

func TestCountryMustBeKnownOfferedAndEnabled(t *testing.T) {
	pack := strictCountry()
	reference := pack
	reference.Code, reference.Name = "XX", "Reference"
	terms := termsOf(t, pack, reference)
	check := func(code string, want ...string) {
		t.Helper()
		_, err := country.Examine(transaction.Invoice,
			transactiontest.Edit(t, transactiontest.Typical, map[string]any{"country_code": code}), terms)
		transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), want...)
	}
	check("ZZ")
	check("zz")
	check("xx")
	check("QQ", "unsupported_country country_code")
	terms.Live = true
	check("ZZ")
	check("XX", "unsupported_country country_code")
	terms.UseCase = func(code string) (country.UseCase, bool) { return country.Invoicing, code == "ZZ" }
	check("zz")
	terms.UseCase = func(string) (country.UseCase, bool) { return country.Reporting, true }
	check("ZZ", "unsupported_country country_code") // documents only
	terms.UseCase = func(string) (country.UseCase, bool) { return "", false }
	check("ZZ", "unsupported_country country_code")
}

func TestRulesOfAnotherUseCaseDoNotHold(t *testing.T) {
	terms := termsOf(t, strictCountry())
	terms.UseCase = func(string) (country.UseCase, bool) { return country.Invoicing, true }
	if _, err := country.Examine(transaction.Invoice,
		transactiontest.Edit(t, transactiontest.Typical, map[string]any{"items.1.ean": "1"}), terms); err != nil {
		t.Error(err)
	}
}

func TestOperationsACountryNeverHas(t *testing.T) {
	correction := `{"country_code": "ZZ", "transaction_date": "2026-03-01T12:30:00Z", "transaction_id": "c1", "reference_transaction_id": "o1"}`
	backfill := `{"country_code": "ZZ", "transaction_date": "2026-03-01T12:30:00Z", "transaction_id": "b1", "transaction_number": "A-very-long-number-of-elsewhere"}`
	rich, poor := strictCountry(), strictCountry()
	poor.Facts.Corrections = nil
	adjustment := string(transactiontest.Edit(t, transactiontest.Typical,
		map[string]any{"reference_transaction_id": "o1"}))
	cases := []struct {
		name string
		pack country.Pack
		kind transaction.Kind
		body string
		want []string
	}{
		{"credit", rich, transaction.Credit, correction, nil},
		{"no credit", poor, transaction.Credit, correction, []string{"unsupported_operation country_code"}},
		{"adjustment", rich, transaction.Adjustment, adjustment, nil},
		{"no adjustment", poor, transaction.Adjustment, adjustment, []string{"unsupported_operation country_code"}},
		{"cancellation needs a reason", rich, transaction.Cancellation, correction, []string{"field_required reason"}},
		{"cancellation with a wrong reason", rich, transaction.Cancellation,
			strings.Replace(correction, "{", `{"reason":"09",`, 1), []string{"field_not_valid reason"}},
		{"cancellation", rich, transaction.Cancellation, strings.Replace(correction, "{", `{"reason":"02",`, 1), nil},
		{"no cancellation", poor, transaction.Cancellation, correction, []string{"unsupported_operation country_code"}},
		{"backfill obeys the rules of its own time", rich, transaction.Backfill, backfill, nil},
		{"no backfill", poor, transaction.Backfill, backfill, []string{"unsupported_operation country_code"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := country.Examine(c.kind, []byte(c.body), termsOf(t, c.pack))
			transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), c.want...)
			if err == nil && got.Transaction.Kind != c.kind {
				t.Errorf("kind %s", got.Transaction.Kind)
			}
		})
	}
}

func TestChecksRunOnWhatIsSound(t *testing.T) {
	pack := strictCountry()
	asked := map[string]country.Case{}
	check := func(name string, amounts bool, found fault.Fault, reads ...string) country.Check {
		return country.Check{Reads: reads, Amounts: amounts, Find: func(c country.Case) []fault.Fault {
			asked[name] = c
			return []fault.Fault{found}
		}}
	}
	pack.Checks = []country.Check{
		check("note", false, fault.At("note", fault.FieldNotValid, "must rhyme"), "note"),
		check("number", false, fault.At("transaction_number", fault.ValidationMatchInvalid, "is odd"), "transaction_number"),
		check("sums", true, fault.At("items", fault.FieldNotValid, "come to too much")),
		check("first line", false, fault.At("items.0.name", fault.ValidationMatchInvalid, "is odd"), "items.*.name"),
		check("second line", false, fault.At("items.1.name", fault.ValidationMatchInvalid, "is odd"), "items.*.name"),
		check("all lines", false, fault.At("reason", fault.FieldNotValid, "is odd"), "items.*.name"),
		check("reporting", false, fault.At("reason", fault.FieldNotValid, "is odd"), "reason"),
	}
	pack.Checks[6].UseCase = country.Reporting
	for _, c := range []struct {
		name   string
		change map[string]any
		want   []string
	}{
		{"a member that a check reads is refused", map[string]any{"transaction_number": nil},
			[]string{"field_required transaction_number", "field_not_valid note", "field_not_valid items",
				"validation_match_invalid items.0.name", "validation_match_invalid items.1.name", "field_not_valid reason"}},
		{"a name is refused: its entry is lost, and what is said of all", map[string]any{"items.0.name": ""},
			[]string{"field_required items.0.name", "field_not_valid note", "validation_match_invalid transaction_number",
				"field_not_valid items", "validation_match_invalid items.1.name", "field_not_valid reason"}},
		{"a price is refused: there are no amounts", map[string]any{"items.0.unit_price": "x"},
			[]string{"field_not_valid items.0.unit_price", "field_not_valid note",
				"validation_match_invalid transaction_number", "validation_match_invalid items.0.name",
				"validation_match_invalid items.1.name", "field_not_valid reason"}},
		{"a number of a line is refused: the amounts stand", map[string]any{"items.0.number": 0},
			[]string{"field_not_valid items.0.number", "field_not_valid note", "validation_match_invalid transaction_number",
				"field_not_valid items", "validation_match_invalid items.0.name", "validation_match_invalid items.1.name",
				"field_not_valid reason"}},
	} {
		clear(asked)
		_, err := examine(t, pack, transaction.Invoice, c.change)
		found := transactiontest.FaultsIn(t, err)
		if !sameFaults(found, c.want) {
			t.Errorf("%s: found %v, want %v", c.name, found, c.want)
		}
	}
	if c := asked["sums"]; c.Totals.Gross != 40210 || c.UseCase != country.Both || c.Now.IsZero() ||
		c.Transaction.ID == "" {
		t.Errorf("the case was %+v", c)
	}
	if _, ran := asked["reporting"]; !ran {
		t.Error("a rule of Reporting binds a client with both use cases")
	}
}

func sameFaults(found []fault.Fault, want []string) bool {
	var got []string
	for _, f := range found {
		got = append(got, string(f.Code)+" "+f.Field)
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	return slices.Equal(got, want)
}

func TestWarningsOfChecksAreKept(t *testing.T) {
	pack := strictCountry()
	pack.Checks = []country.Check{{Find: func(country.Case) []fault.Fault {
		return []fault.Fault{fault.Warn("customer.tax_information.tax_number", fault.TaxNumberDoubtful, "looks odd")}
	}}}
	got, err := examine(t, pack, transaction.Invoice, nil)
	if err != nil {
		t.Fatal(err)
	}
	transactiontest.WantFaults(t, got.Warnings, "tax_number_doubtful customer.tax_information.tax_number")
}

// A credit brings no document of its own: rules and checks of documents pass it by.
func TestCreditObeysOnlyTheRulesOfCredits(t *testing.T) {
	pack := strictCountry()
	pack.Facts.Required = append(pack.Facts.Required,
		country.FieldRule{Field: "payments"}, country.FieldRule{Field: "note", Kind: transaction.Credit},
		country.FieldRule{Field: "reason", Kind: transaction.Cancellation})
	pack.Checks = []country.Check{{Find: func(country.Case) []fault.Fault {
		return []fault.Fault{fault.At("items", fault.FieldRequired, "must not be empty")}
	}}}
	credit := `{"country_code": "ZZ", "transaction_date": "2026-03-01T12:30:00Z", "transaction_id": "c1", "reference_transaction_id": "o1"}`
	_, err := country.Examine(transaction.Credit, []byte(credit), termsOf(t, pack))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "field_required note")
	if _, err = country.Examine(transaction.Credit, transactiontest.Edit(t, credit, map[string]any{"note": "n"}),
		termsOf(t, pack)); err != nil {
		t.Error(err)
	}
}

func TestBrokenJSONIsTheOnlyFault(t *testing.T) {
	_, err := country.Examine(transaction.Invoice, []byte(`{"country_code":"QQ",`), termsOf(t, strictCountry()))
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "json_not_valid ")
}

func TestTotalsOverTheLargestInteger(t *testing.T) {
	most := fmt.Sprint(transaction.AmountMax)
	_, err := examine(t, strictCountry(), transaction.Invoice,
		map[string]any{"items.0.unit_price": json.Number(most), "items.0.quantity": 1, "payments": nil})
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "field_not_valid items")
	_, err = examine(t, strictCountry(), transaction.Invoice,
		map[string]any{"items.0.unit_price": json.Number(most), "payments": nil})
	transactiontest.WantFaults(t, transactiontest.FaultsIn(t, err), "field_not_valid items.0.unit_price")
}

// A body with very many faults of the country's facts is answered like any other.
func TestFactsOfFiveThousandItems(t *testing.T) {
	_, err := country.Examine(transaction.Invoice, transactiontest.ManyItems(5000), termsOf(t, strictCountry()))
	if got := transactiontest.FaultsIn(t, err); len(got) != 100 ||
		!strings.Contains(err.Error(), "5001 faults, the first 100 are listed") {
		t.Errorf("%d faults: %.200v", len(got), err)
	}
}
