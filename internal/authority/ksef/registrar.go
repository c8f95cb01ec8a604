package ksef

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
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
	text      []byte
	size      int64
	at        time.Time
	offline   bool
	flaw      ksefwire.Status // Code 0: none
	summary   summary
	session   string
	reference string
	file      string // its name in a package
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
	Buyer    string          `json:"buyer,omitempty"` // its NIP, where it has one
	Number   string          `json:"number,omitempty"`
	Issued   string          `json:"issued,omitempty"`
	Hash     string          `json:"hash"`
	Sent     time.Time       `json:"sent"`
	Acquired time.Time       `json:"acquired,omitzero"`
	KSeF     string          `json:"ksef,omitempty"`
	Offline  bool            `json:"offline,omitempty"`
	File     string          `json:"file,omitempty"` // its name in the package of a batch session
	Status   ksefwire.Status `json:"status"`
	Due      time.Time       `json:"due,omitzero"`      // pending: when it is decided
	Summary  *summary        `json:"summary,omitempty"` // pending: what will be registered
	Shown    bool            `json:"shown,omitempty"`   // pending: somebody has seen it so
}

// open decrypts an invoice and looks at it as KSeF does.
func (k *double) open(s sessionRecord, in *ksefwire.InvoiceRequest) *arrival {
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
	}
	if a.flaw.Code != 0 {
		return a
	}
	return k.read(a, text)
}

// read looks at an invoice in the clear.
func (k *double) read(a *arrival, text []byte) *arrival {
	if len(text) > ksefwire.DocumentBytesMax {
		a.flaw = wrongFile(fmt.Sprintf("Rozmiar faktury przekracza %d bajtów.", ksefwire.DocumentBytesMax))
		return a
	}
	doc, err := readStrictly(text, ksefwire.DocumentBytesMax)
	if err != nil {
		a.flaw = wrongFile(err.Error())
		return a
	}
	root := doc.Root
	a.text = text
	a.number, a.kind = root.Value("Fa", "P_2"), root.Value("Fa", "RodzajFaktury")
	a.flaw = k.judge(root, a)
	a.summary = summarise(root, a)
	return a
}

func wrongFile(detail string) ksefwire.Status {
	return ksefwire.Status{Code: ksefwire.StatusFile, Description: "Błąd weryfikacji pliku faktury", Details: []string{detail}}
}

func wrongContent(detail string) ksefwire.Status {
	return ksefwire.Status{Code: ksefwire.StatusSemantics, Description: "Błąd weryfikacji semantyki dokumentu faktury",
		Details: []string{detail}}
}

// judge checks the schema and what KSeF checks beyond it (ksef-docs,
// weryfikacja-faktury.md).
func (k *double) judge(root *xmltree.Element, a *arrival) ksefwire.Status {
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
		if id := n.Value("DaneIdentyfikacyjne", "IDWew"); id != "" && !taxid.Check("PL", strings.SplitN(id, "-", 2)[0]).Valid {
			return wrongContent("Nieprawidłowy numer NIP w identyfikatorze wewnętrznym " + id + " (" + n.Local + ").")
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
func (k *double) take(b *authority.Book, a *arrival, step authority.Step) {
	count := tallyOf(b, a.session)
	count.Sent++
	rec := invoiceRecord{
		Session: a.session, NIP: a.nip, Ordinal: count.Sent, Number: a.number, Issued: a.summary.Issued, Hash: a.hash,
		Sent: a.at.UTC(), Offline: a.offline, File: a.file,
	}
	if a.summary.Buyer.Type == "Nip" {
		rec.Buyer = a.summary.Buyer.Value
	}
	a.summary.Session, a.summary.Invoice = a.session, a.reference
	switch held, known := b.FindKey(uniqueKey(a.nip, a.kind, a.number)); {
	case a.flaw.Code != 0:
		rec.Status = a.flaw
	case known:
		rec.Status = duplicateOf(b, held)
	case step.Outcome == authority.Reject:
		rec.Status = wrongContent("Faktura odrzucona na żądanie scenariusza testowego.")
	case step.Outcome == authority.Suspend:
		rec.Status = ksefwire.Status{Code: ksefwire.StatusProcessing, Description: "Trwa przetwarzanie"}
		rec.Due, rec.Summary = a.at.Add(step.Delay).UTC(), &a.summary
	case step.Outcome == authority.Duplicate:
		planted := rec
		if step.Of != authority.OfOurs {
			other := sha256.Sum256([]byte("another's\n" + a.number))
			planted.Hash = hex.EncodeToString(other[:])
		}
		k.accept(b, k.access.newReference("EE"), planted, a.summary) // of no session's count
		held, _ = b.FindKey(uniqueKey(a.nip, a.kind, a.number))
		rec.Status = duplicateOf(b, held)
	default:
		rec = k.accept(b, a.reference, rec, a.summary)
	}
	count.note(rec.Status)
	b.Keep("invoice/"+a.reference, rec)
	b.Keep("tally/"+a.session, count)
	b.Put(sentKey(a.session, rec.Ordinal), a.reference)
	if rec.Status.Code <= ksefwire.StatusSuccess {
		b.Put("xml/"+a.reference, packed(a.text))
	}
}

func sentKey(session string, ordinal int) string {
	return "sent/" + session + "/" + strconv.Itoa(ordinal)
}

// duplicateOf is KSeF's status 440: which invoice is held, and where it came.
func duplicateOf(b *authority.Book, held authority.Registration) ksefwire.Status {
	var original invoiceRecord
	reference, _ := b.Get("number/" + held.AuthorityID)
	b.Load("invoice/"+reference, &original)
	return ksefwire.Status{
		Code: ksefwire.StatusDuplicate, Description: "Duplikat faktury",
		Details:    []string{"Duplikat faktury. Faktura o numerze KSeF: " + held.AuthorityID + " została już prawidłowo przesłana do systemu w sesji: " + original.Session},
		Extensions: map[string]string{ksefwire.ExtensionNumber: held.AuthorityID, ksefwire.ExtensionSession: original.Session},
	}
}

// accept gives an invoice its number and registers it.
func (k *double) accept(b *authority.Book, reference string, rec invoiceRecord, s summary) invoiceRecord {
	now := k.now()
	rec.KSeF = ksefwire.Number(rec.NIP, now.In(k.zone).Format("20060102"), fmt.Sprintf("0100%08X", b.Count()+1))
	rec.Acquired, rec.Offline = now.UTC(), s.Offline
	rec.Status = ksefwire.Status{Code: ksefwire.StatusSuccess, Description: "Sukces"}
	rec.Due, rec.Summary = time.Time{}, nil
	s.Invoice = reference
	b.Keep("invoice/"+reference, rec)
	b.Put("number/"+rec.KSeF, reference)
	b.Register(authority.Registration{
		Supplier: rec.NIP, Number: rec.Number, SHA256: rec.Hash, AuthorityID: rec.KSeF, At: now,
		Key: uniqueKey(rec.NIP, s.Type, rec.Number), Note: authority.Note(s),
	})
	return rec
}

// ownInvoice finds an invoice of a session, and decides one whose time has come.
func (k *double) ownInvoice(w http.ResponseWriter, r *http.Request, c claims) (invoiceRecord, bool) {
	session, _, ok := k.ownSession(w, r, c.NIP)
	if !ok {
		return invoiceRecord{}, false
	}
	reference := r.PathValue("invoice")
	var rec invoiceRecord
	found := false
	err := k.desk.Write(func(b *authority.Book) {
		if found = b.Load("invoice/"+reference, &rec) && rec.Session == session; !found {
			return
		}
		if rec.Summary == nil || k.now().Before(rec.Due) {
			return
		}
		if !rec.Shown { // decided at a later question: a caller asks once right after sending
			rec.Shown = true
			b.Keep("invoice/"+reference, rec)
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

// decide ends the wait of an invoice, as the script wants it.
func (k *double) decide(b *authority.Book, reference string, rec *invoiceRecord, step authority.Step) {
	held, known := b.FindKey(uniqueKey(rec.NIP, rec.Summary.Type, rec.Number))
	switch {
	case known:
		rec.Status, rec.Summary = duplicateOf(b, held), nil
	case step.Outcome == authority.Reject:
		rec.Status, rec.Summary = wrongContent("Faktura odrzucona na żądanie scenariusza testowego."), nil
	case step.Outcome == authority.Suspend:
		rec.Due = k.now().Add(step.Delay).UTC()
	default:
		*rec = k.accept(b, reference, *rec, *rec.Summary)
	}
	b.Keep("invoice/"+reference, *rec)
	if rec.Summary == nil {
		count := tallyOf(b, rec.Session)
		count.note(rec.Status)
		b.Keep("tally/"+rec.Session, count)
	}
}

// invoiceStatus serves GET /sessions/{session}/invoices/{invoice}.
func (k *double) invoiceStatus(w http.ResponseWriter, r *http.Request) {
	k.access.asked(w, r, func(c claims) (any, bool) {
		rec, ok := k.ownInvoice(w, r, c)
		if !ok {
			return nil, false
		}
		return k.statusOf(r, r.PathValue("invoice"), rec), true
	})
}

// statusOf is what KSeF tells of an invoice.
func (k *double) statusOf(r *http.Request, reference string, rec invoiceRecord) ksefwire.InvoiceStatus {
	hash, _ := hex.DecodeString(rec.Hash)
	out := ksefwire.InvoiceStatus{
		Ordinal: rec.Ordinal, InvoiceNumber: rec.Number, KSeFNumber: rec.KSeF, ReferenceNumber: reference, Hash: hash,
		FileName:      rec.File,
		InvoicingDate: rec.Sent, Status: rec.Status,
	}
	if rec.KSeF != "" {
		until := k.now().Add(storedFor).UTC()
		out.AcquisitionDate, out.StorageDate, out.InvoicingMode = &rec.Acquired, &rec.Acquired, mode(rec.Offline)
		out.UPODownloadURL, out.UPODownloadUntil = k.storageURL(r, rec.Session, reference, until), &until
	}
	return out
}

func mode(offline bool) string {
	if offline {
		return "Offline"
	}
	return "Online"
}
