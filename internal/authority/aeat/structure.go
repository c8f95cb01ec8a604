package aeat

import (
	"strings"
	"time"

	"tributary/internal/country/taxid"
	"tributary/internal/official"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/structure"
)

// flawsMax is how many flaws of a call are looked for: some for each of its
// records. A call with more is refused as a whole.
const flawsMax = 20 * aeatwire.BatchMax

// examination is what the structure says of a call or a query.
type examination struct {
	// the element that stands where it may not, or is missing; "" when everything is in its place
	misplaced string
	illegible map[*xmltree.Element]string // by the part of the call it stands in: the first field whose text cannot be read
}

// examine checks what came against AEAT's own schemas, and texts against what
// its papers say beyond them. A structure that does not fit refuses all of a
// call, a text that does not fit its record alone.
func examine(call *xmltree.Element) examination {
	out := examination{illegible: map[*xmltree.Element]string{}}
	flaws := official.Verifactu.Schema().Check(call, flawsMax)
	if len(flaws) == flawsMax {
		out.misplaced = call.Local
		return out
	}
	for i := range flaws {
		switch f := &flaws[i]; f.Kind {
		case structure.Value:
			out.note(call, f.Element)
		default:
			out.misplaced = f.Name
			return out
		}
	}
	for e := range call.Walk() {
		if len(e.Children) == 0 && !legible(e) {
			out.note(call, e)
		}
	}
	return out
}

// note keeps the first illegible field of each part, in the document's order.
func (x *examination) note(call, field *xmltree.Element) {
	part := field
	for part.Parent != nil && part.Parent != call {
		part = part.Parent
	}
	if _, known := x.illegible[part]; !known {
		x.illegible[part] = field.Local
	}
}

// legible knows what the schemas leave open: numbers with check digits, days
// that are none, instants without offset, and texts that may not be empty.
func legible(e *xmltree.Element) bool {
	text := e.Text
	switch e.Local {
	case "NIF", "IDEmisorFactura", "IDEmisorFacturaAnulada":
		// the header has codes of its own
		return e.Parent.Local == "ObligadoEmision" || e.Parent.Local == "Representante" || len(text) == 9 && taxid.NIF(text) == text
	case "FechaExpedicionFactura", "FechaExpedicionFacturaAnulada", "FechaOperacion", "FechaFinVeriFactu":
		_, err := time.Parse(aeatwire.DayForm, text)
		return err == nil
	case "FechaHoraHusoGenRegistro":
		_, err := time.Parse(time.RFC3339, text)
		return err == nil
	case "NombreRazon", "NombreRazonEmisor", "DescripcionOperacion", "ID", "CodigoPais", "NombreSistemaInformatico",
		"IdSistemaInformatico", "Version",
		"NumeroInstalacion", "RefRequerimiento":
		return strings.TrimSpace(text) != ""
	}
	return true
}

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
