package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/inbox"
	"tributary/internal/received"
)

// buildInbox makes the addresses that authorities call. A worker without the
// listener still hands on what other nodes have stored.
func (s *Server) buildInbox(context.Context) (err error) {
	s.inbox, err = inbox.New(inbox.Config{DB: s.db, Atlas: s.atlas, Endpoints: s.endpoints, Log: s.cfg.Log, Metrics: s.metrics,
		TrustProxy: s.cfg.TrustProxy, SimulatorsFrom: s.cfg.SimulatorsFrom, Companies: s.company, Alerts: s.alerts,
		HandleMessage: s.service.HandleMessage, TakeDocuments: s.takeDocuments, Stored: s.storedDocuments, Grant: s.company.Returned})
	return err
}

// takeDocuments gives what the inbox was brought to who reads it.
func (s *Server) takeDocuments(ctx context.Context, list []inbox.Delivery,
	with func(tx *db.Tx, operations []string, fresh int) error) error {
	arrivals := make([]received.Arrival, len(list))
	for i, d := range list {
		arrivals[i] = received.Arrival{Scope: d.Scope, Live: d.Live, Media: received.Media(d.Document.Format), Bytes: d.Document.Bytes,
			Source: d.Source, AuthorityID: d.Document.AuthorityID, AuthorityID2: d.Document.AuthorityID2, CompanyID: d.CompanyID}
	}
	return s.received.Bring(ctx, arrivals, with)
}

// storedDocuments answers which documents of a company's mailbox are here already.
func (s *Server) storedDocuments(ctx context.Context, of country.Mailbox, source string, ids []string) (map[string]bool, error) {
	return s.received.Stored(ctx, of.Scope, source, of.SupplierID, ids)
}

// CallbacksURL is the address of the listener for authorities, or "".
func (s *Server) CallbacksURL() string { return urlOf(s.callbacks) }

// callbackURL is where an authority reaches us: --callbacks-url, else the name
// that its certificate serves, else this machine where it is a loopback address.
func (s *Server) callbackURL(at country.Environment, host string) string {
	base := strings.TrimSuffix(s.cfg.CallbacksURL, "/")
	switch {
	case base != "":
	case s.callbacks == nil:
		return ""
	case host != "":
		base = "https://" + host
		if _, port, err := net.SplitHostPort(s.callbacks.Addr().String()); err == nil && port != "443" {
			base += ":" + port
		}
	case onLoopback(s.callbacks.Addr()):
		base = urlOf(s.callbacks)
	default:
		return "" // without a name there is no certificate to serve
	}
	return base + inbox.Root + strings.ToLower(at.Code) + "/" + strings.TrimPrefix(at.String(), at.Code+".")
}

// serveCallbacks takes TLS by the names of stored certificates, and on loopback
// plain HTTP as well: there a proxy may end TLS, and a demo has no certificate.
func (s *Server) serveCallbacks() net.Listener {
	keeper := identity.NewKeeper()
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, err := s.endpoints.ServerCertificate(hello.ServerName, keeper, time.Now())
			if err == nil && cert == nil {
				err = fmt.Errorf("no authority uses the host name %q", hello.ServerName)
			}
			return cert, err
		},
	}
	if !onLoopback(s.callbacks.Addr()) {
		return tls.NewListener(s.callbacks, config)
	}
	return newSniffer(s.callbacks, config)
}

// sniffer tells TLS from plain HTTP by the first byte of a connection, so that
// both are served at one address.
type sniffer struct {
	net.Listener
	config *tls.Config
	ready  chan net.Conn
	done   chan struct{}
	all    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	pending map[net.Conn]bool // have said nothing yet
}

const tlsHandshake = 0x16 // the first byte of a TLS record that begins one

func newSniffer(l net.Listener, config *tls.Config) *sniffer {
	s := &sniffer{Listener: l, config: config, ready: make(chan net.Conn), done: make(chan struct{}),
		pending: map[net.Conn]bool{}}
	s.all.Go(s.accept)
	return s
}

func (s *sniffer) accept() {
	for {
		conn, err := s.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(5 * time.Millisecond): // out of file descriptors: it passes
				continue
			case <-s.done:
				return
			}
		}
		s.all.Go(func() { s.sniff(conn) })
	}
}

// sniff waits for the first byte no longer than for a header.
func (s *sniffer) sniff(conn net.Conn) {
	if !s.hold(conn) {
		return
	}
	defer s.drop(conn)
	peeked := &peekedConn{Conn: conn, r: bufio.NewReader(conn)}
	_ = conn.SetReadDeadline(time.Now().Add(headerTimeout)) // a broken connection fails below
	first, err := peeked.r.Peek(1)
	if err != nil {
		_ = conn.Close() // nobody is there
		return
	}
	_ = conn.SetReadDeadline(time.Time{}) // the server sets its own
	out := net.Conn(peeked)
	if first[0] == tlsHandshake {
		out = tls.Server(peeked, s.config)
	}
	select {
	case s.ready <- out:
	case <-s.done:
		_ = conn.Close() // we are leaving
	}
}

// Accept answers the next connection that has said something.
func (s *sniffer) Accept() (net.Conn, error) {
	select {
	case conn := <-s.ready:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *sniffer) hold(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close() // we are leaving
		return false
	}
	s.pending[conn] = true
	return true
}

func (s *sniffer) drop(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, conn)
}

// Close ends accepting, and the connections that have said nothing yet.
func (s *sniffer) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for conn := range s.pending {
		_ = conn.Close() // nobody is served any more
	}
	s.mu.Unlock()
	err := s.Listener.Close()
	s.all.Wait()
	return err
}

type peekedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *peekedConn) Read(p []byte) (int, error) { return c.r.Read(p) }
