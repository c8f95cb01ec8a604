package mx

import "tributary/internal/xmltree"

// A tax of a state, as that on lodging (ISH), or what a public customer withholds
// of building work, is none of SAT's taxes: it stands in the complement Impuestos
// Locales 1.0 and counts in Total alone.

// localName is what a withheld tax is called in the voucher. The duties on public
// works have names that are longer than a code may be.
func localName(code string) string {
	switch name := official(code); name {
	case "5MILLAR":
		return "5 AL MILLAR"
	case "2MILLAR":
		return "2 AL MILLAR"
	default:
		return name
	}
}

// federal reports whether SAT knows one of the taxes.
func federal(levies []levy) bool {
	for _, l := range levies {
		if !l.local {
			return true
		}
	}
	return false
}

// locals writes the complement, a line for each tax and rate.
func (p *plan) locals(s *sums) *xmltree.Element {
	d := p.book.decimals
	n := xmltree.New("implocal:ImpuestosLocales", "version", "1.0", "TotaldeRetenciones", money(s.localWithheld, d),
		"TotaldeTraslados", money(s.local, d))
	for _, t := range s.localRetentions {
		n.Add(xmltree.New("implocal:RetencionesLocales", "ImpLocRetenido", t.levy.tax, "TasadeRetencion", localRate(t.levy),
			"Importe", money(t.amount, d)))
	}
	for _, t := range s.locals {
		n.Add(xmltree.New("implocal:TrasladosLocales", "ImpLocTrasladado", t.levy.tax, "TasadeTraslado", localRate(t.levy),
			"Importe", money(t.amount, d)))
	}
	return n
}

// localRate is a percentage with the two decimals that the complement has.
func localRate(l levy) string { return money(int64(l.rate/localRateStep), 2) }

// localRateStep is a hundredth of a per cent as a levy's rate.
const localRateStep = 100
