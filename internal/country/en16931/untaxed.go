package en16931

import (
	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// untaxed finds lines without tax whose type does not fit where the goods go.
func (p Page) untaxed(c country.Case, base country.Pack) (found []fault.Fault) {
	t := c.Transaction
	for e := range sale.Untaxed(t.Items, base.TypedItems(c)) {
		at := territory.Of(p.Code, t.Customer, t.Date, e.Services)
		if e.Type == transaction.TaxIntraEU && at.Apart != "" {
			found = append(found, e.Misfit(at.Exported()))
		}
	}
	return found
}
