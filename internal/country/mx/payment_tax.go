package mx

import (
	"math/big"
	"strconv"
	"strings"

	"tributary/internal/country"
	decimal "tributary/internal/country/amount"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// read takes a debt from its voucher.
func (d *debt) read(v *xmltree.Element) {
	d.serie, d.folio, d.currency = v.Attr("Serie"), v.Attr("Folio"), v.Attr("Moneda")
	d.total = minor(v.Attr("Total"), d.decimals)
	to := child(v, "Receptor")
	d.receiver = taxpayer{rfc: to.Attr("Rfc"), name: to.Attr("Nombre"), regime: to.Attr("RegimenFiscalReceptor"),
		domicile:  to.Attr("DomicilioFiscalReceptor"),
		residence: to.Attr("ResidenciaFiscal"), foreign: to.Attr("NumRegIdTrib")}
	taxes := child(v, "Impuestos")
	if taxes == nil {
		return
	}
	each(taxes, func(e *xmltree.Element) {
		l := levy{tax: e.Attr("Impuesto"), exempt: e.Attr("TipoFactor") == "Exento",
			quota: e.Attr("TipoFactor") == factorQuota, rate: millionth(e.Attr("TasaOCuota"))}
		d.taxes = append(d.taxes, transferSum{levy: l, base: minor(e.Attr("Base"), l.baseDecimals(d.decimals)),
			amount: minor(e.Attr("Importe"), d.decimals)})
	}, "Traslados", "Traslado")
	// The sums of what is withheld have neither base nor rate: the lines do.
	each(v, func(e *xmltree.Element) {
		l := levy{tax: e.Attr("Impuesto"), withheld: true, rate: millionth(e.Attr("TasaOCuota"))}
		d.taxes = gathered(d.taxes, l, minor(e.Attr("Base"), d.decimals), minor(e.Attr("Importe"), d.decimals))
	}, "Conceptos", "Concepto", "Impuestos", "Retenciones", "Retencion")
}

// backfilled takes a debt from what is known of a document issued elsewhere.
func (d *debt) backfilled(cat *catalog, in *country.Draft, paid *country.Share) *fault.Fault {
	t := &paid.Transaction
	b, found := lay(typed(cat, t, paid.Totals), paid.Totals, 1, d.decimals)
	if len(found) > 0 {
		return &found[0]
	}
	s := b.addUp()
	d.total = s.total()
	d.serie, d.folio = split(t.Number)
	d.taxes = s.transfers
	for _, c := range b.concepts {
		for j, l := range c.taxed() {
			if l.withheld && !l.local {
				d.taxes = gathered(d.taxes, l, c.baseOf(j), c.amounts[j])
			}
		}
	}
	d.receiver = receiverOf(t.Customer, placeOf(&in.Supplier), satwire.TypeIncome, "")
	return nil
}

// baseDecimals are those in which a base is kept: of money, or of what a quota is for.
func (l levy) baseDecimals(ofMoney int) int {
	if l.quota {
		return unitDecimals
	}
	return ofMoney
}

// minor reads an amount of a voucher of ours in minor units.
func minor(text string, decimals int) int64 {
	whole, part, _ := strings.Cut(text, ".")
	value, err := strconv.ParseInt(whole+(part + "000000")[:decimals], 10, 64)
	if err != nil {
		return 0
	}
	return value
}

func millionth(text string) uint64 { return uint64(minor(text, unitDecimals)) }

// payScale: bases and taxes of a part of a debt have six decimals, so that the
// parts come to the whole and SAT's limits hold (CRP20254, CRP20261).
const payScale = unitDecimals

// fine is an amount of minor units × numerator ÷ denominator with six decimals.
func fine(amount, numerator, denominator int64, decimals int) *big.Int {
	x := new(big.Int).Mul(big.NewInt(amount), new(big.Int).SetUint64(power(payScale-decimals)))
	return decimal.Divided(x.Mul(x, big.NewInt(numerator)), big.NewInt(denominator))
}

// fixed writes a number of millionths with some decimals, rounded.
func fixed(x *big.Int, decimals int) string {
	return decimal.Units(x, payScale).Rounded(decimals).String()
}

// document writes a DoctoRelacionado and adds its taxes to those of the payment.
func (s portion) document(sum *payTaxes) *xmltree.Element {
	d := s.debt
	n := xmltree.New("pago20:DoctoRelacionado", "IdDocumento", d.uuid)
	n.Set("Serie", d.serie)
	n.Set("Folio", d.folio)
	n.Set("MonedaDR", d.currency)
	n.Set("EquivalenciaDR", sum.worth.String())
	n.Set("NumParcialidad", strconv.Itoa(s.part))
	n.Set("ImpSaldoAnt", money(s.before, d.decimals))
	n.Set("ImpPagado", money(s.paid, d.decimals))
	n.Set("ImpSaldoInsoluto", money(s.before-s.paid, d.decimals))
	if len(d.taxes) == 0 {
		n.Set("ObjetoImpDR", "01")
		return n
	}
	n.Set("ObjetoImpDR", "02")
	taxes := n.Add(xmltree.New("pago20:ImpuestosDR"))
	lists := [2]*xmltree.Element{}
	for _, x := range d.taxes {
		base := fine(x.base, s.paid, d.total, x.levy.baseDecimals(d.decimals))
		amount := decimal.Divided(new(big.Int).Mul(base, new(big.Int).SetUint64(x.levy.rate)), big.NewInt(rateHundred))
		sum.add(x.levy, sum.worth.paid(base), sum.worth.paid(amount))
		i, list, entry := 1, "pago20:TrasladosDR", "pago20:TrasladoDR"
		if x.levy.withheld {
			i, list, entry = 0, "pago20:RetencionesDR", "pago20:RetencionDR"
		}
		if lists[i] == nil {
			lists[i] = xmltree.New(list)
		}
		lists[i].Add(x.levy.part(entry, "DR", base, amount))
	}
	for _, list := range lists {
		if list != nil {
			taxes.Add(list)
		}
	}
	return n
}

// part writes a tax of a payment.
func (l levy) part(name, suffix string, base, amount *big.Int) *xmltree.Element {
	n := xmltree.New(name, "Base"+suffix, fixed(base, payScale), "Impuesto"+suffix, l.tax)
	if l.exempt {
		n.Set("TipoFactor"+suffix, "Exento")
		return n
	}
	n.Set("TipoFactor"+suffix, l.factor())
	n.Set("TasaOCuota"+suffix, money(int64(l.rate), payScale))
	n.Set("Importe"+suffix, fixed(amount, payScale))
	return n
}

// worth is EquivalenciaDR in units of its tenth decimal; 0: one currency, 1.
type worth int64

const worthDecimals = 10

// worthOf is settled ÷ received, each with decimals of its own, rounded up.
func worthOf(settled int64, decimals int, received int64, of int) worth {
	top := new(big.Int).Mul(big.NewInt(settled), decimal.Power(worthDecimals+of))
	bottom := new(big.Int).Mul(big.NewInt(received), decimal.Power(decimals))
	q, rest := new(big.Int).QuoRem(top, bottom, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return worth(q.Int64())
}

func (w worth) String() string {
	if w == 0 {
		return "1"
	}
	return decimal.Text(int64(w), worthDecimals)
}

// paid is an amount of a document in the currency of the payment.
func (w worth) paid(x *big.Int) *big.Int {
	if w == 0 {
		return x
	}
	return decimal.Divided(new(big.Int).Mul(x, decimal.Power(worthDecimals)), big.NewInt(int64(w)))
}

// payTaxes are those of one payment, by tax.
type payTaxes struct {
	worth worth
	list  []*payTax
}

type payTax struct {
	levy
	base, amount *big.Int // millionths
}

func (t *payTaxes) add(l levy, base, amount *big.Int) {
	for _, x := range t.list {
		if x.levy == l {
			x.base.Add(x.base, base)
			x.amount.Add(x.amount, amount)
			return
		}
	}
	t.list = append(t.list, &payTax{levy: l, base: new(big.Int).Set(base), amount: new(big.Int).Set(amount)})
}

// element writes ImpuestosP; nil without taxes. What is withheld is summed by
// tax, whatever its rate.
func (t *payTaxes) element() *xmltree.Element {
	if len(t.list) == 0 {
		return nil
	}
	n := xmltree.New("pago20:ImpuestosP")
	var withheld, transferred *xmltree.Element
	for _, tax := range []string{taxISR, taxIVA, taxIEPS} {
		if sum := t.withheld(tax); sum.Sign() > 0 {
			if withheld == nil {
				withheld = n.Add(xmltree.New("pago20:RetencionesP"))
			}
			withheld.Add(xmltree.New("pago20:RetencionP", "ImpuestoP", tax, "ImporteP", fixed(sum, payScale)))
		}
	}
	for _, x := range t.list {
		if x.withheld {
			continue
		}
		if transferred == nil {
			transferred = n.Add(xmltree.New("pago20:TrasladosP"))
		}
		transferred.Add(x.part("pago20:TrasladoP", "P", x.base, x.amount))
	}
	return n
}

func (t *payTaxes) withheld(tax string) *big.Int {
	sum := new(big.Int)
	for _, x := range t.list {
		if x.withheld && x.tax == tax {
			sum.Add(sum, x.amount)
		}
	}
	return sum
}

// paySums are the totals of a receipt, in pesos.
type paySums struct {
	rate   *big.Int            // pesos of a unit, in millionths
	values map[string]*big.Int // millionths of a peso
}

func newPaySums(rate string) *paySums {
	return &paySums{rate: big.NewInt(minor(rate, payScale)), values: map[string]*big.Int{}}
}

func (s *paySums) add(amount int64, decimals int, taxes *payTaxes) {
	s.count("MontoTotalPagos", fine(amount, 1, 1, decimals))
	for tax, name := range map[string]string{taxIVA: "TotalRetencionesIVA", taxISR: "TotalRetencionesISR",
		taxIEPS: "TotalRetencionesIEPS"} {
		if sum := taxes.withheld(tax); sum.Sign() > 0 {
			s.count(name, sum)
		}
	}
	for _, x := range taxes.list {
		switch {
		case x.withheld || x.tax != taxIVA:
		case x.exempt:
			s.count("TotalTrasladosBaseIVAExento", x.base)
		case x.rate == 160_000:
			s.count("TotalTrasladosBaseIVA16", x.base)
			s.count("TotalTrasladosImpuestoIVA16", x.amount)
		case x.rate == 80_000:
			s.count("TotalTrasladosBaseIVA8", x.base)
			s.count("TotalTrasladosImpuestoIVA8", x.amount)
		case x.rate == 0:
			s.count("TotalTrasladosBaseIVA0", x.base)
			s.count("TotalTrasladosImpuestoIVA0", x.amount)
		}
	}
}

func (s *paySums) count(name string, amount *big.Int) {
	pesos := decimal.Divided(new(big.Int).Mul(amount, s.rate), big.NewInt(1_000_000))
	if s.values[name] == nil {
		s.values[name] = new(big.Int)
	}
	s.values[name].Add(s.values[name], pesos)
}

// write puts the totals where they stand in the original string.
func (s *paySums) write(n *xmltree.Element) {
	for field := range strings.FieldsSeq(chainPayTotals) {
		name := strings.TrimPrefix(field, "?")
		if value := s.values[name]; value != nil {
			n.Set(name, fixed(value, 2))
		}
	}
}
