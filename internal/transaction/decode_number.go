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
func (d *decoder) minor(into *int64) strictjson.State {
	if d.IsText() {
		return d.minorText()
	}
	n, st := d.Number("an integer")
	if st != strictjson.Taken {
		return st
	}
	if n.Decimals() > 0 {
		return d.notMinor(n)
	}
	if st := d.Whole(n, into, AmountMax); st != strictjson.Taken || n.Written() <= 1 || n.Zero() {
		return st
	}
	if exponent, known := d.exponent(); known && exponent == 0 {
		return strictjson.Taken // 75.00 yen are 75 in either unit
	}
	return d.notMinor(n) // into keeps the value: bodies that were accepted once are read back
}

// stated reads an amount that the client worked out itself.
func (d *decoder) stated(into **int64) {
	var amount int64
	if d.minor(&amount) == strictjson.Taken {
		*into = &amount
	}
}

// minorText refuses a string, which somebody wrote to keep decimals exact.
func (d *decoder) minorText() strictjson.State {
	var text string
	if st := d.Text(&text); st != strictjson.Taken {
		return st
	}
	if n, ok := strictjson.ParseDecimal(text); ok && n.Written() > 0 {
		return d.notMinor(n)
	}
	return d.Refuse(fault.FieldNotValid, "must be an integer")
}

func (d *decoder) notMinor(n strictjson.Decimal) strictjson.State {
	exponent, known := d.exponent()
	meant, ok := n.Scaled(exponent)
	if !known || !ok || meant > AmountMax {
		return d.Refuse(fault.FieldNotValid, "must be an integer in minor units")
	}
	sign := ""
	if n.Negative() {
		sign = "-"
	}
	return d.Refuse(fault.FieldNotValid, "must be an integer in minor units: did you mean %s%d?", sign, meant)
}

// exponent is the number of decimals of the transaction's currency, which may
// stand after the amounts. Only a fault ever asks for it.
func (d *decoder) exponent() (decimals int, known bool) {
	if d.soughtCurrency == "" {
		d.soughtCurrency = "none"
		d.Find("currency_code", &d.soughtCurrency)
	}
	return CurrencyExponent(upperCode(d.soughtCurrency))
}

// positive reads a quantity or an exchange rate.
func (d *decoder) positive(into *num.Amount) strictjson.State {
	n, st := d.Number("a number")
	if st != strictjson.Taken {
		return st
	}
	if n.Zero() || n.Negative() {
		return d.Refuse(fault.FieldNotValid, "must be greater than 0")
	}
	if n.Magnitude() > quantityDigitsMax {
		return d.Refuse(fault.FieldNotValid, "must have at most %d digits before the point", quantityDigitsMax)
	}
	return d.amount(into, n, quantityDecimals)
}

// percentage reads a tax rate.
func (d *decoder) percentage(into *num.Amount) strictjson.State {
	n, st := d.Number("a number")
	if st != strictjson.Taken {
		return st
	}
	if n.Negative() || n.Magnitude() > 3 {
		return d.Refuse(fault.FieldNotValid, "must be between 0 and 100")
	}
	if st := d.amount(into, n, rateDecimals); st != strictjson.Taken {
		return st
	}
	if hundred, ok := n.Scaled(rateDecimals); !ok || hundred > 100_0000 {
		return d.Refuse(fault.FieldNotValid, "must be between 0 and 100")
	}
	return strictjson.Taken
}

// quota reads how much one unit is taxed with, in minor units.
func (d *decoder) quota(into *num.Amount) strictjson.State {
	n, st := d.Number("a number")
	if st != strictjson.Taken {
		return st
	}
	if n.Zero() || n.Negative() || n.Magnitude() > quotaDigitsMax {
		return d.Refuse(fault.FieldNotValid, "must be greater than 0, with at most %d digits before the point", quotaDigitsMax)
	}
	return d.amount(into, n, rateDecimals)
}

// perUnit reads a number that may be absent.
func (d *decoder) perUnit(read func(*num.Amount) strictjson.State) *num.Amount {
	var value num.Amount
	if read(&value) != strictjson.Taken {
		return nil
	}
	return &value
}

// amount keeps a size that is known to be small enough but for its decimals.
func (d *decoder) amount(into *num.Amount, n strictjson.Decimal, decimals int) strictjson.State {
	value, ok := n.Scaled(n.Decimals())
	if n.Decimals() > decimals || !ok {
		return d.Refuse(fault.FieldNotValid, "must have at most %d decimals", decimals)
	}
	*into = num.MakeAmount(int64(value), uint32(n.Decimals()))
	return strictjson.Taken
}
