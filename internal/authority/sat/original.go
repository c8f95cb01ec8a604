package sat

import (
	"strings"

	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// sheetText is SAT's cadenaoriginal_4_0.xslt as the double reads it, a line for
// each template: its name, then what it writes in order. @X is an attribute, @X?
// one that is left out where it is absent, X:y every child X by template y.
const sheetText = `
voucher @Version @Serie? @Folio? @Fecha @FormaPago? @NoCertificado @CondicionesDePago? @SubTotal @Descuento? @Moneda @TipoCambio? @Total @TipoDeComprobante @Exportacion @MetodoPago? @LugarExpedicion @Confirmacion? InformacionGlobal:global CfdiRelacionados:relations Emisor:issuer Receptor:receiver Conceptos:lines Impuestos:taxes Complemento:complement
complement Pagos:pays ImpuestosLocales:local
local @version @TotaldeRetenciones @TotaldeTraslados RetencionesLocales:local-retention TrasladosLocales:local-transfer
local-retention @ImpLocRetenido @TasadeRetencion @Importe
local-transfer @ImpLocTrasladado @TasadeTraslado @Importe
pays @Version Totales:pay-totals Pago:pay
pay-totals @TotalRetencionesIVA? @TotalRetencionesISR? @TotalRetencionesIEPS? @TotalTrasladosBaseIVA16? @TotalTrasladosImpuestoIVA16? @TotalTrasladosBaseIVA8? @TotalTrasladosImpuestoIVA8? @TotalTrasladosBaseIVA0? @TotalTrasladosImpuestoIVA0? @TotalTrasladosBaseIVAExento? @MontoTotalPagos
pay @FechaPago @FormaDePagoP @MonedaP @TipoCambioP? @Monto @NumOperacion? @RfcEmisorCtaOrd? @NomBancoOrdExt? @CtaOrdenante? @RfcEmisorCtaBen? @CtaBeneficiario? @TipoCadPago? @CertPago? @CadPago? @SelloPago? DoctoRelacionado:paid ImpuestosP:pay-taxes
paid @IdDocumento @Serie? @Folio? @MonedaDR @EquivalenciaDR? @NumParcialidad @ImpSaldoAnt @ImpPagado @ImpSaldoInsoluto @ObjetoImpDR ImpuestosDR:paid-taxes
paid-taxes RetencionesDR:paid-retentions TrasladosDR:paid-transfers
paid-retentions RetencionDR:paid-retention
paid-retention @BaseDR @ImpuestoDR @TipoFactorDR @TasaOCuotaDR @ImporteDR
paid-transfers TrasladoDR:paid-transfer
paid-transfer @BaseDR @ImpuestoDR @TipoFactorDR @TasaOCuotaDR? @ImporteDR?
pay-taxes RetencionesP:pay-retentions TrasladosP:pay-transfers
pay-retentions RetencionP:pay-retention
pay-retention @ImpuestoP @ImporteP
pay-transfers TrasladoP:pay-transfer
pay-transfer @BaseP @ImpuestoP @TipoFactorP @TasaOCuotaP? @ImporteP?
global @Periodicidad @Meses @Año
relations @TipoRelacion CfdiRelacionado:related
related @UUID
issuer @Rfc @Nombre @RegimenFiscal @FacAtrAdquirente?
receiver @Rfc @Nombre @DomicilioFiscalReceptor @ResidenciaFiscal? @NumRegIdTrib? @RegimenFiscalReceptor @UsoCFDI
lines Concepto:line
line @ClaveProdServ @NoIdentificacion? @Cantidad @ClaveUnidad @Unidad? @Descripcion @ValorUnitario @Importe @Descuento? @ObjetoImp Impuestos:line-taxes ACuentaTerceros:third InformacionAduanera:customs CuentaPredial:land Parte:part
line-taxes Traslados:transfers Retenciones:line-retentions
line-retentions Retencion:line-retention
line-retention @Base @Impuesto @TipoFactor @TasaOCuota @Importe
third @RfcACuentaTerceros @NombreACuentaTerceros @RegimenFiscalACuentaTerceros @DomicilioFiscalACuentaTerceros
customs @NumeroPedimento
land @Numero
part @ClaveProdServ @NoIdentificacion? @Cantidad @Unidad? @Descripcion @ValorUnitario? @Importe? InformacionAduanera:customs
taxes Retenciones:retentions @TotalImpuestosRetenidos? Traslados:transfers @TotalImpuestosTrasladados?
retentions Retencion:retention
retention @Impuesto @Importe
transfers Traslado:transfer
transfer @Base @Impuesto @TipoFactor @TasaOCuota? @Importe?`

// sheet is the text above, by template.
type sheet map[string][]string

func newSheet() sheet {
	s := sheet{}
	for line := range strings.Lines(strings.TrimSpace(sheetText)) {
		steps := strings.Fields(line)
		s[steps[0]] = steps[1:]
	}
	return s
}

// original is the original string of a voucher, which its seal signs. The
// voucher has the official structure and no complement but that of payments.
func (s sheet) original(voucher *xmltree.Element) []byte {
	return append(s.apply([]byte{'|'}, "voucher", voucher), "||"...)
}

func (s sheet) apply(out []byte, template string, e *xmltree.Element) []byte {
	for _, step := range s[template] {
		if attribute, ok := strings.CutPrefix(step, "@"); ok {
			out = field(out, e, attribute)
			continue
		}
		child, next, _ := strings.Cut(step, ":")
		for _, c := range e.Children {
			if c.Is(satwire.SpaceCFDI, child) || c.Is(satwire.SpacePagos, child) || c.Is(satwire.SpaceLocal, child) {
				out = s.apply(out, next, c)
			}
		}
	}
	return out
}

// field writes one attribute behind a bar, its white space as XPath's
// normalize-space leaves it.
func field(out []byte, e *xmltree.Element, attribute string) []byte {
	name, optional := strings.CutSuffix(attribute, "?")
	value, there := e.Lookup("", name)
	if !there && optional {
		return out
	}
	words := strings.FieldsFunc(value, func(c rune) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' })
	return append(append(out, '|'), strings.Join(words, " ")...)
}

// originalOfStamp is the original string of a stamp (cadenaoriginal_TFD_1_1.xslt),
// which SAT's seal signs.
func originalOfStamp(stamp *xmltree.Element) []byte {
	out := []byte{'|'}
	for _, name := range []string{"Version", "UUID", "FechaTimbrado", "RfcProvCertif", "Leyenda?", "SelloCFD",
		"NoCertificadoSAT"} {
		out = field(out, stamp, name)
	}
	return append(out, "||"...)
}
