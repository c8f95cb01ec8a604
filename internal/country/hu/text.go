package hu

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/transaction"
)

// words is a text as NAV's schema has it: single blanks, none at the ends, at
// most max characters.
func words(text string, max int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0xfffd || r == 0xfffe || r == 0xffff
	}), " ")
	if runes := []rune(text); len(runes) > max {
		text = strings.TrimRight(string(runes[:max]), " ")
	}
	return text
}

// decimal writes an integer with some of its digits behind the point.
func decimal(minor int64, decimals int) string {
	sign, text := "", strconv.FormatInt(minor, 10)
	if minor < 0 {
		sign, text = "-", text[1:]
	}
	if decimals == 0 {
		return sign + text
	}
	if short := decimals + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	return sign + text[:len(text)-decimals] + "." + text[len(text)-decimals:]
}

// scaled is value × 10^shift × rate, rounded half away from zero.
func scaled(value int64, shift int, rate num.Amount) (int64, bool) {
	top := new(big.Int).Mul(big.NewInt(value), big.NewInt(rate.Value()))
	shift -= int(rate.Exp())
	if shift >= 0 {
		top.Mul(top, power(shift))
		shift = 0
	}
	return rounded(top, power(-shift))
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func rounded(top, bottom *big.Int) (int64, bool) {
	if bottom.Sign() < 0 {
		top, bottom = new(big.Int).Neg(top), new(big.Int).Neg(bottom)
	}
	half := new(big.Int).Rsh(bottom, 1)
	if top.Sign() < 0 {
		half.Neg(half)
	}
	out := new(big.Int).Quo(new(big.Int).Add(top, half), bottom)
	if !out.IsInt64() || out.CmpAbs(big.NewInt(transaction.AmountMax)) > 0 {
		return 0, false
	}
	return out.Int64(), true
}

// priceDecimals is how exactly a price of one unit is reported.
const priceDecimals = 6

// perUnit is an amount divided by a quantity, with [priceDecimals] decimals less
// the zeros at its end.
func perUnit(minor int64, decimals int, quantity num.Amount) string {
	if quantity.Value() == 0 {
		return "0"
	}
	top := new(big.Int).Mul(big.NewInt(minor), power(priceDecimals+int(quantity.Exp())))
	bottom := new(big.Int).Mul(big.NewInt(quantity.Value()), power(decimals))
	half := new(big.Int).Rsh(new(big.Int).Abs(bottom), 1)
	if top.Sign() < 0 {
		half.Neg(half)
	}
	out := new(big.Int).Quo(new(big.Int).Add(top, half), bottom)
	sign, text := "", new(big.Int).Abs(out).String()
	if out.Sign() < 0 {
		sign = "-"
	}
	if short := priceDecimals + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	text = text[:len(text)-priceDecimals] + "." + text[len(text)-priceDecimals:]
	return sign + strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
