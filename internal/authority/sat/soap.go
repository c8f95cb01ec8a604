package sat

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

const wrongUser = "El usuario o contraseña son inválidos"

// member is one element of an answer with its text.
type member struct{ name, value string }

// method reads a SOAP call of a service; nil when it has been answered with a fault.
func method(w http.ResponseWriter, r *http.Request, space string, known ...string) *xmltree.Element {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*satwire.VoucherBytesMax))
	if err == nil {
		m, err := soap.Read(raw, xmltree.Limits{Bytes: 2 * satwire.VoucherBytesMax, Depth: satwire.VoucherDepthMax})
		if err == nil && m.Version == soap.V11 {
			for _, name := range known {
				if m.Content.Is(space, name) {
					return m.Content
				}
			}
		}
	}
	w.Header().Set("Content-Type", soap.V11.ContentType(""))
	w.WriteHeader(http.StatusInternalServerError) // SOAP 1.1, section 6.2
	_, _ = w.Write((&soap.Fault{Code: "Client", Reason: "the call is not one of this service"}).Bytes(soap.V11))
	return nil
}

// reply writes the answer to a method: its result with whatever fill adds.
func reply(w http.ResponseWriter, space, name string, fill func(result *xmltree.Element)) {
	body := xmltree.New("tns:" + name + "Response")
	fill(body.Add(xmltree.New("tns:" + name + "Result")))
	out := xmltree.NewWriter(4 << 10)
	out.Declare()
	soap.Message{Version: soap.V11, Prefix: "senv", NoHeader: true,
		Spaces: []string{"xmlns:s0", satwire.SpaceSOAPViews, "xmlns:tns", space},
		Body:   func(w *xmltree.Writer) { w.Element(body) }}.WriteTo(out)
	w.Header().Set("Content-Type", soap.V11.ContentType(""))
	_, _ = w.Write(out.Bytes()) // a caller that left will ask again
}

// put adds members, empty ones too: these services leave none out.
func put(into *xmltree.Element, members ...member) {
	for _, m := range members {
		leaf := xmltree.New("s0:" + m.name)
		leaf.Text = m.value
		into.Add(leaf)
	}
}

func incident(result *xmltree.Element, no refusal) {
	put(result.Add(xmltree.New("s0:Incidencias")).Add(xmltree.New("s0:Incidencia")), member{"CodigoError", no.code},
		member{"MensajeIncidencia", no.message}, member{"FechaRegistro", time.Now().UTC().Format(satwire.LocalTime)})
}

// decoded is the document that a call carries; nothing where it is no base64.
func decoded(in *xmltree.Element) []byte {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.Value("xml")), ""))
	if err != nil {
		return nil
	}
	return raw
}

// soapStamp serves stamp and stamped.
func (a *double) soapStamp(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, satwire.SpaceSOAPStamp, "stamp", "stamped")
	if in == nil {
		return
	}
	if !allowed(in.Value("username"), in.Value("password")) {
		reply(w, satwire.SpaceSOAPStamp, in.Local, func(result *xmltree.Element) {
			put(result, member{"xml", ""})
			incident(result, refusal{satwire.CodeNoAccess, wrongUser})
		})
		return
	}
	if in.Local == "stamped" {
		a.soapStamped(w, r, decoded(in))
		return
	}
	arrived, got, no, ok := a.process(w, r, decoded(in), "")
	if ok {
		replyStamp(w, "stamp", verdict{arrived.voucher, got, no})
	}
}

// verdict is a voucher with the stamp it has, if any, and the reason why it got
// no new one.
type verdict struct {
	voucher *xmltree.Element
	got     record
	no      refusal
}

func replyStamp(w http.ResponseWriter, name string, said verdict) {
	got, no := said.got, said.no
	reply(w, satwire.SpaceSOAPStamp, name, func(result *xmltree.Element) {
		if got.Sello == "" {
			put(result, member{"xml", ""})
			incident(result, no)
			return
		}
		status := "Comprobante timbrado satisfactoriamente"
		if no.code != "" {
			status = "Comprobante timbrado previamente"
		}
		put(result, member{"xml", string(got.stampedCopy(said.voucher))}, member{"UUID", folioOf(got.Sello)},
			member{"Fecha", got.At},
			member{"CodEstatus", status}, member{"SatSeal", got.Seal}, member{"NoCertificadoSAT", got.NumberSAT})
		if no.code != "" {
			incident(result, no)
		}
	})
}

// soapStamped answers the stamp of a voucher that was stamped before.
func (a *double) soapStamped(w http.ResponseWriter, r *http.Request, raw []byte) {
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	var voucher *xmltree.Element
	var got record
	no := refuse(satwire.CodeNotStamped)
	if doc, err := readVoucher(raw); err == nil && doc.Root.Is(satwire.SpaceCFDI, "Comprobante") &&
		doc.Root.Attr("Sello") != "" {
		voucher = doc.Root
		folio := folioOf(voucher.Attr("Sello"))
		err := a.desk.Write(func(b *authority.Book) {
			if _, r, ok := (registrar{b}).voucher(folio); ok {
				got, no = r, refusal{}
			} else if sello, ok := b.Get("other/" + folio); ok {
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
		replyStamp(w, "stamped", verdict{voucher, got, no})
	}
}

// soapCancel serves cancel_signature and get_sat_status.
func (a *double) soapCancel(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, satwire.SpaceSOAPCancel, "cancel_signature", "get_sat_status")
	if in == nil {
		return
	}
	if !allowed(in.Value("username"), in.Value("password")) {
		reply(w, satwire.SpaceSOAPCancel, in.Local, func(result *xmltree.Element) {
			put(result, member{"CodEstatus", satwire.CodeNoAccess + " " + wrongUser}, member{"error", wrongUser})
		})
		return
	}
	if in.Local == "get_sat_status" {
		said, ok := a.look(w, r, url.Values{"id": {in.Value("uuid")}, "re": {in.Value("taxpayer_id")},
			"rr": {in.Value("rtaxpayer_id")}, "tt": {in.Value("total")}})
		if ok {
			reply(w, satwire.SpaceSOAPCancel, in.Local, func(result *xmltree.Element) {
				put(result.Add(xmltree.New("s0:sat")), said.members()...)
			})
		}
		return
	}
	req, status, ok := a.withdraw(w, r, decoded(in))
	if !ok {
		return
	}
	reply(w, satwire.SpaceSOAPCancel, in.Local, func(result *xmltree.Element) {
		put(result, member{"Acuse", a.acknowledgement(req, status)}, member{"Fecha", time.Now().Format(satwire.LocalTime)},
			member{"RfcEmisor", req.rfc})
		if status[0] == '3' {
			put(result, member{"CodEstatus", status + " " + satwire.CancelMeaning(status)})
			return
		}
		put(result.Add(xmltree.New("s0:Folios")).Add(xmltree.New("s0:Folio")),
			member{"UUID", req.uuid}, member{"EstatusUUID", status}, member{"EstatusCancelacion", ""})
	})
}

func (s state) members() []member {
	return []member{{"CodigoEstatus", s.code}, {"EsCancelable", s.cancelable}, {"Estado", s.voucher},
		{"EstatusCancelacion", s.cancelling}}
}

// consult serves SAT's public service, which REST providers leave to the caller.
func (a *double) consult(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, satwire.SpaceState, "Consulta")
	if in == nil {
		return
	}
	if said, ok := a.look(w, r, expression(in.Value("expresionImpresa"))); ok {
		reply(w, satwire.SpaceState, in.Local, func(result *xmltree.Element) { put(result, said.members()...) })
	}
}

// expression reads the printed expression: "?id=…&re=…&rr=…&tt=…&fe=…". An
// ampersand that belongs to an RFC is written as in XML; a plain one separates.
func expression(text string) url.Values {
	const held = "\x00"
	q := url.Values{}
	for part := range strings.SplitSeq(strings.ReplaceAll(strings.TrimPrefix(text, "?"), "&amp;", held), "&") {
		name, value, _ := strings.Cut(part, "=")
		q.Set(name, strings.ReplaceAll(value, held, "&"))
	}
	return q
}

// soapList serves report_uuid and get_xml.
func (a *double) soapList(w http.ResponseWriter, r *http.Request) {
	in := method(w, r, satwire.SpaceSOAPList, "report_uuid", "get_xml")
	if in == nil {
		return
	}
	if !allowed(in.Value("username"), in.Value("password")) {
		reply(w, satwire.SpaceSOAPList, in.Local, func(result *xmltree.Element) { put(result, member{"error", wrongUser}) })
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	fill := func(result *xmltree.Element) {
		put(result, member{"xml", string(a.copyOf(in.Value("taxpayer_id"), in.Value("uuid")))})
	}
	if in.Local == "report_uuid" {
		fill = func(result *xmltree.Element) {
			if err := a.report(in, result.Add(xmltree.New("s0:invoices"))); err != nil {
				put(result, member{"error", err.Error()})
			}
		}
	}
	if turn.End(w, r) {
		reply(w, satwire.SpaceSOAPList, in.Local, fill)
	}
}

// report lists the vouchers of a taxpayer that were stamped in a span of time.
func (a *double) report(in, into *xmltree.Element) error {
	zone := a.office.central(time.Now()).Location()
	from, err := time.ParseInLocation(satwire.LocalTime, in.Value("date_from"), zone)
	if err != nil {
		return fmt.Errorf("reading date_from: %w", err)
	}
	to, err := time.ParseInLocation(satwire.LocalTime, in.Value("date_to"), zone)
	if err != nil {
		return fmt.Errorf("reading date_to: %w", err)
	}
	all, err := a.desk.Registrations()
	if err != nil {
		return err
	}
	for _, held := range all {
		if held.Supplier != in.Value("taxpayer_id") || !strings.HasPrefix(held.Key, "U/") || held.At.Before(from) ||
			held.At.After(to) {
			continue
		}
		put(into.Add(xmltree.New("s0:ReportUUID")), member{"date", held.At.In(zone).Format(satwire.LocalTime)},
			member{"uuid", held.AuthorityID})
	}
	return nil
}

// copyOf is the stamped voucher with a UUID; empty where the taxpayer has none.
func (a *double) copyOf(rfc, uuid string) []byte {
	var kept record
	var certificate string
	a.desk.Read(func(b *authority.Book) {
		if held, r, ok := (registrar{b}).voucher(strings.ToUpper(uuid)); ok && held.Supplier == rfc {
			kept = r
			certificate, _ = b.Get("csd/" + r.NumberCSD)
		}
	})
	if kept.XML == "" {
		return nil
	}
	v, err := unpacked(kept.XML, certificate)
	if err != nil {
		return nil
	}
	return kept.stampedCopy(v)
}
