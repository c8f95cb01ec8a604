package strictjson

import (
	"math/bits"

	"tributary/internal/fault"
)

const (
	coefficientDigits = 19 // any number of so many digits fits 64 bits
	exponentMax       = 1 << 30
)

// Decimal is a JSON number as it was written: ±coefficient × 10^exponent, its
// trailing zeros moved into the exponent. Nothing is ever computed from the
// exponent before it was compared with a limit, so 1e400 costs as much as 1.
type Decimal struct {
	negative    bool
	coefficient uint64 // meaningless with more than coefficientDigits digits
	digits      int    // of the coefficient; 0 for zero
	exponent    int
	written     int
}

// Zero reports whether the value is 0, -0 or 0.00.
func (d Decimal) Zero() bool { return d.digits == 0 }

// Negative reports whether the value is below zero.
func (d Decimal) Negative() bool { return d.negative && d.digits > 0 }

// Decimals is the number of digits after the point that the value needs.
func (d Decimal) Decimals() int { return max(0, -d.exponent) }

// Written is the number of digits that stood after the point, zeros included;
// 0 for a number with an exponent.
func (d Decimal) Written() int { return d.written }

// Magnitude is the number of digits before the point; at most 0 below 1.
func (d Decimal) Magnitude() int { return d.digits + d.exponent }

// Scaled returns the size of the value × 10^decimals; false when it is no
// integer or does not fit.
func (d Decimal) Scaled(decimals int) (uint64, bool) {
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

// Number reads a member that must be a number; wanted names it to the client.
func (r *Reader) Number(wanted string) (Decimal, State) {
	if r.Null() {
		return Decimal{}, Absent
	}
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return Decimal{}, r.mismatch(wanted)
	}
	d, ok := r.digits()
	if !ok {
		return d, Refused
	}
	return d, Taken
}

// Integer reads a whole number of at most sizeMax in size; 7570.0 is one.
func (r *Reader) Integer(into *int64, sizeMax int64) State {
	d, st := r.Number("an integer")
	if st != Taken {
		return st
	}
	if d.Decimals() > 0 {
		return r.Refuse(fault.FieldNotValid, "must be an integer")
	}
	return r.Whole(d, into, sizeMax)
}

// Whole keeps a number that has no decimals, if it is at most sizeMax in size.
func (r *Reader) Whole(d Decimal, into *int64, sizeMax int64) State {
	value, ok := d.Scaled(0)
	if !ok || value > uint64(sizeMax) {
		return r.Refuse(fault.FieldNotValid, "must not be more than %d in size", sizeMax)
	}
	*into = int64(value)
	if d.negative {
		*into = -*into
	}
	return Taken
}

// ParseDecimal reads a number that stands in a text of its own.
func ParseDecimal(text string) (Decimal, bool) {
	r := Reader{text: text}
	d, ok := r.digits()
	return d, ok && r.pos == len(text)
}

// digits reads a number by the grammar of JSON.
func (r *Reader) digits() (Decimal, bool) {
	var d Decimal
	at := r.pos
	if r.next('-') {
		d.negative = true
	}
	zero := r.pos < len(r.text) && r.text[r.pos] == '0'
	n := r.run(&d)
	if n == 0 || zero && n > 1 {
		r.fail(at, "a number is not well formed")
		return d, false
	}
	if r.next('.') {
		n := r.run(&d)
		d.exponent -= n
		d.written = n
		if n == 0 {
			r.fail(at, "a number is not well formed")
			return d, false
		}
	}
	if r.next('e') || r.next('E') {
		exponent, ok := r.power()
		if !ok {
			r.fail(at, "a number is not well formed")
			return d, false
		}
		d.exponent += exponent
		d.written = 0
	}
	d.trim(r.text[at:r.pos])
	return d, true
}

// run reads digits into the coefficient and returns how many there were.
// Leading zeros are no digits of the coefficient.
func (r *Reader) run(d *Decimal) int {
	start := r.pos
	for r.pos < len(r.text) {
		c := r.text[r.pos] - '0'
		if c > 9 {
			break
		}
		r.pos++
		if d.digits == 0 && c == 0 {
			continue
		}
		if d.digits++; d.digits <= coefficientDigits {
			d.coefficient = d.coefficient*10 + uint64(c)
		}
	}
	return r.pos - start
}

// power reads an exponent. It stops counting far beyond what any mantissa of
// an accepted body could bring back into range.
func (r *Reader) power() (int, bool) {
	negative := r.next('-')
	if !negative {
		r.next('+')
	}
	start, value := r.pos, 0
	for r.pos < len(r.text) && r.text[r.pos]-'0' <= 9 {
		value = min(value*10+int(r.text[r.pos]-'0'), exponentMax)
		r.pos++
	}
	if negative {
		value = -value
	}
	return value, r.pos > start
}

// trim moves trailing zeros into the exponent: 7570.0 is an integer.
func (d *Decimal) trim(text string) {
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

func (r *Reader) next(c byte) bool {
	if r.pos < len(r.text) && r.text[r.pos] == c {
		r.pos++
		return true
	}
	return false
}
