package es

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
)

const callBytesMax = 32 << 20

// authority is a strict double of AEAT's service: its wire, its rules, its
// codes and texts. It reads what it gets by descriptions of its own
// (structure.go, rules.go) and shares with the sender only the huella.
type authority struct {
	desk   *country.Desk
	habits habits
	madrid *time.Location
	call   shape
	query  shape
}

func newAuthority(d *country.Desk, h habits) http.Handler {
	a := &authority{desk: d, habits: h, madrid: madrid(), call: callShape(), query: queryShape()}
	mux := http.NewServeMux()
	mux.HandleFunc(servicePath, a.serve)
	return mux
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		writeFault(w, "Client", "4135", "")
		return
	}
	who, ok := a.identify(w, r)
	if !ok {
		return
	}
	source, err := io.ReadAll(http.MaxBytesReader(w, r.Body, callBytesMax))
	if err != nil || len(source) == 0 {
		writeFault(w, "Client", "4138", "")
		return
	}
	body, err := soapBody(source)
	switch {
	case err != nil:
		writeFault(w, "Client", "4103", "")
	case body.is(nsLR, "RegFactuSistemaFacturacion"):
		a.file(w, r, submission{source: source, body: body, names: who})
	case body.is(nsAsk, "ConsultaFactuSistemaFacturacion"):
		a.list(w, r, submission{body: body, names: who})
	default:
		writeFault(w, "Client", "4118", "")
	}
}

// submission is a call that could be parsed, and whose certificate made it.
type submission struct {
	source []byte
	body   *element
	names  func(nif string) bool // whether the certificate carries the number
}

// identify wants a certificate that is valid now. AEAT ends TLS before the
// service, which answers everybody else with a page.
func (a *authority) identify(w http.ResponseWriter, r *http.Request) (func(string) bool, bool) {
	cert, err := country.ClientCertificate(r)
	now := time.Now()
	if err != nil || cert == nil || now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><head><title>403</title></head><body>No se detecta certificado electrónico o no es válido.</body></html>\n")
		return nil, false
	}
	return func(nif string) bool { return identity.Names(cert, "ES", nif) }, true
}

// writeFault refuses a whole call: nothing of it was taken.
func writeFault(w http.ResponseWriter, side, code, detail string) {
	text := "Codigo[" + code + "]." + message(code)
	if detail != "" {
		text += ": " + detail
	}
	out := writer{}
	out.out = append(out.out, xmlStart...)
	out.open(`env:Envelope xmlns:env="` + nsSOAP + `"`)
	out.open("env:Body")
	out.open("env:Fault")
	out.leaf("faultcode", "env:"+side)
	out.leaf("faultstring", text)
	out.close("env:Fault")
	out.close("env:Body")
	out.close("env:Envelope")
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusInternalServerError) // SOAP 1.1, section 6.2
	_, _ = w.Write(out.out)
}

// headerFlaw finds why a call cannot be taken because of whom it speaks for.
func headerFlaw(head *element, names func(string) bool) string {
	nif := head.value("ObligadoEmision", "NIF")
	switch incident := head.at("RemisionVoluntaria", "Incidencia"); {
	case !nifText(nif):
		return "4116"
	case incident != nil && incident.text != "S" && incident.text != "N":
		return "4121"
	case head.at("RemisionRequerimiento") != nil:
		return "4126"
	case !names(nif):
		return "4112"
	}
	return ""
}

// file serves RegFactuSistemaFacturacion.
func (a *authority) file(w http.ResponseWriter, r *http.Request, s submission) {
	if bad := a.call.misplaced(s.body); bad != "" {
		writeFault(w, "Client", "4102", bad)
		return
	}
	head, records := s.body.at("Cabecera"), s.body.all("RegistroFactura")
	if len(records) > batchMax {
		writeFault(w, "Client", "4114", "")
		return
	}
	if code := headerFlaw(head, s.names); code != "" {
		writeFault(w, "Client", code, "")
		return
	}
	docs := make([]arrival, len(records))
	names := make([]country.Arrival, len(records))
	nif := head.value("ObligadoEmision", "NIF")
	for i, e := range records {
		docs[i] = a.read(s.source, e, head)
		names[i] = country.Arrival{Supplier: nif, Number: docs[i].number}
	}
	early := false
	a.desk.Read(func(b *country.Book) { early = tooEarly(b, docs, time.Now()) })
	if early {
		writeFault(w, "Server", "4141", "")
		return
	}
	turn := a.desk.Turn(names...)
	if !turn.Begin(w, func(w http.ResponseWriter) { writeFault(w, "Server", "4134", "") }) {
		return
	}
	said, early, err := a.decide(docs, head, turn)
	switch {
	case err != nil:
		http.Error(w, "the book cannot be written", http.StatusInternalServerError) // it may or may not hold the call
		return
	case early:
		writeFault(w, "Server", "4141", "")
		return
	}
	if turn.End(w, r) {
		writeAnswer(w, said)
	}
}

// read takes a record out of a call. The list of registrations names it by the
// hash of its report: the same record under its sender's own header.
func (a *authority) read(source []byte, e, head *element) arrival {
	out := arrival{e: e.children[0], cancels: e.children[0].name == "RegistroAnulacion"}
	out.id = nameOf(out.e, out.cancels)
	out.reference, out.huella = out.e.value("RefExterna"), out.e.value("Huella")
	out.number = out.id.Number
	h := header{name: out.e.value("NombreRazonEmisor"), nif: head.value("ObligadoEmision", "NIF"), late: strings.HasPrefix(out.reference, markLate)}
	if out.cancels {
		h.name = head.value("ObligadoEmision", "NombreRazon")
		if h.late || strings.HasPrefix(out.reference, markPrompt) {
			out.number = out.reference[len(markPrompt):] // a cancellation's own number
		}
	}
	out.sha256 = sha256Hex(report(h, append(source[e.from:e.to:e.to], '\n')))
	s := out.e.at("SistemaInformatico")
	out.chain = "cadena/" + h.nif + "/" + s.value("IdSistemaInformatico") + "/" + s.value("NumeroInstalacion")
	shapes := a.call.parts[1].parts[0].parts
	for k := range shapes {
		if shapes[k].name == out.e.name {
			out.illegible = shapes[k].illegible(out.e)
		}
	}
	return out
}

func waitKey(docs []arrival) string { return "espera/" + docs[0].chain }

// tooEarly reports whether the sender was told to wait longer. It may send as
// soon as it has as many records as fit into a call (Orden HAC/1177/2024,
// article 16: control of the flow).
func tooEarly(b *country.Book, docs []arrival, now time.Time) bool {
	text, ok := b.Get(waitKey(docs))
	if !ok || len(docs) == batchMax {
		return false
	}
	until, err := strconv.ParseInt(text, 10, 64)
	return err == nil && now.UnixMilli() < until
}

// decide works on the records of a call, all in one write of the book.
func (a *authority) decide(docs []arrival, head *element, turn country.Turn) (said answer, early bool, err error) {
	now := time.Now()
	wait := a.habits.wait
	if turn.Wait > 0 {
		wait = turn.Wait
	}
	seconds := int64((wait + time.Second - 1) / time.Second)
	reg := registrar{
		nif: head.value("ObligadoEmision", "NIF"), csv: "A-" + rand.Text()[:14], request: strings.Replace(now.UTC().Format("20060102150405.000000"), ".", "", 1),
		late: head.value("RemisionVoluntaria", "Incidencia") == "S", now: now.In(a.madrid).Truncate(time.Second), heads: map[string]string{},
	}
	lines := make([]answerLine, len(docs))
	err = a.desk.Write(func(b *country.Book) {
		if early = tooEarly(b, docs, now); early {
			return
		}
		reg.book = b
		for i := range docs {
			lines[i] = reg.take(&docs[i], turn.Steps[i])
		}
		reg.close()
		if seconds > 0 {
			b.Put(waitKey(docs), strconv.FormatInt(now.Add(time.Duration(seconds)*time.Second).UnixMilli(), 10))
		}
	})
	said = answer{
		presenter: reg.nif, atText: reg.now.In(a.madrid).Format(instantForm), name: head.value("ObligadoEmision", "NombreRazon"), nif: reg.nif,
		late: reg.late, waitText: strconv.FormatInt(seconds, 10), state: overall(lines), lines: lines,
	}
	if reg.taken > 0 {
		said.csv = reg.csv
	} else {
		said.presenter, said.atText = "", ""
	}
	return said, early, err
}

// overall is EstadoEnvio.
func overall(lines []answerLine) string {
	good, bad := 0, 0
	for i := range lines {
		switch lines[i].state {
		case stateCorrect:
			good++
		case stateRefused:
			bad++
		}
	}
	switch {
	case good == len(lines):
		return stateCorrect
	case bad == len(lines):
		return stateRefused
	}
	return "ParcialmenteCorrecto"
}

func writeAnswer(w http.ResponseWriter, said answer) {
	out := writer{out: make([]byte, 0, 1<<10+700*len(said.lines))}
	openEnvelope(&out)
	said.write(&out, said.state, said.lines...)
	closeEnvelope(&out)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(out.out) // a sender that left will ask
}

// list serves ConsultaFactuSistemaFacturacion: invoices of a month, newest first.
func (a *authority) list(w http.ResponseWriter, r *http.Request, s submission) {
	if bad := a.query.misplaced(s.body); bad != "" {
		writeFault(w, "Client", "4102", bad)
		return
	}
	if bad := a.query.illegible(s.body); bad != "" {
		writeFault(w, "Client", codeOf(bad), bad)
		return
	}
	if code := headerFlaw(s.body.at("Cabecera"), s.names); code != "" {
		writeFault(w, "Client", code, "")
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, func(w http.ResponseWriter) { writeFault(w, "Server", "4134", "") }) {
		return
	}
	var found []held
	var next *invoiceID
	if err := a.desk.Write(func(b *country.Book) { found, next = a.search(b, s.body) }); err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		a.writeList(w, s.body, found, next)
	}
}

func (a *authority) search(b *country.Book, q *element) (found []held, next *invoiceID) {
	nif := q.value("Cabecera", "ObligadoEmision", "NIF")
	filter := q.at("FiltroConsulta")
	number, day := filter.value("NumSerieFactura"), filter.value("FechaExpedicionFactura", "FechaExpedicionFactura")
	month := fmt.Sprintf("%s-%s", filter.value("PeriodoImputacion", "Periodo"), filter.value("PeriodoImputacion", "Ejercicio"))
	if number != "" && day != "" {
		if h, ok := lookUp(b, nif, placeIn(invoiceID{Number: number, Day: day})); ok && day[3:] == month {
			return []held{h.listed(a.madrid)}, nil
		}
		return nil, nil
	}
	place, _ := b.Get(monthKey(nif, "00-"+month))
	if after := filter.at("ClavePaginacion"); after != nil {
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
			filter.value("RefExterna") != "" && filter.value("RefExterna") != h.Reference {
			continue
		}
		if len(found) == a.habits.page {
			last := found[len(found)-1].id
			return found, &last
		}
		found = append(found, h.listed(a.madrid))
	}
	return found, nil
}

func (a *authority) writeList(w http.ResponseWriter, q *element, found []held, next *invoiceID) {
	out := writer{out: make([]byte, 0, 1<<10+1000*len(found))}
	openEnvelope(&out)
	const tag = "sfLRRC:RespuestaConsultaFactuSistemaFacturacion"
	out.open(tag + ` xmlns:sfLRRC="` + nsAskedOf + `" xmlns:sf="` + nsInfo + `"`)
	period := q.at("FiltroConsulta", "PeriodoImputacion")
	writeListHead(&out, question{
		name: q.value("Cabecera", "ObligadoEmision", "NombreRazon"), nif: q.value("Cabecera", "ObligadoEmision", "NIF"),
		day: "00-" + period.value("Periodo") + "-" + period.value("Ejercicio"),
	}, next != nil, len(found) > 0)
	for i := range found {
		found[i].write(&out)
	}
	if next != nil {
		out.open("sfLRRC:ClavePaginacion")
		next.write(&out, "")
		out.close("sfLRRC:ClavePaginacion")
	}
	out.close(tag)
	closeEnvelope(&out)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(out.out)
}
