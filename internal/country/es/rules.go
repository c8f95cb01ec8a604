package es

import (
	"slices"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/taxid"
)

// The business rules of AEAT ("Validaciones" 1.2.0, chapter 3), as far as they
// can be decided without its registers. Each answers the code of the first
// rule that a record breaks, or "".

// invoiceFlaw looks at a RegistroAlta.
func invoiceFlaw(e *element, nif string, now time.Time) string {
	for _, rule := range []func() string{
		func() string { return nameFlaw(e, nif, now) },
		func() string { return kindFlaw(e) },
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
func nameFlaw(e *element, nif string, now time.Time) string {
	id := readID(e.at("IDFactura"))
	on, err := time.Parse(dayForm, id.Day)
	today := now.Format(time.DateOnly) // the caller's clock is Madrid's
	switch {
	case id.Issuer != nif:
		return "1108"
	case len(checkNumber(id.Number)) > 0:
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
func kindFlaw(e *element) string {
	kind, method := e.value("TipoFactura"), e.value("TipoRectificativa")
	corrects, amends := strings.HasPrefix(kind, "R"), e.value("Subsanacion") == "S"
	total, _ := readCents(e.value("ImporteTotal"))
	large := e.value("Macrodato") == "S"
	switch {
	case e.value("RechazoPrevio") == "X" && !amends:
		return "1153"
	case e.value("RechazoPrevio") == "S" && !amends:
		return "1161"
	case corrects && method == "":
		return "1114"
	case !corrects && method != "":
		return "1115"
	case kind != "F3" && e.at("FacturasSustituidas") != nil:
		return "1116"
	case !corrects && e.at("FacturasRectificadas") != nil:
		return "1117"
	case method == "S" && e.at("ImporteRectificacion") == nil:
		return "1118"
	case method != "S" && e.at("ImporteRectificacion") != nil:
		return "1119"
	case e.value("FacturaSimplificadaArt7273") == "S" && (kind == "F2" || kind == "R5"):
		return "1183"
	case e.value("FacturaSinIdentifDestinatarioArt61d") == "S" && kind != "F2" && kind != "R5":
		return "1185"
	case size(total) >= largeAmount && !large:
		return "1139"
	case size(total) < largeAmount && large:
		return "1138"
	}
	return ""
}

// partyFlaw: sections 3.1.3.11 to 3.1.3.13.
func partyFlaw(e *element, nif string) string {
	kind, by := e.value("TipoFactura"), e.value("EmitidaPorTerceroODestinatario")
	third := e.at("Tercero")
	customers := e.at("Destinatarios").all("IDDestinatario")
	simplified := kind == "F2" || kind == "R5"
	switch {
	case by == "T" && third == nil:
		return "1186"
	case by != "T" && third != nil:
		return "1187"
	case third.value("NIF") == nif && third != nil:
		return "1188"
	case by == "D" && len(customers) == 0:
		return "1158"
	case !simplified && len(customers) == 0:
		return "1189"
	case simplified && len(customers) > 0:
		return "1190"
	}
	for _, c := range customers {
		other := c.value("IDOtro", "IDType")
		switch {
		case kind == "R3" && other != "" && other != "07":
			return "1191"
		case kind == "R2" && other != "" && other != "07" && other != idVAT:
			return "1192"
		}
		if code := otherIDFlaw(c.at("IDOtro")); code != "" {
			return code
		}
	}
	return otherIDFlaw(third.at("IDOtro"))
}

func otherIDFlaw(id *element) string {
	if id == nil {
		return ""
	}
	kind, from := id.value("IDType"), id.value("CodigoPais")
	switch {
	case kind == idVAT:
		text := id.value("ID")
		if len(text) < 4 || text != strings.ToUpper(text) || !taxid.Check(text[:2], text[2:]).Valid {
			return "1103"
		}
	case from == "":
		return "1111"
	case (from == "ES") != (kind == "03" || kind == "07") && from == "ES":
		return "1126"
	case kind == "07" && from != "ES":
		return "1126"
	}
	return ""
}

// detailsFlaw: section 3.1.3.15.
func detailsFlaw(e *element) string {
	kind, method := e.value("TipoFactura"), e.value("TipoRectificativa")
	var sum int64
	for _, d := range e.at("Desglose").all("DetalleDesglose") {
		code := regimeFlaw(d, e)
		if code == "" {
			code = rateFlaw(d, e.value("IDFactura", "FechaExpedicionFactura"))
		}
		if code == "" && method != "I" && kind != "R2" && kind != "R3" {
			code = quotaFlaw(d)
		}
		if code != "" {
			return code
		}
		base, _ := readCents(d.value("BaseImponibleOimporteNoSujeto"))
		tax, _ := readCents(d.value("CuotaRepercutida"))
		sum += base + tax
	}
	if kind == "F2" && sum > simpleMax+tolerance && e.value("NumRegistroAcuerdoFacturacion") == "" &&
		e.value("FacturaSinIdentifDestinatarioArt61d") != "S" {
		return "1150"
	}
	return ""
}

// regimeFlaw: sections 15.4 to 15.6.
func regimeFlaw(d, e *element) string {
	kind, tax, regime := e.value("TipoFactura"), d.value("Impuesto"), d.value("ClaveRegimen")
	grade, exempt := d.value("CalificacionOperacion"), d.value("OperacionExenta")
	iva := tax == "" || tax == taxIVA
	common := iva || tax == taxIGIC
	hasRate := d.at("TipoImpositivo") != nil || d.at("CuotaRepercutida") != nil || d.at("TipoRecargoEquivalencia") != nil || d.at("CuotaRecargoEquivalencia") != nil
	byNIF := true
	for _, c := range e.at("Destinatarios").all("IDDestinatario") {
		byNIF = byNIF && c.value("NIF") != ""
	}
	switch {
	case (common || tax == taxIPSI) && regime == "":
		return "1245"
	case tax == taxIPSI && !slices.Contains([]string{"01", "08", "11", "18", "19", "20"}, regime), iva && regime == "21":
		return "1246"
	case grade == "S2" && (kind == "F2" || kind == "R5"):
		return "1197"
	case (grade == "N1" || grade == "N2") && iva && hasRate:
		return "1237"
	case exempt != "" && hasRate:
		return "1238"
	case !slices.Contains([]string{taxIGIC}, tax) && (exempt == "E7" || exempt == "E8"):
		return "1182"
	case exempt == "E5" && iva && (e.at("Destinatarios") == nil || slices.ContainsFunc(e.at("Destinatarios").all("IDDestinatario"), func(c *element) bool { return c.at("IDOtro") == nil })):
		return "1289"
	case d.at("BaseImponibleACoste") != nil && regime != "06" && tax != taxIPSI && tax != "05":
		return "1257"
	case !common:
		return ""
	case regime == "01" && (exempt == "E2" || exempt == "E3"):
		return "1199"
	case regime == "02" && exempt == "":
		return "1286"
	case regime == "03" && exempt == "" && grade != "S1":
		return "1200"
	case regime == "04" && exempt == "" && grade != "S2":
		return "1201"
	case regime == "06" && (kind == "F2" || kind == "F3" || kind == "R5" || d.at("BaseImponibleACoste") == nil):
		return "1202"
	case regime == "07" && slices.Contains([]string{"S2", "N1", "N2", "E2", "E3", "E4", "E5"}, grade+exempt):
		return "1203"
	case regime == "08" && grade != "N2":
		return "1252"
	case regime == "10" && (grade != "N1" || kind != "F1" || !byNIF):
		return "1205"
	case regime == "11" && iva && d.value("TipoImpositivo") != "21":
		return "1206"
	case regime == "20" && tax == taxIGIC && grade != "N2":
		return "1293"
	}
	return ""
}

// rateFlaw: sections 15.1, 15.3 and 15.7.
func rateFlaw(d *element, day string) string {
	tax, grade := d.value("Impuesto"), d.value("CalificacionOperacion")
	rate, quota := d.value("TipoImpositivo"), d.value("CuotaRepercutida")
	cents, _ := readCents(quota)
	extra := d.at("TipoRecargoEquivalencia")
	on, _ := time.Parse(dayForm, day)
	switch {
	case grade == "S2" && (rate == "" || quota == "" || !zeroText(rate) || cents != 0):
		return "1198"
	case cents != 0 && grade != "S1":
		return "1207"
	case grade == "S1" && (rate == "" || quota == ""):
		return "1208"
	case (extra == nil) != (d.at("CuotaRecargoEquivalencia") == nil):
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
	case shortest == "5" && !on.Before(time.Date(2024, 10, 1, 0, 0, 0, 0, time.UTC)):
		return "1194"
	case (shortest == "2" || shortest == "7.5") && !on.Before(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)):
		return "1235"
	case extra != nil && checkSurcharge(detail{tax: taxIVA, grade: "S1", rate: shortest, surcharge: extra.text}) != "":
		return "1127"
	}
	return ""
}

func zeroText(s string) bool { return strings.Trim(s, "0.") == "" }

// quotaFlaw: section 15.7; corrections by difference are not looked at.
func quotaFlaw(d *element) string {
	if d.value("CalificacionOperacion") != "S1" || d.at("BaseImponibleACoste") != nil {
		return ""
	}
	base, _ := readCents(d.value("BaseImponibleOimporteNoSujeto"))
	quota, _ := readCents(d.value("CuotaRepercutida"))
	rate, err := num.AmountFromString(d.value("TipoImpositivo"))
	if err != nil {
		return "1124"
	}
	due := num.MakeAmount(base, 2).RescaleUp(6).Multiply(rate).Divide(num.MakeAmount(100, 0)).Rescale(2)
	switch {
	case base > 0 && quota < 0, base < 0 && quota > 0:
		return "1143"
	case size(quota-due.Value()) > tolerance:
		return "1142"
	}
	return ""
}

// softwareFlaw: section 3.1.5.
func softwareFlaw(e *element) string {
	s := e.at("SistemaInformatico")
	if !systemID(s.value("IdSistemaInformatico")) {
		return "1177"
	}
	return otherIDFlaw(s.at("IDOtro"))
}

// cancellationFlaw looks at a RegistroAnulacion: section 3.1.4.
func cancellationFlaw(e *element, nif string) string {
	switch {
	case e.value("IDFactura", "IDEmisorFacturaAnulada") != nif:
		return "1108"
	case (e.at("GeneradoPor") == nil) != (e.at("Generador") == nil):
		return "1224"
	}
	return softwareFlaw(e)
}

// remark is the code that AEAT tells of a record that it takes all the same
// (section 4.3.1, in its order), as far as the record alone decides.
func remark(e *element, cancels, late bool, now time.Time) string {
	if fingerprintOf(e, cancels).huella() != e.value("Huella") {
		return "2000"
	}
	if !cancels {
		if code := sumsRemark(e); code != "" {
			return code
		}
	}
	previous := e.at("Encadenamiento", "RegistroAnterior", "Huella")
	switch {
	case previous == nil:
	case len(previous.text) != 64:
		return "2002"
	case !wellFormedHuella(previous.text):
		return "2003"
	}
	at, err := time.Parse(time.RFC3339, e.value("FechaHoraHusoGenRegistro"))
	const margin = 240 * time.Second
	if err != nil || at.After(now.Add(margin)) || !late && at.Before(now.Add(-margin)) {
		return "2004"
	}
	return ""
}

func fingerprintOf(e *element, cancels bool) fingerprint {
	f := fingerprint{
		cancels: cancels, kind: e.value("TipoFactura"), tax: e.value("CuotaTotal"), total: e.value("ImporteTotal"),
		previous: e.value("Encadenamiento", "RegistroAnterior", "Huella"), at: e.value("FechaHoraHusoGenRegistro"),
	}
	f.invoiceID = nameOf(e, cancels)
	return f
}

func nameOf(e *element, cancels bool) invoiceID {
	if !cancels {
		return readID(e.at("IDFactura"))
	}
	id := e.at("IDFactura")
	return invoiceID{Issuer: id.value("IDEmisorFacturaAnulada"), Number: id.value("NumSerieFacturaAnulada"), Day: id.value("FechaExpedicionFacturaAnulada")}
}

// sumsRemark: sections 3.1.3.16 and 3.1.3.17.
func sumsRemark(e *element) string {
	var total, quota int64
	for _, d := range e.at("Desglose").all("DetalleDesglose") {
		if slices.Contains([]string{"03", "05", "06", "08", "09"}, d.value("ClaveRegimen")) {
			return ""
		}
		base, _ := readCents(d.value("BaseImponibleOimporteNoSujeto"))
		tax, _ := readCents(d.value("CuotaRepercutida"))
		extra, _ := readCents(d.value("CuotaRecargoEquivalencia"))
		total, quota = total+base+tax+extra, quota+tax+extra
	}
	statedTotal, _ := readCents(e.value("ImporteTotal"))
	statedQuota, _ := readCents(e.value("CuotaTotal"))
	switch {
	case size(total-statedTotal) > tolerance:
		return "2005"
	case size(quota-statedQuota) > tolerance:
		return "2006"
	}
	return ""
}
