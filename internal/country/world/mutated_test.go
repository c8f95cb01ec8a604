package world_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// mutate breaks each fact in turn and sees the refusal.
func (x *examination) mutate(useCase string, b body) {
	for _, r := range x.facts.Required {
		if x.holds(r, useCase, b) && x.reaches(b, r.Field) {
			x.wants("required", x.changed(b, r.Field, nil), "field_required", r.Field)
		}
	}
	if !x.facts.NoNumber {
		x.wants("number", x.changed(b, "transaction_number", nil), "field_required", "transaction_number")
	}
	for _, r := range x.facts.Forbidden {
		if x.holds(r, useCase, b) && x.reaches(b, r.Field) {
			x.wants("forbidden", x.changed(b, r.Field, x.value(r.Field, b)), "unsupported_field", r.Field)
		}
	}
	for _, r := range x.facts.Allowed {
		if x.holds(r, useCase, b) && x.get(b, r.Field) != "" {
			if other := otherThan(r); other != "" {
				x.wants("allowed", x.changed(b, r.Field, other), "field_not_valid", r.Field)
			}
		}
	}
	x.lengths(useCase, b)
	x.patterns(useCase, b)
	x.dates(b)
	x.taxes(b)
	x.numbers(b)
	if x.facts.Simple > 0 && b["customer"] == nil && x.get(b, "currency_code") == x.facts.Currency {
		x.wants("simplified", x.changed(b, "items.*.unit_price", 2*x.facts.Simple), "field_required", "customer")
	}
}

// otherThan is a value of the right shape that a rule does not list.
func otherThan(r publishedRule) string {
	if r.Field != "currency_code" {
		return "OTHER"
	}
	others := transaction.Currencies(func(code string) bool { return !slices.Contains(r.Values, code) })
	if len(others) == 0 {
		return ""
	}
	return others[0]
}

func (x *examination) lengths(useCase string, b body) {
	for _, r := range x.facts.Lengths {
		if !x.holds(r, useCase, b) || !x.reaches(b, r.Field) {
			continue
		}
		if found := x.faults(transaction.Invoice, x.changed(b, r.Field, strings.Repeat("1", r.Max))); len(found) > 0 &&
			!x.written(r.Field) {
			x.t.Fatalf("%s: %d characters are published, and refused: %v", r.Field, r.Max, found)
		}
		x.wants("length", x.changed(b, r.Field, strings.Repeat("1", r.Max+1)), "field_not_valid", r.Field)
	}
}

// written reports whether a member has a form as well, which repeated digits may not have.
func (x *examination) written(field string) bool {
	return slices.ContainsFunc(x.facts.Patterns, func(r publishedRule) bool { return r.Field == field })
}

func (x *examination) patterns(useCase string, b body) {
	for _, r := range x.facts.Patterns {
		if !x.holds(r, useCase, b) || !x.reaches(b, r.Field) || strings.HasPrefix(r.Field, "payments") {
			continue
		}
		form := regexp.MustCompile(r.Pattern)
		for _, wrong := range []any{"a|b", `a"b`, "xyz", 0} {
			text := fmt.Sprint(wrong)
			_, number := wrong.(int)
			if !form.MatchString(text) && number == strings.HasSuffix(r.Field, "price") {
				x.wants("pattern", x.changed(b, r.Field, wrong), "field_not_valid", r.Field)
			}
		}
	}
}

func (x *examination) dates(b body) {
	d := x.facts.Dates
	if d == nil {
		return
	}
	at := func(when time.Time) body { return x.changed(b, "transaction_date", when.Format(time.RFC3339)) }
	if d.Earliest != "" {
		first, _ := time.Parse(time.DateOnly, d.Earliest)
		x.wants("before the first day", at(first.Add(-3*time.Hour)), "field_not_valid", "transaction_date")
	}
	if d.Past > 0 {
		x.wants("too old", at(x.now.Add(-time.Duration(d.Past)*time.Hour-time.Minute)), "field_not_valid", "transaction_date")
	}
	if d.Ahead > 0 {
		x.wants("ahead", at(x.now.Add(time.Duration(d.Ahead+1)*time.Minute)), "field_not_valid", "transaction_date")
	}
	if d.Today {
		x.wants("tomorrow", at(x.now.AddDate(0, 0, 1)), "field_not_valid", "transaction_date")
	}
}

func (x *examination) taxes(b body) {
	const path = "items.*.tax_breakdowns"
	if !x.facts.Enforced {
		return
	}
	entry := func(percent, regime string) body { return body{"rate": json.Number(percent), "regime": regime} }
	x.wants("regime", x.changed(b, path, []any{entry("1", "ZZZ")}), "field_not_valid", path+".*.regime")
	for _, r := range x.facts.Rates {
		switch {
		case r.Until != "" && r.Until <= x.now.Format(time.DateOnly):
			x.wants("a rate of the past", x.changed(b, path, []any{entry(r.Percent, r.Regime)}), "field_not_valid", path)
		case r.Beside != "":
			if found := x.faults(transaction.Invoice, x.changed(b, path, []any{entry(r.Percent, r.Regime)})); len(found) == 0 {
				x.t.Fatalf("%s %s is published as beside another, and stands alone", r.Regime, r.Percent)
			}
		default:
			x.wants("rate", x.changed(b, path, []any{entry("99.99", r.Regime)}), "field_not_valid", path)
		}
	}
	if n := x.facts.TaxesMax; n > 0 {
		var many []any
		for range n + 1 {
			many = append(many, entry(x.facts.Rates[0].Percent, x.facts.Rates[0].Regime))
		}
		x.wants("too many taxes", x.changed(b, path, many), "field_not_valid", path)
	}
}

func (x *examination) numbers(b body) {
	const path = "customer.tax_information.tax_number"
	if x.facts.Numbers && x.get(b, path) == x.facts.Number && x.facts.Number != "" {
		x.wants("a number that is none", x.changed(b, path, "1"+x.facts.Number), "field_not_valid", path)
	}
}

// corrections sees that those of the list exist, and no others.
func (x *examination) corrections() {
	listed := map[string]publishedOfAKind{}
	for _, k := range x.facts.Kinds {
		listed[k.Kind] = k
	}
	for _, kind := range []transaction.Kind{transaction.Credit, transaction.Cancellation} {
		b := body{"country_code": x.code, "transaction_date": x.now.Format(time.RFC3339), "transaction_id": "c-1",
			"reference_transaction_id": "t-1"}
		known, ok := listed[string(kind)]
		if ok && kind == transaction.Credit && x.facts.Credits {
			if found := x.faults(kind, b); !slices.Contains(found, "field_required transaction_number") {
				x.t.Errorf("a credit needs a number, and without one gives %v", found)
			}
			b["transaction_number"] = "C-1"
		}
		found := strings.Join(x.faults(kind, b), ", ")
		switch {
		case !ok && !strings.Contains(found, "unsupported_operation country_code"):
			x.t.Errorf("%s is not published, and gives %q", kind, found)
		case ok && known.Needs && !strings.Contains(found, "field_required reason"):
			x.t.Errorf("%s needs a reason, and without one gives %q", kind, found)
		case ok && !known.Needs && found != "":
			x.t.Errorf("%s is published, and refused: %q", kind, found)
		}
		if ok && kind == transaction.Cancellation && len(known.Reasons) > 0 {
			b["reason"] = "no such reason"
			if found := x.faults(kind, b); !slices.Contains(found, "field_not_valid reason") {
				x.t.Errorf("a reason that is not published gives %v", found)
			}
		}
	}
}

// useCases sees that a use case that is not published is refused.
func (x *examination) useCases() {
	for _, useCase := range []country.UseCase{country.Reporting, country.Invoicing} {
		if slices.Contains(x.facts.UseCases, string(useCase)) {
			continue
		}
		x.terms.UseCase = func(string) (country.UseCase, bool) { return useCase, true }
		x.wants("use case", body{"country_code": x.code}, "unsupported_country", "country_code")
	}
}
