package mx

import (
	"strconv"

	"tributary/internal/xmltree"
)

// A tax of a state, as that on lodging (ISH), is none of SAT's: it stands in the
// complement Impuestos Locales 1.0 and counts in Total alone.

// federal reports whether SAT knows one of the taxes.
func federal(levies []levy) bool {
	for _, l := range levies {
		if !l.local {
			return true
		}
	}
	return false
}

// locals writes the complement, a line for each rate.
func (p *plan) locals(s *sums) *xmltree.Element {
	d := p.book.decimals
	n := xmltree.New("implocal:ImpuestosLocales", "version", "1.0", "TotaldeRetenciones", "0.00", "TotaldeTraslados", money(s.local, d))
	for _, t := range s.locals {
		hundredths := (t.levy.rate + 50) / 100
		n.Add(xmltree.New("implocal:TrasladosLocales", "ImpLocTrasladado", t.levy.tax,
			"TasadeTraslado", strconv.FormatUint(hundredths/100, 10)+"."+strconv.FormatUint(100+hundredths%100, 10)[1:], "Importe", money(t.amount, d)))
	}
	return n
}
