// Package taxid decides from the text alone whether a tax number can exist:
// its length, its letters and its check digits.
//
// It owns the normal form of tax numbers and their published arithmetic. Where
// the tax library knows a country it asks the library's own normaliser and
// rules; HU, RO, CZ, HR, FI, SK, SI, BG, EE, LV, LT, LU, MT, CY, US and CA are
// written here. It refuses to own registers: whether anybody holds the number
// is a question for lookup. Law: [Check] is pure and total; it answers for any
// two strings without network, clock or state, and a number it calls valid is
// valid again in the normal form it returns.
package taxid

import (
	"strings"
	"unicode"

	"github.com/invopop/gobl/l10n"
)

// inputBytesMax bounds what is looked at. The longest real number with blanks
// and prefix is well below it.
const inputBytesMax = 64

// Reference is the country code of the reference authority: any number of the
// general shape is valid there.
const Reference = "XX"

// Rule says how deep a verdict goes.
type Rule string

// The rules.
const (
	NoRule     Rule = ""            // the country is not a country
	Shape      Rule = "shape"       // no published rule is known here: letters and digits, 2 to 20 of them
	Pattern    Rule = "pattern"     // the country's own length and letters
	CheckDigit Rule = "check_digit" // pattern and check digits
)

// Verdict is what the text of a number says.
type Verdict struct {
	Valid bool
	// ISO 3166 alpha-2 in upper case (GR for Greece, also when EL was asked; XI for Northern Ireland); empty when there is no such country
	Country string
	Number  string // normal form: no blanks, no punctuation, no country prefix; empty when nothing could be read
	Rule    Rule
	Reason  string // for people: why not; empty when valid
}

// Check decides on a number of a country. The country may be ISO or the tax
// prefix (EL, XI), in either case; the number may carry blanks, dots, dashes,
// slashes, colons and its country prefix.
func Check(country, number string) Verdict {
	code, ok := CountryCode(country)
	if !ok {
		return Verdict{Reason: "the country code is not known"}
	}
	v := Verdict{Country: code, Rule: RuleOf(code)}
	text, ok := compact(number)
	if !ok {
		v.Reason = "a tax number has 1 to 64 letters and digits, and between them blanks, dots, dashes, slashes and colons at most"
		return v
	}
	switch {
	case v.Rule == Shape:
		v.Number, v.Reason = checkShape(code, text)
	case writtenHere(code):
		v.Number = trimPrefix(code, text)
		v.Reason = checkPublished(code, v.Number)
	case code == "IE" && strings.ContainsAny(text, "+*"):
		v.Number = trimPrefix(code, text)
		v.Reason = checkIrishSymbol(v.Number)
	default:
		v.Number, v.Reason = askLibrary(code, text)
	}
	v.Valid = v.Reason == ""
	return v
}

// RuleOf says how deep the check of a country goes. The code is one that
// [CountryCode] returned.
func RuleOf(country string) Rule {
	switch country {
	case "AE", "MX", "SA", "SG", "US":
		return Pattern
	case "AR", "AT", "BE", "BG", "BR", "CA", "CH", "CO", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR",
		"GB", "GR", "HR", "HU", "IE", "IN", "IT", "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK", "XI":
		return CheckDigit
	case "":
		return NoRule
	}
	return Shape
}

// CountryCode returns the ISO form of a country code: upper case, GR for EL.
// XI and the reference country stay as they are.
func CountryCode(country string) (string, bool) {
	if len(country) != 2 {
		return "", false
	}
	code := strings.ToUpper(country)
	switch code {
	case "EL", "GR":
		return "GR", true
	case "XI", Reference:
		return code, true
	}
	def := l10n.Countries().Code(l10n.Code(code))
	if def == nil || !def.ISO {
		return "", false
	}
	return code, true
}

// VIES returns the member state's code and the number as the European register
// of VAT numbers spells them; false for countries it does not serve and for
// verdicts that are not valid.
func (v Verdict) VIES() (memberState, number string, served bool) {
	if !v.Valid || !InVIES(v.Country) {
		return "", "", false
	}
	switch v.Country {
	case "GR":
		return "EL", v.Number, true
	case "BE":
		// Numbers from before 2005 are still written with nine digits; the register has ten.
		if len(v.Number) == 9 {
			return "BE", "0" + v.Number, true
		}
	case "HU":
		// The domestic form adds VAT code and county; the VAT number is its first eight digits.
		return "HU", v.Number[:8], true
	}
	return v.Country, v.Number, true
}

// InVIES reports whether the European register serves a country: the 27 member
// states and Northern Ireland.
func InVIES(country string) bool {
	switch country {
	case "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT",
		"LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK", "XI":
		return true
	}
	return false
}

// compact strips what people put between digits and makes letters upper case.
// What is neither letter, digit nor one of the few symbols real numbers carry
// is refused, not dropped: "DE<b>136695976" is not a number with decoration.
func compact(number string) (string, bool) {
	if len(number) > inputBytesMax {
		return "", false
	}
	var b strings.Builder
	for _, r := range number {
		switch {
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r == 'Ñ', r == '&', r == '+', r == '*':
			b.WriteRune(r)
		case r >= 'a' && r <= 'z':
			b.WriteRune(r - 'a' + 'A')
		case r == 'ñ':
			b.WriteRune('Ñ')
		case r == '.', r == '/', r == ':', unicode.IsSpace(r), unicode.Is(unicode.Pd, r):
		default:
			return "", false
		}
	}
	return b.String(), b.Len() > 0
}

// trimPrefix removes the country's own prefix. Greece and Northern Ireland are
// written under two.
func trimPrefix(country, text string) string {
	prefixes := [2]string{country, country}
	switch country {
	case "GR":
		prefixes[1] = "EL"
	case "XI":
		prefixes[1] = "GB"
	}
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(text, p); ok && rest != "" {
			return rest
		}
	}
	return text
}

// checkShape takes two letters for a prefix only in front of a digit: without a
// rule nothing else tells a prefix from the number.
func checkShape(country, text string) (number, reason string) {
	if rest := trimPrefix(country, text); rest[0] >= '0' && rest[0] <= '9' {
		text = rest
	}
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') {
			return text, "the number has characters other than letters and digits"
		}
	}
	if len(text) < 2 || len(text) > 20 {
		return text, "the number does not have 2 to 20 letters and digits"
	}
	return text, ""
}

// VIESStates are the member states that VIES serves, in its own spelling.
func VIESStates() []string {
	return strings.Fields("AT BE BG CY CZ DE DK EE EL ES FI FR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK XI")
}

// Bare leaves letters and digits of ASCII, in upper case: people write one number
// in many ways.
func Bare(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, text)
}
