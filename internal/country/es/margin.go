package es

import (
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Regimes that are taxed on the margin: the record breaks down the margin, its
// total is the price, and the invoice shows no tax (Ley 37/1992, articles 137, 138,
// 142 and 145; Real Decreto 1619/2012, articles 6.1.o, 6.1.p and 16).
const (
	regimeUsed   = "03" // used goods, art, antiques
	regimeTravel = "05" // travel agencies

	schemeMargin = "MARGIN" // of the classification that says the margin: "200000@21"
	marginRate   = "21"
)

// onMargin reports whether a code names one of the two.
func onMargin(code string) bool {
	_, regime, ok := readCode(code)
	return ok && (regime == regimeUsed || regime == regimeTravel)
}

// itemOnMargin reports whether a line is taxed so.
func itemOnMargin(item transaction.Item) bool {
	return slices.ContainsFunc(item.Taxes, func(t transaction.Tax) bool { return onMargin(t.Code) })
}

// margin is what of a line's price is taxed, in minor units and with its tax.
type margin struct {
	amount int64
	rate   num.Amount
}

// marginOf reads the margin of a line that costs so much. It is none below zero:
// a loss has no tax (article 137.Uno).
func marginOf(item *transaction.Item, price int64) (m margin, reason string) {
	text := sale.Marked(item, schemeMargin)
	if text == "" {
		return m, "needs the margin: a classification { scheme: MARGIN, code: AMOUNT@RATE } with the margin, tax included, in minor units (200000@21)"
	}
	whole, rate, said := strings.Cut(text, "@")
	if !said {
		rate = marginRate
	}
	var err, wrong error
	m.amount, err = strconv.ParseInt(whole, 10, 64)
	m.rate, wrong = num.AmountFromString(rate)
	known := rate == marginRate || rate == "10" || rate == "4"
	switch {
	case err != nil || wrong != nil || !known:
		return m, "must be a whole number of minor units, and after @ a rate of IVA: 21, 10 or 4"
	case price >= 0 && (m.amount < 0 || m.amount > price), price < 0 && (m.amount > 0 || m.amount < price):
		return m, "must not be more than the line, and has its sign; a loss is 0"
	}
	return m, ""
}

// split parts the margin into what is taxed and its tax.
func (m margin) split() (base, tax int64) {
	tax = amount.Within(m.amount, m.rate)
	return m.amount - tax, tax
}

// marginLine is the detail of a line that is taxed on its margin.
func marginLine(item *transaction.Item, i, main int, price int64) (d detail, m margin, faults []fault.Fault) {
	tax := item.Taxes[main]
	grade, regime, _ := readCode(tax.Code)
	d = detail{tax: taxIVA, regime: regime, grade: "S1"}
	refuse := func(member, reason string) (detail, margin, []fault.Fault) {
		return d, m, []fault.Fault{fault.At(sale.TaxPath(i, main, member), fault.ValidationMatchInvalid, "%s", reason)}
	}
	m, reason := marginOf(item, price)
	switch {
	case taxOf(tax.Regime) != taxIVA || tax.Regime == regimeOSS:
		return refuse("regime", "must be IVA where the margin is taxed")
	case reason != "":
		return refuse("code", "of a margin scheme "+reason)
	case !tax.Rate.IsZero():
		return refuse("rate", "must be 0 where the margin is taxed: the invoice shows no tax (articles 138 and 142)")
	case grade != "" && grade != "S1":
		return refuse("code", "must be "+regime+" or S1-"+regime+": a margin is subject and not exempt")
	}
	d.rate = m.rate.MinimalString()
	return d, m, nil
}
