package es

import (
	"bytes"
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

func (id invoiceID) leaves(suffix string) []string {
	return []string{"sf:IDEmisorFactura" + suffix, id.Issuer, "sf:NumSerieFactura" + suffix, id.Number,
		"sf:FechaExpedicionFactura" + suffix, id.Day}
}

// write appends the element RegistroFactura.
func (r *record) write(w *xmltree.Writer) {
	w.Start(aeatwire.TagRecord)
	if r.cancels {
		w.Start("sf:RegistroAnulacion")
		w.Leaf("sf:IDVersion", "1.0")
		w.Group("sf:IDFactura", r.id.leaves("Anulada")...)
		w.Leaves("?sf:RefExterna", r.reference, "?sf:SinRegistroPrevio", flag(r.unknown), "?sf:RechazoPrevio", r.rejected)
	} else {
		w.Start("sf:RegistroAlta")
		r.writeInvoice(w)
	}
	r.writeChain(w)
	r.software.write(w)
	w.Leaves("sf:FechaHoraHusoGenRegistro", r.at, "sf:TipoHuella", "01", "sf:Huella", r.huella) // SHA-256
	w.End()
	w.End()
}

func (r *record) writeInvoice(w *xmltree.Writer) {
	w.Leaf("sf:IDVersion", "1.0")
	w.Group("sf:IDFactura", r.id.leaves("")...)
	w.Leaves("?sf:RefExterna", r.reference, "sf:NombreRazonEmisor", r.issuerName, "?sf:Subsanacion", flag(r.amends),
		"?sf:RechazoPrevio", r.rejected,
		"sf:TipoFactura", r.kind, "?sf:TipoRectificativa", r.method)
	writeReference(w, "sf:FacturasRectificadas", "sf:IDFacturaRectificada", r.rectified)
	writeReference(w, "sf:FacturasSustituidas", "sf:IDFacturaSustituida", r.replaced)
	if r.substitute != nil {
		extra := ""
		if r.substitute.extra != 0 {
			extra = euros(r.substitute.extra)
		}
		w.Group("sf:ImporteRectificacion", "sf:BaseRectificada", euros(r.substitute.base), "sf:CuotaRectificada",
			euros(r.substitute.tax), "?sf:CuotaRecargoRectificado", extra)
	}
	w.Leaves("?sf:FechaOperacion", r.operation, "sf:DescripcionOperacion", r.text, "?sf:FacturaSimplificadaArt7273",
		flag(r.qualified),
		"?sf:FacturaSinIdentifDestinatarioArt61d", flag(r.unnamed), "?sf:Macrodato", flag(size(r.sums.total()) >= largeAmount),
		"?sf:EmitidaPorTerceroODestinatario", r.issuedBy)
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
	w.Leaves("sf:CuotaTotal", euros(r.sums.quota()), "sf:ImporteTotal", euros(r.sums.total()))
}

func writeReference(w *xmltree.Writer, group, tag string, list []invoiceID) {
	if len(list) == 0 {
		return
	}
	w.Start(group)
	for _, id := range list {
		w.Group(tag, id.leaves("")...)
	}
	w.End()
}

func (r *record) writeChain(w *xmltree.Writer) {
	w.Start("sf:Encadenamiento")
	if r.previous == nil {
		w.Leaf("sf:PrimerRegistro", "S")
	} else {
		w.Group("sf:RegistroAnterior", append(r.previous.leaves(""), "sf:Huella", r.before)...)
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
