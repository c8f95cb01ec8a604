// Package aeat is a strict double of the service with which Spain's tax agency
// receives VERI*FACTU records: its wire, its rules, its codes and texts, on a
// desk that keeps its book and plays scripts.
//
// It judges by AEAT's own schemas (official.Verifactu), by rules written here
// from AEAT's papers (rules.go, structure.go) and by a huella of its own
// (huella.go). It knows nothing of the pack whose records it judges; both stand
// on official/aeatwire.
//
// AEAT publishes no code for a call that comes before its stated wait is over; here
// it is refused with 4141. A link that does not follow the last record seen is
// accepted with error 2003, as AEAT does: gaps are legal. The list of registrations
// names a record by the hash of the document under which its sender keeps it; AEAT
// has no such thing, and how that document is framed stands in official/aeatwire.
// The WSDL's schemas are written from the compact form, because the official ones
// are not ours to ship; tests compare their verdicts.
package aeat

import (
	"crypto/rand"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/identity"
	"tributary/internal/country/taxid"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

const callBytesMax = 32 << 20

// Habits are what differs between doubles.
type Habits struct {
	Wait time.Duration // TiempoEsperaEnvio, stated in every answer
	Page int           // records in an answer to a query
}

// New returns the authority on a desk, with the habits of the real one except
// that it asks for less patience.
func New(d *authority.Desk) http.Handler {
	return Habits{Wait: aeatwire.SimulatedWait, Page: 10_000}.New(d)
}

// New returns the authority on a desk with these habits.
func (h Habits) New(d *authority.Desk) http.Handler {
	a := &double{desk: d, habits: h, madrid: madrid()}
	mux := http.NewServeMux()
	mux.HandleFunc(aeatwire.ServicePath, a.serve)
	return mux
}

// double is the double of AEAT's service. Keys of its book: "factura/" an
// invoice, "mes/" the last one of a month, "cadena/" the head of a chain,
// "huella/" a record that was seen, "representante/" who files for a company, "espera/" until when a sender must wait.
type double struct {
	desk   *authority.Desk
	habits Habits
	madrid *time.Location
}

// madrid is the time of the Spanish mainland.
func madrid() *time.Location {
	where, err := time.LoadLocation("Europe/Madrid")
	if err != nil {
		return time.FixedZone("CET", 3600) // a machine without time zones
	}
	return where
}

func (a *double) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && describe(w, r) {
		return
	}
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
	m, err := soap.Read(source, xmltree.Limits{Bytes: callBytesMax, Depth: 32})
	switch {
	case err != nil || m.Content == nil || m.Version != soap.V11:
		writeFault(w, "Client", "4103", "")
	case m.Content.Is(aeatwire.SpaceCall, "RegFactuSistemaFacturacion"):
		a.file(w, r, submission{document: m.Document, body: m.Content, names: who})
	case m.Content.Is(aeatwire.SpaceQuery, "ConsultaFactuSistemaFacturacion"):
		a.list(w, r, submission{document: m.Document, body: m.Content, names: who})
	default:
		writeFault(w, "Client", "4118", "")
	}
}

// submission is a call that could be parsed, and whose certificate made it.
type submission struct {
	document *xmltree.Document
	body     *xmltree.Element
	names    func(nif string) bool // whether the certificate carries the number
}

// identify wants a certificate that is valid now. AEAT ends TLS before the
// service, which answers everybody else with a page.
func (a *double) identify(w http.ResponseWriter, r *http.Request) (func(string) bool, bool) {
	cert, err := authority.ClientCertificate(r)
	now := time.Now()
	if err != nil || cert == nil || now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w,
			"<!DOCTYPE html>\n<html><head><title>403</title></head><body>No se detecta certificado electrónico o no es válido.</body></html>\n")
		return nil, false
	}
	return func(nif string) bool { return identity.Names(cert, "ES", nif) }, true
}

// headerFlaw finds why a call cannot be taken because of whom it speaks for.
func headerFlaw(head *xmltree.Element, names func(string) bool) string {
	nif, agent := head.Value("ObligadoEmision", "NIF"), head.At("Representante")
	switch incident := head.At("RemisionVoluntaria", "Incidencia"); {
	case len(nif) != 9 || taxid.NIF(nif) != nif:
		return "4116"
	case incident != nil && incident.Text != "S" && incident.Text != "N":
		return "4121"
	case head.At("RemisionRequerimiento") != nil:
		return "4126"
	case agent != nil && (len(agent.Value("NIF")) != 9 || taxid.NIF(agent.Value("NIF")) != agent.Value("NIF")):
		return "4117"
	case !names(nif) && (agent == nil || !names(agent.Value("NIF"))):
		return "4112"
	}
	return ""
}

// file serves RegFactuSistemaFacturacion.
func (a *double) file(w http.ResponseWriter, r *http.Request, s submission) {
	head, records := s.body.At("Cabecera"), s.body.All("RegistroFactura")
	if len(records) > aeatwire.BatchMax {
		writeFault(w, "Client", "4114", "")
		return
	}
	found := examine(s.body)
	if found.misplaced != "" {
		writeFault(w, "Client", "4102", found.misplaced)
		return
	}
	if code := headerFlaw(head, s.names); code != "" {
		writeFault(w, "Client", code, "")
		return
	}
	if field, bad := found.illegible[head]; bad {
		writeFault(w, "Client", "4102", field)
		return
	}
	docs := make([]arrival, len(records))
	names := make([]authority.Arrival, len(records))
	nif := head.Value("ObligadoEmision", "NIF")
	for i, e := range records {
		docs[i] = read(s.document, e, head)
		docs[i].illegible = found.illegible[e]
		names[i] = authority.Arrival{Supplier: nif, Number: docs[i].number}
	}
	early := false
	a.desk.Read(func(b *authority.Book) { early = tooEarly(b, docs, time.Now()) })
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
		respond(w, 1<<10+700*len(said.lines), said.write)
	}
}

// read takes a record out of a call. The list of registrations names it by the
// hash of its report: the same record under its sender's own header.
func read(doc *xmltree.Document, e, head *xmltree.Element) arrival {
	out := arrival{e: e.Children[0], cancels: e.Children[0].Local == "RegistroAnulacion"}
	out.id = nameOf(out.e, out.cancels)
	out.reference, out.huella = out.e.Value("RefExterna"), out.e.Value("Huella")
	out.number = out.id.Number
	h := aeatwire.Header{Name: out.e.Value("NombreRazonEmisor"), NIF: head.Value("ObligadoEmision", "NIF"),
		Late:  strings.HasPrefix(out.reference, aeatwire.MarkLate),
		Agent: aeatwire.Agent{Name: head.Value("Representante", "NombreRazon"), NIF: head.Value("Representante", "NIF")}}
	if out.cancels {
		h.Name = head.Value("ObligadoEmision", "NombreRazon")
		if h.Late || strings.HasPrefix(out.reference, aeatwire.MarkPrompt) {
			out.number = out.reference[len(aeatwire.MarkPrompt):] // a cancellation's own number
		}
	}
	out.sha256 = sha256Hex(aeatwire.Report(h, []byte(doc.Raw(e)+"\n")))
	s := out.e.At("SistemaInformatico")
	out.chain = "cadena/" + h.NIF + "/" + s.Value("IdSistemaInformatico") + "/" + s.Value("NumeroInstalacion")
	return out
}

func agentKey(nif string) string { return "representante/" + nif }

func waitKey(docs []arrival) string { return "espera/" + docs[0].chain }

// tooEarly reports whether the sender was told to wait longer. It may send as
// soon as it has as many records as fit into a call (Orden HAC/1177/2024,
// article 16: control of the flow).
func tooEarly(b *authority.Book, docs []arrival, now time.Time) bool {
	text, ok := b.Get(waitKey(docs))
	if !ok || len(docs) == aeatwire.BatchMax {
		return false
	}
	until, err := strconv.ParseInt(text, 10, 64)
	return err == nil && now.UnixMilli() < until
}

// decide works on the records of a call, all in one write of the book.
func (a *double) decide(docs []arrival, head *xmltree.Element, turn authority.Turn) (said answer, early bool, err error) {
	now := time.Now()
	wait := a.habits.Wait
	if turn.Wait > 0 {
		wait = turn.Wait
	}
	seconds := int64((wait + time.Second - 1) / time.Second)
	reg := registrar{
		nif: head.Value("ObligadoEmision", "NIF"), csv: "A-" + rand.Text()[:14],
		request: strings.Replace(now.UTC().Format("20060102150405.000000"), ".", "", 1),
		late:    head.Value("RemisionVoluntaria", "Incidencia") == "S", now: now.In(a.madrid).Truncate(time.Second),
		heads: map[string]string{},
	}
	lines := make([]answerLine, len(docs))
	err = a.desk.Write(func(b *authority.Book) {
		if early = tooEarly(b, docs, now); early {
			return
		}
		reg.book = b
		for i := range docs {
			lines[i] = reg.take(&docs[i], turn.Steps[i])
		}
		reg.close()
		if agent := head.Value("Representante", "NIF"); agent != "" && reg.taken > 0 {
			b.Put(agentKey(reg.nif), agent)
		}
		if seconds > 0 {
			b.Put(waitKey(docs), strconv.FormatInt(now.Add(time.Duration(seconds)*time.Second).UnixMilli(), 10))
		}
	})
	said = answer{
		presenter: reg.nif, at: reg.now.In(a.madrid).Format(aeatwire.InstantForm),
		name: head.Value("ObligadoEmision", "NombreRazon"), nif: reg.nif,
		late: reg.late, wait: strconv.FormatInt(seconds, 10), state: overall(lines), lines: lines,
	}
	if reg.taken > 0 {
		said.csv = reg.csv
	} else {
		said.presenter, said.at = "", ""
	}
	return said, early, err
}
