// Package soap frames messages in SOAP 1.1 and 1.2: envelopes and faults, read
// within limits and written byte for byte. It opens no connections and knows no
// service; WS-Security and attachments are not here.
//
// The law of [Read]: it answers an envelope with exactly one element in its
// body, or a fault as data, or an error. A page of a proxy, a truncated answer
// and an envelope of an unknown version are errors: nothing was said.
package soap

import (
	"errors"
	"fmt"
	"strings"

	"tributary/internal/xmltree"
)

// Version is one of the two versions of SOAP.
type Version int

// Versions of SOAP.
const (
	V11 Version = iota
	V12
)

// Namespaces of envelopes.
const (
	Space11 = "http://schemas.xmlsoap.org/soap/envelope/"
	Space12 = "http://www.w3.org/2003/05/soap-envelope"
)

// ErrEnvelope says that a well-formed document is no envelope.
var ErrEnvelope = errors.New("the document is no SOAP envelope")

// Space is the namespace of the version's envelopes.
func (v Version) Space() string {
	if v == V12 {
		return Space12
	}
	return Space11
}

// ContentType is that of a request with an action, or of an answer with none:
// SOAP 1.2 names the action here, SOAP 1.1 in the header SOAPAction.
func (v Version) ContentType(action string) string {
	switch {
	case v == V11:
		return "text/xml; charset=utf-8"
	case action == "":
		return "application/soap+xml; charset=utf-8"
	}
	return `application/soap+xml; charset=utf-8; action="` + action + `"`
}

// Envelope is a message, read.
type Envelope struct {
	Version  Version
	Document *xmltree.Document
	Header   *xmltree.Element // nil where there is none
	Content  *xmltree.Element // the only element of the body; nil when the body is empty
	Fault    *Fault           // nil unless Content is a fault
}

// Fault is a fault of either version.
type Fault struct {
	Code    string // the local name: Client, Server …, in SOAP 1.2 Sender, Receiver …
	Subcode string // SOAP 1.2, or what stands behind a dot in SOAP 1.1
	Reason  string
	Actor   string
	Detail  *xmltree.Element // nil where there is none
}

func (f *Fault) Error() string { return fmt.Sprintf("SOAP fault %s: %s", f.Code, f.Reason) }

// Read reads an envelope of either version. A fault is no error of Read.
func Read(source []byte, limits xmltree.Limits) (*Envelope, error) {
	doc, err := limits.Read(source)
	if err != nil {
		return nil, err
	}
	m := &Envelope{Document: doc}
	root := doc.Root
	switch {
	case root.Is(Space11, "Envelope"):
		m.Version = V11
	case root.Is(Space12, "Envelope"):
		m.Version = V12
	default:
		return nil, fmt.Errorf("%w: its root is {%s}%s", ErrEnvelope, root.Space, root.Local)
	}
	parts := root.Children
	if len(parts) > 0 && parts[0].Is(root.Space, "Header") {
		m.Header, parts = parts[0], parts[1:]
	}
	if len(parts) == 0 || !parts[0].Is(root.Space, "Body") {
		return nil, fmt.Errorf("%w: it has no body", ErrEnvelope)
	}
	// SOAP 1.1 lets other elements follow the body, SOAP 1.2 does not.
	if len(parts) > 1 && (m.Version == V12 || parts[1].Space == root.Space) {
		return nil, fmt.Errorf("%w: there is more than a header and a body", ErrEnvelope)
	}
	switch body := parts[0]; len(body.Children) {
	case 0:
	case 1:
		m.Content = body.Children[0]
	default:
		return nil, fmt.Errorf("%w: its body has several elements", ErrEnvelope)
	}
	if m.Content.Is(root.Space, "Fault") {
		m.Fault = readFault(m.Version, m.Content)
	}
	return m, nil
}

func readFault(v Version, e *xmltree.Element) *Fault {
	if v == V12 {
		f := &Fault{Code: local(e.Value("Code", "Value")), Subcode: local(e.Value("Code", "Subcode", "Value")),
			Reason: e.Value("Reason", "Text"), Actor: e.Value("Role"), Detail: e.At("Detail")}
		return f
	}
	f := &Fault{Reason: e.Value("faultstring"), Actor: e.Value("faultactor"), Detail: e.At("detail")}
	f.Code, f.Subcode, _ = strings.Cut(local(e.Value("faultcode")), ".")
	return f
}

func local(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// Message is an envelope to be written. Body writes the content.
type Message struct {
	Version Version
	Prefix  string   // of the envelope's namespace, "soapenv" when empty
	Spaces  []string // further attributes of the envelope in pairs, as a rule namespaces
	Header  func(*xmltree.Writer)
	Body    func(*xmltree.Writer)

	NoHeader bool // leave out the empty header
}

// WriteTo writes the envelope.
func (m Message) WriteTo(w *xmltree.Writer) {
	prefix := m.Prefix
	if prefix == "" {
		prefix = "soapenv"
	}
	w.Start(prefix+":Envelope", append([]string{"xmlns:" + prefix, m.Version.Space()}, m.Spaces...)...)
	switch {
	case m.Header != nil:
		w.Start(prefix + ":Header")
		m.Header(w)
		w.End()
	case !m.NoHeader:
		w.Leaf(prefix+":Header", "")
	}
	w.Start(prefix + ":Body")
	m.Body(w)
	w.End()
	w.End()
}

// Bytes is a whole document with the fault.
func (f *Fault) Bytes(v Version) []byte {
	w := xmltree.NewWriter(512)
	w.Declare()
	Message{Version: v, NoHeader: true, Body: func(w *xmltree.Writer) { f.write(w, v) }}.WriteTo(w)
	return w.Bytes()
}

func (f *Fault) write(w *xmltree.Writer, v Version) {
	w.Start("soapenv:Fault")
	if v == V12 {
		w.Start("soapenv:Code")
		w.Leaf("soapenv:Value", "soapenv:"+f.Code)
		w.End()
		w.Start("soapenv:Reason")
		w.Leaf("soapenv:Text", f.Reason, "xml:lang", "en")
		w.End()
		w.Maybe("soapenv:Role", f.Actor)
	} else {
		code := "soapenv:" + f.Code
		if f.Subcode != "" {
			code += "." + f.Subcode
		}
		w.Leaf("faultcode", code)
		w.Leaf("faultstring", f.Reason)
		w.Maybe("faultactor", f.Actor)
	}
	if f.Detail != nil {
		w.Element(f.Detail)
	}
	w.End()
}
