package mx

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/country"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// imprint is what a printed CFDI must carry (RMF 2.7.1.7 and Anexo 20, II.D
// and II.E): the code, the folio fiscal, both certificates, both seals, the
// original string of the stamp, its time, and the words that it is a printed
// representation. The words are Spanish by law, whatever the language of the rest.
func imprint(in country.Issue) country.Imprint {
	got, err := readStamped(in.Receipt)
	if err != nil && gatheredIssue(in) {
		return gatheredImprint(in)
	}
	if err != nil {
		return cancelledImprint(in)
	}
	v := got.voucher
	out := country.Imprint{Title: "Factura (CFDI de ingreso)"}
	if in.Transaction != nil {
		_, sign := direction(in.Transaction.Kind, in.Totals)
		out.Negated = sign < 0
	}
	switch v.Attr("TipoDeComprobante") {
	case satwire.TypeExpense:
		out.Title = "Nota de crédito (CFDI de egreso)"
	case satwire.TypePayment:
		out.Title = "Recibo electrónico de pago (CFDI de pago)"
	}
	out.Codes = []country.Code{{Text: got.address(), Caption: "verificacfdi.facturaelectronica.sat.gob.mx"}}
	label := func(name, value string) {
		if value != "" {
			out.Identifiers = append(out.Identifiers, country.Identifier{Label: name, Value: value})
		}
	}
	label("Folio fiscal (UUID)", got.uuid())
	label("Serie y folio", strings.TrimSpace(v.Attr("Serie")+" "+v.Attr("Folio")))
	label("No. de serie del CSD del emisor", v.Attr("NoCertificado"))
	label("No. de serie del certificado del SAT", got.number())
	label("Fecha y hora de certificación", got.stamp.Attr("FechaTimbrado"))
	label("RFC del proveedor de certificación", got.stamp.Attr("RfcProvCertif"))
	label("Lugar y fecha de expedición", v.Attr("LugarExpedicion")+" "+v.Attr("Fecha"))
	if issuer := child(v, "Emisor"); issuer != nil {
		label("Régimen fiscal del emisor", named(issuer.Attr("RegimenFiscal")))
	}
	if global := child(v, "InformacionGlobal"); global != nil {
		label("Factura global", "periodicidad "+told(global.Attr("Periodicidad"), cycleWords)+", mes "+global.Attr("Meses")+" de "+global.Attr("Año"))
		label("Descripción", descriptions(v))
	}
	if receiver := child(v, "Receptor"); receiver != nil {
		label("Nombre del receptor", receiver.Attr("Nombre"))
		label("RFC del receptor", receiver.Attr("Rfc"))
		label("Régimen fiscal del receptor", named(receiver.Attr("RegimenFiscalReceptor")))
		label("Domicilio fiscal del receptor", receiver.Attr("DomicilioFiscalReceptor"))
		label("Uso del CFDI", told(receiver.Attr("UsoCFDI"), useWords))
	}
	label("Método de pago", told(v.Attr("MetodoPago"), methodWords))
	label("Forma de pago", told(v.Attr("FormaPago"), formWords))
	each(v, func(n *xmltree.Element) {
		label("CFDI relacionado ("+told(child(v, "CfdiRelacionados").Attr("TipoRelacion"), relationWords)+")", n.Attr("UUID"))
	}, "CfdiRelacionados", "CfdiRelacionado")
	for e := range v.Walk() {
		paidFor(e, label)
	}
	out.Language, out.Words = "ES", spoken(in.Transaction)
	out.Texts = []string{
		"Sello digital del CFDI: " + v.Attr("Sello"),
		"Sello digital del SAT: " + got.stamp.Attr("SelloSAT"),
		"Cadena original del complemento de certificación digital del SAT: " + string(originalOfStamp(got.stamp)),
		"Este documento es una representación impresa de un CFDI.",
	}
	if keys := lineKeys(v); keys != "" {
		out.Texts = append([]string{"Claves por línea (producto o servicio, unidad, objeto de impuesto): " + keys}, out.Texts...)
	}
	return out
}

// Words of SAT's catalogues.
var (
	methodWords = map[string]string{"PUE": "pago en una sola exhibición", "PPD": "pago en parcialidades o diferido"}
	formWords   = map[string]string{"01": "efectivo", "02": "cheque nominativo", "03": "transferencia electrónica de fondos",
		"04": "tarjeta de crédito", "05": "monedero electrónico", "06": "dinero electrónico", "08": "vales de despensa",
		"12": "dación en pago", "13": "pago por subrogación", "14": "pago por consignación", "15": "condonación",
		"17": "compensación", "23": "novación", "24": "confusión", "25": "remisión de deuda",
		"26": "prescripción o caducidad", "27": "a satisfacción del acreedor", "28": "tarjeta de débito",
		"29": "tarjeta de servicios", "30": "aplicación de anticipos", "31": "intermediario de pagos", "99": "por definir"}
	useWords = map[string]string{"G01": "adquisición de mercancías", "G02": "devoluciones, descuentos o bonificaciones",
		"G03": "gastos en general", "I01": "construcciones", "I02": "mobiliario y equipo de oficina por inversiones",
		"I03": "equipo de transporte", "I04": "equipo de cómputo y accesorios", "I05": "dados, troqueles, moldes, matrices y herramental",
		"I06": "comunicaciones telefónicas", "I07": "comunicaciones satelitales", "I08": "otra maquinaria y equipo",
		"D01": "honorarios médicos, dentales y gastos hospitalarios", "D02": "gastos médicos por incapacidad o discapacidad",
		"D03": "gastos funerales", "D04": "donativos", "D05": "intereses reales pagados por créditos hipotecarios",
		"D06": "aportaciones voluntarias al SAR", "D07": "primas por seguros de gastos médicos",
		"D08": "gastos de transportación escolar obligatoria", "D09": "depósitos para el ahorro y planes de pensiones",
		"D10": "pagos por servicios educativos (colegiaturas)", "S01": "sin efectos fiscales", "CP01": "pagos", "CN01": "nómina"}
	relationWords = map[string]string{relationCredit: "nota de crédito", relationDebit: "nota de débito",
		relationReturn: "devolución de mercancía", relationReplace: "sustitución de los CFDI previos", "05": "traslados de mercancías facturados previamente",
		"06": "factura generada por los traslados previos", relationAdvance: "aplicación de anticipo"}
	motiveWords = map[string]string{"01": "comprobante emitido con errores con relación", "02": "comprobante emitido con errores sin relación",
		"03": "no se llevó a cabo la operación", "04": "operación nominativa relacionada en una factura global"}
	cycleWords = map[string]string{"01": "diaria", "02": "semanal", "03": "quincenal", "04": "mensual", "05": "bimestral"}
)

// told is a key with its words.
func told(key string, list map[string]string) string {
	if list[key] == "" {
		return key
	}
	return key + " – " + list[key]
}

// spoken are the codes of payments and of the reason in words.
func spoken(t *transaction.Transaction) map[string]string {
	if t == nil {
		return nil
	}
	said := map[string]string{}
	for _, p := range t.Payments {
		method, form, _ := strings.Cut(p.Code, ":")
		said[p.Code] = strings.Trim(methodWords[method]+", "+cmp.Or(formWords[form], formWords[method]), ", ")
	}
	key, _, _ := strings.Cut(t.Reason, ":")
	if said[t.Reason] = relationWords[key]; t.Kind == transaction.Cancellation {
		said[t.Reason] = motiveWords[key]
	}
	return said
}

// descriptions are those of the voucher's lines, each once.
func descriptions(v *xmltree.Element) string {
	var list []string
	each(v, func(c *xmltree.Element) {
		if text := c.Attr("Descripcion"); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}, "Conceptos", "Concepto")
	return strings.Join(list, "; ")
}

// lineKeys are the keys of the lines, which the law wants printed, also where
// they are the service's defaults: each set with the numbers of its lines.
func lineKeys(v *xmltree.Element) string {
	var order []string
	lines := map[string][]int{}
	n := 0
	each(v, func(c *xmltree.Element) {
		n++
		key := c.Attr("ClaveProdServ") + " " + c.Attr("ClaveUnidad") + " " + c.Attr("ObjetoImp")
		if lines[key] == nil {
			order = append(order, key)
		}
		lines[key] = append(lines[key], n)
	}, "Conceptos", "Concepto")
	parts := make([]string, len(order))
	for i, key := range order {
		parts[i] = ranges(lines[key]) + ": " + key
	}
	return strings.Join(parts, "; ")
}

// ranges writes rising numbers as 1-3, 5.
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		text := strconv.Itoa(list[i])
		if k > i {
			text += "-" + strconv.Itoa(list[k])
		}
		parts, i = append(parts, text), k+1
	}
	return strings.Join(parts, ", ")
}

// paidFor prints the payments of a receipt: when and how money came, and for
// each voucher what was owed, paid and is left.
func paidFor(e *xmltree.Element, label func(name, value string)) {
	switch {
	case e.Is(satwire.SpacePagos, "Pago"):
		label("Pago", strings.TrimSpace(e.Attr("FechaPago")+" forma "+e.Attr("FormaDePagoP")+" "+e.Attr("Monto")+" "+e.Attr("MonedaP")+" "+e.Attr("NumOperacion")))
	case e.Is(satwire.SpacePagos, "DoctoRelacionado"):
		label("Documento pagado, parcialidad "+e.Attr("NumParcialidad"), e.Attr("IdDocumento"))
		other := ""
		if worth := e.Attr("EquivalenciaDR"); worth != "1" {
			other = " " + e.Attr("MonedaDR") + ", equivalencia " + worth
		}
		label("Saldo anterior, pagado, insoluto",
			e.Attr("ImpSaldoAnt")+", "+e.Attr("ImpPagado")+", "+e.Attr("ImpSaldoInsoluto")+other)
	}
}

func named(regime string) string {
	meaning, _ := satwire.Regime(regime)
	return strings.TrimSpace(regime + " " + meaning)
}

// cancelledImprint is that of a cancellation, whose receipt is SAT's Acuse.
func cancelledImprint(in country.Issue) country.Imprint {
	if in.Transaction == nil || in.Transaction.Kind != transaction.Cancellation {
		return country.PlainImprint(in)
	}
	motive, replacement, _ := strings.Cut(in.Transaction.Reason, ":")
	out := country.Imprint{Title: "Cancelación de CFDI", Identifiers: []country.Identifier{
		{Label: "Folio fiscal cancelado (UUID)", Value: in.AuthorityID1}, {Label: "Motivo de cancelación", Value: motive},
	}}
	if replacement != "" {
		out.Identifiers = append(out.Identifiers, country.Identifier{Label: "Folio fiscal que sustituye", Value: replacement})
	}
	return out
}

// gatheredIssue reports whether a document is that of a sale, or of a change of
// one, that is told to SAT with its period.
func gatheredIssue(in country.Issue) bool {
	t := in.Transaction
	return t != nil && in.Supplier != nil && len(in.Receipt) == 0 && t.Kind != transaction.Cancellation &&
		periodicities[country.Cadence(in.Supplier.Settings.Text(settingGlobal))] != ""
}

// gatheredImprint is the voucher of an operation with the general public (RMF
// 2.7.1.21): it is no CFDI, and says so.
func gatheredImprint(in country.Issue) country.Imprint {
	out := country.Imprint{Title: "Comprobante de operación con el público en general", Language: "ES"}
	if in.Transaction.Kind != transaction.Invoice {
		out.Title = "Comprobante de devolución, descuento o ajuste"
	}
	issuer := issuerOf(in.Supplier)
	out.Identifiers = []country.Identifier{
		{Label: "Folio", Value: cmp.Or(in.Transaction.Number, in.UniqueNumber)},
		{Label: "Régimen fiscal del emisor", Value: named(issuer.regime)},
		{Label: "Lugar de expedición", Value: placeOf(in.Supplier)},
		{Label: "Descripción en la factura global", Value: textSale},
	}
	out.Words = spoken(in.Transaction)
	out.Texts = []string{"La operación se incluye en la factura global del periodo. Este documento no es un CFDI; quien requiera factura puede solicitarla con su RFC."}
	return out
}
