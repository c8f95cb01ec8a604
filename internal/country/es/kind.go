package es

import (
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Settings that decide between kinds of invoices.
const (
	settingSimplified = "simplified_limit"
	simplifiedHigh    = "3000"
	simplifiedLow     = "400"
)

// Classification of a line that makes the document a simplified invoice with
// its customer's number (Real Decreto 1619/2012, articles 7.2 and 7.3).
const (
	schemeSpain   = "ES"
	markQualified = "7273"
)

// simplifiedLimit is up to what amount a company may issue simplified invoices:
// 3,000 euros for the activities that article 4.2 lists, 400 for all others.
func simplifiedLimit(s country.Supplier) int64 {
	if s.Settings.Text(settingSimplified) == simplifiedLow {
		return simpleLow
	}
	return simpleMax
}

// chooseInvoice decides the type of an invoice from its customer and lines.
//
// Who is identified gets a full invoice. Everybody else gets a simplified one,
// unless no line takes place in the territory of the tax: then the invoice is
// full and needs no number of the customer (article 6.1.d), which AEAT files
// under F2 with a flag (its FAQ on the key F1; "Validaciones" 1.2.0, 3.1.3.9).
func (r *record) chooseInvoice(t *transaction.Transaction) {
	r.kind = "F1"
	if r.customer == nil {
		r.kind, r.unnamed = "F2", t.Customer != nil && r.sums.numberless()
	}
}

// numberless reports whether every line is exported or not subject by the rules
// on the place of supply.
func (b *breakdown) numberless() bool {
	return len(b.details) > 0 && !slices.ContainsFunc(b.details, func(d detail) bool {
		return d.grade != "E2" && d.grade != "N2"
	})
}

// qualified reports whether the document asks to be a simplified invoice that
// names its customer.
func qualified(t *transaction.Transaction) bool {
	for i := range t.Items {
		if slices.Contains(t.Items[i].Classifications, transaction.Classification{Scheme: schemeSpain, Code: markQualified}) {
			return true
		}
	}
	return false
}

// simplifiedFaults finds what a simplified invoice cannot be.
func (r *record) simplifiedFaults(t *transaction.Transaction) []fault.Fault {
	const number = "customer.tax_information.tax_number"
	limit := r.limit
	if limit == 0 {
		limit = simpleMax
	}
	over := (r.kind == "F2" && !r.unnamed || r.qualified && r.kind == "F1") && r.sums.total() > limit
	at := number
	if t.Customer == nil {
		at = "customer"
	}
	switch {
	case r.qualified && r.customer == nil:
		return []fault.Fault{fault.At(number, fault.FieldRequired,
			"must not be empty: a simplified invoice by article 7.2 or 7.3 names its customer")}
	case over && r.qualified:
		return []fault.Fault{fault.At("items", fault.FieldNotValid,
			"must not add up to more than %s euros in a simplified invoice", euros(limit))}
	case over:
		return []fault.Fault{fault.At(at, fault.FieldRequired,
			"must not be empty: a simplified invoice may not exceed %s euros, and a full one names its customer's NIF (Real Decreto 1619/2012, articles 4 and 6.1.d)", euros(limit))}
	case r.kind == "F2" && t.Customer == nil && slices.ContainsFunc(r.sums.details, func(d detail) bool {
		return d.grade == "N2"
	}):
		return []fault.Fault{fault.At("customer", fault.FieldRequired,
			"must not be empty: what is supplied elsewhere needs a full invoice (Real Decreto 1619/2012, article 4.4)")}
	}
	return nil
}

// happened reads delivery_date: FechaOperacion, where it is not the day of issue.
func (r *record) happened(t *transaction.Transaction, now time.Time) []fault.Fault {
	const field = "delivery_date"
	if t.DeliveryDate == "" {
		return nil
	}
	on, err := time.Parse(time.DateOnly, t.DeliveryDate)
	issued, wrong := time.Parse(dayForm, r.id.Day)
	if err != nil || wrong != nil {
		return []fault.Fault{fault.At(field, fault.FieldNotValid, "must be a day")}
	}
	continuous := !slices.ContainsFunc(r.sums.details, func(d detail) bool { return d.tax != taxIPSI && d.regime != "15" })
	switch {
	case on.Equal(issued):
		return nil
	case on.After(issued) && !continuous:
		return []fault.Fault{fault.At(field, fault.FieldNotValid,
			"must not be after the day of the invoice, but for continuous supplies (code 15)")}
	case !now.IsZero() && (on.Before(now.AddDate(-20, 0, 0)) || on.Year() > now.Year()+1):
		return []fault.Fault{fault.At(field, fault.FieldNotValid,
			"must be within the last twenty years, and not after the next one")}
	}
	r.operation = on.Format(dayForm)
	return nil
}
