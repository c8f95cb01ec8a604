package sat

import (
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/authority"
	"tributary/internal/official/satwire"
	"tributary/internal/xmltree"
)

// registrar decides with the book open.
type registrar struct{ book *authority.Book }

func (g registrar) voucher(folio string) (authority.Registration, record, bool) {
	held, ok := g.book.FindKey("U/" + folio)
	if !ok {
		return held, record{}, false
	}
	var r record
	authority.ReadNote(held.Note, &r)
	return held, r, true
}

// arrival is a voucher that came in.
type arrival struct {
	voucher *xmltree.Element
	raw     []byte
	supply  string // RFC
	number  string // Serie and Folio
	custom  string // the sender's key, REST only
	no      refusal
	fresh   record // the stamp it gets if it is new
	other   record // the stamp of another's voucher, for scripts
	leaf    *x509.Certificate
}

// take decides about a voucher: is it here already, may it be stamped, what
// does the script want. It answers the stamp, and a code where it is not new.
func (g registrar) take(a *arrival, step authority.Step) (record, refusal) {
	switch a.no.code {
	case "", "304", "305", "401": // what was stamped in time may be shown again late
	default:
		return record{}, a.no
	}
	folio := folioOf(a.voucher.Attr("Sello"))
	if _, r, ok := g.voucher(folio); ok {
		return r, refuse(satwire.CodeStampedBefore)
	}
	if sello, ok := g.book.Get("other/" + folio); ok {
		_, r, _ := g.voucher(folioOf(sello))
		return r, refuse(satwire.CodeStampedBefore)
	}
	custom := "custom/" + a.supply + "/" + a.custom
	if of, ok := g.book.Get(custom); ok && a.custom != "" {
		_, r, _ := g.voucher(of)
		return r, refuse(satwire.CodeCustomUsed)
	}
	switch {
	case a.no.code != "":
		return record{}, a.no
	case step.Outcome == authority.Reject:
		return record{}, refuse("CFDI40145")
	case step.Outcome == authority.Duplicate && step.Of != authority.OfOurs:
		g.book.Put("other/"+folio, a.other.Sello)
		g.register(a, a.other, hashOf(append([]byte("another's voucher\n"), a.raw...)))
		return a.other, refuse(satwire.CodeStampedBefore)
	}
	g.register(a, a.fresh, hashOf(a.raw))
	if a.custom != "" {
		g.book.Put(custom, folio)
	}
	if step.Outcome == authority.Duplicate {
		return a.fresh, refuse(satwire.CodeStampedBefore)
	}
	return a.fresh, refusal{}
}

func (g registrar) register(a *arrival, r record, hash string) {
	folio := folioOf(r.Sello)
	if _, published := g.book.Get("certificate/" + r.NumberSAT); !published {
		g.book.Put("certificate/"+r.NumberSAT, base64.StdEncoding.EncodeToString(a.leaf.Raw))
	}
	if _, known := g.book.Get("csd/" + r.NumberCSD); !known {
		g.book.Put("csd/"+r.NumberCSD, a.voucher.Attr("Certificado"))
	}
	for _, of := range r.Refers {
		earlier, _ := g.book.Get("refers/" + of)
		g.book.Put("refers/"+of, strings.TrimSpace(earlier+" "+folio))
	}
	g.book.Register(authority.Registration{Supplier: a.supply, Number: a.number, SHA256: hash, AuthorityID: folio,
		Key: "U/" + folio, Note: authority.Note(r)})
}

// wish is a cancellation that was asked for.
type wish struct {
	State    string    `json:"state"` // waiting, refused, done
	Supplier string    `json:"supplier"`
	SHA256   string    `json:"sha256"`
	Due      time.Time `json:"due"`
	Accepted bool      `json:"accepted,omitempty"` // by the receiver
}

func (g registrar) wishFor(folio string) (wish, bool) {
	var w wish
	known := g.book.Load("cancel/"+folio, &w)
	return w, known
}

func (g registrar) keep(folio string, w wish) {
	g.book.Keep("cancel/"+folio, w)
	if w.State == "done" {
		g.book.Register(authority.Registration{Supplier: w.Supplier, Number: folio, SHA256: w.SHA256, AuthorityID: folio,
			Key: "C/" + folio})
	}
}

// cancel decides about a request; the answer is SAT's EstatusUUID.
func (g registrar) cancel(r request, hash string, step authority.Step, now time.Time) string {
	held, kept, ok := g.voucher(r.uuid)
	w, asked := g.wishFor(r.uuid)
	switch {
	case !ok:
		return "205"
	case held.Supplier != r.rfc:
		return "203"
	case asked && w.State != "refused":
		return "202"
	case !strings.Contains(" 01 02 03 04 ", " "+r.motive+" "):
		return "207"
	case r.motive == "01" && (uuid.Validate(r.replacement) != nil || len(r.replacement) != 36 || r.replacement == r.uuid):
		return "208"
	case r.motive != "01" && r.replacement != "":
		return "209"
	case r.motive == "01" && !g.replaces(r.replacement, r.uuid):
		return "212"
	case g.referredTo(r.uuid, r.replacement):
		return "no_cancelable"
	case !now.Before(returnDue(r.rfc, kept.Year, now.Location())):
		return "210"
	case step.Outcome == authority.Reject:
		return "no_cancelable"
	}
	w = wish{State: "done", Supplier: r.rfc, SHA256: hash, Due: now.Add(step.Delay)}
	if kept.Accept || step.Outcome == authority.Suspend {
		w.State, w.Accepted = "waiting", kept.Accept
	}
	g.keep(r.uuid, w)
	return "201"
}

// replaces reports whether a voucher says that it stands in place of another.
func (g registrar) replaces(folio, of string) bool {
	_, r, ok := g.voucher(strings.ToUpper(folio))
	return ok && r.Relation == relationReplace && slices.Contains(r.Refers, of)
}

// referredTo reports whether a valid voucher refers to another one; the one that
// replaces it does not count.
func (g registrar) referredTo(of, replacement string) bool {
	list, _ := g.book.Get("refers/" + of)
	for folio := range strings.FieldsSeq(list) {
		w, asked := g.wishFor(folio)
		if !strings.EqualFold(folio, replacement) && (!asked || w.State != "done") {
			return true
		}
	}
	return false
}

// relationReplace is the relation of a voucher that stands in place of another.
const relationReplace = "04"

// relationOf is how a voucher refers to others, and to which.
func relationOf(v *xmltree.Element) (relation string, refers []string) {
	if list := v.At("CfdiRelacionados"); list != nil {
		relation = list.Attr("TipoRelacion")
		for _, one := range list.All("CfdiRelacionado") {
			refers = append(refers, strings.ToUpper(one.Attr("UUID")))
		}
	}
	if p := pagos(v); p != nil {
		for _, one := range p.All("Pago") {
			for _, paid := range one.All("DoctoRelacionado") {
				refers = append(refers, strings.ToUpper(paid.Attr("IdDocumento")))
			}
		}
	}
	return relation, refers
}

// state is what SAT says of a voucher. A request whose time has come is decided
// when somebody asks: by the script, else the receiver accepts.
func (g registrar) state(folio string, now time.Time, decide func() authority.Step) state {
	_, kept, ok := g.voucher(folio)
	if !ok {
		return state{code: "N - 602: Comprobante no encontrado.", voucher: satwire.VoucherUnknown}
	}
	w, asked := g.wishFor(folio)
	if asked && w.State == "waiting" && !now.Before(w.Due) {
		switch step := decide(); step.Outcome {
		case authority.Reject:
			w.State = "refused"
			g.keep(folio, w)
		case authority.Suspend:
			w.Due = now.Add(step.Delay)
			g.keep(folio, w)
		default:
			w.State = "done"
			g.keep(folio, w)
		}
	}
	s := state{code: "S - Comprobante obtenido satisfactoriamente.", voucher: satwire.VoucherValid,
		cancelable: satwire.NeedsNoAccept}
	if kept.Accept {
		s.cancelable = satwire.NeedsAccept
	}
	switch {
	case asked && w.State == "waiting":
		s.cancelling = satwire.CancelWaiting
	case asked && w.State == "refused":
		s.cancelling = satwire.CancelRefused
	case asked && w.Accepted:
		s.voucher, s.cancelling = satwire.VoucherCancelled, "Cancelado con aceptación"
	case asked:
		s.voucher, s.cancelling = satwire.VoucherCancelled, "Cancelado sin aceptación"
	}
	return s
}

// state is what SAT says of a voucher.
type state struct {
	code       string // CodigoEstatus
	voucher    string // Estado
	cancelable string // EsCancelable
	cancelling string // EstatusCancelacion
}

// returnDue is when a voucher of a year can no longer be cancelled: the month
// of the annual return is over, March for companies, April for people (CFF
// 29-A, fourth paragraph; RMF 2.7.1.47).
func returnDue(rfc string, year int, where *time.Location) time.Time {
	if legal(rfc) {
		return time.Date(year+1, time.April, 1, 0, 0, 0, 0, where)
	}
	return time.Date(year+1, time.May, 1, 0, 0, 0, 0, where)
}
