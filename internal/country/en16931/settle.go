package en16931

import (
	"math/big"
	"math/bits"
)

// Settlement is what a transaction says about its sums, in minor units of the
// currency, and how the document may round.
type Settlement struct {
	Decimals int   // of the currency
	Gross    int64 // total_amount: what is payable in the end, prepayments included
	Paid     int64 // already paid, BT-113
	Taxes    []CategoryTax

	// ByCategory wants tax computed on the sum of a category and never taken
	// from the lines: Belgian law since 2026.
	ByCategory bool
}

// CategoryTax is the tax of all lines of one category and rate, as they were
// rounded one by one.
type CategoryTax struct {
	Category   string
	Rate       Decimal
	Amount     int64
	Lines      int
	Reason     string
	ReasonCode string
}

// slackMinor is how much the tax summed over the lines may differ from taxable
// amount times rate, in hundredths of the currency's unit: one for each line,
// and less than half a unit. The official rules take less than a whole one.
const slackMinor = 50

// Settle fills the breakdown and the totals from lines, allowances and charges.
//
// The sums of lines are exact, whatever happens. The tax of a category is the
// transaction's own while that is near enough to what EN 16931 computes;
// otherwise it is computed as EN 16931 says for all categories, and what the
// total then lacks stands in BT-114, so that the payable amount is the
// transaction's in any case. It answers the rounding amount in minor units.
func (d *Invoice) Settle(s Settlement) int64 {
	rows := d.subtotals(s)
	own := !s.ByCategory
	for i := range rows {
		own = own && rows[i].near(s.Decimals)
	}
	t := Totals{}
	var lines, allowances, charges, tax int64
	for i := range d.Lines {
		lines += minor(d.Lines[i].Net, s.Decimals)
	}
	for i := range d.Allowances {
		allowances += minor(d.Allowances[i].Amount, s.Decimals)
	}
	for i := range d.Charges {
		charges += minor(d.Charges[i].Amount, s.Decimals)
	}
	d.Breakdown = make([]TaxSubtotal, len(rows))
	for i := range rows {
		amount := rows[i].tax.Amount
		if !own {
			amount = rows[i].computed(s.Decimals)
		}
		tax += amount
		r := &rows[i].tax
		d.Breakdown[i] = TaxSubtotal{Taxable: Dec(rows[i].taxable, s.Decimals), Tax: Dec(amount, s.Decimals),
			Category: r.Category, Rate: r.Rate, Reason: r.Reason, ReasonCode: r.ReasonCode}
	}
	net := lines - allowances + charges
	rounding := s.Gross - net - tax
	t.Lines, t.Net, t.Tax = Dec(lines, s.Decimals), Dec(net, s.Decimals), Dec(tax, s.Decimals)
	t.Gross, t.Due = Dec(net+tax, s.Decimals), Dec(s.Gross-s.Paid, s.Decimals)
	if len(d.Allowances) > 0 {
		t.Allowances = Dec(allowances, s.Decimals)
	}
	if len(d.Charges) > 0 {
		t.Charges = Dec(charges, s.Decimals)
	}
	if s.Paid != 0 {
		t.Paid = Dec(s.Paid, s.Decimals)
	}
	if rounding != 0 {
		t.Rounding = Dec(rounding, s.Decimals)
	}
	t.TaxAccounting = d.Totals.TaxAccounting
	d.Totals = t
	return rounding
}

// subtotalRow is one row of the breakdown on its way.
type subtotalRow struct {
	tax     CategoryTax
	taxable int64
}

// subtotals gathers the taxable amounts; each row of s.Taxes is one.
func (d *Invoice) subtotals(s Settlement) []subtotalRow {
	rows := make([]subtotalRow, len(s.Taxes))
	for i := range s.Taxes {
		rows[i].tax = s.Taxes[i]
	}
	add := func(category string, rate Decimal, amount int64) {
		for i := range rows {
			if rows[i].tax.Category == category && (!rate.Given() || equalValues(rows[i].tax.Rate, rate)) {
				rows[i].taxable += amount
				return
			}
		}
		rows = append(rows, subtotalRow{tax: CategoryTax{Category: category, Rate: rate}, taxable: amount})
	}
	for i := range d.Lines {
		add(d.Lines[i].Category, d.Lines[i].Rate, minor(d.Lines[i].Net, s.Decimals))
	}
	for i := range d.Allowances {
		add(d.Allowances[i].Category, d.Allowances[i].Rate, -minor(d.Allowances[i].Amount, s.Decimals))
	}
	for i := range d.Charges {
		add(d.Charges[i].Category, d.Charges[i].Rate, minor(d.Charges[i].Amount, s.Decimals))
	}
	return rows
}

// near reports whether the tax of the lines may stand as it is.
func (r *subtotalRow) near(decimals int) bool {
	computed := new(big.Int).SetInt64(r.taxable)
	computed.Mul(computed, big.NewInt(r.tax.Rate.unscaled))
	computed = roundTo(computed, decimals+int(r.tax.Rate.scale)+2, 2)
	own := scaled(Dec(r.tax.Amount, decimals), max(2, decimals))
	own = roundTo(own, max(2, decimals), 2)
	own.Sub(own, computed)
	return own.IsInt64() && abs(own.Int64()) <= int64(r.tax.Lines) && abs(own.Int64()) < slackMinor
}

// computed is taxable × rate in minor units.
func (r *subtotalRow) computed(decimals int) int64 {
	n := new(big.Int).SetInt64(r.taxable)
	n.Mul(n, big.NewInt(r.tax.Rate.unscaled))
	return roundTo(n, decimals+int(r.tax.Rate.scale)+2, decimals).Int64()
}

// minor is an amount of this document in minor units; it has no more decimals than the currency.
func minor(d Decimal, decimals int) int64 {
	n := d.unscaled
	for i := int(d.scale); i < decimals; i++ {
		n *= 10
	}
	return n
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// priceDecimalsMax is how fine a net price may be written; six is what the
// strictest country takes.
const priceDecimalsMax = 6

// PriceFor finds the net price of a line: the least number of decimals, from
// the currency's own to six, at which quantity × price is the amount to half a
// minor unit. Where none does, the price is the whole amount and the base
// quantity the quantity. Both are positive; the caller puts a minus on the
// quantity of a negative line, because a price may not have one (BR-27).
//
// Failure policy: net prices at two decimals are what breaks the line rule of
// Peppol (R120) in most software with prices that include tax.
func PriceFor(amount int64, quantity Decimal, decimals int) Price {
	size := abs(amount)
	for scale := decimals; scale <= priceDecimalsMax; scale++ {
		price, ok := divide(size, quantity, scale-decimals)
		if ok && fits(price, quantity, size, scale-decimals) {
			return Price{Net: Dec(price, scale)}
		}
	}
	return Price{Net: Dec(size, decimals), BaseQuantity: quantity}
}

// divide is amount ÷ quantity with more decimals, rounded half up.
func divide(amount int64, quantity Decimal, more int) (int64, bool) {
	if quantity.unscaled <= 0 || int(quantity.scale)+more > digitsMax {
		return 0, false
	}
	q := uint64(quantity.unscaled)
	hi, lo := bits.Mul64(uint64(amount), pow10(int(quantity.scale)+more))
	if hi >= q {
		return 0, false
	}
	n, rest := bits.Div64(hi, lo, q)
	if rest >= q-rest {
		n++
	}
	return int64(n), n < pow10(digitsMax)
}

// fits: | quantity × price − amount | ≤ ½ minor unit.
func fits(price int64, quantity Decimal, amount int64, more int) bool {
	unit := pow10(more + int(quantity.scale))
	hi, lo := bits.Mul64(uint64(price), uint64(quantity.unscaled))
	wantHi, wantLo := bits.Mul64(uint64(amount), unit)
	if hi < wantHi || hi == wantHi && lo < wantLo {
		hi, lo, wantHi, wantLo = wantHi, wantLo, hi, lo
	}
	lo, borrow := bits.Sub64(lo, wantLo, 0)
	hi, _ = bits.Sub64(hi, wantHi, borrow)
	return hi == 0 && lo <= unit-lo && lo <= unit
}

func pow10(exponent int) uint64 {
	p := uint64(1)
	for range exponent {
		p *= 10
	}
	return p
}
