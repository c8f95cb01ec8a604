package country

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"tributary/internal/transaction"

	"github.com/invopop/gobl/num"
)

// validate finds what a pack says that cannot be so.
func (p Pack) validate() error {
	wrong := &complaints{}
	if !isUpper(p.Code, 2) {
		wrong.add("the code must be two upper-case letters")
	}
	if p.Name == "" || p.Version == "" {
		wrong.add("name and version are required")
	}
	if p.Connect != nil && len(p.Sources) == 0 {
		wrong.add("a channel needs legal sources")
	}
	for _, s := range p.Sources {
		if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			wrong.add("source %q is not a web address", s)
		}
	}
	if p.Simulator != nil && p.Connect == nil {
		wrong.add("a simulator without a channel")
	}
	if (p.Connect != nil) != (p.Facts.Authority != nil) {
		wrong.add("a channel and facts.authority belong together")
	}
	if p.Connect == nil && slices.ContainsFunc(p.Facts.UseCases, func(u UseCase) bool { return u != Invoicing }) {
		wrong.add("without a channel only the use case %s is possible", Invoicing)
	}
	if p.Connect == nil && p.Speaks() {
		wrong.add("callbacks or a mailbox without a channel")
	}
	if p.Fetch != nil && p.Fetch.Look == nil {
		wrong.add("a mailbox that nobody can look into")
	}
	if err := p.Receive.validate(p); err != nil {
		wrong.add("%w", err)
	}
	validateCodes(p.Codes, wrong)
	p.Facts.validate(wrong)
	validateSecrets(p.Facts.Secrets, wrong)
	if p.Identity != nil {
		validateSecrets(p.Identity.Secrets, wrong)
	}
	if err := errors.Join(wrong.list...); err != nil {
		return fmt.Errorf("pack %s: %w", p.Code, err)
	}
	return nil
}

type complaints struct{ list []error }

func (c *complaints) add(format string, args ...any) {
	c.list = append(c.list, fmt.Errorf(format, args...))
}

func (f Facts) validate(wrong *complaints) {
	if !isUpper(f.Currency, 3) {
		wrong.add("currency %q must be three upper-case letters", f.Currency)
	}
	if len(f.Languages) == 0 || slices.ContainsFunc(f.Languages, func(l string) bool { return !isUpper(l, 2) }) {
		wrong.add("languages %q must be two upper-case letters each, at least one", f.Languages)
	}
	if f.TimeZone == "" {
		wrong.add("time_zone is required")
	}
	if len(f.UseCases) == 0 || slices.ContainsFunc(f.UseCases, func(u UseCase) bool {
		return u != Reporting && u != Invoicing && u != Both
	}) {
		wrong.add("use_cases %q must be %s, %s or %s, at least one", f.UseCases, Reporting, Invoicing, Both)
	}
	f.validateRules(wrong)
	if r := f.Responses; r != nil && (len(r.Statuses) == 0 || r.Rule == "" || slices.ContainsFunc(r.Statuses, func(s string) bool {
		return !slices.Contains(transaction.AnswerStatuses(), s)
	})) {
		wrong.add("responses %q need a rule, and statuses that can be answered", r.Statuses)
	}
	for _, r := range f.Rates {
		r.validate(wrong)
	}
	kinds := []transaction.Kind{transaction.Adjustment, transaction.Credit, transaction.Cancellation,
		transaction.Backfill, transaction.PaymentReport}
	for i, c := range f.Corrections {
		if !slices.Contains(kinds, c.Kind) || c.Days < 0 {
			wrong.add("correction %d: kind %q with %d days", i, c.Kind, c.Days)
		}
		if first, _ := f.Correction(c.Kind); c.ReasonRequired && len(c.Reasons) == 0 || !sameCorrection(first, c) {
			wrong.add("correction %s: twice, or a required reason without any to choose", c.Kind)
		}
	}
	keys := map[string]bool{}
	for _, s := range f.Settings {
		if s.Key == "" || keys[s.Key] {
			wrong.add("setting %q: empty or twice", s.Key)
		}
		keys[s.Key] = true
		s.validate(wrong)
	}
}

// validateSecrets refuses names that collide with those of every country or that
// could not be written as members and flags.
func validateSecrets(rules []SecretRule, wrong *complaints) {
	seen := map[string]bool{"certificate_base64": true, "certificate_password": true, "username": true, "password": true}
	for _, r := range rules {
		if seen[r.Name] || !secretName.MatchString(r.Name) {
			wrong.add("secret %q: twice, one of every country's, or not of lower-case letters, digits and underscores", r.Name)
		}
		if r.Description == "" {
			wrong.add("secret %s needs a description", r.Name)
		}
		seen[r.Name] = true
	}
}

// validateCodes refuses what would explain nothing, or two things.
func validateCodes(codes []AuthorityCode, wrong *complaints) {
	seen := map[string]bool{}
	for _, c := range codes {
		if seen[c.Code] || c.Meaning == "" || c.Do == "" || strings.ContainsFunc(c.Code, apart) {
			wrong.add("the authority's code %q: twice, without a meaning or an advice, or not one word", c.Code)
		}
		seen[c.Code] = true
	}
}

var secretName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// filled puts empty lists where there are none: a client reads [] and not null.
func (f Facts) filled() Facts {
	fill(&f.Languages)
	fill(&f.UseCases)
	fill(&f.Required)
	fill(&f.Forbidden)
	fill(&f.Allowed)
	fill(&f.MaxLengths)
	fill(&f.Patterns)
	fill(&f.Regimes)
	fill(&f.ReasonCodes)
	fill(&f.Reasons)
	fill(&f.Rates)
	fill(&f.Corrections)
	fill(&f.Settings)
	fill(&f.Credentials)
	fill(&f.Secrets)
	fill(&f.Formats)
	fill(&f.Derivations)
	fill(&f.Obligations)
	fill(&f.Roles)
	f.OwnCurrency = slices.ContainsFunc(f.Required, func(r FieldRule) bool { return r.Field == "exchange_rate" })
	return f
}

func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func sameCorrection(a, b Correction) bool {
	return a.Kind == b.Kind && a.Deadline == b.Deadline && a.Days == b.Days && len(a.Reasons) == len(b.Reasons)
}

// validateRules refuses a rule on a member that no body has: it would never
// hold, or never be obeyed, and nobody would see it.
func (f Facts) validateRules(wrong *complaints) {
	if len(f.Required)+len(f.Forbidden)+len(f.Allowed)+len(f.MaxLengths)+len(f.Patterns) == 0 {
		return
	}
	known := transaction.FieldPaths()
	field := func(list, name string) {
		if !slices.Contains(known, name) {
			wrong.add("%s names %q, which no transaction has", list, name)
		}
	}
	for _, r := range f.Required {
		field("required_fields", r.Field)
		validateConditions(r.When, field)
		r.validate(wrong)
	}
	for _, r := range f.Forbidden {
		field("forbidden_fields", r.Field)
		validateConditions(r.When, field)
		r.validate(wrong)
	}
	for _, r := range f.Allowed {
		field("allowed_values", r.Field)
		if len(r.Values) == 0 {
			wrong.add("allowed_values of %s: none", r.Field)
		}
	}
	for _, r := range f.MaxLengths {
		field("max_lengths", r.Field)
		if r.Max < 1 {
			wrong.add("max_lengths of %s: %d", r.Field, r.Max)
		}
	}
	for _, r := range f.Patterns {
		field("patterns", r.Field)
		validateConditions(r.When, field)
		if !r.Pattern.Match(r.Example) {
			wrong.add("patterns of %s: the example %q does not match", r.Field, r.Example)
		}
	}
}

// validateConditions refuses those that nothing can meet, and those of entries
// whose sense is not clear: any that matches is enough, none that must not would be all.
func validateConditions(when []Condition, field func(list, name string)) {
	for _, c := range when {
		if strings.Contains(c.Field, "*") && !c.Unless.IsZero() || c.Matches.IsZero() && c.Unless.IsZero() {
			field("conditions", "a condition on "+c.Field)
		}
		field("conditions", c.Field)
	}
}

func (r FieldRule) validate(wrong *complaints) {
	if !slices.Contains([]UseCase{"", Reporting, Invoicing, Both}, r.UseCase) ||
		!slices.Contains([]string{"", transaction.B2B, transaction.B2C}, r.BusinessModel) ||
		!slices.Contains([]transaction.Kind{"", transaction.Invoice, transaction.Adjustment, transaction.Credit,
			transaction.Cancellation, transaction.Backfill, transaction.PaymentReport}, r.Kind) {
		wrong.add("the rule on %s has a condition that nothing can meet", r.Field)
	}
}

func (r Rate) validate(wrong *complaints) {
	rate, err := num.AmountFromString(r.Percent)
	if err != nil || rate.MinimalString() != r.Percent || rate.IsNegative() {
		wrong.add("rate %q must be a percentage in its shortest form", r.Percent)
	}
	if r.Regime == "" || r.Type == "" {
		wrong.add("rate %s needs a regime and a type", r.Percent)
	}
	for _, day := range []string{r.Since, r.Until} {
		if day == "" {
			continue
		}
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			wrong.add("rate %s: %q is not a day", r.Percent, day)
		}
	}
	if r.Until != "" && r.Until <= r.Since {
		wrong.add("rate %s ends on %s before it begins", r.Percent, r.Until)
	}
}

func (s Setting) validate(wrong *complaints) {
	ok := s.Default == nil
	text := ""
	switch value := s.Default.(type) {
	case string:
		ok, text = s.Type == "string", value
	case bool:
		ok = s.Type == "boolean"
	case int, int64:
		ok = s.Type == "integer"
	case map[string]any:
		ok = s.Type == "object"
	}
	if !slices.Contains([]string{"string", "boolean", "integer", "object"}, s.Type) {
		wrong.add("setting %s: type %q", s.Key, s.Type)
	} else if !ok {
		wrong.add("setting %s: default %v (%T) is no %s", s.Key, s.Default, s.Default, s.Type)
	}
	if text != "" && len(s.Values) > 0 && !slices.Contains(s.Values, text) {
		wrong.add("setting %s: default %q is none of %q", s.Key, text, s.Values)
	}
	if s.Pattern == "" {
		return
	}
	re, err := regexp.Compile(s.Pattern)
	if err != nil {
		wrong.add("setting %s: %w", s.Key, err)
	} else if text != "" && !re.MatchString(text) {
		wrong.add("setting %s: default %q does not match %s", s.Key, text, s.Pattern)
	}
}

func isUpper(text string, length int) bool {
	return len(text) == length && !strings.ContainsFunc(text, func(r rune) bool { return r < 'A' || r > 'Z' })
}
