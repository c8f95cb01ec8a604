package aeat

import (
	"fmt"
	"net/http"

	"tributary/internal/authority"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
)

// list serves ConsultaFactuSistemaFacturacion: invoices of a month, newest first.
func (a *double) list(w http.ResponseWriter, r *http.Request, s submission) {
	found := examine(s.body)
	if found.misplaced != "" {
		writeFault(w, "Client", "4102", found.misplaced)
		return
	}
	for _, part := range s.body.Children {
		if bad := found.illegible[part]; bad != "" && bad != "NIF" {
			writeFault(w, "Client", codeOf(bad), bad)
			return
		}
	}
	if code := headerFlaw(s.body.At("Cabecera"), a.agents(s)); code != "" {
		writeFault(w, "Client", code, "")
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, func(w http.ResponseWriter) { writeFault(w, "Server", "4134", "") }) {
		return
	}
	var held []entry
	var next *invoiceID
	if err := a.desk.Write(func(b *authority.Book) { held, next = a.search(b, s.body) }); err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		respond(w, 1<<10+1000*len(held), func(out *xmltree.Writer) { writeList(out, s.body, held, next) })
	}
}

// agents widens whom a certificate speaks for: who asks as a company's agent
// (IndicadorRepresentante) must be the one that its records name.
func (a *double) agents(s submission) func(nif string) bool {
	if s.body.Value("Cabecera", "IndicadorRepresentante") != "S" {
		return s.names
	}
	return func(nif string) bool {
		agent := ""
		a.desk.Read(func(b *authority.Book) { agent, _ = b.Get(agentKey(nif)) })
		return s.names(nif) || agent != "" && s.names(agent)
	}
}

func (a *double) search(b *authority.Book, q *xmltree.Element) (found []entry, next *invoiceID) {
	nif := q.Value("Cabecera", "ObligadoEmision", "NIF")
	filter := q.At("FiltroConsulta")
	number, day := filter.Value("NumSerieFactura"), filter.Value("FechaExpedicionFactura", "FechaExpedicionFactura")
	month := fmt.Sprintf("%s-%s", filter.Value("PeriodoImputacion", "Periodo"), filter.Value("PeriodoImputacion", "Ejercicio"))
	if number != "" && day != "" {
		if h, ok := lookUp(b, nif, placeIn(invoiceID{Number: number, Day: day})); ok && day[3:] == month {
			return []entry{h.listed(a.madrid)}, nil
		}
		return nil, nil
	}
	place, _ := b.Get(monthKey(nif, "00-"+month))
	if after := filter.At("ClavePaginacion"); after != nil {
		last, _ := lookUp(b, nif, placeIn(readID(after)))
		place = last.Before
	}
	for place != "" {
		h, ok := lookUp(b, nif, place)
		if !ok {
			break
		}
		place = h.Before
		if number != "" && h.ID.Number != number || day != "" && h.ID.Day != day ||
			filter.Value("RefExterna") != "" && filter.Value("RefExterna") != h.Reference {
			continue
		}
		if len(found) == a.habits.Page {
			last := found[len(found)-1].id
			return found, &last
		}
		found = append(found, h.listed(a.madrid))
	}
	return found, nil
}

// entry is one invoice as an answer to a query has it.
type entry struct {
	id         invoiceID
	huella     string
	reference  string
	kind       string
	state      string
	code, text string
	presenter  string
	at         string
	request    string
	says       content
}

func writeList(w *xmltree.Writer, q *xmltree.Element, found []entry, next *invoiceID) {
	yes := func(name string, holds bool, words [2]string) {
		if holds {
			w.Leaf(name, words[0])
		} else {
			w.Leaf(name, words[1])
		}
	}
	w.Start("sfLRRC:RespuestaConsultaFactuSistemaFacturacion", "xmlns:sfLRRC", aeatwire.SpaceList, "xmlns:sf",
		aeatwire.SpaceInfo)
	w.Start("sfLRRC:Cabecera")
	w.Leaf("sf:IDVersion", "1.0")
	w.Start("sf:ObligadoEmision")
	w.Leaf("sf:NombreRazon", q.Value("Cabecera", "ObligadoEmision", "NombreRazon"))
	w.Leaf("sf:NIF", q.Value("Cabecera", "ObligadoEmision", "NIF"))
	w.End()
	w.End()
	period := q.At("FiltroConsulta", "PeriodoImputacion")
	w.Start("sfLRRC:PeriodoImputacion")
	w.Leaf("sfLRRC:Ejercicio", period.Value("Ejercicio"))
	w.Leaf("sfLRRC:Periodo", period.Value("Periodo"))
	w.End()
	yes("sfLRRC:IndicadorPaginacion", next != nil, [2]string{"S", "N"})
	yes("sfLRRC:ResultadoConsulta", len(found) > 0, [2]string{"ConDatos", "SinDatos"})
	for i := range found {
		found[i].write(w)
	}
	if next != nil {
		w.Start("sfLRRC:ClavePaginacion")
		next.write(w)
		w.End()
	}
	w.End()
}

func (h *entry) write(w *xmltree.Writer) {
	w.Start("sfLRRC:RegistroRespuestaConsultaFactuSistemaFacturacion")
	w.Start("sfLRRC:IDFactura")
	h.id.write(w)
	w.End()
	w.Start("sfLRRC:DatosRegistroFacturacion")
	w.Maybe("sfLRRC:RefExterna", h.reference)
	w.Maybe("sfLRRC:TipoFactura", h.kind)
	h.says.write(w)
	w.Maybe("sfLRRC:Huella", h.huella)
	w.End()
	w.Start("sfLRRC:DatosPresentacion")
	w.Leaf("sf:NIFPresentador", h.presenter)
	w.Leaf("sf:TimestampPresentacion", h.at)
	w.Leaf("sf:IdPeticion", h.request)
	w.End()
	w.Start("sfLRRC:EstadoRegistro")
	w.Leaf("sfLRRC:TimestampUltimaModificacion", h.at)
	w.Leaf("sfLRRC:EstadoRegistro", h.state)
	w.Maybe("sfLRRC:CodigoErrorRegistro", h.code)
	w.Maybe("sfLRRC:DescripcionErrorRegistro", h.text)
	w.End()
	w.End()
}
