package sdi

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"tributary/internal/authority"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// arrival is a file that came, read and judged by itself.
type arrival struct {
	name    string
	file    []byte
	sha256  string
	channel string
	invoice *invoice // nil where its form is wrong
	flaws   []flaw
}

// called is who calls, by its certificate, and the body. Without who the call is answered.
func called(w http.ResponseWriter, r *http.Request, bytesMax int64) (who *x509.Certificate, body []byte) {
	who, err := authority.ClientCertificate(r)
	if err != nil || who == nil {
		http.Error(w, "a client certificate is needed", http.StatusForbidden) // SdI ends the handshake
		return nil, nil
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, bytesMax))
	if err != nil {
		http.Error(w, "the call is too large or broke off", http.StatusRequestEntityTooLarge)
		return nil, nil
	}
	return who, body
}

// receive serves RiceviFile.
func (a *double) receive(w http.ResponseWriter, r *http.Request) {
	who, body := called(w, r, bodyBytesMax)
	if who == nil {
		return
	}
	in, reason := readCall(r, body)
	if reason != "" {
		failed(w, reason)
		return
	}
	in.channel = who.Subject.CommonName
	if a.now().After(who.NotAfter) || a.disabled(r, in.channel) {
		a.answer(w, 0, sdiwire.NotEnabled)
		return
	}
	if len(in.file) == 0 {
		a.answer(w, 0, sdiwire.FileEmpty)
		return
	}
	a.judge(&in)
	turn := a.desk.Turn(in.arrivals()...)
	if !turn.Begin(w, func(w http.ResponseWriter) { a.answer(w, 0, sdiwire.Unavailable) }) {
		return
	}
	var id int64
	var queued []notice
	err := a.desk.Write(func(b *authority.Book) {
		reg := registrar{book: b, in: &in, at: a.now()}
		id = reg.take(turn.Steps)
		queued = queue(b, reg.notices...)
	})
	if err != nil {
		failed(w, "the book cannot be written")
		return
	}
	a.tell(queued)
	if turn.End(w, r) {
		a.answer(w, id, "")
	}
}

// readCall reads the call; a reason is why it is answered with a fault.
func readCall(r *http.Request, body []byte) (in arrival, reason string) {
	if action := strings.Trim(r.Header.Get("SOAPAction"), `"`); action != sdiwire.ActionFile {
		return in, "the operation " + action + " is not known"
	}
	packed, err := sdiwire.Open(r.Header.Get("Content-Type"), body)
	if err != nil {
		return in, err.Error()
	}
	call, err := soap.Read(packed.Envelope, xmltree.Limits{})
	switch {
	case err != nil:
		return in, err.Error()
	case call.Version != soap.V11 || !call.Content.Is(sdiwire.SpaceTypes, sdiwire.ElementFile):
		return in, "the body is no " + sdiwire.ElementFile
	}
	// The types have no elementFormDefault: children stand in no namespace.
	parts := call.Content.Children
	if len(parts) != 2 || !parts[0].Is("", "NomeFile") || !parts[1].Is("", "File") {
		return in, "NomeFile and File are expected, without a namespace"
	}
	if in.name = call.Content.Value("NomeFile"); !sdiwire.Callable(in.name) {
		return in, "Internal Error"
	}
	if in.file, err = packed.File(parts[1]); err != nil {
		return in, err.Error()
	}
	in.sha256 = hashOf(in.file)
	return in, ""
}

func hashOf(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// disabled reports whether a channel may not send, and keeps the address that it names.
func (a *double) disabled(r *http.Request, name string) bool {
	var c channel
	a.desk.Read(func(b *authority.Book) { b.Load(channelKey(name), &c) })
	if to := r.Header.Get(sdiwire.HeaderCallback); to != "" && to != c.Callback {
		c.Callback = to
		_ = a.desk.Write(func(b *authority.Book) { b.Keep(channelKey(name), c) }) // a broken book fails the call below
	}
	return c.Disabled
}

// judge examines a file by itself, in SdI's order.
func (a *double) judge(in *arrival) {
	_, named := sdiwire.ParseName(in.name)
	switch {
	case !named:
		in.flaws = []flaw{flawf(sdiwire.NameWrong, "%s", in.name)}
	case len(in.file) > sdiwire.FileBytesMax:
		in.flaws = []flaw{flawf(sdiwire.TooLarge, "%d byte", len(in.file))}
	default:
		in.invoice, in.flaws = read(in.file)
	}
	if in.invoice == nil {
		return
	}
	// A signature is looked for, not verified: that needs the list of qualified CAs.
	if in.invoice.format == sdiwire.Public && in.invoice.root.Find(sdiwire.SpaceSignature, "Signature") == nil {
		in.flaws = append(in.flaws, flawf(sdiwire.NotSigned, "la fattura verso la PA non è firmata"))
		return
	}
	in.flaws = append(in.flaws, in.invoice.examine(a.now())...)
}

// arrivals names the invoices of the file, for scripts.
func (in *arrival) arrivals() (all []authority.Arrival) {
	if in.invoice == nil {
		return []authority.Arrival{{Supplier: in.channel, Number: in.name}}
	}
	for _, b := range in.invoice.bodies {
		all = append(all, authority.Arrival{Supplier: in.invoice.issuer(b), Number: b.number})
	}
	return all
}

// failed answers a fault, as Axis2 does in front of SdI.
func failed(w http.ResponseWriter, reason string) {
	w.Header().Set("Content-Type", soap.V11.ContentType(""))
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write((&soap.Fault{Code: "Server", Reason: reason}).Bytes(soap.V11)) // a caller that left asks again
}

// answer answers RiceviFile: plainly, and every second time as SdI likes to, in
// a body of parts.
func (a *double) answer(w http.ResponseWriter, id int64, code string) {
	out := xmltree.NewWriter(1024)
	out.Declare()
	soap.Message{Version: soap.V11, NoHeader: true, Body: func(out *xmltree.Writer) {
		out.Start("ns2:"+sdiwire.ElementAnswer, "xmlns:ns2", sdiwire.SpaceTypes)
		out.Leaf("IdentificativoSdI", itoa(id))
		out.Leaf("DataOraRicezione", a.now().In(rome()).Format(instant))
		out.Maybe("Errore", code)
		out.End()
	}}.WriteTo(out)
	kind, text := soap.V11.ContentType(""), out.Bytes()
	if id%2 == 1 {
		kind, text = sdiwire.Pack(text, nil, "text/xml")
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text) // a caller that left asks again
}
