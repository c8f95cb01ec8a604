package pl

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/microcosm-cc/bluemonday"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
)

// channel is the sender's side of KSeF.
type channel struct {
	at         country.Endpoint
	base       string // with the API's version
	qr         string
	facts      country.Facts
	zone       *time.Location
	plain      *bluemonday.Policy
	identities *identity.Keeper
	keys       keyring
	now        func() time.Time

	mu       sync.Mutex
	accounts map[[sha256.Size]byte]*account
}

func connect(at country.Endpoint) (*channel, error) {
	if at.BaseURL == "" || at.HTTP == nil {
		return nil, country.ErrNoAddress
	}
	base := strings.TrimSuffix(at.BaseURL, "/")
	if !strings.HasSuffix(base, ksefwire.Version) {
		base += ksefwire.Version
	}
	return &channel{
		at: at, base: base, qr: qrBase(at), facts: facts(), zone: warsaw(), plain: bluemonday.StrictPolicy(),
		identities: identity.NewKeeper(), now: time.Now, accounts: map[[sha256.Size]byte]*account{},
	}, nil
}

// Limits are those of an interactive session: one invoice a call, in any order.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{
		Batch: 1, Parallel: 4, Class: country.ByNumber, CallTimeout: time.Minute,
		PollEvery: time.Second, PendingMax: 24 * time.Hour,
	}
	if strings.HasPrefix(ch.at.BaseURL, "https://") {
		l.VisibleAfter = visibleAfter // KSeF itself; a double shows at once what it took
	}
	return l
}

// visibleAfter is how late KSeF shows an invoice that it took.
const visibleAfter = 10 * time.Minute

// Send files one invoice and asks once what became of it.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) == 0 {
		return nil, nil
	}
	if len(filings) > 1 {
		return nil, fmt.Errorf("filing %d invoices: %w: KSeF takes one a call", len(filings), country.ErrNotTaken)
	}
	f := filings[0]
	x, a, err := ch.open(f, c)
	if err != nil {
		return nil, fmt.Errorf("filing %s: %w", f.Number, err)
	}
	r, err := a.submit(ctx, f, x)
	if err != nil {
		return nil, fmt.Errorf("filing %s: %w", f.Number, err)
	}
	if r.Outcome != country.Pending {
		return []country.Receipt{r}, nil
	}
	decided, err := a.decision(ctx, f, r.Handle)
	if err != nil {
		return []country.Receipt{r}, nil // it was taken; Poll will ask again
	}
	return []country.Receipt{x.noted(decided)}, nil
}

// open reads what a filing carries and finds the account it goes through.
func (ch *channel) open(f country.Filing, c country.Credentials) (extra, visit, error) {
	x, err := readExtra(f)
	if err != nil {
		return x, visit{}, unsent(err)
	}
	a, err := ch.visit(f.Supplier, x.Auth, c)
	return x, a, err
}

// submitTries is how many sessions one call may find closed before it gives up.
const submitTries = 3

// submit sends the invoice into the account's session: Pending with a handle,
// Rejected where KSeF refused the call for what it carries, NotTaken where it
// wants to be left alone for a while.
//
// Failure policy: everything before the invoice's own call is repeatable and
// its failure takes nothing. Of the call itself only KSeF's own refusals say
// so; anything else leaves the outcome open.
func (a visit) submit(ctx context.Context, f country.Filing, x extra) (country.Receipt, error) {
	for try := 1; ; try++ {
		s, err := a.seat(ctx)
		if err != nil {
			if r, ok := pause(err); ok {
				return r, nil
			}
			return country.Receipt{}, unsent(err)
		}
		var out ksefwire.InvoiceResponse
		req := request{method: http.MethodPost, path: ksefwire.PathOnline + "/" + url.PathEscape(s.reference) + "/invoices", want: http.StatusAccepted}
		reply, err := a.authorised(ctx, req, encrypted(f, x, s, a.ch.now().In(a.ch.zone).Format(time.DateOnly)), &out)
		if err == nil {
			if len(out.ReferenceNumber) == 0 {
				return country.Receipt{}, errors.New("KSeF gave the invoice no reference number")
			}
			return country.Receipt{
				Outcome: country.Pending, Handle: s.reference + "/" + out.ReferenceNumber, AuthorityID2: out.ReferenceNumber, Raw: reply.Body,
			}, nil
		}
		var no *refusal
		switch {
		case !errors.As(err, &no) || errors.Is(err, country.ErrNotTaken):
			return country.Receipt{}, err
		case no.status == http.StatusTooManyRequests:
			r, _ := pause(err)
			return r, nil
		case no.has(ksefwire.CodeSessionFull, ksefwire.CodeSessionUnknown, ksefwire.CodeSessionState):
			a.leave(s.reference)
			if try == submitTries {
				return country.Receipt{}, unsent(err)
			}
			continue
		case no.status == http.StatusBadRequest:
			return rejected(no.text, reply.Body), nil
		case no.status == http.StatusForbidden:
			return country.Receipt{}, unsent(classified(err))
		}
		return country.Receipt{}, unsent(err)
	}
}

// pause turns KSeF's "too many requests" into a receipt: nothing was taken,
// and nothing more is wanted for a while.
func pause(err error) (country.Receipt, bool) {
	var no *refusal
	if !errors.As(err, &no) || no.status != http.StatusTooManyRequests {
		return country.Receipt{}, false
	}
	return country.Receipt{Outcome: country.NotTaken, Wait: no.wait}, true
}

func rejected(text string, raw []byte) country.Receipt {
	return country.Receipt{
		Outcome: country.Rejected, Raw: raw,
		Faults: []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "KSeF: " + text}},
	}
}

// encrypted is the body that carries an invoice: AES-256-CBC with PKCS#7
// padding under the session's key, with hashes and sizes of both forms.
func encrypted(f country.Filing, x extra, s session, today string) ksefwire.InvoiceRequest {
	content := sealed(f.Report, s.key, s.iv)
	plain, hidden := sha256.Sum256(f.Report), sha256.Sum256(content)
	return ksefwire.InvoiceRequest{
		Hash: plain[:], Size: int64(len(f.Report)),
		EncryptedHash: hidden[:], EncryptedSize: int64(len(content)),
		Content: content, Offline: x.offline(today),
	}
}

func sealed(text, key, iv []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(fmt.Sprintf("making a cipher: %v", err)) // the key has 32 bytes: it was made here
	}
	padding := aes.BlockSize - len(text)%aes.BlockSize
	out := make([]byte, len(text)+padding)
	copy(out, text)
	for i := len(text); i < len(out); i++ {
		out[i] = byte(padding)
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
	return out
}

// Poll asks for the decision. An invoice that KSeF dropped without looking at
// it goes again: KSeF says that it holds nothing, and would call a second copy
// a duplicate.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt, c country.Credentials) (country.Receipt, error) {
	x, a, err := ch.open(f, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	r, err := a.decision(ctx, f, last.Handle)
	if wait, ok := pause(err); ok {
		return country.Receipt{Outcome: country.Pending, Handle: last.Handle, Wait: wait.Wait}, nil
	}
	if lost(err) {
		r, err = a.find(ctx, f, x)
		r.Duplicate = true // whatever is held under the number: hashes decide
	}
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, classified(err))
	}
	if r.Outcome != country.NotTaken && r.Outcome != country.Absent {
		return x.noted(r), nil
	}
	r, err = a.submit(ctx, f, x)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("sending %s again: %w", f.Number, err)
	}
	if r.Outcome == country.NotTaken {
		r.Outcome, r.Handle = country.Pending, last.Handle
	}
	return r, nil
}

// lost reports whether KSeF says that it does not know the session or the
// invoice any more. The invoice is then looked for by its number.
func lost(err error) bool {
	var no *refusal
	return errors.As(err, &no) && no.has(ksefwire.CodeSessionUnknown, ksefwire.CodeInput)
}

// decision asks what became of an invoice and reads KSeF's statuses:
//
//	100, 150   in work
//	200        accepted; the UPO is fetched at once
//	440        a duplicate: what KSeF holds decides
//	405, 435   the session's fault; 500, 550 KSeF's own: nothing was taken
//	others     rejected
func (a visit) decision(ctx context.Context, f country.Filing, handle string) (country.Receipt, error) {
	sessionRef, invoiceRef, ok := strings.Cut(handle, "/")
	if !ok || sessionRef == "" || invoiceRef == "" {
		return country.Receipt{}, fmt.Errorf("the handle %q names no invoice of a session", handle)
	}
	path := ksefwire.PathSessions + "/" + url.PathEscape(sessionRef) + "/invoices/" + url.PathEscape(invoiceRef)
	var state ksefwire.InvoiceStatus
	reply, err := a.authorised(ctx, request{method: http.MethodGet, path: path, want: http.StatusOK}, nil, &state)
	if err != nil {
		return country.Receipt{}, err
	}
	r := country.Receipt{AuthorityID2: invoiceRef, Raw: reply.Body, Handle: handle}
	switch code := state.Status.Code; {
	case code < ksefwire.StatusSuccess:
		r.Outcome = country.Pending
		return r, nil
	case code == ksefwire.StatusSuccess:
		return a.accepted(ctx, f, r, state)
	case code == ksefwire.StatusDuplicate:
		return a.duplicate(ctx, f, r, state.Status)
	case code == ksefwire.StatusSession, code == ksefwire.StatusDecryption:
		a.leave(sessionRef)
		r.Outcome = country.NotTaken
		return r, nil
	case code >= ksefwire.StatusUnknown:
		r.Outcome = country.NotTaken
		return r, nil
	}
	no := rejected(state.Status.Text(), reply.Body)
	no.AuthorityID2 = invoiceRef
	return no, nil
}

// accepted completes a receipt with the KSeF number and the UPO. While KSeF
// has not made the UPO yet the invoice counts as in work.
func (a visit) accepted(ctx context.Context, f country.Filing, r country.Receipt, state ksefwire.InvoiceStatus) (country.Receipt, error) {
	if !ksefwire.ValidNumber(state.KSeFNumber) {
		return country.Receipt{}, fmt.Errorf("%q is no KSeF number", state.KSeFNumber)
	}
	if got := hex.EncodeToString(state.Hash); got != f.SHA256 {
		return country.Receipt{}, fmt.Errorf("KSeF speaks of another document: %s", got)
	}
	sessionRef, invoiceRef, _ := strings.Cut(r.Handle, "/")
	upo, err := a.upo(ctx, ksefwire.PathSessions+"/"+url.PathEscape(sessionRef)+"/invoices/"+url.PathEscape(invoiceRef)+"/upo")
	if err != nil {
		r.Outcome = country.Pending
		return r, nil
	}
	r.Outcome, r.AuthorityID1, r.SHA256 = country.Accepted, state.KSeFNumber, f.SHA256
	r.At = state.InvoicingDate
	if state.AcquisitionDate != nil {
		r.At = *state.AcquisitionDate
	}
	r.Document, r.Format = upo, "XML"
	return r, nil
}

// upo fetches a confirmation of receipt. It is kept as it came: KSeF's own
// examples do not pass KSeF's own schema, so only its shape is looked at.
func (a visit) upo(ctx context.Context, path string) ([]byte, error) {
	reply, err := a.authorised(ctx, request{method: http.MethodGet, path: path, want: http.StatusOK, limit: upoBytesMax}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("fetching the UPO: %w", err)
	}
	if err := checkUPO(reply.Body); err != nil {
		return nil, fmt.Errorf("fetching the UPO: %w", err)
	}
	return reply.Body, nil
}
