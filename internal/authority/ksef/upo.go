package ksef

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
)

// upo serves GET /sessions/{session}/invoices/{invoice}/upo.
func (k *double) upo(w http.ResponseWriter, r *http.Request) {
	k.confirm(w, r, func(c claims) (invoiceRecord, bool) { return k.ownInvoice(w, r, c) })
}

// upoByNumber serves GET /sessions/{session}/invoices/ksef/{number}/upo.
func (k *double) upoByNumber(w http.ResponseWriter, r *http.Request) {
	k.confirm(w, r, func(c claims) (invoiceRecord, bool) {
		session, _, ok := k.ownSession(w, r, c.NIP)
		if !ok {
			return invoiceRecord{}, false
		}
		number := r.PathValue("number")
		var rec invoiceRecord
		k.desk.Read(func(b *authority.Book) {
			reference, _ := b.Get("number/" + number)
			ok = b.Load("invoice/"+reference, &rec) && rec.Session == session
		})
		if !ok {
			refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeReceiptUnknown,
				Description: "Nie znaleziono UPO dla podanych kryteriów.",
				Details: []string{"UPO o numerze KSeF " + number + " i numerze referencyjnym sesji " + session +
					" nie zostało znalezione."}})
		}
		return rec, ok
	})
}

func (k *double) confirm(w http.ResponseWriter, r *http.Request, find func(claims) (invoiceRecord, bool)) {
	c, ok := k.access.caller(w, r, "access")
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
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeReceiptUnknown,
			Description: "Nie znaleziono UPO dla podanych kryteriów."})
		return
	}
	var s sessionRecord
	k.desk.Read(func(b *authority.Book) { b.Load("session/"+rec.Session, &s) })
	if turn.End(w, r) {
		sendXML(w, k.writeUPO(s, rec))
	}
}

// sessionUPO serves GET /sessions/{session}/upo/{upo}.
func (k *double) sessionUPO(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	turn := k.desk.QueryTurn()
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	reference, s, ok := k.ownSession(w, r, c.NIP)
	if !ok {
		return
	}
	asked := r.PathValue("upo")
	recs := k.confirmedOf(reference)
	if asked != s.UPO || len(recs) == 0 || !s.over(k.now()) {
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeReceiptUnknown,
			Description: "Nie znaleziono UPO dla podanych kryteriów.",
			Details:     []string{"UPO o numerze referencyjnym " + asked + " dla sesji " + reference + " nie zostało znalezione."}})
		return
	}
	if turn.End(w, r) {
		sendXML(w, k.writeUPO(s, recs...))
	}
}

// confirmedOf lists the accepted invoices of a session in their order.
func (k *double) confirmedOf(session string) (recs []invoiceRecord) {
	k.desk.Read(func(b *authority.Book) {
		for i := range tallyOf(b, session).Sent {
			var rec invoiceRecord
			reference, _ := b.Get(sentKey(session, i+1))
			if b.Load("invoice/"+reference, &rec) && rec.KSeF != "" {
				recs = append(recs, rec)
			}
		}
	})
	return recs
}

// sendXML answers with a document and its hash.
func sendXML(w http.ResponseWriter, body []byte) {
	sum := sha256.Sum256(body)
	w.Header().Set("Content-Type", ksefwire.TypeXML)
	w.Header().Set(ksefwire.HeaderHash, base64.StdEncoding.EncodeToString(sum[:]))
	_, _ = w.Write(body) // the caller went away
}

const (
	pathStorage = "/storage"
	storedFor   = 72 * time.Hour // how long an address of a document works
)

// storageURL is where a confirmation can be fetched without a token: the
// address itself is signed, as those of KSeF's storage are.
func (k *double) storageURL(r *http.Request, session, document string, until time.Time) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	// The desk's frame cuts the country off the path; the request line has it.
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	end := strconv.FormatInt(until.Unix(), 10)
	path := pathStorage + "/" + session + "/" + document
	return scheme + r.Host + strings.TrimSuffix(asked, r.URL.EscapedPath()) + path + "?se=" + end + "&sig=" +
		hex.EncodeToString(k.keys.mac(path+"?"+end))
}

// signedFor reads an address of the storage, or refuses one that is not signed, or not any more.
func (k *double) signedFor(w http.ResponseWriter, r *http.Request) (session, document string, ok bool) {
	if err := k.keys.prepareKeys(); err != nil {
		broken(w)
		return "", "", false
	}
	session, document, q := r.PathValue("session"), r.PathValue("document"), r.URL.Query()
	end, err := strconv.ParseInt(q.Get("se"), 10, 64)
	given, err2 := hex.DecodeString(q.Get("sig"))
	if err != nil || err2 != nil || k.now().Unix() > end ||
		!hmac.Equal(given, k.keys.mac(pathStorage+"/"+session+"/"+document+"?"+q.Get("se"))) {
		http.Error(w, "the address is not valid, or not any more", http.StatusForbidden)
		return "", "", false
	}
	return session, document, true
}

// download serves the addresses that storageURL makes.
func (k *double) download(w http.ResponseWriter, r *http.Request) {
	session, document, ok := k.signedFor(w, r)
	if !ok {
		return
	}
	if part := k.exportPart(session, document); part != nil {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(part) // a caller that left asks again
		return
	}
	var s sessionRecord
	var rec invoiceRecord
	var known, one bool
	k.desk.Read(func(b *authority.Book) {
		known = b.Load("session/"+session, &s)
		one = b.Load("invoice/"+document, &rec) && rec.Session == session && rec.KSeF != ""
	})
	recs := []invoiceRecord{rec}
	if !one {
		recs = k.confirmedOf(session)
	}
	if !known || !one && document != s.UPO || len(recs) == 0 {
		http.NotFound(w, r)
		return
	}
	sendXML(w, k.writeUPO(s, recs...))
}

// writeUPO writes a confirmation of receipt, UPO 4.3: of one invoice, or of all
// of a session on one page. The test environment puts its own name in place of
// the Ministry's, which the schema does not foresee: here the schema counts.
func (k *double) writeUPO(s sessionRecord, recs ...invoiceRecord) []byte {
	w := xmltree.NewWriter(1<<10 + len(recs)<<9)
	w.Declare()
	w.Start("Potwierdzenie", "xmlns", spaceUPO)
	w.Leaf("NazwaPodmiotuPrzyjmujacego", "Ministerstwo Finansów")
	w.Leaf("NumerReferencyjnySesji", recs[0].Session)
	w.Start("Uwierzytelnienie")
	w.Start("IdKontekstu")
	w.Leaf("Nip", s.NIP)
	w.End()
	w.Leaf("SkrotDokumentuUwierzytelniajacego", s.Document)
	w.End()
	w.Leaf("NazwaStrukturyLogicznej", "Schemat_FA(3)_v1-0E.xsd")
	w.Leaf("KodFormularza", ksefwire.SystemCode)
	for _, rec := range recs {
		hash, _ := hex.DecodeString(rec.Hash)
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
	}
	w.End()
	return w.Bytes()
}

const (
	spaceUPO    = "http://upo.schematy.mf.gov.pl/KSeF/v4-3"
	instantForm = "2006-01-02T15:04:05.000-07:00"
)
