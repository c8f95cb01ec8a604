package mx

import (
	"fmt"
	"strings"

	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// The attributes of each element in the order in which they stand in the
// original string (cadena original), by SAT's cadenaoriginal_4_0.xslt and
// Pagos20.xslt. A question mark: left out where the attribute is absent.
const (
	chainVoucher = "Version ?Serie ?Folio Fecha ?FormaPago NoCertificado ?CondicionesDePago SubTotal ?Descuento Moneda ?TipoCambio Total" +
		" TipoDeComprobante Exportacion ?MetodoPago LugarExpedicion ?Confirmacion"
	chainGlobal    = "Periodicidad Meses Año"
	chainIssuer    = "Rfc Nombre RegimenFiscal ?FacAtrAdquirente"
	chainReceiver  = "Rfc Nombre DomicilioFiscalReceptor ?ResidenciaFiscal ?NumRegIdTrib RegimenFiscalReceptor UsoCFDI"
	chainConcept   = "ClaveProdServ ?NoIdentificacion Cantidad ClaveUnidad ?Unidad Descripcion ValorUnitario Importe ?Descuento ObjetoImp"
	chainTransfer  = "Base Impuesto TipoFactor ?TasaOCuota ?Importe"
	chainRetention = "Base Impuesto TipoFactor TasaOCuota Importe"
	chainThird     = "RfcACuentaTerceros NombreACuentaTerceros RegimenFiscalACuentaTerceros DomicilioFiscalACuentaTerceros"
	chainPart      = "ClaveProdServ ?NoIdentificacion Cantidad ?Unidad Descripcion ?ValorUnitario ?Importe"
	chainStamp     = "Version UUID FechaTimbrado RfcProvCertif ?Leyenda SelloCFD NoCertificadoSAT"

	chainPayTotals = "?TotalRetencionesIVA ?TotalRetencionesISR ?TotalRetencionesIEPS ?TotalTrasladosBaseIVA16 ?TotalTrasladosImpuestoIVA16" +
		" ?TotalTrasladosBaseIVA8 ?TotalTrasladosImpuestoIVA8 ?TotalTrasladosBaseIVA0 ?TotalTrasladosImpuestoIVA0 ?TotalTrasladosBaseIVAExento MontoTotalPagos"
	chainPay = "FechaPago FormaDePagoP MonedaP ?TipoCambioP Monto ?NumOperacion ?RfcEmisorCtaOrd ?NomBancoOrdExt ?CtaOrdenante ?RfcEmisorCtaBen" +
		" ?CtaBeneficiario ?TipoCadPago ?CertPago ?CadPago ?SelloPago"
	chainPaid          = "IdDocumento ?Serie ?Folio MonedaDR ?EquivalenciaDR NumParcialidad ImpSaldoAnt ImpPagado ImpSaldoInsoluto ObjetoImpDR"
	chainPaidRetention = "BaseDR ImpuestoDR TipoFactorDR TasaOCuotaDR ImporteDR"
	chainPaidTransfer  = "BaseDR ImpuestoDR TipoFactorDR ?TasaOCuotaDR ?ImporteDR"
	chainPayTransfer   = "BaseP ImpuestoP TipoFactorP ?TasaOCuotaP ?ImporteP"
)

// chain gathers an original string.
type chain struct {
	out     []byte
	unknown string // a complement whose rules are not written here
}

// original is the original string of a voucher: what its seal signs. It knows
// the voucher itself and the payments complement; the stamp adds nothing.
func original(voucher *xmltree.Element) ([]byte, error) {
	c := &chain{out: append(make([]byte, 0, 2<<10), '|')}
	c.voucher(voucher)
	if c.unknown != "" {
		return nil, fmt.Errorf("making the original string: the rules of %s are not known", c.unknown)
	}
	return append(c.out, '|', '|'), nil
}

// originalOfStamp is the original string of a stamp, by cadenaoriginal_TFD_1_1.xslt.
func originalOfStamp(stamp *xmltree.Element) []byte {
	c := &chain{out: append(make([]byte, 0, 1<<10), '|')}
	c.take(stamp, chainStamp)
	return append(c.out, '|', '|')
}

// take appends the attributes of an element.
func (c *chain) take(n *xmltree.Element, fields string) {
	for field := range strings.FieldsSeq(fields) {
		name, optional := strings.CutPrefix(field, "?")
		value, there := n.Lookup("", name)
		if !there && optional {
			continue
		}
		c.out = append(c.out, '|')
		c.out = appendNormal(c.out, value)
	}
}

// each takes the elements at the end of a path.
func (c *chain) each(n *xmltree.Element, fields string, path ...string) {
	each(n, func(k *xmltree.Element) { c.take(k, fields) }, path...)
}

func (c *chain) voucher(n *xmltree.Element) {
	c.take(n, chainVoucher)
	c.each(n, chainGlobal, "InformacionGlobal")
	each(n, func(k *xmltree.Element) {
		c.take(k, "TipoRelacion")
		c.each(k, "UUID", "CfdiRelacionado")
	}, "CfdiRelacionados")
	c.each(n, chainIssuer, "Emisor")
	c.each(n, chainReceiver, "Receptor")
	each(n, c.concept, "Conceptos", "Concepto")
	each(n, func(k *xmltree.Element) {
		c.each(k, "Impuesto Importe", "Retenciones", "Retencion")
		c.take(k, "?TotalImpuestosRetenidos")
		c.each(k, chainTransfer, "Traslados", "Traslado")
		c.take(k, "?TotalImpuestosTrasladados")
	}, "Impuestos")
	each(n, func(k *xmltree.Element) {
		for _, complement := range k.Children {
			c.complement(complement)
		}
	}, "Complemento")
}

func (c *chain) concept(n *xmltree.Element) {
	c.take(n, chainConcept)
	c.each(n, chainTransfer, "Impuestos", "Traslados", "Traslado")
	c.each(n, chainRetention, "Impuestos", "Retenciones", "Retencion")
	c.each(n, chainThird, "ACuentaTerceros")
	c.each(n, "NumeroPedimento", "InformacionAduanera")
	c.each(n, "Numero", "CuentaPredial")
	each(n, func(k *xmltree.Element) {
		for _, complement := range k.Children {
			c.unknown = complement.QName()
		}
	}, "ComplementoConcepto")
	each(n, func(k *xmltree.Element) {
		c.take(k, chainPart)
		c.each(k, "NumeroPedimento", "InformacionAduanera")
	}, "Parte")
}

func (c *chain) complement(n *xmltree.Element) {
	switch {
	case n.Is(satwire.SpaceStamp, "TimbreFiscalDigital"): // has no rules in the voucher's sheet, and no text
	case n.Is(satwire.SpacePagos, "Pagos"):
		c.take(n, "Version")
		c.each(n, chainPayTotals, "Totales")
		each(n, c.payment, "Pago")
	case n.Is(satwire.SpaceLocal, "ImpuestosLocales"):
		c.take(n, "version TotaldeRetenciones TotaldeTraslados")
		c.each(n, "ImpLocRetenido TasadeRetencion Importe", "RetencionesLocales")
		c.each(n, "ImpLocTrasladado TasadeTraslado Importe", "TrasladosLocales")
	default:
		c.unknown = n.QName()
	}
}

func (c *chain) payment(n *xmltree.Element) {
	c.take(n, chainPay)
	each(n, func(k *xmltree.Element) {
		c.take(k, chainPaid)
		c.each(k, chainPaidRetention, "ImpuestosDR", "RetencionesDR", "RetencionDR")
		c.each(k, chainPaidTransfer, "ImpuestosDR", "TrasladosDR", "TrasladoDR")
	}, "DoctoRelacionado")
	each(n, func(k *xmltree.Element) {
		c.each(k, "ImpuestoP ImporteP", "RetencionesP", "RetencionP")
		c.each(k, chainPayTransfer, "TrasladosP", "TrasladoP")
	}, "ImpuestosP")
}

// appendNormal writes text as XPath's normalize-space does: no blanks at the
// ends, one blank for any run of them. Only the four blanks of XML count.
func appendNormal(out []byte, text string) []byte {
	blank, any := false, false
	for i := range len(text) {
		switch b := text[i]; b {
		case ' ', '\t', '\r', '\n':
			blank = any
		default:
			if blank {
				out = append(out, ' ')
			}
			out = append(out, b)
			blank, any = false, true
		}
	}
	return out
}
