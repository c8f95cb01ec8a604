package es

import (
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// check finds what the authority would refuse and the body alone can tell.
func (p *pack) check(c country.Case) []fault.Fault {
	t := c.Transaction
	found := slices.Concat(checkNumber(t.Number), checkDay(t.Date, c.Now, p.madrid))
	customer, wrong := partyID(t.Customer, "customer")
	found = append(found, wrong...)
	_, wrong = partyID(t.Issuer, "issuer")
	found = append(found, wrong...)
	for i := range t.Items {
		if plain(t.Items[i].Name, descriptionMax) != "" {
			break
		}
		if i == len(t.Items)-1 {
			found = append(found, fault.At("items.0.name", fault.FieldNotValid, "must have a printable character"))
		}
	}
	sums, wrong := breakDown(t, p.classify(c), c.Totals)
	found = append(found, wrong...)
	if len(found) > 0 {
		return found
	}
	r := &record{id: invoiceID{Number: t.Number}, customer: customer, sums: sums, kind: "F1"}
	if t.Kind == transaction.Adjustment {
		// The original decides between types; whatever it is, a named reason must fit.
		if r.kind, r.method = adjustmentAhead(t); r.kind == "" {
			return nil
		}
	} else if customer == nil {
		r.kind = "F2"
	}
	if r.kind == "F2" || r.kind == "R5" {
		r.customer, r.unnamed = nil, t.Customer != nil
	}
	return r.contradictions()
}

// adjustmentAhead is what a body alone tells of an adjustment's type: a reason
// other than R5 with a customer. Everything else waits for the original.
func adjustmentAhead(t *transaction.Transaction) (kind, method string) {
	if t.Reason == "" || t.Customer == nil {
		return "", ""
	}
	return chooseCorrection(&record{}, t.Reason, original{})
}

// checkNumber knows the characters of NumSerieFactura: printable ASCII without
// the five that AEAT excludes ("Validaciones" 1.2.0, section 3.1.3.1).
func checkNumber(number string) []fault.Fault {
	const field = "transaction_number"
	bad := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"'<>=`, r) }
	switch {
	case strings.ContainsFunc(number, bad):
		return []fault.Fault{fault.At(field, fault.FieldNotValid, `must be of printable ASCII characters without ", ', <, > and =`)}
	case len(number) > referenceMax || strings.TrimSpace(number) != number:
		return []fault.Fault{fault.At(field, fault.FieldNotValid, "must have at most %d characters and no blanks at its ends", referenceMax)}
	}
	return nil
}

// checkDay refuses days before the law and after today.
func checkDay(at, now time.Time, where *time.Location) []fault.Fault {
	const field = "transaction_date"
	on := at.In(where).Format(time.DateOnly)
	switch {
	case on < firstDay:
		return []fault.Fault{fault.At(field, fault.FieldNotValid, "must not be before %s: the tax authority takes no earlier invoices", firstDay)}
	case !now.IsZero() && on > now.In(where).Format(time.DateOnly):
		return []fault.Fault{fault.At(field, fault.FieldNotValid, "must not be after today")}
	}
	return nil
}

// checkCompany finds what is wrong with a new company beyond its required members.
func checkCompany(s country.Supplier, _ country.Credentials) []fault.Fault {
	found := checkSoftware(s.Settings[settingSoftware])
	if s.LegalName != "" && (plain(s.LegalName, nameMax) != strings.TrimSpace(s.LegalName)) {
		found = append(found, fault.At("legal_name", fault.FieldNotValid, "must be at most %d printable characters: a record has room for no more", nameMax))
	}
	if taxid.NIF(s.TaxNumber) == "" {
		found = append(found, fault.At("tax_information.tax_number", fault.FieldNotValid, "must be a Spanish NIF"))
	}
	return found
}
