package wire

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
	"slices"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
)

// Client is the sender's side of KSeF: all of a channel but the making of documents.
type Client struct {
	// What a test may set before the first call.
	Now        func() time.Time
	Rest       func(context.Context, time.Duration) error
	PartMax    int   // bytes of a part of a package, before it is encrypted
	SessionMax int   // invoices of one interactive session
	PieceMax   int64 // bytes of a package of received invoices

	at         country.Endpoint
	base       string // with the API's version
	qr         string
	zone       *time.Location
	identities *identity.Keeper
	keys       keyring
	hands      hands

	mu       sync.Mutex
	accounts map[[sha256.Size]byte]*account
}

// Connect answers the wire to the KSeF behind an endpoint; zone is KSeF's own,
// in which days are compared and numbers dated.
func Connect(at country.Endpoint, zone *time.Location) (*Client, error) {
	base, err := at.Base(ksefwire.Version)
	if err != nil {
		return nil, err
	}
	return &Client{
		Now: time.Now, Rest: rest, PartMax: ksefwire.PartBytesMax, SessionMax: ksefwire.SessionInvoicesMax, PieceMax: pieceBytesMax,
		at: at, base: base, qr: QRBase(at), zone: zone, identities: identity.NewKeeper(),
		accounts: map[[sha256.Size]byte]*account{},
	}, nil
}

// sendMax is how many invoices one visit may bring: those of a batch session.
const sendMax = 1000

// Limits are KSeF's: in any order, one by one or many together, see Send.
func (ch *Client) Limits() country.Limits {
	l := country.Limits{
		Batch: sendMax, Parallel: 4, Class: country.ByNumber, CallTimeout: time.Minute,
		PollEvery: time.Second, PendingMax: 24 * time.Hour,
	}
	if ch.at.Real() {
		l.VisibleAfter = visibleAfter // KSeF itself; a double shows at once what it took
	}
	return l
}

// visibleAfter is how late KSeF shows an invoice that it took.
const visibleAfter = 10 * time.Minute

// load are filings of one call that go the same way: through one account, and
// all of them declared offline or none.
type load struct {
	visit   visit
	offline bool
	filings []country.Filing
	extras  []Extra
	places  []int // in the call
}

// Send files invoices: a few one by one in the account's interactive session, a
// queue that is longer than KSeF's limits allow in a batch session.
//
// Failure policy: an error speaks of the whole call. Once something was taken,
// each filing has a receipt of its own: without an outcome where the answer was
// lost, NotTaken where nothing was tried any more.
func (ch *Client) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	loads, err := ch.loads(filings, c)
	if err != nil {
		return nil, err
	}
	receipts := make([]country.Receipt, len(filings))
	for i, l := range loads {
		err := l.send(ctx, receipts)
		switch {
		case err == nil:
			continue
		case i == 0 && (len(filings) == 1 || errors.Is(err, country.ErrNotTaken)):
			return nil, fmt.Errorf("filing %s: %w", filings[0].Number, err)
		case errors.Is(err, country.ErrNotTaken):
			l.leaveOut(receipts, 0, 0)
		}
	}
	return receipts, nil
}

// loads sorts filings by the way they go, in their order.
func (ch *Client) loads(filings []country.Filing, c country.Credentials) ([]*load, error) {
	var all []*load
	today := ch.Now().In(ch.zone).Format(time.DateOnly)
	for i, f := range filings {
		x, a, err := ch.open(f, c)
		if err != nil {
			return nil, fmt.Errorf("filing %s: %w", f.Number, err)
		}
		at := slices.IndexFunc(all, func(l *load) bool { return l.visit.account == a.account && l.offline == x.Offline(today) })
		if at < 0 {
			at, all = len(all), append(all, &load{visit: a, offline: x.Offline(today)})
		}
		l := all[at]
		l.filings, l.extras, l.places = append(l.filings, f), append(l.extras, x), append(l.places, i)
	}
	return all, nil
}

// send takes as much of a load to KSeF as its limits allow now. The others wait.
func (l *load) send(ctx context.Context, receipts []country.Receipt) error {
	w := l.visit.way(ctx, len(l.filings))
	if w.batch {
		return l.sendTogether(ctx, receipts)
	}
	l.leaveOut(receipts, w.each, w.wait)
	return l.sendEach(ctx, w.each, receipts)
}

// leaveOut says of all filings but the first that nothing was tried, and when
// it can be.
func (l *load) leaveOut(receipts []country.Receipt, from int, wait time.Duration) {
	for _, place := range l.places[from:] {
		receipts[place] = country.Receipt{Outcome: country.NotTaken, Wait: wait}
	}
}

// sendEach files the first invoices of a load one by one and asks once what
// became of them.
func (l *load) sendEach(ctx context.Context, n int, receipts []country.Receipt) error {
	defer l.visit.account.days.forget()
	for i := range n {
		if err := l.visit.account.ch.Rest(ctx, l.visit.account.pace.step(l.visit.account.ch.Now())); err != nil {
			if i == 0 {
				return unsent(err)
			}
			l.leaveOut(receipts, i, 0)
			break
		}
		r, err := l.visit.submit(ctx, l.filings[i], l.extras[i])
		if err != nil && i == 0 && (len(l.filings) == 1 || errors.Is(err, country.ErrNotTaken)) {
			return err
		}
		receipts[l.places[i]] = r // without an outcome: nobody knows
		if err != nil || r.Outcome == country.NotTaken {
			from := i + 1
			if errors.Is(err, country.ErrNotTaken) {
				from = i
			}
			l.leaveOut(receipts, from, r.Wait)
			break
		}
	}
	for i, place := range l.places[:n] {
		if receipts[place].Outcome != country.Pending {
			continue
		}
		decided, err := l.visit.decision(ctx, l.filings[i], receipts[place].Handle)
		if err == nil { // otherwise it was taken, and Poll asks again
			receipts[place] = l.extras[i].noted(decided)
		}
	}
	return nil
}

// rest waits.
func rest(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open reads what a filing carries and finds the account it goes through.
func (ch *Client) open(f country.Filing, c country.Credentials) (Extra, visit, error) {
	var x Extra
	if err := f.Carried(&x); err != nil {
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
func (a visit) submit(ctx context.Context, f country.Filing, x Extra) (country.Receipt, error) {
	for try := 1; ; try++ {
		s, err := a.seat(ctx)
		if err != nil {
			if _, ok := pause(err); ok {
				return a.paused(err), nil
			}
			return country.Receipt{}, unsent(err)
		}
		var out ksefwire.InvoiceResponse
		req := request{method: http.MethodPost, path: ksefwire.PathOnline + "/" + url.PathEscape(s.reference) + "/invoices",
			want: http.StatusAccepted}
		reply, err := a.authorised(ctx, req, encrypted(f, x, s, a.account.ch.Now().In(a.account.ch.zone).Format(time.DateOnly)), &out)
		if err == nil {
			if len(out.ReferenceNumber) == 0 {
				return country.Receipt{}, errors.New("KSeF gave the invoice no reference number")
			}
			return country.Receipt{
				Outcome: country.Pending, Handle: s.reference + "/" + out.ReferenceNumber, AuthorityID2: out.ReferenceNumber,
				Raw: reply.Body,
			}, nil
		}
		var no *Refusal
		switch {
		case !errors.As(err, &no) || errors.Is(err, country.ErrNotTaken):
			return country.Receipt{}, err
		case no.status == http.StatusTooManyRequests:
			return a.paused(err), nil
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
	var no *Refusal
	if !errors.As(err, &no) || no.status != http.StatusTooManyRequests {
		return country.Receipt{}, false
	}
	return country.Receipt{Outcome: country.NotTaken, Wait: no.Wait}, true
}

// paused is pause for everybody who files in the supplier's name.
func (a visit) paused(err error) country.Receipt {
	r, _ := pause(err)
	a.account.pace.block(a.account.ch.Now(), r.Wait)
	return r
}

func rejected(text string, raw []byte) country.Receipt {
	return country.Receipt{
		Outcome: country.Rejected, Raw: raw,
		Faults: []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "KSeF: " + text}},
	}
}

// encrypted is the body that carries an invoice: AES-256-CBC with PKCS#7
// padding under the session's key, with hashes and sizes of both forms.
func encrypted(f country.Filing, x Extra, s session, today string) ksefwire.InvoiceRequest {
	content := Seal(f.Report, s.key, s.iv)
	plain, hidden := sha256.Sum256(f.Report), sha256.Sum256(content)
	return ksefwire.InvoiceRequest{
		Hash: plain[:], Size: int64(len(f.Report)),
		EncryptedHash: hidden[:], EncryptedSize: int64(len(content)),
		Content: content, Offline: x.Offline(today),
	}
}

// Seal encrypts with AES-256-CBC under a session's key.
func Seal(text, key, iv []byte) []byte {
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
func (ch *Client) Poll(ctx context.Context, f country.Filing, last country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	x, a, err := ch.open(f, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	r, err := a.decision(ctx, f, last.Handle)
	if _, ok := pause(err); ok {
		return country.Receipt{Outcome: country.Pending, Handle: last.Handle, Wait: a.paused(err).Wait}, nil
	}
	if err == nil && r.Outcome == country.NotTaken && strings.HasPrefix(last.Handle, batchPrefix) {
		return r, nil // with all others of its session: they go again together
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
	var no *Refusal
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
	if reference, ok := strings.CutPrefix(handle, batchPrefix); ok {
		return a.batchDecision(ctx, f, reference)
	}
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
	state.ReferenceNumber = invoiceRef
	return a.decided(ctx, f, country.Receipt{AuthorityID2: invoiceRef, Raw: reply.Body, Handle: handle}, said{state, sessionRef})
}

// said is what KSeF says of an invoice of a session.
type said struct {
	ksefwire.InvoiceStatus
	session string
}

// decided reads KSeF's status of an invoice.
func (a visit) decided(ctx context.Context, f country.Filing, r country.Receipt, state said) (country.Receipt, error) {
	switch code := state.Status.Code; {
	case code < ksefwire.StatusSuccess:
		r.Outcome = country.Pending
		return r, nil
	case code == ksefwire.StatusSuccess:
		return a.accepted(ctx, f, r, state)
	case code == ksefwire.StatusDuplicate:
		return a.duplicate(ctx, f, r, state.Status)
	case code == ksefwire.StatusSession, code == ksefwire.StatusDecryption:
		a.leave(state.session)
		return r.Untaken("%s", state.Status.Text()), nil
	case code >= ksefwire.StatusUnknown:
		return r.Untaken("%s", state.Status.Text()), nil
	}
	no := rejected(state.Status.Text(), r.Raw)
	no.AuthorityID2 = state.ReferenceNumber
	return no, nil
}

// accepted completes a receipt with the KSeF number and the UPO. While KSeF
// has not made the UPO yet the invoice counts as in work.
func (a visit) accepted(ctx context.Context, f country.Filing, r country.Receipt, state said) (country.Receipt, error) {
	if !ksefwire.ValidNumber(state.KSeFNumber) {
		return country.Receipt{}, fmt.Errorf("%q is no KSeF number", state.KSeFNumber)
	}
	if got := hex.EncodeToString(state.Hash); got != f.SHA256 {
		return country.Receipt{}, fmt.Errorf("KSeF speaks of another document: %s", got)
	}
	upo, err := a.storedUPO(ctx, state)
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
	reply, err := a.authorised(ctx, request{method: http.MethodGet, path: path, want: http.StatusOK, limit: upoBytesMax},
		nil, nil)
	if err != nil {
		return nil, fmt.Errorf("fetching the UPO: %w", err)
	}
	if err := CheckUPO(reply.Body); err != nil {
		return nil, fmt.Errorf("fetching the UPO: %w", err)
	}
	return reply.Body, nil
}
