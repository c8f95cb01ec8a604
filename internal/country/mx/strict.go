package mx

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// grammar is the structure of a voucher by cfdv40.xsd, as far as this service
// issues it: element, then attributes as name:type with a question mark where
// they may be absent, then children behind a slash with ? or * or +.
const grammar = `
cfdi:Comprobante Version:v4 Serie?:t25 Folio?:t40 Fecha:time Sello:b64 FormaPago?:form NoCertificado:d20 Certificado:b64 CondicionesDePago?:t1000 SubTotal:amount Descuento?:amount Moneda:currency TipoCambio?:more Total:amount TipoDeComprobante:kind Exportacion:export MetodoPago?:method LugarExpedicion:postal Confirmacion?:confirm xsi:schemaLocation?:any / cfdi:InformacionGlobal? cfdi:CfdiRelacionados* cfdi:Emisor cfdi:Receptor cfdi:Conceptos cfdi:Impuestos?
cfdi:InformacionGlobal Periodicidad:period Meses:months Año:year /
cfdi:CfdiRelacionados TipoRelacion:relation / cfdi:CfdiRelacionado+
cfdi:CfdiRelacionado UUID:uuid /
cfdi:Emisor Rfc:rfc Nombre:t300 RegimenFiscal:regime FacAtrAdquirente?:any /
cfdi:Receptor Rfc:rfc Nombre:t300 DomicilioFiscalReceptor:postal ResidenciaFiscal?:nation NumRegIdTrib?:t40 RegimenFiscalReceptor:regime UsoCFDI:use /
cfdi:Conceptos / cfdi:Concepto+
cfdi:Concepto ClaveProdServ:product NoIdentificacion?:t100 Cantidad:more ClaveUnidad:unit Unidad?:t20 Descripcion:t1000 ValorUnitario:amount Importe:amount Descuento?:amount ObjetoImp:object / cfdi:Concepto.Impuestos?
cfdi:Concepto.Impuestos / cfdi:Concepto.Traslados? cfdi:Concepto.Retenciones?
cfdi:Concepto.Traslados / cfdi:Concepto.Traslado+
cfdi:Concepto.Traslado Base:more Impuesto:tax TipoFactor:factor TasaOCuota?:decimal Importe?:amount /
cfdi:Concepto.Retenciones / cfdi:Concepto.Retencion+
cfdi:Concepto.Retencion Base:more Impuesto:tax TipoFactor:factor TasaOCuota:decimal Importe:amount /
cfdi:Impuestos TotalImpuestosRetenidos?:amount TotalImpuestosTrasladados?:amount / cfdi:Retenciones? cfdi:Traslados?
cfdi:Retenciones / cfdi:Retencion+
cfdi:Retencion Impuesto:tax Importe:amount /
cfdi:Traslados / cfdi:Traslado+
cfdi:Traslado Base:amount Impuesto:tax TipoFactor:factor TasaOCuota?:decimal Importe?:amount /`

// rule is the structure of one element.
type rule struct {
	attrs map[string]string // name → type; "?" at the end of the type: optional
	kids  []string
}

// structure checks documents against the grammar.
type structure struct {
	rules map[string]rule
	cat   *catalog
	kinds map[string]*regexp.Regexp
}

func newStructure(cat *catalog) *structure {
	s := &structure{rules: map[string]rule{}, cat: cat, kinds: map[string]*regexp.Regexp{
		"v4": regexp.MustCompile(`^4\.0$`), "time": regexp.MustCompile(`^20[1-9][0-9]-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$`),
		"b64": regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`), "d20": regexp.MustCompile(`^[0-9]{20}$`), "amount": regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,6})?$`),
		"decimal": regexp.MustCompile(`^[0-9]{1,18}\.[0-9]{6}$`), "more": regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,6})?$`),
		"kind": regexp.MustCompile(`^[IE]$`), "export": regexp.MustCompile(`^0[1-4]$`), "method": regexp.MustCompile(`^(PUE|PPD)$`), "postal": postalPattern,
		"confirm": regexp.MustCompile(`^[0-9a-zA-Z]{5}$`), "period": regexp.MustCompile(`^0[1-5]$`), "months": regexp.MustCompile(`^(0[1-9]|1[0-8])$`),
		"year": regexp.MustCompile(`^20(19|[2-9][0-9])$`), "relation": regexp.MustCompile(`^0[1-7]$`), "uuid": uuidPattern, "rfc": rfcPattern,
		"nation": regexp.MustCompile(`^[A-Z]{3}$`), "object": regexp.MustCompile(`^0[1-8]$`), "tax": regexp.MustCompile(`^00[123]$`),
		"factor": regexp.MustCompile(`^(Tasa|Cuota|Exento)$`), "any": regexp.MustCompile(``),
	}}
	for line := range strings.Lines(strings.TrimSpace(grammar)) {
		head, tail, _ := strings.Cut(strings.TrimSpace(line), "/")
		parts := strings.Fields(head)
		r := rule{attrs: map[string]string{}, kids: strings.Fields(tail)}
		for _, a := range parts[1:] {
			cut := strings.LastIndex(a, ":")
			name, optional := strings.CutSuffix(a[:cut], "?")
			kind := a[cut+1:]
			if optional {
				kind += "?"
			}
			r.attrs[name] = kind
		}
		s.rules[parts[0]] = r
	}
	return s
}

// flaw says what is wrong with the structure of a voucher; "" when nothing is.
func (s *structure) flaw(n *node) string { return s.element(n, "cfdi:Comprobante") }

// element checks one element under the name that the grammar gives it.
func (s *structure) element(n *node, name string) string {
	r, known := s.rules[name]
	if !known || n.name != "cfdi:"+local(strings.ReplaceAll(name, ".", ":")) {
		return fmt.Sprintf("el elemento %s no es esperado", n.name)
	}
	if strings.TrimSpace(n.text) != "" {
		return fmt.Sprintf("el elemento %s no lleva texto", n.name)
	}
	for _, a := range n.attrs {
		kind, ok := r.attrs[a.name]
		if !ok {
			return fmt.Sprintf("el atributo %s no es permitido en %s", a.name, n.name)
		}
		if !s.value(strings.TrimSuffix(kind, "?"), a.value) {
			return fmt.Sprintf("el valor %q del atributo %s no es válido en %s", a.value, a.name, n.name)
		}
	}
	for attr, kind := range r.attrs {
		if _, there := n.lookup(attr); !there && !strings.HasSuffix(kind, "?") {
			return fmt.Sprintf("falta el atributo %s en %s", attr, n.name)
		}
	}
	return s.children(n, r.kids)
}

func (s *structure) children(n *node, wanted []string) string {
	at := 0
	for _, want := range wanted {
		bare := strings.TrimRight(want, "?*+")
		name, count := "cfdi:"+local(strings.ReplaceAll(bare, ".", ":")), 0
		for at < len(n.kids) && n.kids[at].name == name {
			if flaw := s.element(n.kids[at], bare); flaw != "" {
				return flaw
			}
			at++
			if count++; strings.HasSuffix(want, "?") || want == bare {
				break
			}
		}
		if count == 0 && (want == bare || strings.HasSuffix(want, "+")) {
			return fmt.Sprintf("falta el elemento %s en %s", name, n.name)
		}
	}
	if at < len(n.kids) {
		return fmt.Sprintf("el elemento %s no es esperado en %s", n.kids[at].name, n.name)
	}
	return ""
}

func (s *structure) value(kind, value string) bool {
	if limit, ok := strings.CutPrefix(kind, "t"); ok && limit != "" && limit[0] >= '0' && limit[0] <= '9' {
		length := utf8.RuneCountInString(value)
		return length > 0 && !strings.Contains(value, "|") && length <= int(decimalOf(limit, 0)) && value == tidy(value)
	}
	switch kind {
	case "form":
		return paymentForm(value)
	case "currency":
		return currency(value)
	case "regime":
		meaning, _ := regimeMeaning(value)
		return meaning != ""
	case "use":
		allowed, _ := useRegimes(value)
		return allowed != ""
	case "product":
		return s.cat.product(value)
	case "unit":
		return s.cat.units[value]
	case "more":
		return s.kinds[kind].MatchString(value) && decimalOf(value, 6) > 0
	}
	pattern := s.kinds[kind]
	return pattern != nil && pattern.MatchString(value)
}

// decimalOf reads a decimal as an integer with that many decimals; digits
// beyond them are cut. What does not fit is -1.
func decimalOf(text string, decimals int) int64 {
	whole, part, _ := strings.Cut(text, ".")
	for len(part) < decimals {
		part += "0"
	}
	var value int64
	for _, r := range whole + part[:decimals] {
		if r < '0' || r > '9' || value > 1<<59/10 {
			return -1
		}
		value = value*10 + int64(r-'0')
	}
	return value
}
