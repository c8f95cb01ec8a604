package ksef

import (
	"archive/zip"
	"bytes"
	"crypto/aes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
)

// batchRecord is what only a batch session has: its package as it was declared
// and, once it was looked at, why nothing of it was taken.
type batchRecord struct {
	File    ksefwire.BatchFile `json:"file"`
	Offline bool               `json:"offline,omitempty"`
	Failed  *ksefwire.Status   `json:"failed,omitempty"`
}

const headerBlob = "x-ms-blob-type"

// batchReference is in the reference of every batch session.
const batchReference = "-SB-"

func isBatch(reference string) bool { return strings.Contains(reference, batchReference) }

func partKey(session string, ordinal int) string {
	return "part/" + session + "/" + strconv.Itoa(ordinal)
}

// batchState is the status of a batch session at an instant.
func (s sessionRecord) batchState(now time.Time, t tally) ksefwire.Status {
	switch {
	case !s.Closed && now.Before(s.Until):
		return ksefwire.Status{Code: ksefwire.SessionOpen, Description: "Sesja wsadowa rozpoczęta"}
	case !s.Closed:
		return ksefwire.Status{Code: ksefwire.SessionCancelled, Description: "Sesja anulowana",
			Details: []string{"Przekroczono czas wysyłki"}}
	case s.Batch.Failed != nil:
		return *s.Batch.Failed
	case t.Sent == 0:
		return ksefwire.Status{Code: ksefwire.SessionCancelled, Description: "Sesja anulowana",
			Details: []string{"Nie przesłano faktur"}}
	case t.Good+t.Bad < t.Sent:
		return ksefwire.Status{Code: ksefwire.StatusProcessing, Description: "Trwa przetwarzanie"}
	case t.Good == 0:
		return ksefwire.Status{Code: ksefwire.SessionNoneGood, Description: "Błąd weryfikacji, brak poprawnych faktur"}
	}
	return ksefwire.Status{Code: ksefwire.StatusSuccess, Description: "Sesja wsadowa przetworzona pomyślnie"}
}

// openBatch serves POST /sessions/batch.
func (k *double) openBatch(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	var in ksefwire.BatchRequest
	if !readJSON(w, r, &in) {
		return
	}
	if no := wrongPackage(in.File); no != nil {
		refuse(w, r, http.StatusBadRequest, *no)
		return
	}
	key, no := k.keyOf(in.FormCode, in.Encryption)
	if no != nil {
		refuse(w, r, http.StatusBadRequest, *no)
		return
	}
	now := k.now()
	until := now.Add(time.Duration(len(in.File.Parts)) * ksefwire.PartMinutes * time.Minute).UTC()
	s := sessionRecord{NIP: c.NIP, Key: key, IV: in.Encryption.IV, Created: now.UTC(), Until: until, Document: c.Document,
		UPO:   k.access.newReference("EU"),
		Batch: &batchRecord{File: in.File, Offline: in.Offline}}
	reference := k.access.newReference("SB")
	if k.desk.Write(func(b *authority.Book) { begin(b, reference, s) }) != nil {
		broken(w)
		return
	}
	out := ksefwire.BatchResponse{ReferenceNumber: reference, Uploads: []ksefwire.PartUpload{}}
	for _, p := range in.File.Parts {
		out.Uploads = append(out.Uploads, ksefwire.PartUpload{
			Ordinal: p.Ordinal, Method: http.MethodPut, URL: k.storageURL(r, reference, partName(p.Ordinal), until),
			Headers: map[string]string{headerBlob: "BlockBlob"},
		})
	}
	writeJSON(w, http.StatusCreated, ksefwire.TypeJSON, out)
}

func partName(ordinal int) string { return "batch-part-" + strconv.Itoa(ordinal) }

// wrongPackage finds what is wrong with a package as it is declared.
func wrongPackage(f ksefwire.BatchFile) *ksefwire.ProblemError {
	flaw := func(code int, description, detail string) *ksefwire.ProblemError {
		return &ksefwire.ProblemError{Code: code, Description: description, Details: []string{detail}}
	}
	var encrypted int64
	switch {
	case len(f.Parts) > ksefwire.PartsMax:
		return flaw(ksefwire.CodePartCount, "Przekroczono dozwoloną liczbę części pakietu.",
			fmt.Sprintf("Liczba części %d przekracza %d.", len(f.Parts), ksefwire.PartsMax))
	case f.Size < 1 || f.Size > ksefwire.PackageBytesMax || len(f.Hash) != sha256.Size || len(f.Parts) == 0:
		no := invalidInput("batchFile: rozmiar, skrót lub części pakietu są nieprawidłowe.")
		return &no
	case f.Compression != "" && f.Compression != "Zip":
		no := invalidInput("compressionType: ten sobowtór przyjmuje Zip.")
		return &no
	}
	for i, p := range f.Parts {
		if p.Ordinal != i+1 || len(p.Hash) != sha256.Size {
			no := invalidInput(fmt.Sprintf("fileParts: część %d ma nieprawidłowy numer lub skrót.", i+1))
			return &no
		}
		if p.Size < aes.BlockSize || p.Size%aes.BlockSize != 0 || p.Size > ksefwire.PartBytesMax+aes.BlockSize {
			return flaw(ksefwire.CodePartSize, "Nieprawidłowy rozmiar części pakietu.",
				fmt.Sprintf("Rozmiar części %d: %d.", p.Ordinal, p.Size))
		}
		encrypted += p.Size
	}
	if n := int64(len(f.Parts)); encrypted < f.Size+n || encrypted > f.Size+n*aes.BlockSize {
		return flaw(ksefwire.CodePartSize, "Nieprawidłowy rozmiar części pakietu.",
			fmt.Sprintf("Części mają %d bajtów, pakiet %d.", encrypted, f.Size))
	}
	return nil
}

// takePart serves the addresses at which parts are brought: signed, for a while,
// and for nobody who shows a token there.
func (k *double) takePart(w http.ResponseWriter, r *http.Request) {
	reference, document, ok := k.signedFor(w, r)
	if !ok {
		return
	}
	ordinal, err := strconv.Atoi(strings.TrimPrefix(document, "batch-part-"))
	s, known := k.sessionAt(reference)
	if err != nil || !known || s.Batch == nil || ordinal < 1 || ordinal > len(s.Batch.File.Parts) {
		http.NotFound(w, r)
		return
	}
	if s.over(k.now()) {
		http.Error(w, "the session takes nothing more", http.StatusForbidden)
		return
	}
	if r.Header.Get("Authorization") != "" || r.Header.Get(headerBlob) != "BlockBlob" {
		http.Error(w, "an access token, or no "+headerBlob, http.StatusBadRequest)
		return
	}
	part, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ksefwire.PartBytesMax+aes.BlockSize))
	if err != nil {
		http.Error(w, "the part is too large", http.StatusBadRequest)
		return
	}
	turn := k.desk.QueryTurn()
	if !turn.Begin(w, nil) {
		return
	}
	if k.desk.Write(func(b *authority.Book) {
		b.Put(partKey(reference, ordinal), base64.StdEncoding.EncodeToString(part))
	}) != nil {
		broken(w)
		return
	}
	if turn.End(w, r) {
		w.WriteHeader(http.StatusCreated)
	}
}

// closeBatch serves POST /sessions/batch/{session}/close: from here on the
// package is looked at.
func (k *double) closeBatch(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	reference, s, ok := k.ownSessionOf(w, r, c.NIP, true)
	if !ok {
		return
	}
	parts, no := k.partsOf(reference, s)
	if no != nil {
		refuse(w, r, http.StatusBadRequest, *no)
		return
	}
	arrived, failed := k.unpack(s, parts)
	docs := make([]authority.Arrival, len(arrived))
	for i, a := range arrived {
		docs[i] = authority.Arrival{Supplier: c.NIP, Number: a.number}
	}
	turn := k.desk.Turn(docs...)
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	var late bool
	err := k.desk.Write(func(b *authority.Book) {
		if late = !b.Load("session/"+reference, &s) || s.Closed; late { // somebody else closed it meanwhile
			return
		}
		s.Closed, s.Updated, s.Batch.Failed = true, k.now().UTC(), failed
		b.Keep("session/"+reference, s)
		for i, a := range arrived {
			a.session, a.reference = reference, k.access.newReference("EE")
			k.take(b, a, turn.Steps[i])
		}
		for i := range parts {
			b.Put(partKey(reference, i+1), "")
		}
	})
	switch {
	case err != nil:
		broken(w)
	case late:
		refuse(w, r, http.StatusBadRequest, closedBatch(ksefwire.StatusProcessing))
	case turn.End(w, r):
		w.WriteHeader(http.StatusNoContent)
	}
}

func closedBatch(code int) ksefwire.ProblemError {
	return ksefwire.ProblemError{Code: ksefwire.CodeSessionState, Description: "Status sesji nie pozwala na wykonanie operacji.",
		Details: []string{fmt.Sprintf("Status sesji %d uniemożliwia jej zamknięcie.", code)}}
}

// partsOf collects what was brought, or says why the session cannot be closed.
func (k *double) partsOf(reference string, s sessionRecord) ([][]byte, *ksefwire.ProblemError) {
	var t tally
	k.desk.Read(func(b *authority.Book) { t = tallyOf(b, reference) })
	if s.Closed {
		no := closedBatch(s.batchState(k.now(), t).Code)
		return nil, &no
	}
	if s.over(k.now()) {
		return nil, &ksefwire.ProblemError{Code: ksefwire.CodeUploadTime,
			Description: "Czas oczekiwania na requesty upload lub finish został przekroczony.",
			Details:     []string{"Sesja anulowana, przekroczono czas wysyłki."}}
	}
	var parts [][]byte
	for _, p := range s.Batch.File.Parts {
		var text string
		k.desk.Read(func(b *authority.Book) { text, _ = b.Get(partKey(reference, p.Ordinal)) })
		part, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(part) == 0 {
			return nil, &ksefwire.ProblemError{Code: ksefwire.CodePackageEmpty, Description: "Pakiet nie może być pusty.",
				Details: []string{fmt.Sprintf("Nie przesłano zadeklarowanej '%d' części pliku.", p.Ordinal)}}
		}
		if int64(len(part)) != p.Size {
			return nil, &ksefwire.ProblemError{Code: ksefwire.CodePartSize,
				Description: "Nieprawidłowy rozmiar części pakietu.",
				Details:     []string{fmt.Sprintf("Zadeklarowany rozmiar części '%d' nie zgadza się z rzeczywistym.", p.Ordinal)}}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// unpack decrypts and opens a package: its invoices, or why the session failed
// as a whole.
func (k *double) unpack(s sessionRecord, parts [][]byte) ([]*arrival, *ksefwire.Status) {
	wrongParts := &ksefwire.Status{Code: ksefwire.SessionParts,
		Description: "Błąd weryfikacji poprawności dostarczonych elementów paczki"}
	var file []byte
	for i, part := range parts {
		sum := sha256.Sum256(part)
		if !bytes.Equal(sum[:], s.Batch.File.Parts[i].Hash) {
			return nil, wrongParts
		}
		text, ok := unsealed(part, s.Key, s.IV)
		if !ok {
			return nil, &ksefwire.Status{Code: ksefwire.SessionDecryption,
				Description: "Błąd odszyfrowania zaszyfrowanych części archiwum"}
		}
		if len(text) > ksefwire.PartBytesMax {
			return nil, wrongParts
		}
		file = append(file, text...)
	}
	if sum := sha256.Sum256(file); int64(len(file)) != s.Batch.File.Size || !bytes.Equal(sum[:], s.Batch.File.Hash) {
		return nil, wrongParts
	}
	wrongArchive := &ksefwire.Status{Code: ksefwire.SessionArchive, Description: "Błąd dekompresji pierwotnego archiwum"}
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, wrongArchive
	}
	if len(z.File) > ksefwire.SessionInvoicesMax {
		return nil, &ksefwire.Status{Code: ksefwire.SessionTooMany, Description: "Przekroczony limit faktur w sesji"}
	}
	var arrived []*arrival
	for _, entry := range z.File {
		if entry.FileInfo().IsDir() {
			continue
		}
		text, err := readEntry(entry)
		if err != nil || len(entry.Name) > 128 {
			return nil, wrongArchive
		}
		sum := sha256.Sum256(text)
		// An invoice of a package came when its session was opened (ksef-docs,
		// automatyczne-okreslanie-trybu-offline.md).
		a := &arrival{nip: s.NIP, hash: hex.EncodeToString(sum[:]), size: int64(len(text)), at: s.Created,
			offline: s.Batch.Offline, file: entry.Name}
		arrived = append(arrived, k.read(a, text))
	}
	return arrived, nil
}

// readEntry reads one file of a package, and no more of it than an invoice can
// have: one that is larger is refused for its size.
func readEntry(entry *zip.File) ([]byte, error) {
	in, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // only read
	return io.ReadAll(io.LimitReader(in, ksefwire.DocumentBytesMax+1))
}
