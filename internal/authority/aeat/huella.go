package aeat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"tributary/internal/xmltree"
)

// invoiceID names an invoice: the three together are unique.
type invoiceID struct {
	Issuer string `json:"issuer"`
	Number string `json:"number"`
	Day    string `json:"day"`
}

func readID(e *xmltree.Element) invoiceID {
	return invoiceID{Issuer: e.Value("IDEmisorFactura"), Number: e.Value("NumSerieFactura"),
		Day: e.Value("FechaExpedicionFactura")}
}

func (id invoiceID) write(w *xmltree.Writer) {
	w.Leaf("sf:IDEmisorFactura", id.Issuer)
	w.Leaf("sf:NumSerieFactura", id.Number)
	w.Leaf("sf:FechaExpedicionFactura", id.Day)
}

// huellaOf computes the huella of a record as it came: AEAT, "Detalle de las
// especificaciones técnicas para generación de la huella o hash de los
// registros de facturación", 0.1.2, sections 3.2 and 3.3. It is written from
// that paper and shares nothing with any sender's.
func huellaOf(e *xmltree.Element, cancels bool) string {
	id, previous, at := nameOf(e, cancels), e.Value("Encadenamiento", "RegistroAnterior", "Huella"),
		e.Value("FechaHoraHusoGenRegistro")
	text := fmt.Sprintf("IDEmisorFactura=%s&NumSerieFactura=%s&FechaExpedicionFactura=%s&TipoFactura=%s&CuotaTotal=%s&ImporteTotal=%s&Huella=%s&FechaHoraHusoGenRegistro=%s",
		id.Issuer, id.Number, id.Day, e.Value("TipoFactura"), e.Value("CuotaTotal"), e.Value("ImporteTotal"), previous, at)
	if cancels {
		text = fmt.Sprintf("IDEmisorFacturaAnulada=%s&NumSerieFacturaAnulada=%s&FechaExpedicionFacturaAnulada=%s&Huella=%s&FechaHoraHusoGenRegistro=%s",
			id.Issuer, id.Number, id.Day, previous, at)
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

var huellaForm = regexp.MustCompile(`^[0-9A-F]{64}$`)

func wellFormedHuella(text string) bool { return huellaForm.MatchString(text) }

func sha256Hex(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
