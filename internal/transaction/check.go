package transaction

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// Terms are what decides about a body beside the body itself: the countries of
// the program and the client's configuration. Nothing stored is among them.
type Terms struct {
	Atlas   *country.Atlas
	UseCase func(code string) (country.UseCase, bool) // of the client; false: the country (upper case) is not enabled
	Live    country.Live
	Now     time.Time
}

// Examined is a body that can be accepted.
type Examined struct {
	Transaction *country.Transaction
	Pack        country.Pack
	UseCase     country.UseCase
	Totals      country.Totals // zero without items
	Warnings    []fault.Fault
}

// Examine reads a body and checks all that the body and the client's
// configuration decide: its shape, then the country's facts and the money,
// then, if nothing was found so far, the pack's own check.
//
// The error is a [fault.Error] of kind Invalid with every fault, each at the
// client's own path. A member has one fault at most from here: what the shape
// refused is not said again by a fact.
func Examine(kind country.Kind, body []byte, terms Terms) (*Examined, error) {
	d := decodeBody(kind, body)
	if d.broken != nil {
		return nil, d.broken
	}
	c := &checker{decoder: d, terms: terms, shape: d.faults.listed, kind: kindSet(kind)}
	if c.findCountry() {
		c.operation()
		c.facts()
	}
	c.money()
	if d.faults.count == 0 && c.pack.Check != nil && c.kind&whole != 0 {
		c.found(c.pack.Check(country.Case{
			Transaction: d.tx, Totals: c.totals, UseCase: c.useCase, Now: terms.Now,
		})...)
	}
	if err := d.faults.err(); err != nil {
		return nil, err
	}
	return &Examined{
		Transaction: d.tx, Pack: c.pack, UseCase: c.useCase, Totals: c.totals,
		Warnings: append(d.warned(), c.cautions.listed...),
	}, nil
}

// checker goes on where the decoder ended.
type checker struct {
	*decoder
	terms    Terms
	kind     kinds
	shape    []fault.Fault // what the decoder found
	pack     country.Pack
	useCase  country.UseCase
	totals   country.Totals
	cautions faultList
}

// found keeps faults and warnings, unless the shape of the same member was
// refused already or a pack says again what its facts said.
func (c *checker) found(faults ...fault.Fault) {
	for _, f := range faults {
		f = c.spelled(f)
		switch {
		case f.Type == fault.Warning:
			c.cautions.addNew(f)
		case !slices.ContainsFunc(c.shape, func(known fault.Fault) bool { return sameMember(known.Field, f.Field) }):
			c.faults.addNew(f)
		}
	}
}

// addNew leaves out what is listed with the same code at the same member.
func (l *faultList) addNew(f fault.Fault) {
	if f.Field == "" || !slices.ContainsFunc(l.listed, func(known fault.Fault) bool { return known.Code == f.Code && known.Field == f.Field }) {
		l.add(f)
	}
}

// sameMember reports whether one path is the other's or leads to it.
func sameMember(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a != "" && strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.')
}

// spelled turns the path of a tax entry into the name the client used.
func (c *checker) spelled(f fault.Fault) fault.Fault {
	for _, i := range c.aliased {
		item := "items." + strconv.Itoa(i) + "."
		if strings.HasPrefix(f.Field, item+"tax_breakdowns") {
			f.Field = strings.Replace(f.Field, "tax_breakdowns", aliasTaxes, 1)
			f.Message = strings.ReplaceAll(f.Message, item+"tax_breakdowns", item+aliasTaxes)
		}
	}
	return f
}

// findCountry finds the pack and the client's use case; false when the country cannot be used.
func (c *checker) findCountry() bool {
	code := upperCode(c.tx.CountryCode)
	if code == "" {
		return false
	}
	pack, known := c.terms.Atlas.Pack(code)
	if !known {
		c.found(fault.At("country_code", fault.UnsupportedCountry, "is not a country of this service"))
		return false
	}
	if !c.terms.Atlas.Offers(code, c.terms.Live) {
		c.found(fault.At("country_code", fault.UnsupportedCountry, "is offered with test keys only"))
		return false
	}
	useCase, enabled := c.terms.UseCase(code)
	if !enabled {
		c.found(fault.At("country_code", fault.UnsupportedCountry, "is not enabled for this client"))
		return false
	}
	if !supports(pack, useCase) {
		c.found(fault.At("country_code", fault.UnsupportedCountry, "has no use case %s", useCase))
		return false
	}
	c.pack, c.useCase = pack, useCase
	return true
}

// supports says whether a country serves a use case. Both asks for what there
// is. A country of documents only has no Reporting among its use cases.
func supports(p country.Pack, u country.UseCase) bool {
	return u == country.Both || slices.Contains(p.Facts.UseCases, u) || slices.Contains(p.Facts.UseCases, country.Both)
}

// operation checks that the country knows the kind of correction at all.
// Deadlines need the original and are checked when the operation runs.
func (c *checker) operation() {
	kind, facts := c.tx.Kind, &c.pack.Facts
	switch {
	case c.kind == invoices:
		return
	case c.kind == backfills:
		// A backfill only makes a document known here; it is of use wherever anything can be corrected.
		if len(facts.Corrections) == 0 {
			c.found(fault.At("country_code", fault.UnsupportedOperation, "has no corrections that a backfill could serve"))
		}
		return
	}
	if c.tx.ReferenceID != "" && c.tx.ReferenceID == c.tx.ID {
		c.found(fault.At("reference_transaction_id", fault.ValidationMatchInvalid, "must not be the transaction_id of the correction itself"))
	}
	correction, known := facts.Correction(kind)
	if !known {
		c.found(fault.At("country_code", fault.UnsupportedOperation, "has no operation %s", kind))
		return
	}
	if kind == country.Credit {
		return // its body has no reason
	}
	if kind == country.Adjustment && len(correction.Reasons) == 0 {
		if c.tx.Reason != "" {
			c.found(fault.Warn("reason", fault.FieldUnknown, "is not read in adjustments of this country"))
		}
		return
	}
	codes := make([]string, len(correction.Reasons))
	for i, r := range correction.Reasons {
		codes[i] = r.Code
	}
	switch {
	case c.tx.Reason != "" && correction.ReasonPattern != "":
		if fits, err := regexp.MatchString(correction.ReasonPattern, c.tx.Reason); err != nil || !fits {
			c.found(fault.At("reason", fault.FieldNotValid, "must be one of %s, written as %s", strings.Join(codes, ", "), correction.ReasonPattern))
		}
	case c.tx.Reason == "" && correction.ReasonRequired:
		c.found(fault.At("reason", fault.FieldRequired, "must not be empty: it is one of %s", strings.Join(codes, ", ")))
	case c.tx.Reason != "" && len(codes) > 0 && !slices.Contains(codes, c.tx.Reason):
		c.found(fault.At("reason", fault.FieldNotValid, "must be one of %s", strings.Join(codes, ", ")))
	}
}

// money works out the amounts, as far as the items allow.
func (c *checker) money() {
	if len(c.tx.Items) == 0 || c.itemsFaulty {
		return
	}
	totals, faults := country.Calculate(c.tx.Items)
	c.found(faults...)
	if len(faults) > 0 {
		return
	}
	c.totals = totals
	if !c.paymentsFault {
		c.found(country.CheckPayments(c.tx.Payments, totals)...)
	}
}
