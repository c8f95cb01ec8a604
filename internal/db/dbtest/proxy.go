package dbtest

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between the program and the server and can cut a connection in
// the middle of a COMMIT.
type Proxy struct {
	l      net.Listener
	server string
	// Cut is how many bytes of the next COMMIT and its answer pass: up to the
	// length of the message they are the client's, past it the server's. -1: all.
	Cut   atomic.Int64
	Fired atomic.Int64
	Mute  atomic.Bool  // the server's answers do not arrive
	Deaf  atomic.Int64 // so many of the next connections are taken and never carried on
	wg    sync.WaitGroup

	mu    sync.Mutex
	local []int64 // the ports from which it called the server
}

// CommitMessage is what the driver sends to commit.
var CommitMessage = []byte("Q\x00\x00\x00\x0bcommit\x00")

// StartProxy stands before a server until the test ends.
func StartProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{l: l, server: server}
	p.Cut.Store(-1)
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.carry(client) })
		}
	})
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	return p
}

func (p *Proxy) carry(client net.Conn) {
	defer client.Close()
	if p.Deaf.Add(-1) >= 0 {
		_, _ = io.Copy(io.Discard, client) // until he gives up
		return
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.local = append(p.local, int64(server.LocalAddr().(*net.TCPAddr).Port))
	p.mu.Unlock()
	var answer atomic.Int64
	answer.Store(-1) // bytes of the answer that still pass; -1: all
	p.wg.Go(func() {
		defer client.Close()
		defer server.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if p.Mute.Load() {
				n = 0
			}
			if left := answer.Load(); left >= 0 {
				_, _ = client.Write(buf[:min(int64(n), left)]) // cut right after
				return
			}
			if _, bad := client.Write(buf[:n]); err != nil || bad != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if at := bytes.Index(buf[:n], CommitMessage); at >= 0 && p.Cut.Load() >= 0 {
			pass := p.Cut.Swap(-1)
			if pass >= 0 {
				p.Fired.Add(1)
				answer.Store(max(pass-int64(len(CommitMessage)), 0))
				_, _ = server.Write(buf[:int64(at)+min(pass, int64(len(CommitMessage)))]) // cut right after
				if pass < int64(len(CommitMessage)) {
					return
				}
				_, _ = io.Copy(io.Discard, client) // until the answer's side cuts
				return
			}
		}
		if _, bad := server.Write(buf[:n]); err != nil || bad != nil {
			return
		}
	}
}

// Ports are those from which the proxy called the server.
func (p *Proxy) Ports() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.local)
}

// Addr is where the program finds it.
func (p *Proxy) Addr() string { return p.l.Addr().String() }
