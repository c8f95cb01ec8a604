package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// dialFailure tells a failed connection apart by what was being done.
type dialFailure struct {
	class Class
	err   error
}

func (f *dialFailure) Error() string { return f.err.Error() }
func (f *dialFailure) Unwrap() error { return f.err }

// dialer opens connections to receivers: resolve, guard, connect, encrypt, all
// within the connect time.
type dialer struct {
	guard    *Guard
	resolver *net.Resolver
	proxy    *url.URL
	tls      *tls.Config
	connect  time.Duration
}

func (d *dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.connect)
	defer cancel()
	conn, err := d.reach(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: conn}, nil
}

func (d *dialer) encrypted(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.connect)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &dialFailure{ClassConnect, err}
	}
	raw, err := d.reach(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	config.ServerName = host
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, &dialFailure{ClassConnectTimeout, fmt.Errorf("TLS handshake with %s: %w", address, err)}
		}
		return nil, &dialFailure{ClassTLS, fmt.Errorf("TLS handshake with %s: %w", address, err)}
	}
	return &watchedConn{Conn: conn}, nil
}

// reach connects to the receiver itself or, where the operator configured one,
// through the proxy.
func (d *dialer) reach(ctx context.Context, network, address string) (net.Conn, error) {
	if d.proxy != nil {
		return d.tunnel(ctx, address)
	}
	// A name may have several addresses, tried one after the other or two at once;
	// the error of the whole dial is that of the first one, which need not be the
	// refusal. So the refusal is noted where it happens.
	var (
		mu      sync.Mutex
		refusal *Refusal
	)
	nd := net.Dialer{Resolver: d.resolver, ControlContext: func(ctx context.Context, network, address string, c syscall.RawConn) error {
		err := d.guard.Control(ctx, network, address, c)
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
		return nil, &dialFailure{ClassAddressRefused, refusal}
	}
	return nil, connectFailure(err)
}

func connectFailure(err error) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return &dialFailure{ClassDNS, err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &dialFailure{ClassConnectTimeout, err}
	default:
		return &dialFailure{ClassConnect, err}
	}
}

// tunnel asks the proxy for a connection (RFC 9110, section 9.3.6). The proxy
// resolves the name, so the address rules are the proxy's to enforce; the URL
// rules stay ours.
func (d *dialer) tunnel(ctx context.Context, address string) (net.Conn, error) {
	port := d.proxy.Port()
	if port == "" {
		port = "80"
	}
	nd := net.Dialer{Resolver: d.resolver}
	conn, err := nd.DialContext(ctx, "tcp", net.JoinHostPort(d.proxy.Hostname(), port))
	if err != nil {
		return nil, connectFailure(fmt.Errorf("connecting to the proxy: %w", err))
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := d.askTunnel(conn, address); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, &dialFailure{ClassConnectTimeout, fmt.Errorf("asking the proxy for %s: %w", address, ctx.Err())}
		}
		return nil, &dialFailure{ClassProxy, fmt.Errorf("asking the proxy for %s: %w", address, err)}
	}
	return conn, nil
}

func (d *dialer) askTunnel(conn net.Conn, address string) error {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := d.proxy.User; u != nil {
		password, _ := u.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	// The receiver speaks only when spoken to, so nothing behind the proxy's answer
	// can get lost in this buffer; the limit is the one of every reply.
	limited := &limitedConn{conn, headerBytesMax}
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

// LoadRoots returns the system's roots and the CAs in pem (--webhook-ca).
func LoadRoots(pem []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		// No readable system store is no reason to refuse a CA given by name.
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("reading webhook CA: no certificate in it")
	}
	return pool, nil
}
