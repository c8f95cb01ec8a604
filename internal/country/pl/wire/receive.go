package wire

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/ksefwire"
)

// What others send to a taxpayer is got in packages (ksef-docs,
// przyrostowe-pobieranie-faktur.md): KSeF grants 20 of them an hour, of 10,000 invoices
// each, where it grants 64 downloads of one invoice. A package has the invoices that
// were stored for good from an instant on, and says until when it is complete: there the
// next one begins.
//
// Failure policy: a package lives in memory and its invoices are handed on a hundred at
// a time; the mark of the caller moves with them. A process that dies asks for another
// package from the mark on. Whatever of a package is missing, or is not what its
// metadata say, brings nothing of it: an invoice is never gone over.
const (
	pieceBytesMax    = 64 << 20  // of a package; one that is larger is asked for in halves
	handBytesMax     = 128 << 20 // of all packages in memory
	handFor          = 10 * time.Minute
	invoiceBytesMax  = 4 << 20 // unpacked; KSeF takes 1 MB, and 3 MB with attachments
	metadataBytesMax = 32 << 20
	spanMin          = time.Minute // shorter ones are not halved

	exportEvery  = 15 * time.Minute // as ksef-docs advises
	exportAsk    = 2 * time.Second  // between two looks at a package that is made
	exportMargin = 10 * time.Second // of a look's time, kept for what comes after the package
	exportLater  = 20 * time.Second // until a package is looked at again that takes long
)

// hands are the packages of a client in memory.
type hands struct {
	mu    sync.Mutex
	all   map[string]*parcelIn // by company
	bytes int64
}

// parcelIn is a package on its way to a company.
type parcelIn struct {
	begins  string // the cursor of the look that it answers
	touched time.Time
	span    time.Duration // asked for, from the mark on

	reference string
	key, iv   []byte

	file  *zip.Reader // nil: it is not here yet
	size  int64
	list  []entryIn // what is left, oldest first
	end   time.Time // everything before it is in here
	again bool      // there is more behind it
}

// entryIn is an invoice of a package, of its metadata what is needed.
type entryIn struct {
	KSeFNumber  string    `json:"ksefNumber"`
	StorageDate time.Time `json:"permanentStorageDate"`
	Hash        []byte    `json:"invoiceHash"`
}

// Received looks for what others have sent to a company.
func (ch *Client) Received(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	nip := NIP(&in.Supplier)
	mark, err := in.Mark()
	if err != nil {
		return country.Fetched{}, err
	}
	a, err := ch.visit(nip, in.Supplier.Settings.Text(SettingAuth), in.Credentials)
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for invoices to %s: %w", nip, err)
	}
	got, err := a.received(ctx, in, mark)
	if again, ok := pause(err); ok {
		err = &country.Exhausted{Quota: "invoiceExport", Subject: nip, Until: ch.Now().Add(again.Wait)}
	}
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for invoices to %s: %w", nip, classified(err))
	}
	return got, nil
}

func (a visit) received(ctx context.Context, in country.Inquiry, mark country.Mark) (got country.Fetched, err error) {
	ch, whose := a.account.ch, a.account.nip+"/"+in.Supplier.ID
	p, kept := ch.hands.take(whose, in.Cursor, ch.Now()), false
	for span := exportSpan; ; {
		if p == nil {
			if p, err = a.ask(ctx, mark, span); err != nil {
				return got, err
			}
			p.begins = in.Cursor
		}
		got, kept, err = a.work(ctx, in, mark, p)
		if span = p.span / 2; !errors.Is(err, errTooLarge) || span < spanMin {
			break
		}
		ch.hands.release(p)
		p = nil
	}
	if kept {
		p.touched = ch.Now()
		ch.hands.put(whose, p)
	} else {
		ch.hands.release(p)
	}
	return got, err
}

// work goes on with a package; kept says that it is needed again.
func (a visit) work(ctx context.Context, in country.Inquiry, mark country.Mark, p *parcelIn) (got country.Fetched, kept bool, err error) {
	if p.file == nil {
		ready, err := a.bring(ctx, p)
		switch {
		case errors.Is(err, errNothingYet):
			return country.Fetched{Cursor: mark.String(), Wait: a.account.ch.exportPause()}, false, nil
		case err != nil:
			return got, false, err
		case !ready:
			return country.Fetched{Cursor: in.Cursor, Wait: exportLater}, true, nil
		}
	}
	if got, err = p.next(in.Limit); err != nil {
		return country.Fetched{}, false, err
	}
	if len(p.list) > 0 {
		got.More, p.begins = true, got.Cursor
		return got, true, nil
	}
	if p.end.Before(mark.At) {
		p.end = mark.At
	}
	got.Cursor = country.Mark{At: p.end}.String()
	if got.More = p.again && p.end.After(mark.At); !got.More {
		got.Wait = a.account.ch.exportPause()
	}
	return got, false, nil
}

// exportPause is how long nobody looks where nothing more is known.
func (ch *Client) exportPause() time.Duration {
	if ch.at.Real() {
		return exportEvery
	}
	return 0 // a double is asked as often as the pack likes
}

// take takes the package out that answers a look; nil: there is none.
func (h *hands) take(whose, cursor string, now time.Time) *parcelIn {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, held := range h.all {
		if now.Sub(held.touched) > handFor {
			delete(h.all, other)
			h.bytes -= held.size
		}
	}
	p := h.all[whose]
	if p == nil {
		return nil
	}
	delete(h.all, whose)
	if p.begins == cursor {
		return p
	}
	h.bytes -= p.size
	return nil
}

func (h *hands) put(whose string, p *parcelIn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*parcelIn{}
	}
	h.all[whose] = p
}

func (h *hands) release(p *parcelIn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= p.size
}

// room takes the place of a package in memory; false: others have it at this moment.
func (h *hands) room(p *parcelIn, size int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes+size > handBytesMax {
		return false
	}
	h.bytes, p.size = h.bytes+size, size
	return true
}

// exportSpan is the longest time that a package may be of: three months, less a day for
// those that begin in a short one.
const exportSpan = 88 * 24 * time.Hour

var (
	errNothingYet = errors.New("nothing is complete there yet")
	errTooLarge   = errors.New("the package is too large")
)

// ask asks for a package of what was stored from an instant on.
func (a visit) ask(ctx context.Context, mark country.Mark, span time.Duration) (*parcelIn, error) {
	ch := a.account.ch
	p := &parcelIn{end: ch.Now()}
	from := mark.At
	if end := from.Add(span); end.Before(p.end) {
		p.end, p.again = end, true
	}
	p.span = p.end.Sub(from)
	once := func() error {
		s := newSession()
		cipher, keyID, err := ch.encrypt(ctx, ksefwire.UsageSession, s.key)
		if err != nil {
			return err
		}
		to := ""
		if p.again {
			to = p.end.UTC().Format(time.RFC3339Nano)
		}
		p.key, p.iv = s.key, s.iv
		var out ksefwire.ExportResponse
		_, err = a.authorised(ctx, request{method: http.MethodPost, path: ksefwire.PathExports, want: http.StatusCreated},
			ksefwire.ExportRequest{Encryption: ksefwire.Encryption{Key: cipher, IV: s.iv, PublicKeyID: keyID},
				Filters: ksefwire.MetadataRequest{SubjectType: "Subject2", DateRange: ksefwire.DateRange{
					DateType: "PermanentStorage", From: from.UTC().Format(time.RFC3339Nano), To: to, Restrict: true}}}, &out)
		p.reference = out.ReferenceNumber
		return err
	}
	err := once()
	if keyRefused(err) {
		ch.forgetKeys()
		err = once()
	}
	if err == nil && p.reference == "" {
		err = errors.New("KSeF gave the package no reference number")
	}
	return p, err
}

// bring waits for a package as long as there is time, and gets it.
func (a visit) bring(ctx context.Context, p *parcelIn) (ready bool, err error) {
	for {
		var out ksefwire.ExportStatus
		_, err := a.authorised(ctx, request{method: http.MethodGet, path: ksefwire.PathExports + "/" + url.PathEscape(p.reference),
			want: http.StatusOK}, nil, &out)
		if err != nil {
			return false, fmt.Errorf("asking for the package %s: %w", p.reference, err)
		}
		switch {
		case out.Status.Code == ksefwire.StatusSuccess && out.Package != nil:
			return a.unpack(ctx, p, out.Package)
		case out.Status.Code == ksefwire.ExportRange:
			return false, errNothingYet
		case out.Status.Code != ksefwire.ExportWorking:
			return false, fmt.Errorf("the package %s: %s", p.reference, out.Status.Text())
		}
		end, limited := ctx.Deadline()
		if limited && time.Until(end) < exportMargin+exportAsk {
			return false, nil
		}
		if err := a.account.ch.Rest(ctx, exportAsk); err != nil {
			return false, nil // the look's time is over: it goes on with the next one
		}
	}
}

// unpack gets a package, and reads what it says of itself; false: there is no room for it
// at this moment.
func (a visit) unpack(ctx context.Context, p *parcelIn, about *ksefwire.Package) (ready bool, err error) {
	ch := a.account.ch
	switch {
	case about.Truncated && about.LastStorage == nil:
		return false, errors.New("the package is cut, and does not say where")
	case about.Truncated:
		p.end, p.again = *about.LastStorage, true
	case about.HighWater == nil:
		p.end, p.again = time.Time{}, false // nothing is said: it ends with its last invoice
	case about.HighWater.Before(p.end):
		p.end = *about.HighWater
	}
	if about.Count == 0 {
		p.file = &zip.Reader{}
		return true, nil
	}
	var size int64
	for _, part := range about.Parts {
		size += max(part.EncryptedSize, 0)
	}
	if size > ch.PieceMax {
		return false, errTooLarge
	}
	if !ch.hands.room(p, size) {
		return false, nil
	}
	file := make([]byte, 0, size)
	for i, part := range about.Parts {
		if part.Ordinal != i+1 {
			return false, fmt.Errorf("part %d of the package is numbered %d", i+1, part.Ordinal)
		}
		text, err := ch.part(ctx, p, part)
		if err != nil {
			return false, fmt.Errorf("part %d of the package: %w", part.Ordinal, err)
		}
		file = append(file, text...)
	}
	return true, p.read(file, about.Count)
}

// part gets a part without the access token, and decrypts it.
func (ch *Client) part(ctx context.Context, p *parcelIn, part ksefwire.PackagePart) ([]byte, error) {
	if err := ch.storage(part.URL); err != nil {
		return nil, err
	}
	reply, err := country.Request{Method: http.MethodGet, URL: part.URL, BytesMax: pieceBytesMax}.Do(ctx, ch.at.HTTP)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(reply.Body)
	switch {
	case reply.Status != http.StatusOK:
		return nil, fmt.Errorf("the storage answered with status %d", reply.Status)
	case !bytes.Equal(sum[:], part.EncryptedHash):
		return nil, errors.New("it is not what KSeF describes")
	}
	return Unseal(reply.Body, p.key, p.iv)
}

// Unseal decrypts in place what [Seal] has encrypted.
func Unseal(text, key, iv []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 || len(text)%aes.BlockSize != 0 || len(iv) != aes.BlockSize {
		return nil, errors.New("it is not encrypted in blocks")
	}
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(text, text)
	padding := int(text[len(text)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errors.New("it is encrypted under another key")
	}
	return text[:len(text)-padding], nil
}

// read opens the package and sorts what is in it.
func (p *parcelIn) read(file []byte, count int64) error {
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return fmt.Errorf("the package is no ZIP: %w", err)
	}
	text, err := fileOf(z, ksefwire.ExportMetadata, metadataBytesMax)
	if err != nil {
		return err
	}
	var about struct {
		Invoices []entryIn `json:"invoices"`
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return fmt.Errorf("reading the metadata of the package: %w", err)
	}
	if int64(len(about.Invoices)) > count || len(about.Invoices) > ksefwire.ExportInvoicesMax {
		return fmt.Errorf("the package has %d invoices, KSeF said %d", len(about.Invoices), count)
	}
	for _, e := range about.Invoices {
		if !ksefwire.LooksLikeNumber(e.KSeFNumber) || e.StorageDate.IsZero() {
			return fmt.Errorf("the package has an invoice without number or time: %q", e.KSeFNumber)
		}
	}
	slices.SortStableFunc(about.Invoices, func(a, b entryIn) int { return a.StorageDate.Compare(b.StorageDate) })
	if p.file, p.list = z, about.Invoices; p.end.IsZero() && len(p.list) > 0 {
		p.end = p.list[len(p.list)-1].StorageDate
	}
	return nil
}

func fileOf(z *zip.Reader, name string, bytesMax int64) ([]byte, error) {
	in, err := z.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the package lacks %s: %w", name, err)
	}
	defer func() { _ = in.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(in, bytesMax+1))
	if err == nil && int64(len(text)) > bytesMax {
		err = country.ErrBodyTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", name, err)
	}
	return text, nil
}

// next takes the next invoices out of a package.
func (p *parcelIn) next(limit int) (got country.Fetched, err error) {
	size := 0
	for len(p.list) > 0 && len(got.Documents) < limit && size < country.DocumentsBytesMax-invoiceBytesMax {
		e := p.list[0]
		text, err := fileOf(p.file, e.KSeFNumber+".xml", invoiceBytesMax)
		if err != nil {
			return got, err
		}
		if sum := sha256.Sum256(text); !bytes.Equal(sum[:], e.Hash) {
			return got, fmt.Errorf("the invoice %s of the package is not the one that KSeF describes", e.KSeFNumber)
		}
		got.Documents = append(got.Documents, country.Document{AuthorityID: e.KSeFNumber, Format: "XML", Bytes: text})
		got.Cursor = country.Mark{At: e.StorageDate, After: e.KSeFNumber}.String()
		size += len(text)
		p.list = p.list[1:]
	}
	return got, nil
}
