package es

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
)

// pagesMax bounds how many pages of a list are read: ten million records of one day.
const pagesMax = 1000

// question is a ConsultaFactuSistemaFacturacion about the invoices of a day.
type question struct {
	name, nif string
	day       string
	number    string     // "" for all
	after     *invoiceID // ClavePaginacion: the last one of the page before
}

func (q question) write() []byte {
	w := writer{out: make([]byte, 0, 1500)}
	openEnvelope(&w)
	const tag = "con:ConsultaFactuSistemaFacturacion"
	w.open(tag + ` xmlns:con="` + nsAsk + `" xmlns:sf="` + nsInfo + `"`)
	w.open("con:Cabecera")
	w.leaf("sf:IDVersion", "1.0")
	w.open("sf:ObligadoEmision")
	w.leaf("sf:NombreRazon", q.name)
	w.leaf("sf:NIF", q.nif)
	w.close("sf:ObligadoEmision")
	w.close("con:Cabecera")
	w.open("con:FiltroConsulta")
	w.open("con:PeriodoImputacion")
	w.leaf("sf:Ejercicio", q.day[6:])
	w.leaf("sf:Periodo", q.day[3:5])
	w.close("con:PeriodoImputacion")
	w.maybe("con:NumSerieFactura", q.number)
	w.open("con:FechaExpedicionFactura")
	w.leaf("sf:FechaExpedicionFactura", q.day)
	w.close("con:FechaExpedicionFactura")
	if q.after != nil {
		w.open("con:ClavePaginacion")
		q.after.write(&w, "")
		w.close("con:ClavePaginacion")
	}
	w.close("con:FiltroConsulta")
	w.close(tag)
	closeEnvelope(&w)
	return w.out
}

// held is one invoice that AEAT holds.
type held struct {
	id         invoiceID
	huella     string
	reference  string
	kind       string
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

func readHoldings(e *element) (holdings, error) {
	var out holdings
	if !e.is(nsAskedOf, "RespuestaConsultaFactuSistemaFacturacion") {
		return out, fmt.Errorf("reading AEAT's list: it is a %s", e.name)
	}
	switch e.value("ResultadoConsulta") {
	case "ConDatos", "SinDatos":
	default:
		return out, errors.New("reading AEAT's list: it does not say whether there are data")
	}
	for _, r := range e.all("RegistroRespuestaConsultaFactuSistemaFacturacion") {
		h := held{
			id:     readID(r.at("IDFactura")),
			huella: r.value("DatosRegistroFacturacion", "Huella"), reference: r.value("DatosRegistroFacturacion", "RefExterna"),
			kind: r.value("DatosRegistroFacturacion", "TipoFactura"), state: r.value("EstadoRegistro", "EstadoRegistro"),
			code: r.value("EstadoRegistro", "CodigoErrorRegistro"), text: r.value("EstadoRegistro", "DescripcionErrorRegistro"),
			changed: r.value("EstadoRegistro", "TimestampUltimaModificacion"), presenter: r.value("DatosPresentacion", "NIFPresentador"),
			atText: r.value("DatosPresentacion", "TimestampPresentacion"), request: r.value("DatosPresentacion", "IdPeticion"),
		}
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
	if e.value("IndicadorPaginacion") == "S" {
		id := readID(e.at("ClavePaginacion"))
		if id == (invoiceID{}) {
			return out, errors.New("reading AEAT's list: there is more, and no key to it")
		}
		out.next = &id
	}
	return out, nil
}

func readID(e *element) invoiceID {
	return invoiceID{Issuer: e.value("IDEmisorFactura"), Number: e.value("NumSerieFactura"), Day: e.value("FechaExpedicionFactura")}
}

func (ch *channel) ask(ctx context.Context, q question, c country.Credentials) (holdings, country.Reply, error) {
	answer, reply, err := ch.call(ctx, q.write(), listBytesMax, c)
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
	own, err := enclosed(f)
	if err != nil {
		return country.Receipt{}, err
	}
	page, reply, err := ch.ask(ctx, question{name: own.Name, nif: own.ID.Issuer, day: own.ID.Day, number: own.ID.Number}, c)
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
	w := writer{out: make([]byte, 0, 1600)}
	w.out = append(w.out, xmlStart...)
	const tag = "sfLRRC:RespuestaConsultaFactuSistemaFacturacion"
	w.open(tag + ` xmlns:sfLRRC="` + nsAskedOf + `" xmlns:sf="` + nsInfo + `"`)
	writeListHead(&w, question{name: own.Name, nif: own.ID.Issuer, day: h.id.Day}, false, true)
	h.write(&w)
	w.close(tag)
	return w.out
}

func writeListHead(w *writer, q question, more, data bool) {
	w.open("sfLRRC:Cabecera")
	w.leaf("sf:IDVersion", "1.0")
	w.open("sf:ObligadoEmision")
	w.leaf("sf:NombreRazon", q.name)
	w.leaf("sf:NIF", q.nif)
	w.close("sf:ObligadoEmision")
	w.close("sfLRRC:Cabecera")
	w.open("sfLRRC:PeriodoImputacion")
	w.leaf("sfLRRC:Ejercicio", q.day[6:])
	w.leaf("sfLRRC:Periodo", q.day[3:5])
	w.close("sfLRRC:PeriodoImputacion")
	w.leaf("sfLRRC:IndicadorPaginacion", map[bool]string{true: "S", false: "N"}[more])
	w.leaf("sfLRRC:ResultadoConsulta", map[bool]string{true: "ConDatos", false: "SinDatos"}[data])
}

func (h *held) write(w *writer) {
	w.open("sfLRRC:RegistroRespuestaConsultaFactuSistemaFacturacion")
	w.open("sfLRRC:IDFactura")
	h.id.write(w, "")
	w.close("sfLRRC:IDFactura")
	w.open("sfLRRC:DatosRegistroFacturacion")
	w.maybe("sfLRRC:RefExterna", h.reference)
	w.maybe("sfLRRC:TipoFactura", h.kind)
	w.maybe("sfLRRC:Huella", h.huella)
	w.close("sfLRRC:DatosRegistroFacturacion")
	if h.atText != "" {
		w.open("sfLRRC:DatosPresentacion")
		w.leaf("sf:NIFPresentador", h.presenter)
		w.leaf("sf:TimestampPresentacion", h.atText)
		w.leaf("sf:IdPeticion", h.request)
		w.close("sfLRRC:DatosPresentacion")
	}
	w.open("sfLRRC:EstadoRegistro")
	w.leaf("sfLRRC:TimestampUltimaModificacion", h.changed)
	w.leaf("sfLRRC:EstadoRegistro", h.state)
	w.maybe("sfLRRC:CodigoErrorRegistro", h.code)
	w.maybe("sfLRRC:DescripcionErrorRegistro", h.text)
	w.close("sfLRRC:EstadoRegistro")
	w.close("sfLRRC:RegistroRespuestaConsultaFactuSistemaFacturacion")
}

// Registered lists what AEAT holds of a supplier with a day on it, all pages.
func (ch *channel) Registered(ctx context.Context, s country.Supplier, on country.Day, c country.Credentials) ([]country.Entry, error) {
	q := question{name: plain(s.LegalName, nameMax), nif: nifOf(s.TaxNumber), day: fmt.Sprintf("%02d-%02d-%04d", on.Day, int(on.Month), on.Year)}
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
			all = append(all, country.Entry{Number: h.id.Number, AuthorityID2: h.huella, Cancelled: h.state == stateAnnulled, At: h.at})
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
