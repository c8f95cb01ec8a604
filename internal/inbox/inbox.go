// Package inbox takes what authorities send us, and fetches what waits for our
// companies: it is stored and synced before it is answered, once, then handed on.
//
// It owns the addresses below /authorities, the mailboxes of companies and how far
// each was read, the messages that came in either way and their way to the filing
// they speak of. It does not own what a message means
// (packs read it), what it does to an operation (filing decides, in the write
// that takes the message) or the listener. Law of [Inbox.ServeHTTP]: an answer of
// success means that every message of the call is on disk.
//
// Failure policy: a process that dies between storing and answering leaves an
// authority without an answer, which repeats; the authority's own name of a
// message makes the repetition nothing. A message whose filing is not known (yet:
// it may be faster than the answer to our own call) is looked at again for two
// days, kept for a person, and forgotten after [KeptDays]. Nothing that was refused
// is stored, and one address can fill neither the disk nor the log.
//
// A message that comes both by a call and from a mailbox is taken once, by the
// authority's own name for it, which is one for the whole endpoint: where an
// authority counts per mailbox, the pack puts the company's number in front. What
// lay in a company's mailbox can speak of that company's filings alone: two
// companies may use the same invoice number, and a handle may be no more than that.
// A look at a mailbox has a time limit, at most 1,000 messages and 5 MiB; more is a
// failure, which doubles the pause and halves how many messages are asked for, so
// that a large one is met alone in the end. One authority gets at most 8 of a
// node's 32 looks at a time.
package inbox

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/endpoint"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
)

// Root is where the addresses of authorities begin.
const Root = "/authorities/"

// Limits of one call.
const (
	BodyBytesMax = 5 << 20
	MessagesMax  = 1000
	KeyBytesMax  = 300
	// of calls that bring received documents, which come in base64; a few at a time
	LargeBodyBytesMax = 28 << 20
	largeAtOnce       = 4
	storeFor          = 10 * time.Second
	pathBytesMax      = 1000
)

// Config says what an inbox stands on.
type Config struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Endpoints *endpoint.Endpoints
	Log       *slog.Logger
	Metrics   prometheus.Registerer // nil: none

	TrustProxy     bool           // the address of a call is the last of X-Forwarded-For
	SimulatorsFrom []netip.Prefix // where simulated authorities may call from, besides this machine

	Companies *onboarding.Companies // whose mailboxes are looked into; nil: nobody's
	Alerts    *alert.Alerts         // nil: nobody is told

	// HandleMessage hands a message to the filing it speaks of, inside the write that takes
	// it. "" means that nobody knows its handle.
	HandleMessage func(tx *db.Tx, at country.Environment, of country.Mailbox, m country.Message) (operationID string, err error)
	// TakeDocuments takes received documents: their bytes are on disk when it calls with, in
	// the write that stores them, with the operation of each and how many were new. The
	// write may run twice. Nil: no documents are taken.
	TakeDocuments func(ctx context.Context, list []Delivery, with func(tx *db.Tx, operations []string, fresh int) error) error
	// Stored answers which documents of a company are here already, by their source's
	// names. Nil: none is known to be, and all that is listed is got.
	Stored func(ctx context.Context, of country.Mailbox, source string, ids []string) (map[string]bool, error)
	// Grant takes what a browser brings back from a person's visit. A state that is
	// not known is fault.NotFound, one that was used fault.Conflict, one whose time
	// is over fault.Expired. Nil: 404.
	Grant func(ctx context.Context, at country.Environment, brought url.Values) error
}

// Inbox is safe for concurrent use.
type Inbox struct {
	cfg   Config
	db    *db.DB
	log   *slog.Logger
	calls *prometheus.CounterVec
	words *rate.Limiter // strangers must not fill the log

	callers *account.Pace
	large   chan struct{} // one for each large body that is read

	fetches *prometheus.CounterVec
}

// What became of a call, in the metric tributary_callbacks_total.
const (
	wasStored   = "stored"
	wasRepeated = "repeated" // nothing in it was new
	wasRefused  = "refused"  // a stranger
	wasInvalid  = "invalid"
	wasUnknown  = "unknown_path"
	wasFailed   = "failed" // we could not; the authority repeats
)

// New registers the metric and returns an inbox.
func New(c Config) (*Inbox, error) {
	if c.TakeDocuments == nil {
		c.TakeDocuments = func(context.Context, []Delivery, func(*db.Tx, []string, int) error) error { return errNoDocuments }
	}
	i := &Inbox{cfg: c, db: c.DB, log: c.Log, words: rate.NewLimiter(1, 20), large: make(chan struct{}, largeAtOnce),
		callers: account.NewPace(callsPerSecond, callsBurst),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tributary_callbacks_total",
			Help: "Calls from authorities, by country and outcome."}, []string{"country", "outcome"}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tributary_fetches_total",
			Help: "Fetches of companies' mailboxes at authorities, by country and outcome."}, []string{"country", "outcome"})}
	if c.Metrics != nil {
		if err := errors.Join(c.Metrics.Register(i.calls), c.Metrics.Register(i.fetches)); err != nil {
			return nil, fmt.Errorf("register the metrics of messages: %w", err)
		}
	}
	return i, nil
}

// ServeHTTP answers authorities, and browsers that return from one.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, rest, ok := i.place(r.URL.Path)
	if !ok {
		i.count("", wasUnknown)
		http.NotFound(w, r)
		return
	}
	if err := i.pace(r); err != nil {
		i.count(at.Code, wasRefused)
		i.refuse(w, r, at, err)
		return
	}
	if rest == pathGrant && i.cfg.Grant != nil {
		i.returned(w, r, at)
		return
	}
	pack, _ := i.cfg.Atlas.Pack(at.Code)
	if pack.Callbacks == nil {
		i.count("", wasUnknown)
		http.NotFound(w, r)
		return
	}
	reply, outcome, err := i.take(w, r, at, rest)
	i.count(at.Code, outcome)
	if err != nil {
		i.refuse(w, r, at, err)
		return
	}
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	if reply.Status == 0 {
		reply.Status = http.StatusNoContent
	}
	w.WriteHeader(reply.Status)
	_, _ = w.Write(reply.Body) // a caller that left repeats, which is nothing
}

func (i *Inbox) count(code, outcome string) { i.calls.WithLabelValues(code, outcome).Inc() }

// place reads /authorities/{cc}/{live|test}/… of a country that has an authority.
func (i *Inbox) place(path string) (at country.Environment, rest string, ok bool) {
	text, found := strings.CutPrefix(path, Root)
	parts := strings.SplitN(text, "/", 3)
	if !found || len(parts) < 2 || len(path) > pathBytesMax || parts[0] != strings.ToLower(parts[0]) {
		return at, "", false
	}
	at, err := country.ParseEnvironment(parts[0] + "." + parts[1])
	pack, known := i.cfg.Atlas.Pack(at.Code)
	if err != nil || !known || pack.Connect == nil || !i.cfg.Atlas.Offers(at.Code, at.Live) {
		return at, "", false
	}
	if len(parts) == 3 {
		rest = "/" + parts[2]
	}
	return at, rest, true
}

// take reads one call and stores what it says.
func (i *Inbox) take(w http.ResponseWriter, r *http.Request, at country.Environment,
	rest string) (country.CallReply, string, error) {
	client, err := i.client(r, at)
	if err != nil {
		return country.CallReply{}, wasRefused, err
	}
	body, done, err := i.body(w, r, at)
	defer done()
	if err != nil {
		return country.CallReply{}, wasInvalid, err
	}
	to, err := i.cfg.Atlas.Endpoint(at.Code, at.Live)
	if err != nil && !errors.Is(err, country.ErrNoAddress) {
		return country.CallReply{}, wasFailed, err
	}
	call := country.Call{Method: r.Method, Path: rest, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body,
		Client: client, At: i.db.Wall()}
	messages, reply, err := i.read(at, i.endpointFor(r, at, to), call)
	switch kind := fault.KindOf(err); {
	case kind == fault.Unauthenticated, kind == fault.Forbidden:
		return reply, wasRefused, err
	case kind == fault.NotFound:
		return reply, wasUnknown, err
	case kind == fault.Invalid:
		return reply, wasInvalid, err
	case err != nil:
		return reply, wasFailed, err
	}
	// an authority that hangs up has told us all the same
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeFor)
	defer cancel()
	from, _ := i.addressOf(r)
	fresh, err := i.StoreFrom(ctx, at, account.Network(from), messages)
	switch {
	case err != nil:
		return reply, wasFailed, err
	case fresh == 0 && len(messages) > 0:
		return reply, wasRepeated, nil
	}
	return reply, wasStored, nil
}

// body reads what a caller sends: of an authority that brings documents more, and of such
// bodies a few at a time, because anybody can begin one. done gives the place back.
func (i *Inbox) body(w http.ResponseWriter, r *http.Request, at country.Environment) (text []byte, done func(), err error) {
	done, most := func() {}, int64(BodyBytesMax)
	pack, _ := i.cfg.Atlas.Pack(at.Code)
	if pack.Receive != nil && pack.Receive.Fetch == nil && (r.ContentLength < 0 || r.ContentLength > BodyBytesMax) {
		select {
		case i.large <- struct{}{}:
			most, done = LargeBodyBytesMax, func() { <-i.large }
		default:
			return nil, done, fault.New(fault.Unavailable, "%d large calls are read at this moment", largeAtOnce)
		}
	}
	text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, done, fault.New(fault.TooLarge, "the call has more than %d bytes", most)
	case err != nil:
		return nil, done, fault.New(fault.Invalid, "the call was interrupted").Because(err)
	}
	return text, done, nil
}

// client is the certificate that the caller shows, verified against the CA that
// the operator set for this authority. One that nobody vouches for is refused.
func (i *Inbox) client(r *http.Request, at country.Environment) (*x509.Certificate, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	chain := r.TLS.PeerCertificates
	trust := i.cfg.Endpoints.Trust(at)
	if trust == nil {
		return nil, fault.New(fault.Forbidden, "no CA is set for %s: its certificate cannot be verified", at)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: trust, Intermediates: between, CurrentTime: i.db.Wall(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return nil, fault.New(fault.Forbidden, "the certificate was not issued by the CA set for %s", at).Because(err)
	}
	return chain[0], nil
}

// read asks the pack; its panic is our failure, which the authority repeats.
func (i *Inbox) read(at country.Environment, to country.Endpoint,
	c country.Call) (list []country.Message, reply country.CallReply, err error) {
	defer func() {
		if p := recover(); p != nil {
			i.log.Error("a pack panicked while reading a call", "authority", at.String(), "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err = errors.New("the call could not be read")
		}
	}()
	pack, _ := i.cfg.Atlas.Pack(at.Code)
	list, reply, err = pack.Callbacks.Read(to, c)
	if err == nil && len(list) > MessagesMax {
		err = fault.New(fault.Invalid, "the call has more than %d messages", MessagesMax)
	}
	if err == nil {
		err = namedRight(at, list)
	}
	return list, reply, err
}

// namedRight refuses messages without a name, or with one that nobody can keep.
func namedRight(at country.Environment, list []country.Message) error {
	for n, m := range list {
		if m.Key == "" || len(m.Key) > KeyBytesMax || len(m.Handle) > KeyBytesMax || !db.Storable(m.Key+m.Handle) {
			return fmt.Errorf("the pack of %s names message %d with %d bytes, about %d bytes", at.Code, n, len(m.Key), len(m.Handle))
		}
		if m.Document == nil {
			continue
		}
		if err := soundDocument(m.Document); err != nil {
			return err
		}
	}
	return nil
}

// refuse answers without telling a stranger more than that.
func (i *Inbox) refuse(w http.ResponseWriter, r *http.Request, at country.Environment, err error) {
	status := http.StatusInternalServerError
	switch fault.KindOf(err) {
	case fault.Unauthenticated:
		status = http.StatusUnauthorized
	case fault.Forbidden:
		status = http.StatusForbidden
	case fault.NotFound:
		status = http.StatusNotFound
	case fault.Invalid:
		status = http.StatusBadRequest
	case fault.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case fault.Unavailable, fault.Limited:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "5")
	}
	if i.words.Allow() {
		i.log.Warn("a call to the callback listener was rejected", "authority", at.String(), "from", r.RemoteAddr, "status",
			status, "error", err)
	}
	http.Error(w, http.StatusText(status), status)
}
