package es

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
)

// invoiceID names an invoice at the authority: the three together are unique.
type invoiceID struct {
	Issuer string `json:"issuer"`
	Number string `json:"number"`
	Day    string `json:"day"`
}

// fingerprint is what the huella of a record is made of (AEAT, "Detalle de las
// especificaciones técnicas para generación de la huella", 0.1.2, section 3).
type fingerprint struct {
	invoiceID
	cancels    bool
	kind       string // TipoFactura
	tax, total string // CuotaTotal, ImporteTotal
	previous   string
	at         string
}

// huella is the SHA-256 of the fields as text, in upper-case hex.
func (f fingerprint) huella() string {
	var b strings.Builder
	b.Grow(320)
	add := func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(strings.TrimSpace(value))
	}
	suffix := ""
	if f.cancels {
		suffix = "Anulada"
	}
	add("IDEmisorFactura"+suffix, f.Issuer)
	add("NumSerieFactura"+suffix, f.Number)
	add("FechaExpedicionFactura"+suffix, f.Day)
	if !f.cancels {
		add("TipoFactura", f.kind)
		add("CuotaTotal", f.tax)
		add("ImporteTotal", f.total)
	}
	add("Huella", f.previous)
	add("FechaHoraHusoGenRegistro", f.at)
	sum := sha256.Sum256([]byte(b.String()))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// wellFormedHuella is the output form: 64 upper-case hexadecimal characters.
func wellFormedHuella(text string) bool {
	if len(text) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// Hosts of the service that checks QR codes (AEAT, "Detalle de las
// especificaciones técnicas del código QR", 0.4.7, section 5.1).
const (
	qrLive = "https://www2.agenciatributaria.gob.es/wlpl/TIKE-CONT/ValidarQR"
	qrTest = "https://prewww2.aeat.es/wlpl/TIKE-CONT/ValidarQR"
)

// qrText is the content of an invoice's QR code: exactly these four
// parameters, in this order.
func qrText(live bool, id invoiceID, total string) string {
	base := qrTest
	if live {
		base = qrLive
	}
	return base + "?nif=" + url.QueryEscape(id.Issuer) + "&numserie=" + url.QueryEscape(id.Number) +
		"&fecha=" + url.QueryEscape(id.Day) + "&importe=" + url.QueryEscape(total)
}

// day is the calendar day of an instant where the supplier is.
func day(at time.Time, where *time.Location) string {
	if where == nil {
		where = time.UTC
	}
	return at.In(where).Format(dayForm)
}
