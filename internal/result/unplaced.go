package result

import (
	"fmt"

	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
)

// Unplaced are the warnings of what a received document says and a result has no member for, with its value, so that
// nothing is dropped in silence.
func Unplaced(d *incoming.Document) (list []fault.Fault) {
	more := 0
	add := func(field, format string, a ...any) {
		if len(list) == incoming.NotReadMax {
			more++
			return
		}
		list = append(list, fault.Warn(field, fault.FieldUnknown, "the document says: "+format, a...))
	}
	money := func(minor int64) string { return Decimal(minor, d.Currency) + " " + d.Currency }
	if d.TaxCurrency != "" {
		add("total_tax_amount", "the tax is %s %s", Decimal(d.AccountingTax, d.TaxCurrency), d.TaxCurrency)
	}
	if d.Prepaid != 0 {
		add("payments", "%s is paid already", money(d.Prepaid))
	}
	if usual := d.Total() - d.Prepaid - d.Withheld; d.Payable != usual {
		add("total_amount", "%s is payable", money(d.Payable))
	}
	for _, due := range d.Instalments {
		if due.Amount == 0 {
			add("due_date", "a part is due on %s", due.Day)
			continue
		}
		add("due_date", "%s is due on %s", money(due.Amount), due.Day)
	}
	each := func(member string, lines []incoming.Line) {
		for i := range lines {
			at, l := fmt.Sprintf("%s[%d]", member, i), &lines[i]
			if _, exact := l.Price(d.Currency); !exact {
				add(at+".unit_price", "the price is %s%s", l.UnitPrice, per(l))
			}
			ofOne(at+".allowances", l.Allowances, add)
			ofOne(at+".charges", l.Charges, add)
		}
	}
	each("items", d.Lines)
	each("order_items", d.Ordered)
	if more > 0 {
		list = append(list, fault.Warn("", fault.FieldUnknown, "the document says %d more such things; the original has them", more))
	}
	return list
}

func per(l *incoming.Line) string {
	if l.PriceOf == nil {
		return ""
	}
	return " for " + l.PriceOf.String()
}

// ofOne lists what is taken from, or added to, the price of one, without the amount that this comes to.
func ofOne(at string, list []incoming.Extra, add func(field, format string, a ...any)) {
	for i, e := range list {
		if e.Unit != nil {
			add(fmt.Sprintf("%s[%d]", at, i), "it is %s of the price of one", e.Unit)
		}
	}
}

// Decimal is an amount in units of its currency.
func Decimal(minor int64, currency string) string {
	decimals, known := transaction.CurrencyExponent(currency)
	if !known {
		decimals = 2
	}
	return incoming.Units(minor, decimals)
}
