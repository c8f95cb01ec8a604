package xx

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/xxwire"
)

// channel is the sender's side of the protocol.
type channel struct {
	at       country.Endpoint
	class    country.Class
	habits   Habits
	platform platform
}

func connect(at country.Endpoint, class country.Class) (*channel, error) {
	if at.Live {
		return nil, country.ErrTestOnly
	}
	if at.BaseURL == "" || at.HTTP == nil {
		return nil, country.ErrNoAddress
	}
	return &channel{at: at, class: class}, nil
}

// Limits are those of the protocol. Only a chained authority needs order.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{
		Batch: xxwire.BatchMax, Parallel: 4, Class: ch.class, CallTimeout: 30 * time.Second,
		PollEvery: time.Second, PendingMax: 72 * time.Hour,
	}
	if ch.class == country.ByChain {
		l.Chain, l.Parallel = true, 1
	}
	return ch.habits.limits(l)
}

func (ch *channel) classOf(s country.Supplier) country.Class {
	if ch.class == country.ByChain {
		return ch.class // a chain is everybody's or nobody's
	}
	switch c := country.Class(s.Settings.Text(settingClass)); c {
	case country.ByNumber, country.ByHash, country.ByKey, country.ByNothing:
		return c
	}
	return ch.class
}

func filingClass(f country.Filing) country.Class { return country.Class(f.Extra) }

// Send files a batch. What does not fit into one call's size is answered as
// not taken: it goes with the next.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) == 0 {
		return nil, nil
	}
	if len(filings) > xxwire.BatchMax {
		return nil, fmt.Errorf("filing %d documents: at most %d go in one call", len(filings), xxwire.BatchMax)
	}
	size := 0
	for i := range filings {
		if filings[i].Supplier != filings[0].Supplier {
			return nil, errors.New("filing documents: a call is signed by one supplier")
		}
		size += len(filings[i].Report) + 1
	}
	body, sent := make([]byte, 0, min(size, xxwire.BatchBytesMax)), 0
	for ; sent < len(filings); sent++ {
		if sent > 0 && len(body)+len(filings[sent].Report)+1 > xxwire.BatchBytesMax {
			break
		}
		body = append(append(body, filings[sent].Report...), '\n')
	}
	key := xxwire.SigningKey(filings[0].Supplier, c.Secret)
	reply, err := ch.call(ctx, request{method: http.MethodPost, path: xxwire.PathDocuments, supplier: filings[0].Supplier,
		body: body}, c)
	if err != nil {
		return nil, err
	}
	receipts, err := readReceipts(reply, key, filings[:sent])
	if err != nil {
		return nil, err
	}
	for range filings[sent:] {
		receipts = append(receipts, country.Receipt{Outcome: country.NotTaken})
	}
	return receipts, nil
}

// readReceipts reads one signed line per filing. A line missing, cut or
// unsigned makes the whole answer unknown: better asked again than believed.
func readReceipts(reply country.Reply, key []byte, filings []country.Filing) ([]country.Receipt, error) {
	wait, err := readWait(reply.Header)
	if err != nil {
		return nil, err
	}
	receipts := make([]country.Receipt, 0, len(filings))
	rest := reply.Body
	for i := range filings {
		line, tail, whole := bytes.Cut(rest, []byte{'\n'})
		if !whole {
			return nil, fmt.Errorf("reading receipt %d of %d: the answer is cut short", i+1, len(filings))
		}
		r, err := readReceipt(line, key, filings[i].Number)
		if err != nil {
			return nil, fmt.Errorf("reading receipt %d of %d: %w", i+1, len(filings), err)
		}
		r.Wait = wait
		receipts = append(receipts, r)
		rest = tail
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("reading %d receipts: there are more", len(filings))
	}
	return receipts, nil
}

func readWait(h http.Header) (time.Duration, error) {
	text := h.Get(xxwire.HeaderWait)
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", xxwire.HeaderWait, err)
	}
	return time.Duration(seconds) * time.Second, nil
}

func readReceipt(line, key []byte, number string) (country.Receipt, error) {
	given, err := xxwire.OpenReceipt(line, key)
	if err != nil {
		return country.Receipt{}, err
	}
	if given.Number != number {
		return country.Receipt{}, fmt.Errorf("it speaks of %q instead of %q", given.Number, number)
	}
	return receiptOf(given, bytes.Clone(line))
}

// receiptOf is the authority's word in the words of the contract; said is how it came.
func receiptOf(given xxwire.Receipt, said []byte) (r country.Receipt, err error) {
	r = country.Receipt{AuthorityID1: given.AuthorityID, SHA256: given.SHA256, Document: said, Format: "JSON", Raw: said}
	if given.At != "" {
		if r.At, err = time.Parse(time.RFC3339, given.At); err != nil {
			return country.Receipt{}, fmt.Errorf("reading its time: %w", err)
		}
	}
	if r.News, err = readNotices(given.News); err != nil {
		return country.Receipt{}, err
	}
	switch given.Outcome {
	case xxwire.OutcomeAccepted:
		r.Outcome = country.Accepted
	case xxwire.OutcomeRejected:
		r.Outcome, r.ChainBroken = country.Rejected, given.Code == xxwire.CodeChain
		r.Faults = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
			Message: given.Code + ": " + given.Message}}
	case xxwire.OutcomePending:
		r.Outcome, r.Handle, r.Awaiting = country.Pending, given.Number, given.Awaiting != ""
	case xxwire.OutcomeNotTaken:
		r = r.Untaken("the reference authority did not take it this time")
	case xxwire.OutcomeDuplicate:
		r.Outcome, r.Duplicate = country.Accepted, true
	case xxwire.OutcomeAbsent:
		r.Outcome = country.Absent
	default:
		return country.Receipt{}, fmt.Errorf("outcome %q is not one of the protocol's", given.Outcome)
	}
	return r, nil
}

// Find asks for a document in the way its class allows. Classes H, K and C
// know no question but the same bytes: the authority echoes what it has, and
// takes what it has not, so the answer is never Absent. Class N cannot be
// asked at all.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	switch filingClass(f) {
	case country.ByNothing:
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, country.ErrNotAskable)
	case country.ByHash, country.ByKey, country.ByChain:
		all, err := ch.Send(ctx, []country.Filing{f}, c)
		if err != nil {
			return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
		}
		return all[0], nil
	}
	r, err := ch.ask(ctx, xxwire.PathDocuments, f, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	return r, nil
}

// Poll asks for the decision on a pending document.
func (ch *channel) Poll(ctx context.Context, f country.Filing, _ country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	r, err := ch.ask(ctx, xxwire.PathStatus, f, c)
	if err == nil && r.Outcome == country.Absent {
		err = errors.New("the authority does not know it any more")
	}
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	return r, nil
}

func (ch *channel) ask(ctx context.Context, path string, f country.Filing, c country.Credentials) (country.Receipt, error) {
	query := url.Values{"number": {f.Number}}
	reply, err := ch.call(ctx, request{method: http.MethodGet, path: path, query: query.Encode(), supplier: f.Supplier}, c)
	if err != nil {
		return country.Receipt{}, err
	}
	receipts, err := readReceipts(reply, xxwire.SigningKey(f.Supplier, c.Secret), []country.Filing{f})
	if err != nil {
		return country.Receipt{}, err
	}
	return receipts[0], nil
}

// request is one call of the protocol.
type request struct {
	method   string
	path     string
	query    string
	supplier string
	body     []byte
}

// call makes a signed call. A supplier that the authority has never seen is
// enrolled on the way: nothing was taken then, so the call may go again.
func (ch *channel) call(ctx context.Context, req request, c country.Credentials) (country.Reply, error) {
	reply, err := ch.callOnce(ctx, req, c)
	if !errors.Is(err, errKeyUnknown) {
		return reply, err
	}
	if err := ch.enrol(ctx, req.supplier, c, false); err != nil {
		return country.Reply{}, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	return ch.callOnce(ctx, req, c)
}

var errKeyUnknown = errors.New("the authority does not know the supplier's key")

func (ch *channel) callOnce(ctx context.Context, req request, c country.Credentials) (country.Reply, error) {
	target := ch.at.BaseURL + req.path
	if req.query != "" {
		target += "?" + req.query
	}
	r, err := http.NewRequestWithContext(ctx, req.method, target, bytes.NewReader(req.body))
	if err != nil {
		return country.Reply{}, fmt.Errorf("calling the authority: %w: %w", country.ErrNotTaken, err)
	}
	if req.method == http.MethodPost {
		r.Header.Set("Content-Type", xxwire.TypeLines)
	}
	xxwire.SignCall(r, req.path, xxwire.Signer{Supplier: req.supplier, Key: xxwire.SigningKey(req.supplier, c.Secret)}, req.body)
	client, err := ch.identify(r, req.path, c)
	if err != nil {
		return country.Reply{}, err
	}
	reply, err := country.Exchange(client, r, xxwire.AnswerBytesMax)
	if err != nil {
		return country.Reply{}, err
	}
	if reply.Status == http.StatusOK && reply.Header.Get("Content-Type") == xxwire.TypeLines {
		return reply, nil
	}
	return country.Reply{}, readProblem(reply)
}

// readProblem turns a refused call into an error. Only the protocol's own body
// with "taken": false promises that nothing was taken; a page from a proxy
// with the same status promises nothing.
func readProblem(reply country.Reply) error {
	var p xxwire.Problem
	if reply.Header.Get("Content-Type") != "application/json" || json.Unmarshal(reply.Body, &p) != nil || p.Error == "" {
		return fmt.Errorf("the authority answered with status %d and no answer of the protocol", reply.Status)
	}
	err := fmt.Errorf("the authority refused the call with status %d: %s: %s", reply.Status, p.Error, p.Message)
	if p.Taken != nil && !*p.Taken {
		err = fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	switch p.Error {
	case xxwire.CodeKeyUnknown:
		err = fmt.Errorf("%w: %w", errKeyUnknown, err)
	case xxwire.CodePlatform:
		err = country.Unidentified(err)
	case xxwire.CodeSignature, xxwire.CodeKeyEnrolled, xxwire.CodeGrant:
		err = fmt.Errorf("%w: %w", country.ErrCredentials, err)
	}
	return err
}

// enrol makes the supplier's key known. Without replace another key that is
// already enrolled stays, and the call is refused.
func (ch *channel) enrol(ctx context.Context, supplier string, c country.Credentials, replace bool) error {
	body, err := json.Marshal(xxwire.Enrolment{
		Supplier: supplier, Key: base64.StdEncoding.EncodeToString(xxwire.SigningKey(supplier, c.Secret)), Replace: replace,
	})
	if err != nil {
		return fmt.Errorf("enrolling a supplier: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, ch.at.BaseURL+xxwire.PathSuppliers, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("enrolling a supplier: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	client, err := ch.identify(r, xxwire.PathSuppliers, c)
	if err != nil {
		return fmt.Errorf("enrolling a supplier: %w", err)
	}
	reply, err := country.Exchange(client, r, xxwire.AnswerBytesMax)
	if err != nil {
		return fmt.Errorf("enrolling a supplier: %w", err)
	}
	if reply.Status != http.StatusNoContent {
		return fmt.Errorf("enrolling a supplier: %w", readProblem(reply))
	}
	return nil
}
