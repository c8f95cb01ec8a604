package en16931

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// digitsMax bounds what a decimal of a document may have: what fits 64 bits.
const digitsMax = 18

var errDecimal = errors.New("not a decimal of at most 18 digits")

// Decimal is an exact decimal as it stands in a document: 10.50 and 10.5 are
// equal in value but are written as they were read. Its zero value means that
// the document does not have the term at all, which is not the same as 0.
type Decimal struct {
	unscaled int64
	scale    uint8
	given    bool
}

// Dec is the decimal unscaled ÷ 10^scale.
func Dec(unscaled int64, scale int) Decimal {
	return Decimal{unscaled: unscaled, scale: uint8(scale), given: true}
}

// ParseDecimal reads the form of xs:decimal.
func ParseDecimal(text string) (Decimal, error) {
	rest, negative := text, false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	if len(rest) > digitsMax && strings.IndexByte(rest, '.') >= 0 {
		rest = strings.TrimRight(rest, "0") // zeros at the end say nothing
	}
	d := Decimal{given: true}
	digits, point, any := 0, false, false
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			return Decimal{}, errDecimal
		}
		any = true
		if point {
			d.scale++
		}
		if digits > 0 || c != '0' {
			digits++
		}
		if digits > digitsMax || d.scale > digitsMax {
			return Decimal{}, errDecimal
		}
		d.unscaled = d.unscaled*10 + int64(c-'0')
	}
	if !any {
		return Decimal{}, errDecimal
	}
	if negative {
		d.unscaled = -d.unscaled
	}
	return d, nil
}

// Given reports whether the document has the term.
func (d Decimal) Given() bool { return d.given }

// Decimals is how many digits stand behind the point.
func (d Decimal) Decimals() int { return int(d.scale) }

// Sign is -1, 0 or 1.
func (d Decimal) Sign() int {
	switch {
	case d.unscaled < 0:
		return -1
	case d.unscaled > 0:
		return 1
	}
	return 0
}

// Neg is the decimal with the other sign.
func (d Decimal) Neg() Decimal {
	d.unscaled = -d.unscaled
	return d
}

// Equal compares values: 10.5 equals 10.50, and a missing term equals only a missing one.
func (d Decimal) Equal(other Decimal) bool {
	if d.given != other.given {
		return false
	}
	d, other = d.Trim(0), other.Trim(0)
	return d.unscaled == other.unscaled && d.scale == other.scale
}

// Trim drops zeros at the end, keeping at least some decimals.
func (d Decimal) Trim(keep int) Decimal {
	for int(d.scale) > keep && d.unscaled%10 == 0 {
		d.unscaled, d.scale = d.unscaled/10, d.scale-1
	}
	return d
}

// String is the decimal as a document writes it.
func (d Decimal) String() string { return string(d.append(nil)) }

func (d Decimal) append(out []byte) []byte {
	size := uint64(d.unscaled)
	if d.unscaled < 0 {
		out, size = append(out, '-'), -size
	}
	if d.scale == 0 {
		return strconv.AppendUint(out, size, 10)
	}
	var room [digitsMax + 2]byte
	digits := strconv.AppendUint(room[:0], size, 10)
	whole := len(digits) - int(d.scale)
	if whole <= 0 {
		out = append(out, '0', '.')
		for ; whole < 0; whole++ {
			out = append(out, '0')
		}
		return append(out, digits...)
	}
	out = append(append(out, digits[:whole]...), '.')
	return append(out, digits[whole:]...)
}

// exact is a sum or a product that may be longer than a [Decimal]: a whole
// number of 10^-18. Documents from outside may hold 5,000 lines of 18 digits;
// those of people fit the hundredths that are summed apart.
type exact struct {
	hundredths int64
	n          big.Int
}

const (
	exactScale    = 18
	hundredthsMax = 1 << 61
	smallMax      = 1 << 52
)

func (e *exact) add(d Decimal) *exact {
	if d.scale <= 2 && d.unscaled < smallMax && d.unscaled > -smallMax && e.hundredths < hundredthsMax && e.hundredths > -hundredthsMax {
		e.hundredths += d.unscaled * [...]int64{100, 10, 1}[d.scale]
		return e
	}
	e.n.Add(&e.n, scaled(d, exactScale))
	return e
}

func (e *exact) sub(d Decimal) *exact {
	return e.add(d.Neg())
}

// total is the sum in units of 10^-18.
func (e *exact) total() *big.Int {
	n := new(big.Int).Mul(big.NewInt(e.hundredths), power10(exactScale-2))
	return n.Add(n, &e.n)
}

// equals compares the sum with a decimal.
func (e *exact) equals(d Decimal) bool {
	return d.given && e.total().Cmp(scaled(d, exactScale)) == 0
}

// scaled is d × 10^scale as a whole number; scale is never less than d's own.
func scaled(d Decimal, scale int) *big.Int {
	n := big.NewInt(d.unscaled)
	return n.Mul(n, power10(scale-int(d.scale)))
}

// powers are those of ten up to the longest product of two decimals.
var powers = func() (all [3*exactScale + 3]*big.Int) {
	all[0] = big.NewInt(1)
	for i := 1; i < len(all); i++ {
		all[i] = new(big.Int).Mul(all[i-1], big.NewInt(10))
	}
	return all
}()

// power10 is shared: read it only.
func power10(exponent int) *big.Int { return powers[exponent] }

// percentOf is |amount| × rate ÷ 100, rounded half up to two decimals: what the
// official rules compare a category's tax with.
func percentOf(amount, rate Decimal) *big.Int {
	product := new(big.Int).Mul(big.NewInt(amount.unscaled), big.NewInt(rate.unscaled))
	product.Abs(product)
	shift := int(amount.scale) + int(rate.scale) + 2 // hundredth of the product
	return roundTo(product, shift, 2)
}

// roundTo takes a whole number of 10^-from to one of 10^-to, half away from zero.
func roundTo(n *big.Int, from, to int) *big.Int {
	if from <= to {
		return n.Mul(n, power10(to-from))
	}
	d := power10(from - to)
	half := new(big.Int).Rsh(d, 1)
	if n.Sign() < 0 {
		half.Neg(half)
	}
	return n.Quo(n.Add(n, half), d)
}
