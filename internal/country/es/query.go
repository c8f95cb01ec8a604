package es

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
)

// pagesMax bounds how many pages of a list are read: ten million records of one day.
const pagesMax = 1000

// question is a ConsultaFactuSistemaFacturacion about the invoices of a day.
type question struct {
	name, nif string
	agent     bool // IndicadorRepresentante
	day       string
	number    string     // "" for all
	after     *invoiceID // ClavePaginacion: the last one of the page before
}

func (q question) write() []byte {
	return envelope(1500, q.writeTo)
}

func (q question) writeTo(w *xmltree.Writer) {
	w.Start("con:ConsultaFactuSistemaFacturacion", "xmlns:con", aeatwire.SpaceQuery, "xmlns:sf", aeatwire.SpaceInfo)
	w.Start("con:Cabecera")
	w.Leaf("sf:IDVersion", "1.0")
	w.Group("sf:ObligadoEmision", "sf:NombreRazon", q.name, "sf:NIF", q.nif)
	w.Maybe("sf:IndicadorRepresentante", flag(q.agent))
	w.End()
	w.Start("con:FiltroConsulta")
	w.Group("con:PeriodoImputacion", "sf:Ejercicio", q.day[6:], "sf:Periodo", q.day[3:5])
	w.Maybe("con:NumSerieFactura", q.number)
	w.Group("con:FechaExpedicionFactura", "sf:FechaExpedicionFactura", q.day)
	if q.after != nil {
		w.Group("con:ClavePaginacion", q.after.leaves("")...)
	}
	w.End()
	w.End()
}

// held is one invoice that AEAT holds.
type held struct {
	id         invoiceID
	huella     string
	reference  string
	kind       string
	rectified  string // number of the invoice that it corrects; "" for none or several
	customer   string // its number; "" for none or several
	total      string // ImporteTotal
	state      string // Correcto, AceptadoConErrores or Anulado
	code, text string
	changed    string
	presenter  string
	at         time.Time
	atText     string
	request    string
}

// holdings is a page of a list.
type holdings struct {
	list []held
	next *invoiceID
}

func readHoldings(e *xmltree.Element) (holdings, error) {
	var out holdings
	if !e.Is(aeatwire.SpaceList, "RespuestaConsultaFactuSistemaFacturacion") {
		return out, fmt.Errorf("reading AEAT's list: it is a %s", e.Local)
	}
	switch e.Value("ResultadoConsulta") {
	case "ConDatos", "SinDatos":
	default:
		return out, errors.New("reading AEAT's list: it does not say whether there are data")
	}
	for _, r := range e.All("RegistroRespuestaConsultaFactuSistemaFacturacion") {
		h := held{
			id:     readID(r.At("IDFactura")),
			huella: r.Value("DatosRegistroFacturacion", "Huella"), reference: r.Value("DatosRegistroFacturacion", "RefExterna"),
			kind: r.Value("DatosRegistroFacturacion", "TipoFactura"), state: r.Value("EstadoRegistro", "EstadoRegistro"),
			code: r.Value("EstadoRegistro", "CodigoErrorRegistro"), text: r.Value("EstadoRegistro", "DescripcionErrorRegistro"),
			changed:   r.Value("EstadoRegistro", "TimestampUltimaModificacion"),
			presenter: r.Value("DatosPresentacion", "NIFPresentador"),
			atText:    r.Value("DatosPresentacion", "TimestampPresentacion"), request: r.Value("DatosPresentacion", "IdPeticion"),
		}
		h.readContent(r.At("DatosRegistroFacturacion"))
		switch h.state {
		case stateCorrect, stateFlawed, stateAnnulled:
		default:
			return out, fmt.Errorf("reading AEAT's list: the state of %s is %q", h.id.Number, h.state)
		}
		if h.atText != "" {
			at, err := time.Parse(time.RFC3339, h.atText)
			if err != nil {
				return out, fmt.Errorf("reading AEAT's list: %w", err)
			}
			h.at = at
		}
		out.list = append(out.list, h)
	}
	if e.Value("IndicadorPaginacion") == "S" {
		id := readID(e.At("ClavePaginacion"))
		if id == (invoiceID{}) {
			return out, errors.New("reading AEAT's list: there is more, and no key to it")
		}
		out.next = &id
	}
	return out, nil
}

// readContent reads what the invoice says.
func (h *held) readContent(e *xmltree.Element) {
	if of := e.At("FacturasRectificadas").All("IDFacturaRectificada"); len(of) == 1 {
		h.rectified = of[0].Value("NumSerieFactura")
	}
	if to := e.At("Destinatarios").All("IDDestinatario"); len(to) == 1 {
		h.customer = cmp.Or(to[0].Value("NIF"), to[0].Value("IDOtro", "ID"))
	}
	h.total = e.Value("ImporteTotal")
}

// entry is it as lists have it. The tax that AEAT has of a margin is not one that
// the customer was charged, so only the total is ours.
func (h *held) entry() country.Entry {
	e := country.Entry{Number: h.id.Number, AuthorityID2: h.huella, Cancelled: h.state == stateAnnulled, At: h.at,
		Reference: h.rectified, Customer: h.customer}
	if total, err := num.AmountFromString(h.total); err == nil {
		cents := total.Rescale(2).Value()
		e.Gross, e.Currency = &cents, "EUR"
	}
	return e
}

func readID(e *xmltree.Element) invoiceID {
	return invoiceID{Issuer: e.Value("IDEmisorFactura"), Number: e.Value("NumSerieFactura"),
		Day: e.Value("FechaExpedicionFactura")}
}

func (ch *channel) ask(ctx context.Context, q question, c country.Credentials) (holdings, country.Reply, error) {
	most := int64(listBytesMax)
	if q.number != "" {
		most = answerBytesMax // it has one record
	}
	answer, reply, err := ch.call(ctx, q.write(), most, c)
	if err != nil {
		return holdings{}, reply, err
	}
	page, err := readHoldings(answer)
	return page, reply, err
}

// Find asks AEAT what it holds under the record's invoice. AEAT does not give
// the CSV again, and knows our record by its huella alone: equal means that
// the answer we lost was an acceptance.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	var own enclosure
	if err := f.Carried(&own); err != nil {
		return country.Receipt{}, err
	}
	page, reply, err := ch.ask(ctx, question{name: own.Name, nif: own.ID.Issuer, agent: own.Agent.NIF != "",
		day: own.ID.Day, number: own.ID.Number}, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	absent := country.Receipt{Outcome: country.Absent, Raw: reply.Body}
	for i := range page.list {
		h := &page.list[i]
		if h.id != own.ID {
			continue
		}
		if own.Cancels && h.state != stateAnnulled {
			return absent, nil // the invoice stands: nobody has cancelled it
		}
		r := country.Receipt{Outcome: country.Accepted, At: h.at, Document: h.document(own), Format: "XML", Raw: reply.Body}
		switch {
		case h.huella == own.Huella:
			r.SHA256, r.Wait = f.SHA256, ch.restOf(f.Supplier, h.at)
			if h.state == stateFlawed {
				r.Faults, r.ChainBroken = flaw(h.code, h.text), ofLink(h.code)
			}
		case h.huella != "":
			r.SHA256 = strings.ToLower(h.huella) // of another record: never that of our report
		}
		return r, nil
	}
	return absent, nil
}

// document is AEAT's answer about this record alone.
func (h *held) document(own enclosure) []byte {
	w := newWriter(1600)
	w.Declare()
	w.Start("sfLRRC:RespuestaConsultaFactuSistemaFacturacion", "xmlns:sfLRRC", aeatwire.SpaceList, "xmlns:sf",
		aeatwire.SpaceInfo)
	writeListHead(w, question{name: own.Name, nif: own.ID.Issuer, day: h.id.Day})
	h.write(w)
	w.End()
	return w.Bytes()
}

// writeListHead writes the head of a list that has one entry and no further page.
func writeListHead(w *xmltree.Writer, q question) {
	w.Start("sfLRRC:Cabecera")
	w.Leaf("sf:IDVersion", "1.0")
	w.Group("sf:ObligadoEmision", "sf:NombreRazon", q.name, "sf:NIF", q.nif)
	w.End()
	w.Group("sfLRRC:PeriodoImputacion", "sfLRRC:Ejercicio", q.day[6:], "sfLRRC:Periodo", q.day[3:5])
	w.Leaves("sfLRRC:IndicadorPaginacion", "N", "sfLRRC:ResultadoConsulta", "ConDatos")
}

func (h *held) write(w *xmltree.Writer) {
	w.Start("sfLRRC:RegistroRespuestaConsultaFactuSistemaFacturacion")
	w.Group("sfLRRC:IDFactura", h.id.leaves("")...)
	w.Group("sfLRRC:DatosRegistroFacturacion", "?sfLRRC:RefExterna", h.reference, "?sfLRRC:TipoFactura", h.kind,
		"?sfLRRC:Huella", h.huella)
	if h.atText != "" {
		w.Group("sfLRRC:DatosPresentacion", "sf:NIFPresentador", h.presenter, "sf:TimestampPresentacion", h.atText,
			"sf:IdPeticion", h.request)
	}
	w.Group("sfLRRC:EstadoRegistro", "sfLRRC:TimestampUltimaModificacion", h.changed, "sfLRRC:EstadoRegistro", h.state,
		"?sfLRRC:CodigoErrorRegistro", h.code, "?sfLRRC:DescripcionErrorRegistro", h.text)
	w.End()
}

// Registered lists what AEAT holds of a supplier with a day on it, all pages.
func (ch *channel) Registered(ctx context.Context, s country.Supplier, on country.Day,
	c country.Credentials) ([]country.Entry, error) {
	q := question{name: plain(s.LegalName, nameMax), nif: taxid.NIF(s.TaxNumber), agent: agentOf(s).NIF != "",
		day: fmt.Sprintf("%02d-%02d-%04d", on.Day, int(on.Month), on.Year)}
	if q.nif == "" {
		return nil, fmt.Errorf("listing the records of %s: %q is not a NIF", on, s.TaxNumber)
	}
	var all []country.Entry
	for range pagesMax {
		page, _, err := ch.ask(ctx, q, c)
		if err != nil {
			return nil, fmt.Errorf("listing the records of %s: %w", on, err)
		}
		for _, h := range page.list {
			all = append(all, h.entry())
		}
		if page.next == nil {
			return all, nil
		}
		if q.after != nil && *page.next == *q.after {
			return nil, fmt.Errorf("listing the records of %s: the same page comes again", on)
		}
		q.after = page.next
	}
	return nil, fmt.Errorf("listing the records of %s: there are more than %d pages", on, pagesMax)
}
