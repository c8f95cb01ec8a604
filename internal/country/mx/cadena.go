package mx

import (
	"fmt"
	"strings"
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
func original(voucher *node) ([]byte, error) {
	c := &chain{out: append(make([]byte, 0, 2<<10), '|')}
	c.voucher(voucher)
	if c.unknown != "" {
		return nil, fmt.Errorf("making the original string: the rules of %s are not known", c.unknown)
	}
	return append(c.out, '|', '|'), nil
}

// originalOfStamp is the original string of a stamp, by cadenaoriginal_TFD_1_1.xslt.
func originalOfStamp(stamp *node) []byte {
	c := &chain{out: append(make([]byte, 0, 1<<10), '|')}
	c.take(stamp, chainStamp)
	return append(c.out, '|', '|')
}

// take appends the attributes of an element.
func (c *chain) take(n *node, fields string) {
	for field := range strings.FieldsSeq(fields) {
		name, optional := strings.CutPrefix(field, "?")
		value, there := n.lookup(name)
		if !there && optional {
			continue
		}
		c.out = append(c.out, '|')
		c.out = appendNormal(c.out, value)
	}
}

// each takes the elements at the end of a path.
func (c *chain) each(n *node, fields string, path ...string) {
	n.all(func(k *node) { c.take(k, fields) }, path...)
}

func (c *chain) voucher(n *node) {
	c.take(n, chainVoucher)
	c.each(n, chainGlobal, "cfdi:InformacionGlobal")
	n.all(func(k *node) {
		c.take(k, "TipoRelacion")
		c.each(k, "UUID", "cfdi:CfdiRelacionado")
	}, "cfdi:CfdiRelacionados")
	c.each(n, chainIssuer, "cfdi:Emisor")
	c.each(n, chainReceiver, "cfdi:Receptor")
	n.all(c.concept, "cfdi:Conceptos", "cfdi:Concepto")
	n.all(func(k *node) {
		c.each(k, "Impuesto Importe", "cfdi:Retenciones", "cfdi:Retencion")
		c.take(k, "?TotalImpuestosRetenidos")
		c.each(k, chainTransfer, "cfdi:Traslados", "cfdi:Traslado")
		c.take(k, "?TotalImpuestosTrasladados")
	}, "cfdi:Impuestos")
	n.all(func(k *node) {
		for _, complement := range k.kids {
			c.complement(complement)
		}
	}, "cfdi:Complemento")
}

func (c *chain) concept(n *node) {
	c.take(n, chainConcept)
	c.each(n, chainTransfer, "cfdi:Impuestos", "cfdi:Traslados", "cfdi:Traslado")
	c.each(n, chainRetention, "cfdi:Impuestos", "cfdi:Retenciones", "cfdi:Retencion")
	c.each(n, chainThird, "cfdi:ACuentaTerceros")
	c.each(n, "NumeroPedimento", "cfdi:InformacionAduanera")
	c.each(n, "Numero", "cfdi:CuentaPredial")
	n.all(func(k *node) {
		for _, complement := range k.kids {
			c.unknown = complement.name
		}
	}, "cfdi:ComplementoConcepto")
	n.all(func(k *node) {
		c.take(k, chainPart)
		c.each(k, "NumeroPedimento", "cfdi:InformacionAduanera")
	}, "cfdi:Parte")
}

func (c *chain) complement(n *node) {
	switch n.name {
	case "tfd:TimbreFiscalDigital": // has no rules in the voucher's sheet, and no text
	case "pago20:Pagos":
		c.take(n, "Version")
		c.each(n, chainPayTotals, "pago20:Totales")
		n.all(c.payment, "pago20:Pago")
	default:
		c.unknown = n.name
	}
}

func (c *chain) payment(n *node) {
	c.take(n, chainPay)
	n.all(func(k *node) {
		c.take(k, chainPaid)
		c.each(k, chainPaidRetention, "pago20:ImpuestosDR", "pago20:RetencionesDR", "pago20:RetencionDR")
		c.each(k, chainPaidTransfer, "pago20:ImpuestosDR", "pago20:TrasladosDR", "pago20:TrasladoDR")
	}, "pago20:DoctoRelacionado")
	n.all(func(k *node) {
		c.each(k, "ImpuestoP ImporteP", "pago20:RetencionesP", "pago20:RetencionP")
		c.each(k, chainPayTransfer, "pago20:TrasladosP", "pago20:TrasladoP")
	}, "pago20:ImpuestosP")
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
