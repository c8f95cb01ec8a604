package en16931

import (
	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// untaxed finds lines without tax that do not say why, and whose type does not
// fit where the goods go. A rate of 0 is one of the law's only where the country's
// table has it; elsewhere several reasons fit, and none follows from customer and
// item. Where documents for people are all there is, what was assumed is said.
func (p Page) untaxed(c country.Case, base country.Pack) (found []fault.Fault) {
	t := c.Transaction
	for e := range sale.Untaxed(t.Items, base.TypedItems(c)) {
		at := territory.Of(p.Code, t.Customer, t.Date, e.Services)
		silent := e.Open && e.Type == transaction.TaxExempt
		switch {
		case p.offers() && (silent || e.Beside):
			found = append(found, e.Asked("must say why there is no tax: EXEMPT, REVERSE (the buyer owes it), OUTSIDE, or ZERO where the law has such a rate; "+
				"a business of another member state needs its VAT number for INTRA_EU or REVERSE, and a consumer there pays tax")...)
		case silent:
			found = append(found, fault.Warn(sale.TaxPath(e.Item, e.At, "type"), fault.ValueAssumed,
				"is not said, and the country has no rate of 0: EXEMPT was assumed; REVERSE and OUTSIDE have to be said"))
		case e.Type == transaction.TaxIntraEU && at.Apart != "":
			found = append(found, e.Misfit(at.Exported()))
		}
	}
	return found
}
