package document

import (
	"slices"

	"tributary/internal/transaction"
)

// sign gives quantities and amounts the signs that they are printed with. The
// caller's slices stay as they are.
//
// A correction that takes something back is stated as a negative quantity at
// the price that was charged: that is how people read it, and how Poland's
// FA(3) has it.
func (v *Visual) sign() {
	back := v.Transaction.Kind == transaction.Credit || v.Transaction.Kind == transaction.Adjustment
	if !v.Imprint.Negated && !back {
		return
	}
	v.Transaction.Items = slices.Clone(v.Transaction.Items)
	for i := range v.Transaction.Items {
		item := &v.Transaction.Items[i]
		if v.Imprint.Negated {
			item.Quantity = item.Quantity.Negate()
		}
		if back && item.UnitPrice < 0 {
			item.UnitPrice, item.Quantity = -item.UnitPrice, item.Quantity.Negate()
		}
	}
	if !v.Imprint.Negated {
		return
	}
	v.Totals, v.Rounding = negated(v.Totals), -v.Rounding
	v.Transaction.Payments = slices.Clone(v.Transaction.Payments)
	for i := range v.Transaction.Payments {
		v.Transaction.Payments[i].Amount *= -1
	}
}

// hideTax takes the taxes from lines that show none, but for what is withheld.
func (v *Visual) hideTax() {
	if len(v.Imprint.Untaxed) == 0 {
		return
	}
	items := slices.Clone(v.Transaction.Items)
	for _, i := range v.Imprint.Untaxed {
		if i < 0 || i >= len(items) || i >= len(v.Totals.Lines) || len(v.Totals.Lines[i].Taxes) != len(items[i].Taxes) {
			continue
		}
		line := v.Totals.Lines[i]
		var taxes []transaction.Tax
		var amounts []int64
		for j, tax := range items[i].Taxes {
			if tax.Withheld() {
				taxes, amounts = append(taxes, tax), append(amounts, line.Taxes[j])
			}
		}
		items[i].Taxes, line.Taxes = taxes, amounts
		v.Totals.Lines = slices.Clone(v.Totals.Lines)
		v.Totals.Lines[i] = line
	}
	v.Transaction.Items = items
}

// bare reports whether no line at all shows tax: then there is no net either.
func (v *Visual) bare() bool {
	return len(v.Imprint.Untaxed) > 0 && len(v.Imprint.Untaxed) == len(v.Transaction.Items)
}

func negated(t transaction.Totals) transaction.Totals {
	lines := make([]transaction.Line, len(t.Lines))
	for i, l := range t.Lines {
		lines[i] = transaction.Line{Gross: -l.Gross, Net: -l.Net, Taxes: make([]int64, len(l.Taxes)), Discount: -l.Discount, NetDiscount: -l.NetDiscount}
		for j, tax := range l.Taxes {
			lines[i].Taxes[j] = -tax
		}
	}
	return transaction.Totals{Lines: lines, Gross: -t.Gross, Net: -t.Net, Tax: -t.Tax, Withheld: -t.Withheld}
}
