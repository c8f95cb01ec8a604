package es

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Suffix of a reason that asks for a correction by substitution.
const bySubstitution = "-S"

// corrections are the operations of Spain. An invoice of an operation that
// took place is corrected by another invoice; only one that should never have
// existed is cancelled (Real Decreto 1619/2012, article 15; Real Decreto
// 1007/2023, article 11).
func corrections() []country.Correction {
	return []country.Correction{
		{
			Kind: transaction.Adjustment, Several: true,
			Deadline: "Four years after the tax became due (Ley 37/1992, article 89.One).", Days: 4*365 + 1,
			Reasons: []country.Meaning{
				{Code: "R1", Meaning: "Founded error in law and articles 80.1, 80.2 and 80.6 (the default where the original is not simplified), by difference"},
				{Code: "R2", Meaning: "Article 80.3: insolvency of the customer, by difference"},
				{Code: "R3", Meaning: "Article 80.4: bad debts, by difference"},
				{Code: "R4", Meaning: "Other reasons, by difference"},
				{Code: "R5", Meaning: "Of a simplified invoice, by difference"},
				{Code: "R1" + bySubstitution, Meaning: "R1 by substitution: the items are the whole corrected invoice"},
				{Code: "R2" + bySubstitution, Meaning: "R2 by substitution"},
				{Code: "R3" + bySubstitution, Meaning: "R3 by substitution"},
				{Code: "R4" + bySubstitution, Meaning: "R4 by substitution"},
				{Code: "R5" + bySubstitution, Meaning: "R5 by substitution"},
				{Code: "F3", Meaning: "A full invoice in place of a simplified one, or of several, of all that is left of them"},
				{Code: reasonMend, Meaning: "Subsanación: the invoice stands, the record of it is mended. The items are the whole invoice with the same amounts, number and day are those of the original; nothing is printed anew"},
			},
		},
		{Kind: transaction.Credit, Deadline: "Four years after the tax became due (Ley 37/1992, article 89.One).", Days: 4*365 + 1},
		{Kind: transaction.Cancellation, Deadline: "None; only for an invoice that should not have been issued at all."},
		{Kind: transaction.Backfill},
	}
}

// correct makes a credit or an adjustment of the record.
func (p *pack) correct(r *record, in *country.Draft, where *time.Location) error {
	if in.Original == nil {
		return invalid(fault.At("reference_transaction_id", fault.ReferenceUnknown, "is not known"))
	}
	list := p.by.OriginalsOf(in)
	about := readOriginal(list[0], r.id.Issuer, where)
	if r.customer == nil || in.Transaction.Kind == transaction.Credit {
		if mended, _ := partyID(lastMended(in.Original), "customer"); mended != nil {
			about.customer = mended
		}
		if about.customer != nil {
			r.customer = about.customer // a correction may leave the customer to its original
		}
	}
	if in.Transaction.Reason == reasonMend && in.Transaction.Kind == transaction.Adjustment {
		return p.mend(r, in, about, where)
	}
	of, err := originalsOf(list, r.id.Issuer, where)
	if err != nil {
		return err
	}
	r.unnamed = about.unnamed && about.simplified
	if in.Transaction.Kind == transaction.Credit {
		r.sums = r.sums.negated()
		r.kind, r.method, r.rectified = "R1", "I", []invoiceID{about.id}
		if about.simplified || r.customer == nil {
			r.kind = "R5"
		}
		return nil
	}
	kind, method := chooseCorrection(r, in.Transaction.Reason, about)
	r.kind = kind
	if kind == "F3" {
		return r.replace(list, of)
	}
	r.method = method
	if wrong := anotherCustomer(r, in, about); wrong != nil {
		return invalid(*wrong)
	}
	for _, each := range of {
		r.rectified = append(r.rectified, each.id)
	}
	if method == "S" {
		return p.substitute(r, list)
	}
	return nil
}

// anotherCustomer refuses a correction by difference for somebody else than the
// original's customer: what changes of an invoice is between the two who had it
// (Real Decreto 1619/2012, article 15). A wrong customer is put right by credit and
// a new invoice, or by substitution.
func anotherCustomer(r *record, in *country.Draft, about original) *fault.Fault {
	before := about.customer
	if mended, _ := partyID(lastMended(in.Original), "customer"); mended != nil {
		before = mended
	}
	if r.method != "I" || r.kind == "R5" || before == nil || r.customer == nil ||
		cmp.Or(before.NIF, before.ID) == cmp.Or(r.customer.NIF, r.customer.ID) {
		return nil
	}
	f := fault.At("customer.tax_information.tax_number", fault.ValidationMatchInvalid,
		"must be that of the original for a correction by difference (Real Decreto 1619/2012, article 15): credit the original and issue a new invoice, or correct by substitution (R1-S to R4-S)")
	return &f
}

// replace makes the record a full invoice in place of simplified ones (Real
// Decreto 1619/2012, article 15.6 and Validaciones 3.1.3.5): of all that is left
// of each, so that nothing is invoiced twice.
func (r *record) replace(list []sale.Original, of []original) error {
	for i, share := range list {
		if !of[i].simplified || of[i].unnamed {
			return invalid(fault.At("reason", fault.ValidationMatchInvalid,
				"does not fit: F3 takes the place of a simplified invoice, and the original is a full one"))
		}
		r.replaced = append(r.replaced, of[i].id)
		r.effects = append(r.effects, country.Effect{Amount: -share.Amount, Rest: -share.Amount, Exact: true})
	}
	return nil
}

// substitute states what the record takes back. It changes its originals by the
// difference, and still has taken them back after it was itself credited.
func (p *pack) substitute(r *record, list []sale.Original) error {
	var all breakdown
	for _, share := range list {
		if slices.ContainsFunc(share.Transaction.Items, itemOnMargin) {
			return invalid(fault.At("reason", fault.UnsupportedOperation,
				"does not fit: what is taxed on its margin is corrected by difference, because a substitution would show the tax (Ley 37/1992, articles 138 and 142)"))
		}
		if len(share.Transaction.Items) == 0 {
			return invalid(fault.At(share.Path, fault.UnsupportedOperation,
				"was backfilled without items: a substitution must say what it takes back"))
		}
		before, faults := p.amounts(&share.Transaction, share.Totals)
		if len(faults) > 0 {
			return invalid(fault.At(share.Path, fault.UnsupportedOperation, "has amounts that cannot be stated to the authority"))
		}
		old := share.Totals.Gross
		if share.Transaction.Kind == transaction.Credit {
			before, old = before.negated(), -old
		}
		all.base, all.tax, all.extra = all.base+before.base, all.tax+before.tax, all.extra+before.extra
		r.effects = append(r.effects, country.Effect{Amount: share.Amount - old, Rest: -old, Alone: true})
	}
	r.substitute = &all
	return nil
}

// chooseCorrection decides type and method of an adjustment: see derivations.
func chooseCorrection(r *record, reason string, about original) (kind, method string) {
	kind, found := strings.CutSuffix(reason, bySubstitution)
	method = "I"
	if found {
		method = "S"
	}
	switch {
	case kind == "F3":
		return kind, ""
	case kind != "":
		return kind, method
	case about.simplified || r.customer == nil:
		return "R5", method
	}
	return "R1", method
}

// contradictions finds what the authority would refuse in a record whose type
// is known (AEAT, "Validaciones" 1.2.0, sections 3.1.3.13, 15.4 to 15.8).
func (r *record) contradictions(t *transaction.Transaction) []fault.Fault {
	found := r.simplifiedFaults(t)
	if r.method != "I" {
		found = append(found, misfits(r.sums)...)
	}
	full := r.kind != "F2" && r.kind != "R5"
	const number = "customer.tax_information.tax_number"
	if full && r.customer == nil {
		found = append(found, fault.At(number, fault.FieldRequired,
			"must not be empty: an invoice of type %s names its customer", r.kind))
	}
	if r.customer != nil && r.customer.NIF == "" && r.customer.IDType != idUncensed &&
		(r.kind == "R3" || r.kind == "R2" && r.customer.IDType != idVAT) {
		found = append(found, fault.At(number, fault.ValidationMatchInvalid,
			"must be a Spanish NIF for an invoice of type %s", r.kind))
	}
	for _, d := range r.sums.details {
		switch {
		case d.grade == "S2" && !full:
			found = append(found, fault.At(number, fault.FieldRequired, "must not be empty where the customer is liable for the tax"))
		case d.grade == "E5" && d.tax == taxIVA && (r.customer == nil || r.customer.IDType != idVAT):
			found = append(found, fault.At(number, fault.ValidationMatchInvalid,
				"must be the VAT number of a business in another member state: the supply is exempt by article 25"))
		case d.regime == "10" && (r.kind != "F1" || r.customer == nil || r.customer.NIF == ""):
			found = append(found, fault.At(number, fault.ValidationMatchInvalid,
				"must be a Spanish NIF for collections for third parties"))
		default:
			continue
		}
		break
	}
	return found
}
