package es

import (
	"strings"
	"time"
	"unicode/utf8"
)

// shape is an element as AEAT's schemas describe it: how often it comes, what
// stands in it, or which texts it may have.
type shape struct {
	space    string // "" is that of SuministroInformacion.xsd
	name     string
	min, max int
	parts    []shape           // in this order
	either   bool              // exactly one of parts; it has no name itself
	fits     func(string) bool // of a leaf
}

func one(name string, fits func(string) bool) shape {
	return shape{name: name, min: 1, max: 1, fits: fits}
}

func opt(name string, fits func(string) bool) shape { return shape{name: name, max: 1, fits: fits} }

func group(name string, parts ...shape) shape {
	return shape{name: name, min: 1, max: 1, parts: parts}
}

func optGroup(name string, parts ...shape) shape { return shape{name: name, max: 1, parts: parts} }

func many(s shape, max int) shape {
	s.max = max
	return s
}

func either(parts ...shape) shape { return shape{min: 1, max: 1, parts: parts, either: true} }

func in(space string, s shape) shape {
	s.space = space
	return s
}

// misplaced finds the first element that is missing, unexpected or out of
// order below e; "" when everything is in its place.
func (s *shape) misplaced(e *element) string {
	if len(s.parts) == 0 {
		if len(e.children) > 0 {
			return e.children[0].name
		}
		return ""
	}
	i := 0
	for k := range s.parts {
		p := &s.parts[k]
		count := 0
		for i < len(e.children) && count < p.max {
			found := p.matching(e.children[i])
			if found == nil {
				break
			}
			if bad := found.misplaced(e.children[i]); bad != "" {
				return bad
			}
			count++
			i++
		}
		if count < p.min {
			return p.label()
		}
	}
	if i < len(e.children) {
		return e.children[i].name
	}
	return ""
}

func (s *shape) matching(e *element) *shape {
	if s.either {
		for k := range s.parts {
			if m := s.parts[k].matching(e); m != nil {
				return m
			}
		}
		return nil
	}
	space := s.space
	if space == "" {
		space = nsInfo
	}
	if e.is(space, s.name) {
		return s
	}
	return nil
}

func (s *shape) label() string {
	if s.either {
		return s.parts[0].label()
	}
	return s.name
}

// illegible finds the first leaf whose text the schema does not take.
func (s *shape) illegible(e *element) string {
	if s.fits != nil {
		if s.fits(e.text) {
			return ""
		}
		return e.name
	}
	for _, c := range e.children {
		for k := range s.parts {
			if m := s.parts[k].matching(c); m != nil {
				if bad := m.illegible(c); bad != "" {
					return bad
				}
				break
			}
		}
	}
	return ""
}

func text(max int) func(string) bool {
	return func(s string) bool { return utf8.RuneCountInString(s) <= max }
}

func filled(max int) func(string) bool {
	return func(s string) bool { return s != "" && utf8.RuneCountInString(s) <= max }
}

func among(values ...string) func(string) bool {
	return func(s string) bool {
		for _, v := range values {
			if s == v {
				return true
			}
		}
		return false
	}
}

func dayText(s string) bool {
	_, err := time.Parse(dayForm, s)
	return err == nil
}

func instantText(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func nifText(s string) bool { return len(s) == 9 && nifOf(s) == s }

func amountText(s string) bool {
	_, ok := readCents(s)
	return ok
}

func rateText(s string) bool {
	whole, part, _ := strings.Cut(s, ".")
	return len(whole) >= 1 && len(whole) <= 3 && len(part) <= 2 && digits(whole+part)
}

func digits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// readCents reads an ImporteSgn12.2Type.
func readCents(s string) (int64, bool) {
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	whole, part, _ := strings.Cut(s, ".")
	if len(whole) < 1 || len(whole) > 12 || len(part) > 2 || !digits(whole+part) {
		return 0, false
	}
	var v int64
	for _, c := range whole + (part + "00")[:2] {
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}

func idShape(suffix string) []shape {
	return []shape{one("IDEmisorFactura"+suffix, nifText), one("NumSerieFactura"+suffix, filled(60)), one("FechaExpedicionFactura"+suffix, dayText)}
}

func personShape() []shape {
	return []shape{
		one("NombreRazon", filled(120)),
		either(one("NIF", nifText), group("IDOtro", opt("CodigoPais", filled(2)), one("IDType", among("02", "03", "04", "05", "06", "07")), one("ID", filled(20)))),
	}
}

func headerShape() shape {
	yesNo := among("S", "N")
	return in(nsLR, group("Cabecera",
		group("ObligadoEmision", one("NombreRazon", filled(120)), one("NIF", text(9))),
		optGroup("Representante", one("NombreRazon", filled(120)), one("NIF", text(9))),
		optGroup("RemisionVoluntaria", opt("FechaFinVeriFactu", dayText), opt("Incidencia", text(10))),
		optGroup("RemisionRequerimiento", one("RefRequerimiento", filled(18)), opt("FinRequerimiento", yesNo)),
	))
}

func chainShape() shape {
	return group("Encadenamiento", either(one("PrimerRegistro", among("S")),
		group("RegistroAnterior", append(idShape(""), one("Huella", text(64)))...)))
}

func softwareShapes() shape {
	yesNo := among("S", "N")
	return group("SistemaInformatico", append(personShape(),
		one("NombreSistemaInformatico", filled(30)), one("IdSistemaInformatico", filled(2)), one("Version", filled(50)),
		one("NumeroInstalacion", filled(100)), one("TipoUsoPosibleSoloVerifactu", yesNo), one("TipoUsoPosibleMultiOT", yesNo),
		one("IndicadorMultiplesOT", yesNo))...)
}

func detailShape() shape {
	return group("DetalleDesglose",
		opt("Impuesto", among("01", "02", "03", "05")),
		opt("ClaveRegimen", among("01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "14", "15", "17", "18", "19", "20", "21")),
		either(one("CalificacionOperacion", among("S1", "S2", "N1", "N2")), one("OperacionExenta", among("E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8"))),
		opt("TipoImpositivo", rateText), one("BaseImponibleOimporteNoSujeto", amountText), opt("BaseImponibleACoste", amountText),
		opt("CuotaRepercutida", amountText), opt("TipoRecargoEquivalencia", rateText), opt("CuotaRecargoEquivalencia", amountText))
}

func invoiceShape() shape {
	yesNo := among("S", "N")
	return group("RegistroAlta",
		one("IDVersion", among("1.0")), group("IDFactura", idShape("")...), opt("RefExterna", text(60)),
		one("NombreRazonEmisor", filled(120)), opt("Subsanacion", yesNo), opt("RechazoPrevio", among("N", "S", "X")),
		one("TipoFactura", among("F1", "F2", "F3", "R1", "R2", "R3", "R4", "R5")), opt("TipoRectificativa", among("S", "I")),
		optGroup("FacturasRectificadas", many(group("IDFacturaRectificada", idShape("")...), 1000)),
		optGroup("FacturasSustituidas", many(group("IDFacturaSustituida", idShape("")...), 1000)),
		optGroup("ImporteRectificacion", one("BaseRectificada", amountText), one("CuotaRectificada", amountText), opt("CuotaRecargoRectificado", amountText)),
		opt("FechaOperacion", dayText), one("DescripcionOperacion", filled(500)), opt("FacturaSimplificadaArt7273", yesNo),
		opt("FacturaSinIdentifDestinatarioArt61d", yesNo), opt("Macrodato", yesNo), opt("EmitidaPorTerceroODestinatario", among("D", "T")),
		optGroup("Tercero", personShape()...),
		optGroup("Destinatarios", many(group("IDDestinatario", personShape()...), 1000)),
		opt("Cupon", yesNo), group("Desglose", many(detailShape(), detailsMax)),
		one("CuotaTotal", amountText), one("ImporteTotal", amountText), chainShape(), softwareShapes(),
		one("FechaHoraHusoGenRegistro", instantText), opt("NumRegistroAcuerdoFacturacion", text(15)), opt("IdAcuerdoSistemaInformatico", text(16)),
		one("TipoHuella", among("01")), one("Huella", text(64)))
}

func cancellationShape() shape {
	yesNo := among("S", "N")
	return group("RegistroAnulacion",
		one("IDVersion", among("1.0")), group("IDFactura", idShape("Anulada")...), opt("RefExterna", text(60)),
		opt("SinRegistroPrevio", yesNo), opt("RechazoPrevio", yesNo), opt("GeneradoPor", among("E", "D", "T")),
		optGroup("Generador", personShape()...), chainShape(), softwareShapes(),
		one("FechaHoraHusoGenRegistro", instantText), one("TipoHuella", among("01")), one("Huella", text(64)))
}

// callShape is RegFactuSistemaFacturacion.
func callShape() shape {
	record := in(nsLR, group("RegistroFactura", either(invoiceShape(), cancellationShape())))
	return in(nsLR, group("RegFactuSistemaFacturacion", headerShape(), many(record, 1<<20)))
}

// queryShape is ConsultaFactuSistemaFacturacion.
func queryShape() shape {
	nsq := func(s shape) shape { return in(nsAsk, s) }
	return nsq(group("ConsultaFactuSistemaFacturacion",
		nsq(group("Cabecera", one("IDVersion", among("1.0")), group("ObligadoEmision", one("NombreRazon", filled(120)), one("NIF", text(9))),
			opt("IndicadorRepresentante", among("S")))),
		nsq(group("FiltroConsulta",
			nsq(group("PeriodoImputacion", one("Ejercicio", yearText), one("Periodo", periodText))),
			nsq(opt("NumSerieFactura", filled(60))),
			nsq(optGroup("FechaExpedicionFactura", one("FechaExpedicionFactura", dayText))),
			nsq(opt("RefExterna", text(70))),
			nsq(optGroup("ClavePaginacion", idShape("")...)))),
		nsq(optGroup("DatosAdicionalesRespuesta", nsq(opt("MostrarNombreRazonEmisor", among("S", "N"))), nsq(opt("MostrarSistemaInformatico", among("S", "N"))))),
	))
}

func yearText(s string) bool   { return len(s) == 4 && digits(s) }
func periodText(s string) bool { return len(s) == 2 && s >= "01" && s <= "12" && digits(s) }

// codeOf is the code with which AEAT refuses the text of a field.
func codeOf(field string) string {
	switch field {
	case "CodigoPais":
		return "1101"
	case "IDType":
		return "1102"
	case "ID":
		return "1103"
	case "NumSerieFactura", "NumSerieFacturaAnulada":
		return "1104"
	case "FechaExpedicionFactura", "FechaExpedicionFacturaAnulada":
		return "1105"
	case "TipoFactura":
		return "1106"
	case "TipoRectificativa":
		return "1107"
	case "NIF", "IDEmisorFactura", "IDEmisorFacturaAnulada":
		return "1123"
	case "Subsanacion":
		return "1171"
	case "IdSistemaInformatico":
		return "1177"
	case "CalificacionOperacion":
		return "1181"
	case "OperacionExenta":
		return "1182"
	case "Impuesto":
		return "1218"
	case "NombreSistemaInformatico":
		return "1220"
	case "FechaHoraHusoGenRegistro":
		return "1244"
	case "ClaveRegimen":
		return "1246"
	case "TipoHuella":
		return "1247"
	case "Periodo", "Ejercicio":
		return "1248"
	case "IDVersion":
		return "1251"
	case "RefExterna":
		return "1253"
	case "Huella":
		return "1262"
	case "PrimerRegistro":
		return "1274"
	case "RechazoPrevio":
		return "1275"
	case "SinRegistroPrevio":
		return "1276"
	}
	return "1100"
}
