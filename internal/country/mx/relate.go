package mx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// Relations (c_TipoRelacion).
const (
	relationCredit  = "01"
	relationDebit   = "02"
	relationReturn  = "03"
	relationReplace = "04"
	relationAdvance = "07"
)

// relations are the reasons of an adjustment: keys of c_TipoRelacion.
func relations() []country.Meaning {
	return []country.Meaning{
		{Code: relationCredit, Meaning: "Nota de crédito: lowers what was sold. The usual one below nothing"},
		{Code: relationDebit, Meaning: "Nota de débito: adds to what was sold. The usual one above nothing"},
		{Code: relationReturn, Meaning: "Devolución de mercancía: goods come back"},
		{Code: relationReplace,
			Meaning: "Sustitución de los CFDI previos: the whole sale anew, in place of the original, which is cancelled afterwards with 01:UUID"},
		{Code: relationAdvance,
			Meaning: "CFDI por aplicación de anticipo: above nothing the invoice of a sale of which an advance was paid, below nothing the application of the advance"},
	}
}

// relationPattern is how the reason of an adjustment is written: a relation, and
// after a colon further vouchers that it refers to beside the original.
const relationPattern = `^(01|02|03|04|07)(:` + uuidText + `(,` + uuidText + `)*)?$`

const uuidText = `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`

var uuidPattern = regexp.MustCompile(`^` + uuidText + `$`)

// relate names the documents that a correction refers to.
func (p *plan) relate(in *country.Draft) error {
	if in.Transaction.Kind == transaction.Invoice || nominative(in) {
		return nil // what names the customer of a gathered sale is an invoice like any other
	}
	uuid := ""
	if in.Original != nil {
		uuid = in.Original.AuthorityID1
	}
	if !uuidPattern.MatchString(uuid) {
		return invalid(fault.At("reference_transaction_id", fault.ReferenceNotSuccessful,
			"has no folio fiscal (UUID): a document issued elsewhere is backfilled with it as tax_authority_id_1"))
	}
	if f := replaced(in); f != nil {
		return invalid(*f)
	}
	p.related = []string{strings.ToUpper(uuid)}
	relation, more, _ := strings.Cut(in.Transaction.Reason, ":")
	for also := range strings.SplitSeq(strings.ToUpper(more), ",") {
		if also != "" && !slices.Contains(p.related, also) {
			p.related = append(p.related, also)
		}
	}
	switch {
	case in.Transaction.Kind == transaction.Adjustment && relation != "":
		p.relation = relation
	case p.kind == satwire.TypeIncome:
		p.relation = relationDebit
	case in.Transaction.Kind == transaction.Adjustment && returns(in):
		p.relation = relationReturn
	default:
		p.relation = relationCredit
	}
	return nil
}

// replaced refuses what would correct a sale that another voucher has taken the
// place of (relation 04): the original is cancelled then, and what is left to
// correct is the replacement (RMF 2.7.1.35; Guía de llenado, TipoRelacion 04).
func replaced(in *country.Draft) *fault.Fault {
	for _, e := range in.Original.Corrections {
		if e.Cancelled || e.AuthorityID1 == "" || e.Transaction.Kind != transaction.Adjustment ||
			!strings.HasPrefix(e.Transaction.Reason, relationReplace) {
			continue
		}
		f := fault.At("reference_transaction_id", fault.ReferenceAlreadyCorrected,
			"was replaced by %s (%s): cancel it with the reason 01:%s, and correct the replacement", e.AuthorityID1,
			e.Transaction.ID, strings.ToUpper(e.AuthorityID1))
		return &f
	}
	return nil
}

// returns reports whether an adjustment gives goods back: every line is of
// type GOODS and takes back an item of the original, of the same name and unit
// price, in no larger quantity. Anything else lowers what was owed.
func returns(in *country.Draft) bool {
	for i := range in.Transaction.Items {
		item, sold := &in.Transaction.Items[i], false
		if item.Type != transaction.Goods {
			return false
		}
		for k := range in.Original.Transaction.Items {
			from := &in.Original.Transaction.Items[k]
			sold = sold || from.Type == transaction.Goods && from.Name == item.Name && from.UnitPrice == -item.UnitPrice &&
				item.Quantity.Compare(from.Quantity) <= 0
		}
		if !sold {
			return false
		}
	}
	return true
}

// relation checks that the reason of an adjustment fits its amount: what gives
// back cannot add, and the other way round.
func (c *checker) relation() {
	t := c.in.Transaction
	if t.Kind != transaction.Adjustment || t.Reason == "" {
		return
	}
	relation, _, _ := strings.Cut(t.Reason, ":")
	switch gross := c.in.Totals.Gross; {
	case gross < 0 && (relation == relationDebit || relation == relationReplace):
		c.add("reason", fault.ValidationMatchInvalid, "is of a document that charges, and this one gives back: 01, 03 or 07")
	case gross > 0 && (relation == relationCredit || relation == relationReturn):
		c.add("reason", fault.ValidationMatchInvalid, "is of a document that gives back, and this one charges: 02, 04 or 07")
	}
}

// uncancellable says which vouchers still refer to the original of a
// cancellation: SAT cancels nothing while they are valid ("No cancelable"). The
// one that replaces it may stay.
func uncancellable(in *country.Draft, replacement string) *fault.Fault {
	for _, e := range in.Original.Corrections {
		if e.Cancelled || e.Transaction.Kind == transaction.Cancellation || e.AuthorityID1 == "" ||
			strings.EqualFold(e.AuthorityID1, replacement) {
			continue
		}
		f := fault.At("reference_transaction_id", fault.ReferenceAlreadyCorrected,
			"is referred to by a valid voucher, %s (%s): cancel that one first", e.AuthorityID1,
			strings.TrimSpace(fmt.Sprintf("%s %s", e.Transaction.Kind, e.Transaction.ID)))
		return &f
	}
	return nil
}
