package ksef

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
	"tributary/internal/official"
	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
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
	flaw      ksefwire.Status // Code 0: none
	summary   summary
	session   string
	reference string
	ordinal   int
}

// summary is what the query shows of an invoice.
type summary struct {
	Issued   string              `json:"issued"`
	Seller   string              `json:"seller,omitempty"`
	Buyer    ksefwire.Identifier `json:"buyer"`
	BuyerIs  string              `json:"buyer_name,omitempty"`
	Net      string              `json:"net"`
	Gross    string              `json:"gross"`
	VAT      string              `json:"vat"`
	Currency string              `json:"currency"`
	Self     bool                `json:"self,omitempty"`
	Type     string              `json:"type"`
	Offline  bool                `json:"offline,omitempty"`
	Sent     time.Time           `json:"sent"`
	Session  string              `json:"session"`
	Invoice  string              `json:"invoice"`
}

// invoiceRecord is what the book keeps of a sent invoice, accepted or not.
type invoiceRecord struct {
	Session  string          `json:"session"`
	NIP      string          `json:"nip"`
	Ordinal  int             `json:"ordinal"`
	Number   string          `json:"number,omitempty"`
	Issued   string          `json:"issued,omitempty"`
	Hash     string          `json:"hash"`
	Sent     time.Time       `json:"sent"`
	Acquired time.Time       `json:"acquired,omitzero"`
	KSeF     string          `json:"ksef,omitempty"`
	Offline  bool            `json:"offline,omitempty"`
	Status   ksefwire.Status `json:"status"`
	Due      time.Time       `json:"due,omitzero"`      // pending: when it is decided
	Summary  *summary        `json:"summary,omitempty"` // pending: what will be registered
	Shown    bool            `json:"shown,omitempty"`   // pending: somebody has seen it so
}

// open decrypts an invoice and looks at it as KSeF does.
func (k *authority) open(s sessionRecord, in *ksefwire.InvoiceRequest) *arrival {
	a := &arrival{nip: s.NIP, hash: hex.EncodeToString(in.Hash), size: in.Size, at: k.now(), offline: in.Offline}
	text, ok := unsealed(in.Content, s.Key, s.IV)
	if !ok {
		a.flaw = ksefwire.Status{Code: ksefwire.StatusDecryption, Description: "Błąd odszyfrowania pliku"}
		return a
	}
	sum := sha256.Sum256(text)
	switch {
	case int64(len(text)) != in.Size:
		a.flaw = wrongFile("Długość treści nie zgadza się z rozmiarem pliku.")
	case !bytes.Equal(sum[:], in.Hash):
		a.flaw = wrongFile("Skrót treści nie zgadza się ze skrótem pliku.")
	case len(text) > ksefwire.DocumentBytesMax:
		a.flaw = wrongFile(fmt.Sprintf("Rozmiar faktury przekracza %d bajtów.", ksefwire.DocumentBytesMax))
	}
	if a.flaw.Code != 0 {
		return a
	}
	doc, err := readStrictly(text, ksefwire.DocumentBytesMax)
	if err != nil {
		a.flaw = wrongFile(err.Error())
		return a
	}
	root := doc.Root
	a.number, a.kind = root.Value("Fa", "P_2"), root.Value("Fa", "RodzajFaktury")
	a.flaw = k.judge(root, a)
	a.summary = summarise(root, a)
	return a
}

func wrongFile(detail string) ksefwire.Status {
	return ksefwire.Status{Code: ksefwire.StatusFile, Description: "Błąd weryfikacji pliku faktury", Details: []string{detail}}
}

func wrongContent(detail string) ksefwire.Status {
	return ksefwire.Status{Code: ksefwire.StatusSemantics, Description: "Błąd weryfikacji semantyki dokumentu faktury", Details: []string{detail}}
}

// judge checks the schema and what KSeF checks beyond it (ksef-docs,
// weryfikacja-faktury.md).
func (k *authority) judge(root *xmltree.Element, a *arrival) ksefwire.Status {
	if root.At("Zalacznik") != nil {
		return ksefwire.Status{Code: ksefwire.StatusAttachment, Description: "Brak możliwości wysyłania faktury z załącznikiem"}
	}
	if flaw := official.FA3.Schema().First(root); flaw != nil {
		return wrongContent("Dokument nie jest zgodny ze schemą (xsd): " + flaw.Error())
	}
	if root.Value("Podmiot1", "DaneIdentyfikacyjne", "NIP") != a.nip {
		return ksefwire.Status{Code: ksefwire.StatusPermission, Description: "Nieprawidłowy zakres uprawnień"}
	}
	if day := root.Value("Fa", "P_1"); day > a.at.In(k.zone).Format(time.DateOnly) {
		return wrongContent("Data wystawienia (P_1) " + day + " jest późniejsza niż data przyjęcia faktury do systemu KSeF.")
	}
	for _, n := range root.Children {
		if nip := n.Value("DaneIdentyfikacyjne", "NIP"); nip != "" && !taxid.Check("PL", nip).Valid {
			return wrongContent("Nieprawidłowy numer NIP " + nip + " (" + n.Local + ").")
		}
	}
	for _, n := range root.At("Fa").Children {
		if number := n.Value("NrKSeFFaKorygowanej"); number != "" && !ksefwire.ValidNumber(number) {
			return wrongContent("Nieprawidłowy numer KSeF faktury korygowanej " + number + ".")
		}
	}
	corrected := root.At("Fa", "DaneFaKorygowanej") != nil
	if strings.HasPrefix(a.kind, "KOR") != corrected {
		return wrongContent("Dane faktury korygowanej nie odpowiadają rodzajowi faktury " + a.kind + ".")
	}
	return ksefwire.Status{}
}

func summarise(root *xmltree.Element, a *arrival) summary {
	fa := root.At("Fa")
	if fa == nil {
		return summary{}
	}
	s := summary{
		Issued: fa.Value("P_1"), Seller: root.Value("Podmiot1", "DaneIdentyfikacyjne", "Nazwa"), Buyer: buyerOf(root),
		BuyerIs: root.Value("Podmiot2", "DaneIdentyfikacyjne", "Nazwa"), Gross: fa.Value("P_15"), Currency: fa.Value("KodWaluty"),
		Self: fa.Value("Adnotacje", "P_17") == "1", Type: a.kind, Sent: a.at.UTC(),
	}
	var net, vat sum
	for _, n := range fa.Children {
		switch {
		case strings.HasPrefix(n.Local, "P_13_"):
			net.add(n.Text)
		case strings.HasPrefix(n.Local, "P_14_") && strings.HasSuffix(n.Local, "W"):
			vat.add(n.Text)
		case strings.HasPrefix(n.Local, "P_14_") && s.Currency == "PLN":
			vat.add(n.Text)
		}
	}
	s.Net, s.VAT = net.String(), vat.String()
	s.Offline = a.offline || s.Issued < a.at.In(warsaw()).Format(time.DateOnly)
	return s
}

func buyerOf(root *xmltree.Element) ksefwire.Identifier {
	id := root.At("Podmiot2", "DaneIdentyfikacyjne")
	switch {
	case id.Value("NIP") != "":
		return ksefwire.Identifier{Type: "Nip", Value: id.Value("NIP")}
	case id.Value("KodUE") != "":
		return ksefwire.Identifier{Type: "VatUe", Value: id.Value("KodUE") + id.Value("NrVatUE")}
	case id.Value("NrID") != "":
		return ksefwire.Identifier{Type: "Other", Value: id.Value("NrID")}
	}
	return ksefwire.Identifier{Type: "None"}
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
		rec.Status = ksefwire.Status{Code: ksefwire.StatusProcessing, Description: "Trwa przetwarzanie"}
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
func duplicateOf(b *country.Book, held country.Registration) ksefwire.Status {
	var original invoiceRecord
	reference, _ := b.Get("number/" + held.AuthorityID)
	get(b, "invoice/"+reference, &original)
	return ksefwire.Status{
		Code: ksefwire.StatusDuplicate, Description: "Duplikat faktury",
		Details:    []string{"Duplikat faktury. Faktura o numerze KSeF: " + held.AuthorityID + " została już prawidłowo przesłana do systemu w sesji: " + original.Session},
		Extensions: map[string]string{ksefwire.ExtensionNumber: held.AuthorityID, ksefwire.ExtensionSession: original.Session},
	}
}

// accept gives an invoice its number and registers it.
func (k *authority) accept(b *country.Book, reference string, rec invoiceRecord, s summary) {
	now := k.now()
	rec.KSeF = ksefwire.Number(rec.NIP, rec.Sent.In(k.zone).Format("20060102"), fmt.Sprintf("0100%08X", b.Count()+1))
	rec.Acquired, rec.Offline = now.UTC(), s.Offline
	rec.Status = ksefwire.Status{Code: ksefwire.StatusSuccess, Description: "Sukces"}
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
		out := ksefwire.InvoiceStatus{
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
			refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeReceiptUnknown, Description: "Nie znaleziono UPO dla podanych kryteriów.", Details: []string{"UPO o numerze KSeF " + number + " i numerze referencyjnym sesji " + session + " nie zostało znalezione."}})
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
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeReceiptUnknown, Description: "Nie znaleziono UPO dla podanych kryteriów."})
		return
	}
	body := k.writeUPO(rec)
	if !turn.End(w, r) {
		return
	}
	sum := sha256.Sum256(body)
	w.Header().Set("Content-Type", ksefwire.TypeXML)
	w.Header().Set(ksefwire.HeaderHash, base64.StdEncoding.EncodeToString(sum[:]))
	_, _ = w.Write(body) // the caller went away
}

// writeUPO writes a confirmation of receipt, UPO 4.3. The test environment puts
// its own name in place of the Ministry's, which the schema does not foresee:
// here the schema counts.
func (k *authority) writeUPO(rec invoiceRecord) []byte {
	var s sessionRecord
	k.desk.Read(func(b *country.Book) { get(b, "session/"+rec.Session, &s) })
	hash, _ := hex.DecodeString(rec.Hash)
	w := xmltree.NewWriter(2 << 10)
	w.Declare()
	w.Start("Potwierdzenie", "xmlns", spaceUPO)
	w.Leaf("NazwaPodmiotuPrzyjmujacego", "Ministerstwo Finansów")
	w.Leaf("NumerReferencyjnySesji", rec.Session)
	w.Start("Uwierzytelnienie")
	w.Start("IdKontekstu")
	w.Leaf("Nip", rec.NIP)
	w.End()
	w.Leaf("SkrotDokumentuUwierzytelniajacego", s.Document)
	w.End()
	w.Leaf("NazwaStrukturyLogicznej", "Schemat_FA(3)_v1-0E.xsd")
	w.Leaf("KodFormularza", ksefwire.SystemCode)
	w.Start("Dokument")
	w.Leaf("NipSprzedawcy", rec.NIP)
	w.Leaf("NumerKSeFDokumentu", rec.KSeF)
	w.Leaf("NumerFaktury", rec.Number)
	w.Leaf("DataWystawieniaFaktury", rec.Issued)
	w.Leaf("DataPrzeslaniaDokumentu", rec.Sent.In(k.zone).Format(instantForm))
	w.Leaf("DataNadaniaNumeruKSeF", rec.Acquired.In(k.zone).Format(instantForm))
	w.Leaf("SkrotDokumentu", base64.StdEncoding.EncodeToString(hash))
	w.Leaf("TrybWysylki", mode(rec.Offline))
	w.End()
	w.End()
	return w.Bytes()
}

const (
	spaceUPO    = "http://upo.schematy.mf.gov.pl/KSeF/v4-3"
	instantForm = "2006-01-02T15:04:05.000-07:00"
)
