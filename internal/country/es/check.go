package es

import (
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// numberPattern are the characters of NumSerieFactura: printable ASCII without
// the five that AEAT excludes, no blanks at the ends ("Validaciones" 1.2.0,
// section 3.1.3.1).
const numberPattern = `^[!#-&(-;?-~]([ !#-&(-;?-~]*[!#-&(-;?-~])?$`

// checks find what the authority would refuse and the body alone can tell.
func (p *pack) checks() []country.Check {
	party := func(name string) []string {
		return []string{name + ".type", name + ".legal_name", name + ".tax_information", name + ".address.country_code",
			name + ".address.postal_code"}
	}
	lines := []string{"items.*.tax_breakdowns", "items.*.classification", "items.*.type", "items.*.quantity",
		"items.*.unit_price", "items.*.discount",
		"customer.type", "customer.tax_information", "customer.address.country_code", "customer.address.postal_code",
		"currency_code", "exchange_rate", "transaction_date"}
	return []country.Check{
		{Reads: party("customer"), Find: func(c country.Case) []fault.Fault {
			_, wrong := partyID(c.Transaction.Customer, "customer")
			return wrong
		}},
		{Reads: party("issuer"), Find: func(c country.Case) []fault.Fault {
			_, wrong := partyID(c.Transaction.Issuer, "issuer")
			return wrong
		}},
		{Reads: []string{"items.*.name"}, Find: checkNames},
		{Reads: lines, Amounts: true, Find: func(c country.Case) []fault.Fault {
			_, wrong := breakDown(c.Transaction, p.classify(c), c.Totals)
			return wrong
		}},
		{Reads: lines, Find: func(c country.Case) []fault.Fault { return silentZeroes(c.Transaction, p.classify(c)) }},
		{Reads: append(party("customer"), append(lines, "transaction_number", "reason", "items", "delivery_date")...),
			Amounts: true, Find: p.contradictions},
	}
}

// checkNames wants one line with something to print.
func checkNames(c country.Case) []fault.Fault {
	items := c.Transaction.Items
	for i := range items {
		if plain(items[i].Name, descriptionMax) != "" {
			return nil
		}
	}
	if len(items) == 0 {
		return nil
	}
	return []fault.Fault{fault.At("items.0.name", fault.FieldNotValid, "must have a printable character")}
}

// contradictions finds what does not fit within a record that could be made.
func (p *pack) contradictions(c country.Case) []fault.Fault {
	t := c.Transaction
	customer, wrong := partyID(t.Customer, "customer")
	if len(wrong) > 0 {
		return nil
	}
	sums, wrong := breakDown(t, p.classify(c), c.Totals)
	if len(wrong) > 0 {
		return nil
	}
	r := &record{id: invoiceID{Number: t.Number, Day: day(t.Date, p.by.Zone)}, customer: customer, sums: sums,
		qualified: qualified(t)}
	late := r.happened(t, c.Now)
	if t.Kind == transaction.Adjustment {
		// The original decides between types; whatever it is, a named reason must fit.
		if r.kind, r.method = adjustmentAhead(t); r.kind == "" {
			return late
		}
	} else {
		r.chooseInvoice(t)
	}
	if r.kind == "F2" || r.kind == "R5" {
		r.customer = nil
	}
	return append(r.contradictions(t), late...)
}

// adjustmentAhead is what a body alone tells of an adjustment's type: a reason
// other than R5 with a customer. Everything else waits for the original.
func adjustmentAhead(t *transaction.Transaction) (kind, method string) {
	if t.Reason == "" || t.Reason == reasonMend || t.Customer == nil {
		return "", ""
	}
	return chooseCorrection(&record{}, t.Reason, original{})
}

// checkNumber judges the number under which a record is filed: of a credit
// without one it is ours.
func (p *pack) checkNumber(number string) []fault.Fault {
	for _, rule := range p.facts.Patterns {
		if rule.Field == "transaction_number" && !rule.Pattern.Match(number) || len(number) > referenceMax {
			return []fault.Fault{fault.At("transaction_number", fault.FieldNotValid, "must be at most %d %s", referenceMax,
				rule.Reason)}
		}
	}
	return nil
}

// checkDay refuses days before the law and after today, where the supplier is.
func (p *pack) checkDay(at, now time.Time, where *time.Location) []fault.Fault {
	const field = "transaction_date"
	on := at.In(where).Format(time.DateOnly)
	switch {
	case on < p.facts.Dates.Earliest:
		return []fault.Fault{fault.At(field, fault.FieldNotValid,
			"must not be before %s: the tax authority takes no earlier invoices", firstDay)}
	case !now.IsZero() && on > now.In(where).Format(time.DateOnly):
		return []fault.Fault{fault.At(field, fault.FieldNotValid, "must not be after today")}
	}
	return nil
}

// checkCompany finds what is wrong with a new company beyond its required members.
func checkCompany(s country.Supplier, _ country.Credentials) []fault.Fault {
	found := append(checkSoftware(s.Settings[settingSoftware]), checkAgent(s.Settings[settingAgent])...)
	found = append(found, checkObliged(s)...)
	if s.LegalName != "" && (plain(s.LegalName, nameMax) != strings.TrimSpace(s.LegalName)) {
		found = append(found, fault.At("legal_name", fault.FieldNotValid,
			"must be at most %d printable characters: a record has room for no more", nameMax))
	}
	if taxid.NIF(s.TaxNumber) == "" {
		found = append(found, fault.At("tax_information.tax_number", fault.FieldNotValid, "must be a Spanish NIF"))
	}
	return found
}
