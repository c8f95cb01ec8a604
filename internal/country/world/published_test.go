package world_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// published is what a client reads of a country: nothing here comes from the
// packs' own types, so that a fact that is not published cannot help.
type published struct {
	Currency  string             `json:"currency"`
	TimeZone  string             `json:"time_zone"`
	UseCases  []string           `json:"use_cases"`
	NoNumber  bool               `json:"transaction_number_optional"`
	Credits   bool               `json:"credit_number_required"`
	Required  []publishedRule    `json:"required_fields"`
	Forbidden []publishedRule    `json:"forbidden_fields"`
	Allowed   []publishedRule    `json:"allowed_values"`
	Lengths   []publishedRule    `json:"max_lengths"`
	Patterns  []publishedRule    `json:"patterns"`
	Dates     *publishedDates    `json:"transaction_dates"`
	Regimes   []string           `json:"tax_regimes"`
	Rates     []publishedRate    `json:"tax_rates"`
	Enforced  bool               `json:"tax_rates_enforced"`
	Numbers   bool               `json:"tax_numbers_enforced"`
	Number    string             `json:"tax_number_example"`
	TaxesMax  int                `json:"taxes_per_line_max"`
	Simple    int64              `json:"simplified_max"`
	Kinds     []publishedOfAKind `json:"corrections"`
}

type publishedRule struct {
	Field         string   `json:"field"`
	UseCase       string   `json:"use_case"`
	BusinessModel string   `json:"business_model"`
	Kind          string   `json:"kind"`
	Values        []string `json:"values"`
	Max           int      `json:"max"`
	Pattern       string   `json:"pattern"`
	Example       string   `json:"example"`
	When          []struct {
		Field, Matches, Unless string
	} `json:"when"`
}

type publishedDates struct {
	Earliest string `json:"earliest"`
	Latest   string `json:"latest"`
	Past     int    `json:"past_hours_max"`
	Ahead    int    `json:"ahead_minutes_max"`
	Today    bool   `json:"not_after_today"`
}

type publishedRate struct {
	Regime, Type, Percent, Since, Until, Beside string
	Typed                                       bool `json:"type_required"`
}

type publishedOfAKind struct {
	Kind    string `json:"kind"`
	Needs   bool   `json:"reason_required"`
	Reasons []struct {
		Code string `json:"code"`
	} `json:"reasons"`
}

// examination is one country with its published facts, and a client's terms.
type examination struct {
	t     *testing.T
	code  string
	facts published
	terms country.Terms
	now   time.Time
}

type body = map[string]any

func TestTransactionsDrawnFromThePublishedFactsAreValidAndEveryFactBinds(t *testing.T) {
	atlas := wholeWorld(t)
	drawn := 0
	for _, code := range atlas.Codes() {
		t.Run(code, func(t *testing.T) {
			pack, _ := atlas.Pack(code)
			text, err := json.Marshal(pack.Facts)
			if err != nil {
				t.Fatal(err)
			}
			x := &examination{t: t, code: code, now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
			if err := json.Unmarshal(text, &x.facts); err != nil {
				t.Fatal(err)
			}
			for _, useCase := range x.facts.UseCases {
				x.terms = country.Terms{Atlas: atlas, Now: x.now, UseCase: func(string) (country.UseCase, bool) {
					return country.UseCase(useCase), true
				}}
				for i, b := range x.draw(useCase) {
					drawn++
					if found := x.faults(transaction.Invoice, b); len(found) > 0 {
						t.Fatalf("%s: drawn from the facts and refused: %v\n%s", useCase, found, x.text(b))
					}
					if i%len(x.rates()) < 2 { // one rate is as good as another to break a fact
						x.mutate(useCase, b)
					}
				}
			}
			x.corrections()
			x.useCases()
		})
	}
	if drawn < 2000 {
		t.Errorf("only %d transactions were drawn", drawn)
	}
}

// draw makes bodies of every sort the facts distinguish.
func (x *examination) draw(useCase string) []body {
	var all []body
	for _, currency := range []string{x.facts.Currency,
		map[bool]string{true: "USD", false: "EUR"}[x.facts.Currency != "USD"]} {
		if slices.ContainsFunc(x.facts.Allowed, func(r publishedRule) bool {
			return r.Field == "currency_code" && !slices.Contains(r.Values, currency)
		}) {
			continue
		}
		for _, customer := range []body{nil, {"legal_name": "Ana", "type": "INDIVIDUAL"},
			{"legal_name": "Acme", "type": "BUSINESS"},
			{"legal_name": "Far", "type": "BUSINESS", "address": body{"country_code": "US"}}} {
			for _, rate := range x.rates() {
				b := body{"country_code": x.code, "currency_code": currency,
					"transaction_date": x.now.Add(-time.Hour).Format(time.RFC3339), "transaction_id": "t-1",
					"transaction_number": "2026-1", "supplier": body{"id": strings.Repeat("a", 32)},
					"items": []any{body{"number": 1, "name": "Chair", "quantity": 1, "unit_price": 1000}}}
				if customer != nil {
					b["customer"] = maps.Clone(customer)
				}
				if rate != nil {
					x.set(b, "items.*.tax_breakdowns", rate)
				}
				x.complete(useCase, b)
				all = append(all, b)
			}
		}
	}
	return all
}

// rates are tax entries of every rate that holds, or none where there is no table.
func (x *examination) rates() [][]any {
	day := x.now.Format(time.DateOnly)
	sets := [][]any{nil}
	for _, r := range x.facts.Rates {
		if r.Since > day || r.Until != "" && r.Until <= day {
			continue
		}
		entry := body{"rate": json.Number(r.Percent), "regime": r.Regime}
		if r.Typed {
			entry["type"] = r.Type
		}
		set := []any{entry}
		if r.Beside != "" {
			set = append(set, body{"rate": json.Number(r.Beside), "regime": x.facts.Regimes[0]})
		}
		sets = append(sets, set)
	}
	return sets
}

// complete adds what the rules ask for, until nothing is missing.
func (x *examination) complete(useCase string, b body) {
	for range x.facts.Required {
		for _, r := range x.facts.Required {
			if x.holds(r, useCase, b) && x.get(b, r.Field) == "" && x.reaches(b, r.Field) {
				x.set(b, r.Field, x.value(r.Field, b))
			}
		}
	}
	for _, r := range x.facts.Patterns {
		if text := x.get(b, r.Field); text != "" && x.holds(r, useCase, b) &&
			!regexp.MustCompile(r.Pattern).MatchString(text) {
			x.set(b, r.Field, r.Example)
		}
	}
}

// value is one that the facts give for a member.
func (x *examination) value(field string, b body) any {
	for _, r := range x.facts.Patterns {
		if r.Field == field && len(r.Example) > 1 {
			return r.Example
		}
	}
	for _, r := range x.facts.Allowed {
		if r.Field == field {
			return r.Values[0]
		}
	}
	home := x.get(b, "customer.address.country_code") != "US"
	switch {
	case strings.HasSuffix(field, "tax_number") && home && x.facts.Number != "":
		return x.facts.Number
	case strings.HasSuffix(field, "tax_number"):
		return "12-3456789"
	case strings.HasSuffix(field, "country_code"):
		return x.code
	case field == "customer":
		return body{"legal_name": "Ana", "type": "INDIVIDUAL"}
	case field == "exchange_rate":
		return json.Number("1.5")
	case field == "exchange_rate_date":
		return x.now.AddDate(0, 0, -1).Format(time.DateOnly)
	case strings.HasSuffix(field, "tax_breakdowns"):
		rates := x.rates()
		if len(rates) > 1 {
			return rates[1]
		}
		return []any{body{"rate": 0, "regime": append(x.facts.Regimes, "VAT")[0]}}
	}
	return "Anything"
}

// holds reads a rule's conditions as a client would.
func (x *examination) holds(r publishedRule, useCase string, b body) bool {
	model := "B2C"
	if x.get(b, "customer.type") == "BUSINESS" {
		model = "B2B"
	}
	if r.UseCase != "" && r.UseCase != useCase && useCase != "BOTH" ||
		r.BusinessModel != "" && r.BusinessModel != model || r.Kind != "" && r.Kind != "INVOICE" {
		return false
	}
	for _, c := range r.When {
		text := x.get(b, c.Field)
		if c.Matches != "" && !regexp.MustCompile(c.Matches).MatchString(text) ||
			c.Unless != "" && regexp.MustCompile(c.Unless).MatchString(text) {
			return false
		}
	}
	return true
}

// reaches reports whether the object that a member belongs to is there: without
// a customer nothing of it is missing.
func (x *examination) reaches(b body, field string) bool {
	head, _, _ := strings.Cut(field, ".")
	return head == field || head == "items" || b[head] != nil
}

func (x *examination) get(b body, path string) string {
	var at any = b
	for step := range strings.SplitSeq(path, ".") {
		switch node := at.(type) {
		case body:
			at = node[step]
		case []any:
			at = node[0]
		default:
			return ""
		}
	}
	switch v := at.(type) {
	case nil:
		return ""
	case []any:
		return fmt.Sprint(len(v))
	case body:
		return "1"
	}
	return fmt.Sprint(at)
}

func (x *examination) set(b body, path string, value any) {
	steps := strings.Split(path, ".")
	var at any = b
	for _, step := range steps[:len(steps)-1] {
		switch node := at.(type) {
		case body:
			if node[step] == nil && step == "address" {
				node[step] = body{"country_code": x.code} // every address has one, in every country
			} else if node[step] == nil {
				node[step] = body{}
			}
			at = node[step]
		case []any:
			at = node[0]
		}
	}
	node, ok := at.(body)
	switch last := steps[len(steps)-1]; {
	case !ok:
	case value == nil:
		delete(node, last)
	default:
		node[last] = value
	}
}

func (x *examination) text(b body) []byte {
	text, err := json.Marshal(b)
	if err != nil {
		x.t.Fatal(err)
	}
	return text
}

// changed is a deep copy with one member set; nil deletes it.
func (x *examination) changed(b body, path string, value any) body {
	dec := json.NewDecoder(strings.NewReader(string(x.text(b))))
	dec.UseNumber()
	out := body{}
	if err := dec.Decode(&out); err != nil {
		x.t.Fatal(err)
	}
	x.set(out, path, value)
	return out
}

func (x *examination) faults(kind transaction.Kind, b body) []string {
	_, err := country.Examine(kind, x.text(b), x.terms)
	var found []string
	if wrong, refused := errors.AsType[*fault.Error](err); refused {
		for _, f := range wrong.Faults {
			found = append(found, string(f.Code)+" "+f.Field)
		}
	} else if err != nil {
		x.t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// wants refuses a body that is accepted, or refused for something else.
func (x *examination) wants(what string, b body, code, path string) {
	want := code + " " + strings.ReplaceAll(path, "*", "0")
	if found := x.faults(transaction.Invoice, b); !slices.ContainsFunc(found, func(f string) bool {
		return strings.HasPrefix(f, want)
	}) {
		x.t.Fatalf("%s: found %v, want %s\n%s", what, found, want, x.text(b))
	}
}
