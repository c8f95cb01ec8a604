package mx

import (
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// Relations (c_TipoRelacion).
const (
	relationCredit  = "01"
	relationReturn  = "03"
	relationReplace = "04"
)

// plan is everything that a voucher says, decided; what is left is writing.
type plan struct {
	kind     string // satwire.TypeIncome or satwire.TypeExpense
	relation string
	related  string // UUID
	serie    string
	folio    string
	at       time.Time // in the zone of the place of issue
	form     string
	method   string
	currency string
	rate     string
	place    string
	issuer   taxpayer
	receiver taxpayer
	book     *book
	items    []transaction.Item
	defaults defaults
	units    map[string]bool
}

// taxpayer is a party as SAT names it.
type taxpayer struct {
	rfc, name, regime  string
	use, domicile      string
	residence, foreign string // ISO alpha-3, and the number abroad
}

type defaults struct{ product, unit string }

// global reports whether the voucher is a global invoice: it is when the
// receiver is the general public under that very name (Anexo 20, CFDI40130).
func (p *plan) global() bool {
	return p.receiver.rfc == satwire.RFCPublic && p.receiver.name == satwire.NamePublic
}

// voucher writes the plan as an element, without seal and certificate.
func (p *plan) voucher() *node {
	s := p.book.addUp()
	d := p.book.decimals
	n := element("cfdi:Comprobante", "xmlns:cfdi", satwire.SpaceCFDI, "xmlns:xsi", spaceXSI,
		"xsi:schemaLocation", satwire.SpaceCFDI+" http://www.sat.gob.mx/sitio_internet/cfd/4/cfdv40.xsd", "Version", "4.0")
	n.set("Serie", p.serie)
	n.set("Folio", p.folio)
	n.set("Fecha", p.at.Format(satwire.LocalTime))
	n.set("FormaPago", p.form)
	n.set("SubTotal", money(s.subtotal, d))
	if s.discount > 0 {
		n.set("Descuento", money(s.discount, d))
	}
	n.set("Moneda", p.currency)
	n.set("TipoCambio", p.rate)
	n.set("Total", money(s.total(), d))
	n.set("TipoDeComprobante", p.kind)
	n.set("Exportacion", "01")
	n.set("MetodoPago", p.method)
	n.set("LugarExpedicion", p.place)
	if p.global() {
		n.add(element("cfdi:InformacionGlobal", "Periodicidad", "01", "Meses", p.at.Format("01"), "Año", p.at.Format("2006")))
	}
	if p.related != "" {
		n.add(element("cfdi:CfdiRelacionados", "TipoRelacion", p.relation)).add(element("cfdi:CfdiRelacionado", "UUID", p.related))
	}
	n.add(element("cfdi:Emisor", "Rfc", p.issuer.rfc, "Nombre", p.issuer.name, "RegimenFiscal", p.issuer.regime))
	receiver := n.add(element("cfdi:Receptor", "Rfc", p.receiver.rfc, "Nombre", p.receiver.name, "DomicilioFiscalReceptor", p.receiver.domicile))
	receiver.set("ResidenciaFiscal", p.receiver.residence)
	receiver.set("NumRegIdTrib", p.receiver.foreign)
	receiver.set("RegimenFiscalReceptor", p.receiver.regime)
	receiver.set("UsoCFDI", p.receiver.use)
	concepts := n.add(element("cfdi:Conceptos"))
	for _, c := range p.book.concepts {
		concepts.add(p.concept(c))
	}
	if len(s.transfers)+len(s.retentions) > 0 {
		n.add(p.taxes(&s))
	}
	return n
}

func (p *plan) concept(c *concept) *node {
	item, d := &p.items[c.item], p.book.decimals
	n := element("cfdi:Concepto", "ClaveProdServ", p.product(item))
	n.set("NoIdentificacion", item.EAN)
	n.set("Cantidad", item.Quantity.MinimalString())
	key, label := p.unit(item)
	n.set("ClaveUnidad", key)
	n.set("Unidad", label)
	n.set("Descripcion", description(item))
	n.set("ValorUnitario", precise(c.unit, d))
	n.set("Importe", money(c.importe, d))
	if c.discount > 0 {
		n.set("Descuento", money(c.discount, d))
	}
	levies := c.taxed()
	switch {
	case len(c.levies) == 0:
		n.set("ObjetoImp", "01")
	case len(levies) == 0:
		n.set("ObjetoImp", "04")
	default:
		n.set("ObjetoImp", "02")
		n.add(c.taxes(levies, d))
	}
	return n
}

func (c *concept) taxes(levies []levy, decimals int) *node {
	n := element("cfdi:Impuestos")
	var transfers, retentions *node
	for j, l := range levies {
		if l.withheld {
			if retentions == nil {
				retentions = element("cfdi:Retenciones")
			}
			retentions.add(l.entry("cfdi:Retencion", money(c.baseOf(j), decimals), money(c.amounts[j], decimals)))
			continue
		}
		if transfers == nil {
			transfers = n.add(element("cfdi:Traslados"))
		}
		transfers.add(l.entry("cfdi:Traslado", money(c.baseOf(j), decimals), money(c.amounts[j], decimals)))
	}
	if retentions != nil {
		n.add(retentions)
	}
	return n
}

func (l levy) entry(name, base, amount string) *node {
	n := element(name, "Base", base, "Impuesto", l.tax)
	if l.exempt {
		n.set("TipoFactor", "Exento")
		return n
	}
	n.set("TipoFactor", "Tasa")
	n.set("TasaOCuota", money(int64(l.rate), 6))
	n.set("Importe", amount)
	return n
}

func (p *plan) taxes(s *sums) *node {
	n, d := element("cfdi:Impuestos"), p.book.decimals
	if len(s.retentions) > 0 {
		n.set("TotalImpuestosRetenidos", money(s.withheld, d))
		list := n.add(element("cfdi:Retenciones"))
		for _, r := range s.retentions {
			list.add(element("cfdi:Retencion", "Impuesto", r.tax, "Importe", money(r.amount, d)))
		}
	}
	if len(s.transfers) == 0 {
		return n
	}
	list := n.add(element("cfdi:Traslados"))
	taxed := false
	for _, t := range s.transfers {
		taxed = taxed || !t.levy.exempt
		list.add(t.levy.entry("cfdi:Traslado", money(t.base, d), money(t.amount, d)))
	}
	if taxed {
		n.set("TotalImpuestosTrasladados", money(s.transferred, d))
	}
	return n
}

func (p *plan) product(item *transaction.Item) string {
	if item.Code != "" {
		return item.Code
	}
	return p.defaults.product
}

// unit is ClaveUnidad, and the client's own word for it where it is no key.
func (p *plan) unit(item *transaction.Item) (key, label string) {
	if p.units[item.Unit] {
		return item.Unit, ""
	}
	key = p.defaults.unit
	if key == "" {
		key = "H87" // piece
		if item.Type == transaction.Services {
			key = "E48" // unit of service
		}
	}
	return key, tidy(item.Unit)
}

func description(item *transaction.Item) string {
	text := tidy(item.Name)
	if item.Description != "" {
		text += " - " + tidy(item.Description)
	}
	return text
}

// tidy is text as an attribute may carry it: no control characters, one blank
// for any run of blanks, none at the ends. SAT's schemas collapse blanks and
// measure what is left.
func tidy(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFE' || r == '\uFFFF' || r == '\uFEFF' {
			return ' '
		}
		return r
	}, text)), " ")
}

// official is a name as SAT registers it: in capitals.
func official(name string) string { return strings.ToUpper(tidy(name)) }

// split makes Serie and Folio of a number: all of it is Folio; what a Folio of
// 40 characters cannot hold stands before it as Serie.
func split(number string) (serie, folio string) {
	runes := []rune(number)
	if len(runes) <= folioMax {
		return "", number
	}
	cut := len(runes) - folioMax
	return string(runes[:cut]), string(runes[cut:])
}

const folioMax = 40

func invalid(faults ...fault.Fault) error {
	return fault.New(fault.Invalid, "the transaction cannot be a voucher").With(faults...)
}
