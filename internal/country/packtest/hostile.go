package packtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
)

// hostility is one way of an authority, or of whoever stands between it and us,
// to answer a call as nobody should. The names stand in docs/security.md.
type hostility struct {
	name string
	slow bool // lasts until the caller gives up, see hostileFront.drags
	act  func(h *hostileFront, w http.ResponseWriter, truth answerOf)
}

// answerOf is an answer of the double, whole.
type answerOf struct {
	status int
	header http.Header
	body   []byte
}

func (a answerOf) json() bool { return strings.Contains(a.header.Get("Content-Type"), "json") }

// Hostilities are the names of all ways, for those who document them.
func Hostilities() (names []string) {
	for _, h := range hostilities() {
		names = append(names, h.name)
	}
	return names
}

func hostilities() []hostility {
	kilo := bytes.Repeat([]byte("x"), 1<<10)
	raw := func(text string, then func(net.Conn)) func(*hostileFront, http.ResponseWriter, answerOf) {
		return func(_ *hostileFront, w http.ResponseWriter, _ answerOf) { hijack(w, text, then) }
	}
	plain := func(status int, body string, headers ...string) func(*hostileFront, http.ResponseWriter, answerOf) {
		return func(_ *hostileFront, w http.ResponseWriter, _ answerOf) { answerWith(w, status, body, headers...) }
	}
	const page = "<!DOCTYPE html><html><body><h1>Access denied</h1><p>Your request was blocked.</p></body></html>"
	return []hostility{
		{name: "endless body", act: raw("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n", func(c net.Conn) { pour(c, kilo) })},
		{name: "endless headers", act: raw("HTTP/1.1 200 OK\r\n", func(c net.Conn) {
			pour(c, []byte("X-Pad: "+string(kilo)+"\r\n"))
		})},
		{name: "one byte at a time", slow: true, act: func(h *hostileFront, w http.ResponseWriter, _ answerOf) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", h.drip)
		}},
		{name: "silence", slow: true, act: func(h *hostileFront, w http.ResponseWriter, _ answerOf) { hijack(w, "", h.hang) }},
		{name: "reset", act: raw("", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })},
		{name: "gzip bomb", act: func(_ *hostileFront, w http.ResponseWriter, _ answerOf) {
			answerWith(w, 200, string(bomb()), "Content-Encoding", "gzip", "Content-Type", "text/xml")
		}},
		{name: "redirect elsewhere", act: func(h *hostileFront, w http.ResponseWriter, _ answerOf) {
			answerWith(w, http.StatusTemporaryRedirect, "", "Location", h.elsewhere.URL+"/latest/meta-data")
		}},
		{name: "page of a proxy", act: plain(200, page, "Content-Type", "text/html")},
		{name: "nothing at all", act: plain(200, "")},
		{name: "half an answer", act: func(_ *hostileFront, w http.ResponseWriter, truth answerOf) {
			hijack(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
				truth.header.Get("Content-Type"), len(truth.body), truth.body[:len(truth.body)/2]), nil)
		}},
		{name: "entities", act: func(h *hostileFront, w http.ResponseWriter, _ answerOf) {
			answerWith(w, 200, entities(h.elsewhere.URL), "Content-Type", "text/xml")
		}},
		{name: "depth", act: func(_ *hostileFront, w http.ResponseWriter, truth answerOf) {
			open, end := "<a>", "</a>"
			if truth.json() {
				open, end = "[", "]"
			}
			answerWith(w, 200, strings.Repeat(open, 100_000)+strings.Repeat(end, 100_000), "Content-Type",
				truth.header.Get("Content-Type"))
		}},
		{name: "another format", act: func(_ *hostileFront, w http.ResponseWriter, truth answerOf) {
			if truth.json() {
				answerWith(w, 200, "<status>ok</status>", "Content-Type", "text/xml")
			} else {
				answerWith(w, 200, `{"status":"ok"}`, "Content-Type", "application/json")
			}
		}},
		{name: "a long text", act: plain(500, strings.Repeat("A failure that explains itself at length. ", 1<<20/42),
			"Content-Type", "text/plain")},
		{name: "bytes that are no text", act: func(_ *hostileFront, w http.ResponseWriter, truth answerOf) {
			body := bytes.Clone(truth.body)
			for i := len(body) / 3; i < len(body); i += 7 {
				body[i] = "\x00\xff\x1b\xc3"[i%4]
			}
			answerWith(w, 200, string(body), "Content-Type", truth.header.Get("Content-Type"))
		}},
		{name: "a wait without end", act: plain(http.StatusTooManyRequests, "slow down", "Retry-After", "999999999999")},
		{name: "refusal of a gateway", act: plain(http.StatusForbidden, page, "Content-Type", "text/html")},
		{name: "yesterday's answer", act: func(h *hostileFront, w http.ResponseWriter, _ answerOf) {
			answerWith(w, h.yesterday.status, string(h.yesterday.body), "Content-Type", h.yesterday.header.Get("Content-Type"))
		}},
	}
}

func answerWith(w http.ResponseWriter, status int, body string, headers ...string) {
	for i := 0; i+1 < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // who is called may hang up
}

func hijack(w http.ResponseWriter, text string, then func(net.Conn)) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // for good
	_, _ = io.WriteString(conn, text)   // who is called may hang up
	if then != nil {
		then(conn)
	}
}

// pour writes until the other side hangs up; 64 MiB are endless enough.
func pour(conn net.Conn, chunk []byte) {
	for range 64 << 20 / len(chunk) {
		if _, err := conn.Write(chunk); err != nil {
			return
		}
	}
}

// drip drags an answer out that has begun.
func (h *hostileFront) drip(conn net.Conn) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		if _, err := conn.Write([]byte{'x'}); err != nil {
			return
		}
		if n == 3 {
			h.drags()
		}
		<-tick.C
	}
}

// hang says nothing until the other side hangs up.
func (h *hostileFront) hang(conn net.Conn) {
	h.drags()
	_, _ = io.Copy(io.Discard, conn)
}

// bomb is some 64 KiB of gzip that become 64 MiB.
func bomb() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20)) // to memory
	_ = z.Close()
	return bytes.Repeat(b.Bytes(), 64)
}

// entities is a document that grows without end, and that asks for a file of
// ours and for an address.
func entities(elsewhere string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/hostname"><!ENTITY u SYSTEM "` + elsewhere + `/x"><!ENTITY e0 "ha">`)
	for i := range 30 {
		fmt.Fprintf(&b, `<!ENTITY e%d "&e%d;&e%d;">`, i+1, i, i)
	}
	b.WriteString(`]><a>&f;&u;&e30;</a>`)
	return b.String()
}

// hostileFront stands before a double. It answers one call in a hostile way,
// after the double has had it or instead of it, and is honest otherwise.
type hostileFront struct {
	next      http.Handler
	elsewhere *httptest.Server // where nothing of ours may ever call
	astray    atomic.Int64

	mu        sync.Mutex
	seen      int // calls since armed
	strikeAt  int // 0: never
	forward   bool
	mode      hostility
	struck    bool
	late      chan struct{} // closed when a call is being dragged out
	yesterday answerOf      // of another document
}

func newHostileFront(t *testing.T, next http.Handler) *hostileFront {
	h := &hostileFront{next: next}
	h.elsewhere = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { h.astray.Add(1) }))
	t.Cleanup(h.elsewhere.Close)
	return h
}

func (h *hostileFront) arm(mode hostility, at int, forward bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mode, h.strikeAt, h.forward, h.seen, h.struck = mode, at, forward, 0, false
	h.late = make(chan struct{})
}

// drags is called once in the call that is struck.
func (h *hostileFront) drags() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.late)
}

// bounded is the context of one call, whose deadline passes as soon as the
// authority drags the call out; in service it is the channel's own limit. A call
// after that is bounded by nothing.
func (h *hostileFront) bounded(ctx context.Context) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mode.slow || h.struck {
		return ctx
	}
	return deadline{ctx, h.late}
}

// deadline is a context whose time is up when somebody says so.
type deadline struct {
	context.Context
	passed <-chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return d.Context.Err()
	}
}

func (h *hostileFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_control/") {
		h.next.ServeHTTP(w, r)
		return
	}
	h.mu.Lock()
	h.seen++
	strike := h.seen == h.strikeAt
	h.struck = h.struck || strike
	forward, mode, truth := h.forward, h.mode, h.yesterday
	h.mu.Unlock()
	if !strike || forward {
		record := httptest.NewRecorder()
		h.next.ServeHTTP(record, r)
		truth = answerOf{record.Code, record.Header(), record.Body.Bytes()}
	}
	if strike {
		mode.act(h, w, truth)
		return
	}
	if truth.status/100 == 2 && h.armedNever() {
		h.mu.Lock()
		h.yesterday = truth
		h.mu.Unlock()
	}
	for name, values := range truth.header {
		w.Header()[name] = values
	}
	w.WriteHeader(truth.status)
	_, _ = w.Write(truth.body) // who is called may hang up
}

func (h *hostileFront) armedNever() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.strikeAt == 0
}

// since says how many calls came since it was armed, and whether it struck.
func (h *hostileFront) since() (calls int, struck bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen, h.struck
}

// hostile lets the authority answer in every hostile way, once instead of
// doing its work and once after it: the filing still ends accepted with exactly
// one document (without any memory, class N, with at most one), nobody is
// called but the authority, and nothing is ever called rejected.
func (s suite) hostile(t *testing.T) {
	var front *hostileFront
	w := s.wiredBehind(t, func(next http.Handler) http.Handler { front = newHostileFront(t, next); return front })
	w.bounded = front.bounded
	limits := w.channel.Limits()
	run, last := 0, country.Link{}
	file := func(t *testing.T) (country.Filing, ending, []authority.Registration) {
		run++
		d := s.another(run)
		if limits.Chain {
			d.Previous = last
		}
		f := s.prepare(t, w, d)
		last = f.Link
		before := len(w.registrations(t))
		e := w.file(t, f)
		return f, e, w.registrations(t)[before:]
	}
	if _, e, held := file(t); e.verdict != accepted || len(held) != 1 {
		t.Fatalf("an honest call: %s, %d registrations, %v", e.verdict, len(held), e.errors)
	}
	front.arm(hostility{}, -1, false)
	if _, e, _ := file(t); e.verdict != accepted { // sessions are open now
		t.Fatalf("an honest call: %s, %v", e.verdict, e.errors)
	}
	usual, _ := front.since()
	for i, mode := range hostilities() {
		for _, forward := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, forwarded %t", mode.name, forward), func(t *testing.T) {
				front.arm(mode, i%usual+1, forward)
				f, e, held := file(t)
				if _, struck := front.since(); !struck {
					t.Fatalf("the call number %d was never made", i%usual+1)
				}
				if front.astray.Load() != 0 {
					t.Fatal("somebody else was called")
				}
				if limits.Class == country.ByNothing && e.verdict == unknown && len(held) <= 1 ||
					s.o.StatusAlone && e.verdict == accepted {
					return
				}
				if e.verdict != accepted || len(held) != 1 || held[0].SHA256 != f.SHA256 {
					t.Fatalf("%s, %d registrations, receipt %+v, errors %.2000v", e.verdict, len(held), e.receipt, e.errors)
				}
			})
		}
	}
}

// call bounds a single call where the test wants it bounded.
func (w *wiring) call(t *testing.T) (context.Context, context.CancelFunc) {
	if w.bounded != nil {
		return context.WithCancel(w.bounded(t.Context()))
	}
	return context.WithCancel(t.Context())
}
