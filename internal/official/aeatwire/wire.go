// Package aeatwire is the service of VERI*FACTU as data: namespaces, path,
// limits and forms of AEAT's SistemaFacturacion.wsdl and its schemas, and how a
// call and a record's own document are framed.
//
// The sender (country/es) and the double of the authority (authority/aeat) both
// stand on it, on the official structure and on nothing else of each other's:
// the huella, the rules and what records say are written on each side.
package aeatwire

import (
	"time"

	"tributary/internal/xmltree"
)

// Namespaces of the service.
const (
	spaceBase    = "https://www2.agenciatributaria.gob.es/static_files/common/internet/dep/aplicaciones/es/aeat/tike/cont/ws/"
	SpaceCall    = spaceBase + "SuministroLR.xsd"
	SpaceInfo    = spaceBase + "SuministroInformacion.xsd"
	SpaceAnswer  = spaceBase + "RespuestaSuministro.xsd"
	SpaceQuery   = spaceBase + "ConsultaLR.xsd"
	SpaceList    = spaceBase + "RespuestaConsultaLR.xsd"
	SpaceService = spaceBase + "SistemaFacturacion.wsdl"
)

const (
	// ServicePath is where calls of systems that verify their invoices go.
	ServicePath = "/wlpl/TIKE-CONT/ws/SistemaFacturacion/VerifactuSOAP"

	// BatchMax is how many records a call carries.
	BatchMax = 1000

	// DayForm is how the authority writes days, InstantForm how it writes
	// instants: with the offset, never "Z".
	DayForm     = "02-01-2006"
	InstantForm = "2006-01-02T15:04:05-07:00"

	// SimulatedWait is the TiempoEsperaEnvio of a double unless a script says otherwise.
	SimulatedWait = 2 * time.Second
)

// States of a record in an answer, and of one that is held.
const (
	StateCorrect  = "Correcto"
	StateFlawed   = "AceptadoConErrores"
	StateRefused  = "Incorrecto"
	StateAnnulled = "Anulado"              // of a held record
	StatePartial  = "ParcialmenteCorrecto" // of a call
)

// Tags by which the parts of a call are found again.
const (
	tagCall   = "sfLR:RegFactuSistemaFacturacion"
	tagHeader = "sfLR:Cabecera"
	TagRecord = "sfLR:RegistroFactura"
)

// Header is the Cabecera of a call.
type Header struct {
	Name, NIF string
	Agent     Agent
	Late      bool // Incidencia: something kept the records from being sent at once
}

// Agent is the Representante: an adviser who makes the records for the company.
// The zero value: there is none.
type Agent struct {
	Name string `json:"name,omitempty"`
	NIF  string `json:"nif,omitempty"`
}

func (h Header) write(w *xmltree.Writer) {
	w.Start(tagHeader)
	w.Start("sf:ObligadoEmision")
	w.Leaf("sf:NombreRazon", h.Name)
	w.Leaf("sf:NIF", h.NIF)
	w.End()
	if h.Agent.NIF != "" {
		w.Start("sf:Representante")
		w.Leaf("sf:NombreRazon", h.Agent.Name)
		w.Leaf("sf:NIF", h.Agent.NIF)
		w.End()
	}
	if h.Late {
		w.Start("sf:RemisionVoluntaria")
		w.Leaf("sf:Incidencia", "S")
		w.End()
	}
	w.End()
}

// WriteCall writes the element that a call carries. Records are bytes that were
// written before and never change.
func WriteCall(w *xmltree.Writer, h Header, records ...[]byte) {
	w.Start(tagCall, "xmlns:sfLR", SpaceCall, "xmlns:sf", SpaceInfo)
	h.write(w)
	for _, r := range records {
		w.Raw(r)
	}
	w.End()
}

// Report is a record's own document: the call that would carry it alone. The
// double makes it again from what it received, because its list of
// registrations names documents by the hash under which their sender keeps them.
func Report(h Header, record []byte) []byte {
	w := xmltree.NewWriter(len(record) + 1200)
	w.Lines = true
	w.Declare()
	WriteCall(w, h, record)
	return w.Bytes()
}

// Marks at the beginning of RefExterna, the sender's own reference in a record.
// They tell the two headers that a record's report can have apart: the header
// of the call that carries it speaks of all its records together.
const (
	MarkPrompt = "N/"
	MarkLate   = "I/"
)
