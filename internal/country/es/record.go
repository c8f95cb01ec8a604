package es

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"tributary/internal/country"
	"tributary/internal/official/aeatwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
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
	rectified  []invoiceID
	replaced   []invoiceID
	substitute *breakdown // what ImporteRectificacion takes back
	text       string     // DescripcionOperacion
	operation  string     // FechaOperacion; "" where it is the day of issue
	qualified  bool       // FacturaSimplificadaArt7273
	unnamed    bool       // FacturaSinIdentifDestinatarioArt61d
	issuedBy   string     // EmitidaPorTerceroODestinatario
	third      *person
	customer   *person
	sums       breakdown
	limit      int64            // cents of a simplified invoice; 0: simpleMax
	effects    []country.Effect // what it takes from its originals, in their order; none: its amounts
	unprinted  bool

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

func (id invoiceID) write(w *xmltree.Writer, suffix string) {
	w.Leaf("sf:IDEmisorFactura"+suffix, id.Issuer)
	w.Leaf("sf:NumSerieFactura"+suffix, id.Number)
	w.Leaf("sf:FechaExpedicionFactura"+suffix, id.Day)
}

// write appends the element RegistroFactura.
func (r *record) write(w *xmltree.Writer) {
	w.Start(aeatwire.TagRecord)
	if r.cancels {
		w.Start("sf:RegistroAnulacion")
		w.Leaf("sf:IDVersion", "1.0")
		w.Start("sf:IDFactura")
		r.id.write(w, "Anulada")
		w.End()
		w.Maybe("sf:RefExterna", r.reference)
		flag(w, "sf:SinRegistroPrevio", r.unknown)
		w.Maybe("sf:RechazoPrevio", r.rejected)
	} else {
		w.Start("sf:RegistroAlta")
		r.writeInvoice(w)
	}
	r.writeChain(w)
	r.software.write(w)
	w.Leaf("sf:FechaHoraHusoGenRegistro", r.at)
	w.Leaf("sf:TipoHuella", "01") // SHA-256
	w.Leaf("sf:Huella", r.huella)
	w.End()
	w.End()
}

func (r *record) writeInvoice(w *xmltree.Writer) {
	w.Leaf("sf:IDVersion", "1.0")
	w.Start("sf:IDFactura")
	r.id.write(w, "")
	w.End()
	w.Maybe("sf:RefExterna", r.reference)
	w.Leaf("sf:NombreRazonEmisor", r.issuerName)
	flag(w, "sf:Subsanacion", r.amends)
	w.Maybe("sf:RechazoPrevio", r.rejected)
	w.Leaf("sf:TipoFactura", r.kind)
	w.Maybe("sf:TipoRectificativa", r.method)
	writeReference(w, "sf:FacturasRectificadas", "sf:IDFacturaRectificada", r.rectified)
	writeReference(w, "sf:FacturasSustituidas", "sf:IDFacturaSustituida", r.replaced)
	if r.substitute != nil {
		w.Start("sf:ImporteRectificacion")
		w.Leaf("sf:BaseRectificada", euros(r.substitute.base))
		w.Leaf("sf:CuotaRectificada", euros(r.substitute.tax))
		if r.substitute.extra != 0 {
			w.Leaf("sf:CuotaRecargoRectificado", euros(r.substitute.extra))
		}
		w.End()
	}
	w.Maybe("sf:FechaOperacion", r.operation)
	w.Leaf("sf:DescripcionOperacion", r.text)
	flag(w, "sf:FacturaSimplificadaArt7273", r.qualified)
	flag(w, "sf:FacturaSinIdentifDestinatarioArt61d", r.unnamed)
	flag(w, "sf:Macrodato", size(r.sums.total()) >= largeAmount)
	w.Maybe("sf:EmitidaPorTerceroODestinatario", r.issuedBy)
	if r.third != nil {
		w.Start("sf:Tercero")
		r.third.write(w)
		w.End()
	}
	if r.customer != nil {
		w.Start("sf:Destinatarios")
		w.Start("sf:IDDestinatario")
		r.customer.write(w)
		w.End()
		w.End()
	}
	w.Start("sf:Desglose")
	for i := range r.sums.details {
		r.sums.details[i].write(w)
	}
	w.End()
	w.Leaf("sf:CuotaTotal", euros(r.sums.quota()))
	w.Leaf("sf:ImporteTotal", euros(r.sums.total()))
}

func writeReference(w *xmltree.Writer, group, tag string, list []invoiceID) {
	if len(list) == 0 {
		return
	}
	w.Start(group)
	for _, id := range list {
		w.Start(tag)
		id.write(w, "")
		w.End()
	}
	w.End()
}

func (r *record) writeChain(w *xmltree.Writer) {
	w.Start("sf:Encadenamiento")
	if r.previous == nil {
		w.Leaf("sf:PrimerRegistro", "S")
	} else {
		w.Start("sf:RegistroAnterior")
		r.previous.write(w, "")
		w.Leaf("sf:Huella", r.before)
		w.End()
	}
	w.End()
}

// recordOf cuts the record out of a report, byte by byte as it was written.
func recordOf(report []byte) ([]byte, bool) {
	from := bytes.Index(report, []byte("<"+aeatwire.TagRecord+">"))
	end := []byte("</" + aeatwire.TagRecord + ">\n")
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

// referenceText is RefExterna: our own reference behind the mark of the header.
func referenceText(late bool, own string) string {
	if late {
		return aeatwire.MarkLate + plain(own, referenceMax-len(aeatwire.MarkLate))
	}
	return aeatwire.MarkPrompt + plain(own, referenceMax-len(aeatwire.MarkPrompt))
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
