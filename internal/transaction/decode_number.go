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
)

// integer reads an amount in minor units or a count.
func (d *decoder) integer(into *int64) strictjson.State { return d.Integer(into, AmountMax) }

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

// amount keeps a size that is known to be small enough but for its decimals.
func (d *decoder) amount(into *num.Amount, n strictjson.Decimal, decimals int) strictjson.State {
	value, ok := n.Scaled(n.Decimals())
	if n.Decimals() > decimals || !ok {
		return d.Refuse(fault.FieldNotValid, "must have at most %d decimals", decimals)
	}
	*into = num.MakeAmount(int64(value), uint32(n.Decimals()))
	return strictjson.Taken
}
