package country

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/authority"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// facts checks the body against what the country says of itself as data.
func (c *examiner) facts() {
	c.rules()
	if !c.files() && c.terms.Atlas.simulators != "" && !bool(c.terms.Live) && authority.AsksForOutcome(c.tx.Number) {
		c.found(fault.Warn("transaction_number", fault.UnsupportedOperation,
			"asks a simulated authority for an outcome, and nothing is filed in this country: it ends like any other"))
	}
	if c.tx.Whole() && !c.pack.Facts.NumberOptional && c.tx.Number == "" && !c.terms.Numbered {
		c.found(fault.At("transaction_number", fault.FieldRequired, "must not be empty"))
	}
	if c.tx.Kind == transaction.Credit && c.pack.Facts.NumberedCredits && c.tx.Number == "" && !c.terms.Numbered {
		c.found(fault.At("transaction_number", fault.FieldRequired,
			"must not be empty where no series of kind CREDIT gives one: a corrective document is numbered in a series of its own"))
	}
	if c.tx.Whole() {
		c.rates()
	}
	c.roles()
	c.quotas()
}

// roles refuses an order or third parties where the country's document names none, and
// roles that it has no word for.
func (c *examiner) roles() {
	if len(c.tx.OrderItems) > 0 && !c.pack.Facts.Advances {
		c.found(fault.At("order_items", fault.UnsupportedField, "have no place in documents of this country"))
	}
	known := c.pack.Facts.Roles
	if len(c.tx.ThirdParties) > 0 && len(known) == 0 {
		c.found(fault.At("third_parties", fault.UnsupportedField, "have no place in documents of this country"))
		return
	}
	codes := make([]string, len(known))
	for i, m := range known {
		codes[i] = m.Code
	}
	for i := range c.tx.ThirdParties {
		if role := c.tx.ThirdParties[i].Role; role != "" && !slices.Contains(codes, role) {
			c.found(fault.At(fmt.Sprintf("third_parties.%d.role", i), fault.FieldNotValid, "must be one of %s",
				strings.Join(codes, ", ")))
		}
	}
}

// files reports whether the transaction may go to an authority at all.
func (c *examiner) files() bool {
	return c.pack.MayFile(c.tx)
}

// rules are the facts but for rates.
func (c *examiner) rules() {
	facts := &c.pack.Facts
	if c.tx.Kind != transaction.Backfill { // what was issued elsewhere obeyed the rules of its own time
		for i := range facts.Allowed {
			c.allow(&facts.Allowed[i])
		}
		for i := range facts.MaxLengths {
			c.limit(&facts.MaxLengths[i])
		}
		for i := range facts.Patterns {
			c.written(&facts.Patterns[i])
		}
	}
	for i := range facts.Required {
		if rule := &facts.Required[i]; c.holds(rule) {
			c.require(rule)
		}
	}
	for i := range facts.Forbidden {
		if rule := &facts.Forbidden[i]; c.holds(rule) {
			c.forbid(rule)
		}
	}
	if c.tx.Kind == transaction.Invoice && c.tx.Reason != "" {
		c.reason(facts.Reasons)
	}
	if c.tx.Whole() {
		c.taxes(facts.TaxesPerLine)
		c.day(facts.Dates)
		c.dates()
	}
}

// reason refuses what a sale cannot give as one: most countries know none.
func (c *examiner) reason(known []Meaning) {
	if len(known) == 0 {
		c.found(fault.At("reason", fault.UnsupportedField, "does not belong to this operation"))
		return
	}
	var codes []string
	for _, m := range known {
		if strings.EqualFold(m.Code, c.tx.Reason) {
			return
		}
		codes = append(codes, m.Code)
	}
	c.found(fault.At("reason", fault.FieldNotValid, "must be one of %s", strings.Join(codes, ", ")))
}

// dates refuses a due date before the document's day. That day is the
// supplier's, whose address only the worker knows: both the country's day and
// the day in the client's own offset count as it.
func (c *examiner) dates() {
	if c.tx.DueDate == "" || c.tx.Date.IsZero() {
		return
	}
	day := min(c.tx.Date.In(c.zone()).Format(time.DateOnly), c.tx.Date.Format(time.DateOnly))
	if c.tx.DueDate < day {
		c.found(fault.At("due_date", fault.ValidationMatchInvalid, "must not be before the day of the document, %s", day))
	}
}

// holds reports whether a rule's conditions are met. A rule without a kind
// speaks of whole documents: a credit has none of their members.
func (c *examiner) holds(r *FieldRule) bool {
	switch {
	case r.Kind == "" && !c.tx.Whole(), r.Kind != "" && r.Kind != c.tx.Kind:
		return false
	case !concerns(r.UseCase, c.useCase), !c.met(r.When):
		return false
	case r.BusinessModel == "":
		return true
	}
	model, known := c.businessModel()
	return known && r.BusinessModel == model
}

// businessModel is unknown while the customer itself is in doubt: a rule for
// the wrong model would only confuse.
func (c *examiner) businessModel() (string, bool) {
	for _, f := range c.shape {
		if f.Field == "customer" || f.Field == "customer.type" {
			return "", false
		}
	}
	return BusinessModel(c.tx), true
}

func (c *examiner) require(r *FieldRule) {
	c.tx.EachField(r.Field, func(at transaction.Place, text string) {
		if text == "" {
			c.found(fault.At(at.Path(r.Field), fault.FieldRequired, "must not be empty%s", because(r.Reason)))
		}
	})
}

func (c *examiner) forbid(r *FieldRule) {
	c.tx.EachField(r.Field, func(at transaction.Place, text string) {
		if text != "" {
			c.found(fault.At(at.Path(r.Field), fault.UnsupportedField, "is not supported here%s", because(r.Reason)))
		}
	})
}

func (c *examiner) allow(r *ValueRule) {
	if !concerns(r.UseCase, c.useCase) {
		return
	}
	eitherCase := strings.HasSuffix(r.Field, "country_code") || strings.HasSuffix(r.Field, "currency_code") ||
		strings.HasSuffix(r.Field, "language_code")
	c.tx.EachField(r.Field, func(at transaction.Place, text string) {
		if eitherCase {
			text = strings.ToUpper(text)
		}
		if text != "" && !slices.Contains(r.Values, text) {
			c.found(fault.At(at.Path(r.Field), fault.FieldNotValid, "must be one of %s%s", strings.Join(r.Values, ", "),
				because(r.Reason)))
		}
	})
}

func (c *examiner) limit(r *LengthRule) {
	if !concerns(r.UseCase, c.useCase) {
		return
	}
	c.tx.EachField(r.Field, func(at transaction.Place, text string) {
		if len(text) > r.Max && utf8.RuneCountInString(text) > r.Max {
			c.found(fault.At(at.Path(r.Field), fault.FieldNotValid, "must be at most %d characters long%s", r.Max, because(r.Reason)))
		}
	})
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// rates compares every tax entry with the country's regimes and table. What
// the table refuses is an error only where the authority would refuse it.
func (c *examiner) rates() {
	facts := &c.pack.Facts
	if len(facts.Regimes) > 0 {
		c.regimes(facts)
	}
	if len(facts.Rates) > 0 && !c.ItemsFaulty && !c.tx.Date.IsZero() {
		c.found(CheckRates(*facts, Case{Transaction: c.tx})...)
	}
}

func (c *examiner) regimes(facts *Facts) {
	c.tx.EachField("items.*.tax_breakdowns.*.regime", func(at transaction.Place, regime string) {
		if regime == "" || regime == transaction.Withholding || slices.Contains(facts.Regimes, regime) {
			return
		}
		path, text := at.Path("items.*.tax_breakdowns.*.regime"),
			"is not among those of the country: "+strings.Join(facts.Regimes, ", ")
		if facts.StrictRates {
			c.found(fault.At(path, fault.FieldNotValid, "%s", text))
		} else {
			c.found(fault.Warn(path, fault.RateUnusual, "%s", text))
		}
	})
}

// quotas refuses taxes by quota where a country has none, and on orders.
func (c *examiner) quotas() {
	for i := range c.tx.Items {
		for j := range c.tx.Items[i].Taxes {
			if tax := &c.tx.Items[i].Taxes[j]; tax.Quota != nil && !slices.Contains(c.pack.Facts.Quotas, tax.Regime) {
				c.found(fault.At(fmt.Sprintf("items.%d.tax_breakdowns.%d.quota", i, j), fault.UnsupportedField,
					"is not supported for %s: such a tax has a rate", c.pack.Code))
			}
		}
	}
	for i := range c.tx.OrderItems {
		for j := range c.tx.OrderItems[i].Taxes {
			if c.tx.OrderItems[i].Taxes[j].Quota != nil {
				c.found(fault.At(fmt.Sprintf("order_items.%d.tax_breakdowns.%d.quota", i, j), fault.UnsupportedField,
					"is not supported on what was ordered"))
			}
		}
	}
}
