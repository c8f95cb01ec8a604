package es

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"tributary/internal/transaction"
)

const (
	descriptionMax = 500
	referenceMax   = 60
)

// record is a RegistroAlta, or a RegistroAnulacion when it cancels.
type record struct {
	id         invoiceID
	cancels    bool
	reference  string // RefExterna
	issuerName string
	late       bool // stands in the header of a call, see header

	amends     bool   // Subsanacion
	rejected   string // RechazoPrevio
	unknown    bool   // SinRegistroPrevio
	kind       string // TipoFactura
	method     string // TipoRectificativa
	rectified  *invoiceID
	replaced   *invoiceID
	substitute *breakdown // what ImporteRectificacion takes back
	text       string     // DescripcionOperacion
	unnamed    bool       // FacturaSinIdentifDestinatarioArt61d
	issuedBy   string     // EmitidaPorTerceroODestinatario
	third      *person
	customer   *person
	sums       breakdown

	previous *invoiceID
	before   string // huella of the record before
	software software
	at       string
	huella   string
}

// seal computes the record's own huella.
func (r *record) seal() {
	r.huella = fingerprint{
		invoiceID: r.id, cancels: r.cancels, kind: r.kind, tax: euros(r.sums.quota()), total: euros(r.sums.total()),
		previous: r.before, at: r.at,
	}.huella()
}

func (id invoiceID) write(w *writer, suffix string) {
	w.leaf("sf:IDEmisorFactura"+suffix, id.Issuer)
	w.leaf("sf:NumSerieFactura"+suffix, id.Number)
	w.leaf("sf:FechaExpedicionFactura"+suffix, id.Day)
}

// write appends the element RegistroFactura.
func (r *record) write(w *writer) {
	w.open(tagRecord)
	if r.cancels {
		w.open("sf:RegistroAnulacion")
		w.leaf("sf:IDVersion", "1.0")
		w.open("sf:IDFactura")
		r.id.write(w, "Anulada")
		w.close("sf:IDFactura")
		w.maybe("sf:RefExterna", r.reference)
		w.flag("sf:SinRegistroPrevio", r.unknown)
		w.maybe("sf:RechazoPrevio", r.rejected)
	} else {
		w.open("sf:RegistroAlta")
		r.writeInvoice(w)
	}
	r.writeChain(w)
	r.software.write(w)
	w.leaf("sf:FechaHoraHusoGenRegistro", r.at)
	w.leaf("sf:TipoHuella", "01") // SHA-256
	w.leaf("sf:Huella", r.huella)
	if r.cancels {
		w.close("sf:RegistroAnulacion")
	} else {
		w.close("sf:RegistroAlta")
	}
	w.close(tagRecord)
}

func (r *record) writeInvoice(w *writer) {
	w.leaf("sf:IDVersion", "1.0")
	w.open("sf:IDFactura")
	r.id.write(w, "")
	w.close("sf:IDFactura")
	w.maybe("sf:RefExterna", r.reference)
	w.leaf("sf:NombreRazonEmisor", r.issuerName)
	w.flag("sf:Subsanacion", r.amends)
	w.maybe("sf:RechazoPrevio", r.rejected)
	w.leaf("sf:TipoFactura", r.kind)
	w.maybe("sf:TipoRectificativa", r.method)
	writeReference(w, "sf:FacturasRectificadas", "sf:IDFacturaRectificada", r.rectified)
	writeReference(w, "sf:FacturasSustituidas", "sf:IDFacturaSustituida", r.replaced)
	if r.substitute != nil {
		w.open("sf:ImporteRectificacion")
		w.leaf("sf:BaseRectificada", euros(r.substitute.base))
		w.leaf("sf:CuotaRectificada", euros(r.substitute.tax))
		if r.substitute.extra != 0 {
			w.leaf("sf:CuotaRecargoRectificado", euros(r.substitute.extra))
		}
		w.close("sf:ImporteRectificacion")
	}
	w.leaf("sf:DescripcionOperacion", r.text)
	w.flag("sf:FacturaSinIdentifDestinatarioArt61d", r.unnamed)
	w.flag("sf:Macrodato", size(r.sums.total()) >= largeAmount)
	w.maybe("sf:EmitidaPorTerceroODestinatario", r.issuedBy)
	if r.third != nil {
		w.open("sf:Tercero")
		r.third.write(w)
		w.close("sf:Tercero")
	}
	if r.customer != nil {
		w.open("sf:Destinatarios")
		w.open("sf:IDDestinatario")
		r.customer.write(w)
		w.close("sf:IDDestinatario")
		w.close("sf:Destinatarios")
	}
	w.open("sf:Desglose")
	for i := range r.sums.details {
		r.sums.details[i].write(w)
	}
	w.close("sf:Desglose")
	w.leaf("sf:CuotaTotal", euros(r.sums.quota()))
	w.leaf("sf:ImporteTotal", euros(r.sums.total()))
}

func writeReference(w *writer, group, tag string, id *invoiceID) {
	if id == nil {
		return
	}
	w.open(group)
	w.open(tag)
	id.write(w, "")
	w.close(tag)
	w.close(group)
}

func (r *record) writeChain(w *writer) {
	w.open("sf:Encadenamiento")
	if r.previous == nil {
		w.leaf("sf:PrimerRegistro", "S")
	} else {
		w.open("sf:RegistroAnterior")
		r.previous.write(w, "")
		w.leaf("sf:Huella", r.before)
		w.close("sf:RegistroAnterior")
	}
	w.close("sf:Encadenamiento")
}

// Tags by which the parts of a report are found again.
const (
	tagBatch  = "sfLR:RegFactuSistemaFacturacion"
	tagHeader = "sfLR:Cabecera"
	tagRecord = "sfLR:RegistroFactura"
)

// header is the Cabecera of a call.
type header struct {
	name, nif string
	late      bool // Incidencia: something kept the records from being sent at once
}

func (h header) write(w *writer) {
	w.open(tagHeader)
	w.open("sf:ObligadoEmision")
	w.leaf("sf:NombreRazon", h.name)
	w.leaf("sf:NIF", h.nif)
	w.close("sf:ObligadoEmision")
	if h.late {
		w.open("sf:RemisionVoluntaria")
		w.leaf("sf:Incidencia", "S")
		w.close("sf:RemisionVoluntaria")
	}
	w.close(tagHeader)
}

// writeBatch appends the element that a call carries. Records are bytes that
// were written before and never change.
func writeBatch(w *writer, h header, records ...[]byte) {
	w.open(tagBatch + ` xmlns:sfLR="` + nsLR + `" xmlns:sf="` + nsInfo + `"`)
	h.write(w)
	for _, r := range records {
		w.out = append(w.out, r...)
	}
	w.close(tagBatch)
}

// report is a record's own document: the call that would carry it alone.
func report(h header, record []byte) []byte {
	w := writer{out: make([]byte, 0, len(record)+1200)}
	w.out = append(w.out, xmlStart...)
	writeBatch(&w, h, record)
	return w.out
}

// recordOf cuts the record out of a report, byte by byte as it was written.
func recordOf(report []byte) ([]byte, bool) {
	from := bytes.Index(report, []byte("<"+tagRecord+">"))
	end := []byte("</" + tagRecord + ">\n")
	to := bytes.LastIndex(report, end)
	if from < 0 || to < from {
		return nil, false
	}
	return report[from : to+len(end)], true
}

func sha256Hex(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Marks at the beginning of RefExterna, our own reference in a record. They
// tell the two headers that a record's report can have apart: the header of
// the call that carries it speaks of all its records together.
const (
	markPrompt = "N/"
	markLate   = "I/"
)

func referenceText(late bool, own string) string {
	if late {
		return markLate + plain(own, referenceMax-len(markLate))
	}
	return markPrompt + plain(own, referenceMax-len(markPrompt))
}

// describe is DescripcionOperacion: the names of what is sold, in order.
func describe(items []transaction.Item) string {
	var b strings.Builder
	for i := range items {
		if name := plain(items[i].Name, descriptionMax); name != "" {
			if b.Len() > 0 {
				b.WriteString("; ")
			}
			b.WriteString(name)
		}
		if b.Len() > 4*descriptionMax {
			break // no character has more than four bytes
		}
	}
	return plain(b.String(), descriptionMax)
}
