package transaction

import (
	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

const (
	quantityDecimals  = 6
	quantityDigitsMax = 12 // before the point: with the decimals 18 digits, what num.Amount holds
	rateDecimals      = 4
	quotaDigitsMax    = 6
)

// minor reads an amount of money: an integer in minor units. 7570.0 is how
// many programs write one, but 75.00 and 75.7 are euros, and a shop that sends
// them would sell at a hundredth of the price if they were rounded or guessed.
// They are refused with the number that was probably meant.
func (in *reader) minor(into *int64) strictjson.State {
	if in.IsText() {
		return in.minorText()
	}
	n, st := in.Number("an integer")
	if st != strictjson.Taken {
		return st
	}
	if n.Decimals() > 0 {
		return in.notMinor(n)
	}
	if st := in.Whole(n, into, AmountMax); st != strictjson.Taken || n.Written() <= 1 || n.Zero() {
		return st
	}
	if exponent, known := in.exponent(); known && exponent == 0 {
		return strictjson.Taken // 75.00 yen are 75 in either unit
	}
	return in.notMinor(n) // into keeps the value: bodies that were accepted once are read back
}

// stated reads an amount that the client worked out itself.
func (in *reader) stated(into **int64) {
	var amount int64
	if in.minor(&amount) == strictjson.Taken {
		*into = &amount
	}
}

// minorText refuses a string, which somebody wrote to keep decimals exact.
func (in *reader) minorText() strictjson.State {
	var text string
	if st := in.Text(&text); st != strictjson.Taken {
		return st
	}
	if n, ok := strictjson.ParseDecimal(text); ok && n.Written() > 0 {
		return in.notMinor(n)
	}
	return in.Refuse(fault.FieldNotValid, "must be an integer")
}

func (in *reader) notMinor(n strictjson.Decimal) strictjson.State {
	exponent, known := in.exponent()
	meant, ok := n.Scaled(exponent)
	if !known || !ok || meant > AmountMax {
		return in.Refuse(fault.FieldNotValid, "must be an integer in minor units")
	}
	sign := ""
	if n.Negative() {
		sign = "-"
	}
	return in.Refuse(fault.FieldNotValid, "must be an integer in minor units: did you mean %s%d?", sign, meant)
}

// exponent is the number of decimals of the transaction's currency, which may
// stand after the amounts. Only a fault ever asks for it.
func (in *reader) exponent() (decimals int, known bool) {
	if in.soughtCurrency == "" {
		in.soughtCurrency = "none"
		in.Find("currency_code", &in.soughtCurrency)
	}
	return CurrencyExponent(upperCode(in.soughtCurrency))
}

// positive reads a quantity or an exchange rate.
func (in *reader) positive(into *num.Amount) strictjson.State {
	n, st := in.Number("a number")
	if st != strictjson.Taken {
		return st
	}
	if n.Zero() || n.Negative() {
		return in.Refuse(fault.FieldNotValid, "must be greater than 0")
	}
	if n.Magnitude() > quantityDigitsMax {
		return in.Refuse(fault.FieldNotValid, "must have at most %d digits before the point", quantityDigitsMax)
	}
	return in.amount(into, n, quantityDecimals)
}

// percentage reads a tax rate.
func (in *reader) percentage(into *num.Amount) strictjson.State {
	n, st := in.Number("a number")
	if st != strictjson.Taken {
		return st
	}
	if n.Negative() || n.Magnitude() > 3 {
		return in.Refuse(fault.FieldNotValid, "must be between 0 and 100")
	}
	if st := in.amount(into, n, rateDecimals); st != strictjson.Taken {
		return st
	}
	if hundred, ok := n.Scaled(rateDecimals); !ok || hundred > 100_0000 {
		return in.Refuse(fault.FieldNotValid, "must be between 0 and 100")
	}
	return strictjson.Taken
}

// quota reads how much one unit is taxed with, in minor units.
func (in *reader) quota(into *num.Amount) strictjson.State {
	n, st := in.Number("a number")
	if st != strictjson.Taken {
		return st
	}
	if n.Zero() || n.Negative() || n.Magnitude() > quotaDigitsMax {
		return in.Refuse(fault.FieldNotValid, "must be greater than 0, with at most %d digits before the point", quotaDigitsMax)
	}
	return in.amount(into, n, rateDecimals)
}

// perUnit reads a number that may be absent.
func (in *reader) perUnit(read func(*num.Amount) strictjson.State) *num.Amount {
	var value num.Amount
	if read(&value) != strictjson.Taken {
		return nil
	}
	return &value
}

// amount keeps a size that is known to be small enough but for its decimals.
func (in *reader) amount(into *num.Amount, n strictjson.Decimal, decimals int) strictjson.State {
	value, ok := n.Scaled(n.Decimals())
	if n.Decimals() > decimals || !ok {
		return in.Refuse(fault.FieldNotValid, "must have at most %d decimals", decimals)
	}
	*into = num.MakeAmount(int64(value), uint32(n.Decimals()))
	return strictjson.Taken
}
