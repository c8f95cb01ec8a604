package aeat

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/taxid"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
)

// Figures and codes of the rules, as AEAT's papers have them.
const (
	firstDay    = "2024-10-28"   // Orden HAC/1177/2024 came into force
	largeAmount = 10_000_000_000 // cents: from here on a record is a Macrodato
	tolerance   = 1000           // cents by which sums may differ
	simpleMax   = 300_000        // cents of a simplified invoice
	idVAT       = "02"           // list L7: NIF-IVA
	taxIVA      = "01"
	taxIPSI     = "02"
	taxIGIC     = "03"
)

func magnitude(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// plainNumber knows the characters of NumSerieFactura: ASCII from 32 to 126
// without five of them (section 3.1.3.1).
func plainNumber(number string) bool {
	for _, c := range []byte(number) {
		if c < 32 || c > 126 || strings.IndexByte(`"'<>=`, c) >= 0 {
			return false
		}
	}
	return true
}

// surchargesOf are the rates of the recargo de equivalencia that go with a rate
// of IVA (section 15.1).
func surchargesOf(rate string) []string {
	switch rate {
	case "21":
		return []string{"5.2", "1.75"}
	case "10":
		return []string{"1.4"}
	case "7.5":
		return []string{"1"}
	case "5":
		return []string{"0.62"}
	case "4":
		return []string{"0.5"}
	case "2":
		return []string{"0.26"}
	case "0":
		return []string{"0"}
	}
	return nil
}

// The business rules of AEAT ("Validaciones" 1.2.0, chapter 3), as far as they
// can be decided without its registers. Each answers the code of the first
// rule that a record breaks, or "".

// invoiceFlaw looks at a RegistroAlta.
func invoiceFlaw(e *xmltree.Element, nif string, now time.Time) string {
	for _, rule := range []func() string{
		func() string { return nameFlaw(e, nif, now) },
		func() string { return kindFlaw(e) },
		func() string { return happenedFlaw(e, now) },
		func() string { return partyFlaw(e, nif) },
		func() string { return detailsFlaw(e) },
		func() string { return softwareFlaw(e) },
	} {
		if code := rule(); code != "" {
			return code
		}
	}
	return ""
}

// nameFlaw: section 3.1.3.1.
func nameFlaw(e *xmltree.Element, nif string, now time.Time) string {
	id := readID(e.At("IDFactura"))
	on, err := time.Parse(aeatwire.DayForm, id.Day)
	today := now.Format(time.DateOnly) // the caller's clock is Madrid's
	switch {
	case id.Issuer != nif:
		return "1108"
	case !plainNumber(id.Number):
		return "1130"
	case err != nil:
		return "1105"
	case on.Format(time.DateOnly) > today:
		return "1112"
	case on.Format(time.DateOnly) < firstDay:
		return "1152"
	}
	return ""
}

// kindFlaw: sections 3.1.3.2 to 3.1.3.10.
func kindFlaw(e *xmltree.Element) string {
	kind, method := e.Value("TipoFactura"), e.Value("TipoRectificativa")
	corrects, amends := strings.HasPrefix(kind, "R"), e.Value("Subsanacion") == "S"
	total, _ := readCents(e.Value("ImporteTotal"))
	large := e.Value("Macrodato") == "S"
	switch {
	case e.Value("RechazoPrevio") == "X" && !amends:
		return "1153"
	case e.Value("RechazoPrevio") == "S" && !amends:
		return "1161"
	case corrects && method == "":
		return "1114"
	case !corrects && method != "":
		return "1115"
	case kind != "F3" && e.At("FacturasSustituidas") != nil:
		return "1116"
	case !corrects && e.At("FacturasRectificadas") != nil:
		return "1117"
	case method == "S" && e.At("ImporteRectificacion") == nil:
		return "1118"
	case method != "S" && e.At("ImporteRectificacion") != nil:
		return "1119"
	case e.Value("Cupon") == "S" && kind != "R1" && kind != "R5":
		return "1157"
	case e.Value("FacturaSimplificadaArt7273") == "S" && (kind == "F2" || kind == "R5"):
		return "1183"
	case e.Value("FacturaSinIdentifDestinatarioArt61d") == "S" && kind != "F2" && kind != "R5":
		return "1185"
	case magnitude(total) >= largeAmount && !large:
		return "1139"
	case magnitude(total) < largeAmount && large:
		return "1138"
	}
	return ""
}

// happenedFlaw: sections 3.1.3.1 and 3.1.3.7, FechaOperacion.
func happenedFlaw(e *xmltree.Element, now time.Time) string {
	text := e.Value("FechaOperacion")
	if text == "" {
		return ""
	}
	on, err := time.Parse(aeatwire.DayForm, text)
	issued, wrong := time.Parse(aeatwire.DayForm, e.Value("IDFactura", "FechaExpedicionFactura"))
	if err != nil || wrong != nil {
		return "1145"
	}
	ahead := true // all lines are of a regime whose supplies may lie ahead, or of another tax
	for _, d := range e.At("Desglose").All("DetalleDesglose") {
		tax, regime := d.Value("Impuesto"), d.Value("ClaveRegimen")
		ahead = ahead && (tax != "" && tax != taxIVA && tax != taxIGIC || regime == "14" || regime == "15")
	}
	switch today := now.Format(time.DateOnly); {
	case on.Format(time.DateOnly) < now.AddDate(-20, 0, 0).Format(time.DateOnly):
		return "1134"
	case on.Year() > now.Year()+1:
		return "1125"
	case on.Format(time.DateOnly) > today && !ahead:
		return "1173"
	case issued.Before(on) && !ahead:
		return "1146"
	}
	return ""
}

// partyFlaw: sections 3.1.3.11 to 3.1.3.13.
func partyFlaw(e *xmltree.Element, nif string) string {
	kind, by := e.Value("TipoFactura"), e.Value("EmitidaPorTerceroODestinatario")
	third := e.At("Tercero")
	customers := e.At("Destinatarios").All("IDDestinatario")
	simplified := kind == "F2" || kind == "R5"
	switch {
	case by == "T" && third == nil:
		return "1186"
	case by != "T" && third != nil:
		return "1187"
	case third.Value("NIF") == nif && third != nil:
		return "1188"
	case by == "D" && len(customers) == 0:
		return "1158"
	case !simplified && len(customers) == 0:
		return "1189"
	case simplified && len(customers) > 0:
		return "1190"
	}
	for _, c := range customers {
		other := c.Value("IDOtro", "IDType")
		switch {
		case kind == "R3" && other != "" && other != "07":
			return "1191"
		case kind == "R2" && other != "" && other != "07" && other != idVAT:
			return "1192"
		}
		if code := otherIDFlaw(c.At("IDOtro")); code != "" {
			return code
		}
		if other == idVAT && uncensed(c) {
			return "1121"
		}
	}
	if third.Value("IDOtro", "IDType") == "07" {
		return "1211"
	}
	return otherIDFlaw(third.At("IDOtro"))
}

func otherIDFlaw(id *xmltree.Element) string {
	if id == nil {
		return ""
	}
	kind, from := id.Value("IDType"), id.Value("CodigoPais")
	switch {
	case kind == idVAT:
		text := id.Value("ID")
		if len(text) < 4 || text != strings.ToUpper(text) || !taxid.Check(text[:2], text[2:]).Valid {
			return "1103"
		}
	case from == "":
		return "1111"
	case (from == "ES") != (kind == "03" || kind == "07") && from == "ES":
		return "1126"
	case kind == "07" && from != "ES":
		return "1126"
	case kind == "07" && taxid.NIF(id.Value("ID")) != id.Value("ID"):
		return "1290"
	case kind == "07" && !naturalPerson(id.Value("ID")):
		return "1131"
	}
	return ""
}

// naturalPerson tells the NIF of a person from that of a company by its first
// character (Real Decreto 1065/2007, articles 19 and 20).
func naturalPerson(nif string) bool {
	return nif != "" && strings.IndexByte("0123456789XYZKLM", nif[0]) >= 0
}

// dayOfRates is the day whose rates hold: that of the operation, else of issue.
func dayOfRates(e *xmltree.Element) string {
	if day := e.Value("FechaOperacion"); day != "" {
		return day
	}
	return e.Value("IDFactura", "FechaExpedicionFactura")
}

// detailsFlaw: section 3.1.3.15.
func detailsFlaw(e *xmltree.Element) string {
	kind, method := e.Value("TipoFactura"), e.Value("TipoRectificativa")
	var sum int64
	for _, d := range e.At("Desglose").All("DetalleDesglose") {
		code := regimeFlaw(d, e)
		if code == "" {
			code = rateFlaw(d, dayOfRates(e))
		}
		if code == "" && method != "I" && kind != "R2" && kind != "R3" {
			code = quotaFlaw(d)
		}
		if code != "" {
			return code
		}
		base, _ := readCents(d.Value("BaseImponibleOimporteNoSujeto"))
		tax, _ := readCents(d.Value("CuotaRepercutida"))
		sum += base + tax
	}
	if kind == "F2" && sum > simpleMax+tolerance && e.Value("NumRegistroAcuerdoFacturacion") == "" &&
		e.Value("FacturaSinIdentifDestinatarioArt61d") != "S" {
		return "1150"
	}
	return ""
}

// line is a DetalleDesglose as the rules of its regime read it, with its record.
type line struct {
	*xmltree.Element
	record                           *xmltree.Element
	kind, tax, regime, grade, exempt string
}

func (l *line) iva() bool        { return l.tax == "" || l.tax == taxIVA }
func (l *line) common() bool     { return l.iva() || l.tax == taxIGIC }
func (l *line) simplified() bool { return l.kind == "F2" || l.kind == "R5" }

func (l *line) customers() []*xmltree.Element {
	return l.record.At("Destinatarios").All("IDDestinatario")
}

// taxed reports whether the line states a rate or an amount of tax.
func (l *line) taxed() bool {
	return slices.ContainsFunc([]string{"TipoImpositivo", "CuotaRepercutida", "TipoRecargoEquivalencia",
		"CuotaRecargoEquivalencia"},
		func(member string) bool { return l.At(member) != nil })
}

// lineRule is a code, and whether a line breaks what it stands for.
type lineRule struct {
	code   string
	broken func(*line) bool
}

// lineRules are sections 15.4 and 15.5, in their order.
var lineRules = []lineRule{
	{"1245", func(l *line) bool { return (l.common() || l.tax == taxIPSI) && l.regime == "" }},
	{"1246", func(l *line) bool {
		return l.iva() && l.regime == "21" ||
			l.tax == taxIPSI && !slices.Contains([]string{"01", "08", "11", "18", "19", "20"}, l.regime)
	}},
	{"1197", func(l *line) bool { return l.grade == "S2" && l.simplified() }},
	{"1237", func(l *line) bool { return (l.grade == "N1" || l.grade == "N2") && l.iva() && l.taxed() }},
	{"1238", func(l *line) bool { return l.exempt != "" && l.taxed() }},
	{"1182", func(l *line) bool { return l.tax != taxIGIC && (l.exempt == "E7" || l.exempt == "E8") }},
	{"1289", func(l *line) bool {
		return l.exempt == "E5" && l.iva() && (l.record.At("Destinatarios") == nil ||
			slices.ContainsFunc(l.customers(), func(c *xmltree.Element) bool { return c.At("IDOtro") == nil }))
	}},
	{"1257", func(l *line) bool {
		return l.At("BaseImponibleACoste") != nil && l.regime != "06" && l.tax != taxIPSI && l.tax != "05"
	}},
}

// regimeRules are section 15.6: what IVA and IGIC want of a line by its regime.
var regimeRules = map[string]lineRule{
	"01": {"1199", func(l *line) bool { return l.exempt == "E2" || l.exempt == "E3" }},
	"02": {"1286", func(l *line) bool { return l.exempt == "" }},
	"03": {"1200", func(l *line) bool { return l.exempt == "" && l.grade != "S1" }},
	"04": {"1201", func(l *line) bool { return l.exempt == "" && l.grade != "S2" }},
	"06": {"1202", func(l *line) bool { return l.simplified() || l.kind == "F3" || l.At("BaseImponibleACoste") == nil }},
	"07": {"1203", func(l *line) bool {
		return slices.Contains([]string{"S2", "N1", "N2", "E2", "E3", "E4", "E5"}, l.grade+l.exempt)
	}},
	"08": {"1252", func(l *line) bool { return l.grade != "N2" }},
	"10": {"1205", func(l *line) bool {
		return l.grade != "N1" || l.kind != "F1" ||
			slices.ContainsFunc(l.customers(), func(c *xmltree.Element) bool { return c.Value("NIF") == "" })
	}},
	"11": {"1206", func(l *line) bool { return l.iva() && l.Value("TipoImpositivo") != "21" }},
	"20": {"1293", func(l *line) bool { return l.tax == taxIGIC && l.grade != "N2" }},
}

// regimeFlaw: sections 15.4 to 15.6.
func regimeFlaw(d, e *xmltree.Element) string {
	l := &line{Element: d, record: e, kind: e.Value("TipoFactura"), tax: d.Value("Impuesto"), regime: d.Value("ClaveRegimen"),
		grade: d.Value("CalificacionOperacion"), exempt: d.Value("OperacionExenta")}
	for _, rule := range lineRules {
		if rule.broken(l) {
			return rule.code
		}
	}
	if !l.common() {
		return ""
	}
	if l.regime == "14" {
		return pendingFlaw(e)
	}
	if rule, known := regimeRules[l.regime]; known && rule.broken(l) {
		return rule.code
	}
	return ""
}

// pendingFlaw: section 15.6.9, supplies to public bodies whose tax is not due yet.
func pendingFlaw(e *xmltree.Element) string {
	on, err := time.Parse(aeatwire.DayForm, e.Value("FechaOperacion"))
	issued, wrong := time.Parse(aeatwire.DayForm, e.Value("IDFactura", "FechaExpedicionFactura"))
	if err != nil || wrong != nil || !on.After(issued) {
		return "1147"
	}
	if !slices.Contains([]string{"F1", "R1", "R2", "R3", "R4"}, e.Value("TipoFactura")) {
		return "1148"
	}
	for _, c := range e.At("Destinatarios").All("IDDestinatario") {
		if nif := c.Value("NIF"); nif == "" || strings.IndexByte("PQSV", nif[0]) < 0 {
			return "1149"
		}
	}
	return ""
}

// rateFlaw: sections 15.1, 15.3 and 15.7.
func rateFlaw(d *xmltree.Element, day string) string {
	tax, grade := d.Value("Impuesto"), d.Value("CalificacionOperacion")
	rate, quota := d.Value("TipoImpositivo"), d.Value("CuotaRepercutida")
	cents, _ := readCents(quota)
	extra := d.At("TipoRecargoEquivalencia")
	on, _ := time.Parse(aeatwire.DayForm, day)
	switch {
	case grade == "S2" && (rate == "" || quota == "" || !zeroText(rate) || cents != 0):
		return "1198"
	case cents != 0 && grade != "S1":
		return "1207"
	case grade == "S1" && (rate == "" || quota == ""):
		return "1208"
	case (extra == nil) != (d.At("CuotaRecargoEquivalencia") == nil):
		return "1284"
	case extra != nil && grade != "S1":
		return "1281"
	case grade != "S1" || tax != "" && tax != taxIVA:
		return ""
	}
	shortest := rate
	if a, err := num.AmountFromString(rate); err == nil {
		shortest = a.MinimalString()
	}
	switch {
	case !slices.Contains([]string{"0", "2", "4", "5", "7.5", "10", "21"}, shortest):
		return "1124"
	case shortest == "5" && !within(on, "2022-07-01", "2024-09-30"):
		return "1194"
	case (shortest == "2" || shortest == "7.5") && !within(on, "2024-10-01", "2024-12-31"):
		return "1235"
	case extra != nil && !slices.Contains(surchargesOf(shortest), extra.Value()):
		return "1127"
	}
	return ""
}

// within reports whether a day is one of those from one to another.
func within(on time.Time, from, until string) bool {
	day := on.Format(time.DateOnly)
	return from <= day && day <= until
}

func zeroText(s string) bool { return strings.Trim(s, "0.") == "" }

// quotaFlaw: section 15.7; corrections by difference are not looked at.
func quotaFlaw(d *xmltree.Element) string {
	if d.Value("CalificacionOperacion") != "S1" || d.At("BaseImponibleACoste") != nil {
		return ""
	}
	base, _ := readCents(d.Value("BaseImponibleOimporteNoSujeto"))
	quota, _ := readCents(d.Value("CuotaRepercutida"))
	rate, err := num.AmountFromString(d.Value("TipoImpositivo"))
	if err != nil {
		return "1124"
	}
	due := num.MakeAmount(base, 2).RescaleUp(6).Multiply(rate).Divide(num.MakeAmount(100, 0)).Rescale(2)
	switch {
	case base > 0 && quota < 0, base < 0 && quota > 0:
		return "1143"
	case magnitude(quota-due.Value()) > tolerance:
		return "1142"
	}
	return ""
}

// softwareFlaw: section 3.1.5.
func softwareFlaw(e *xmltree.Element) string {
	s := e.At("SistemaInformatico")
	if !twoCapitals(s.Value("IdSistemaInformatico")) {
		return "1177"
	}
	return otherIDFlaw(s.At("IDOtro"))
}

// cancellationFlaw looks at a RegistroAnulacion: section 3.1.4.
func cancellationFlaw(e *xmltree.Element, nif string) string {
	switch {
	case e.Value("IDFactura", "IDEmisorFacturaAnulada") != nif:
		return "1108"
	case (e.At("GeneradoPor") == nil) != (e.At("Generador") == nil):
		return "1224"
	}
	return softwareFlaw(e)
}

// remark is the code that AEAT tells of a record that it takes all the same
// (section 4.3.1, in its order), as far as the record alone decides.
func remark(e *xmltree.Element, cancels, late bool, now time.Time) string {
	if huellaOf(e, cancels) != e.Value("Huella") {
		return "2000"
	}
	if !cancels {
		if outsideCensus(e) {
			return "2001"
		}
		if code := sumsRemark(e); code != "" {
			return code
		}
	}
	previous := e.At("Encadenamiento", "RegistroAnterior", "Huella")
	switch {
	case previous == nil:
	case len(previous.Value()) != 64:
		return "2002"
	case !wellFormedHuella(previous.Value()):
		return "2003"
	}
	at, err := time.Parse(time.RFC3339, e.Value("FechaHoraHusoGenRegistro"))
	const margin = 240 * time.Second
	if err != nil || at.After(now.Add(margin)) || !late && at.Before(now.Add(-margin)) {
		return "2004"
	}
	return ""
}

// outsideCensus plays the census, which only AEAT has: a customer whose name
// ends in NO CENSADO is not in it. One that the record itself declares to be
// missing (07) is not looked for.
func outsideCensus(e *xmltree.Element) bool {
	return slices.ContainsFunc(e.At("Destinatarios").All("IDDestinatario"), func(c *xmltree.Element) bool {
		return c.Value("NIF") != "" && uncensed(c)
	})
}

func uncensed(person *xmltree.Element) bool {
	return strings.HasSuffix(strings.ToUpper(person.Value("NombreRazon")), "NO CENSADO")
}

func nameOf(e *xmltree.Element, cancels bool) invoiceID {
	if !cancels {
		return readID(e.At("IDFactura"))
	}
	id := e.At("IDFactura")
	return invoiceID{Issuer: id.Value("IDEmisorFacturaAnulada"), Number: id.Value("NumSerieFacturaAnulada"),
		Day: id.Value("FechaExpedicionFacturaAnulada")}
}

// sumsRemark: sections 3.1.3.16 and 3.1.3.17.
func sumsRemark(e *xmltree.Element) string {
	var total, quota int64
	for _, d := range e.At("Desglose").All("DetalleDesglose") {
		if slices.Contains([]string{"03", "05", "06", "08", "09"}, d.Value("ClaveRegimen")) {
			return ""
		}
		base, _ := readCents(d.Value("BaseImponibleOimporteNoSujeto"))
		tax, _ := readCents(d.Value("CuotaRepercutida"))
		extra, _ := readCents(d.Value("CuotaRecargoEquivalencia"))
		total, quota = total+base+tax+extra, quota+tax+extra
	}
	statedTotal, _ := readCents(e.Value("ImporteTotal"))
	statedQuota, _ := readCents(e.Value("CuotaTotal"))
	switch {
	case magnitude(total-statedTotal) > tolerance:
		return "2005"
	case magnitude(quota-statedQuota) > tolerance:
		return "2006"
	}
	return ""
}

// twoCapitals is the form of IdSistemaInformatico: two positions, each an
// upper-case letter without Ñ or a digit.
func twoCapitals(text string) bool {
	return len(text) == 2 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// readCents reads an ImporteSgn12.2Type, which the structure has checked.
func readCents(s string) (int64, bool) {
	negative := strings.HasPrefix(s, "-")
	whole, part, _ := strings.Cut(strings.TrimLeft(s, "+-"), ".")
	if len(part) > 2 || len(whole) > 12 {
		return 0, false
	}
	cents, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if err != nil {
		return 0, false
	}
	if negative {
		cents = -cents
	}
	return cents, true
}
