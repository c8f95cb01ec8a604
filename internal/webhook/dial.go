package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"tributary/internal/guard"
)

// dialFailure tells a failed connection apart by what was being done.
type dialFailure struct {
	class Class
	err   error
}

func (f *dialFailure) Error() string { return f.err.Error() }
func (f *dialFailure) Unwrap() error { return f.err }

// classOf is the class of a try whose connection failed at a step.
func classOf(err error) Class {
	var failed *guard.DialError
	if !errors.As(err, &failed) {
		return ClassConnect
	}
	switch failed.Step {
	case guard.Vetting:
		return ClassAddressRefused
	case guard.Resolving:
		return ClassDNS
	case guard.Waiting:
		return ClassConnectTimeout
	case guard.Tunnelling:
		return ClassProxy
	default:
		return ClassConnect
	}
}

// dialer opens connections to receivers: resolve, guard, connect, encrypt, all
// within the connect time.
type dialer struct {
	guarded guard.Dialer
	tls     *tls.Config
	connect time.Duration
}

func (d *dialer) reach(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.guarded.DialContext(ctx, network, address)
	if err != nil {
		return nil, &dialFailure{classOf(err), err}
	}
	return conn, nil
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

// LoadRoots returns the system's roots and the CAs in pem (--webhook-ca).
func LoadRoots(pem []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		// No readable system store is no reason to refuse a CA given by name.
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("reading webhook CA: no certificate found")
	}
	return pool, nil
}
