package sat

import (
	"net/http"
	"strings"

	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// service is one SOAP service as its description shows it.
type service struct {
	path, name, space string
	operations        []operation
}

type operation struct {
	name, action string
	arguments    []string
}

// services are those that the double serves, with the arguments it reads.
func services() []service {
	user := []string{"username", "password"}
	return []service{
		{satwire.PathSOAPStamp, "StampSOAP", satwire.SpaceSOAPStamp, []operation{
			{"stamp", "stamp", append([]string{"xml"}, user...)},
			{"stamped", "stamped", append([]string{"xml"}, user...)},
		}},
		{satwire.PathSOAPCancel, "CancelSOAP", satwire.SpaceSOAPCancel, []operation{
			{"cancel_signature", "cancel_signature", append(append([]string{"xml"}, user...), "store_pending")},
			{"get_sat_status", "get_sat_status", append(user[:2:2], "taxpayer_id", "rtaxpayer_id", "uuid", "total")},
		}},
		{satwire.PathSOAPList, "UtilitiesSOAP", satwire.SpaceSOAPList, []operation{
			{"report_uuid", "report_uuid", append(user[:2:2], "taxpayer_id", "date_from", "date_to", "invoice_type")},
			{"get_xml", "get_xml", append(user[:2:2], "uuid", "taxpayer_id", "invoice_type")},
		}},
		{satwire.PathState, "ConsultaCFDIService", satwire.SpaceState,
			[]operation{{"Consulta", satwire.ActionState, []string{"expresionImpresa"}}}},
	}
}

// describe serves a description of the service in WSDL 1.1 for SOAP clients
// that make their calls from one. It is written here; results are any elements.
func (s service) describe(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.URL.RawQuery, "wsdl") {
		http.NotFound(w, r)
		return
	}
	out := xmltree.NewWriter(8 << 10)
	out.Lines = true
	out.Declare()
	out.Start("definitions", "xmlns", "http://schemas.xmlsoap.org/wsdl/", "xmlns:soap", "http://schemas.xmlsoap.org/wsdl/soap/",
		"xmlns:xs", "http://www.w3.org/2001/XMLSchema", "xmlns:tns", s.space, "targetNamespace", s.space, "name", s.name)
	out.Leaf("documentation", "A simulated service: it takes what the real one takes and keeps a book of its own.")
	s.types(out)
	for _, o := range s.operations {
		message(out, o.name)
		message(out, o.name+"Response")
	}
	s.bindings(out, addressOf(r))
	out.End()
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // a caller that left will ask again
}

// types is the schema of calls and answers.
func (s service) types(out *xmltree.Writer) {
	out.Start("types")
	out.Start("xs:schema", "targetNamespace", s.space, "elementFormDefault", "qualified")
	for _, o := range s.operations {
		sequence(out, o.name, func() {
			for _, argument := range o.arguments {
				out.Leaf("xs:element", "", "name", argument, "type", "xs:string", "minOccurs", "0")
			}
		})
		sequence(out, o.name+"Response", func() {
			sequence(out, o.name+"Result", func() {
				out.Leaf("xs:any", "", "namespace", "##any", "processContents", "lax", "minOccurs", "0", "maxOccurs", "unbounded")
			})
		})
	}
	out.End()
	out.End()
}

func sequence(out *xmltree.Writer, name string, content func()) {
	out.Start("xs:element", "name", name)
	out.Start("xs:complexType")
	out.Start("xs:sequence")
	content()
	out.End()
	out.End()
	out.End()
}

func message(out *xmltree.Writer, element string) {
	out.Start("message", "name", element)
	out.Leaf("part", "", "name", "parameters", "element", "tns:"+element)
	out.End()
}

// bindings are port type, binding and address.
func (s service) bindings(out *xmltree.Writer, address string) {
	out.Start("portType", "name", s.name)
	for _, o := range s.operations {
		out.Start("operation", "name", o.name)
		out.Leaf("input", "", "message", "tns:"+o.name)
		out.Leaf("output", "", "message", "tns:"+o.name+"Response")
		out.End()
	}
	out.End()
	out.Start("binding", "name", s.name, "type", "tns:"+s.name)
	out.Leaf("soap:binding", "", "style", "document", "transport", "http://schemas.xmlsoap.org/soap/http")
	for _, o := range s.operations {
		out.Start("operation", "name", o.name)
		out.Leaf("soap:operation", "", "soapAction", o.action)
		for _, way := range []string{"input", "output"} {
			out.Start(way)
			out.Leaf("soap:body", "", "use", "literal")
			out.End()
		}
		out.End()
	}
	out.End()
	out.Start("service", "name", s.name)
	out.Start("port", "name", s.name, "binding", "tns:"+s.name)
	out.Leaf("soap:address", "", "location", address)
	out.End()
	out.End()
}

// addressOf is where the client reached the service: the desk's frame cuts the
// country off the path, so it is taken from the request line.
func addressOf(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	at, _, _ := strings.Cut(r.RequestURI, "?")
	return scheme + r.Host + at
}
