// Package sat is a strict double of Mexico's system of vouchers: two authorised
// providers (SOAP as Finkok publishes it, REST as SW does), and SAT behind them
// with its state service and its repository of certificates, all on one desk
// that keeps its book and plays scripts.
//
// It judges by SAT's own schemas and catalogues (official.CFDI), by rules
// written here from Anexo 20 (rules.go), and by an original string of its own
// (original.go). It knows nothing of the pack whose vouchers it judges; both
// stand on official/satwire.
//
// It stamps vouchers of income and expense (types I and E) without complements
// and receipts of payment (type P); payroll, transfers and foreign trade are
// refused openly.
//
// Of SAT's matrix of errors (2026-03-25) 40138 is a name that is on no list and
// 40139 one that is not the RFC's; the double knows names by their form alone and
// answers 40139 where one ends in a form of capital. The WSDL describes the
// arguments of calls one by one and results as any elements: the providers' own
// descriptions are not at hand to compare with.
package sat

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/identity"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// deniedUser ends the names of users whom the double turns away.
const deniedUser = "-DENIED"

// New returns providers and SAT on a desk, with a seal of their own.
func New(d *authority.Desk) http.Handler { return new(Seal).New(d) }

// New returns providers and SAT on a desk; all desks of one seal share its key.
func (s *Seal) New(d *authority.Desk) http.Handler {
	a := &double{desk: d, office: newOffice(), seal: s, sessions: map[string]time.Time{}}
	mux := http.NewServeMux()
	for _, s := range services() {
		mux.HandleFunc("GET "+s.path, s.describe)
	}
	mux.HandleFunc("POST "+satwire.PathSOAPStamp, a.soapStamp)
	mux.HandleFunc("POST "+satwire.PathSOAPCancel, a.soapCancel)
	mux.HandleFunc("POST "+satwire.PathSOAPList, a.soapList)
	mux.HandleFunc("POST "+satwire.PathRESTLogin, a.restLogin)
	mux.HandleFunc("POST "+satwire.PathRESTStamp, a.restStamp)
	mux.HandleFunc("POST "+satwire.PathRESTCancel, a.restCancel)
	mux.HandleFunc("POST "+satwire.PathState, a.consult)
	mux.HandleFunc("GET /rccf/{path...}", a.certificate)
	return mux
}

// double is both providers and SAT behind them, on one desk. Keys of the
// book: "certificate/" SAT's certificates, "csd/" those of suppliers, "cancel/"
// requests, "custom/" keys of senders, "other/" vouchers that a script gave to
// somebody else.
type double struct {
	desk   *authority.Desk
	office *office
	seal   *Seal

	mu       sync.Mutex
	sessions map[string]time.Time // tokens and when they end; a restart forgets them
}

// certificate serves SAT's repository.
func (a *double) certificate(w http.ResponseWriter, r *http.Request) {
	path := "/rccf/" + r.PathValue("path")
	number := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".cer")
	var text string
	if path == satwire.CertificatePath(number) {
		a.desk.Read(func(b *authority.Book) { text, _ = b.Get("certificate/" + number) })
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(der) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(der) // a caller that left will ask again
}

// readVoucher reads a document within the limits of a voucher.
func readVoucher(raw []byte) (*xmltree.Document, error) {
	return xmltree.Limits{Bytes: satwire.VoucherBytesMax, Depth: satwire.VoucherDepthMax}.Read(raw)
}

// receive reads a voucher and prepares its stamp, before the book is opened.
func (a *double) receive(raw []byte, custom string) (*arrival, error) {
	in := &arrival{raw: raw, custom: custom}
	doc, err := readVoucher(raw)
	if err != nil || !doc.Root.Is(satwire.SpaceCFDI, "Comprobante") || doc.Root.At("Emisor") == nil ||
		doc.Root.At("Receptor") == nil {
		in.no = refuse("301")
		return in, nil
	}
	v := doc.Root
	in.voucher, in.supply, in.number = v, v.At("Emisor").Attr("Rfc"), v.Attr("Serie")+v.Attr("Folio")
	now := time.Now()
	if in.no = a.office.examine(v, now); in.no.code != "" {
		return in, nil
	}
	if in.fresh, err = a.seal.stampFor(v, v.Attr("Sello"), a.office.central(now)); err != nil {
		return nil, err
	}
	_, in.leaf, err = a.seal.open()
	return in, err
}

// process takes a voucher through its turn; false when the caller has been
// answered already, or has left.
func (a *double) process(w http.ResponseWriter, r *http.Request, raw []byte,
	custom string) (in *arrival, got record, no refusal, ok bool) {
	in, err := a.receive(raw, custom)
	if err != nil {
		http.Error(w, "the stamp cannot be made", http.StatusInternalServerError)
		return nil, record{}, refusal{}, false
	}
	turn := a.desk.Turn(authority.Arrival{Supplier: in.supply, Number: in.number})
	if !turn.Begin(w, nil) {
		return nil, record{}, refusal{}, false
	}
	step := turn.Steps[0]
	if step.Outcome == authority.Duplicate && step.Of != authority.OfOurs && in.no.code == "" {
		sello := base64.StdEncoding.EncodeToString([]byte("another's voucher under the number of " + in.number))
		if in.other, err = a.seal.stampFor(in.voucher, sello, a.office.central(time.Now())); err != nil {
			http.Error(w, "the stamp cannot be made", http.StatusInternalServerError)
			return nil, record{}, refusal{}, false
		}
	}
	err = a.desk.Write(func(b *authority.Book) { got, no = registrar{b}.take(in, step) })
	if err != nil {
		http.Error(w, "the book cannot be written", http.StatusInternalServerError)
		return nil, record{}, refusal{}, false
	}
	return in, got, no, turn.End(w, r)
}

// withdraw takes a cancellation request through its turn.
func (a *double) withdraw(w http.ResponseWriter, r *http.Request, raw []byte) (req request, status string, ok bool) {
	req, leaf, err := readRequest(raw)
	now := a.office.central(time.Now())
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
	turn := a.desk.Turn(authority.Arrival{Supplier: req.rfc, Number: req.uuid})
	if !turn.Begin(w, nil) {
		return req, "", false
	}
	if status == "" {
		err := a.desk.Write(func(b *authority.Book) { status = registrar{b}.cancel(req, hashOf(raw), turn.Steps[0], now) })
		if err != nil {
			http.Error(w, "the book cannot be written", http.StatusInternalServerError)
			return req, "", false
		}
	}
	return req, status, turn.End(w, r)
}

// acknowledgement is SAT's Acuse.
func (a *double) acknowledgement(req request, status string) string {
	e := xmltree.New("Acuse", "xmlns", satwire.SpaceCancel, "Fecha",
		a.office.central(time.Now()).Format(satwire.LocalTime), "RfcEmisor", req.rfc)
	folios := e.Add(xmltree.New("Folios"))
	folios.Leaf("UUID", req.uuid)
	folios.Leaf("EstatusUUID", status)
	return string(e.AppendTo(nil))
}

// look answers a question about a voucher. Who asks must know its parties and total.
func (a *double) look(w http.ResponseWriter, r *http.Request, q url.Values) (state, bool) {
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return state{}, false
	}
	var said state
	err := a.desk.Write(func(b *authority.Book) {
		g := registrar{b}
		held, kept, ok := g.voucher(strings.ToUpper(q.Get("id")))
		if ok && (held.Supplier != q.Get("re") || kept.Receiver != q.Get("rr") ||
			millionths(kept.Total) != millionths(q.Get("tt"))) {
			said = state{code: "N - 601: La expresión impresa proporcionada no es válida.", voucher: satwire.VoucherUnknown}
			return
		}
		said = g.state(strings.ToUpper(q.Get("id")), time.Now(), a.desk.Decide)
	})
	if err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return state{}, false
	}
	return said, turn.End(w, r)
}

// allowed reports whether a user may call. Any name and password open the
// double, except names that end in -DENIED.
func allowed(user, password string) bool {
	return user != "" && password != "" && !strings.HasSuffix(user, deniedUser)
}
