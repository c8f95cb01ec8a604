package mx

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/country"
)

// method reads a SOAP call; nil when it has been answered with a fault.
func method(w http.ResponseWriter, r *http.Request, known ...string) *node {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*xmlBytesMax))
	if err == nil {
		if root, err := parse(raw); err == nil && root.name == "{"+spaceSOAP+"}Envelope" {
			if body := root.named("Body"); body != nil && len(body.kids) == 1 {
				for _, name := range known {
					if local(body.kids[0].name) == name {
						return body.kids[0]
					}
				}
			}
		}
	}
	fault := element("senv:Fault")
	fault.add(&node{name: "faultcode", text: "senv:Client"})
	fault.add(&node{name: "faultstring", text: "the call is not one of this service"})
	soapReply(w, http.StatusInternalServerError, "", fault)
	return nil
}

func soapReply(w http.ResponseWriter, status int, space string, body *node) {
	e := element("senv:Envelope", "xmlns:senv", spaceSOAP, "xmlns:s0", spaceSOAPViews)
	e.set("xmlns:tns", space)
	e.add(element("senv:Body")).add(body)
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(document(e)) // a caller that left will ask again
}

// wrapped is the answer of a method, with its members.
func wrapped(name string, members ...attr) (answer, result *node) {
	answer = element("tns:" + name + "Response")
	result = answer.add(element("tns:" + name + "Result"))
	for _, m := range members {
		result.add(&node{name: "s0:" + m.name, text: m.value})
	}
	return answer, result
}

func incident(result *node, no refusal) {
	n := result.add(element("s0:Incidencias")).add(element("s0:Incidencia"))
	for _, m := range []attr{{"CodigoError", no.code}, {"MensajeIncidencia", no.message}, {"FechaRegistro", time.Now().UTC().Format(localTime)}} {
		n.add(&node{name: "s0:" + m.name, text: m.value})
	}
}

// soapStamp serves stamp and stamped.
func (a *authority) soapStamp(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, "stamp", "stamped")
	if in == nil {
		return
	}
	name := local(in.name)
	if !allowed(in.member("username"), in.member("password")) {
		out, result := wrapped(name, attr{"xml", ""})
		incident(result, refusal{codeNoAccess, "El usuario o contraseña son inválidos"})
		soapReply(w, http.StatusOK, spaceSOAPStamp, out)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.member("xml")), ""))
	if err != nil {
		raw = nil
	}
	if name == "stamped" {
		a.soapStamped(w, r, raw)
		return
	}
	arrived, got, no, ok := a.process(w, r, raw, "")
	if !ok {
		return
	}
	soapReply(w, http.StatusOK, spaceSOAPStamp, stampAnswer("stamp", arrived.voucher, got, no))
}

func stampAnswer(name string, voucher *node, got record, no refusal) *node {
	if got.Sello == "" {
		out, result := wrapped(name, attr{"xml", ""})
		incident(result, no)
		return out
	}
	status := "Comprobante timbrado satisfactoriamente"
	if no.code != "" {
		status = "Comprobante timbrado previamente"
	}
	out, result := wrapped(name, attr{"xml", string(got.stampedCopy(voucher))}, attr{"UUID", folioOf(got.Sello)}, attr{"Fecha", got.At},
		attr{"CodEstatus", status}, attr{"SatSeal", got.Seal}, attr{"NoCertificadoSAT", got.NumberSAT})
	if no.code != "" {
		incident(result, no)
	}
	return out
}

// soapStamped answers the stamp of a voucher that was stamped before.
func (a *authority) soapStamped(w http.ResponseWriter, r *http.Request, raw []byte) {
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	voucher, err := parse(raw)
	var got record
	no := refuse(codeNotStamped)
	if err == nil && voucher.attr("Sello") != "" {
		err = a.desk.Write(func(b *country.Book) {
			if _, r, ok := (registrar{b}).voucher(folioOf(voucher.attr("Sello"))); ok {
				got, no = r, refusal{}
			} else if sello, ok := b.Get("other/" + folioOf(voucher.attr("Sello"))); ok {
				_, got, _ = registrar{b}.voucher(folioOf(sello))
				no = refusal{}
			}
		})
		if err != nil {
			http.Error(w, "the book cannot be read", http.StatusInternalServerError)
			return
		}
	}
	if turn.End(w, r) {
		soapReply(w, http.StatusOK, spaceSOAPStamp, stampAnswer("stamped", voucher, got, no))
	}
}

// soapCancel serves cancel_signature and get_sat_status.
func (a *authority) soapCancel(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, "cancel_signature", "get_sat_status")
	if in == nil {
		return
	}
	name := local(in.name)
	if !allowed(in.member("username"), in.member("password")) {
		out, _ := wrapped(name, attr{"CodEstatus", codeNoAccess + " El usuario o contraseña son inválidos"}, attr{"error", "El usuario o contraseña son inválidos"})
		soapReply(w, http.StatusOK, spaceSOAPCancel, out)
		return
	}
	if name == "get_sat_status" {
		a.soapState(w, r, in)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.member("xml")), ""))
	if err != nil {
		raw = nil
	}
	req, status, ok := a.withdraw(w, r, raw)
	if !ok {
		return
	}
	out, result := wrapped(name, attr{"Acuse", a.acknowledgement(req, status)}, attr{"Fecha", time.Now().Format(localTime)}, attr{"RfcEmisor", req.rfc})
	if status[0] == '3' {
		result.add(&node{name: "s0:CodEstatus", text: status + " " + meaningOf(status)})
	} else {
		folio := result.add(element("s0:Folios")).add(element("s0:Folio"))
		for _, m := range []attr{{"UUID", req.uuid}, {"EstatusUUID", status}, {"EstatusCancelacion", ""}} {
			folio.add(&node{name: "s0:" + m.name, text: m.value})
		}
	}
	soapReply(w, http.StatusOK, spaceSOAPCancel, out)
}

func (a *authority) soapState(w http.ResponseWriter, r *http.Request, in *node) {
	said, ok := a.look(w, r, url.Values{"id": {in.member("uuid")}, "re": {in.member("taxpayer_id")}, "rr": {in.member("rtaxpayer_id")}, "tt": {in.member("total")}})
	if !ok {
		return
	}
	out, result := wrapped("get_sat_status")
	sat := result.add(element("s0:sat"))
	for _, m := range said.members() {
		sat.add(&node{name: "s0:" + m.name, text: m.value})
	}
	soapReply(w, http.StatusOK, spaceSOAPCancel, out)
}

func (s state) members() []attr {
	return []attr{{"CodigoEstatus", s.code}, {"EsCancelable", s.cancelable}, {"Estado", s.voucher}, {"EstatusCancelacion", s.cancelling}}
}

// consult serves SAT's public service, which REST providers leave to the caller.
func (a *authority) consult(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, "Consulta")
	if in == nil {
		return
	}
	said, ok := a.look(w, r, expression(in.member("expresionImpresa")))
	if !ok {
		return
	}
	out := element("tns:ConsultaResponse")
	result := out.add(element("tns:ConsultaResult"))
	for _, m := range said.members() {
		result.add(&node{name: "s0:" + m.name, text: m.value})
	}
	soapReply(w, http.StatusOK, spaceState, out)
}

// expression reads the printed expression: "?id=…&re=…&rr=…&tt=…&fe=…". An RFC
// may hold an ampersand, so the parts are found by their names.
func expression(text string) url.Values {
	text = "&" + strings.TrimPrefix(text, "?")
	names, q := []string{"id", "re", "rr", "tt", "fe"}, url.Values{}
	for _, name := range names {
		_, rest, found := strings.Cut(text, "&"+name+"=")
		if !found {
			continue
		}
		end := len(rest)
		for _, next := range names {
			if i := strings.Index(rest, "&"+next+"="); i >= 0 && i < end {
				end = i
			}
		}
		q.Set(name, rest[:end])
	}
	return q
}
