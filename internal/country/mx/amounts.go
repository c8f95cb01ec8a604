package mx

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
)

// levy is one tax of a concept, as SAT's catalogues name it.
type levy struct {
	tax      string // c_Impuesto: 001 ISR, 002 IVA, 003 IEPS
	exempt   bool   // TipoFactor Exento: no rate, no amount
	withheld bool
	local    bool   // of a state: not among SAT's taxes, see local.go
	quota    bool   // TipoFactor Cuota: rate is millionths of a peso for one of the concept's units
	rate     uint64 // in 1/10,000 per cent: 16 % is 160000, which is TasaOCuota 0.160000
}

// concept is one line of the voucher, in minor units, never negative.
type concept struct {
	item     int // index in the transaction
	importe  int64
	own      int64  // the line's own discount
	discount int64  // own, and its share of discount lines
	unit     uint64 // ValorUnitario in millionths of the currency's unit
	levies   []levy
	amounts  []int64 // one per levy
	units    int64   // what a quota is for, in millionths
	sale     string  // of a global invoice of several sales: the sale's number
}

func (c *concept) base() int64 { return c.importe - c.discount }

const (
	rateHundred   = 1_000_000 // 100 % as a levy's rate
	unitDecimals  = 6         // of ValorUnitario
	shiftCentsMax = 50
)

// scaled is a percentage as a levy's rate. Transactions have at most 4 decimals.
func scaled(rate num.Amount) uint64 {
	value, exp := rate.Value(), rate.Exp()
	for ; exp < 4; exp++ {
		value *= 10
	}
	for ; exp > 4; exp-- {
		value /= 10
	}
	return uint64(max(value, 0))
}

// multiplied is a × b ÷ d, and what is left; a, b and d are positive and the
// result fits.
func multiplied(a, b, d uint64) (quotient, rest uint64) {
	hi, lo := bits.Mul64(a, b)
	if hi >= d {
		return ^uint64(0), 0
	}
	return bits.Div64(hi, lo, d)
}

// unitPrice is importe ÷ quantity with six decimals; false when it does not
// fit or comes out as nothing, which SAT refuses (CFDI40166).
func unitPrice(importe int64, decimals int, quantity num.Amount) (uint64, bool) {
	value, exp := quantity.Value(), quantity.Exp()
	if value <= 0 || int(exp)+unitDecimals-decimals > 18 || decimals > unitDecimals {
		return 0, false
	}
	unit, rest := multiplied(uint64(importe), power(int(exp)+unitDecimals-decimals), uint64(value))
	if rest >= uint64(value)-rest {
		unit++
	}
	return unit, unit > 0 && unit < 1e18
}

func power(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// share splits an amount over weights: in proportion, rounded down, and what is
// left goes to the largest remainders, the first of equals first. The shares
// add up exactly, and none is larger than its weight if the amount is not
// larger than their sum.
func share(amount int64, weights []int64) []int64 {
	shares := make([]int64, len(weights))
	var sum int64
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return shares
	}
	rests := make([]uint64, len(weights))
	left := amount
	for i, w := range weights {
		q, r := multiplied(uint64(amount), uint64(w), uint64(sum))
		shares[i], rests[i] = int64(q), r
		left -= int64(q)
	}
	for _, i := range byRest(rests) {
		if left == 0 {
			break
		}
		shares[i]++
		left--
	}
	return shares
}

// byRest lists indices from the largest remainder to the smallest.
func byRest(rests []uint64) []int {
	order := make([]int, len(rests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rests[b], rests[a]) })
	return order
}

// group is the lines that share their taxes: concepts, and the discounts on them.
type group struct {
	concepts []*concept
	levies   []levy
	lowered  int64   // what the discounts take from the net amounts
	amounts  []int64 // per levy, of all lines together, discounts subtracted
	first    int     // index of the first discount line, -1 without any
}

// settle spreads the group's discounts over its concepts and finds the taxes
// of each, so that what the buyer owes stays exactly what the lines add up to.
//
// SAT takes a concept's tax only if it is its base times the rate, rounded down
// or up (CFDI40186 and those of its kind). So every tax of a lowered concept is
// one of these two, and those rounded up are chosen by the largest remainders.
// Where no choice adds up, because each of many discount lines was rounded by
// itself, single cents move between the discount and the tax; the total does
// not change. False: no way was found, or the discounts exceed the concepts.
func (g *group) settle() bool {
	weights := make([]int64, len(g.concepts))
	var sum int64
	for i, c := range g.concepts {
		weights[i] = c.importe - c.own
		sum += weights[i]
	}
	if g.lowered == 0 {
		return true // the lines stand as they are
	}
	if g.lowered > sum || g.compound() {
		return false
	}
	owed := sum - g.lowered
	for j := range g.levies {
		owed += g.levies[j].signed(g.amounts[j])
	}
	for step := range 2*shiftCentsMax + 1 {
		shift := int64(step+1) / 2
		if step%2 == 1 {
			shift = -shift
		}
		if lowered := g.lowered + shift; lowered >= 0 && lowered <= sum && g.try(share(lowered, weights), owed) {
			return true
		}
	}
	return false
}

// compound reports whether one tax of the group is due on another, or on no price
// at all: then no choice of roundings is tried.
func (g *group) compound() bool {
	ieps, iva := false, false
	for _, l := range g.levies {
		if l.quota {
			return true
		}
		ieps = ieps || l.tax == taxIEPS && !l.withheld
		iva = iva || l.tax == taxIVA && !l.withheld && l.rate > 0
	}
	return ieps && iva
}

func (l levy) signed(amount int64) int64 {
	if l.withheld {
		return -amount
	}
	return amount
}

// try gives the concepts these discounts, and reports whether taxes exist with
// which the group comes to what is owed.
func (g *group) try(discounts []int64, owed int64) bool {
	for i, c := range g.concepts {
		c.discount = c.own + discounts[i]
		owed -= c.base()
	}
	// owed is now what the taxes must come to.
	floors := make([]int64, len(g.levies))
	ceilings := make([]int64, len(g.levies))
	wanted := make([]int64, len(g.levies))
	rests := make([][]uint64, len(g.levies))
	for j, l := range g.levies {
		rests[j] = make([]uint64, len(g.concepts))
		for i, c := range g.concepts {
			q, r := multiplied(uint64(c.base()), l.rate, rateHundred)
			c.amounts[j], rests[j][i] = int64(q), r
			floors[j] += int64(q)
			ceilings[j] += int64(q)
			if r > 0 {
				ceilings[j]++
			}
		}
		wanted[j] = min(max(g.amounts[j], floors[j]), ceilings[j])
		owed -= l.signed(wanted[j])
	}
	for j, l := range g.levies {
		target := wanted[j] + l.signed(owed)
		next := min(max(target, floors[j]), ceilings[j])
		owed -= l.signed(next - wanted[j])
		wanted[j] = next
	}
	if owed != 0 {
		return false
	}
	for j := range g.levies {
		up := wanted[j] - floors[j]
		for _, i := range byRest(rests[j]) {
			if up == 0 {
				break
			}
			g.concepts[i].amounts[j]++
			up--
		}
	}
	return true
}

// money writes minor units with the currency's decimals.
func money(minor int64, decimals int) string { return amount.Text(minor, decimals) }

// precise writes a unit price with as many decimals as it needs, at least the currency's.
func precise(unit uint64, decimals int) string {
	return amount.New(int64(unit), unitDecimals).Trimmed(decimals)
}
