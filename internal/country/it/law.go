package it

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// What SdI takes and the law does not: SdI has no check for these, and whoever
// issues such a document has issued a wrong one.

// lawful finds it, on the document as far as it is known: at submit the company
// is not, and its regime is taken for the ordinary one.
func (d *invoice) lawful() []fault.Fault {
	var found []fault.Fault
	add := func(path, format string, args ...any) {
		found = append(found, fault.At(path, fault.ValidationMatchInvalid, format, args...))
	}
	d.kindIsRight(add)
	d.fundsAreRight(add)
	for i := range d.lines {
		l, at := &d.lines[i], fmt.Sprintf("items.%d.tax_breakdowns", i)
		if d.kind.side == selling && d.flat() && !l.rate.IsZero() {
			add(at, "must not have a rate: a flat-rate business (%s) charges no VAT (L. 190/2014, art. 1 c. 58; DL 98/2011, art. 27)", d.regime)
		}
		if l.due == dueByBuyer {
			d.splitIsRight(l, at, add)
		}
		if l.held {
			d.withheldIsRight(l, at, add)
		}
	}
	return found
}

// flat reports whether the company charges no VAT: RF19 forfettario, RF02 minimi.
func (d *invoice) flat() bool { return d.regime == regimeFlat || d.regime == regimeMinimal }

// kindIsRight: what TD16 to TD19 and TD28 are for (guide of AdE to the electronic
// invoice, 1.9). Whether a seller abroad is foreign at all is SdI's own 00473.
func (d *invoice) kindIsRight(add saying) {
	const where = "customer.address.country_code"
	sold := supply{buyer: d.seller, day: d.Date}
	all := func(services bool) bool {
		return len(d.lines) > 0 && !slices.ContainsFunc(d.lines, func(l line) bool { return l.Services != services })
	}
	switch {
	case d.kind.code == "TD16" && d.seller.country != home:
		add(where, "must be in Italy: TD16 integrates invoices of sellers in Italy, TD17 to TD19 those of sellers abroad")
	case d.kind.code == "TD17" && all(false):
		add("items", "are goods: TD17 is for services from abroad, TD18 for goods from the Union, TD19 for others")
	case (d.kind.code == "TD18" || d.kind.code == "TD19") && all(true):
		add("items", "are services: %s is for goods, services from abroad are TD17", d.kind.code)
	case d.kind.code == "TD18" && !sold.inUnion():
		add(where, "must be another member state: TD18 is for goods from the Union (art. 46 DL 331/93), TD19 for others")
	case d.kind.code == "TD28" && d.seller.nation != sanMarino:
		add(where, "must be San Marino: TD28 tells of paper invoices with VAT from there (DM 21/6/2021)")
	}
}

// splitIsRight: who buys under split payment is a public body or a company that
// the ministry lists, and what is subject to a withholding of income tax is not
// split (DPR 633/72, art. 17-ter c. 1, 1-bis and 1-sexies).
func (d *invoice) splitIsRight(l *line, at string, add saying) {
	if d.kind.side != selling {
		add(at, "must not be split: the company itself owes the tax of %s", d.kind.code)
		return
	}
	if d.buyer.nation != home || d.private() {
		add(at, "must not be split: split payment is for public bodies and listed companies in Italy (art. 17-ter DPR 633/72)")
	}
	if slices.ContainsFunc(l.withheld(), ofIncome) {
		add(at, "must not be split: what bears a withholding of income tax is outside of split payment (art. 17-ter c. 1-sexies DPR 633/72)")
	}
}

// withheldIsRight: only somebody who withholds for the state does so (DPR
// 600/73, art. 23 and 25): businesses and bodies in Italy. Nothing is withheld
// from flat-rate businesses (L. 190/2014, art. 1 c. 67). Contributions (RT03 to
// RT06) are another matter.
func (d *invoice) withheldIsRight(l *line, at string, add saying) {
	switch {
	case d.kind.side != selling:
		add(at, "must not withhold: in %s the company is the buyer", d.kind.code)
	case !slices.ContainsFunc(l.withheld(), ofIncome):
	case d.buyer.nation != home && d.buyer.country != home:
		add(at, "must not withhold: a buyer abroad withholds no Italian tax (art. 23 DPR 600/73)")
	case d.private():
		add(at, "must not withhold: a consumer withholds no tax (art. 23 DPR 600/73)")
	case d.flat():
		add(at, "must not withhold: from a flat-rate business nothing is withheld (L. 190/2014, art. 1 c. 67)")
	}
}

// private reports whether the buyer is a person without a VAT number: sixteen
// characters are a person's code, eleven digits a body's.
func (d *invoice) private() bool {
	return d.buyer.id == "" && len(d.buyer.code) == personCodeLength
}

// withheld are the entries that the buyer keeps back.
func (l *line) withheld() (all []transaction.Tax) {
	for _, tax := range l.Item.Taxes {
		if tax.Withheld() {
			all = append(all, tax)
		}
	}
	return all
}

// ofIncome reports whether what is withheld is income tax (RT01, RT02, or not
// said), not a contribution.
func ofIncome(tax transaction.Tax) bool {
	kind, _, both := strings.Cut(strings.ToUpper(tax.Code), ":")
	return !both || kind == "RT01" || kind == "RT02"
}

// late warns of documents that come after their time: twelve days after the
// sale, a deferred one until the fifteenth of the next month (DPR 633/72, art. 21
// c. 4). They are filed all the same: late is better than never.
func late(in country.Case) []fault.Fault {
	t := in.Transaction
	day := t.Date.In(rome()).Format(time.DateOnly)
	supplied, err := time.Parse(time.DateOnly, cmp.Or(t.DeliveryDate, day))
	if err != nil || t.Kind != transaction.Invoice {
		return nil
	}
	day = max(day, todayInRome(in.Now)) // it is issued when SdI has it
	kind, known := docKindOf(strings.ToUpper(t.Reason))
	if known && kind.side != selling {
		return nil // they count from the day on which the seller's invoice came
	}
	last, rule := supplied.AddDate(0, 0, daysAtOnce), "12 days after the sale"
	if kind.code == "TD24" || kind.code == "TD25" {
		last = time.Date(supplied.Year(), supplied.Month()+1, daysDeferred, 0, 0, 0, 0, time.UTC)
		rule = "until the 15th of the month after the sale"
	}
	if day > last.Format(time.DateOnly) {
		return []fault.Fault{fault.Warn("transaction_date", fault.ValidationMatchInvalid,
			"is too late, or comes too late: SdI has the invoice %s and should by %s, %s (art. 21 c. 4 DPR 633/72)", day,
			last.Format(time.DateOnly), rule)}
	}
	return nil
}

// Days of art. 21 c. 4.
const (
	daysAtOnce   = 12
	daysDeferred = 15
)
