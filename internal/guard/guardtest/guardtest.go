// Package guardtest has what tests of guarded connections need: a DNS server
// that may change its mind, and listeners that nobody may reach.
package guardtest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone is a DNS server that may change its mind: each name has one list of
// addresses per lookup, the last one repeats.
type Zone struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   map[string]int
	conn    net.PacketConn
}

// NewZone starts a DNS server that knows nothing.
func NewZone(t testing.TB) *Zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &Zone{answers: map[string][][]netip.Addr{}, asked: map[string]int{}, conn: conn}
	done := make(chan struct{})
	go func() { defer close(done); z.serve() }()
	t.Cleanup(func() { z.conn.Close(); <-done })
	return z
}

// Set says what a name resolves to, lookup by lookup.
func (z *Zone) Set(name string, lookups ...[]netip.Addr) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answers[name+"."] = lookups
}

// Addrs parses addresses.
func Addrs(texts ...string) []netip.Addr {
	var list []netip.Addr
	for _, s := range texts {
		list = append(list, netip.MustParseAddr(s))
	}
	return list
}

// Resolver asks this server and nobody else.
func (z *Zone) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", z.conn.LocalAddr().String())
	}}
}

func (z *Zone) serve() {
	buf := make([]byte, 2048)
	for {
		n, from, err := z.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply, ok := z.answer(buf[:n]); ok {
			_, _ = z.conn.WriteTo(reply, from)
		}
	}
}

func (z *Zone) answer(query []byte) ([]byte, bool) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, false
	}
	q, err := p.Question()
	if err != nil {
		return nil, false
	}
	name := strings.ToLower(q.Name.String())
	z.mu.Lock()
	lookups, known := z.answers[name]
	key := name + q.Type.String()
	i := z.asked[key]
	z.asked[key]++
	z.mu.Unlock()
	m := dnsmessage.Message{
		Header: dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	} else {
		for _, a := range lookups[min(i, len(lookups)-1)] {
			h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}
			switch {
			case q.Type == dnsmessage.TypeA && a.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
			case q.Type == dnsmessage.TypeAAAA && !a.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
	}
	reply, err := m.Pack()
	return reply, err == nil
}

// Forbidden is a listener on every local address that must not be connected to.
type Forbidden struct {
	net.Listener
	Seen atomic.Int64
}

// NewForbidden listens on an address and counts who comes.
func NewForbidden(t testing.TB, address string) *Forbidden {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f := &Forbidden{Listener: l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := f.Accept()
			if err != nil {
				return
			}
			f.Seen.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { f.Close(); <-done })
	return f
}

// Port is where it listens.
func (f *Forbidden) Port() string {
	_, port, _ := net.SplitHostPort(f.Addr().String())
	return port
}
