package aeat

import (
	"net/http"

	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// answer is a RespuestaRegFactuSistemaFacturacion, to be written.
type answer struct {
	csv, presenter, at string
	name, nif          string
	late               bool
	wait               string
	state              string
	lines              []answerLine
}

// answerLine is the word on one record.
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

// respond writes an envelope with status 200. A sender that left will ask.
func respond(w http.ResponseWriter, bytes int, body func(*xmltree.Writer)) {
	out := xmltree.NewWriter(bytes)
	out.Lines = true
	out.Declare()
	soap.Message{Version: soap.V11, Body: body}.WriteTo(out)
	w.Header().Set("Content-Type", soap.V11.ContentType(""))
	_, _ = w.Write(out.Bytes())
}

// writeFault refuses a whole call: nothing of it was taken.
func writeFault(w http.ResponseWriter, side, code, detail string) {
	text := "Codigo[" + code + "]." + Message(code)
	if detail != "" {
		text += ": " + detail
	}
	w.Header().Set("Content-Type", soap.V11.ContentType(""))
	w.WriteHeader(http.StatusInternalServerError) // SOAP 1.1, section 6.2
	_, _ = w.Write((&soap.Fault{Code: side, Reason: text}).Bytes(soap.V11))
}

// overall is EstadoEnvio.
func overall(lines []answerLine) string {
	good, bad := 0, 0
	for i := range lines {
		switch lines[i].state {
		case aeatwire.StateCorrect:
			good++
		case aeatwire.StateRefused:
			bad++
		}
	}
	switch {
	case good == len(lines):
		return aeatwire.StateCorrect
	case bad == len(lines):
		return aeatwire.StateRefused
	}
	return aeatwire.StatePartial
}

func (a *answer) write(w *xmltree.Writer) {
	w.Start("sfR:RespuestaRegFactuSistemaFacturacion", "xmlns:sfR", aeatwire.SpaceAnswer, "xmlns:sf", aeatwire.SpaceInfo)
	w.Maybe("sfR:CSV", a.csv)
	if a.at != "" {
		w.Start("sfR:DatosPresentacion")
		w.Leaf("sf:NIFPresentador", a.presenter)
		w.Leaf("sf:TimestampPresentacion", a.at)
		w.End()
	}
	w.Start("sfR:Cabecera")
	w.Start("sf:ObligadoEmision")
	w.Leaf("sf:NombreRazon", a.name)
	w.Leaf("sf:NIF", a.nif)
	w.End()
	if a.late {
		w.Start("sf:RemisionVoluntaria")
		w.Leaf("sf:Incidencia", "S")
		w.End()
	}
	w.End()
	w.Leaf("sfR:TiempoEsperaEnvio", a.wait)
	w.Leaf("sfR:EstadoEnvio", a.state)
	for i := range a.lines {
		a.lines[i].write(w)
	}
	w.End()
}

func (l *answerLine) write(w *xmltree.Writer) {
	w.Start("sfR:RespuestaLinea")
	w.Start("sfR:IDFactura")
	l.id.write(w)
	w.End()
	w.Start("sfR:Operacion")
	w.Leaf("sf:TipoOperacion", l.operation)
	w.Maybe("sf:Subsanacion", l.amends)
	w.Maybe("sf:RechazoPrevio", l.rejected)
	w.Maybe("sf:SinRegistroPrevio", l.unknown)
	w.End()
	w.Maybe("sfR:RefExterna", l.reference)
	w.Leaf("sfR:EstadoRegistro", l.state)
	w.Maybe("sfR:CodigoErrorRegistro", l.code)
	w.Maybe("sfR:DescripcionErrorRegistro", l.text)
	if l.duplicate {
		w.Start("sfR:RegistroDuplicado")
		w.Leaf("sf:IdPeticionRegistroDuplicado", l.request)
		w.Leaf("sf:EstadoRegistroDuplicado", l.heldState)
		w.Maybe("sf:CodigoErrorRegistro", l.heldCode)
		w.Maybe("sf:DescripcionErrorRegistro", l.heldText)
		w.End()
	}
	w.End()
}
