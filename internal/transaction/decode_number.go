package transaction

import (
	"math/bits"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
)

const (
	quantityDecimals  = 6
	quantityDigitsMax = 12 // before the point: with the decimals 18 digits, what num.Amount holds
	rateDecimals      = 4
	coefficientDigits = 19 // any number of so many digits fits 64 bits
	exponentMax       = 1 << 30
)

// decimal is a JSON number as it was written: ±coefficient × 10^exponent, its
// trailing zeros moved into the exponent. Nothing is ever computed from the
// exponent before it was compared with a limit, so 1e400 costs as much as 1.
type decimal struct {
	negative    bool
	coefficient uint64 // meaningless with more than coefficientDigits digits
	digits      int    // of the coefficient; 0 for zero
	exponent    int
}

// decimals is the number of digits after the point that the value needs.
func (d decimal) decimals() int { return max(0, -d.exponent) }

// magnitude is the number of digits before the point; at most 0 below 1.
func (d decimal) magnitude() int { return d.digits + d.exponent }

// scaled returns the size of the value × 10^decimals; false when it does not fit.
func (d decimal) scaled(decimals int) (uint64, bool) {
	if d.digits == 0 {
		return 0, true
	}
	shift := d.exponent + decimals
	if d.digits > coefficientDigits || shift < 0 || d.digits+shift > coefficientDigits {
		return 0, false
	}
	value := d.coefficient
	for range shift {
		hi, lo := bits.Mul64(value, 10)
		if hi != 0 {
			return 0, false
		}
		value = lo
	}
	return value, true
}

// digits reads a number by the grammar of JSON.
func (s *scanner) digits() (decimal, bool) {
	var d decimal
	at := s.pos
	if s.next('-') {
		d.negative = true
	}
	zero := s.pos < len(s.text) && s.text[s.pos] == '0'
	n := s.run(&d)
	if n == 0 || zero && n > 1 {
		s.fail(at, "a number is not well formed")
		return d, false
	}
	if s.next('.') {
		n := s.run(&d)
		d.exponent -= n
		if n == 0 {
			s.fail(at, "a number is not well formed")
			return d, false
		}
	}
	if s.next('e') || s.next('E') {
		exponent, ok := s.power()
		if !ok {
			s.fail(at, "a number is not well formed")
			return d, false
		}
		d.exponent += exponent
	}
	d.trim(s.text[at:s.pos])
	return d, true
}

// run reads digits into the coefficient and returns how many there were.
// Leading zeros are no digits of the coefficient.
func (s *scanner) run(d *decimal) int {
	start := s.pos
	for s.pos < len(s.text) {
		c := s.text[s.pos] - '0'
		if c > 9 {
			break
		}
		s.pos++
		if d.digits == 0 && c == 0 {
			continue
		}
		if d.digits++; d.digits <= coefficientDigits {
			d.coefficient = d.coefficient*10 + uint64(c)
		}
	}
	return s.pos - start
}

// power reads an exponent. It stops counting far beyond what any mantissa of
// an accepted body could bring back into range.
func (s *scanner) power() (int, bool) {
	negative := s.next('-')
	if !negative {
		s.next('+')
	}
	start, value := s.pos, 0
	for s.pos < len(s.text) && s.text[s.pos]-'0' <= 9 {
		value = min(value*10+int(s.text[s.pos]-'0'), exponentMax)
		s.pos++
	}
	if negative {
		value = -value
	}
	return value, s.pos > start
}

// trim moves trailing zeros into the exponent: 7570.0 is an integer.
func (d *decimal) trim(text string) {
	if d.digits == 0 {
		d.exponent = 0
		return
	}
	if d.digits <= coefficientDigits {
		for d.coefficient%10 == 0 {
			d.coefficient /= 10
			d.digits--
			d.exponent++
		}
		return
	}
	// The coefficient is lost, but 1.000…0 with a hundred zeros is still 1.
	var kept [coefficientDigits]byte
	seen, zeros := 0, 0
	for i := 0; i < len(text) && text[i]|0x20 != 'e'; i++ {
		c := text[i] - '0'
		if c > 9 || seen == 0 && c == 0 {
			continue
		}
		if seen < coefficientDigits {
			kept[seen] = c
		}
		seen++
		if zeros++; c != 0 {
			zeros = 0
		}
	}
	d.digits -= zeros
	d.exponent += zeros
	if d.digits > coefficientDigits {
		return
	}
	d.coefficient = 0
	for _, c := range kept[:d.digits] {
		d.coefficient = d.coefficient*10 + uint64(c)
	}
}

func (s *scanner) next(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// number reads a member that must be a number.
func (s *scanner) number(wanted string) (decimal, state) {
	if s.null() {
		return decimal{}, absent
	}
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return decimal{}, s.mismatch(wanted)
	}
	d, ok := s.digits()
	if !ok {
		return d, refused
	}
	return d, taken
}

// integer reads an amount in minor units or a count.
func (s *scanner) integer(into *int64) state {
	d, st := s.number("an integer")
	if st != taken {
		return st
	}
	if d.decimals() > 0 {
		return s.refuse(fault.FieldNotValid, "must be an integer")
	}
	value, ok := d.scaled(0)
	if !ok || value > AmountMax {
		return s.refuse(fault.FieldNotValid, "must not be more than %d in size", int64(AmountMax))
	}
	*into = int64(value)
	if d.negative {
		*into = -*into
	}
	return taken
}

// positive reads a quantity or an exchange rate.
func (s *scanner) positive(into *num.Amount) state {
	d, st := s.number("a number")
	if st != taken {
		return st
	}
	if d.digits == 0 || d.negative {
		return s.refuse(fault.FieldNotValid, "must be greater than 0")
	}
	if d.magnitude() > quantityDigitsMax {
		return s.refuse(fault.FieldNotValid, "must have at most %d digits before the point", quantityDigitsMax)
	}
	return s.amount(into, d, quantityDecimals)
}

// percentage reads a tax rate.
func (s *scanner) percentage(into *num.Amount) state {
	d, st := s.number("a number")
	if st != taken {
		return st
	}
	if d.digits > 0 && d.negative || d.magnitude() > 3 {
		return s.refuse(fault.FieldNotValid, "must be between 0 and 100")
	}
	if st := s.amount(into, d, rateDecimals); st != taken {
		return st
	}
	if hundred, ok := d.scaled(rateDecimals); !ok || hundred > 100_0000 {
		return s.refuse(fault.FieldNotValid, "must be between 0 and 100")
	}
	return taken
}

// amount keeps a size that is known to be small enough but for its decimals.
func (s *scanner) amount(into *num.Amount, d decimal, decimals int) state {
	value, ok := d.scaled(d.decimals())
	if d.decimals() > decimals || !ok {
		return s.refuse(fault.FieldNotValid, "must have at most %d decimals", decimals)
	}
	*into = num.MakeAmount(int64(value), uint32(d.decimals()))
	return taken
}
