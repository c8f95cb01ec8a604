package document

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"tributary/internal/transaction"

	"github.com/invopop/gobl/num"
)

// format is how a language writes dates, numbers and money, after the Unicode
// common locale data; groups of thousands are always separated, because an
// invoice is read in columns.
type format struct {
	dateLayout   string
	decimal      string
	group        string
	percentSpace bool // 21 % rather than 21%
	moneyFirst   bool // € 5 rather than 5 €
	moneyTight   bool // €5 rather than € 5
}

const nbsp = "\u00A0"

// in returns the format as the country's readers expect it where countries
// share a language but not its numbers.
func (f format) in(lang, countryCode string) format {
	switch strings.ToUpper(lang) + "-" + countryCode {
	case "ES-MX", "ES-GT", "ES-HN", "ES-NI", "ES-PA", "ES-SV", "ES-DO", "ES-PR", "ES-US", "ES-PE":
		f.decimal, f.group, f.moneyFirst = ".", ",", true
	case "ES-AR", "ES-CL", "ES-CO", "ES-EC", "ES-PY", "ES-UY", "ES-VE":
		f.moneyFirst = true
	case "PT-BR":
		f.group, f.moneyFirst = ".", true
	case "DE-CH", "DE-LI", "IT-CH":
		f.decimal, f.group, f.moneyFirst = ".", "’", true
	case "DE-AT":
		f.group = nbsp
	case "EN-US":
		f.dateLayout = "Jan 2, 2006"
	}
	return f
}

// date writes the day of an instant in a place.
func (f *format) date(t time.Time, loc *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(loc).Format(f.dateLayout)
}

// amount writes minor units with the decimals of the currency.
func (f *format) amount(minor int64, decimals int) string {
	return f.decimalNumber(strconv.FormatInt(minor, 10), decimals)
}

// decimalNumber writes an integer's digits, the last decimals of them after the
// decimal sign. It works on digits so that no amount passes through a float.
func (f *format) decimalNumber(digits string, decimals int) string {
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	for len(digits) <= decimals {
		digits = "0" + digits
	}
	whole, fraction := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	var out strings.Builder
	if negative {
		out.WriteString("−")
	}
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteString(f.group)
		}
		out.WriteByte(whole[i])
	}
	if fraction != "" {
		out.WriteString(f.decimal)
		out.WriteString(fraction)
	}
	return out.String()
}

// number writes a decimal without trailing zeros.
func (f *format) number(a num.Amount) string {
	digits, decimals := strconv.FormatInt(a.Value(), 10), int(a.Exp())
	for decimals > 0 && strings.HasSuffix(digits, "0") && len(digits) > 1 {
		digits, decimals = digits[:len(digits)-1], decimals-1
	}
	if digits == "0" {
		decimals = 0
	}
	return f.decimalNumber(digits, decimals)
}

func (f *format) percent(a num.Amount) string {
	if f.percentSpace {
		return f.number(a) + nbsp + "%"
	}
	return f.number(a) + "%"
}

// money writes an amount with its currency: a sign where it can mean only one
// currency, the code otherwise. A dollar sign on a Mexican invoice is not one.
func (f *format) money(minor int64, currency string) string {
	text := f.amount(minor, decimalsOf(currency))
	sign := currencySign(currency)
	if !f.moneyFirst {
		return text + nbsp + sign
	}
	negative := strings.HasPrefix(text, "−")
	text = strings.TrimPrefix(text, "−")
	if !f.moneyTight || sign == currency {
		sign += nbsp
	}
	if negative {
		return "−" + sign + text
	}
	return sign + text
}

// currencySign returns the sign of currencies that have one to themselves.
func currencySign(code string) string {
	switch code {
	case "EUR":
		return "€"
	case "GBP":
		return "£"
	case "PLN":
		return "zł"
	case "CZK":
		return "Kč"
	case "HUF":
		return "Ft"
	case "RON":
		return "lei"
	case "BRL":
		return "R$"
	case "UAH":
		return "₴"
	case "TRY":
		return "₺"
	}
	return code
}

// decimalsOf is two for a code that is no currency: it was accepted elsewhere, and is drawn.
func decimalsOf(currency string) int {
	if decimals, known := transaction.CurrencyExponent(currency); known {
		return decimals
	}
	return 2
}

// exchanged converts minor units into another currency's by a rate, exactly,
// rounded half away from zero.
func exchanged(minor int64, from string, rate num.Amount, to string) *big.Int {
	value := new(big.Int).Mul(big.NewInt(minor), big.NewInt(rate.Value()))
	ten := big.NewInt(10)
	value.Mul(value, new(big.Int).Exp(ten, big.NewInt(int64(decimalsOf(to))), nil))
	divisor := new(big.Int).Exp(ten, big.NewInt(int64(rate.Exp())+int64(decimalsOf(from))), nil)
	half := new(big.Int).Quo(divisor, big.NewInt(2))
	if value.Sign() < 0 {
		half.Neg(half)
	}
	return value.Quo(value.Add(value, half), divisor)
}
