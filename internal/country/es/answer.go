package es

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
)

// answer is a RespuestaRegFactuSistemaFacturacion, read.
type answer struct {
	csv       string
	presenter string
	at        time.Time
	atText    string
	name, nif string
	late      bool
	wait      time.Duration
	waitText  string
	state     string
	lines     []answerLine
}

// answerLine is AEAT's word on one record.
type answerLine struct {
	id                        invoiceID
	operation                 string // Alta or Anulacion
	amends, rejected, unknown string
	reference                 string
	state                     string
	code, text                string
	duplicate                 bool
	request, heldState        string
	heldCode, heldText        string
}

// readAnswer reads an answer strictly: what the schema requires must be there.
func readAnswer(e *xmltree.Element) (answer, error) {
	if !e.Is(aeatwire.SpaceAnswer, "RespuestaRegFactuSistemaFacturacion") {
		return answer{}, fmt.Errorf("reading AEAT's answer: it is a %s", e.Local)
	}
	a := answer{
		csv: e.Value("CSV"), presenter: e.Value("DatosPresentacion", "NIFPresentador"),
		atText: e.Value("DatosPresentacion", "TimestampPresentacion"),
		name:   e.Value("Cabecera", "ObligadoEmision", "NombreRazon"), nif: e.Value("Cabecera", "ObligadoEmision", "NIF"),
		late:     e.Value("Cabecera", "RemisionVoluntaria", "Incidencia") == "S",
		waitText: e.Value("TiempoEsperaEnvio"), state: e.Value("EstadoEnvio"),
	}
	var err error
	if a.atText != "" {
		if a.at, err = time.Parse(time.RFC3339, a.atText); err != nil {
			return answer{}, fmt.Errorf("reading AEAT's answer: %w", err)
		}
	}
	if a.waitText != "" {
		seconds, err := strconv.ParseUint(a.waitText, 10, 16)
		if err != nil {
			return answer{}, fmt.Errorf("reading AEAT's answer: TiempoEsperaEnvio: %w", err)
		}
		a.wait = time.Duration(seconds) * time.Second
	}
	switch a.state {
	case stateCorrect, aeatwire.StatePartial, stateRefused:
	default:
		return answer{}, fmt.Errorf("reading AEAT's answer: EstadoEnvio is %q", a.state)
	}
	for _, l := range e.All("RespuestaLinea") {
		line, err := readLine(l)
		if err != nil {
			return answer{}, err
		}
		a.lines = append(a.lines, line)
	}
	return a, nil
}

func readLine(l *xmltree.Element) (answerLine, error) {
	out := answerLine{
		id:        readID(l.At("IDFactura")),
		operation: l.Value("Operacion", "TipoOperacion"), amends: l.Value("Operacion", "Subsanacion"),
		rejected: l.Value("Operacion", "RechazoPrevio"), unknown: l.Value("Operacion", "SinRegistroPrevio"),
		reference: l.Value("RefExterna"), state: l.Value("EstadoRegistro"),
		code: l.Value("CodigoErrorRegistro"), text: l.Value("DescripcionErrorRegistro"),
	}
	if d := l.At("RegistroDuplicado"); d != nil {
		out.duplicate = true
		out.request, out.heldState = d.Value("IdPeticionRegistroDuplicado"), d.Value("EstadoRegistroDuplicado")
		out.heldCode, out.heldText = d.Value("CodigoErrorRegistro"), d.Value("DescripcionErrorRegistro")
	}
	switch out.state {
	case stateCorrect, stateFlawed, stateRefused:
		return out, nil
	}
	return out, fmt.Errorf("reading AEAT's answer: EstadoRegistro of %s is %q", out.id.Number, out.state)
}

// name is what a line and a record have in common, where AEAT gives our own
// reference back and where it does not.
func lineName(id invoiceID, cancels bool) string {
	kind := "Alta"
	if cancels {
		kind = "Anulacion"
	}
	return kind + "\x00" + id.Number + "\x00" + id.Day
}

// receipts gives every filing its line. One without a line makes the whole
// answer unknown: better asked again than believed.
func (a *answer) receipts(filings []country.Filing, own []enclosure, raw []byte) ([]country.Receipt, error) {
	byReference := make(map[string]*answerLine, len(a.lines))
	byName := make(map[string]*answerLine, len(a.lines))
	for i := range a.lines {
		l := &a.lines[i]
		if l.reference != "" {
			byReference[l.reference] = l
		} else {
			byName[lineName(l.id, l.operation == "Anulacion")] = l
		}
	}
	out := make([]country.Receipt, len(filings))
	for i := range filings {
		l, ok := byReference[own[i].Ref]
		if !ok {
			l, ok = byName[lineName(own[i].ID, own[i].Cancels)]
		}
		if !ok || l.id != own[i].ID {
			return nil, fmt.Errorf("reading AEAT's answer: %d lines, none of them of %s", len(a.lines), filings[i].Number)
		}
		r, err := a.receipt(l)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			r.Raw = raw // one exchange, kept once
		}
		out[i] = r
	}
	return out, nil
}

func (a *answer) receipt(l *answerLine) (country.Receipt, error) {
	r := country.Receipt{At: a.at, Wait: a.wait, Document: a.document(l), Format: "XML"}
	switch {
	case l.duplicate || l.state == stateRefused && (l.code == "3000" || l.code == "3001"):
		// Whose it is, only the huella tells; there is no CSV of it in this answer.
		r.Outcome, r.Duplicate = country.Accepted, true
	case l.state == stateRefused && technical(l.code):
		r = r.Untaken("%s: %s", l.code, l.text)
	case l.state == stateRefused:
		r.Outcome, r.Faults, r.ChainBroken = country.Rejected, rejection(l.code, l.text), ofLink(l.code)
	case a.csv == "":
		return r, errors.New("reading AEAT's answer: a record is accepted and there is no CSV")
	default:
		r.Outcome, r.AuthorityID1 = country.Accepted, a.csv
		if l.state == stateFlawed {
			r.Faults, r.ChainBroken = flaw(l.code, l.text), ofLink(l.code)
		}
	}
	return r, nil
}

// ofLink reports whether a code speaks of the link to the record before: its
// huella has no such form (2002, 2003), or there should be one (2007). AEAT
// publishes them as remarks about records that it takes.
func ofLink(code string) bool { return code == "2002" || code == "2003" || code == "2007" }

// technical reports whether a refusal speaks of AEAT's own trouble ("Error
// técnico …" in its list): the record is as good as before and goes again.
func technical(code string) bool {
	switch code {
	case "1129", "1241", "1243", "1256", "1288", "3500", "3501":
		return true
	}
	return false
}

// rejection is AEAT's own code and text.
func rejection(code, text string) []fault.Fault {
	f := fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: text}
	if code != "" {
		f.Message = code + ": " + text
	}
	return []fault.Fault{f}
}

// flaw is AEAT's code and text of a record that it took all the same. 2001
// says that nobody holds the customer's number.
func flaw(code, text string) []fault.Fault {
	if code == "2001" {
		return []fault.Fault{fault.Warn("", fault.TaxNumberDoubtful, "%s: %s", code, text)}
	}
	return []fault.Fault{fault.Warn("", fault.AuthorityRemark, "accepted with errors, %s: %s", code, text)}
}

func idLost() fault.Fault {
	return fault.Warn("", fault.AuthorityIDUnavailable,
		"the record is registered; its CSV was in an answer that got lost, and AEAT does not give it again")
}

// document is the answer with this record's line alone: the CSV, the time and
// AEAT's word on it, and nothing of the records that went with it.
func (a *answer) document(l *answerLine) []byte {
	w := newWriter(1600)
	w.Declare()
	a.write(w, l)
	return w.Bytes()
}

// write appends the element RespuestaRegFactuSistemaFacturacion with one line.
func (a *answer) write(w *xmltree.Writer, l *answerLine) {
	w.Start("sfR:RespuestaRegFactuSistemaFacturacion", "xmlns:sfR", aeatwire.SpaceAnswer, "xmlns:sf", aeatwire.SpaceInfo)
	w.Maybe("sfR:CSV", a.csv)
	if a.atText != "" {
		w.Group("sfR:DatosPresentacion", "sf:NIFPresentador", a.presenter, "sf:TimestampPresentacion", a.atText)
	}
	w.Start("sfR:Cabecera")
	w.Group("sf:ObligadoEmision", "sf:NombreRazon", a.name, "sf:NIF", a.nif)
	if a.late {
		w.Group("sf:RemisionVoluntaria", "sf:Incidencia", "S")
	}
	w.End()
	w.Leaves("sfR:TiempoEsperaEnvio", a.waitText, "sfR:EstadoEnvio", envelopeState(l.state))
	l.write(w)
	w.End()
}

// envelopeState is the state of an answer that has one line.
func envelopeState(line string) string {
	switch line {
	case stateFlawed:
		return aeatwire.StatePartial
	case stateRefused:
		return stateRefused
	}
	return stateCorrect
}

func (l *answerLine) write(w *xmltree.Writer) {
	w.Start("sfR:RespuestaLinea")
	w.Group("sfR:IDFactura", l.id.leaves("")...)
	w.Group("sfR:Operacion", "sf:TipoOperacion", l.operation, "?sf:Subsanacion", l.amends, "?sf:RechazoPrevio",
		l.rejected, "?sf:SinRegistroPrevio", l.unknown)
	w.Leaves("?sfR:RefExterna", l.reference, "sfR:EstadoRegistro", l.state, "?sfR:CodigoErrorRegistro", l.code,
		"?sfR:DescripcionErrorRegistro", l.text)
	if l.duplicate {
		w.Group("sfR:RegistroDuplicado", "sf:IdPeticionRegistroDuplicado", l.request, "sf:EstadoRegistroDuplicado", l.heldState,
			"?sf:CodigoErrorRegistro", l.heldCode, "?sf:DescripcionErrorRegistro", l.heldText)
	}
	w.End()
}
