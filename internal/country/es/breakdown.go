package es

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

const (
	detailsMax  = 12                 // DetalleDesglose in a record
	amountMax   = 99_999_999_999_999 // cents: twelve digits before the point
	largeAmount = 10_000_000_000     // cents: from here on a record is a Macrodato
	tolerance   = 1000               // cents: by which the authority lets sums differ
	simpleMax   = 300_000            // cents: of a simplified invoice (Real Decreto 1619/2012, article 4.2)
	simpleLow   = 40_000             // cents: of those that article 4.2 does not name (article 4.1)
)

// detail is one line of Desglose: everything of one tax, regime, grade and rate.
type detail struct {
	tax       string // Impuesto
	regime    string // ClaveRegimen
	grade     string // CalificacionOperacion, or OperacionExenta when it begins with E
	rate      string // TipoImpositivo; "" where the grade has none
	surcharge string // TipoRecargoEquivalencia; "" without one

	base, amount, extra int64 // cents; extra is CuotaRecargoEquivalencia
}

// breakdown is what a transaction amounts to, in euro cents.
type breakdown struct {
	details          []detail
	base, tax, extra int64
	untaxed          int64 // of prices that are taxed on their margin: the rest
}

func (b *breakdown) total() int64 { return b.base + b.tax + b.extra + b.untaxed }
func (b *breakdown) quota() int64 { return b.tax + b.extra }

// negated is the same with every sign turned.
func (b breakdown) negated() breakdown {
	b.details = slices.Clone(b.details)
	for i := range b.details {
		d := &b.details[i]
		d.base, d.amount, d.extra = -d.base, -d.amount, -d.extra
	}
	b.base, b.tax, b.extra, b.untaxed = -b.base, -b.tax, -b.extra, -b.untaxed
	return b
}

func (d *detail) exempt() bool { return strings.HasPrefix(d.grade, "E") }

func (d *detail) write(w *xmltree.Writer) {
	graded, amount, extra := "sf:CalificacionOperacion", "", ""
	if d.exempt() {
		graded = "sf:OperacionExenta"
	}
	if d.rate != "" {
		amount = euros(d.amount)
	}
	if d.surcharge != "" {
		extra = euros(d.extra)
	}
	w.Group("sf:DetalleDesglose", "sf:Impuesto", d.tax, "sf:ClaveRegimen", d.regime, graded, d.grade,
		"?sf:TipoImpositivo", d.rate,
		"sf:BaseImponibleOimporteNoSujeto", euros(d.base), "?sf:CuotaRepercutida", amount, "?sf:TipoRecargoEquivalencia",
		d.surcharge, "?sf:CuotaRecargoEquivalencia", extra)
}

// euros writes cents as the authority wants amounts: 1234.50, -0.05.
func euros(cents int64) string { return amount.Text(cents, 2) }

// readEuros reads an amount that euros wrote.
func readEuros(text string) int64 {
	a, err := num.AmountFromString(text)
	if err != nil {
		return 0
	}
	return a.Rescale(2).Value()
}

// cents are minor units of a transaction in euros. What is too large for a record
// becomes something that is too large as well.
func cents(t *transaction.Transaction, minor int64) int64 {
	code := strings.ToUpper(t.CurrencyCode)
	if code == "EUR" || t.ExchangeRate == nil {
		return minor
	}
	decimals, _ := transaction.CurrencyExponent(code)
	if euro, ok := amount.Scaled(minor, 2-decimals, *t.ExchangeRate); ok {
		return euro
	}
	if minor < 0 {
		return -transaction.AmountMax
	}
	return transaction.AmountMax
}

// tally is a detail in the transaction's own minor units, with its place in the order of lines.
type tally struct {
	detail
	place int
}

// breakDown groups typed items by tax, regime, grade and rate. The faults are
// those of lines that no record can carry.
func breakDown(t *transaction.Transaction, items []transaction.Item, totals transaction.Totals) (breakdown, []fault.Fault) {
	groups := make(map[detail]*tally, 4)
	var faults []fault.Fault
	untaxed := int64(0)
	for i := range items {
		key, main, extra, wrong := detailOf(t, items[i], i)
		var on margin
		if wrong == nil && onMargin(items[i].Taxes[main].Code) {
			key, on, wrong = marginLine(&items[i], i, main, totals.Lines[i].Net)
		}
		if len(wrong) > 0 {
			faults = append(faults, wrong...)
			continue
		}
		g, ok := groups[key]
		if !ok {
			g = &tally{detail: key, place: len(groups)}
			groups[key] = g
		}
		line := &totals.Lines[i]
		if onMargin(items[i].Taxes[main].Code) {
			base, tax := on.split()
			g.base, g.amount, untaxed = g.base+base, g.amount+tax, untaxed+line.Net-on.amount
			continue
		}
		g.base += line.Net
		if items[i].Taxes[main].Regime == regimeOSS {
			g.base += line.Taxes[main] // nothing of what is paid is subject here, the tax of the other state included
		} else {
			g.amount += line.Taxes[main]
		}
		if extra >= 0 {
			g.extra += line.Taxes[extra]
		}
	}
	if len(faults) > 0 {
		return breakdown{}, faults
	}
	if len(groups) > detailsMax {
		return breakdown{}, []fault.Fault{fault.At("items", fault.FieldNotValid,
			"must not have more than %d different combinations of tax, rate and reason: a record has room for no more", detailsMax)}
	}
	return sumUp(groups, untaxed, func(minor int64) int64 { return cents(t, minor) })
}

func sumUp(groups map[detail]*tally, untaxed int64, in func(int64) int64) (breakdown, []fault.Fault) {
	out := breakdown{details: make([]detail, len(groups)), untaxed: in(untaxed)}
	for _, g := range groups {
		d := g.detail
		d.base, d.amount, d.extra = in(g.base), in(g.amount), in(g.extra)
		out.details[g.place] = d
	}
	for i := range out.details {
		d := &out.details[i]
		if size(d.base) > amountMax || size(d.amount) > amountMax || size(d.extra) > amountMax {
			return out, tooLarge()
		}
		out.base, out.tax, out.extra = out.base+d.base, out.tax+d.amount, out.extra+d.extra
	}
	if size(out.total()) > amountMax || size(out.quota()) > amountMax {
		return out, tooLarge()
	}
	return out, nil
}

func tooLarge() []fault.Fault {
	return []fault.Fault{fault.At("items", fault.FieldNotValid, "must not add up to more than %s euros", euros(amountMax))}
}

func size(v int64) int64 { return max(v, -v) }

// detailOf decides what a line is to the authority: the detail it belongs to
// and the indices of its tax and of its surcharge (-1: none).
func detailOf(t *transaction.Transaction, item transaction.Item, i int) (key detail, main, extra int, faults []fault.Fault) {
	main, extra = -1, -1
	for j := range item.Taxes {
		switch regime := item.Taxes[j].Regime; {
		case regime == transaction.Withholding:
		case regime == regimeSurcharge && extra < 0:
			extra = j
		case main < 0 && taxOf(regime) != "":
			main = j
		default:
			return key, 0, 0, []fault.Fault{fault.At(sale.TaxPath(i, j, "regime"), fault.ValidationMatchInvalid,
				"does not fit: a line has one of %s, and besides it %s and %s at most", strings.Join(mainRegimes(), ", "),
				regimeSurcharge, transaction.Withholding)}
		}
	}
	if main < 0 {
		return key, 0, 0, []fault.Fault{fault.At(fmt.Sprintf("items.%d.tax_breakdowns", i), fault.FieldRequired,
			"must have an entry of %s: a record says of every line how it is taxed", strings.Join(mainRegimes(), ", "))}
	}
	if onMargin(item.Taxes[main].Code) {
		return key, main, -1, nil // see marginLine
	}
	key, reason := gradeOf(t, item.Taxes[main])
	if reason != "" {
		return key, 0, 0, []fault.Fault{fault.At(sale.TaxPath(i, main, "code"), fault.ValidationMatchInvalid, "%s", reason)}
	}
	if key.grade == "S2" && t.Customer != nil && t.Customer.Type == transaction.Individual {
		return key, 0, 0, []fault.Fault{fault.At(sale.TaxPath(i, main, "type"), fault.ValidationMatchInvalid,
			"does not fit a customer of type INDIVIDUAL: only a business owes the tax in the seller's place (Ley 37/1992, article 84.Uno.2)")}
	}
	if reason := misplacedType(t, i, item.Taxes[main]); reason != "" {
		return key, 0, 0, []fault.Fault{fault.At(sale.TaxPath(i, main, "type"), fault.ValidationMatchInvalid, "%s", reason)}
	}
	if faults = checkRate(key, item.Taxes[main], sale.TaxPath(i, main, "rate")); len(faults) > 0 {
		return key, 0, 0, faults
	}
	if extra >= 0 {
		key.surcharge = item.Taxes[extra].Rate.MinimalString()
		if reason := checkSurcharge(key); reason != "" {
			return key, 0, 0, []fault.Fault{fault.At(sale.TaxPath(i, extra, "rate"), fault.ValidationMatchInvalid, "%s", reason)}
		}
		if _, regime, _ := readCode(item.Taxes[main].Code); regime == "" {
			key.regime = "18" // list L8A: recargo de equivalencia
		}
	}
	return key, main, extra, nil
}

// misplacedType finds a type that does not go with services, or with a
// customer: the tax is then owed elsewhere or by somebody else. What a code
// says stands.
func misplacedType(t *transaction.Transaction, i int, tax transaction.Tax) string {
	if grade, _, _ := readCode(tax.Code); grade != "" {
		return ""
	}
	services := country.IsServices(t.Items, i) && !followsGoods(t.Items)
	at := territory.Of(home, t.Customer, lawDay, services)
	switch {
	case services && tax.Type == transaction.TaxIntraEU:
		return "does not fit services: to a business of another member state they are REVERSE"
	case tax.Type == transaction.TaxIntraEU && taxOf(tax.Regime) == taxIVA && at.Apart != "":
		return at.Exported()
	case services && tax.Type == transaction.TaxExport:
		return "does not fit services, which are OUTSIDE where the customer is abroad; those of article 21.5 are said with the code E2"
	case tax.Type == transaction.TaxReverse && t.Customer != nil && t.Customer.Type != transaction.Business &&
		isAway(t, taxOf(tax.Regime)):
		return "does not fit a consumer, who owes no tax: services abroad are OUTSIDE"
	}
	return ""
}

// checkRate finds a rate that the grade has no room for.
func checkRate(d detail, tax transaction.Tax, field string) []fault.Fault {
	if d.grade != "S1" && !tax.Rate.IsZero() && tax.Regime != regimeOSS {
		return []fault.Fault{fault.At(field, fault.ValidationMatchInvalid, "must be 0 where the line is %s", d.grade)}
	}
	if tax.Rate.Exp() > 2 && !tax.Rate.Rescale(2).Equals(tax.Rate) {
		return []fault.Fault{fault.At(field, fault.FieldNotValid, "must have at most 2 decimals")}
	}
	return nil
}

// checkSurcharge knows which surcharge goes with which rate of IVA (AEAT,
// "Validaciones" 1.2.0, section 15.3, as it stands since 2025).
func checkSurcharge(d detail) string {
	if d.tax != taxIVA || d.grade != "S1" {
		return "belongs to lines that bear IVA"
	}
	allowed := map[string][]string{"21": {"5.2", "1.75"}, "10": {"1.4"}, "7.5": {"1"}, "5": {"0.62"}, "4": {"0.5"},
		"2": {"0.26"}, "0": {"0"}}[d.rate]
	if !slices.Contains(allowed, d.surcharge) {
		return fmt.Sprintf("is no surcharge of the rate %s: allowed is %s", d.rate, strings.Join(allowed, " or "))
	}
	return ""
}

// misfits finds sums that the authority would refuse: rounding line by line
// may carry a tax away from base × rate, or to the other side of zero. It does
// not look at corrections by difference.
func misfits(b breakdown) []fault.Fault {
	for _, d := range b.details {
		if d.grade != "S1" {
			continue
		}
		rate, err := num.AmountFromString(d.rate)
		if err != nil {
			continue // our own text
		}
		expected := num.MakeAmount(d.base, 2).RescaleUp(6).Multiply(rate).Divide(num.MakeAmount(100, 0)).Rescale(2)
		if size(d.amount-expected.Value()) > tolerance {
			return []fault.Fault{fault.At("items", fault.FieldNotValid,
				"have a tax of %s at %s %%, and their net is %s: rounded line by line the two differ by more than 10.00, which the tax authority refuses", euros(d.amount), d.rate, euros(d.base))}
		}
		if d.base > 0 && d.amount < 0 || d.base < 0 && d.amount > 0 {
			return []fault.Fault{fault.At("items", fault.FieldNotValid,
				"have a tax of %s on a net of %s at %s %%: the tax authority refuses opposite signs", euros(d.amount),
				euros(d.base), d.rate)}
		}
	}
	return nil
}
