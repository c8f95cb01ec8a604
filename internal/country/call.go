package country

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
)

// ErrBodyTooLarge says that an authority's answer is longer than the caller reads.
var ErrBodyTooLarge = errors.New("the answer is too large")

// ReasonOf names what went wrong with a call of an authority, as clients and operators
// read it.
func ReasonOf(err error) fault.Code {
	var call *url.Error
	var line net.Error
	var used *Exhausted
	switch {
	case errors.Is(err, ErrNoAddress), errors.Is(err, ErrTestOnly), errors.Is(err, ErrNoIdentity):
		return fault.AuthorityNotConfigured
	case errors.Is(err, ErrCredentials):
		return fault.CredentialsInvalid
	case errors.As(err, &used):
		return fault.AuthorityWait
	case errors.As(err, &call), errors.As(err, &line), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.AuthorityUnreachable
	}
	return fault.AuthorityError
}

const (
	dialTimeout         = 10 * time.Second
	tlsTimeout          = 10 * time.Second
	callTimeout         = 2 * time.Minute // the last resort; calls have their own deadline in ctx
	idleTimeout         = 90 * time.Second
	idlePerHostMax      = 32
	responseHeaderBytes = 64 << 10
)

// newTransport returns how we dial authorities. Compression is off, so that a
// small answer cannot unfold into a large one behind the size limit.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    tlsTimeout,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idlePerHostMax,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: responseHeaderBytes,
	}
}

// newClient returns a client that never follows a redirect and never repeats a
// request by itself.
func newClient(through http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     once{through},
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// once takes away the headers that make Go's transport resend a request whose
// answer was lost: to an authority only the caller may decide that. It counts
// what goes through, see [Traffic].
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	r, traffic := counted(r)
	_, short := r.Header["Idempotency-Key"]
	_, long := r.Header["X-Idempotency-Key"]
	if short || long {
		r = r.Clone(r.Context())
		r.Header.Del("Idempotency-Key")
		r.Header.Del("X-Idempotency-Key")
	}
	resp, err := o.next.RoundTrip(r)
	if traffic != nil && err == nil {
		resp.Body = &countedBody{resp.Body, &traffic.in}
	}
	return resp, err
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (o once) CloseIdleConnections() {
	if c, ok := o.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// mutualTLS returns a client like at.HTTP that identifies itself with a
// certificate. It has a connection of its own: keep it, and close it when idle.
// To a plain http address, which only a simulator has, the certificate goes in
// the Client-Cert header of RFC 9440, as from a proxy that ended TLS.
func mutualTLS(at Endpoint, cert tls.Certificate, sessions tls.ClientSessionCache) *http.Client {
	base := at.HTTP.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	if strings.HasPrefix(at.BaseURL, "http://") {
		return newClient(headerCert{next: base, leaf: cert.Certificate[0]})
	}
	if own, ok := base.(once); ok {
		base = own.next
	}
	transport := newTransport()
	if own, ok := base.(*http.Transport); ok {
		transport = own.Clone()
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport.TLSClientConfig.Certificates = []tls.Certificate{cert}
	transport.TLSClientConfig.ClientSessionCache = sessions
	transport.MaxIdleConnsPerHost = 1
	return newClient(transport)
}

type headerCert struct {
	next http.RoundTripper
	leaf []byte
}

func (h headerCert) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(authority.CertificateHeader, ":"+base64.StdEncoding.EncodeToString(h.leaf)+":")
	return h.next.RoundTrip(r)
}

// Reply is an authority's answer, read to its end.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Exchange makes one call and reads the whole answer, at most bytesMax of it.
//
// Failure policy: an error wraps [ErrNotTaken] exactly when no connection was
// had, so that not one byte of the request can have left: a refused
// connection, an unknown name, a failed handshake, a deadline while dialling.
// Every other error, a body cut short or too long included, is ambiguous; so is
// [ErrBusy], when there was no room for a large answer before the deadline.
func Exchange(client *http.Client, r *http.Request, bytesMax int64) (Reply, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	resp, err := client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		if !connected.Load() {
			return Reply{}, fmt.Errorf("calling the authority: %w: %w", ErrNotTaken, err)
		}
		return Reply{}, fmt.Errorf("calling the authority: %w", err)
	}
	body, err := readAnswer(r.Context(), resp, bytesMax)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Request is one call to an authority.
type Request struct {
	Method   string // empty: POST
	URL      string
	Header   []string // names and values in turn; one without a value is not sent
	Body     []byte
	BytesMax int64 // of the answer
}

// Do makes the call, see [Exchange]. What is no request at all was not taken.
func (q Request) Do(ctx context.Context, client *http.Client) (Reply, error) {
	if q.Method == "" {
		q.Method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, q.URL, bytes.NewReader(q.Body))
	if err != nil {
		return Reply{}, fmt.Errorf("calling the authority: %w: %w", ErrNotTaken, err)
	}
	for i := 0; i+1 < len(q.Header); i += 2 {
		if q.Header[i+1] != "" {
			r.Header.Set(q.Header[i], q.Header[i+1])
		}
	}
	return Exchange(client, r, q.BytesMax)
}

// ErrNotTaken marks an error after which the authority certainly holds nothing of the call.
var ErrNotTaken = errors.New("nothing was submitted")

// ErrNotAskable marks the answer of a Find that has nobody to ask: what an
// authority of class N holds of this filing only a person can find out.
var ErrNotAskable = errors.New("the authority cannot be asked")

// ErrCredentials marks an error that only new credentials can fix: expired,
// revoked, unreadable or refused by the authority before it read the filing.
var ErrCredentials = identity.ErrUnusable

// ErrPanic marks what a pack did instead of answering.
var ErrPanic = errors.New("panic")

// Safely turns a panic of a pack into an error: one transaction must not end the process.
func Safely(what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v\n%s", what, ErrPanic, p, debug.Stack())
		}
	}()
	return fn()
}
