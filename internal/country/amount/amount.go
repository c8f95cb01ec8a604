// Package amount is the exact decimals of documents: minor units as text, amounts
// at a rate of exchange, prices of one unit.
//
// It owns rounding, which is half away from zero everywhere, as the laws of all
// countries here have it for taxes. What a transaction amounts to is the package
// transaction's. Law: no floats, and nothing is rounded twice.
package amount

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/transaction"
)

// Text writes minor units with some of their digits behind the point: -0.05.
func Text(minor int64, decimals int) string {
	digits := strconv.FormatInt(minor, 10)
	if decimals == 0 {
		return digits
	}
	digits, negative := strings.CutPrefix(digits, "-")
	return pointed(digits, decimals, negative)
}

func pointed(digits string, decimals int, negative bool) string {
	sign := ""
	if negative {
		sign = "-"
	}
	if decimals == 0 {
		return sign + digits
	}
	if short := decimals + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	point := len(digits) - decimals
	return sign + digits[:point] + "." + digits[point:]
}

// Power is 10ⁿ.
func Power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// Divided is top ÷ bottom, rounded half away from zero.
func Divided(top, bottom *big.Int) *big.Int {
	half := new(big.Int).Rsh(new(big.Int).Abs(bottom), 1)
	if top.Sign() < 0 {
		half.Neg(half)
	}
	return new(big.Int).Quo(new(big.Int).Add(top, half), bottom)
}

// Scaled is value × 10^shift × factor, rounded. It is false where that is larger
// than any amount may be.
func Scaled(value int64, shift int, factor num.Amount) (int64, bool) {
	top := new(big.Int).Mul(big.NewInt(value), big.NewInt(factor.Value()))
	if shift -= int(factor.Exp()); shift > 0 {
		top.Mul(top, Power(shift))
	}
	out := Divided(top, Power(max(0, -shift)))
	return out.Int64(), out.IsInt64() && out.CmpAbs(big.NewInt(transaction.AmountMax)) <= 0
}

// Percent is a rate in per cent of a sum, rounded.
func Percent(of int64, rate num.Amount) int64 {
	part, _ := Scaled(of, -2, rate)
	return part
}

// Within is the tax in an amount that includes it, taken directly.
func Within(gross int64, rate num.Amount) int64 {
	whole := new(big.Int).Add(Power(2+int(rate.Exp())), big.NewInt(rate.Value())) // 100 and the rate, in its decimals
	return Divided(new(big.Int).Mul(big.NewInt(gross), big.NewInt(rate.Value())), whole).Int64()
}

// Number is a decimal of any length: so many units of 10^-places.
type Number struct {
	units  *big.Int
	places int
}

// New is minor units as a number.
func New(minor int64, places int) Number { return Number{big.NewInt(minor), places} }

// Units is a number of so many units of 10^-places.
func Units(units *big.Int, places int) Number { return Number{units, places} }

// Of is an amount as a number.
func Of(a num.Amount) Number { return New(a.Value(), int(a.Exp())) }

// Over is the number divided by a quantity, rounded to places; of none it is all.
func (n Number) Over(quantity num.Amount, places int) Number {
	if quantity.Value() == 0 {
		return n.Rounded(places)
	}
	top := new(big.Int).Mul(n.units, Power(places+int(quantity.Exp())))
	return Number{Divided(top, new(big.Int).Mul(big.NewInt(quantity.Value()), Power(n.places))), places}
}

// Rounded has other places.
func (n Number) Rounded(places int) Number {
	if more := places - n.places; more >= 0 {
		return Number{new(big.Int).Mul(n.units, Power(more)), places}
	}
	return Number{Divided(n.units, Power(n.places-places)), places}
}

// String has all places.
func (n Number) String() string {
	return pointed(new(big.Int).Abs(n.units).String(), n.places, n.units.Sign() < 0)
}

// Trimmed has no zeros at the end but those of the least places.
func (n Number) Trimmed(least int) string {
	text := n.Rounded(max(n.places, least)).String()
	keep := len(text) - max(n.places, least) + least
	for len(text) > keep && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return strings.TrimSuffix(text, ".")
}

// Sign is -1, 0 or 1.
func (n Number) Sign() int { return n.units.Sign() }

// Neg is the number with the other sign.
func (n Number) Neg() Number { return Number{new(big.Int).Neg(n.units), n.places} }

// Rat is the number as a fraction.
func (n Number) Rat() *big.Rat { return new(big.Rat).SetFrac(n.units, Power(n.places)) }
