package en16931

import (
	"math/big"
	"math/bits"
)

func (c *checker) line(l *Line) {
	c.need("BR-21", "BT-126", l.ID != "")
	c.need("BR-22", "BT-129", l.Quantity.Given())
	c.need("BR-23", "BT-130", l.Unit != "" && l.Quantity.Given())
	c.need("BR-24", "BT-131", l.Net.Given())
	c.need("BR-25", "BT-153", l.Item.Name != "")
	c.need("BR-26", "BT-146", l.Price.Net.Given())
	c.need("BR-CO-04", "BT-151", l.Category != "")
	c.must("BR-27", "BT-146", l.Price.Net.Sign() >= 0, "is negative")
	c.must("BR-28", "BT-148", l.Price.Gross.Sign() >= 0, "is negative")
	c.cents("BR-DEC-23", "BT-131", l.Net)
	c.period("BR-30", "BT-135", l.Period)
	if l.Category != "" {
		c.must("BR-CL-18", "BT-151", among(categories, l.Category), notListed)
	}
	if l.Unit != "" && l.Unit != c.unit {
		known := among(units, l.Unit)
		c.must("BR-CL-23", "BT-130", known, notListed)
		if known {
			c.unit = l.Unit // most documents use one or two units: look each up once
		}
	}
	if l.Object.Scheme != "" {
		c.must("BR-CL-07", "BT-128", among(objectSchemes, l.Object.Scheme), notListed)
	}
	for i := range l.Allowances {
		c.allowance(&l.Allowances[i], lineAllowances)
	}
	for i := range l.Charges {
		c.allowance(&l.Charges[i], lineCharges)
	}
	c.item(&l.Item)
}

func (c *checker) item(i *Item) {
	if i.StandardID.ID != "" {
		c.need("BR-64", "BT-157", i.StandardID.Scheme != "")
		c.scheme("BR-CL-21", "BT-157", i.StandardID)
	}
	for _, class := range i.Classes {
		c.need("BR-65", "BT-158", class.Scheme != "")
		if class.Scheme != "" {
			c.must("BR-CL-13", "BT-158", among(classSchemes, class.Scheme), notListed)
		}
	}
	if i.Origin != "" {
		c.must("BR-CL-15", "BT-159", among(countries, i.Origin), notListed)
	}
	for _, a := range i.Attributes {
		c.need("BR-54", "BG-32", a.Name != "" && a.Value != "")
	}
}

// lineAdds is Peppol's R120: net = quantity × (price ÷ base quantity) + charges
// − allowances, within two hundredths (half a forint in Hungary's currency).
func (c *checker) lineAdds(l *Line) bool {
	if !l.Quantity.Given() || !l.Price.Net.Given() || !l.Net.Given() {
		return true // other rules speak of that
	}
	if ok, decided := c.lineAddsShort(l); decided {
		return ok
	}
	base := l.Price.BaseQuantity
	if !base.Given() || base.Sign() == 0 {
		base = Dec(1, 0)
	}
	// All is multiplied with the base quantity, so that nothing is divided.
	const scale = 2 * exactScale
	var difference exact
	difference.add(l.Net)
	for i := range l.Allowances {
		difference.add(l.Allowances[i].Amount)
	}
	for i := range l.Charges {
		difference.sub(l.Charges[i].Amount)
	}
	left := new(big.Int).Mul(difference.total(), scaled(base, exactScale))
	product := new(big.Int).Mul(big.NewInt(l.Quantity.unscaled), big.NewInt(l.Price.Net.unscaled))
	product.Mul(product, power10(scale-int(l.Quantity.scale)-int(l.Price.Net.scale)))
	slack := Dec(2, 2)
	if c.d.Currency == "HUF" {
		slack = Dec(5, 1)
	}
	limit := new(big.Int).Mul(scaled(slack, exactScale), scaled(base, exactScale))
	return left.Sub(left, product).CmpAbs(limit.Abs(limit)) <= 0
}

// lineAddsShort decides lines as people write them in 128 bits, without a base
// quantity; thousands of them are checked in a document.
func (c *checker) lineAddsShort(l *Line) (ok, decided bool) {
	shift := int(l.Quantity.scale) + int(l.Price.Net.scale) - 2
	if l.Price.BaseQuantity.given || c.d.Currency == "HUF" || shift < 0 || shift > digitsMax-1 || len(l.Allowances)+len(l.Charges) > 0 || l.Net.scale > 2 {
		return false, false
	}
	net := l.Net.unscaled * [...]int64{100, 10, 1}[l.Net.scale]
	if abs(l.Net.unscaled) > smallMax || (l.Quantity.Sign() < 0) != (net < 0) && net != 0 || l.Price.Net.Sign() < 0 {
		return false, false
	}
	hi, lo := bits.Mul64(uint64(abs(l.Quantity.unscaled)), uint64(l.Price.Net.unscaled))
	wantHi, wantLo := bits.Mul64(uint64(abs(net)), pow10(shift))
	if hi < wantHi || hi == wantHi && lo < wantLo {
		hi, lo, wantHi, wantLo = wantHi, wantLo, hi, lo
	}
	lo, borrow := bits.Sub64(lo, wantLo, 0)
	hi, _ = bits.Sub64(hi, wantHi, borrow)
	return hi == 0 && lo <= 2*pow10(shift), true
}

// percentAdds is Peppol's R040: amount = base × percentage, within two hundredths.
func percentAdds(a *AllowanceCharge) bool {
	if !a.Percent.Given() || !a.Base.Given() {
		return true
	}
	product := new(big.Int).Mul(big.NewInt(a.Base.unscaled), big.NewInt(a.Percent.unscaled))
	shift := int(a.Base.scale) + int(a.Percent.scale) + 2
	const scale = 2*exactScale + 2
	product.Mul(product, power10(scale-shift))
	difference := scaled(a.Amount, scale)
	return difference.Sub(difference, product).CmpAbs(scaled(Dec(2, 2), scale)) <= 0
}
