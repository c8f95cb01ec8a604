package webhook_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/guard"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

// hostileEnv turns the test binary into the hostile receivers' process, so that
// what is measured in the test process is the sender alone.
const hostileEnv = "TRIBUTARY_WEBHOOK_HOSTILE"

// hostile is one way to mistreat a sender after its request was read.
type hostile struct {
	name   string
	class  webhook.Class
	status int
	reply  int  // bytes of the reply kept, -1 when it depends on timing
	slow   bool // lasts until the exchange time is over
	act    func(conn net.Conn)
}

func say(conn net.Conn, text string) { _, _ = io.WriteString(conn, text) }

// pour writes until the other side hangs up.
func pour(conn net.Conn, chunk []byte) {
	for {
		if _, err := conn.Write(chunk); err != nil {
			return
		}
	}
}

// drip writes one byte per interval until the other side hangs up.
func drip(conn net.Conn, b byte) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
	}
}

// hang waits until the other side hangs up.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func reset(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		_ = t.NetConn().(*net.TCPConn).SetLinger(0)
		t.NetConn().Close()
	}
}

// bomb is some 64 KiB of gzip that become 64 MiB.
func bomb() []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	return bytes.Repeat(b.Bytes(), 64) // 64 members of 1 MiB are one stream of 64 MiB
}

func differentHeaders() string {
	var b strings.Builder
	for i := 0; b.Len() < 63<<10; i++ {
		fmt.Fprintf(&b, "%x:\r\n", i)
	}
	return b.String()
}

const ok = "HTTP/1.1 200 OK\r\n"

// hostiles are made once: the bomb takes a while.
var hostiles = sync.OnceValue(func() []hostile {
	kilo := bytes.Repeat([]byte("x"), 1<<10)
	gz := bomb()
	then := func(head string, f func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) { say(c, head); f(c) }
	}
	pourHeaders := func(c net.Conn) { pour(c, []byte("X-Pad: "+string(kilo)+"\r\n")) }
	kept := webhook.ReplyBytesKept
	return []hostile{
		{"endless body", "", 200, kept, false, then(ok+"\r\n", func(c net.Conn) { pour(c, kilo) })},
		{"endless chunked body", "", 200, kept, false, then(ok+"Transfer-Encoding: chunked\r\n\r\n", func(c net.Conn) {
			pour(c, []byte("400\r\n"+string(kilo)+"\r\n"))
		})},
		{"gzip bomb", "", 200, kept, false, then(
			ok+fmt.Sprintf("Connection: close\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(gz)),
			func(c net.Conn) {
				_, _ = c.Write(gz)
				hang(c)
			})},
		{"10 MB of headers", "", 200, 0, false, then(ok, pourHeaders)},
		{"one endless header", "", 200, 0, false, then(ok+"X-Pad: ", func(c net.Conn) { pour(c, kilo) })},
		{"slow headers", "", 200, 0, true, then(ok+"X-Slow: ", func(c net.Conn) { drip(c, 'x') })},
		{"one byte at a time", "", 200, -1, true, then(ok+"Content-Length: 1000000\r\n\r\n", func(c net.Conn) {
			drip(c, 'x')
		})},
		{"silence after the status line", "", 204, 0, true, then("HTTP/1.1 204 No Content\r\n", hang)},
		{"silence after the headers", "", 200, 0, true, then(ok+"Content-Length: 5\r\n\r\n", hang)},
		{"reset after the status line", "", 200, 0, false, then(ok, reset)},
		{"reset within the body", "", 200, -1, false, then(ok+"Content-Length: 1000\r\n\r\nabc", reset)},
		{"closed after the status line", "", 202, 0, false, then("HTTP/1.0 202 Accepted\n", func(net.Conn) {})},
		{"nonsense after the status line", "", 200, 0, false, then(ok+"no header at all\r\n\r\n", hang)},
		{"broken chunks", "", 200, 0, false, then(ok+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", hang)},
		{"two content lengths", "", 200, 0, false, then(ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", hang)},
		{"early hints first", "", 200, 2, false,
			then("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"+ok+
				"Connection: close\r\nContent-Length: 2\r\n\r\nhi", hang)},
		{"early hints, then cut after the status line", "", 200, 0, false,
			then("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"+ok+"X: ", func(net.Conn) {})},

		{"head up to its limit, then silence", "", 200, 0, true,
			then(ok+strings.Repeat("X-Pad: "+strings.Repeat("y", 8000)+"\r\n", 7), hang)},
		{"many small headers, then silence", "", 200, 0, true, then(ok+strings.Repeat("A: b\r\n", 10000), hang)},
		{"many different headers, then silence", "", 200, 0, true, then(ok+differentHeaders(), hang)},
		{"body up to its limit, then silence", "", 200, kept, true, then(ok+"\r\n"+strings.Repeat("z", 60000), hang)},

		{"endless 500", webhook.ClassStatus, 500, kept, false, then("HTTP/1.1 500 Oops\r\n\r\n", func(c net.Conn) {
			pour(c, kilo)
		})},
		{"500 with 10 MB of headers", webhook.ClassStatus, 500, 0, false, then("HTTP/1.1 500 Oops\r\n", pourHeaders)},
		{"redirect with 10 MB of headers", webhook.ClassMalformed, 302, 0, false,
			then("HTTP/1.1 302 Found\r\nLocation: /\r\n", pourHeaders)},
		{"redirect cut before its Location", webhook.ClassMalformed, 302, 0, false, then("HTTP/1.1 302 Found\r\nX: ", reset)},
		{"switching protocols", webhook.ClassStatus, 101, 0, false,
			then("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", hang)},
		{"endless early hints", webhook.ClassMalformed, 0, 0, false, func(c net.Conn) {
			pour(c, []byte("HTTP/1.1 103 Early Hints\r\n\r\n"))
		}},
		{"endless status line", webhook.ClassMalformed, 0, 0, false, then("HTTP/1.1 200 ", func(c net.Conn) {
			pour(c, kilo)
		})},
		{"half a status line", webhook.ClassMalformed, 0, 0, false, then("HTTP/1.1 200", func(net.Conn) {})},
		{"another protocol", webhook.ClassMalformed, 0, 0, false, then("220 mail.example ESMTP\r\n", hang)},
		{"a number that is no status", webhook.ClassMalformed, 0, 0, false, then("HTTP/1.1 2000 OK\r\n\r\n", hang)},
		{"silence", webhook.ClassTimeout, 0, 0, true, hang},
		{"closed without a word", webhook.ClassClosed, 0, 0, false, func(net.Conn) {}},
		{"reset without a word", webhook.ClassClosed, 0, 0, false, reset},
	}
})

// serveConn reads the request and then does what the path's number says.
func serveConn(conn net.Conn, list []hostile) {
	defer conn.Close()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	var i int
	if _, err := fmt.Sscanf(req.URL.Path, "/%d", &i); err == nil {
		list[i].act(conn)
	}
}

// serveHostile is the main of the receivers' process. It ends with its standard input.
func serveHostile() {
	ca, err := newAuthority()
	if err != nil {
		panic(err)
	}
	cert, err := ca.issue("127.0.0.1")
	if err != nil {
		panic(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		panic(err)
	}
	list := hostiles()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveConn(conn, list)
		}
	}()
	_ = json.NewEncoder(os.Stdout).Encode(hostileHello{l.Addr().String(), ca.pem})
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type hostileHello struct {
	Address string
	CA      []byte
}

func startHostile(t *testing.T) (base string, pool *x509.CertPool) {
	t.Helper()
	cmd := exec.Command(must(os.Executable())(t))
	cmd.Env = append(os.Environ(), hostileEnv+"=1")
	stdin := must(cmd.StdinPipe())(t)
	stdout := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	var hello hostileHello
	if err := json.NewDecoder(stdout).Decode(&hello); err != nil {
		t.Fatal(err)
	}
	return "https://" + hello.Address, must(webhook.LoadRoots(hello.CA))(t)
}

// sendHostile tries one receiver. Who lasts until the time is over gets little of
// it, and more where the machine was too slow for even the handshake in that time.
func sendHostile(t *testing.T, base string, i int, pool *x509.CertPool) (try webhook.Try) {
	t.Helper()
	h := hostiles()[i]
	exchange := time.Minute
	if h.slow {
		exchange = time.Second
	}
	for ; exchange <= time.Minute; exchange *= 4 {
		s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: pool, Exchange: exchange,
			Connect: time.Minute})
		try = s.Send(t.Context(), fmt.Sprintf("%s/%d", base, i), parcel(t))
		if try.Class == h.class && try.Status == h.status && try.Address != "" && (h.reply < 0 || len(try.Reply) == h.reply) {
			break
		}
	}
	return try
}

func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "programs beside this one")
	base, pool := startHostile(t)
	list := hostiles()
	tries := make([]webhook.Try, len(list))
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { tries[i] = sendHostile(t, base, i, pool) })
	}
	wg.Wait()
	for i, h := range list {
		t.Run(h.name, func(t *testing.T) {
			try := tries[i]
			if try.Class != h.class || try.Status != h.status || try.Delivered() != (h.status/100 == 2) {
				t.Errorf("class %q status %d, want %q %d: %s", try.Class, try.Status, h.class, h.status, try.Detail)
			}
			if h.reply >= 0 && len(try.Reply) != h.reply || len(try.Reply) > webhook.ReplyBytesKept {
				t.Errorf("kept %d bytes, want %d", len(try.Reply), h.reply)
			}
			if try.Latency <= 0 || try.Address == "" {
				t.Errorf("latency %s, address %q", try.Latency, try.Address)
			}
		})
	}
}

// The ways of receivers are listed where security is described, all of them.
func TestHostileReceiversAreDescribed(t *testing.T) {
	t.Parallel()
	described := strings.Join(strings.Fields(string(must(os.ReadFile("../../docs/security.md"))(t))), " ")
	for _, h := range hostiles() {
		if !strings.Contains(described, h.name) {
			t.Errorf("docs/security.md does not name %q", h.name)
		}
	}
}

const deliveryBytesMax = 256 << 10

// mostHeld are those that make a delivery hold the most; make long asks all that last.
var mostHeld = map[string]bool{"head up to its limit, then silence": true,
	"many different headers, then silence": true, "body up to its limit, then silence": true}

// What a receiver can make a delivery hold, stacks included: many deliveries to
// receivers that send as much as they are let and then keep the connection.
func TestNoReceiverMakesADeliveryHoldMoreThan256KiB(t *testing.T) {
	needs.NotRaced(t, "memory is measured")
	base, pool := startHostile(t)
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: pool,
		Exchange: 400 * time.Millisecond})
	p := parcel(t)
	s.Send(t.Context(), base+"/0", p) // roots are parsed once per process, not per delivery
	const deliveries = 24
	worst, worstName := uint64(0), ""
	for i, h := range hostiles() {
		if !h.slow || !needs.IsLong() && !mostHeld[h.name] {
			continue
		}
		per := uint64(math.MaxUint64)
		for try := 0; try < 3 && per > deliveryBytesMax; try++ { // noise of other tests only adds: the least of three counts
			before := live()
			peak := peakWhile(func() {
				var wg sync.WaitGroup
				for range deliveries {
					wg.Go(func() { s.Send(t.Context(), fmt.Sprintf("%s/%d", base, i), p) })
				}
				wg.Wait()
			})
			per = min(per, (peak-min(before, peak))/deliveries)
		}
		if per > deliveryBytesMax {
			t.Errorf("%s: %d bytes per delivery", h.name, per)
		}
		if per > worst {
			worst, worstName = per, h.name
		}
	}
	if worst < 8<<10 {
		t.Errorf("only %d bytes per delivery: the measurement saw nothing", worst)
	}
	t.Logf("worst: %d KiB held per delivery (%s)", worst>>10, worstName)
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func peakWhile(f func()) (peak uint64) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			peak = max(peak, live())
		case <-done:
			return peak
		}
	}
}

// What a receiver can make a delivery allocate from beginning to end, garbage and
// TLS handshake included. The bound is twice the one on what is held.
func TestNoReceiverMakesADeliveryChurnMuch(t *testing.T) {
	needs.NotRaced(t, "memory is measured")
	base, pool := startHostile(t)
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: pool,
		Exchange: 100 * time.Millisecond})
	p := parcel(t)
	s.Send(t.Context(), base+"/0", p)
	worst, worstName := uint64(0), ""
	for i, h := range hostiles() {
		rounds := 4
		if h.slow {
			rounds = 1
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			s.Send(t.Context(), fmt.Sprintf("%s/%d", base, i), p)
		}
		runtime.ReadMemStats(&after)
		per := (after.TotalAlloc - before.TotalAlloc) / uint64(rounds)
		if per > 2*deliveryBytesMax {
			t.Errorf("%s: %d bytes per delivery", h.name, per)
		}
		if per > worst {
			worst, worstName = per, h.name
		}
	}
	t.Logf("worst: %d KiB allocated per delivery (%s)", worst>>10, worstName)
}

func TestReplyIsKeptAndReadUpToItsLimits(t *testing.T) {
	t.Parallel()
	var conns sync.Map
	var connections int
	var mu sync.Mutex
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if _, known := conns.LoadOrStore(r.RemoteAddr, true); !known {
			connections++
		}
		mu.Unlock()
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		w.Header().Set("Content-Length", fmt.Sprint(n))
		w.Write(bytes.Repeat([]byte("x"), n))
	})
	ca := must(newAuthority())(t)
	server := serveTLS(t, ca, "127.0.0.1:0", handler, "127.0.0.1")
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	for _, c := range []struct {
		size, kept int
		reused     bool // the next delivery uses the same connection
	}{
		{0, 0, true}, {1, 1, true}, {4095, 4095, true}, {4096, 4096, true}, {4097, 4096, true},
		{64 << 10, 4096, true}, {64<<10 + 1, 4096, false}, {10 << 20, 4096, false},
	} {
		connections = 0
		s.Close()
		for range 2 {
			if try := s.Send(t.Context(), fmt.Sprintf("%s/%d", server.URL, c.size), parcel(t)); !try.Delivered() ||
				len(try.Reply) != c.kept {
				t.Errorf("%d bytes: %s %d kept", c.size, try.Class, len(try.Reply))
			}
		}
		mu.Lock()
		if reused := connections == 1; reused != c.reused {
			t.Errorf("%d bytes: %d connections for two deliveries", c.size, connections)
		}
		mu.Unlock()
		conns.Clear()
	}
}

func TestHeadersUpToTheLimitArePartOfAReply(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	server := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n, line int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d/%d", &n, &line)
		for range n {
			w.Header().Add("X-Pad", strings.Repeat("x", 1015)) // a line of 1 KiB
		}
		w.Header().Set("X-Line", strings.Repeat("x", line-len("X-Line: \r")))
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(503)
	}), "127.0.0.1")
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	for _, c := range []struct {
		lines, line int
		want        time.Duration
	}{
		{0, 8 << 10, 9 * time.Second}, {0, 8<<10 + 1, 0}, // one line, at its limit and past it
		{62, 1 << 10, 9 * time.Second}, {64, 1 << 10, 0}, // the whole head
	} {
		try := s.Send(t.Context(), fmt.Sprintf("%s/%d/%d", server.URL, c.lines, c.line), parcel(t))
		if try.Status != 503 || try.Class != webhook.ClassStatus || try.RetryAfter != c.want {
			t.Errorf("%+v: %d %s, Retry-After %s: %s", c, try.Status, try.Class, try.RetryAfter, try.Detail)
		}
	}
}

func FuzzReplyWatchAgreesWithTheStandardParser(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	for _, s := range []string{ok + "\r\n", "HTTP/1.1 103 x\r\nA: b\r\n\r\nHTTP/1.0 500 \n\n", "HTTP/1.1 200",
		"HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 101 x\n\n", "junk\n"} {
		f.Add([]byte(s), 3)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, reply []byte, cut int) {
		cut = min(max(cut, 0), len(reply))
		status, within := webhook.WatchReply(reply[:cut], reply[cut:])
		if whole, w := webhook.WatchReply(reply); whole != status || w != within {
			t.Fatalf("cut at %d: %d %v, whole: %d %v", cut, status, within, whole, w)
		}
		r := bufio.NewReader(bytes.NewReader(reply))
		for range 9 {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				return
			}
			if resp.ProtoMajor != 1 || resp.StatusCode < 100 || bytes.Contains(reply, []byte("        ")) {
				return
			}
			if resp.StatusCode >= 200 || resp.StatusCode == 101 {
				if within && status != resp.StatusCode {
					t.Fatalf("%q: watched %d, parsed %d", reply, status, resp.StatusCode)
				}
				return
			}
		}
	})
}

func TestReceiverThatNeverFinishesTheHandshake(t *testing.T) {
	t.Parallel()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); hang(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Connect: 100 * time.Millisecond})
	if try := s.Send(t.Context(), "https://"+l.Addr().String(), parcel(t)); try.Class != webhook.ClassConnectTimeout {
		t.Errorf("%s: %s", try.Class, try.Detail)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if try := s.Send(ctx, "https://"+l.Addr().String(), parcel(t)); try.Class != webhook.ClassInterrupted {
		t.Errorf("cancelled by us: %s: %s", try.Class, try.Detail)
	}
}
