package country

import (
	"fmt"
	"strings"
	"time"

	"tributary/internal/country/taxid"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// DerivationRules are the rules of [ClassifyTaxes] as sentences, for
// Facts.Derivations of every pack that leaves Pack.Classify nil.
func DerivationRules() []string {
	return []string{
		"A tax entry that carries a type keeps it; a withheld entry (RET) without one gets the type RET.",
		"A rate above 0 gets the type that the country's rate table gives it on the transaction's day; a rate the table does not have is REDUCED when it is below the standard rate of that day, otherwise STANDARD.",
		"A rate of 0 to a customer whose address is in another country: EXPORT for goods that leave the country, INTRA_EU when both countries are in the European Union and the customer is a business with a tax number; for services REVERSE in that last case, OUTSIDE from a member state to a country outside the Union, EXPORT from any other country.",
		"What is in the Union is decided by its VAT territory (Directive 2006/112/EC, articles 5 to 7): the Canary Islands, Ceuta, Melilla, the French overseas territories, Åland, Livigno, Campione d'Italia, Helgoland, Büsingen and Mount Athos are outside, by country code or postal code; Monaco counts as France; Northern Ireland (postal code BT or a number that begins with XI) is inside for goods alone.",
		"A rate of 0 otherwise: ZERO when the country's rate table has a rate of 0 for the tax or there is no table, else EXEMPT.",
		"A discount line is read as services when every other line is, otherwise as goods. A line with ancillary true (shipping, packing, insurance) is read as goods; at a rate of 0 without a type it has that of the document's untaxed goods.",
	}
}

// TypedItems answers the items with a type on every tax entry, by the pack's
// own rule or by [ClassifyTaxes]. The transaction stays as it is.
func (p Pack) TypedItems(c Case) []transaction.Item {
	if p.Classify != nil {
		return p.Classify(c)
	}
	return ClassifyTaxes(p.Facts, c)
}

// ClassifyTaxes derives the type of every tax entry that the client left open,
// by [DerivationRules]. It returns a copy and shares nothing it changes.
func ClassifyTaxes(f Facts, c Case) []transaction.Item {
	items := append([]transaction.Item(nil), c.Transaction.Items...)
	for i := range items {
		items[i].Taxes = append([]transaction.Tax(nil), items[i].Taxes...)
		if !items[i].Ancillary {
			f.classify(c.Transaction, items, i)
		}
	}
	FollowGoods(items)
	for i := range items {
		if items[i].Ancillary {
			f.classify(c.Transaction, items, i)
		}
	}
	return items
}

// classify gives the entries of a line their types.
func (f Facts) classify(t *transaction.Transaction, items []transaction.Item, i int) {
	services := IsServices(t.Items, i)
	abroad := destinationOf(t, services)
	for j := range items[i].Taxes {
		tax := &items[i].Taxes[j]
		switch {
		case tax.Type != "":
		case tax.Withheld():
			tax.Type = transaction.Withholding
		case tax.Quota != nil:
			tax.Type = transaction.TaxStandard
		case !tax.Rate.IsZero():
			tax.Type = f.taxedType(*tax, t)
		case abroad != domestic:
			tax.Type = abroad.untaxedType(services)
		default:
			tax.Type = f.zeroType(*tax, t)
		}
	}
}

// ClassifyCodes derives types from codes of the country first, of entries of rate
// zero that have none, then as [ClassifyTaxes] does. typeOf knows the type of a code
// in upper case.
func ClassifyCodes(f Facts, c Case, typeOf func(code string) (kind string, known bool)) []transaction.Item {
	items := append([]transaction.Item(nil), c.Transaction.Items...)
	for i := range items {
		items[i].Taxes = append([]transaction.Tax(nil), items[i].Taxes...)
		for j := range items[i].Taxes {
			if tax := &items[i].Taxes[j]; tax.Type == "" && !tax.Withheld() && tax.Rate.IsZero() {
				tax.Type, _ = typeOf(strings.ToUpper(tax.Code))
			}
		}
	}
	typed := *c.Transaction
	typed.Items = items
	c.Transaction = &typed
	return ClassifyTaxes(f, c)
}

// destination is where the customer is, seen from the transaction's country.
type destination int

const (
	domestic         destination = iota
	withinUnion                  // both in the EU, the customer a business with a tax number
	outOfUnion                   // from the EU to a country outside
	betweenCountries             // from a country outside the EU
)

// destinationOf finds it for goods or for services, which differ in Northern Ireland.
func destinationOf(t *transaction.Transaction, services bool) destination {
	from := strings.ToUpper(t.CountryCode)
	if t.Customer == nil || t.Customer.Address == nil {
		return domestic
	}
	to := territory.Of(from, t.Customer, t.Date, services)
	switch {
	case to.Country == from && to.Apart == "":
		return domestic
	case !territory.InUnion(from, t.Date):
		return betweenCountries
	case !to.Union:
		return outOfUnion
	case t.Customer.Type == transaction.Business && t.Customer.TaxNumber != "":
		return withinUnion
	}
	return domestic // a consumer in the Union is taxed like one at home
}

func (d destination) untaxedType(services bool) string {
	switch {
	case d == withinUnion && services:
		return transaction.TaxReverse
	case d == withinUnion:
		return transaction.TaxIntraEU
	case d == outOfUnion && services:
		return transaction.TaxOutside
	}
	return transaction.TaxExport
}

// IsServices reports whether a line is taxed as services; a discount is what the
// other lines are, and what goes with goods is taxed as they are.
func IsServices(items []transaction.Item, i int) bool {
	if items[i].Type != transaction.Discount {
		return items[i].Type == transaction.Services && !items[i].Ancillary
	}
	others := 0
	for j := range items {
		if items[j].Type == transaction.Discount {
			continue
		}
		if items[j].Type != transaction.Services || items[j].Ancillary {
			return false
		}
		others++
	}
	return others > 0
}

func (f Facts) taxedType(tax transaction.Tax, t *transaction.Transaction) string {
	percent, reduced := tax.Rate.MinimalString(), false
	found := ""
	f.ratesOn(tax.Regime, t, func(r Rate) {
		if r.Percent == percent && (found == "" || r.Type == transaction.TaxStandard) {
			found = r.Type
		}
		if r.Type == transaction.TaxStandard && lower(percent, r.Percent) {
			reduced = true
		}
	})
	switch {
	case found != "":
		return found
	case reduced:
		return transaction.TaxReduced
	}
	return transaction.TaxStandard
}

func (f Facts) zeroType(tax transaction.Tax, t *transaction.Transaction) string {
	table, zero := false, false
	f.ratesOn(tax.Regime, t, func(r Rate) {
		table = true
		zero = zero || r.Percent == "0"
	})
	if zero || !table {
		return transaction.TaxZero
	}
	return transaction.TaxExempt
}

// ratesOn visits the rates of a regime that hold on the day of supply, which is
// the transaction's unless delivery_date says another: the rate is that of the
// day on which the tax became due (Directive 2006/112/EC, article 93).
// Which day the transaction's is depends on the supplier's time zone, which is not known
// yet: a rate counts when it holds anywhere on Earth at that instant.
func (f Facts) ratesOn(regime string, t *transaction.Transaction, visit func(Rate)) {
	earliest := t.Date.UTC().Add(-12 * time.Hour).Format(time.DateOnly)
	latest := t.Date.UTC().Add(14 * time.Hour).Format(time.DateOnly)
	if t.DeliveryDate != "" {
		earliest, latest = t.DeliveryDate, t.DeliveryDate
	}
	for _, r := range f.Rates {
		if r.Regime == regime && r.Since <= latest && (r.Until == "" || r.Until > earliest) {
			visit(r)
		}
	}
}

// lower compares two percentages in their shortest form.
func lower(a, b string) bool {
	wholeA, partA, _ := strings.Cut(a, ".")
	wholeB, partB, _ := strings.Cut(b, ".")
	if len(wholeA) != len(wholeB) {
		return len(wholeA) < len(wholeB)
	}
	if wholeA != wholeB {
		return wholeA < wholeB
	}
	return partA < partB
}

// CheckRates finds tax rates that the country's table does not have on the
// transaction's day: errors where Facts.StrictRates, else warnings. A regime
// without a standard rate in the table on that day is not checked, and neither
// is a rate of 0, which needs no table to be lawful. Whoever validates calls it
// for every pack; a pack's own Check does not.
func CheckRates(f Facts, c Case) []fault.Fault {
	var found []fault.Fault
	for i, item := range c.Transaction.Items {
		for j, tax := range item.Taxes {
			if tax.Withheld() || tax.Rate.IsZero() {
				continue
			}
			percent := tax.Rate.MinimalString()
			standard, known := "", false
			f.ratesOn(tax.Regime, c.Transaction, func(r Rate) {
				known = known || r.Percent == percent
				if r.Type == transaction.TaxStandard && standard == "" {
					standard = r.Percent
				}
			})
			if known || standard == "" {
				continue
			}
			field := fmt.Sprintf("items.%d.tax_breakdowns.%d.rate", i, j)
			if f.StrictRates {
				found = append(found, fault.At(field, fault.FieldNotValid,
					"%s is not a %s rate of the country on that day; the standard rate is %s", percent, tax.Regime, standard))
			} else {
				found = append(found, fault.Warn(field, fault.RateUnusual,
					"%s is not in the country's table of %s rates on that day; the standard rate is %s", percent, tax.Regime, standard))
			}
		}
	}
	return found
}

// BusinessModel is B2B when the customer is a business, otherwise B2C.
func BusinessModel(t *transaction.Transaction) string {
	if t.Customer != nil && t.Customer.Type == transaction.Business {
		return transaction.B2B
	}
	return transaction.B2C
}

// DocumentType is SIMPLIFIED for a document that names no customer, otherwise FULL.
func DocumentType(t *transaction.Transaction) string {
	if t.Customer == nil {
		return transaction.Simplified
	}
	return transaction.Full
}

// SelfBilled reports whether the customer issues the document itself.
func SelfBilled(t *transaction.Transaction) bool {
	return t.Issuer != nil && t.Customer != nil && t.Issuer.TaxNumber != "" &&
		taxid.Bare(t.Issuer.TaxNumber) == taxid.Bare(t.Customer.TaxNumber)
}

// OperationRegime is SELF_BILLING when the customer issues the document
// itself, EXPORT when every taxed line is exported, otherwise GENERAL. items
// are those with types, of [Pack.TypedItems].
func OperationRegime(t *transaction.Transaction, items []transaction.Item) string {
	if SelfBilled(t) {
		return transaction.SelfBilling
	}
	entries := 0
	for _, item := range items {
		for _, tax := range item.Taxes {
			if tax.Withheld() {
				continue
			}
			if tax.Type != transaction.TaxExport {
				return transaction.General
			}
			entries++
		}
	}
	if entries == 0 {
		return transaction.General
	}
	return transaction.Export
}
