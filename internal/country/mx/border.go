package mx

import (
	"fmt"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// rateBorder is IVA of 8 %, a credit of half the tax for what is sold in premises
// of the border regions.
const rateBorder = 80_000

// outsideBorder finds sales at 8 % that are made elsewhere: the rate is that of
// the place of issue, or of the one on whose account a line is sold (decrees of
// 2018-12-31 and 2020-12-30; Guía de llenado, DomicilioFiscalACuentaTerceros).
// What corrects a sale has the rate that the sale had.
func (p *plan) outsideBorder(in *country.Draft) (found []fault.Fault) {
	if in.Transaction.Kind != transaction.Invoice || satwire.BorderRegion(p.place) {
		return nil
	}
	for i := range p.items {
		for j := range p.items[i].Taxes {
			tax := &p.items[i].Taxes[j]
			if tax.Regime != transaction.VAT && tax.Regime != regimeIVA || scaled(tax.Rate) != rateBorder ||
				p.soldAtBorder(&p.items[i]) {
				continue
			}
			found = append(found, fault.At(fmt.Sprintf("items.%d.tax_breakdowns.%d.rate", i, j), fault.ValidationMatchInvalid,
				"is 8 %%, which the postal codes of the northern and the southern border region have; the place of issue is %s (settings.%s)", p.place, settingPlace))
		}
	}
	return found
}

// soldAtBorder reports whether a line is sold on the account of somebody there.
func (p *plan) soldAtBorder(item *transaction.Item) bool {
	for _, mark := range item.Classifications {
		if mark.Scheme == schemeThird && satwire.BorderRegion(p.thirds[rfcOf(mark.Code)].domicile) {
			return true
		}
	}
	return false
}
