package country

import (
	"slices"
	"strconv"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Check is a rule of a country that is not data. It says what it looks at, so
// that it runs on what is sound of a body that is not: whoever sent four faults
// reads four, not one after the other.
type Check struct {
	// Reads are the members that Find looks at, as dotted paths with "*" for any
	// index; a path stands for everything below it. It does not run while one of
	// them is refused. Of arrays only the entry is lost: what Find says of an
	// entry counts unless that entry is refused, what it says of anything else
	// only if no entry is.
	Reads []string
	// Amounts says that Find looks at the totals: it runs only if there are some.
	Amounts bool
	// UseCase is the one whose rule it is; empty: every one's.
	UseCase UseCase
	// Kind is what it checks; empty: whole documents, sales and adjustments.
	Kind transaction.Kind
	Find func(Case) []fault.Fault
}

// Check finds what the facts, but for rates, and the checks of the country say
// of a decoded transaction in which nothing else is wrong.
func (p Pack) Check(in Case) []fault.Fault {
	c := &examiner{Reading: &transaction.Reading{Transaction: in.Transaction}, tx: in.Transaction, pack: p, useCase: in.UseCase,
		terms: Terms{Now: in.Now}, totals: in.Totals, counted: true}
	c.rules()
	c.refused = slices.Clone(c.Faults.Listed())
	c.checks()
	return append(c.Faults.Listed(), c.cautions.Listed()...)
}

// checks runs the country's own, each on what is sound of what it reads.
func (c *examiner) checks() {
	if c.Faults.Full() {
		return // a list that is full does not say what is sound
	}
	in := Case{Transaction: c.tx, Totals: c.totals, UseCase: c.useCase, Now: c.terms.Now}
	for _, check := range append([]Check{c.pack.ancillary(), c.pack.elsewhere()}, c.pack.Checks...) {
		if !check.of(c.tx) || check.Amounts && !c.counted || !concerns(check.UseCase, c.useCase) {
			continue
		}
		if lost, sound := unsound(check.Reads, c.refused); sound {
			for _, f := range check.Find(in) {
				f = c.Spelled(f)
				if lost.keeps(f.Field) && !covered(f.Field, c.refused) {
					c.keep(f)
				}
			}
		}
	}
}

// of reports whether a check speaks of a transaction of this kind.
func (c *Check) of(t *transaction.Transaction) bool {
	if c.Kind == "" {
		return t.Whole()
	}
	return c.Kind == t.Kind
}

// concerns reports whether a rule of one use case binds a client with another.
func concerns(rule, client UseCase) bool { return rule == "" || rule == client || client == Both }

// covered reports whether a member, or what it stands in, was refused already.
func covered(field string, refused []fault.Fault) bool {
	return slices.ContainsFunc(refused, func(known fault.Fault) bool {
		return len(known.Field) <= len(field) && sameMember(known.Field, field)
	})
}

// entries are refused ones of arrays, as "items.3".
type entries []string

// keeps reports whether a finding speaks of something sound.
func (e entries) keeps(field string) bool {
	if len(e) == 0 {
		return true
	}
	name, rest, _ := strings.Cut(field, ".")
	index, _, _ := strings.Cut(rest, ".")
	if _, err := strconv.Atoi(index); err != nil {
		return false
	}
	return !slices.Contains(e, name+"."+index)
}

// unsound finds which entries of arrays are lost to a reader of some members,
// and whether it can run at all.
func unsound(reads []string, refused []fault.Fault) (lost entries, sound bool) {
	for _, f := range refused {
		at := strings.Split(f.Field, ".")
		for _, path := range reads {
			if !leadsTo(strings.Split(path, "."), at) {
				continue
			}
			if !strings.Contains(path, "*") || len(at) < 2 {
				return nil, false
			}
			lost = append(lost, at[0]+"."+at[1])
			break
		}
	}
	return lost, true
}

// leadsTo reports whether one of two paths is the other's or leads to it.
func leadsTo(path, at []string) bool {
	if at[0] == "" {
		return true // a fault of no member is one of all
	}
	for i := range min(len(path), len(at)) {
		// tax_breakdown is read like tax_breakdowns
		if path[i] != at[i] && path[i] != "*" && strings.TrimSuffix(path[i], "s") != at[i] {
			return false
		}
	}
	return true
}
