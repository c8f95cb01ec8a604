package transaction

import (
	"math/bits"
	"strconv"

	"github.com/invopop/gobl/num"

	"tributary/internal/fault"
)

// AmountMax is the largest size of a price, an amount or a total in minor
// units: 2^53−1, the largest integer that every JSON reader keeps exactly.
const AmountMax = 1<<53 - 1

const (
	rateHundred    = 1_000_000 // 100 % as a scaled rate
	factorDecimals = 18        // of a quantity; more would not fit the 64 bits of a num.Amount
)

// Calculate works out the amounts of every line and their sums.
//
// Integers are minor units and stay integers, so the currency does not matter
// here: one yen and one fils are both 1. Every product is taken exactly, in
// 128 bits, and rounded once, half away from zero.
//
//   - Tax included: gross = quantity × unit_price; net = gross ÷ (1 + Σ rates);
//     tax = gross − net, split in proportion to the rates. The last entry that
//     is not withheld takes the remainder, so that the entries add up.
//   - Tax added: net = quantity × unit_price; each tax = net × rate;
//     gross = net + taxes.
//   - Discount: taken from the rounded quantity × unit_price before anything
//     else, a rate of it rounded as everything here.
//   - Withheld: net × rate; it changes neither gross nor net.
//   - IEPS, Mexico's tax on single goods, is part of the base of the tax beside
//     it: that one's rate counts as rate × (1 + that of IEPS).
//   - Quota: quota × what it is for, with the line's sign, whatever the price;
//     taxes beside it are due on it as well.
//
// Lines are rounded and then summed; nothing is rounded again on the way to
// the totals, which is why the identities of [Totals] hold without exception.
// With faults the totals are meaningless.
func Calculate(items []Item) (Totals, []fault.Fault) {
	entries := 0
	for i := range items {
		entries += len(items[i].Taxes)
	}
	totals := Totals{Lines: make([]Line, len(items))}
	amounts := make([]int64, entries) // one block for all lines: this is on the path of every submit
	var faults []fault.Fault
	var gross, net, withheld wide
	for i := range items {
		n := len(items[i].Taxes)
		line := &totals.Lines[i]
		line.Taxes, amounts = amounts[:n:n], amounts[n:]
		if f, ok := line.calculate(i, &items[i]); !ok {
			faults = append(faults, f)
			continue
		}
		gross.add(line.Gross)
		net.add(line.Net)
		for j := range items[i].Taxes {
			if items[i].Taxes[j].Withheld() {
				withheld.add(line.Taxes[j])
			}
		}
	}
	if len(faults) > 0 {
		return totals, faults
	}
	tax := gross
	tax.subtract(net)
	var ok [4]bool
	totals.Gross, ok[0] = gross.amount()
	totals.Net, ok[1] = net.amount()
	totals.Tax, ok[2] = tax.amount()
	totals.Withheld, ok[3] = withheld.amount()
	if ok != [4]bool{true, true, true, true} {
		faults = append(faults, fault.At("items", fault.FieldNotValid, "must not add up to more than %d in size", int64(AmountMax)))
	}
	return totals, faults
}

// CheckPayments reports payments that do not add up to what is payable: the
// total less what is withheld. No payments at all are no contradiction.
func CheckPayments(payments []Payment, t Totals) []fault.Fault {
	if len(payments) == 0 {
		return nil
	}
	var sum wide
	for i := range payments {
		sum.add(payments[i].Amount)
	}
	paid, ok := sum.amount()
	switch {
	case !ok:
		return []fault.Fault{fault.At("payments", fault.FieldNotValid, "must not add up to more than %d in size", int64(AmountMax))}
	case paid != t.Payable():
		return []fault.Fault{fault.At("payments", fault.FieldNotValid,
			"must add up to the total less what is withheld, %d, but add up to %d", t.Payable(), paid)}
	}
	return nil
}

// calculate fills one line whose Taxes already have their length.
func (l *Line) calculate(index int, item *Item) (fault.Fault, bool) {
	rates, mode, f, ok := rateSum(index, item)
	if !ok {
		return f, false
	}
	amount, ok := multiply(item.UnitPrice, item.Quantity)
	if !ok {
		return lineFault(index, "unit_price", fault.FieldNotValid, "times quantity must not be more than "+
			strconv.FormatInt(AmountMax, 10)+" in size"), false
	}
	full := amount
	if item.Discount != nil {
		if l.Discount, ok = item.Discount.of(full); !ok {
			return lineFault(index, "discount.amount", fault.ValidationMatchInvalid,
				"must not be more than quantity times unit_price"), false
		}
		amount -= l.Discount
	}
	fixed, ok := l.quotas(item, amount)
	if !ok {
		return lineFault(index, "tax_breakdowns", fault.ValidationMatchInvalid,
			"must not have a quota that comes to more than the line"), false
	}
	if mode == Added {
		l.Net, l.NetDiscount = amount, l.Discount
		if l.Gross, ok = l.addTaxes(item, fixed); !ok {
			return lineFault(index, "unit_price", fault.FieldNotValid, "times quantity plus tax must not be more than "+
				strconv.FormatInt(AmountMax, 10)+" in size"), false
		}
	} else {
		l.Gross = amount
		l.Net, _ = scale(amount, rateHundred, rateHundred+rates)
		l.Net -= fixed
		l.splitTaxes(item, rates, fixed)
		if l.Discount != 0 {
			before, _ := scale(full, rateHundred, rateHundred+rates)
			l.NetDiscount = before - fixed - l.Net
		}
		if fixed != 0 && (l.Net < 0) != (amount < 0) {
			return lineFault(index, "tax_breakdowns", fault.ValidationMatchInvalid,
				"must not have a quota that comes to more than the line"), false
		}
	}
	for j := range item.Taxes {
		if item.Taxes[j].Withheld() {
			rate, _ := scaledRate(item.Taxes[j].Rate)
			l.Taxes[j], _ = scale(l.Net, rate, rateHundred)
		}
	}
	return fault.Fault{}, true
}

// of is what the discount takes from a line; false when that is more than the line.
func (d *LineDiscount) of(line int64) (int64, bool) {
	taken := d.Amount
	if d.Rate != nil {
		rate, ok := scaledRate(*d.Rate)
		if !ok {
			return 0, false
		}
		taken, _ = scale(max(line, -line), rate, rateHundred)
	}
	if taken < 0 || taken > max(line, -line) {
		return 0, false
	}
	if line < 0 {
		return -taken, true
	}
	return taken, true
}

// quotas works out the entries that are no percentage, and their sum; false where
// one is larger than any amount.
func (l *Line) quotas(item *Item, amount int64) (fixed int64, ok bool) {
	for j := range item.Taxes {
		tax := &item.Taxes[j]
		if tax.Quota == nil {
			continue
		}
		base := item.Quantity
		if tax.QuotaBase != nil {
			base = *tax.QuotaBase
		}
		// Both are positive and small: ten digits by twelve.
		due, fits := scale(tax.Quota.Value(), uint64(max(base.Value(), 0)), pow10(tax.Quota.Exp()+base.Exp()))
		if !fits {
			return 0, false
		}
		if amount < 0 {
			due = -due
		}
		l.Taxes[j] = due
		fixed += due
	}
	return fixed, fixed <= AmountMax && fixed >= -AmountMax
}

// addTaxes computes each tax on the net amount, and on what is due by quota, and
// returns the gross.
func (l *Line) addTaxes(item *Item, fixed int64) (int64, bool) {
	var gross wide
	gross.add(l.Net)
	for j := range item.Taxes {
		if item.Taxes[j].Withheld() {
			continue
		}
		if item.Taxes[j].Quota == nil {
			l.Taxes[j], _ = scale(l.Net+fixed, item.effective(j), rateHundred)
		}
		gross.add(l.Taxes[j])
	}
	return gross.amount()
}

// splitTaxes divides the tax inside the gross among the entries that have a rate.
// rates is their sum, fixed what the others come to.
func (l *Line) splitTaxes(item *Item, rates uint64, fixed int64) {
	rest, last := l.Gross-l.Net-fixed, -1
	for j := range item.Taxes {
		if !item.Taxes[j].Withheld() && item.Taxes[j].Quota == nil {
			last = j
		}
	}
	if last < 0 || rates == 0 {
		return // nothing to split: without rates net equals gross
	}
	tax := rest
	for j := range item.Taxes[:last] {
		if item.Taxes[j].Withheld() || item.Taxes[j].Quota != nil {
			continue
		}
		l.Taxes[j], _ = scale(tax, item.effective(j), rates)
		rest -= l.Taxes[j]
	}
	l.Taxes[last] = rest
}

// rateSum adds up the rates that are not withheld and finds the mode they share.
func rateSum(index int, item *Item) (sum uint64, mode string, f fault.Fault, ok bool) {
	for j := range item.Taxes {
		entry := &item.Taxes[j]
		rate, valid := scaledRate(entry.Rate)
		if !valid {
			return 0, "", taxFault(index, j, "rate", "must be between 0 and 100 with at most 4 decimals"), false
		}
		if entry.Withheld() {
			continue
		}
		if rate > 0 {
			rate = item.effective(j)
		}
		sum += rate
		own := entry.Mode
		if own == "" {
			own = Included
		}
		if mode != "" && mode != own {
			return 0, "", lineFault(index, "tax_breakdowns", fault.ValidationMatchInvalid,
				"must have the same application_mode in all entries that are not withheld"), false
		}
		mode = own
	}
	return sum, mode, fault.Fault{}, true
}

// effective is the rate of an entry on the net amount: its own, and where IEPS
// stands beside it, which belongs to its base, as much more. Rates above 100 %
// are no entry's own.
func (item *Item) effective(j int) uint64 {
	rate, _ := scaledRate(item.Taxes[j].Rate)
	if item.Taxes[j].Regime == IEPS {
		return rate
	}
	for k := range item.Taxes {
		if item.Taxes[k].Regime == IEPS {
			if also, ok := scaledRate(item.Taxes[k].Rate); ok {
				rate += (rate*also + rateHundred/2) / rateHundred
			}
		}
	}
	return rate
}

// scaledRate returns a percentage as an integer of 1/10,000 per cent.
func scaledRate(rate num.Amount) (uint64, bool) {
	value, exp := rate.Value(), rate.Exp()
	for exp > rateDecimals && value%10 == 0 && value != 0 {
		value, exp = value/10, exp-1
	}
	if value == 0 {
		return 0, true
	}
	if value < 0 || exp > rateDecimals || value > rateHundred {
		return 0, false
	}
	scaled := uint64(value) * pow10(rateDecimals-exp)
	return scaled, scaled <= rateHundred
}

// multiply returns price × quantity, rounded; false when one or both are too large.
func multiply(price int64, quantity num.Amount) (int64, bool) {
	value, exp := quantity.Value(), quantity.Exp()
	if exp > factorDecimals || price > AmountMax || price < -AmountMax {
		return 0, false
	}
	if value < 0 {
		value, price = -value, -price
	}
	return scale(price, uint64(value), pow10(exp))
}

// scale returns a × b ÷ d rounded half away from zero; false when the result
// is larger than AmountMax. The product is exact in 128 bits.
func scale(a int64, b, d uint64) (int64, bool) {
	size := uint64(a)
	if a < 0 {
		size = -size
	}
	hi, lo := bits.Mul64(size, b)
	if hi >= d {
		return 0, false
	}
	quotient, rest := bits.Div64(hi, lo, d)
	if rest >= d-rest { // twice the rest, without overflow
		quotient++
	}
	if quotient > AmountMax {
		return 0, false
	}
	if a < 0 {
		return -int64(quotient), true
	}
	return int64(quotient), true
}

func pow10(exp uint32) uint64 {
	p := uint64(1)
	for range exp {
		p *= 10
	}
	return p
}

// wide is a signed sum of 128 bits: 5,000 lines of the largest amount do not
// fit 64, yet their sum may be small when some of them are negative.
type wide struct {
	hi int64
	lo uint64
}

func (w *wide) add(x int64) {
	lo, carry := bits.Add64(w.lo, uint64(x), 0)
	w.lo, w.hi = lo, w.hi+x>>63+int64(carry)
}

func (w *wide) subtract(x wide) {
	lo, borrow := bits.Sub64(w.lo, x.lo, 0)
	w.lo, w.hi = lo, w.hi-x.hi-int64(borrow)
}

// amount returns the sum if it is an amount at all.
func (w wide) amount() (int64, bool) {
	value := int64(w.lo)
	if w.hi != value>>63 || value > AmountMax || value < -AmountMax {
		return 0, false
	}
	return value, true
}

func lineFault(index int, member string, code fault.Code, text string) fault.Fault {
	return fault.At("items."+strconv.Itoa(index)+"."+member, code, "%s", text)
}

func taxFault(index, entry int, member, text string) fault.Fault {
	return fault.At("items."+strconv.Itoa(index)+".tax_breakdowns."+strconv.Itoa(entry)+"."+member, fault.FieldNotValid,
		"%s", text)
}
