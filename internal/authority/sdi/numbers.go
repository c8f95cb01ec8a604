package sdi

import (
	"math/big"
	"strings"
)

// decimal reads a number that the schema has found to be one; zero where there is none.
func decimal(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return new(big.Rat)
	}
	return r
}

// off reports whether two numbers differ by that much or more: the tolerances of
// the list of checks are open intervals.
func off(a, b *big.Rat, tolerance string) bool {
	d := new(big.Rat).Sub(a, b)
	return d.Abs(d).Cmp(decimal(tolerance)) >= 0
}

// validVAT reports whether a text can be a partita IVA: eleven digits, of which
// the last one makes the sum of Luhn a multiple of ten.
func validVAT(text string) bool {
	if len(text) != 11 || strings.Trim(text, "0123456789") != "" {
		return false
	}
	sum := 0
	for i, c := range []byte(text) {
		digit := int(c - '0')
		if i%2 == 1 {
			digit *= 2
			if digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

// oddValues are those of characters in odd places of a codice fiscale, by digit
// and by letter (decreto 23/12/1976).
const oddValues = "\x01\x00\x05\x07\x09\x0d\x0f\x11\x13\x15\x02\x04\x12\x14\x0b\x03\x06\x08\x0c\x0e\x10\x0a\x16\x19\x18\x17"

// validCode reports whether a text can be a codice fiscale: that of a body, which
// is like a partita IVA, or sixteen characters of which the last one checks.
func validCode(text string) bool {
	if len(text) != 16 {
		return validVAT(text)
	}
	sum := 0
	for i, c := range []byte(text[:15]) {
		var value int
		switch {
		case c >= '0' && c <= '9':
			value = int(c - '0')
		case c >= 'A' && c <= 'Z':
			value = int(c - 'A')
		default:
			return false
		}
		if i%2 == 0 { // odd places, counted from one
			value = int(oddValues[value])
		}
		sum += value
	}
	return text[15] == byte('A'+sum%26)
}
