package mx

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
)

// rfcProvider is the RFC of the simulated provider.
const rfcProvider = "SPR190613I52"

// mint is the key with which the simulated SAT seals its stamps. It is made
// once in a process, when it is first needed. Its certificate goes into the
// book of each desk that used it, so that old stamps can be verified after a
// restart has made another.
type mint struct {
	once sync.Once
	key  *rsa.PrivateKey
	leaf *x509.Certificate
	err  error
}

func (m *mint) open() (*rsa.PrivateKey, *x509.Certificate, error) {
	m.once.Do(func() {
		if m.key, m.err = rsa.GenerateKey(rand.Reader, 2048); m.err != nil {
			return
		}
		sum := sha256.Sum256(m.key.N.Bytes())
		// SAT's certificates have twenty digits in ASCII as their serial number.
		number := fmt.Sprintf("3000100%013d", binary.BigEndian.Uint64(sum[:])%1e13)
		now := time.Now()
		template := &x509.Certificate{
			SerialNumber: new(big.Int).SetBytes([]byte(number)), NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(4, 0, 0),
			Subject: pkix.Name{CommonName: "SAT (simulated)", Organization: []string{"Simulated authority"}},
		}
		var der []byte
		if der, m.err = x509.CreateCertificate(rand.Reader, template, template, &m.key.PublicKey, m.key); m.err == nil {
			m.leaf, m.err = x509.ParseCertificate(der)
		}
	})
	return m.key, m.leaf, m.err
}

// record is what the simulated SAT keeps of a voucher beside its registration.
type record struct {
	At        string `json:"at"` // FechaTimbrado
	NumberSAT string `json:"number_sat"`
	Seal      string `json:"seal"` // SelloSAT
	Sello     string `json:"sello,omitempty"`
	Receiver  string `json:"receiver"`
	Total     string `json:"total"`
	Year      int    `json:"year"`
	Accept    bool   `json:"accept,omitempty"` // the receiver must agree to a cancellation
	NumberCSD string `json:"number_csd,omitempty"`
	XML       string `json:"xml,omitempty"` // see packed
}

// folioOf is the UUID of a voucher. It follows from the seal, so that the same
// voucher never has two.
func folioOf(seal string) string {
	return strings.ToUpper(uuid.NewSHA1(uuid.NameSpaceURL, []byte("cfdi\n"+seal)).String())
}

// stampFor makes the record of a voucher that is stamped now.
func (m *mint) stampFor(v *node, sello string, at time.Time) (record, error) {
	key, leaf, err := m.open()
	if err != nil {
		return record{}, fmt.Errorf("making SAT's key: %w", err)
	}
	r := record{At: at.Format(localTime), NumberSAT: certificateNumber(leaf), Sello: sello,
		Receiver: v.kid("cfdi:Receptor").attr("Rfc"), Total: v.attr("Total"), Year: at.Year(), Accept: needsAcceptance(v),
		NumberCSD: v.attr("NoCertificado"), XML: packed(v)}
	seal, err := sign(key, crypto.SHA256, originalOfStamp(r.stamp()))
	r.Seal = seal
	return r, err
}

// stamp is the record as the element TimbreFiscalDigital.
func (r record) stamp() *node {
	n := element("tfd:TimbreFiscalDigital", "xmlns:tfd", spaceStamp, "xsi:schemaLocation",
		spaceStamp+" http://www.sat.gob.mx/sitio_internet/cfd/TimbreFiscalDigital/TimbreFiscalDigitalv11.xsd",
		"Version", "1.1", "UUID", folioOf(r.Sello), "FechaTimbrado", r.At, "RfcProvCertif", rfcProvider,
		"SelloCFD", r.Sello, "NoCertificadoSAT", r.NumberSAT)
	n.set("SelloSAT", r.Seal)
	return n
}

// stampedCopy is a voucher with its stamp, as a provider gives it back.
func (r record) stampedCopy(v *node) []byte {
	whole := &node{name: v.name, kids: append(append([]*node(nil), v.kids...), nil)}
	whole.attrs = []attr{{"xmlns:cfdi", spaceCFDI}, {"xmlns:xsi", spaceXSI}}
	for _, a := range v.attrs {
		if a.name == "Sello" {
			a.value = r.Sello
		}
		whole.attrs = append(whole.attrs, a)
	}
	complement := element("cfdi:Complemento")
	complement.add(r.stamp())
	whole.kids[len(whole.kids)-1] = complement
	return document(whole)
}

// needsAcceptance is the rule of RMF 2.7.1.35, as far as a voucher shows it: no
// acceptance up to 1,000 pesos, for credit notes, the general public and
// foreigners. That of the working day after the issue is left out, because
// every test would end in it.
func needsAcceptance(v *node) bool {
	receiver := v.kid("cfdi:Receptor").attr("Rfc")
	if v.attr("TipoDeComprobante") != typeIncome || receiver == rfcPublic || receiver == rfcForeign {
		return false
	}
	total := big.NewInt(decimalOf(v.attr("Total"), 6))
	rate := int64(1_000_000)
	if v.attr("Moneda") != "MXN" {
		rate = decimalOf(v.attr("TipoCambio"), 6)
	}
	return total.Mul(total, big.NewInt(rate)).Cmp(new(big.Int).SetInt64(1_000_000_000_000_000)) > 0
}

// registrar decides with the book open.
type registrar struct{ book *country.Book }

func (g registrar) voucher(folio string) (country.Registration, record, bool) {
	held, ok := g.book.FindKey("U/" + folio)
	if !ok {
		return held, record{}, false
	}
	var r record
	if err := json.Unmarshal([]byte(held.Note), &r); err != nil {
		panic(fmt.Sprintf("reading the authority's own book: %v", err))
	}
	return held, r, true
}

// arrival is a voucher that came in.
type arrival struct {
	voucher *node
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
func (g registrar) take(a *arrival, step country.Step) (record, refusal) {
	switch a.no.code {
	case "", "304", "305", "401": // what was stamped in time may be shown again late
	default:
		return record{}, a.no
	}
	folio := folioOf(a.voucher.attr("Sello"))
	if _, r, ok := g.voucher(folio); ok {
		return r, refuse(codeStampedBefore)
	}
	if sello, ok := g.book.Get("other/" + folio); ok {
		_, r, _ := g.voucher(folioOf(sello))
		return r, refuse(codeStampedBefore)
	}
	custom := "custom/" + a.supply + "/" + a.custom
	if of, ok := g.book.Get(custom); ok && a.custom != "" {
		_, r, _ := g.voucher(of)
		return r, refuse(codeCustomUsed)
	}
	switch {
	case a.no.code != "":
		return record{}, a.no
	case step.Outcome == country.Reject:
		return record{}, refuse("CFDI40145")
	case step.Outcome == country.Duplicate && step.Of != country.OfOurs:
		g.book.Put("other/"+folio, a.other.Sello)
		g.register(a, a.other, hashOf(append([]byte("another's voucher\n"), a.raw...)))
		return a.other, refuse(codeStampedBefore)
	}
	g.register(a, a.fresh, hashOf(a.raw))
	if a.custom != "" {
		g.book.Put(custom, folio)
	}
	if step.Outcome == country.Duplicate {
		return a.fresh, refuse(codeStampedBefore)
	}
	return a.fresh, refusal{}
}

func (g registrar) register(a *arrival, r record, hash string) {
	note, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("writing the authority's own book: %v", err))
	}
	folio := folioOf(r.Sello)
	if _, published := g.book.Get("certificate/" + r.NumberSAT); !published {
		g.book.Put("certificate/"+r.NumberSAT, base64.StdEncoding.EncodeToString(a.leaf.Raw))
	}
	if _, known := g.book.Get("csd/" + r.NumberCSD); !known {
		g.book.Put("csd/"+r.NumberCSD, a.voucher.attr("Certificado"))
	}
	g.book.Register(country.Registration{Supplier: a.supply, Number: a.number, SHA256: hash, AuthorityID: folio, Key: "U/" + folio, Note: string(note)})
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
	text, ok := g.book.Get("cancel/" + folio)
	if !ok {
		return wish{}, false
	}
	var w wish
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		panic(fmt.Sprintf("reading the authority's own book: %v", err))
	}
	return w, true
}

func (g registrar) keep(folio string, w wish) {
	text, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("writing the authority's own book: %v", err))
	}
	g.book.Put("cancel/"+folio, string(text))
	if w.State == "done" {
		g.book.Register(country.Registration{Supplier: w.Supplier, Number: folio, SHA256: w.SHA256, AuthorityID: folio, Key: "C/" + folio})
	}
}

// cancel decides about a request; the answer is SAT's EstatusUUID.
func (g registrar) cancel(r request, hash string, step country.Step, now time.Time) string {
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
	case r.motive == "01" && (!uuidPattern.MatchString(r.replacement) || r.replacement == r.uuid):
		return "208"
	case r.motive != "01" && r.replacement != "":
		return "209"
	case now.After(cancelUntil(r.rfc, time.Date(kept.Year, 1, 1, 0, 0, 0, 0, now.Location()))):
		return "210"
	case step.Outcome == country.Reject:
		return "no_cancelable"
	}
	w = wish{State: "done", Supplier: r.rfc, SHA256: hash, Due: now.Add(step.Delay)}
	if kept.Accept || step.Outcome == country.Suspend {
		w.State, w.Accepted = "waiting", kept.Accept
	}
	g.keep(r.uuid, w)
	return "201"
}

// state is what SAT says of a voucher. A request whose time has come is decided
// when somebody asks: by the script, else the receiver accepts.
func (g registrar) state(folio string, now time.Time, decide func() country.Step) (state, record) {
	_, kept, ok := g.voucher(folio)
	if !ok {
		return state{code: "N - 602: Comprobante no encontrado.", voucher: voucherUnknown}, record{}
	}
	w, asked := g.wishFor(folio)
	if asked && w.State == "waiting" && !now.Before(w.Due) {
		switch step := decide(); step.Outcome {
		case country.Reject:
			w.State = "refused"
			g.keep(folio, w)
		case country.Suspend:
			w.Due = now.Add(step.Delay)
			g.keep(folio, w)
		default:
			w.State = "done"
			g.keep(folio, w)
		}
	}
	s := state{code: "S - Comprobante obtenido satisfactoriamente.", voucher: voucherValid, cancelable: needsNoAccept}
	if kept.Accept {
		s.cancelable = needsAccept
	}
	switch {
	case asked && w.State == "waiting":
		s.cancelling = cancelWaiting
	case asked && w.State == "refused":
		s.cancelling = cancelRefused
	case asked && w.Accepted:
		s.voucher, s.cancelling = voucherCancelled, "Cancelado con aceptación"
	case asked:
		s.voucher, s.cancelling = voucherCancelled, "Cancelado sin aceptación"
	}
	return s, kept
}
