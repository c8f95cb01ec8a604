package ksef

import (
	"archive/zip"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/ksefwire"
)

// exports are packages of invoices that were asked for. They live in memory: a caller
// whose package got lost asks for another.
type exports struct {
	mu  sync.Mutex
	all []*export
}

// exportsKept is how many packages are there at a time, of all taxpayers.
const exportsKept = 32

// export is one package.
type export struct {
	nip, reference string
	at             time.Time
	found          ksefwire.Package
	parts          [][]byte // encrypted
	outside        bool     // its range begins behind what is complete
}

const exportName = "export-part-"

// startExport serves POST /invoices/exports. The package is made at once, and shown
// as ready when it is asked for.
func (k *double) startExport(w http.ResponseWriter, r *http.Request) {
	c, ok := k.access.caller(w, r, "access")
	if !ok {
		return
	}
	var in ksefwire.ExportRequest
	if !readJSON(w, r, &in) {
		return
	}
	f, err := k.listing.readFilter(r, in.Filters)
	if err == nil && in.Compression != "" && in.Compression != "Zip" {
		err = errors.New("compressionType: the double packs Zip only")
	}
	if err != nil {
		refuse(w, r, http.StatusBadRequest, invalidInput(err.Error()))
		return
	}
	key, no := k.sessionKey(in.Encryption)
	if no != nil {
		refuse(w, r, http.StatusBadRequest, *no)
		return
	}
	turn := k.desk.QueryTurn()
	if !turn.Begin(w, busy(r, turn.Wait)) {
		return
	}
	e := &export{nip: c.NIP, reference: k.access.newReference("EH"), at: k.now()}
	if !k.fill(e, f, in, key) {
		broken(w)
		return
	}
	if !k.exports.keep(e) {
		refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeExports,
			Description: "Osiągnięto limit trwających eksportów."})
		return
	}
	if turn.End(w, r) {
		writeJSON(w, http.StatusCreated, ksefwire.TypeJSON, ksefwire.ExportResponse{ReferenceNumber: e.reference})
	}
}

// keep adds a package; the oldest one goes where there are too many. It is false where
// the taxpayer has asked for too many within a second: each is made at once.
func (x *exports) keep(e *export) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	recent := 0
	for _, other := range x.all {
		if other.nip == e.nip && e.at.Sub(other.at) < time.Second {
			recent++
		}
	}
	if recent >= ksefwire.ExportsAtOnce {
		return false
	}
	x.all = append(x.all, e)
	x.all = x.all[max(0, len(x.all)-exportsKept):]
	return true
}

func (x *exports) find(reference string) *export {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.all {
		if e.reference == reference {
			return e
		}
	}
	return nil
}

// fill makes the package of a filter: what is registered when it is asked for is
// complete up to that instant.
func (k *double) fill(e *export, f filter, in ksefwire.ExportRequest, key []byte) bool {
	stored := f.DateRange.DateType == "PermanentStorage"
	if stored {
		mark := highWater(e.at, f.to)
		e.found.HighWater = &mark
		if e.outside = f.DateRange.Restrict && f.from.After(mark); e.outside {
			return true
		}
	}
	all := k.listing.matching(f, e.nip)
	if len(all) > ksefwire.ExportInvoicesMax {
		all = all[:ksefwire.ExportInvoicesMax]
		e.found.Truncated = true
		if last := all[len(all)-1].At.UTC(); stored {
			e.found.LastStorage = &last
		}
	}
	file, ok := k.zipped(all, in.OnlyMetadata)
	if !ok {
		return false
	}
	e.found.Count, e.found.Size = int64(len(all)), int64(len(file))
	for rest := file; len(rest) > 0 && len(all) > 0; {
		n := min(len(rest), ksefwire.ExportPartBytesMax)
		plain, sealed := sha256.Sum256(rest[:n]), sealed(rest[:n], key, in.Encryption.IV)
		sum := sha256.Sum256(sealed)
		e.parts = append(e.parts, sealed)
		e.found.Parts = append(e.found.Parts, ksefwire.PackagePart{Ordinal: len(e.parts),
			Name:   strings.ToLower(e.reference) + "-" + strconv.Itoa(len(e.parts)) + ".zip.aes",
			Method: http.MethodGet, Size: int64(n), Hash: plain[:], EncryptedSize: int64(len(sealed)), EncryptedHash: sum[:]})
		rest = rest[n:]
	}
	return true
}

// highWater is until when what is registered is complete: the book dates by the second.
func highWater(now, to time.Time) time.Time {
	if to.Before(now) {
		now = to
	}
	return now.UTC().Truncate(time.Second)
}

// zipped is the package in the clear; false where the book has not what it registered.
func (k *double) zipped(all []authority.Registration, onlyMetadata bool) ([]byte, bool) {
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	meta := ksefwire.PackageMetadata{Invoices: []ksefwire.Metadata{}}
	for _, held := range all {
		var text string
		var there bool
		k.desk.Read(func(b *authority.Book) {
			reference, _ := b.Get("number/" + held.AuthorityID)
			text, there = b.Get("xml/" + reference)
		})
		if !there {
			continue // planted by a script: nobody has it
		}
		meta.Invoices = append(meta.Invoices, metadataOf(held))
		if onlyMetadata {
			continue
		}
		if !write(z, held.AuthorityID+".xml", unpacked(text)) {
			return nil, false
		}
	}
	list, err := json.Marshal(meta)
	if err != nil || !write(z, ksefwire.ExportMetadata, list) || z.Close() != nil {
		return nil, false
	}
	return file.Bytes(), true
}

func write(z *zip.Writer, name string, text []byte) bool {
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(text)
	}
	return err == nil
}

// sealed is a part under the caller's key.
func sealed(text, key, iv []byte) []byte {
	padding := aes.BlockSize - len(text)%aes.BlockSize
	out := append(bytes.Clone(text), bytes.Repeat([]byte{byte(padding)}, padding)...)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key was looked at when it came
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
	return out
}

// exportStatus serves GET /invoices/exports/{reference}.
func (k *double) exportStatus(w http.ResponseWriter, r *http.Request) {
	k.access.asked(w, r, func(c claims) (any, bool) {
		e := k.exports.find(r.PathValue("reference"))
		if e == nil || e.nip != c.NIP {
			refuse(w, r, http.StatusBadRequest, ksefwire.ProblemError{Code: ksefwire.CodeExportUnknown,
				Description: "Wynik zapytania o podanym identyfikatorze nie istnieje."})
			return nil, false
		}
		done, until := e.at.UTC(), k.now().Add(time.Hour).UTC()
		if e.outside {
			return ksefwire.ExportStatus{Status: ksefwire.Status{Code: ksefwire.ExportRange,
				Description: "Zakres filtrowania wykracza poza dostępny zakres danych"}, Completed: &done}, true
		}
		shown := e.found
		shown.Parts = make([]ksefwire.PackagePart, len(e.found.Parts))
		for i, p := range e.found.Parts {
			p.URL, p.Expires = k.storageURL(r, e.reference, exportName+strconv.Itoa(p.Ordinal), until), until
			shown.Parts[i] = p
		}
		return ksefwire.ExportStatus{Status: ksefwire.Status{Code: ksefwire.StatusSuccess, Description: "Eksport faktur zakończony sukcesem"},
			Completed: &done, Expires: &until, Package: &shown}, true
	})
}

// exportPart answers a part of a package; nil: there is none of the name.
func (k *double) exportPart(reference, document string) []byte {
	text, named := strings.CutPrefix(document, exportName)
	n, err := strconv.Atoi(text)
	e := k.exports.find(reference)
	if !named || err != nil || e == nil || n < 1 || n > len(e.parts) {
		return nil
	}
	return e.parts[n-1]
}
