package en16931

import (
	"math/big"
	"strings"
)

func (c *checker) totals() {
	t := &c.d.Totals
	c.need("BR-12", "BT-106", t.Lines.Given())
	c.need("BR-13", "BT-109", t.Net.Given())
	c.need("BR-14", "BT-112", t.Gross.Given())
	c.need("BR-15", "BT-115", t.Due.Given())
	c.cents("BR-DEC-09", "BT-106", t.Lines)
	c.cents("BR-DEC-10", "BT-107", t.Allowances)
	c.cents("BR-DEC-11", "BT-108", t.Charges)
	c.cents("BR-DEC-12", "BT-109", t.Net)
	c.cents("BR-DEC-13", "BT-110", t.Tax)
	c.cents("BR-DEC-14", "BT-112", t.Gross)
	c.cents("BR-DEC-15", "BT-111", t.TaxAccounting)
	c.cents("BR-DEC-16", "BT-113", t.Paid)
	c.cents("BR-DEC-17", "BT-114", t.Rounding)
	c.cents("BR-DEC-18", "BT-115", t.Due)

	var lines, allowances, charges, net, gross, due exact
	for i := range c.d.Lines {
		lines.add(c.d.Lines[i].Net)
	}
	for i := range c.d.Allowances {
		allowances.add(c.d.Allowances[i].Amount)
	}
	for i := range c.d.Charges {
		charges.add(c.d.Charges[i].Amount)
	}
	const sum = "is not the sum of its parts"
	c.must("BR-CO-10", "BT-106", lines.equals(t.Lines), sum)
	c.must("BR-CO-11", "BT-107", allowances.equals(t.Allowances) || !t.Allowances.Given() && len(c.d.Allowances) == 0, sum)
	c.must("BR-CO-12", "BT-108", charges.equals(t.Charges) || !t.Charges.Given() && len(c.d.Charges) == 0, sum)
	net.add(t.Lines).sub(t.Allowances).add(t.Charges)
	c.must("BR-CO-13", "BT-109", net.equals(t.Net), sum)
	gross.add(t.Net).add(t.Tax)
	c.must("BR-CO-15", "BT-112", gross.equals(t.Gross), sum)
	due.add(t.Gross).sub(t.Paid).add(t.Rounding)
	c.must("BR-CO-16", "BT-115", due.equals(t.Due), sum)
}

func (c *checker) breakdown() {
	d := c.d
	c.need("BR-CO-18", "BG-23", len(d.Breakdown) > 0)
	var tax exact
	for i := range d.Breakdown {
		c.index = i
		s := &d.Breakdown[i]
		c.need("BR-45", "BT-116", s.Taxable.Given())
		c.need("BR-46", "BT-117", s.Tax.Given())
		c.need("BR-47", "BT-118", s.Category != "")
		c.need("BR-48", "BT-119", s.Rate.Given() || s.Category == "O")
		c.cents("BR-DEC-19", "BT-116", s.Taxable)
		c.cents("BR-DEC-20", "BT-117", s.Tax)
		if s.Category != "" {
			c.must("BR-CL-17", "BT-118", among(categories, s.Category), notListed)
		}
		if s.ReasonCode != "" {
			c.must("BR-CL-22", "BT-121", among(exemptionCodes, strings.ToUpper(s.ReasonCode)), notListed)
		}
		c.must("BR-CO-17", "BT-117", taxNearRate(s), "is not the taxable amount times the rate")
		tax.add(s.Tax)
	}
	c.index = -1
	c.must("BR-CO-14", "BT-110", len(d.Breakdown) == 0 || !d.Totals.Tax.Given() || tax.equals(d.Totals.Tax), "is not the sum of its parts")
}

// taxNearRate is BR-CO-17 as it is executed: less than one unit of difference,
// and no whole unit of tax at a rate that rounds to nothing.
func taxNearRate(s *TaxSubtotal) bool {
	if !s.Tax.Given() || !s.Taxable.Given() {
		return true
	}
	if !s.Rate.Given() || roundsToZero(s.Rate) {
		return roundsToZero(s.Tax)
	}
	return withinOne(s)
}

// withinOne: | |tax| − |taxable| × rate | < 1.
func withinOne(s *TaxSubtotal) bool {
	expected := percentOf(s.Taxable, s.Rate) // hundredths
	tax := scaled(s.Tax, exactScale)
	tax.Abs(tax)
	expected.Mul(expected, power10(exactScale-2))
	return tax.Sub(tax, expected).CmpAbs(power10(exactScale)) < 0
}

// roundsToZero follows XPath's round: half goes up, so 0.5 is 1 and -0.5 is 0.
func roundsToZero(d Decimal) bool {
	twice := new(big.Int).Mul(big.NewInt(d.unscaled), big.NewInt(2))
	one := power10(int(d.scale))
	return twice.Cmp(one) < 0 && twice.Cmp(new(big.Int).Neg(one)) >= 0
}

// category is what EN 16931 says of one VAT category.
type category struct {
	code, rules string // the code, and how the rules call it
	rate        rateRule
	reason      reasonRule
	byRate      bool // one subtotal for each rate; otherwise exactly one
	sellerVAT   bool // a VAT number, not just any tax number, of the seller
	buyer       buyerRule
}

type rateRule uint8

const (
	rateZero rateRule = iota
	ratePositive
	rateAny
	rateAbsent
)

type reasonRule uint8

const (
	reasonForbidden reasonRule = iota
	reasonRequired
)

type buyerRule uint8

const (
	buyerAny buyerRule = iota
	buyerIdentified
	buyerVAT
)

var categoryTable = [...]category{
	{code: "S", rules: "BR-S-", rate: ratePositive, byRate: true},
	{code: "Z", rules: "BR-Z-"},
	{code: "E", rules: "BR-E-", reason: reasonRequired},
	{code: "AE", rules: "BR-AE-", reason: reasonRequired, buyer: buyerIdentified},
	{code: "K", rules: "BR-IC-", reason: reasonRequired, sellerVAT: true, buyer: buyerVAT},
	{code: "G", rules: "BR-G-", reason: reasonRequired, sellerVAT: true},
	{code: "O", rules: "BR-O-", rate: rateAbsent, reason: reasonRequired},
	{code: "L", rules: "BR-AF-", rate: rateAny, byRate: true},
	{code: "M", rules: "BR-AG-", rate: rateAny, byRate: true},
}

// categories checks everything that belongs to the VAT categories: nine times
// the same ten rules, with what differs in the table.
func (c *checker) categories() {
	for i := range categoryTable {
		k := &categoryTable[i]
		lines, allowances, charges := c.uses(k.code)
		subtotals := 0
		for j := range c.d.Breakdown {
			if c.d.Breakdown[j].Category == k.code {
				subtotals++
				c.index = j
				c.subtotal(k, &c.d.Breakdown[j])
			}
		}
		c.index = -1
		used := lines || allowances || charges
		if !used && subtotals == 0 {
			continue
		}
		if k.byRate {
			c.must(k.rules+"01", "BG-23", used == (subtotals > 0), "does not have the categories of the lines")
		} else {
			c.must(k.rules+"01", "BG-23", used && subtotals == 1, "must have the categories of the lines, each once")
		}
		for _, level := range []struct {
			used bool
			rule string
		}{{lines, "02"}, {allowances, "03"}, {charges, "04"}} {
			if level.used {
				c.identified(k, k.rules+level.rule)
			}
		}
		c.rates(k)
	}
	c.intraCommunity()
	c.notSubject()
	c.splitPayment()
}

// uses says where a category occurs.
func (c *checker) uses(code string) (lines, allowances, charges bool) {
	for i := range c.d.Lines {
		lines = lines || c.d.Lines[i].Category == code
	}
	for i := range c.d.Allowances {
		allowances = allowances || c.d.Allowances[i].Category == code
	}
	for i := range c.d.Charges {
		charges = charges || c.d.Charges[i].Category == code
	}
	return lines, allowances, charges
}

// identified: which numbers the parties must show.
func (c *checker) identified(k *category, rule string) {
	s, b := &c.d.Seller, &c.d.Buyer
	represented := c.d.TaxRepresentative != nil && c.d.TaxRepresentative.VATID != ""
	if k.rate == rateAbsent {
		c.must(rule, "BT-31", s.VATID == "" && !represented, "may not stand in a document that is not subject to VAT")
		c.must(rule, "BT-48", b.VATID == "", "may not stand in a document that is not subject to VAT")
		return
	}
	c.need(rule, "BT-31", s.VATID != "" || represented || !k.sellerVAT && s.TaxID != "")
	switch k.buyer {
	case buyerIdentified:
		c.need(rule, "BT-48", b.VATID != "" || b.LegalID.ID != "")
	case buyerVAT:
		c.need(rule, "BT-48", b.VATID != "")
	}
}

// rates: -05 on lines, -06 on allowances, -07 on charges.
func (c *checker) rates(k *category) {
	fits := func(rate Decimal) bool {
		switch k.rate {
		case ratePositive:
			return rate.Sign() > 0
		case rateAny:
			return rate.Given() && rate.Sign() >= 0
		case rateAbsent:
			return !rate.Given()
		}
		return rate.Given() && rate.Sign() == 0
	}
	const text = "does not fit the category"
	for i := range c.d.Lines {
		c.index = i
		c.must(k.rules+"05", "BT-152", c.d.Lines[i].Category != k.code || fits(c.d.Lines[i].Rate), text)
	}
	for i := range c.d.Allowances {
		c.index = i
		c.must(k.rules+"06", "BT-96", c.d.Allowances[i].Category != k.code || fits(c.d.Allowances[i].Rate), text)
	}
	for i := range c.d.Charges {
		c.index = i
		c.must(k.rules+"07", "BT-103", c.d.Charges[i].Category != k.code || fits(c.d.Charges[i].Rate), text)
	}
	c.index = -1
}

// subtotal: -08 the taxable amount, -09 the tax, -10 the reason.
func (c *checker) subtotal(k *category, s *TaxSubtotal) {
	var sum exact
	same := func(code string, rate Decimal) bool {
		return code == k.code && (!k.byRate || rate.Equal(s.Rate) || rate.Given() && s.Rate.Given() && equalValues(rate, s.Rate))
	}
	for i := range c.d.Lines {
		if same(c.d.Lines[i].Category, c.d.Lines[i].Rate) {
			sum.add(c.d.Lines[i].Net)
		}
	}
	for i := range c.d.Charges {
		if same(c.d.Charges[i].Category, c.d.Charges[i].Rate) {
			sum.add(c.d.Charges[i].Amount)
		}
	}
	for i := range c.d.Allowances {
		if same(c.d.Allowances[i].Category, c.d.Allowances[i].Rate) {
			sum.sub(c.d.Allowances[i].Amount)
		}
	}
	c.must(k.rules+"08", "BT-116", !s.Taxable.Given() || sum.equals(s.Taxable), "is not the sum of the lines of its category")
	if k.byRate {
		c.must(k.rules+"09", "BT-117", !s.Tax.Given() || !s.Taxable.Given() || withinOne(s), "is not the taxable amount times the rate")
	} else {
		c.must(k.rules+"09", "BT-117", s.Tax.Sign() == 0, "must be 0 in this category")
	}
	has := s.Reason != "" || s.ReasonCode != ""
	if k.reason == reasonRequired {
		c.need(k.rules+"10", "BT-120", has)
	} else {
		c.must(k.rules+"10", "BT-120", !has, "may not be given in this category")
	}
}

func equalValues(a, b Decimal) bool { return a.Trim(0) == b.Trim(0) }

// intraCommunity: BR-IC-11 and BR-IC-12.
func (c *checker) intraCommunity() {
	for i := range c.d.Breakdown {
		if c.d.Breakdown[i].Category != "K" {
			continue
		}
		v := &c.d.Delivery
		c.need("BR-IC-11", "BT-72", v.Date != "" || c.d.Period != Period{})
		c.need("BR-IC-12", "BT-80", v.Address.Country != "")
		return
	}
}

// notSubject: BR-O-11 to BR-O-14, nothing else beside "not subject to VAT".
func (c *checker) notSubject() {
	outside := false
	for i := range c.d.Breakdown {
		outside = outside || c.d.Breakdown[i].Category == "O"
	}
	if !outside {
		return
	}
	const text = "may not have another category beside one that is not subject to VAT"
	c.must("BR-O-11", "BG-23", len(c.d.Breakdown) == 1, text)
	for i := range c.d.Lines {
		c.index = i
		c.must("BR-O-12", "BT-151", c.d.Lines[i].Category == "O" || c.d.Lines[i].Category == "", text)
	}
	for i := range c.d.Allowances {
		c.index = i
		c.must("BR-O-13", "BT-95", c.d.Allowances[i].Category == "O", text)
	}
	for i := range c.d.Charges {
		c.index = i
		c.must("BR-O-14", "BT-102", c.d.Charges[i].Category == "O", text)
	}
	c.index = -1
}

// splitPayment: BR-B-01 and BR-B-02, Italy's own category.
func (c *checker) splitPayment() {
	lines, allowances, charges := c.uses("B")
	if !lines && !allowances && !charges {
		return
	}
	italian := c.d.Seller.Address.Country == "IT" && c.d.Buyer.Address.Country == "IT"
	c.must("BR-B-01", "BT-151", italian, "is a category for domestic Italian invoices")
	l, a, h := c.uses("S")
	c.must("BR-B-02", "BT-151", !l && !a && !h, "may not stand beside the standard rate")
}
