package words

import (
	"math/big"
	"strconv"
	"strings"
	"time"

	"tributary/internal/transaction"

	"github.com/invopop/gobl/num"
)

// Format is how a language writes dates, numbers and money, after the Unicode
// common locale data; groups of thousands are always separated, because an
// invoice is read in columns.
type Format struct {
	dateLayout    string
	buddhist      bool // years of the Thai calendar
	decimal       string
	group         string
	indian        bool   // 12,34,567: groups of two above the thousands
	percentSpace  bool   // 21 % rather than 21%
	percentBefore bool   // %21
	percentMark   bool   // for a language that runs from right to left: the sign stays behind its number
	moneyFirst    bool   // € 5 rather than 5 €
	moneyTight    bool   // €5 rather than € 5
	signs         string // of currencies where the language has them, the country's first: USD:US$;JPY:¥
}

// NBSP is a blank at which no line ends.
const NBSP = "\u00A0"

const leftToRightMark = "\u200E"

// Decimal is the sign before the decimals.
func (f *Format) Decimal() string { return f.decimal }

// set reads one property as files write it.
func (f *Format) set(name, value string) bool {
	text := strings.ReplaceAll(value, "_", NBSP)
	switch name {
	case "date":
		f.dateLayout = strings.ReplaceAll(value, "_", " ")
	case "era":
		f.buddhist = value == "buddhist"
	case "decimal":
		f.decimal = text
	case "group":
		f.group = text
	case "grouping":
		f.indian = value == "indian"
	case "percent":
		f.percentSpace, f.percentBefore, f.percentMark = value == "apart", value == "before", value == "marked"
	case "money":
		f.moneyFirst, f.moneyTight = value != "after", value == "tight"
	case "sign":
		f.signs = value + ";" + f.signs
	default:
		return false
	}
	return true
}

// Date writes the day of an instant in a place.
func (f *Format) Date(t time.Time, loc *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return f.Day(t.In(loc))
}

// Day writes a day.
func (f *Format) Day(t time.Time) string {
	text := t.Format(f.dateLayout)
	if f.buddhist { // the year alone: a leap day stays one
		text = strings.Replace(text, t.Format("2006"), strconv.Itoa(t.Year()+buddhistYears), 1)
	}
	return text
}

// buddhistYears is how far the Thai calendar is ahead.
const buddhistYears = 543

// thousands reports whether a separator stands before the digits that are left.
func (f *Format) thousands(left int) bool {
	if f.indian {
		return left == 3 || left > 3 && left%2 == 1
	}
	return left%3 == 0
}

// Amount writes minor units with the decimals of the currency.
func (f *Format) Amount(minor int64, decimals int) string {
	return f.Digits(strconv.FormatInt(minor, 10), decimals)
}

// Digits writes an integer's digits, the last decimals of them after the
// decimal sign. It works on digits so that no amount passes through a float.
func (f *Format) Digits(digits string, decimals int) string {
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	for len(digits) <= decimals {
		digits = "0" + digits
	}
	whole, fraction := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	out := make([]byte, 0, 64) // stays on the stack: twenty digits with all their signs fit
	if negative {
		out = append(out, "−"...)
	}
	for i := range len(whole) {
		if i > 0 && f.thousands(len(whole)-i) {
			out = append(out, f.group...)
		}
		out = append(out, whole[i])
	}
	if fraction != "" {
		out = append(out, f.decimal...)
		out = append(out, fraction...)
	}
	return string(out)
}

// Number writes a decimal without trailing zeros.
func (f *Format) Number(a num.Amount) string {
	digits, decimals := strconv.FormatInt(a.Value(), 10), int(a.Exp())
	for decimals > 0 && strings.HasSuffix(digits, "0") && len(digits) > 1 {
		digits, decimals = digits[:len(digits)-1], decimals-1
	}
	if digits == "0" {
		decimals = 0
	}
	return f.Digits(digits, decimals)
}

// Percent writes a percentage.
func (f *Format) Percent(a num.Amount) string {
	switch {
	case f.percentBefore:
		return "%" + f.Number(a)
	case f.percentSpace:
		return f.Number(a) + NBSP + "%"
	case f.percentMark: // as in the common locale data; behind Arabic letters the sign would change sides
		return leftToRightMark + f.Number(a) + "%" + leftToRightMark
	}
	return f.Number(a) + "%"
}

// Rate is the percentage of a tax, or how much it is for one unit.
func (f *Format) Rate(tax *transaction.Tax, decimals int) string {
	if tax.Quota == nil {
		return f.Percent(tax.Rate)
	}
	return f.Number(num.MakeAmount(tax.Quota.Value(), tax.Quota.Exp()+uint32(decimals)))
}

// Money writes an amount with its currency: a sign where it can mean only one
// currency to who reads it, the code otherwise. A Mexican peso is never a "$".
func (f *Format) Money(minor int64, currency string) string {
	text := f.Amount(minor, DecimalsOf(currency))
	sign := f.sign(currency)
	if !f.moneyFirst {
		return text + NBSP + sign
	}
	negative := strings.HasPrefix(text, "−")
	text = strings.TrimPrefix(text, "−")
	if !f.moneyTight || sign == currency {
		sign += NBSP
	}
	if negative {
		return "−" + sign + text
	}
	return sign + text
}

// sign is how the language writes a currency.
func (f *Format) sign(currency string) string {
	for pair := range strings.SplitSeq(f.signs, ";") {
		if code, own, _ := strings.Cut(pair, ":"); code == currency {
			return own
		}
	}
	return currencySign(currency)
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
	case "INR":
		return "₹"
	case "ILS":
		return "₪"
	case "KRW":
		return "₩"
	case "THB":
		return "฿"
	case "VND":
		return "₫"
	}
	return code
}

// DecimalsOf is two for a code that is no currency: it was accepted elsewhere, and is drawn.
func DecimalsOf(currency string) int {
	if decimals, known := transaction.CurrencyExponent(currency); known {
		return decimals
	}
	return 2
}

// Exchanged converts minor units into another currency's by a rate, exactly,
// rounded half away from zero.
func Exchanged(minor int64, from string, rate num.Amount, to string) *big.Int {
	value := new(big.Int).Mul(big.NewInt(minor), big.NewInt(rate.Value()))
	ten := big.NewInt(10)
	value.Mul(value, new(big.Int).Exp(ten, big.NewInt(int64(DecimalsOf(to))), nil))
	divisor := new(big.Int).Exp(ten, big.NewInt(int64(rate.Exp())+int64(DecimalsOf(from))), nil)
	half := new(big.Int).Quo(divisor, big.NewInt(2))
	if value.Sign() < 0 {
		half.Neg(half)
	}
	return value.Quo(value.Add(value, half), divisor)
}
