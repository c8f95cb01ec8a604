package incoming

import (
	"math/big"
	"slices"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/transaction"
)

// Units is an amount of minor units in units of a currency with so many decimals.
func Units(minor int64, decimals int) string { return num.MakeAmount(minor, uint32(decimals)).String() }

// Price is the price of one in minor units, and whether that is all of it.
func (l *Line) Price(currency string) (minor int64, exact bool) {
	decimals, known := transaction.CurrencyExponent(currency)
	if !known {
		decimals = 2
	}
	price := new(big.Rat).SetFrac(big.NewInt(l.UnitPrice.Value()), amount.Power(int(l.UnitPrice.Exp())))
	if of := l.PriceOf; of != nil && of.Value() != 0 {
		price.Quo(price, new(big.Rat).SetFrac(big.NewInt(of.Value()), amount.Power(int(of.Exp()))))
	}
	price.Mul(price, new(big.Rat).SetInt(amount.Power(decimals)))
	rounded := amount.Divided(price.Num(), price.Denom())
	if !rounded.IsInt64() || rounded.CmpAbs(big.NewInt(transaction.AmountMax)) > 0 {
		return 0, false
	}
	return rounded.Int64(), price.IsInt()
}

// Total is what the document comes to, rounded as it says: in some formats the gross total is rounded already.
func (d *Document) Total() int64 {
	if d.Net+d.Tax+d.Rounding == d.Gross {
		return d.Gross
	}
	return d.Gross + d.Rounding
}

// Signed is a line as it counts: one that a correction takes back is negated, so that lines come to the totals.
func (l Line) Signed() Line {
	if !l.Before {
		return l
	}
	l.Before, l.Net, l.Quantity = false, -l.Net, num.MakeAmount(-l.Quantity.Value(), l.Quantity.Exp())
	l.Taxes = slices.Clone(l.Taxes)
	for i := range l.Taxes {
		l.Taxes[i].Base, l.Taxes[i].Amount = -l.Taxes[i].Base, -l.Taxes[i].Amount
	}
	return l
}
