package guard

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// proxyAnswerBytesMax bounds what a proxy may say before the tunnel stands.
const proxyAnswerBytesMax = 64 << 10

// Step is what was being done when a connection could not be made.
type Step string

// The steps.
const (
	Vetting    Step = "vetting"    // the guard refused every address; the error is a *Refusal
	Resolving  Step = "resolving"  // the name has no address
	Connecting Step = "connecting" // no connection
	Waiting    Step = "waiting"    // no connection in time
	Tunnelling Step = "tunnelling" // the operator's proxy did not connect us
)

// DialError says why there is no connection.
type DialError struct {
	Step Step
	Err  error
}

func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *DialError) Unwrap() error { return e.Err }

// Dialer connects to addresses that a guard lets through.
//
// Failure policy: with a proxy the name is resolved and vetted here, and the
// proxy is asked for the address that passed. A proxy that resolved the name
// itself would decide on an address that nobody looked at.
type Dialer struct {
	Guard    *Guard
	Resolver *net.Resolver // nil: the system's
	Proxy    *url.URL      // of the form http://host:port; nil: connect directly
}

// DialContext connects to a host and port. The error is a [*DialError].
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy != nil {
		return d.throughProxy(ctx, network, address)
	}
	// A name may have several addresses, tried one after the other or two at once;
	// the error of the whole dial is that of the first one, which need not be the
	// refusal. So the refusal is noted where it happens.
	var (
		mu      sync.Mutex
		refusal *Refusal
	)
	nd := net.Dialer{Resolver: d.Resolver,
		ControlContext: func(ctx context.Context, network, address string, c syscall.RawConn) error {
			err := d.Guard.Control(ctx, network, address, c)
			mu.Lock()
			defer mu.Unlock()
			if refusal == nil {
				errors.As(err, &refusal)
			}
			return err
		}}
	conn, err := nd.DialContext(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	mu.Lock()
	defer mu.Unlock()
	if refusal != nil {
		return nil, &DialError{Vetting, refusal}
	}
	return nil, ClassifyDial(err)
}

// ClassifyDial tells a failed dial apart by what was being done.
func ClassifyDial(err error) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return &DialError{Resolving, err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &DialError{Waiting, err}
	default:
		return &DialError{Connecting, err}
	}
}

// throughProxy resolves, vets, and has the proxy connect to the first address
// that passed and answers.
func (d *Dialer) throughProxy(ctx context.Context, network, address string) (net.Conn, error) {
	passed, err := d.vetted(ctx, network, address)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, at := range passed {
		conn, err := d.tunnel(ctx, at.String())
		if err == nil {
			return conn, nil
		}
		if failed == nil {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// vetted are the addresses of a host that may be connected to, at least one.
func (d *Dialer) vetted(ctx context.Context, network, address string) (passed []netip.AddrPort, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &DialError{Connecting, err}
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, portText)
	if err != nil {
		return nil, &DialError{Connecting, err}
	}
	resolver := d.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, ClassifyDial(err)
	}
	var refused error
	for _, addr := range found {
		addr = addr.Unmap() // as a resolver gives IPv4; written by hand it was refused with the URL
		at, family := netip.AddrPortFrom(addr, uint16(port)), "tcp6"
		if addr.Is4() {
			family = "tcp4"
		}
		if err := d.Guard.Control(ctx, family, at.String(), nil); err != nil {
			refused = err
			continue
		}
		passed = append(passed, at)
	}
	switch {
	case len(passed) > 0:
		return passed, nil
	case refused != nil:
		return nil, &DialError{Vetting, refused}
	}
	return nil, &DialError{Resolving, fmt.Errorf("%s has no address", host)}
}

// tunnel asks the proxy for a connection (RFC 9110, section 9.3.6).
func (d *Dialer) tunnel(ctx context.Context, address string) (net.Conn, error) {
	port := d.Proxy.Port()
	if port == "" {
		port = "80"
	}
	nd := net.Dialer{Resolver: d.Resolver}
	conn, err := nd.DialContext(ctx, "tcp", net.JoinHostPort(d.Proxy.Hostname(), port))
	if err != nil {
		return nil, ClassifyDial(fmt.Errorf("connecting to the proxy: %w", err))
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := d.askTunnel(conn, address); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, &DialError{Waiting, fmt.Errorf("asking the proxy for %s: %w", address, ctx.Err())}
		}
		return nil, &DialError{Tunnelling, fmt.Errorf("asking the proxy for %s: %w", address, err)}
	}
	return conn, nil
}

func (d *Dialer) askTunnel(conn net.Conn, address string) error {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := d.Proxy.User; u != nil {
		password, _ := u.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	// The receiver speaks only when spoken to, so nothing behind the proxy's answer
	// can get lost in this buffer; the limit is generous for an answer without a body.
	limited := &limitedConn{conn, proxyAnswerBytesMax}
	resp, err := http.ReadResponse(bufio.NewReader(limited), request)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy answered %d", resp.StatusCode)
	}
	return nil
}

type limitedConn struct {
	net.Conn
	left int
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the proxy's answer is too long")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
