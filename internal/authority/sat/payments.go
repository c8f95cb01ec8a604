package sat

import (
	"math/big"
	"strings"

	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// usePayment is the only use that a receipt of payment has.
const usePayment = "CP01"

// pagos is the complement of a receipt of payment, or nil.
func pagos(v *xmltree.Element) *xmltree.Element { return v.Find(satwire.SpacePagos, "Pagos") }

// paymentRule checks a voucher of type P by SAT's matrix of the complement
// Pagos 2.0 (codes CRP): the fixed values of the voucher, each payment with its
// documents and taxes, and the totals.
func paymentRule(v *xmltree.Element) string {
	if code := fixedRule(v); code != "" {
		return code
	}
	var all []*xmltree.Element
	if p := pagos(v); p != nil {
		all = p.All("Pago")
	}
	if len(all) == 0 {
		return "CRP20999"
	}
	for _, p := range all {
		if code := payRule(p); code != "" {
			return code
		}
	}
	return payTotalsRule(pagos(v).At("Totales"), all)
}

// fixedRule checks what is the same in every receipt.
func fixedRule(v *xmltree.Element) string {
	lines := v.At("Conceptos").All("Concepto")
	if len(lines) != 1 {
		return "CRP20111"
	}
	line := lines[0]
	for _, c := range []struct {
		at                *xmltree.Element
		name, value, code string
	}{
		{v, "Exportacion", "01", "CRP20102"}, {v, "SubTotal", "0", "CRP20103"}, {v, "Moneda", "XXX", "CRP20104"},
		{v, "FormaPago", "", "CRP20105"},
		{v, "MetodoPago", "", "CRP20106"}, {v, "CondicionesDePago", "", "CRP20107"}, {v, "Descuento", "", "CRP20108"},
		{v, "TipoCambio", "", "CRP20109"},
		{v, "Total", "0", "CRP20110"}, {line, "ClaveProdServ", "84111506", "CRP20113"},
		{line, "NoIdentificacion", "", "CRP20114"}, {line, "Cantidad", "1", "CRP20115"},
		{line, "ClaveUnidad", "ACT", "CRP20116"}, {line, "Unidad", "", "CRP20117"},
		{line, "Descripcion", "Pago", "CRP20118"}, {line, "ValorUnitario", "0", "CRP20119"},
		{line, "Importe", "0", "CRP20120"}, {line, "Descuento", "", "CRP20121"}, {line, "ObjetoImp", "01", "CRP20122"},
	} {
		if c.at.Attr(c.name) != c.value {
			return c.code
		}
	}
	switch {
	case line.At("Impuestos") != nil:
		return "CRP20123"
	case v.At("Impuestos") != nil:
		return "CFDI40201"
	}
	return ""
}

// payRule checks one Pago.
func payRule(p *xmltree.Element) string {
	amount, rate := written(p, "Monto"), written(p, "TipoCambioP")
	decimals, _ := transaction.CurrencyExponent(p.Attr("MonedaP"))
	switch {
	case p.Attr("FormaDePagoP") == satwire.FormUndefined:
		return "CRP20212"
	case p.Attr("MonedaP") == "XXX":
		return "CRP20213"
	case p.Attr("MonedaP") != "MXN" && rate.value <= 0:
		return "CRP20214"
	case p.Attr("MonedaP") == "MXN" && p.Attr("TipoCambioP") != "1":
		return "CRP20215"
	case amount.value <= 0:
		return "CRP20218"
	case amount.places > decimals:
		return "CRP20219"
	}
	sum := int64(0)
	taxes := map[string]int64{}
	for _, d := range p.All("DoctoRelacionado") {
		if code := debtRule(p, d, taxes); code != "" {
			return code
		}
		sum += inPaid(d, written(d, "ImpPagado").value)
	}
	if sum > amount.value {
		return "CRP20217"
	}
	return payTaxRule(p, taxes)
}

// equivalence is EquivalenciaDR, exactly; nil where it is none: a number above 0
// with at most ten decimals.
func equivalence(d *xmltree.Element) *big.Rat {
	text := d.Attr("EquivalenciaDR")
	_, places, _ := strings.Cut(text, ".")
	e, ok := new(big.Rat).SetString(text)
	if !ok || e.Sign() <= 0 || len(places) > 10 || strings.Trim(text, "0123456789.") != "" {
		return nil
	}
	return e
}

// inPaid is an amount of a document in the currency of the payment, to the last
// place that is kept.
func inPaid(d *xmltree.Element, value int64) int64 {
	e := equivalence(d)
	if e == nil {
		return value
	}
	q := new(big.Rat).Quo(new(big.Rat).SetInt64(value), e)
	doubled := new(big.Int).Add(new(big.Int).Mul(q.Num(), big.NewInt(2)), q.Denom()) // half up; amounts are not below 0
	return new(big.Int).Quo(doubled, new(big.Int).Mul(q.Denom(), big.NewInt(2))).Int64()
}

// debtRule checks one DoctoRelacionado, and adds its taxes up in the currency of
// the payment.
func debtRule(p, d *xmltree.Element, taxes map[string]int64) string {
	before, paid, left := written(d, "ImpSaldoAnt"), written(d, "ImpPagado"), written(d, "ImpSaldoInsoluto")
	taxed := d.At("ImpuestosDR") != nil
	switch {
	case equivalence(d) == nil:
		return "CRP20999" // the schema's: required where the currencies differ
	case d.Attr("MonedaDR") == p.Attr("MonedaP") && d.Attr("EquivalenciaDR") != "1":
		return "CRP20238"
	case before.value <= 0:
		return "CRP20239"
	case paid.value <= 0:
		return "CRP20241"
	case left.value < 0 || left.value != before.value-paid.value:
		return "CRP20244"
	case d.Attr("ObjetoImpDR") == "02" && !taxed:
		return "CRP20246"
	case d.Attr("ObjetoImpDR") != "02" && taxed:
		return "CRP20247"
	}
	for _, t := range d.At("ImpuestosDR", "RetencionesDR").All("RetencionDR") {
		if !partFits(t) {
			return "CRP20254"
		}
		taxes["w"+t.Attr("ImpuestoDR")] += inPaid(d, written(t, "ImporteDR").value)
	}
	for _, t := range d.At("ImpuestosDR", "TrasladosDR").All("TrasladoDR") {
		if !partFits(t) {
			return "CRP20261"
		}
		name := t.Attr("ImpuestoDR") + t.Attr("TipoFactorDR") + t.Attr("TasaOCuotaDR")
		taxes["b"+name] += inPaid(d, written(t, "BaseDR").value)
		taxes["t"+name] += inPaid(d, written(t, "ImporteDR").value)
	}
	return ""
}

// partFits checks one tax of a document, as taxFits does in a line.
func partFits(t *xmltree.Element) bool {
	if t.Attr("TipoFactorDR") == "Exento" {
		return t.Attr("TasaOCuotaDR")+t.Attr("ImporteDR") == "" && written(t, "BaseDR").value > 0
	}
	rate := written(t, "TasaOCuotaDR")
	rate.places = exact
	return written(t, "BaseDR").value > 0 && within(written(t, "BaseDR"), rate, written(t, "ImporteDR"))
}

// payTaxRule compares the taxes of a payment with those of its documents.
func payTaxRule(p *xmltree.Element, taxes map[string]int64) string {
	seen := 0
	for _, t := range p.At("ImpuestosP", "RetencionesP").All("RetencionP") {
		if written(t, "ImporteP").value != taxes["w"+t.Attr("ImpuestoP")] {
			return "CRP20265"
		}
		seen++
	}
	for _, t := range p.At("ImpuestosP", "TrasladosP").All("TrasladoP") {
		name := t.Attr("ImpuestoP") + t.Attr("TipoFactorP") + t.Attr("TasaOCuotaP")
		switch {
		case written(t, "BaseP").value != taxes["b"+name]:
			return "CRP20268"
		case written(t, "ImporteP").value != taxes["t"+name]:
			return "CRP20274"
		}
		seen += 2
	}
	if seen != len(taxes) {
		return "CRP20271"
	}
	return ""
}

// payTotalsRule compares the totals with the payments, in pesos to the cent.
func payTotalsRule(totals *xmltree.Element, all []*xmltree.Element) string {
	sums := map[string]*big.Int{}
	add := func(name string, amount, rate int64) {
		if sums[name] == nil {
			sums[name] = new(big.Int)
		}
		sums[name].Add(sums[name], new(big.Int).Mul(big.NewInt(amount), big.NewInt(rate)))
	}
	for _, p := range all {
		rate := written(p, "TipoCambioP").value
		add("MontoTotalPagos", written(p, "Monto").value, rate)
		for _, t := range p.At("ImpuestosP", "RetencionesP").All("RetencionP") {
			add(map[string]string{"001": "TotalRetencionesISR", "002": "TotalRetencionesIVA",
				"003": "TotalRetencionesIEPS"}[t.Attr("ImpuestoP")], written(t, "ImporteP").value, rate)
		}
		for _, t := range p.At("ImpuestosP", "TrasladosP").All("TrasladoP") {
			if t.Attr("ImpuestoP") != "002" {
				continue
			}
			if t.Attr("TipoFactorP") == "Exento" {
				add("TotalTrasladosBaseIVAExento", written(t, "BaseP").value, rate)
				continue
			}
			kind := map[string]string{"0.160000": "IVA16", "0.080000": "IVA8", "0.000000": "IVA0"}[t.Attr("TasaOCuotaP")]
			add("TotalTrasladosBase"+kind, written(t, "BaseP").value, rate)
			add("TotalTrasladosImpuesto"+kind, written(t, "ImporteP").value, rate)
		}
	}
	for _, c := range payTotals {
		if !statesTotal(totals, c[0], sums[c[0]]) {
			return c[1]
		}
	}
	return ""
}

// payTotals are the totals with the codes of their rules.
var payTotals = [][2]string{
	{"TotalRetencionesIVA", "CRP20201"}, {"TotalRetencionesISR", "CRP20202"}, {"TotalRetencionesIEPS", "CRP20203"},
	{"TotalTrasladosBaseIVA16", "CRP20204"}, {"TotalTrasladosImpuestoIVA16", "CRP20205"}, {"TotalTrasladosBaseIVA8", "CRP20206"},
	{"TotalTrasladosImpuestoIVA8", "CRP20207"}, {"TotalTrasladosBaseIVA0", "CRP20208"},
	{"TotalTrasladosImpuestoIVA0", "CRP20209"},
	{"TotalTrasladosBaseIVAExento", "CRP20210"}, {"MontoTotalPagos", "CRP20211"},
}

// statesTotal reports whether a total is its sum, rounded to the cent; a sum of
// nothing at all has no total.
func statesTotal(totals *xmltree.Element, name string, sum *big.Int) bool {
	_, there := totals.Lookup("", name)
	if sum == nil {
		return !there
	}
	off := new(big.Int).Mul(big.NewInt(written(totals, name).value), big.NewInt(1_000_000))
	return there && written(totals, name).places <= 2 && off.Sub(off, sum).CmpAbs(big.NewInt(5_001*1_000_000)) < 0
}
