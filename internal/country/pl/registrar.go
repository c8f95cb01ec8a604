package pl

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
)

// arrival is one invoice on its way into the book.
type arrival struct {
	nip       string
	number    string // P_2
	kind      string // RodzajFaktury
	hash      string // hex
	size      int64
	at        time.Time
	offline   bool
	flaw      statusInfo // Code 0: none
	summary   summary
	session   string
	reference string
	ordinal   int
}

// summary is what the query shows of an invoice.
type summary struct {
	Issued   string            `json:"issued"`
	Seller   string            `json:"seller,omitempty"`
	Buyer    contextIdentifier `json:"buyer"`
	BuyerIs  string            `json:"buyer_name,omitempty"`
	Net      string            `json:"net"`
	Gross    string            `json:"gross"`
	VAT      string            `json:"vat"`
	Currency string            `json:"currency"`
	Self     bool              `json:"self,omitempty"`
	Type     string            `json:"type"`
	Offline  bool              `json:"offline,omitempty"`
	Sent     time.Time         `json:"sent"`
	Session  string            `json:"session"`
	Invoice  string            `json:"invoice"`
}

// invoiceRecord is what the book keeps of a sent invoice, accepted or not.
type invoiceRecord struct {
	Session  string     `json:"session"`
	NIP      string     `json:"nip"`
	Ordinal  int        `json:"ordinal"`
	Number   string     `json:"number,omitempty"`
	Issued   string     `json:"issued,omitempty"`
	Hash     string     `json:"hash"`
	Sent     time.Time  `json:"sent"`
	Acquired time.Time  `json:"acquired,omitzero"`
	KSeF     string     `json:"ksef,omitempty"`
	Offline  bool       `json:"offline,omitempty"`
	Status   statusInfo `json:"status"`
	Due      time.Time  `json:"due,omitzero"`      // pending: when it is decided
	Summary  *summary   `json:"summary,omitempty"` // pending: what will be registered
	Shown    bool       `json:"shown,omitempty"`   // pending: somebody has seen it so
}

// open decrypts an invoice and looks at it as KSeF does.
func (k *authority) open(s sessionRecord, in *invoiceRequest) *arrival {
	a := &arrival{nip: s.NIP, hash: hex.EncodeToString(in.Hash), size: in.Size, at: k.now(), offline: in.Offline}
	text, ok := unsealed(in.Content, s.Key, s.IV)
	if !ok {
		a.flaw = statusInfo{Code: statusDecryption, Description: "Błąd odszyfrowania pliku"}
		return a
	}
	sum := sha256.Sum256(text)
	switch {
	case int64(len(text)) != in.Size:
		a.flaw = wrongFile("Długość treści nie zgadza się z rozmiarem pliku.")
	case !bytes.Equal(sum[:], in.Hash):
		a.flaw = wrongFile("Skrót treści nie zgadza się ze skrótem pliku.")
	case len(text) > documentBytesMax:
		a.flaw = wrongFile(fmt.Sprintf("Rozmiar faktury przekracza %d bajtów.", documentBytesMax))
	}
	if a.flaw.Code != 0 {
		return a
	}
	root, err := parse(text)
	if err != nil {
		a.flaw = wrongFile(err.Error())
		return a
	}
	a.number, a.kind = root.value("Fa", "P_2"), root.value("Fa", "RodzajFaktury")
	a.flaw = k.judge(root, a)
	a.summary = summarise(root, a)
	return a
}

func wrongFile(detail string) statusInfo {
	return statusInfo{Code: statusFile, Description: "Błąd weryfikacji pliku faktury", Details: []string{detail}}
}

func wrongContent(detail string) statusInfo {
	return statusInfo{Code: statusSemantics, Description: "Błąd weryfikacji semantyki dokumentu faktury", Details: []string{detail}}
}

// judge checks the schema and what KSeF checks beyond it (ksef-docs,
// weryfikacja-faktury.md).
func (k *authority) judge(root *node, a *arrival) statusInfo {
	if root.child("Zalacznik") != nil {
		return statusInfo{Code: statusAttachment, Description: "Brak możliwości wysyłania faktury z załącznikiem"}
	}
	if flaw := k.grammar.check(root); flaw != "" {
		return wrongContent("Dokument nie jest zgodny ze schemą (xsd): " + flaw)
	}
	if root.value("Podmiot1", "DaneIdentyfikacyjne", "NIP") != a.nip {
		return statusInfo{Code: statusPermission, Description: "Nieprawidłowy zakres uprawnień"}
	}
	if day := root.value("Fa", "P_1"); day > a.at.In(k.zone).Format(time.DateOnly) {
		return wrongContent("Data wystawienia (P_1) " + day + " jest późniejsza niż data przyjęcia faktury do systemu KSeF.")
	}
	for _, n := range root.children {
		if nip := n.value("DaneIdentyfikacyjne", "NIP"); nip != "" && !taxid.Check("PL", nip).Valid {
			return wrongContent("Nieprawidłowy numer NIP " + nip + " (" + n.name + ").")
		}
	}
	for _, n := range root.child("Fa").children {
		if number := n.value("NrKSeFFaKorygowanej"); number != "" && !validKSeF(number) {
			return wrongContent("Nieprawidłowy numer KSeF faktury korygowanej " + number + ".")
		}
	}
	corrected := root.child("Fa", "DaneFaKorygowanej") != nil
	if strings.HasPrefix(a.kind, typeCorrection) != corrected {
		return wrongContent("Dane faktury korygowanej nie odpowiadają rodzajowi faktury " + a.kind + ".")
	}
	return statusInfo{}
}

func summarise(root *node, a *arrival) summary {
	fa := root.child("Fa")
	if fa == nil {
		return summary{}
	}
	s := summary{
		Issued: fa.value("P_1"), Seller: root.value("Podmiot1", "DaneIdentyfikacyjne", "Nazwa"), Buyer: buyerOf(root),
		BuyerIs: root.value("Podmiot2", "DaneIdentyfikacyjne", "Nazwa"), Gross: fa.value("P_15"), Currency: fa.value("KodWaluty"),
		Self: fa.value("Adnotacje", "P_17") == "1", Type: a.kind, Sent: a.at.UTC(),
	}
	var net, vat sum
	for _, n := range fa.children {
		switch {
		case strings.HasPrefix(n.name, "P_13_"):
			net.add(n.text)
		case strings.HasPrefix(n.name, "P_14_") && strings.HasSuffix(n.name, "W"):
			vat.add(n.text)
		case strings.HasPrefix(n.name, "P_14_") && s.Currency == ownMoney:
			vat.add(n.text)
		}
	}
	s.Net, s.VAT = net.String(), vat.String()
	s.Offline = a.offline || s.Issued < a.at.In(warsaw()).Format(time.DateOnly)
	return s
}

func buyerOf(root *node) contextIdentifier {
	id := root.child("Podmiot2", "DaneIdentyfikacyjne")
	switch {
	case id.value("NIP") != "":
		return contextIdentifier{"Nip", id.value("NIP")}
	case id.value("KodUE") != "":
		return contextIdentifier{"VatUe", id.value("KodUE") + id.value("NrVatUE")}
	case id.value("NrID") != "":
		return contextIdentifier{"Other", id.value("NrID")}
	}
	return contextIdentifier{Type: "None"}
}

// uniqueKey is what KSeF recognises an invoice by.
func uniqueKey(nip, kind, number string) string { return nip + "\x00" + kind + "\x00" + number }

// take decides about an invoice in the order in which KSeF does: can it be
// read, is its number taken, and only then what the script wants.
func (k *authority) take(b *country.Book, a *arrival, step country.Step) {
	rec := invoiceRecord{
		Session: a.session, NIP: a.nip, Ordinal: a.ordinal, Number: a.number, Issued: a.summary.Issued, Hash: a.hash, Sent: a.at.UTC(), Offline: a.offline,
	}
	a.summary.Session, a.summary.Invoice = a.session, a.reference
	switch held, known := b.FindKey(uniqueKey(a.nip, a.kind, a.number)); {
	case a.flaw.Code != 0:
		rec.Status = a.flaw
	case known:
		rec.Status = duplicateOf(b, held)
	case step.Outcome == country.Reject:
		rec.Status = wrongContent("Faktura odrzucona na żądanie scenariusza testowego.")
	case step.Outcome == country.Suspend:
		rec.Status = statusInfo{Code: statusProcessing, Description: "Trwa przetwarzanie"}
		rec.Due, rec.Summary = a.at.Add(step.Delay).UTC(), &a.summary
	case step.Outcome == country.Duplicate:
		planted := rec
		if step.Of != country.OfOurs {
			other := sha256.Sum256([]byte("another's\n" + a.number))
			planted.Hash = hex.EncodeToString(other[:])
		}
		k.accept(b, k.newReference("EE"), planted, a.summary)
		held, _ = b.FindKey(uniqueKey(a.nip, a.kind, a.number))
		rec.Status = duplicateOf(b, held)
	default:
		k.accept(b, a.reference, rec, a.summary)
		return
	}
	put(b, "invoice/"+a.reference, rec)
}

// duplicateOf is KSeF's status 440: which invoice is held, and where it came.
func duplicateOf(b *country.Book, held country.Registration) statusInfo {
	var original invoiceRecord
	reference, _ := b.Get("number/" + held.AuthorityID)
	get(b, "invoice/"+reference, &original)
	return statusInfo{
		Code: statusDuplicate, Description: "Duplikat faktury",
		Details:    []string{"Duplikat faktury. Faktura o numerze KSeF: " + held.AuthorityID + " została już prawidłowo przesłana do systemu w sesji: " + original.Session},
		Extensions: map[string]string{extensionNumber: held.AuthorityID, extensionSession: original.Session},
	}
}

// accept gives an invoice its number and registers it.
func (k *authority) accept(b *country.Book, reference string, rec invoiceRecord, s summary) {
	now := k.now()
	rec.KSeF = ksefNumber(rec.NIP, rec.Sent.In(k.zone).Format("20060102"), fmt.Sprintf("0100%08X", b.Count()+1))
	rec.Acquired, rec.Offline = now.UTC(), s.Offline
	rec.Status = statusInfo{Code: statusSuccess, Description: "Sukces"}
	rec.Due, rec.Summary = time.Time{}, nil
	s.Invoice = reference
	put(b, "invoice/"+reference, rec)
	b.Put("number/"+rec.KSeF, reference)
	b.Register(country.Registration{
		Supplier: rec.NIP, Number: rec.Number, SHA256: rec.Hash, AuthorityID: rec.KSeF, At: now,
		Key: uniqueKey(rec.NIP, s.Type, rec.Number), Note: noteOf(s),
	})
}

// ownInvoice finds an invoice of a session, and decides one whose time has come.
func (k *authority) ownInvoice(w http.ResponseWriter, r *http.Request, c claims) (invoiceRecord, bool) {
	session, _, ok := k.ownSession(w, r, c.NIP)
	if !ok {
		return invoiceRecord{}, false
	}
	reference := r.PathValue("invoice")
	var rec invoiceRecord
	found := false
	err := k.desk.Write(func(b *country.Book) {
		if found = get(b, "invoice/"+reference, &rec) && rec.Session == session; !found {
			return
		}
		if rec.Summary == nil || k.now().Before(rec.Due) {
			return
		}
		if !rec.Shown { // decided at a later question: a caller asks once right after sending
			rec.Shown = true
			put(b, "invoice/"+reference, rec)
			return
		}
		k.decide(b, reference, &rec, k.desk.Decide())
	})
	if err != nil {
		broken(w)
		return rec, false
	}
	if !found {
		refuse(w, r, http.StatusBadRequest, invalidInput("Faktura o numerze referencyjnym "+reference+" nie została znaleziona."))
	}
	return rec, found
}

func (k *authority) decide(b *country.Book, reference string, rec *invoiceRecord, step country.Step) {
	held, known := b.FindKey(uniqueKey(rec.NIP, rec.Summary.Type, rec.Number))
	switch {
	case known:
		rec.Status, rec.Summary = duplicateOf(b, held), nil
	case step.Outcome == country.Reject:
		rec.Status, rec.Summary = wrongContent("Faktura odrzucona na żądanie scenariusza testowego."), nil
	case step.Outcome == country.Suspend:
		rec.Due = k.now().Add(step.Delay).UTC()
	default:
		k.accept(b, reference, *rec, *rec.Summary)
		get(b, "invoice/"+reference, rec)
		return
	}
	put(b, "invoice/"+reference, *rec)
}

// invoiceStatus serves GET /sessions/{session}/invoices/{invoice}.
func (k *authority) invoiceStatus(w http.ResponseWriter, r *http.Request) {
	k.asked(w, r, func(c claims) (any, bool) {
		rec, ok := k.ownInvoice(w, r, c)
		if !ok {
			return nil, false
		}
		hash, _ := hex.DecodeString(rec.Hash)
		out := invoiceStatus{
			Ordinal: rec.Ordinal, InvoiceNumber: rec.Number, KSeFNumber: rec.KSeF, ReferenceNumber: r.PathValue("invoice"), Hash: hash,
			InvoicingDate: rec.Sent, Status: rec.Status,
		}
		if rec.KSeF != "" {
			out.AcquisitionDate, out.StorageDate, out.InvoicingMode = &rec.Acquired, &rec.Acquired, mode(rec.Offline)
		}
		return out, true
	})
}

func mode(offline bool) string {
	if offline {
		return "Offline"
	}
	return "Online"
}

// upo serves GET /sessions/{session}/invoices/{invoice}/upo.
func (k *authority) upo(w http.ResponseWriter, r *http.Request) {
	k.confirm(w, r, func(c claims) (invoiceRecord, bool) { return k.ownInvoice(w, r, c) })
}

// upoByNumber serves GET /sessions/{session}/invoices/ksef/{number}/upo.
func (k *authority) upoByNumber(w http.ResponseWriter, r *http.Request) {
	k.confirm(w, r, func(c claims) (invoiceRecord, bool) {
		session, _, ok := k.ownSession(w, r, c.NIP)
		if !ok {
			return invoiceRecord{}, false
		}
		number := r.PathValue("number")
		var rec invoiceRecord
		k.desk.Read(func(b *country.Book) {
			reference, _ := b.Get("number/" + number)
			ok = get(b, "invoice/"+reference, &rec) && rec.Session == session
		})
		if !ok {
			refuse(w, r, http.StatusBadRequest, problemError{errReceiptUnknown, "Nie znaleziono UPO dla podanych kryteriów.",
				[]string{"UPO o numerze KSeF " + number + " i numerze referencyjnym sesji " + session + " nie zostało znalezione."}})
		}
		return rec, ok
	})
}

func (k *authority) confirm(w http.ResponseWriter, r *http.Request, find func(claims) (invoiceRecord, bool)) {
	c, ok := k.caller(w, r, "access")
	if !ok {
		return
	}
	turn := k.desk.QueryTurn()
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	rec, ok := find(c)
	if !ok {
		return
	}
	if rec.KSeF == "" {
		refuse(w, r, http.StatusBadRequest, problemError{errReceiptUnknown, "Nie znaleziono UPO dla podanych kryteriów.", nil})
		return
	}
	body := k.writeUPO(rec)
	if !turn.End(w, r) {
		return
	}
	sum := sha256.Sum256(body)
	w.Header().Set("Content-Type", typeXML)
	w.Header().Set(headerHash, base64.StdEncoding.EncodeToString(sum[:]))
	_, _ = w.Write(body) // the caller went away
}

// writeUPO writes a confirmation as the test environment does: with its own
// name in place of the Ministry's, which the schema does not foresee.
func (k *authority) writeUPO(rec invoiceRecord) []byte {
	var s sessionRecord
	k.desk.Read(func(b *country.Book) { get(b, "session/"+rec.Session, &s) })
	hash, _ := hex.DecodeString(rec.Hash)
	w := &xmlWriter{out: []byte(`<?xml version="1.0" encoding="utf-8"?>` + "\n")}
	w.out = append(w.out, `<Potwierdzenie xmlns="http://upo.schematy.mf.gov.pl/KSeF/v4-3">`...)
	w.open = append(w.open, "Potwierdzenie")
	w.element("NazwaPodmiotuPrzyjmujacego", "Ministerstwo Finansów - środowisko testowe (TE)")
	w.element("NumerReferencyjnySesji", rec.Session)
	w.start("Uwierzytelnienie")
	w.start("IdKontekstu")
	w.element("Nip", rec.NIP)
	w.end()
	w.element("SkrotDokumentuUwierzytelniajacego", s.Document)
	w.end()
	w.element("NazwaStrukturyLogicznej", "Schemat_FA(3)_v1-0E.xsd")
	w.element("KodFormularza", systemCode)
	w.start("Dokument")
	w.element("NipSprzedawcy", rec.NIP)
	w.element("NumerKSeFDokumentu", rec.KSeF)
	w.element("NumerFaktury", rec.Number)
	w.element("DataWystawieniaFaktury", rec.Issued)
	w.element("DataPrzeslaniaDokumentu", rec.Sent.In(k.zone).Format("2006-01-02T15:04:05.000-07:00"))
	w.element("DataNadaniaNumeruKSeF", rec.Acquired.In(k.zone).Format("2006-01-02T15:04:05.000-07:00"))
	w.element("SkrotDokumentu", base64.StdEncoding.EncodeToString(hash))
	w.element("TrybWysylki", mode(rec.Offline))
	w.end()
	w.end()
	return w.out
}
