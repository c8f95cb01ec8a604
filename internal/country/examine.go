package country

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Terms are what decides about a body beside the body itself: the countries of
// the program and the client's configuration. Nothing stored is among them.
type Terms struct {
	Atlas   *Atlas
	UseCase func(code string) (UseCase, bool) // of the client; false: the country (upper case) is not enabled
	Live    Live
	Now     time.Time

	Numbered   bool // a transaction without a number gets one from a series of the client
	WarnTotals bool // the client wants to be warned of totals that differ, not refused
}

// Examined is a body that can be accepted.
type Examined struct {
	Transaction *transaction.Transaction
	Pack        Pack
	UseCase     UseCase
	Totals      transaction.Totals // zero without items
	Warnings    []fault.Fault
}

// Examine reads a body and checks all that the body and the client's
// configuration decide: its shape, then the country's facts and the money,
// then the pack's own checks, each on what is sound of what it reads.
//
// The error is a [fault.Error] of kind Invalid with every fault, each at the
// client's own path. A member has one fault at most from here: what the shape
// refused is not said again by a fact.
func Examine(kind transaction.Kind, body []byte, terms Terms) (*Examined, error) {
	read, err := transaction.Read(kind, body)
	if err != nil {
		return nil, err
	}
	return ExamineRead(read, terms)
}

// ExamineRead is [Examine] for whoever has read the body, to learn what the terms
// are for it.
func ExamineRead(read *transaction.Reading, terms Terms) (*Examined, error) {
	c := &examiner{Reading: read, tx: read.Transaction, terms: terms, shape: read.Faults.Listed()}
	unknown := c.unknownCustomer()
	c.shape = append(c.shape, unknown...)
	if c.findCountry() {
		c.operation()
		c.facts()
	}
	c.refused = append(slices.Clone(c.Faults.Listed()), unknown...)
	c.money()
	c.checks()
	if err := c.Faults.Err("the transaction"); err != nil {
		return nil, err
	}
	return &Examined{
		Transaction: c.tx, Pack: c.pack, UseCase: c.useCase, Totals: c.totals,
		Warnings: append(c.Warnings, c.cautions.Listed()...),
	}, nil
}

// unknownCustomer: of a customer that is named by the id of a company nothing is
// known here, because nothing stored is looked at. No rule and no check speaks of
// it, as of a member that was refused; whoever looks the company up asks
// [Pack.Check] again.
func (c *examiner) unknownCustomer() []fault.Fault {
	if c.tx == nil || c.tx.Customer == nil || c.tx.Customer.ID == "" {
		return nil
	}
	return []fault.Fault{{Field: "customer"}}
}

// examiner goes on where the reading of the body ended.
type examiner struct {
	*transaction.Reading
	tx       *transaction.Transaction
	terms    Terms
	shape    []fault.Fault // what the reading found
	refused  []fault.Fault // what the reading and the facts found: no check looks at it
	pack     Pack
	useCase  UseCase
	totals   transaction.Totals
	counted  bool // there are totals
	cautions fault.List
}

// found keeps faults and warnings, unless the shape of the same member was
// refused already or a pack says again what its facts said.
func (c *examiner) found(faults ...fault.Fault) {
	for _, f := range faults {
		f = c.Spelled(f)
		if f.Type == fault.Warning || !slices.ContainsFunc(c.shape, func(known fault.Fault) bool {
			return sameMember(known.Field, f.Field)
		}) {
			c.keep(f)
		}
	}
}

func (c *examiner) keep(f fault.Fault) {
	if f = c.Spelled(f); f.Type == fault.Warning {
		c.cautions.AddNew(f)
	} else {
		c.Faults.AddNew(f)
	}
}

// sameMember reports whether one path is the other's or leads to it.
func sameMember(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a != "" && strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.')
}

// findCountry finds the pack and the client's use case; false when the country cannot be used.
func (c *examiner) findCountry() bool {
	code := strings.ToUpper(c.tx.CountryCode)
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
func supports(p Pack, u UseCase) bool {
	return u == Both || slices.Contains(p.Facts.UseCases, u) || slices.Contains(p.Facts.UseCases, Both)
}

// operation checks that the country knows the kind of correction at all.
// Deadlines need the original and are checked when the operation runs.
func (c *examiner) operation() {
	kind, facts := c.tx.Kind, &c.pack.Facts
	switch kind {
	case transaction.Invoice:
		return
	case transaction.Backfill:
		// A backfill only makes a document known here; it is of use wherever anything can be corrected.
		if len(facts.Corrections) == 0 {
			c.found(fault.At("country_code", fault.UnsupportedOperation, "has no corrections that a backfill could serve"))
		}
		return
	}
	c.ownReference()
	correction, known := facts.Correction(kind)
	if !known {
		c.found(fault.At("country_code", fault.UnsupportedOperation, "has no operation %s", kind))
		return
	}
	if kind == transaction.Adjustment && len(c.tx.Shares) > 1 && !correction.Several {
		c.found(fault.At("references", fault.UnsupportedField,
			"has more than one entry: a correction of this country has one original"))
	}
	if kind == transaction.Adjustment || kind == transaction.Cancellation { // the bodies of others have no reason
		c.correctionReason(correction)
	}
}

// ownReference: nothing refers to itself.
func (c *examiner) ownReference() {
	own := func(p transaction.Share) bool {
		return p.TransactionID != c.tx.ReferenceID && p.TransactionID == c.tx.ID
	}
	if slices.ContainsFunc(c.tx.Shares, own) {
		c.found(fault.At("references", fault.ValidationMatchInvalid, "must not name the transaction_id of what refers to them"))
	}
	if c.tx.ReferenceID != "" && c.tx.ReferenceID == c.tx.ID {
		c.found(fault.At("reference_transaction_id", fault.ValidationMatchInvalid,
			"must not be the transaction_id of the correction itself"))
	}
}

// correctionReason checks why something is corrected, in the country's own codes.
func (c *examiner) correctionReason(correction Correction) {
	reason, codes := c.tx.Reason, make([]string, len(correction.Reasons))
	for i, r := range correction.Reasons {
		codes[i] = r.Code
	}
	listed := strings.Join(codes, ", ")
	switch {
	case c.tx.Kind == transaction.Adjustment && len(codes) == 0:
		if reason != "" {
			c.found(fault.Warn("reason", fault.FieldUnknown, "is not read in adjustments of this country"))
		}
	case reason == "" && correction.ReasonRequired:
		c.found(fault.At("reason", fault.FieldRequired, "must not be empty: it is one of %s", listed))
	case reason == "":
	case correction.ReasonPattern != "":
		if fits, err := regexp.MatchString(correction.ReasonPattern, reason); err != nil || !fits {
			c.found(fault.At("reason", fault.FieldNotValid, "must be one of %s, written as %s", listed, correction.ReasonPattern))
		}
	case len(codes) > 0 && !slices.Contains(codes, reason):
		c.found(fault.At("reason", fault.FieldNotValid, "must be one of %s", listed))
	}
}

// deducts reports whether what the document refers to is deducted in its lines.
func (c *examiner) deducts() bool {
	correction, _ := c.pack.Facts.Correction(c.tx.Kind)
	return slices.Contains(correction.Deducting, c.tx.Reason)
}

// money works out the amounts, as far as the items allow.
func (c *examiner) money() {
	if c.tx.Kind == transaction.PaymentReport && !c.PaymentsFaulty {
		c.found(transaction.CheckPaid(c.tx)...)
	}
	if len(c.tx.Items) == 0 || c.ItemsFaulty {
		return
	}
	totals, faults := transaction.Calculate(c.tx.Items)
	c.found(faults...)
	if len(faults) > 0 {
		return
	}
	c.totals, c.counted = totals, true
	for _, f := range transaction.CheckStated(c.tx, totals) {
		if c.terms.WarnTotals {
			f.Type = fault.Warning
		}
		c.found(f)
	}
	if c.tx.Kind == transaction.Adjustment && !c.deducts() {
		c.found(transaction.CheckCorrected(c.tx, totals)...)
	}
	if !c.PaymentsFaulty {
		c.found(transaction.CheckPayments(c.tx.Payments, totals)...)
	}
}
