package wire

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/killpoint"
	"tributary/internal/official/ksefwire"
)

const (
	// batchPrefix begins the handle of an invoice that went in a batch session;
	// the session's reference follows. KSeF lists its invoices by hash.
	batchPrefix = "batch/"

	// batchFresh is how long the state of a session that is not done is believed:
	// a lane asks for each of its invoices in turn.
	batchFresh = 2 * time.Second
	// batchKept is how long the invoices of a session that is done are remembered.
	batchKept = 30 * time.Minute

	listPageSize = 1000 // the largest that the lists of sessions take
	listPagesMax = 10   // of 10,000 invoices, the most that a session has
)

// parcel is a package of invoices, encrypted in parts.
type parcel struct {
	size  int64
	hash  [sha256.Size]byte
	parts [][]byte
}

// pack puts invoices into a ZIP, cuts it and encrypts each part under the
// session's key, as sesja-wsadowa.md of ksef-docs has it.
func pack(filings []country.Filing, s *session, partMax int) (parcel, error) {
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for i, f := range filings {
		w, err := z.Create(fmt.Sprintf("%05d-%s.xml", i+1, f.SHA256))
		if err == nil {
			_, err = w.Write(f.Report)
		}
		if err != nil {
			return parcel{}, fmt.Errorf("packing invoices: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return parcel{}, fmt.Errorf("packing invoices: %w", err)
	}
	p := parcel{size: int64(file.Len()), hash: sha256.Sum256(file.Bytes())}
	for rest := file.Bytes(); len(rest) > 0; {
		n := min(len(rest), partMax)
		p.parts = append(p.parts, Seal(rest[:n], s.key, s.iv))
		rest = rest[n:]
	}
	return p, nil
}

func (p parcel) describe() ksefwire.BatchFile {
	out := ksefwire.BatchFile{Size: p.size, Hash: p.hash[:]}
	for i, part := range p.parts {
		sum := sha256.Sum256(part)
		out.Parts = append(out.Parts, ksefwire.BatchPart{Ordinal: i + 1, Size: int64(len(part)), Hash: sum[:]})
	}
	return out
}

// sendTogether files all invoices of a load in one batch session.
//
// Failure policy: KSeF looks at nothing before the session is closed, so
// whatever fails until then took nothing. From the moment in which closing is
// tried the session's reference says what became of it: the invoices are pending
// under it, whether an answer came or not, and asking closes a session that is
// still open. A process that ends in between finds its invoices in the list of
// sessions, see inBatches.
func (l *load) sendTogether(ctx context.Context, receipts []country.Receipt) error {
	defer l.visit.account.days.forget()
	reference, err := l.upload(ctx)
	if _, ok := pause(err); ok {
		l.leaveOut(receipts, 0, l.visit.paused(err).Wait)
		return nil
	}
	if err != nil {
		return unsent(classified(err))
	}
	killpoint.Reach(killpoint.Uploaded)
	err = l.visit.closeBatch(ctx, reference)
	killpoint.Reach(killpoint.Closed)
	var no *Refusal
	if errors.As(err, &no) && no.has(ksefwire.CodePartSize, ksefwire.CodePackageEmpty, ksefwire.CodeUploadTime,
		ksefwire.CodeSessionUnknown) {
		l.visit.account.pace.spoil(l.visit.account.ch.Now())
		return unsent(err)
	}
	var wait time.Duration
	if _, ok := pause(err); ok {
		wait = l.visit.paused(err).Wait
	}
	for i, place := range l.places {
		receipts[place] = country.Receipt{Outcome: country.Pending, Handle: batchPrefix + reference, AuthorityID2: reference,
			Wait: wait}
		if err != nil {
			continue // Poll asks again
		}
		var decided country.Receipt
		if decided, err = l.visit.batchDecision(ctx, l.filings[i], reference); err == nil {
			receipts[place] = l.extras[i].noted(decided)
		}
	}
	return nil
}

// upload opens a batch session and brings all of its parts.
func (l *load) upload(ctx context.Context) (reference string, err error) {
	s := newSession()
	p, err := pack(l.filings, s, l.visit.account.ch.PartMax)
	if err != nil {
		return "", err
	}
	if len(p.parts) > ksefwire.PartsMax || p.size > ksefwire.PackageBytesMax {
		return "", fmt.Errorf("the package has %d parts and %d bytes", len(p.parts), p.size)
	}
	out, err := l.openBatch(ctx, s, p)
	if keyRefused(err) {
		l.visit.account.ch.forgetKeys()
		out, err = l.openBatch(ctx, s, p)
	}
	if err != nil {
		return "", fmt.Errorf("opening a batch session: %w", err)
	}
	places := map[int]ksefwire.PartUpload{}
	for _, u := range out.Uploads {
		places[u.Ordinal] = u
	}
	for i, part := range p.parts {
		u, ok := places[i+1]
		if !ok {
			return "", fmt.Errorf("KSeF does not say where part %d of %s goes", i+1, out.ReferenceNumber)
		}
		if err := l.visit.account.ch.put(ctx, u, part); err != nil {
			return "", fmt.Errorf("bringing part %d of %s: %w", i+1, out.ReferenceNumber, err)
		}
	}
	return out.ReferenceNumber, nil
}

func (l *load) openBatch(ctx context.Context, s *session, p parcel) (out ksefwire.BatchResponse, err error) {
	cipher, keyID, err := l.visit.account.ch.encrypt(ctx, ksefwire.UsageSession, s.key)
	if err != nil {
		return out, err
	}
	in := ksefwire.BatchRequest{
		FormCode: formCode(), File: p.describe(), Offline: l.offline,
		Encryption: ksefwire.Encryption{Key: cipher, IV: s.iv, PublicKeyID: keyID},
	}
	_, err = l.visit.authorised(ctx, request{method: http.MethodPost, path: ksefwire.PathBatch, want: http.StatusCreated}, in, &out)
	if err == nil && out.ReferenceNumber == "" {
		err = errors.New("KSeF gave the session no reference number")
	}
	return out, err
}

// put brings one part to where KSeF wants it: without the access token, which
// that place has no use for.
func (ch *Client) put(ctx context.Context, u ksefwire.PartUpload, part []byte) error {
	if err := ch.storage(u.URL); err != nil {
		return err
	}
	var head []string
	for name, value := range u.Headers {
		head = append(head, name, value)
	}
	reply, err := country.Request{Method: u.Method, URL: u.URL, Header: head, Body: part,
		BytesMax: answerBytesMax}.Do(ctx, ch.at.HTTP)
	if err != nil {
		return err
	}
	if reply.Status != http.StatusCreated {
		return fmt.Errorf("the storage answered with status %d", reply.Status)
	}
	return nil
}

// storage reports whether an address that KSeF names may be called: one of
// https, or of the very host of a double.
func (ch *Client) storage(address string) error {
	target, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("KSeF names an address that is none: %w", err)
	}
	base, err := url.Parse(ch.base)
	if err != nil {
		return err
	}
	if target.Scheme == "https" || base.Scheme == "http" && target.Scheme == "http" && target.Host == base.Host {
		return nil
	}
	return fmt.Errorf("KSeF names an address that is not called: %s://%s", target.Scheme, target.Host)
}

func (a visit) closeBatch(ctx context.Context, reference string) error {
	_, err := a.authorised(ctx, request{method: http.MethodPost,
		path: ksefwire.PathBatch + "/" + url.PathEscape(reference) + "/close", want: http.StatusNoContent}, nil, nil)
	return err
}

// batches are the batch sessions of an account as KSeF told of them last.
type batches struct {
	mu     sync.Mutex
	known  map[string]*batch // by reference
	listed time.Time         // when they were listed last
	since  time.Time         // and from which day on
	list   []string
}

// batch is one of them.
type batch struct {
	at       time.Time // of the answer
	code     int
	done     bool
	told     map[string]bool                   // invoices, by hash, that were answered with it: each asks again for news
	invoices map[string]ksefwire.InvoiceStatus // by hash, hex; of one that is done
}

// batchDecision asks what became of an invoice of a batch session.
func (a visit) batchDecision(ctx context.Context, f country.Filing, reference string) (country.Receipt, error) {
	b, err := a.batch(ctx, reference, f.SHA256)
	if err != nil {
		return country.Receipt{}, err
	}
	r := country.Receipt{Handle: batchPrefix + reference, AuthorityID2: reference}
	if !b.done {
		r.Outcome = country.Pending
		return r, nil
	}
	state, there := b.invoices[f.SHA256]
	if !there { // the session failed as a whole, or never had it
		return country.Receipt{}.Untaken("the batch session failed as a whole"), nil
	}
	r.AuthorityID2 = state.ReferenceNumber
	return a.decided(ctx, f, r, said{state, reference})
}

// batch answers the state of a batch session, and of one that is done its
// invoices. One that was never closed is closed.
func (a visit) batch(ctx context.Context, reference, hash string) (*batch, error) {
	a.account.batches.mu.Lock()
	defer a.account.batches.mu.Unlock()
	b, err := a.batchLocked(ctx, reference, hash)
	if err != nil || b.code != ksefwire.SessionOpen {
		return b, err
	}
	err = a.closeBatch(ctx, reference)
	var no *Refusal
	if errors.As(err, &no) && no.has(ksefwire.CodePartSize, ksefwire.CodePackageEmpty, ksefwire.CodeUploadTime) {
		b.done = true // nothing of it was ever taken
		return b, nil
	}
	b.at = time.Time{}
	return b, err
}

// batchLocked asks for the state of a batch session unless it is known. The
// lock is held: a lane asks for hundreds of invoices of one session in turn.
func (a visit) batchLocked(ctx context.Context, reference, hash string) (*batch, error) {
	now := a.account.ch.Now()
	if b := a.account.batches.known[reference]; b != nil && (b.done || now.Sub(b.at) < batchFresh && !b.told[hash]) {
		b.told[hash] = true
		return b, nil
	}
	for other, b := range a.account.batches.known {
		if now.Sub(b.at) > batchKept {
			delete(a.account.batches.known, other)
		}
	}
	var state ksefwire.SessionStatus
	if _, err := a.authorised(ctx, request{method: http.MethodGet,
		path: ksefwire.PathSessions + "/" + url.PathEscape(reference), want: http.StatusOK}, nil, &state); err != nil {
		return nil, fmt.Errorf("asking for the session %s: %w", reference, err)
	}
	b := &batch{at: now, code: state.Status.Code, told: map[string]bool{hash: true}}
	switch {
	case b.code == ksefwire.StatusSuccess, b.code == ksefwire.SessionNoneGood:
		var err error
		if b.invoices, err = a.invoicesOf(ctx, reference); err != nil {
			return nil, err
		}
		b.done = true
	case b.code > ksefwire.StatusSuccess:
		b.done = true
		a.account.pace.spoil(now)
	}
	if a.account.batches.known == nil {
		a.account.batches.known = map[string]*batch{}
	}
	a.account.batches.known[reference] = b
	return b, nil
}

// invoicesOf lists a session's invoices by hash. Of equal ones that which is
// registered stands for all.
func (a visit) invoicesOf(ctx context.Context, reference string) (map[string]ksefwire.InvoiceStatus, error) {
	all, next := map[string]ksefwire.InvoiceStatus{}, ""
	for range listPagesMax {
		req := request{method: http.MethodGet, path: ksefwire.PathSessions + "/" + url.PathEscape(reference) + "/invoices",
			query: url.Values{"pageSize": {fmt.Sprint(listPageSize)}}.Encode(), want: http.StatusOK, limit: listBytesMax,
			header: []string{ksefwire.HeaderContinuation, next}}
		var out ksefwire.SessionInvoices
		if _, err := a.authorised(ctx, req, nil, &out); err != nil {
			return nil, fmt.Errorf("listing the invoices of %s: %w", reference, err)
		}
		for _, state := range out.Invoices {
			hash := hex.EncodeToString(state.Hash)
			if before, there := all[hash]; !there || before.Status.Code != ksefwire.StatusSuccess {
				all[hash] = state
			}
		}
		if next = out.Next; next == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("listing the invoices of %s: there is more after %d pages", reference, listPagesMax)
}

// inBatches looks for an invoice in the batch sessions since it was made: after
// a crash nobody knows the one that it went in. It is false where none has it.
func (a visit) inBatches(ctx context.Context, f country.Filing) (country.Receipt, bool, error) {
	a.account.batches.mu.Lock()
	references, err := a.batchesSince(ctx, f.PreparedAt.Add(-time.Minute))
	working := ""
	found := ""
	for i := 0; err == nil && found == "" && i < len(references); i++ {
		var b *batch
		if b, err = a.batchLocked(ctx, references[i], f.SHA256); err != nil {
			break
		}
		switch _, there := b.invoices[f.SHA256]; {
		case there:
			found = references[i]
		case !b.done && b.code != ksefwire.SessionOpen: // one that is open may be left so: nothing of it counts
			working = references[i]
		}
	}
	a.account.batches.mu.Unlock()
	switch {
	case err != nil:
		return country.Receipt{}, false, err
	case found != "":
		r, err := a.batchDecision(ctx, f, found)
		return r, true, err
	case working != "":
		return country.Receipt{}, false, fmt.Errorf(
			"KSeF is at work on the batch session %s and does not show its invoices yet", working)
	}
	return country.Receipt{}, false, nil
}

// batchesSince lists the batch sessions since an instant. The lock is held.
func (a visit) batchesSince(ctx context.Context, since time.Time) ([]string, error) {
	now := a.account.ch.Now()
	if now.Sub(a.account.batches.listed) < batchFresh && !since.Before(a.account.batches.since) {
		return a.account.batches.list, nil
	}
	list, err := a.sessions(ctx, "Batch", since, now.Add(time.Minute))
	if err != nil {
		return nil, err
	}
	a.account.batches.list, a.account.batches.listed, a.account.batches.since = list, now, since
	return list, nil
}

// storedUPO fetches the confirmation of an invoice from KSeF's storage, whose
// addresses are signed and count in no limit; the API gives ten a second.
func (a visit) storedUPO(ctx context.Context, state said) ([]byte, error) {
	path := ksefwire.PathSessions + "/" + url.PathEscape(state.session) + "/invoices/" +
		url.PathEscape(state.ReferenceNumber) + "/upo"
	if state.UPODownloadURL == "" || a.account.ch.storage(state.UPODownloadURL) != nil {
		return a.upo(ctx, path)
	}
	reply, err := country.Request{Method: http.MethodGet, URL: state.UPODownloadURL, BytesMax: upoBytesMax}.Do(ctx, a.account.ch.at.HTTP)
	if err != nil {
		return nil, fmt.Errorf("fetching the UPO: %w", err)
	}
	sum := sha256.Sum256(reply.Body)
	told := strings.TrimSpace(reply.Header.Get(ksefwire.HeaderHash))
	if reply.Status != http.StatusOK || told != "" && told != base64.StdEncoding.EncodeToString(sum[:]) ||
		CheckUPO(reply.Body) != nil {
		return a.upo(ctx, path) // the address has ended, or it is no UPO
	}
	return reply.Body, nil
}
