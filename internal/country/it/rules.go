package it

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
)

// rule is one of SdI's checks that can be made without its registers: Elenco dei
// controlli 2.0 of 31/01/2025, and Allegato A 1.9.1 where it differs for FPR12.
// SdI refuses a document for each; here it is refused before it is sent, with
// the client's own path.
type rule struct {
	code string
	find func(d *invoice, say func(path, format string, args ...any))
}

// judged finds what SdI would refuse, and what the law does not let it take. today is that of Rome; empty: nobody asks.
func (d *invoice) judged(today string) []fault.Fault {
	var found []fault.Fault
	for _, r := range slices.Concat(partyRules(), kindRules(), lineRules(), groupRules(), sumRules(), []rule{{sdiwire.DateAhead, func(d *invoice, say func(string, string, ...any)) {
		if today != "" && d.date > today {
			say("transaction_date", "must not be after today, %s in Rome", today)
		}
	}}}) {
		r.find(d, func(path, format string, args ...any) {
			found = append(found, fault.At(path, fault.FieldNotValid, format+" (%s)", append(args, r.code)...))
		})
	}
	return append(found, d.lawful()...)
}

func todayInRome(now time.Time) string {
	if now.IsZero() {
		return ""
	}
	return now.In(rome()).Format(time.DateOnly)
}

// pecOfSdI are mailboxes of SdI itself.
var pecOfSdI = regexp.MustCompile(`(?i)^sdi[0-9]{2}@pec\.fatturapa\.it$`)

const (
	atAddress = "customer.electronic_address.id"
	atNumber  = "customer.tax_information.tax_number"
)

func partyRules() []rule {
	return []rule{
		{sdiwire.FormatDiffers, func(d *invoice, say func(string, string, ...any)) {
			if d.format != sdiwire.Private {
				say("customer", "makes a document of format %s, which is not made here", d.format)
			}
		}},
		{sdiwire.AddressLength, func(d *invoice, say func(string, string, ...any)) {
			if len(d.recipient) != len(sdiwire.NoAddress) {
				say(atAddress, "must have 7 characters: 6 are those of a public office, whose invoices (FPA12) must be signed with a qualified signature, which is not made here")
			}
		}},
		{sdiwire.AddressNotForeign, func(d *invoice, say func(string, string, ...any)) {
			if d.recipient == sdiwire.ForeignAddress && (d.buyer.id == "" || d.buyer.country == home) {
				say(atAddress, "is for buyers abroad; use 0000000, or nothing")
			}
		}},
		{sdiwire.PECOfSdI, func(d *invoice, say func(string, string, ...any)) {
			if pecOfSdI.MatchString(d.pec) {
				say(atAddress, "is a mailbox of SdI itself: it must be the buyer's")
			}
		}},
		{sdiwire.SellerVATUnknown, func(d *invoice, say func(string, string, ...any)) {
			if d.kind.side == buying && d.seller.country == home && !luhn(d.seller.id) {
				say(atNumber, "is no VAT number: its check digit is wrong")
			}
		}},
		{sdiwire.BuyerVATUnknown, func(d *invoice, say func(string, string, ...any)) {
			if d.buyer.country == home && d.buyer.id != "" && !luhn(d.buyer.id) {
				say(atNumber, "is no VAT number: its check digit is wrong")
			}
		}},
		{sdiwire.BuyerCodeUnknown, func(d *invoice, say func(string, string, ...any)) {
			if d.kind.side == selling && d.buyer.code != "" && !fiscalCode(d.buyer.code) {
				say("customer.tax_information.fiscal_code", "is no codice fiscale: its check character is wrong")
			}
		}},
		{sdiwire.BuyerTwoSubjects, func(d *invoice, say func(string, string, ...any)) {
			if d.buyer.id != "" && d.buyer.code == d.buyer.id {
				say("customer.tax_information.fiscal_code", "must differ from the VAT number, or be left out")
			}
		}},
		{sdiwire.BuyerNumberMissing, func(d *invoice, say func(string, string, ...any)) {
			if d.kind.side == selling && d.buyer.id == "" && d.buyer.code == "" {
				say(atNumber, "must not be empty: a buyer in Italy is named by a VAT number or a codice fiscale, which may also stand in fiscal_code")
			}
		}},
		{sdiwire.BothForeign, func(d *invoice, say func(string, string, ...any)) {
			if d.seller.id != "" && d.buyer.id != "" && d.seller.country != home && d.buyer.country != home {
				say(atNumber, "and the seller's are both foreign: one party must be Italian")
			}
		}},
	}
}

// kindRules are of TipoDocumento. At submit the company is not known; what
// compares it with the customer is found when the document is made.
func kindRules() []rule {
	of := func(codes string, find func(d *invoice, say func(string, string, ...any))) func(*invoice, func(string, string, ...any)) {
		return func(d *invoice, say func(string, string, ...any)) {
			if strings.Contains(codes, d.kind.code) {
				find(d, say)
			}
		}
	}
	const distinct = "TD01 TD02 TD03 TD06 TD16 TD17 TD18 TD19 TD20 TD24 TD25 TD28 TD29"
	return []rule{
		{sdiwire.SamePerson, of(distinct, func(d *invoice, say func(string, string, ...any)) {
			if d.seller.same(d.buyer) {
				say(atNumber, "must not be the company's own: %s needs two parties; a sale to oneself is TD27", d.kind.code)
			}
		})},
		{sdiwire.NotSamePerson, of("TD21 TD27", func(d *invoice, say func(string, string, ...any)) {
			if d.seller.id != "" && !d.seller.same(d.buyer) {
				say("customer", "must be the company itself in %s", d.kind.code)
			}
		})},
		{sdiwire.SellerCountryWrong, of("TD17 TD18 TD19 TD28", func(d *invoice, say func(string, string, ...any)) {
			if d.seller.country == home {
				say(atNumber, "must be foreign: %s is for sellers abroad, TD16 for those in Italy", d.kind.code)
			}
		})},
		{sdiwire.SellerCountryWrong, of("TD29", func(d *invoice, say func(string, string, ...any)) {
			if d.seller.country != "" && d.seller.country != home {
				say(atNumber, "must be Italian: TD29 is about sellers in Italy")
			}
		})},
		{sdiwire.SelfSupplyUntaxed, of("TD21", func(d *invoice, say func(string, string, ...any)) {
			for i := range d.lines {
				if d.lines[i].rate.IsZero() {
					say(atTax(i)+".rate", "must not be 0 in TD21")
				}
			}
		})},
		{sdiwire.BuyerVATMissing, of("TD16 TD17 TD18 TD19 TD20 TD22 TD23 TD28 TD29", func(d *invoice, say func(string, string, ...any)) {
			if d.seller.country != "" && d.buyer.id == "" && d.buyer.name != "" {
				say("supplier", "must have a VAT number: it is the buyer in %s", d.kind.code)
			}
		})},
		{sdiwire.BeforeOriginal, of("TD04", func(d *invoice, say func(string, string, ...any)) {
			if d.original.date != "" && d.date < d.original.date {
				say("transaction_date", "must not be before the day of the original, %s", d.original.date)
			}
		})},
		{sdiwire.NumberWithoutDigit, func(d *invoice, say func(string, string, ...any)) {
			if d.number != "" && !strings.ContainsAny(d.number, "0123456789") {
				say("transaction_number", "must have a digit")
			}
		}},
	}
}

func atTax(i int) string { return fmt.Sprintf("items.%d.tax_breakdowns.0", i) }

func lineRules() []rule {
	each := func(find func(l *line, at string, say func(string, string, ...any))) func(*invoice, func(string, string, ...any)) {
		return func(d *invoice, say func(string, string, ...any)) {
			for i := range d.lines {
				find(&d.lines[i], fmt.Sprintf("items.%d", i), say)
			}
		}
	}
	return []rule{
		{sdiwire.LineNaturaMissing, each(func(l *line, at string, say func(string, string, ...any)) {
			if l.rate.IsZero() && l.natura == "" {
				say(at+".tax_breakdowns", "must say why there is no tax")
			}
		})},
		{sdiwire.LineNaturaUnexpected, each(func(l *line, at string, say func(string, string, ...any)) {
			if !l.rate.IsZero() && l.natura != "" {
				say(at+".tax_breakdowns", "must not have a reason for no tax beside a rate")
			}
		})},
		{sdiwire.NaturaGeneric, each(func(l *line, at string, say func(string, string, ...any)) {
			if l.natura == "N2" || l.natura == "N3" || l.natura == "N6" {
				say(at+".tax_breakdowns", "must not have the plain %s", l.natura)
			}
		})},
		{sdiwire.RateFraction, each(func(l *line, at string, say func(string, string, ...any)) {
			if !l.rate.IsZero() && ofAmount(l.rate).units.Cmp(power(priceDecimals)) < 0 {
				say(at+".tax_breakdowns", "must not have a rate below 1 %%: 22 is written as 22")
			}
		})},
		{sdiwire.LineDiscountEmpty, each(func(l *line, at string, say func(string, string, ...any)) {
			if l.discount != nil && l.discount.units.Sign() == 0 {
				say(at+".discount", "must take something")
			}
		})},
		{sdiwire.LineTotalWrong, each(func(l *line, at string, say func(string, string, ...any)) {
			if l.fund.kind != "" {
				return // it has no price
			}
			price := l.price.rat()
			if l.discount != nil {
				price.Sub(price, l.discount.rat())
			}
			if off := price.Mul(price, ofAmount(l.quantity).rat()).Sub(price, ofCents(l.total).rat()); off.Abs(off).Cmp(big.NewRat(1, 100)) >= 0 {
				say(at+".quantity", "is so large that a price with eight decimals does not come to the line's %s", euros(l.total))
			}
		})},
		{sdiwire.LineWithholdingMissing, func(d *invoice, say func(string, string, ...any)) {
			for i := range d.lines {
				if d.lines[i].held && len(d.held) == 0 {
					say(fmt.Sprintf("items.%d.tax_breakdowns", i), "withholds a tax that the document does not sum")
				}
			}
		}},
	}
}

// groupRules are of DatiRiepilogo.
func groupRules() []rule {
	has := func(d *invoice, fits func(*group) bool) bool {
		return slices.ContainsFunc(d.groups, func(g group) bool { return fits(&g) })
	}
	return []rule{
		{sdiwire.SummariesMissing, func(d *invoice, say func(string, string, ...any)) {
			rates := map[string]bool{}
			for i := range d.lines {
				rates[percent(d.lines[i].rate)] = true
			}
			if len(d.groups) < len(rates) {
				say("items", "have more rates than the document sums")
			}
		}},
		{sdiwire.SplitReverse, func(d *invoice, say func(string, string, ...any)) {
			for i := range d.lines {
				if l := &d.lines[i]; l.due == dueByBuyer && strings.HasPrefix(l.natura, "N6") {
					say(atTax(i)+".code", "splits a payment of tax that the buyer owes anyway")
				}
			}
		}},
		{sdiwire.SumNaturaMissing, func(d *invoice, say func(string, string, ...any)) {
			if has(d, func(g *group) bool { return g.rate.IsZero() && g.natura == "" }) {
				say("items", "have a sum without tax that does not say why")
			}
		}},
		{sdiwire.SumNaturaUnexpected, func(d *invoice, say func(string, string, ...any)) {
			if has(d, func(g *group) bool { return !g.rate.IsZero() && g.natura != "" }) {
				say("items", "have a sum with a rate and a reason for no tax")
			}
		}},
		{sdiwire.RateNotSummed, func(d *invoice, say func(string, string, ...any)) {
			for i := range d.lines {
				if l := &d.lines[i]; !has(d, func(g *group) bool { return g.rate.Compare(l.rate) == 0 }) {
					say(atTax(i)+".rate", "is in no sum of the document")
				}
			}
		}},
		{sdiwire.NaturaNotSummed, func(d *invoice, say func(string, string, ...any)) {
			for i := range d.lines {
				if l := &d.lines[i]; l.natura != "" && !has(d, func(g *group) bool { return g.natura == l.natura }) {
					say(atTax(i)+".code", "is in no sum of the document")
				}
			}
		}},
	}
}

// sumRules are SdI's arithmetic, exact and with its tolerances.
func sumRules() []rule {
	return []rule{
		{sdiwire.TaxWrong, func(d *invoice, say func(string, string, ...any)) {
			for i := range d.groups {
				g := &d.groups[i]
				exact := new(big.Rat).Mul(ofCents(g.net).rat(), ofAmount(g.rate).rat())
				off := exact.Quo(exact, big.NewRat(100, 1)).Sub(exact, ofCents(g.tax).rat())
				if off.Abs(off).Cmp(big.NewRat(1, 100)) >= 0 {
					say("items", "of %s %% come to %s and a tax of %s", percent(g.rate), euros(g.net), euros(g.tax))
				}
			}
		}},
		{sdiwire.TaxableWrong, func(d *invoice, say func(string, string, ...any)) {
			sums := map[string]int64{}
			for i := range d.lines {
				sums[percent(d.lines[i].rate)] += d.lines[i].total
			}
			for i := range d.groups {
				sums[percent(d.groups[i].rate)] -= d.groups[i].net
			}
			for rate, off := range sums {
				if off >= 100 || off <= -100 {
					say("items", "of %s %% differ from their sum by %s", rate, euros(off))
				}
			}
		}},
	}
}
