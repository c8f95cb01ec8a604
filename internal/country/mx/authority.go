package mx

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
)

// deniedUser ends the names of users whom the simulated provider turns away.
const deniedUser = "-DENIED"

const sessionsMax = 10_000

// authority is both providers and SAT behind them, on one desk. Keys of the
// book: "certificate/" SAT's certificates, "csd/" those
// of suppliers, "cancel/" requests, "custom/" keys
// of senders, "other/" vouchers that a script gave to somebody else.
type authority struct {
	desk   *country.Desk
	office *office
	mint   *mint
	cat    *catalog

	mu       sync.Mutex
	sessions map[string]time.Time // tokens and when they end; a restart forgets them
}

func newAuthority(d *country.Desk, cat *catalog, m *mint) http.Handler {
	a := &authority{desk: d, office: &office{cat: cat, structure: newStructure(cat)}, mint: m, cat: cat, sessions: map[string]time.Time{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathSOAPStamp, a.soapStamp)
	mux.HandleFunc("POST "+pathSOAPCancel, a.soapCancel)
	mux.HandleFunc("POST "+pathSOAPList, a.soapList)
	mux.HandleFunc("POST "+pathRESTLogin, a.restLogin)
	mux.HandleFunc("POST "+pathRESTStamp, a.restStamp)
	mux.HandleFunc("POST "+pathRESTCancel, a.restCancel)
	mux.HandleFunc("POST "+pathState, a.consult)
	mux.HandleFunc("GET "+pathRecords+"{path...}", a.certificate)
	return mux
}

// certificate serves SAT's repository.
func (a *authority) certificate(w http.ResponseWriter, r *http.Request) {
	path := r.PathValue("path")
	number := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".cer")
	var text string
	if len(number) == 20 && pathRecords+path == recordPath(number) {
		a.desk.Read(func(b *country.Book) { text, _ = b.Get("certificate/" + number) })
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(der) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(der) // a caller that left will ask again
}

// receive reads a voucher and prepares its stamp, before the book is opened.
func (a *authority) receive(raw []byte, custom string) (*arrival, error) {
	in := &arrival{raw: raw, custom: custom}
	v, err := parse(raw)
	if err != nil || v.name != "cfdi:Comprobante" || v.kid("cfdi:Emisor") == nil || v.kid("cfdi:Receptor") == nil {
		in.no = refuse("301")
		return in, nil
	}
	in.voucher, in.supply, in.number = v, v.kid("cfdi:Emisor").attr("Rfc"), v.attr("Serie")+v.attr("Folio")
	now := time.Now()
	if in.no = a.office.examine(v, now); in.no.code != "" {
		return in, nil
	}
	if in.fresh, err = a.mint.stampFor(v, v.attr("Sello"), now.In(a.cat.zone("", nil))); err != nil {
		return nil, err
	}
	_, in.leaf, err = a.mint.open()
	return in, err
}

// process takes a voucher through its turn; false when the caller has been
// answered already, or has left.
func (a *authority) process(w http.ResponseWriter, r *http.Request, raw []byte, custom string) (in *arrival, got record, no refusal, ok bool) {
	in, err := a.receive(raw, custom)
	if err != nil {
		http.Error(w, "the stamp cannot be made", http.StatusInternalServerError)
		return nil, record{}, refusal{}, false
	}
	turn := a.desk.Turn(country.Arrival{Supplier: in.supply, Number: in.number})
	if !turn.Begin(w, nil) {
		return nil, record{}, refusal{}, false
	}
	step := turn.Steps[0]
	if step.Outcome == country.Duplicate && step.Of != country.OfOurs && in.no.code == "" {
		sello := base64.StdEncoding.EncodeToString([]byte("another's voucher under the number of " + in.number))
		if in.other, err = a.mint.stampFor(in.voucher, sello, time.Now().In(a.cat.zone("", nil))); err != nil {
			http.Error(w, "the stamp cannot be made", http.StatusInternalServerError)
			return nil, record{}, refusal{}, false
		}
	}
	err = a.desk.Write(func(b *country.Book) { got, no = registrar{b}.take(in, step) })
	if err != nil {
		http.Error(w, "the book cannot be written", http.StatusInternalServerError)
		return nil, record{}, refusal{}, false
	}
	return in, got, no, turn.End(w, r)
}

// withdraw takes a cancellation request through its turn.
func (a *authority) withdraw(w http.ResponseWriter, r *http.Request, raw []byte) (req request, status string, ok bool) {
	req, leaf, err := readRequest(raw)
	now := time.Now().In(a.cat.zone("", nil))
	switch {
	case err != nil && leaf == nil:
		status = "301"
	case err != nil:
		status = "302"
	case !identity.Names(leaf, "MX", req.rfc):
		status = "303"
	case now.After(leaf.NotAfter):
		status = "304"
	case now.Before(leaf.NotBefore):
		status = "305"
	}
	turn := a.desk.Turn(country.Arrival{Supplier: req.rfc, Number: req.uuid})
	if !turn.Begin(w, nil) {
		return req, "", false
	}
	if status == "" {
		err := a.desk.Write(func(b *country.Book) { status = registrar{b}.cancel(req, hashOf(raw), turn.Steps[0], now) })
		if err != nil {
			http.Error(w, "the book cannot be written", http.StatusInternalServerError)
			return req, "", false
		}
	}
	return req, status, turn.End(w, r)
}

// acknowledgement is SAT's Acuse.
func (a *authority) acknowledgement(req request, status string) string {
	n := element("Acuse", "xmlns", spaceCancel, "Fecha", time.Now().In(a.cat.zone("", nil)).Format(localTime), "RfcEmisor", req.rfc)
	folios := n.add(element("Folios"))
	folios.add(&node{name: "UUID", text: req.uuid})
	folios.add(&node{name: "EstatusUUID", text: status})
	return string(n.appendXML(nil))
}

// look answers a question about a voucher. Who asks must know its parties and total.
func (a *authority) look(w http.ResponseWriter, r *http.Request, q url.Values) (state, bool) {
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return state{}, false
	}
	var said state
	err := a.desk.Write(func(b *country.Book) {
		g := registrar{b}
		held, kept, ok := g.voucher(strings.ToUpper(q.Get("id")))
		if ok && (held.Supplier != q.Get("re") || kept.Receiver != q.Get("rr") || plain(kept.Total) != plain(q.Get("tt"))) {
			said = state{code: "N - 601: La expresión impresa proporcionada no es válida.", voucher: voucherUnknown}
			return
		}
		said, _ = g.state(strings.ToUpper(q.Get("id")), time.Now(), a.desk.Decide)
	})
	if err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return state{}, false
	}
	return said, turn.End(w, r)
}

// allowed reports whether a user may call. Any name and password open the
// simulator, except names that end in -DENIED.
func allowed(user, password string) bool {
	return user != "" && password != "" && !strings.HasSuffix(user, deniedUser)
}

func (a *authority) open() (text string, until time.Time) {
	raw := make([]byte, 32)
	rand.Read(raw) //nolint:errcheck // never fails: the runtime ends the program instead
	text, until = hex.EncodeToString(raw), time.Now().Add(tokenLifetime)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions) >= sessionsMax {
		clear(a.sessions)
	}
	a.sessions[text] = until
	return text, until
}

func (a *authority) inSession(r *http.Request) bool {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	defer a.mu.Unlock()
	until, known := a.sessions[text]
	return ok && known && time.Now().Before(until)
}

// The REST provider.

func (a *authority) restLogin(w http.ResponseWriter, r *http.Request) {
	var in struct {
		User     string `json:"user"`
		Password string `json:"password"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in) != nil || !allowed(in.User, in.Password) {
		respond(w, http.StatusUnauthorized, map[string]any{"message": "AU2000 - El usuario y/o contraseña son inválidos, no se puede autenticar el servicio.", "messageDetail": "", "data": nil, "status": "error"})
		return
	}
	text, until := a.open()
	respond(w, http.StatusOK, map[string]any{"data": map[string]any{"token": text, "expires_in": until.Unix(), "tokeny_type": "Bearer"}, "status": "success"})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a caller that left is nobody to tell
}

// uploaded reads the form of a call in a session; false when it was refused.
func (a *authority) uploaded(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if !a.inSession(r) {
		respond(w, http.StatusUnauthorized, map[string]any{"message": "El token debe contener 3 partes", "messageDetail": "", "data": nil, "status": "error"})
		return nil, false
	}
	r.Body = http.MaxBytesReader(w, r.Body, xmlBytesMax+1<<16)
	file, _, err := r.FormFile("xml")
	if err != nil {
		respond(w, http.StatusBadRequest, map[string]any{"message": "CFDI40999 - Xml CFDI no proporcionado o viene vacio.", "messageDetail": "", "data": nil, "status": "error"})
		return nil, false
	}
	defer file.Close()
	defer r.MultipartForm.RemoveAll() //nolint:errcheck // temporary files of a test double
	raw, err := io.ReadAll(file)
	return raw, err == nil
}

func (a *authority) restStamp(w http.ResponseWriter, r *http.Request) {
	raw, ok := a.uploaded(w, r)
	if !ok {
		return
	}
	in, got, no, ok := a.process(w, r, raw, r.Header.Get("Customid"))
	if !ok {
		return
	}
	body := map[string]any{"status": "success", "data": nil}
	if got.Sello != "" {
		copied := got.stampedCopy(in.voucher)
		body["data"] = restStamp{Chain: string(originalOfStamp(got.stamp())), NumberSAT: got.NumberSAT, Number: in.voucher.attr("NoCertificado"),
			UUID: folioOf(got.Sello), SealSAT: got.Seal, Seal: got.Sello, StampedAt: got.At, CFDI: string(copied)}
	}
	if no.code == "" {
		respond(w, http.StatusOK, body)
		return
	}
	body["status"], body["message"], body["messageDetail"] = "error", no.code+" - "+no.message, nil
	if no.code == codeStampedBefore {
		body["message"] = no.code + ". " + no.message
	}
	respond(w, http.StatusBadRequest, body)
}

func (a *authority) restCancel(w http.ResponseWriter, r *http.Request) {
	raw, ok := a.uploaded(w, r)
	if !ok {
		return
	}
	req, status, ok := a.withdraw(w, r, raw)
	if !ok {
		return
	}
	if status[0] == '3' {
		respond(w, http.StatusBadRequest, map[string]any{"message": status + " - " + meaningOf(status), "messageDetail": nil, "data": nil, "status": "error"})
		return
	}
	respond(w, http.StatusOK, map[string]any{"status": "success",
		"data": restCancel{Receipt: a.acknowledgement(req, status), UUIDs: map[string]string{req.uuid: status}}})
}
