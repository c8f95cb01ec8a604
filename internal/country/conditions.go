package country

import (
	"regexp"
	"time"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Pattern is a regular expression as data: published as its text, compiled once.
type Pattern struct{ re *regexp.Regexp }

// Matching compiles a pattern of a pack; a wrong one is a mistake in the program.
func Matching(text string) Pattern { return Pattern{re: regexp.MustCompile(text)} }

// Match reports whether a text fits. The zero pattern fits nothing.
func (p Pattern) Match(text string) bool { return p.re != nil && p.re.MatchString(text) }

// IsZero reports whether there is no pattern.
func (p Pattern) IsZero() bool { return p.re == nil }

// MarshalText writes the expression, in the syntax of RE2.
func (p Pattern) MarshalText() ([]byte, error) {
	if p.re == nil {
		return nil, nil
	}
	return []byte(p.re.String()), nil
}

func (p Pattern) String() string {
	if p.re == nil {
		return ""
	}
	return p.re.String()
}

// Condition is met while a member of the body reads as it says; one that was
// not sent reads as nothing. A member below a party that is absent meets none; one
// of an array's entries is enough.
type Condition struct {
	Field   string  `json:"field"`
	Matches Pattern `json:"matches,omitzero"`
	Unless  Pattern `json:"unless,omitzero"`
}

// PatternRule says how a member is written, where it is sent.
type PatternRule struct {
	Field   string      `json:"field"`
	Pattern Pattern     `json:"pattern"`
	UseCase UseCase     `json:"use_case,omitempty"`
	When    []Condition `json:"when,omitempty"`
	Example string      `json:"example"`
	Reason  string      `json:"reason"`
}

// DateRule says between which instants a transaction_date may lie.
type DateRule struct {
	Earliest string `json:"earliest,omitempty"` // YYYY-MM-DD in the country's time zone
	Latest   string `json:"latest,omitempty"`   // the last such day
	Past     int    `json:"past_hours_max,omitempty"`
	Ahead    int    `json:"ahead_minutes_max,omitempty"`
	Today    bool   `json:"not_after_today"` // in the country's time zone
	Reason   string `json:"reason"`
}

// At home and in a foreign currency: conditions that most countries know.

// In is met by a customer whose address is in a country, or who has none.
func In(code string) Condition {
	return Condition{Field: "customer.address.country_code", Matches: Matching("(?i)^(" + code + ")?$")}
}

// OtherThan is met by every currency but one.
func OtherThan(currency string) Condition {
	return Condition{Field: "currency_code", Matches: Matching("."), Unless: Matching("(?i)^" + currency + "$")}
}

// InOwnCurrency are the rules of a country whose documents are in its own
// currency: another needs a rate, and the day of the rate, where further
// conditions are met.
func InOwnCurrency(currency, reason string, further ...Condition) []FieldRule {
	when := append([]Condition{OtherThan(currency)}, further...)
	return []FieldRule{
		{Field: "exchange_rate", When: when, Reason: reason},
		{Field: "exchange_rate_date", When: when, Reason: reason},
	}
}

// met reports whether all conditions are. A member that was refused meets
// none: a rule for the wrong case would only confuse.
func (c *examiner) met(conditions []Condition) bool {
	for i := range conditions {
		if !c.meets(&conditions[i]) {
			return false
		}
	}
	return true
}

func (c *examiner) meets(condition *Condition) bool {
	for _, f := range c.Faults.Listed() {
		if sameMember(f.Field, condition.Field) {
			return false
		}
	}
	met := false
	c.tx.EachField(condition.Field, func(_ transaction.Place, text string) {
		met = met || (condition.Matches.IsZero() || condition.Matches.Match(text)) && !condition.Unless.Match(text)
	})
	return met
}

func (c *examiner) written(r *PatternRule) {
	if !concerns(r.UseCase, c.useCase) || !c.met(r.When) {
		return
	}
	c.tx.EachField(r.Field, func(at transaction.Place, text string) {
		if text != "" && !r.Pattern.Match(text) {
			c.found(fault.At(at.Path(r.Field), fault.FieldNotValid, "must be written as %s%s", r.Pattern, because(r.Reason)))
		}
	})
}

// day compares the document's instant with what the country takes.
func (c *examiner) day(r *DateRule) {
	const field = "transaction_date"
	if r == nil || c.tx.Date.IsZero() {
		return
	}
	zone, now := c.zone(), c.terms.Now
	on := c.tx.Date.In(zone).Format(time.DateOnly)
	refuse := func(format string, args ...any) {
		c.found(fault.At(field, fault.FieldNotValid, format+"%s", append(args, because(r.Reason))...))
	}
	switch {
	case r.Earliest != "" && on < r.Earliest:
		refuse("must not be before %s", r.Earliest)
	case r.Latest != "" && on > r.Latest:
		refuse("must not be after %s", r.Latest)
	case now.IsZero():
	case r.Today && on > now.In(zone).Format(time.DateOnly):
		refuse("must not be on a later day than today")
	case r.Ahead > 0 && c.tx.Date.After(now.Add(time.Duration(r.Ahead)*time.Minute)):
		refuse("must not be in the future")
	case r.Past > 0 && c.tx.Date.Before(now.Add(-time.Duration(r.Past)*time.Hour)):
		refuse("must be within the last %d hours", r.Past)
	}
}

// taxes refuses lines with more entries than a line of the country has.
func (c *examiner) taxes(atMost int) {
	for i := range c.tx.Items {
		if atMost == 0 {
			return
		}
		own := 0
		for j := range c.tx.Items[i].Taxes {
			if !c.tx.Items[i].Taxes[j].Withheld() {
				own++
			}
		}
		if own > atMost {
			c.found(fault.At(transaction.Place{Entry: i}.Path("items.*.tax_breakdowns"), fault.FieldNotValid,
				"must have at most %d that %s not withheld", atMost, map[bool]string{true: "is", false: "are"}[atMost == 1]))
		}
	}
}

func (c *examiner) zone() *time.Location {
	if c.pack.zone != nil {
		return c.pack.zone
	}
	return zoneOf(c.pack.Facts.TimeZone)
}

// zoneOf is a time zone by name; UTC on a machine that does not know it.
func zoneOf(name string) *time.Location {
	if zone, err := time.LoadLocation(name); err == nil {
		return zone
	}
	return time.UTC
}
