package ksef

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
)

// sessionRecord is a session in the book.
type sessionRecord struct {
	NIP      string    `json:"nip"`
	Key      []byte    `json:"key"`
	IV       []byte    `json:"iv"`
	Created  time.Time `json:"created"`
	Until    time.Time `json:"until"`
	Closed   bool      `json:"closed,omitempty"`
	Document string    `json:"document"` // hash of what authenticated
	Updated  time.Time `json:"updated,omitzero"`
	UPO      string    `json:"upo,omitempty"` // reference of the confirmation of the whole session

	Batch *batchRecord `json:"batch,omitempty"` // nil: an interactive session
}

// tally is how many invoices came in a session and what became of them.
type tally struct {
	Sent int `json:"sent"`
	Good int `json:"good"`
	Bad  int `json:"bad"`
}

func tallyOf(b *authority.Book, session string) (t tally) {
	b.Load("tally/"+session, &t)
	return t
}

// note counts an invoice that was decided.
func (t *tally) note(s ksefwire.Status) {
	switch {
	case s.Code == ksefwire.StatusSuccess:
		t.Good++
	case s.Code > ksefwire.StatusSuccess:
		t.Bad++
	}
}

// over reports whether a session takes nothing more.
func (s sessionRecord) over(now time.Time) bool { return s.Closed || !now.Before(s.Until) }

// state is the session's status at an instant. One that is closed is processed
// as soon as each of its invoices is decided.
func (s sessionRecord) state(now time.Time, t tally) ksefwire.Status {
	if s.Batch != nil {
		return s.batchState(now, t)
	}
	switch {
	case !s.over(now):
		return ksefwire.Status{Code: 100, Description: "Sesja interaktywna otwarta"}
	case t.Sent == 0:
		return ksefwire.Status{Code: 440, Description: "Sesja anulowana", Details: []string{"Nie przesłano faktur"}}
	case t.Good+t.Bad < t.Sent:
		return ksefwire.Status{Code: 170, Description: "Sesja interaktywna zamknięta"}
	case t.Good == 0:
		return ksefwire.Status{Code: 445, Description: "Błąd weryfikacji, brak poprawnych faktur"}
	}
	return ksefwire.Status{Code: ksefwire.StatusSuccess, Description: "Sesja interaktywna przetworzona pomyślnie"}
}

// openSession serves POST /sessions/online.
func (k *double) openSession(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	var in ksefwire.SessionRequest
	if !readJSON(w, r, &in) {
		return
	}
	key, no := k.keyOf(in.FormCode, in.Encryption)
	if no != nil {
		refuse(w, r, http.StatusBadRequest, *no)
		return
	}
	now := k.now()
	s := sessionRecord{NIP: c.NIP, Key: key, IV: in.Encryption.IV, Created: now.UTC(), Until: now.Add(k.session).UTC(),
		Document: c.Document, UPO: k.access.newReference("EU")}
	reference := k.access.newReference("SO")
	if k.desk.Write(func(b *authority.Book) { begin(b, reference, s) }) != nil {
		broken(w)
		return
	}
	writeJSON(w, http.StatusCreated, ksefwire.TypeJSON,
		ksefwire.SessionResponse{ReferenceNumber: reference, ValidUntil: s.Until})
}

// begin writes a new session into the book.
func begin(b *authority.Book, reference string, s sessionRecord) {
	b.Keep("session/"+reference, s)
	all, _ := b.Get("sessions/" + s.NIP)
	b.Put("sessions/"+s.NIP, strings.TrimSpace(all+" "+reference))
}

// keyOf reads what every session is opened with: the form of its invoices and
// the key that they are encrypted under.
func (k *double) keyOf(form ksefwire.FormCode, e ksefwire.Encryption) ([]byte, *ksefwire.ProblemError) {
	if form != fa3() {
		no := invalidInput("formCode is not that of FA (3)")
		return nil, &no
	}
	return k.sessionKey(e)
}

// sessionKey reads the key of a session or of a package.
func (k *double) sessionKey(e ksefwire.Encryption) ([]byte, *ksefwire.ProblemError) {
	if e.PublicKeyID != "" && e.PublicKeyID != k.keys.keyID() {
		no := unknownKey(e.PublicKeyID)
		return nil, &no
	}
	key, err := rsa.DecryptOAEP(sha256.New(), nil, k.keys.key, e.Key, nil)
	if err != nil || len(key) != 32 || len(e.IV) != aes.BlockSize {
		no := invalidInput("encryption is no key of 32 bytes with an initialization vector of 16")
		return nil, &no
	}
	return key, nil
}

// ownSession finds a session of the caller; another's is unknown to it.
func (k *double) ownSession(w http.ResponseWriter, r *http.Request, nip string) (string, sessionRecord, bool) {
	reference := r.PathValue("session")
	s, ok := k.sessionAt(reference)
	if !ok || s.NIP != nip {
		unknownSession(w, r, reference)
		return "", s, false
	}
	return reference, s, true
}

// ownSessionOf is ownSession of one type: another's is unknown where sessions of
// the one are opened, filled and closed.
func (k *double) ownSessionOf(w http.ResponseWriter, r *http.Request, nip string, batch bool) (string, sessionRecord, bool) {
	reference := r.PathValue("session")
	s, ok := k.sessionAt(reference)
	if !ok || s.NIP != nip || (s.Batch != nil) != batch {
		unknownSession(w, r, reference)
		return "", s, false
	}
	return reference, s, true
}

func (k *double) sessionAt(reference string) (s sessionRecord, ok bool) {
	k.desk.Read(func(b *authority.Book) { ok = b.Load("session/"+reference, &s) })
	return s, ok
}

func unknownSession(w http.ResponseWriter, r *http.Request, reference string) {
	refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeSessionUnknown,
		Description: "Brak sesji o wskazanym numerze referencyjnym.",
		Details:     []string{"Sesja o numerze referencyjnym " + reference + " nie została odnaleziona."}})
}

// closeSession serves POST /sessions/online/{session}/close.
func (k *double) closeSession(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	reference, s, ok := k.ownSessionOf(w, r, c.NIP, false)
	if !ok {
		return
	}
	if s.over(k.now()) {
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeSessionState,
			Description: "Status sesji nie pozwala na wykonanie operacji.",
			Details:     []string{"Status sesji 170 uniemożliwia jej zamknięcie."}})
		return
	}
	s.Closed, s.Updated = true, k.now().UTC()
	if k.desk.Write(func(b *authority.Book) { b.Keep("session/"+reference, s) }) != nil {
		broken(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// asked serves a call that asks and changes nothing: it authenticates, takes
// the script's turn and answers as JSON.
func (a *access) asked(w http.ResponseWriter, r *http.Request, answer func(claims) (any, bool)) {
	c, ok := a.caller(w, r, "access")
	if !ok {
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	out, ok := answer(c)
	if ok && turn.End(w, r) {
		writeJSON(w, http.StatusOK, ksefwire.TypeJSON, out)
	}
}

// busy is how KSeF is unavailable: with a wait it has a limit of calls and
// says so; without one a gateway answers in its place.
func busy(r *http.Request, wait time.Duration) func(http.ResponseWriter) {
	if wait <= 0 {
		return nil
	}
	return func(w http.ResponseWriter) {
		seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
		w.Header().Set("Retry-After", seconds)
		refuse(w, r, http.StatusTooManyRequests,
			ksefwire.ProblemError{Description: "Przekroczono limit żądań. Spróbuj ponownie po " + seconds + " sekundach."})
	}
}

// takeInvoice serves POST /sessions/online/{session}/invoices.
func (k *double) takeInvoice(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	reference, s, ok := k.ownSessionOf(w, r, c.NIP, false)
	if !ok {
		return
	}
	var in struct {
		ksefwire.InvoiceRequest
		Corrected []byte `json:"hashOfCorrectedInvoice"`
	}
	if !readJSON(w, r, &in) {
		return
	}
	if no := k.refusalOf(reference, s, &in.InvoiceRequest); no != nil {
		refuse(w, r, http.StatusBadRequest, *no)
		return
	}
	arrived := k.open(s, &in.InvoiceRequest)
	turn := k.desk.Turn(authority.Arrival{Supplier: c.NIP, Number: arrived.number})
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	invoice := k.access.newReference("EE")
	arrived.session, arrived.reference = reference, invoice
	if k.desk.Write(func(b *authority.Book) { k.take(b, arrived, turn.Steps[0]) }) != nil {
		broken(w)
		return
	}
	if turn.End(w, r) {
		writeJSON(w, http.StatusAccepted, ksefwire.TypeJSON, ksefwire.InvoiceResponse{ReferenceNumber: invoice})
	}
}

// refusalOf finds why a call is refused before its invoice is looked at.
func (k *double) refusalOf(reference string, s sessionRecord, in *ksefwire.InvoiceRequest) *ksefwire.ProblemError {
	if s.over(k.now()) {
		return &ksefwire.ProblemError{Code: ksefwire.CodeSessionState,
			Description: "Status sesji nie pozwala na wykonanie operacji.",
			Details:     []string{"Status sesji 170 uniemożliwia wysyłkę faktur."}}
	}
	sent := 0
	k.desk.Read(func(b *authority.Book) { sent = tallyOf(b, reference).Sent })
	if sent >= ksefwire.SessionInvoicesMax {
		return &ksefwire.ProblemError{Code: ksefwire.CodeSessionFull,
			Description: "Przekroczono dozwoloną liczbę faktur w sesji.",
			Details: []string{fmt.Sprintf("Sesja o numerze referencyjnym %s osiągnęła dozwolony limit liczby faktur %d.",
				reference, ksefwire.SessionInvoicesMax)}}
	}
	if len(in.Hash) != sha256.Size || len(in.EncryptedHash) != sha256.Size || in.Size < 1 || in.EncryptedSize < 1 ||
		len(in.Content) == 0 {
		no := invalidInput("hashes, sizes and content are required")
		return &no
	}
	if int64(len(in.Content)) != in.EncryptedSize {
		return &ksefwire.ProblemError{Code: ksefwire.CodeSize, Description: "Nieprawidłowy rozmiar pliku.",
			Details: []string{"Długość treści nie zgadza się z rozmiarem pliku."}}
	}
	if sum := sha256.Sum256(in.Content); string(sum[:]) != string(in.EncryptedHash) {
		return &ksefwire.ProblemError{Code: ksefwire.CodeHash, Description: "Nieprawidłowy skrót pliku.",
			Details: []string{"Skrót treści nie zgadza się ze skrótem pliku."}}
	}
	return nil
}

// unsealed decrypts an invoice and takes its padding off.
func unsealed(content, key, iv []byte) ([]byte, bool) {
	block, err := aes.NewCipher(key)
	if err != nil || len(content) == 0 || len(content)%aes.BlockSize != 0 {
		return nil, false
	}
	out := make([]byte, len(content))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, content)
	padding := int(out[len(out)-1])
	if padding < 1 || padding > aes.BlockSize || padding > len(out) {
		return nil, false
	}
	for _, b := range out[len(out)-padding:] {
		if int(b) != padding {
			return nil, false
		}
	}
	return out[:len(out)-padding], true
}
