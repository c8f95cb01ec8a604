package satwire

import "strings"

// ZoneCentre is the time zone of central Mexico, in which SAT itself lives.
const ZoneCentre = "America/Mexico_City"

// Zone names the time zone of a postal code: the one in which Fecha is written
// (Anexo 20, Fecha: "hora local donde se expide").
func Zone(postalCode string) string {
	name := ZoneCentre
	if len(postalCode) == 5 {
		switch postalCode[:2] {
		case "21", "22":
			name = "America/Tijuana"
		case "23", "63", "80", "81", "82":
			name = "America/Mazatlan"
		case "83", "84", "85":
			name = "America/Hermosillo"
		case "77":
			name = "America/Cancun"
		case "31", "32", "33":
			name = "America/Chihuahua"
		}
		if zone := borderZone(postalCode); zone != "" {
			name = zone
		}
	}
	return name
}

// Zones lists the time zones that Zone can name.
func Zones() []string {
	return []string{ZoneCentre, "America/Tijuana", "America/Mazatlan", "America/Hermosillo", "America/Cancun",
		"America/Chihuahua", "America/Ciudad_Juarez", "America/Matamoros", "America/Ojinaga", "America/Bahia_Banderas"}
}

// Regime is what a key of c_RegimenFiscal stands for, and for which
// persons: "F" natural, "M" legal, "FM" both. Unknown keys are "".
func Regime(key string) (meaning, persons string) {
	switch key {
	case "601":
		return "General de Ley Personas Morales", "M"
	case "603":
		return "Personas Morales con Fines no Lucrativos", "M"
	case "605":
		return "Sueldos y Salarios e Ingresos Asimilados a Salarios", "F"
	case "606":
		return "Arrendamiento", "F"
	case "607":
		return "Régimen de Enajenación o Adquisición de Bienes", "F"
	case "608":
		return "Demás ingresos", "F"
	case "610":
		return "Residentes en el Extranjero sin Establecimiento Permanente en México", "FM"
	case "611":
		return "Ingresos por Dividendos (socios y accionistas)", "F"
	case "612":
		return "Personas Físicas con Actividades Empresariales y Profesionales", "F"
	case "614":
		return "Ingresos por intereses", "F"
	case "615":
		return "Régimen de los ingresos por obtención de premios", "F"
	case "616":
		return "Sin obligaciones fiscales", "F"
	case "620":
		return "Sociedades Cooperativas de Producción que optan por diferir sus ingresos", "M"
	case "621":
		return "Incorporación Fiscal", "F"
	case "622":
		return "Actividades Agrícolas, Ganaderas, Silvícolas y Pesqueras", "M"
	case "623":
		return "Opcional para Grupos de Sociedades", "M"
	case "624":
		return "Coordinados", "M"
	case "625":
		return "Régimen de las Actividades Empresariales con ingresos a través de Plataformas Tecnológicas", "F"
	case "626":
		return "Régimen Simplificado de Confianza", "FM"
	}
	return "", ""
}

// Regimes lists the keys of c_RegimenFiscal.
func Regimes() []string {
	return strings.Fields("601 603 605 606 607 608 610 611 612 614 615 616 620 621 622 623 624 625 626")
}

// UseRegimes are the receiver's regimes that c_UsoCFDI allows a use for, and
// whether legal persons may have it; unknown uses have none.
func UseRegimes(use string) (regimes string, legal bool) {
	switch use {
	case "G01", "G03", "I01", "I02", "I03", "I04", "I05", "I06", "I07", "I08":
		return "601 603 606 612 620 621 622 623 624 625 626", true
	case "G02":
		return "601 603 606 612 616 620 621 622 623 624 625 626", true
	case "D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09", "D10":
		return "605 606 607 608 611 612 614 615 625", false
	case "S01":
		return "601 603 605 606 607 608 610 611 612 614 615 616 620 621 622 623 624 625 626", true
	}
	return "", false
}

// Uses lists the keys of c_UsoCFDI that invoices and credit notes can have.
func Uses() []string {
	return strings.Fields("G01 G02 G03 I01 I02 I03 I04 I05 I06 I07 I08 D01 D02 D03 D04 D05 D06 D07 D08 D09 D10 S01")
}
