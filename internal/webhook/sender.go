package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"tributary/internal/guard"
)

// The limits of one try.
const (
	ConnectTimeout  = 5 * time.Second  // name, connection and TLS handshake
	ExchangeTimeout = 15 * time.Second // everything, redirects and the reply included
	RedirectsMax    = 3
	ReplyBytesMax   = 64 << 10 // read
	ReplyBytesKept  = 4 << 10  // kept in the record of the try

	headerBytesMax = 64 << 10
	idlePerHost    = 256 // many clients may share one host; each has its own cap of tries
	idleMax        = 1024
	// idleTimeout is short, so that a receiver that moves is followed soon.
	idleTimeout    = 30 * time.Second
	sessionsCached = 256
	userAgent      = "Tributary-Webhook/1"
)

// Class is the stable name of how a try failed.
type Class string

// The classes. The empty class is a delivered notification.
const (
	ClassURLRefused       Class = "url_refused"          // the configured URL breaks a rule
	ClassAddressRefused   Class = "address_refused"      // the guard refused the address
	ClassDNS              Class = "dns"                  // the name has no address
	ClassConnect          Class = "connect"              // no connection
	ClassConnectTimeout   Class = "connect_timeout"      // no connection in time
	ClassProxy            Class = "proxy"                // the operator's proxy did not connect us
	ClassTLS              Class = "tls"                  // handshake or certificate
	ClassTimeout          Class = "timeout"              // no status line in time
	ClassClosed           Class = "closed"               // the connection ended before the first byte of a reply
	ClassMalformed        Class = "reply_malformed"      // the reply has no valid status line, or a redirect no valid headers
	ClassStatus           Class = "status"               // a status other than 2xx and redirects
	ClassNoLocation       Class = "redirect_no_location" // a 3xx that leads nowhere
	ClassRedirectInsecure Class = "redirect_insecure"    // a redirect that leaves HTTPS
	ClassRedirectRefused  Class = "redirect_refused"     // a redirect to a URL that breaks a rule
	ClassRedirectDepth    Class = "redirect_depth"       // a fourth redirect
	ClassInterrupted      Class = "interrupted"          // cut by our own shutdown; spends no try
)

// Try is the record of one sending of one notification.
type Try struct {
	At         time.Time
	URL        string // the last URL asked; empty when the configured one was refused
	Address    string // the last address connected to; empty without a connection
	Status     int    // of the last reply; 0 without one
	Reply      []byte // its first bytes, as received
	Latency    time.Duration
	Class      Class
	Detail     string         // for the operator: what exactly happened
	Refusal    *guard.Refusal // set when the guard refused the URL or the address
	KeyID      string
	Hops       int           // redirects followed
	RetryAfter time.Duration // asked for by the receiver; 0 without

	// What was sent, byte for byte; empty of tries that were recorded before it was kept.
	Body    []byte
	Headers [][2]string
}

// Delivered reports whether the receiver took the notification.
func (t Try) Delivered() bool { return t.Class == "" }

func (t *Try) fail(class Class, err error) {
	t.Class, t.Detail = class, err.Error()
	errors.As(err, &t.Refusal)
}

// SenderConfig says how to send. Guard is needed, everything else has a default.
type SenderConfig struct {
	Guard    *guard.Guard
	Roots    *x509.CertPool // nil: the system's
	Proxy    *url.URL       // an http proxy to tunnel through, by vetted address; the environment is never asked
	Resolver *net.Resolver
	Connect  time.Duration // default ConnectTimeout
	Exchange time.Duration // default ExchangeTimeout
	Now      func() time.Time
}

// Sender makes tries. It is safe for concurrent use; one serves a whole node.
type Sender struct {
	guard     *guard.Guard
	transport *http.Transport
	exchange  time.Duration
	now       func() time.Time
	wider     *wider
}

// NewSender returns a sender. Close releases its idle connections.
func NewSender(c SenderConfig) (*Sender, error) {
	if c.Guard == nil {
		return nil, errors.New("making a webhook sender: no guard")
	}
	if c.Proxy != nil && (c.Proxy.Scheme != "http" || c.Proxy.Hostname() == "") {
		return nil, fmt.Errorf("making a webhook sender: proxy %q is not of the form http://host:port", c.Proxy.Redacted())
	}
	if c.Connect <= 0 {
		c.Connect = ConnectTimeout
	}
	if c.Exchange <= 0 {
		c.Exchange = ExchangeTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := c.sender()
	s.wider = &wider{config: c, all: map[string]*Sender{}}
	return s, nil
}

// sender makes a sender of a complete configuration.
func (c SenderConfig) sender() *Sender {
	d := &dialer{guarded: guard.Dialer{Guard: c.Guard, Resolver: c.Resolver, Proxy: c.Proxy}, connect: c.Connect,
		tls: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: c.Roots, NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(sessionsCached),
		}}
	// HTTP/1.1 only: what a receiver can make us hold is then one header block and
	// one TLS record, and dropping a connection harms nobody else's exchange.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &Sender{guard: c.Guard, exchange: c.Exchange, now: c.Now, transport: &http.Transport{
		Proxy: nil, DialContext: d.plain, DialTLSContext: d.encrypted, Protocols: &protocols,
		DisableCompression: true, MaxResponseHeaderBytes: headerBytesMax, ReadBufferSize: headLineBytesMax,
		MaxIdleConns: idleMax, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
	}}
}

// Close drops the idle connections.
func (s *Sender) Close() {
	s.transport.CloseIdleConnections()
	if s.wider != nil {
		s.wider.close()
	}
}

// Send posts a parcel to the configured address and follows its redirects. The
// outcome is data: whatever goes wrong is told by the try.
func (s *Sender) Send(ctx context.Context, address string, p Parcel) Try {
	// no URL before it passed: it might carry userinfo
	try := Try{At: s.now(), KeyID: p.KeyID, Body: p.Body, Headers: shownHeaders(p)}
	begun := time.Now() // latency is monotonic, whatever clock the caller has
	target, err := s.guard.Parse(address)
	if err != nil {
		try.fail(ClassURLRefused, err)
		return try
	}
	exchange, cancel := context.WithTimeout(ctx, s.exchange)
	defer cancel()
	for {
		try.URL, try.Address, try.Status = target.String(), "", 0
		h := s.post(exchange, target, p)
		try.Latency = time.Since(begun)
		try.Address, try.Status = h.address(), h.status
		target = s.judge(ctx, h, target, &try)
		h.drop()
		if target == nil {
			return try
		}
		try.Hops++
	}
}

// hop is one request and what came of it. Exactly one of reply and err is set;
// status may be known in either case.
type hop struct {
	cancel context.CancelFunc
	conn   net.Conn
	reply  *http.Response
	status int
	spoke  bool // the receiver sent at least one byte
	err    error
}

func (h *hop) address() string {
	if h.conn == nil {
		return ""
	}
	return h.conn.RemoteAddr().String()
}

// drop ends the hop. Cancelling comes first: it closes a connection whose reply was
// not read to its end, where Close alone might try to drain it.
func (h *hop) drop() {
	h.cancel()
	if h.reply != nil {
		h.reply.Body.Close()
	}
}

func (s *Sender) post(ctx context.Context, target *url.URL, p Parcel) *hop {
	ctx, cancel := context.WithCancel(ctx)
	h := &hop{cancel: cancel}
	// The trace runs on this goroutine, before RoundTrip returns, once per connection used.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		h.conn = info.Conn
		if w, ok := info.Conn.(*watchedConn); ok {
			w.expect()
		}
	}})
	req := &http.Request{
		Method: http.MethodPost, URL: target, Host: target.Host, Header: headers(p),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(p.Body)),
		Body: io.NopCloser(bytes.NewReader(p.Body)),
		GetBody: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(p.Body)), nil
		},
	}
	h.reply, h.err = s.transport.RoundTrip(req.WithContext(ctx))
	if h.err == nil {
		h.status, h.spoke = h.reply.StatusCode, true
	} else if w, ok := h.conn.(*watchedConn); ok {
		h.status, h.spoke = w.status()
	}
	return h
}

// headers are the same on every hop. The empty Idempotency-Key is not sent; it
// tells the transport that a notification may go out again at once when a kept
// connection turns out to be closed, which is true of every notification.
func headers(p Parcel) http.Header {
	h := http.Header{
		"Content-Type":    {"application/json"},
		"User-Agent":      {userAgent},
		"Idempotency-Key": {},
	}
	for _, signed := range p.headers {
		h.Set(signed[0], signed[1])
	}
	return h
}

// shownHeaders are the headers of a parcel as a person reads them.
func shownHeaders(p Parcel) [][2]string {
	return append([][2]string{{"Content-Type", "application/json"}, {"User-Agent", userAgent}}, p.headers...)
}

// judge completes the try and returns nil, or returns the next hop's target.
func (s *Sender) judge(ctx context.Context, h *hop, target *url.URL, try *Try) *url.URL {
	switch {
	case h.status >= 200 && h.status < 300:
		if h.err != nil {
			try.Detail = "after the status line: " + h.err.Error()
		}
		try.Reply = h.read()
		return nil
	case h.status >= 300 && h.status < 400 && h.reply != nil:
		next, class, err := s.next(target, h.reply.Header.Get("Location"), try.Hops)
		if err != nil {
			try.fail(class, err)
			s.keep(h, try)
		}
		return next
	case h.status >= 300 && h.status < 400:
		try.fail(ClassMalformed, h.err)
	case h.status != 0:
		try.fail(ClassStatus, fmt.Errorf("the receiver answered %d", h.status))
		s.keep(h, try)
	default:
		class, err := silence(ctx, h)
		try.fail(class, err)
	}
	return nil
}

func (s *Sender) next(target *url.URL, location string, hops int) (*url.URL, Class, error) {
	if location == "" {
		return nil, ClassNoLocation, errors.New("a redirect without Location")
	}
	next, err := s.guard.ParseHop(target, location)
	var refusal *guard.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Reason == guard.ReasonScheme:
		return nil, ClassRedirectInsecure, err
	case err != nil:
		return nil, ClassRedirectRefused, err
	case hops >= RedirectsMax:
		return nil, ClassRedirectDepth, fmt.Errorf("more than %d redirects", RedirectsMax)
	}
	return next, "", nil
}

// keep notes what a failed reply says.
func (s *Sender) keep(h *hop, try *Try) {
	if h.reply == nil {
		return
	}
	try.RetryAfter, _ = ParseRetryAfter(h.reply.Header.Get("Retry-After"), s.now())
	try.Reply = h.read()
}

// read takes the reply up to its limit, so that the connection of an honest
// receiver can be used again, and returns the part that is kept. An error here is
// no news: the outcome was decided by the status line.
func (h *hop) read() []byte {
	// After 101 the body is the bare connection, which no deadline of ours reaches.
	if h.reply == nil || h.status == http.StatusSwitchingProtocols {
		return nil
	}
	kept := make([]byte, 0, 512)
	var buffer [4 << 10]byte
	for total := 0; total < ReplyBytesMax; {
		n, err := h.reply.Body.Read(buffer[:min(len(buffer), ReplyBytesMax-total)])
		total += n
		kept = append(kept, buffer[:min(n, ReplyBytesKept-len(kept))]...)
		if err != nil {
			break
		}
	}
	return kept
}

// silence classifies an exchange that brought no status. ctx is the caller's, whose
// end is our own shutdown and not the receiver's doing.
func silence(ctx context.Context, h *hop) (Class, error) {
	var dial *dialFailure
	switch {
	case h.err == nil: // the standard parser takes three zeros for a status
		return ClassMalformed, errors.New("the receiver answered with status 000")
	case ctx.Err() != nil:
		return ClassInterrupted, h.err
	case errors.As(h.err, &dial):
		return dial.class, h.err
	case errors.Is(h.err, context.DeadlineExceeded):
		return ClassTimeout, h.err
	case h.spoke:
		return ClassMalformed, h.err
	default:
		return ClassClosed, h.err
	}
}
