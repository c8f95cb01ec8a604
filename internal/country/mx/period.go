package mx

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// settingGlobal says for how long sales to the general public are gathered.
const (
	settingGlobal = "global_invoice"
	globalNone    = "none"
)

// Bounds of one global invoice: about half a megabyte of XML, which every
// provider takes.
const (
	globalLinesMax = 1000
	globalBytesMax = 1 << 20
)

// globalWithin is how long after the end of the period the voucher must be with
// the provider (RMF 2.7.1.21).
const globalWithin = 24 * time.Hour

// Keys of c_Periodicidad.
var periodicities = map[country.Cadence]string{country.Daily: "01", country.Weekly: "02", country.Monthly: "04"}

// motiveNominative is why a global invoice is cancelled that a sale has left
// (Guía de cancelación, motive 04): it is issued anew without it.
const motiveNominative = "04"

func periods(cat *catalog) *country.Periods {
	return &country.Periods{
		Gather:   func(in country.Draft) (*country.Gathered, error) { return gather(cat, &in) },
		LinesMax: globalLinesMax, BytesMax: globalBytesMax, Within: globalWithin, Withdraw: motiveNominative,
	}
}

// gatheredSale is what a global invoice says of a sale.
type gatheredSale struct {
	Form  string         `json:"form"` // FormaPago
	Owed  int64          `json:"owed"`
	Lines []gatheredLine `json:"lines"` // one per combination of taxes
}

type gatheredLine struct {
	Levies   []gatheredLevy `json:"levies,omitempty"`
	Amounts  []int64        `json:"amounts,omitempty"`
	Importe  int64          `json:"importe"`
	Discount int64          `json:"discount,omitempty"`
}

type gatheredLevy struct {
	Tax    string `json:"tax"`
	Rate   uint64 `json:"rate,omitempty"`
	Exempt bool   `json:"exempt,omitempty"`
	Local  bool   `json:"local,omitempty"`
}

// gather enlists sales to the general public where the company wants it, and
// says what corrections make of them.
func gather(cat *catalog, in *country.Draft) (*country.Gathered, error) {
	t := &in.Transaction
	if t.Kind == transaction.Invoice {
		cadence := country.Cadence(in.Supplier.Settings.Text(settingGlobal))
		if periodicities[cadence] == "" || !strings.EqualFold(t.CurrencyCode, "MXN") { // a voucher has one rate of exchange
			return nil, nil
		}
		p, err := planOf(cat, in)
		if err != nil || !p.global() {
			return nil, err
		}
		g, err := saleOf(p).gathered()
		if err == nil {
			g.Span = country.SpanOf(cadence, p.at).WithinMonth(p.at)
			g.Gross, g.Net, g.Tax = in.Totals.Gross, in.Totals.Net, in.Totals.Tax
		}
		return g, err
	}
	if in.Original == nil || in.Original.Gathered == nil {
		return nil, nil
	}
	at := in.Original.Gathered
	switch {
	case nominative(in):
		return leaves(in, true)
	case t.Kind == transaction.Cancellation && at.Data == nil && !strings.HasPrefix(t.Reason, motiveNominative):
		return nil, invalid(fault.At("reason", fault.ValidationMatchInvalid,
			"must be 04: the sale is in a global invoice, which is cancelled only for one that names the customer. What is given back is a credit"))
	case t.Kind == transaction.Cancellation:
		return leaves(in, false)
	case at.Data == nil:
		return nil, nil // a credit note, or an added charge, that refers to the global invoice
	case t.Kind == transaction.Credit:
		return leaves(in, false)
	}
	return changed(cat, in)
}

// nominative reports whether an adjustment invoices a gathered sale anew, to
// somebody with a name: relation 04, without a voucher to relate to.
func nominative(in *country.Draft) bool {
	t := &in.Transaction
	if in.Original == nil || in.Original.Gathered == nil || t.Kind != transaction.Adjustment ||
		!strings.HasPrefix(t.Reason, relationReplace) {
		return false
	}
	to := receiverOf(t.Customer, "", satwire.TypeIncome, "")
	return to.rfc != satwire.RFCPublic || to.name != satwire.NamePublic
}

// leaves takes a sale out. SAT cancels no voucher to which another refers.
func leaves(in *country.Draft, filed bool) (*country.Gathered, error) {
	if at := in.Original.Gathered; at.Data == nil && at.Noted {
		return nil, invalid(fault.At("reference_transaction_id", fault.ReferenceAlreadyCorrected,
			"is in the global invoice %s, to which credit notes refer: SAT cancels it no more. Credit this sale, and invoice it as a new one", at.Number))
	}
	return &country.Gathered{Leaves: true, Filed: filed}, nil
}

// saleOf is a planned voucher to the general public as a sale of a global invoice.
func saleOf(p *plan) *gatheredSale {
	sum := p.book.addUp()
	sale := &gatheredSale{Form: p.form, Owed: sum.total()}
	for _, c := range p.book.concepts {
		line := gatheredLine{Amounts: c.amounts, Importe: c.importe, Discount: c.discount}
		for _, l := range c.levies {
			line.Levies = append(line.Levies, gatheredLevy{Tax: l.tax, Rate: l.rate, Exempt: l.exempt, Local: l.local})
		}
		sale.Lines = append(sale.Lines, line)
	}
	return sale
}

func (s *gatheredSale) gathered() (*country.Gathered, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing a gathered sale: %w", err)
	}
	return &country.Gathered{Lines: len(s.Lines), Data: data}, nil
}

func readSale(data []byte) (*gatheredSale, error) {
	s := &gatheredSale{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading a gathered sale: %w", err)
	}
	return s, nil
}

// concept is a line of the voucher again.
func (l *gatheredLine) concept(number string, decimals int) *concept {
	c := &concept{importe: l.Importe, discount: l.Discount, amounts: l.Amounts, sale: number}
	for _, v := range l.Levies {
		c.levies = append(c.levies, levy{tax: v.Tax, rate: v.Rate, exempt: v.Exempt, local: v.Local})
	}
	c.unit = uint64(c.importe) * power(unitDecimals-decimals)
	return c
}

func (l *gatheredLine) key() (name string) {
	for _, v := range l.concept("", 2).levies {
		name += v.key()
	}
	return name
}

// changed is a sale after an adjustment, before a voucher has it: the lines with
// the same taxes become smaller or larger. What is left of nothing goes.
func changed(cat *catalog, in *country.Draft) (*country.Gathered, error) {
	sale, err := readSale(in.Original.Gathered.Data)
	if err != nil {
		return nil, err
	}
	t := &in.Transaction
	_, sign := direction(t.Kind, in.Totals)
	book, found := lay(typed(cat, t, in.Totals), in.Totals, sign, 2)
	if len(found) > 0 {
		return nil, invalid(found...)
	}
	book.condense()
	by := saleOf(&plan{book: book})
	for _, change := range by.Lines {
		if !sale.change(change, sign) {
			return nil, invalid(fault.At("items", fault.ReferenceExceeded,
				"have other taxes than what is left of the sale in its global invoice, or come to more than that"))
		}
	}
	kept := sale.Lines[:0]
	for _, l := range sale.Lines {
		if l.Importe > 0 {
			kept = append(kept, l)
		}
	}
	sale.Lines, sale.Owed = kept, sale.Owed+sign*by.Owed
	if len(kept) == 0 {
		return &country.Gathered{Leaves: true}, nil
	}
	g, err := sale.gathered()
	if err == nil {
		total := sumOf(sale)
		g.Gross, g.Net, g.Tax = total.total(), total.subtotal-total.discount, total.transferred+total.local
	}
	return g, err
}

// change adds a line to that of the same taxes, or takes it away.
func (s *gatheredSale) change(by gatheredLine, sign int64) bool {
	for i := range s.Lines {
		l := &s.Lines[i]
		if l.key() != by.key() {
			continue
		}
		base := l.Importe - l.Discount + sign*(by.Importe-by.Discount)
		if base < 0 {
			return false
		}
		l.Importe, l.Discount = base, 0
		l.Amounts = append([]int64(nil), l.Amounts...)
		for j := range l.Amounts {
			if l.Amounts[j] += sign * by.Amounts[j]; l.Amounts[j] < 0 {
				return false
			}
		}
		c := l.concept("", 2)
		c.rebase() // a sum of rounded taxes may be further from base × rate than SAT allows
		l.Importe, l.Amounts = c.importe, c.amounts
		return true
	}
	if sign > 0 {
		s.Lines = append(s.Lines, by)
		return true
	}
	return false
}

func sumOf(sale *gatheredSale) sums {
	b := &book{decimals: 2}
	for i := range sale.Lines {
		b.concepts = append(b.concepts, sale.Lines[i].concept("", 2))
	}
	return b.addUp()
}

// globalPlan decides everything about the global invoice of a period: a line for
// each sale and combination of taxes, in the form in which most was paid (Guía
// de llenado del CFDI global, FormaPago).
func globalPlan(cat *catalog, in *country.Draft) (*plan, error) {
	p := &plan{
		kind: satwire.TypeIncome, currency: "MXN", method: satwire.MethodOnce, place: placeOf(&in.Supplier),
		issuer: issuerOf(&in.Supplier),
		book:   &book{decimals: 2}, span: &in.Period.Span,
	}
	if !postalPattern.MatchString(p.place) {
		return nil, invalid(fault.At("supplier.id", fault.ValidationMatchInvalid,
			"needs a postal code of five digits, in its address or its setting place_of_issue"))
	}
	p.serie, p.folio = split(in.Period.Number)
	p.at = in.Now.In(cat.zone(p.place, in.Location))
	p.receiver = receiverOf(nil, p.place, p.kind, "")
	paid, most := map[string]int64{}, int64(-1)
	for _, s := range in.Period.Sales {
		sale, err := readSale(s.Data)
		if err != nil {
			return nil, err
		}
		for i := range sale.Lines {
			p.book.concepts = append(p.book.concepts, sale.Lines[i].concept(s.Number, 2))
		}
		if paid[sale.Form] += sale.Owed; paid[sale.Form] > most {
			p.form, most = sale.Form, paid[sale.Form]
		}
	}
	return p, nil
}
