package mx

import (
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/mx/wire"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// plan is everything that a voucher says, decided; what is left is writing.
type plan struct {
	kind     string // satwire.TypeIncome or satwire.TypeExpense
	relation string
	related  []string // UUIDs
	serie    string
	folio    string
	at       time.Time // in the zone of the place of issue
	form     string
	method   string
	currency string
	rate     string
	worth    worth // of payments in another currency than what they pay
	place    string
	issuer   taxpayer
	receiver taxpayer
	book     *book
	items    []transaction.Item
	defaults defaults
	units    map[string]bool
	thirds   map[string]third // by RFC
	span     *country.Span    // of a global invoice of several sales
}

// taxpayer is a party as SAT names it.
type taxpayer struct {
	rfc, name, regime  string
	use, domicile      string
	residence, foreign string // ISO alpha-3, and the number abroad
}

type defaults struct{ product, unit string }

// global reports whether the voucher is a global invoice: it is when it is of
// income and the receiver is the general public under that very name (Anexo 20,
// CFDI40130). A type E never is.
func (p *plan) global() bool {
	return p.kind == satwire.TypeIncome && p.receiver.rfc == satwire.RFCPublic && p.receiver.name == satwire.NamePublic
}

// voucher writes the plan as an element, without seal and certificate.
func (p *plan) voucher() *xmltree.Element {
	s := p.book.addUp()
	d := p.book.decimals
	local := len(s.locals)+len(s.localRetentions) > 0
	n := root(local)
	n.Set("Serie", p.serie)
	n.Set("Folio", p.folio)
	n.Set("Fecha", p.at.Format(satwire.LocalTime))
	n.Set("FormaPago", p.form)
	n.Set("SubTotal", money(s.subtotal, d))
	if s.discount > 0 {
		n.Set("Descuento", money(s.discount, d))
	}
	n.Set("Moneda", p.currency)
	n.Set("TipoCambio", p.rate)
	n.Set("Total", money(s.total(), d))
	n.Set("TipoDeComprobante", p.kind)
	n.Set("Exportacion", "01")
	n.Set("MetodoPago", p.method)
	n.Set("LugarExpedicion", p.place)
	if p.global() {
		period, from := periodicities[country.Daily], p.at
		if p.span != nil {
			period, from = periodicities[p.span.Cadence], p.span.First
		}
		n.Add(xmltree.New("cfdi:InformacionGlobal", "Periodicidad", period, "Meses", from.Format("01"), "Año", from.Format("2006")))
	}
	if len(p.related) > 0 {
		list := n.Add(xmltree.New("cfdi:CfdiRelacionados", "TipoRelacion", p.relation))
		for _, uuid := range p.related {
			list.Add(xmltree.New("cfdi:CfdiRelacionado", "UUID", uuid))
		}
	}
	p.parties(n)
	concepts := n.Add(xmltree.New("cfdi:Conceptos"))
	for _, c := range p.book.concepts {
		if p.global() {
			concepts.Add(p.condensed(c))
		} else {
			concepts.Add(p.concept(c))
		}
	}
	if len(s.transfers)+len(s.retentions) > 0 {
		n.Add(p.taxes(&s))
	}
	if local {
		n.Add(xmltree.New("cfdi:Complemento")).Add(p.locals(&s))
	}
	return n
}

// root is an empty voucher; SAT wants the namespaces of complements declared there.
func root(local bool) *xmltree.Element {
	where := satwire.SpaceCFDI + " http://www.sat.gob.mx/sitio_internet/cfd/4/cfdv40.xsd"
	if !local {
		return xmltree.New("cfdi:Comprobante", "xmlns:cfdi", satwire.SpaceCFDI, "xmlns:xsi", xmltree.SpaceXSI,
			"xsi:schemaLocation", where, "Version", "4.0")
	}
	return xmltree.New("cfdi:Comprobante", "xmlns:cfdi", satwire.SpaceCFDI, "xmlns:implocal", satwire.SpaceLocal,
		"xmlns:xsi", xmltree.SpaceXSI,
		"xsi:schemaLocation", where+" "+satwire.SpaceLocal+" http://www.sat.gob.mx/sitio_internet/cfd/implocal/implocal.xsd",
		"Version", "4.0")
}

// parties writes who issues and who receives.
func (p *plan) parties(n *xmltree.Element) {
	n.Add(xmltree.New("cfdi:Emisor", "Rfc", p.issuer.rfc, "Nombre", p.issuer.name, "RegimenFiscal", p.issuer.regime))
	receiver := n.Add(xmltree.New("cfdi:Receptor", "Rfc", p.receiver.rfc, "Nombre", p.receiver.name,
		"DomicilioFiscalReceptor", p.receiver.domicile))
	receiver.Set("ResidenciaFiscal", p.receiver.residence)
	receiver.Set("NumRegIdTrib", p.receiver.foreign)
	receiver.Set("RegimenFiscalReceptor", p.receiver.regime)
	receiver.Set("UsoCFDI", p.receiver.use)
}

func (p *plan) concept(c *concept) *xmltree.Element {
	item, d := &p.items[c.item], p.book.decimals
	n := xmltree.New("cfdi:Concepto", "ClaveProdServ", p.product(item))
	n.Set("NoIdentificacion", item.EAN)
	n.Set("Cantidad", item.Quantity.MinimalString())
	key, label := p.unit(item)
	n.Set("ClaveUnidad", key)
	n.Set("Unidad", label)
	n.Set("Descripcion", description(item))
	c.amount(n, d)
	p.mark(n, item)
	return n
}

// amount writes what a concept comes to, and its taxes.
func (c *concept) amount(n *xmltree.Element, d int) {
	n.Set("ValorUnitario", precise(c.unit, d))
	n.Set("Importe", money(c.importe, d))
	if c.discount > 0 {
		n.Set("Descuento", money(c.discount, d))
	}
	levies := c.taxed()
	switch {
	case !federal(c.levies):
		n.Set("ObjetoImp", "01")
	case !federal(levies):
		n.Set("ObjetoImp", "04")
	default:
		n.Set("ObjetoImp", "02")
		n.Add(c.taxes(levies, d))
	}
}

func (c *concept) taxes(levies []levy, decimals int) *xmltree.Element {
	n := xmltree.New("cfdi:Impuestos")
	var transfers, retentions *xmltree.Element
	for j, l := range levies {
		if l.local {
			continue
		}
		if l.withheld {
			if retentions == nil {
				retentions = xmltree.New("cfdi:Retenciones")
			}
			retentions.Add(l.entry("cfdi:Retencion", l.baseText(c.baseOf(j), decimals), money(c.amounts[j], decimals)))
			continue
		}
		if transfers == nil {
			transfers = n.Add(xmltree.New("cfdi:Traslados"))
		}
		transfers.Add(l.entry("cfdi:Traslado", l.baseText(c.baseOf(j), decimals), money(c.amounts[j], decimals)))
	}
	if retentions != nil {
		n.Add(retentions)
	}
	return n
}

func (l levy) entry(name, base, amount string) *xmltree.Element {
	n := xmltree.New(name, "Base", base, "Impuesto", l.tax)
	if l.exempt {
		n.Set("TipoFactor", "Exento")
		return n
	}
	n.Set("TipoFactor", l.factor())
	n.Set("TasaOCuota", money(int64(l.rate), 6))
	n.Set("Importe", amount)
	return n
}

// factor is TipoFactor of a tax that is not exempt.
func (l levy) factor() string {
	if l.quota {
		return factorQuota
	}
	return "Tasa"
}

const factorQuota = "Cuota"

func (p *plan) taxes(s *sums) *xmltree.Element {
	n, d := xmltree.New("cfdi:Impuestos"), p.book.decimals
	if len(s.retentions) > 0 {
		n.Set("TotalImpuestosRetenidos", money(s.withheld, d))
		list := n.Add(xmltree.New("cfdi:Retenciones"))
		for _, r := range s.retentions {
			list.Add(xmltree.New("cfdi:Retencion", "Impuesto", r.tax, "Importe", money(r.amount, d)))
		}
	}
	if len(s.transfers) == 0 {
		return n
	}
	list := n.Add(xmltree.New("cfdi:Traslados"))
	taxed := false
	for _, t := range s.transfers {
		taxed = taxed || !t.levy.exempt
		list.Add(t.levy.entry("cfdi:Traslado", t.levy.baseText(t.base, d), money(t.amount, d)))
	}
	if taxed {
		n.Set("TotalImpuestosTrasladados", money(s.transferred, d))
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
	return key, wire.Tidy(item.Unit)
}

func description(item *transaction.Item) string {
	if item.Description == "" {
		return wire.Tidy(item.Name)
	}
	return wire.Tidy(item.Name) + " - " + wire.Tidy(item.Description)
}

// official is a name as SAT registers it: in capitals.
func official(name string) string { return strings.ToUpper(wire.Tidy(name)) }

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
