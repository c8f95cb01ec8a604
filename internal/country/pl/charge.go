package pl

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// codeNoSupply is of lines that are no supply at all: a deposit (kaucja), damages.
// They are neither np I nor part of P_15, and are added to it in Rozliczenie (VAT
// act, art. 5 and 29a sec. 11; FA(3), Obciazenia).
const codeNoSupply = "POZA"

// noSupply reports whether a line is none.
func noSupply(item *transaction.Item) bool {
	j := item.OnlyTax()
	return j >= 0 && strings.EqualFold(item.Taxes[j].Code, codeNoSupply)
}

// charged is what the lines that are no supply come to.
func (d *document) charged() (sum int64) {
	for _, l := range d.charges {
		sum += l.Gross
	}
	return sum
}

// total is P_15.
func (d *document) total() int64 { return d.Sign*d.Draft.Totals.Gross - d.charged() }

// writeSettling says what is added to the total and withheld from it. What a
// correction gives back of a deposit is deducted.
func (w writer) writeSettling() {
	var withheld, added, deducted int64
	for i := range w.d.lines {
		withheld += w.d.lines[i].Withheld
	}
	if withheld == 0 && len(w.d.charges) == 0 {
		return
	}
	each := func(name string, sign int64, sum *int64) {
		for _, l := range w.d.charges {
			if amount := sign * l.Gross; amount > 0 {
				w.Group(name, "Kwota", w.d.money(amount), "Powod", token(l.Item.Name, textMax))
				*sum += amount
			}
		}
	}
	w.Start("Rozliczenie")
	each("Obciazenia", 1, &added)
	if added != 0 {
		w.Leaf("SumaObciazen", w.d.money(added))
	}
	each("Odliczenia", -1, &deducted)
	if withheld != 0 {
		w.Group("Odliczenia", "Kwota", w.d.money(withheld), "Powod", "Podatek pobrany u źródła")
		deducted += withheld
	}
	if deducted != 0 {
		w.Leaf("SumaOdliczen", w.d.money(deducted))
	}
	w.Leaf("DoZaplaty", w.d.money(w.d.total()+added-deducted))
	w.End()
}

// nothingSold finds invoices of deposits and damages alone, and sales below zero.
func nothingSold(in country.Case) []fault.Fault {
	t := in.Transaction
	supplied := len(t.Items) == 0
	for i := range t.Items {
		supplied = supplied || !noSupply(&t.Items[i])
	}
	switch {
	case !supplied:
		return []fault.Fault{fault.At(sale.TaxPath(0, t.Items[0].OnlyTax(), "code"), fault.ValidationMatchInvalid,
			"says that nothing is supplied, and so do all lines: deposits and damages alone are billed by a note, not by an invoice (art. 106b of the VAT act)")}
	case t.Kind == transaction.Invoice && in.Totals.Gross < 0:
		return []fault.Fault{fault.At("items", fault.FieldNotValid,
			"must not add up to less than 0: what lowers a sale is a correction of its invoice (KOR, art. 106j of the VAT act); send it as an adjustment of the original")}
	}
	return nil
}

// takeRate takes the rate of the original for a correction, whatever it was told:
// a base that changes is converted as it was before (VAT act, art. 31b sec. 1, since
// 1 July 2023). A collective one of a period may have its own (sec. 2).
func (d *document) takeRate() {
	if _, _, ofPeriod := period(d.Transaction); ofPeriod || !d.correction() || !d.Foreign() || len(d.Originals) == 0 {
		return
	}
	was := &d.Originals[0].Transaction
	for _, o := range d.Originals {
		if o.Transaction.ExchangeRate == nil || !strings.EqualFold(o.Transaction.CurrencyCode, d.CurrencyCode) ||
			!o.Transaction.ExchangeRate.Equals(*was.ExchangeRate) {
			return // not known, or not one
		}
	}
	if d.ExchangeRate != nil && d.ExchangeRate.Equals(*was.ExchangeRate) {
		return
	}
	if d.ExchangeRate != nil {
		d.otherRate = was.ExchangeRate.MinimalString()
	}
	t := *d.Transaction
	t.ExchangeRate, t.ExchangeRateDate = was.ExchangeRate, was.ExchangeRateDate
	d.Transaction = &t
}
