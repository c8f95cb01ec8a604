package webhook_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/guard"
	"tributary/internal/guard/guardtest"
	"tributary/internal/webhook"
)

// The resolver never answers, so that only our own limits can end the try.
func TestDefaultTimesAreTheContracts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		connect time.Duration
		class   webhook.Class
		want    time.Duration
	}{
		{"connect", 0, webhook.ClassDNS, 5 * time.Second},
		{"exchange", time.Hour, webhook.ClassTimeout, 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}
				if c.name == "exchange" {
					resolver.Dial = func(context.Context, string, string) (net.Conn, error) {
						<-t.Context().Done() // longer than the resolver's own patience
						return nil, io.EOF
					}
				}
				s := must(webhook.NewSender(webhook.SenderConfig{Guard: newGuard(t, guard.Config{}), Resolver: resolver,
					Connect: c.connect}))(t)
				defer s.Close()
				begun := time.Now()
				try := s.Send(t.Context(), "https://never.example/", parcel(t))
				if try.Class != c.class || time.Since(begun) != c.want || try.Latency != c.want {
					t.Errorf("%s after %s: %s", try.Class, time.Since(begun), try.Detail)
				}
			})
		})
	}
}

func TestShutdownInterruptsATryButNotADelivery(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	reached, release := make(chan struct{}), make(chan struct{})
	server := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/said-ok" {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		} else {
			close(reached)
		}
		<-release
	}), "127.0.0.1")
	defer close(release)
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	if try := s.Send(ctx, server.URL+"/silent", parcel(t)); try.Class != webhook.ClassInterrupted {
		t.Errorf("before it spoke: %s %s", try.Class, try.Detail)
	}
	// Where the receiver has spoken, our deadline leaves time to hear it: more of it on a slow machine.
	var try webhook.Try
	for wait := 250 * time.Millisecond; wait < 2*time.Minute; wait *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		try = s.Send(ctx, server.URL+"/said-ok", parcel(t))
		cancel()
		if try.Delivered() {
			return
		}
	}
	t.Errorf("after it spoke: %s %s", try.Class, try.Detail)
}

func TestKeptConnectionThatWasClosedCostsNoTry(t *testing.T) {
	t.Parallel()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	var served atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { // one reply, then the next request is read and the connection closed
				defer c.Close()
				r := bufio.NewReader(c)
				for i := range 2 {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if i == 0 {
						served.Add(1)
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true})})
	t.Cleanup(s.Close)
	for range 3 {
		if try := s.Send(t.Context(), "http://"+l.Addr().String(), parcel(t)); !try.Delivered() {
			t.Errorf("%s: %s", try.Class, try.Detail)
		}
	}
	if served.Load() != 3 {
		t.Errorf("%d replies", served.Load())
	}
	s.Close()
}

func TestRecordOfATry(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	server := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "Sun, 01 Mar 2026 12:02:00 GMT")
		w.WriteHeader(429)
		io.WriteString(w, "<b>later</b>\x00")
	}), "127.0.0.1")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca),
		Now: func() time.Time {
			return now
		}})
	sent := parcel(t)
	try := s.Send(t.Context(), server.URL, sent)
	latency := try.Latency
	try.Latency = 0
	if len(try.Headers) != 2+len(sent.Headers()) || try.Headers[2] != sent.Headers()[0] {
		t.Errorf("the headers are kept as %v", try.Headers)
	}
	try.Headers = nil
	want := webhook.Try{At: now, Body: sent.Body, URL: server.URL + "/", Address: server.Listener.Addr().String(),
		Status: 429, Reply: []byte("<b>later</b>\x00"),
		Class: webhook.ClassStatus, Detail: "the receiver answered 429", KeyID: "k1", RetryAfter: 2 * time.Minute}
	if fmt.Sprintf("%+v", try) != fmt.Sprintf("%+v", want) || latency <= 0 {
		t.Errorf("%+v\nwant %+v", try, want)
	}
}

func TestSignatureOfTheNewerKeyTravelsDuringARotation(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	headers := make(chan http.Header, 2)
	server := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/on", http.StatusSeeOther)
		}
		headers <- r.Header
	}), "127.0.0.1")
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	p := must(webhook.Pack(notification(time.Now()), webhook.Keys{Current: key("k1"), Next: key("k2")}))(t)
	if try := s.Send(t.Context(), server.URL, p); !try.Delivered() || try.Hops != 1 {
		t.Fatalf("%+v", try)
	}
	for range 2 {
		h := <-headers
		if h.Get(webhook.HeaderSignature) != p.Signature || h.Get(webhook.HeaderSignatureNext) != p.SignatureNext ||
			p.Signature == p.SignatureNext {
			t.Errorf("headers %v", h)
		}
	}
}

func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	proxy := guardtest.NewForbidden(t, "127.0.0.1:0")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{}), Resolver: guardtest.NewZone(t).Resolver()})
	if try := s.Send(t.Context(), "https://unknown.example/", parcel(t)); try.Class != webhook.ClassDNS {
		t.Errorf("%+v", try)
	}
	if proxy.Seen.Load() != 0 {
		t.Error("the environment's proxy saw a connection")
	}
}

func TestConfiguredProxyTunnels(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	receiver := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(201)
	}), "inside.example")
	asked := make(chan *http.Request, 4)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		if r.Host != "127.0.0.7:8443" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		out, err := net.Dial("tcp", receiver.Listener.Addr().String())
		if err != nil {
			return
		}
		in, _, _ := w.(http.Hijacker).Hijack()
		_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(out, in); out.Close() }()
		go func() { _, _ = io.Copy(in, out); in.Close() }()
	}))
	t.Cleanup(proxy.Close)
	u := must(url.Parse(proxy.URL))(t)
	u.User = url.UserPassword("user", "pass")
	z := guardtest.NewZone(t)
	z.Set("inside.example", guardtest.Addrs("10.9.9.9", "127.0.0.7")) // one is refused here, the other is asked for
	z.Set("outside.example", guardtest.Addrs("127.0.0.8"))
	z.Set("metadata.example", guardtest.Addrs("169.254.169.254"))
	g := newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	s := newSender(t, webhook.SenderConfig{Guard: g, Roots: roots(t, ca), Proxy: u, Resolver: z.Resolver()})
	if try := s.Send(t.Context(), "https://inside.example:8443/", parcel(t)); !try.Delivered() || try.Status != 201 {
		t.Errorf("%+v", try)
	}
	if r := <-asked; r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic dXNlcjpwYXNz" {
		t.Errorf("asked %s %v", r.Method, r.Header)
	}
	if try := s.Send(t.Context(), "https://outside.example/", parcel(t)); try.Class != webhook.ClassProxy {
		t.Errorf("refused by the proxy: %+v", try)
	}
	<-asked
	// A name is resolved and vetted here: the proxy never hears of what is refused.
	if try := s.Send(t.Context(), "https://metadata.example/", parcel(t)); try.Class != webhook.ClassAddressRefused ||
		try.Refusal.Reason != guard.ReasonMetadata {
		t.Errorf("a name of a metadata service through the proxy: %+v", try)
	}
	if try := s.Send(t.Context(), "https://unknown.example/", parcel(t)); try.Class != webhook.ClassDNS {
		t.Errorf("a name without an address through the proxy: %+v", try)
	}
	// The URL rules hold as well, an address in the URL included.
	if try := s.Send(t.Context(), "https://169.254.169.254/", parcel(t)); try.Class != webhook.ClassURLRefused ||
		try.Refusal.Reason != guard.ReasonMetadata {
		t.Errorf("metadata through the proxy: %+v", try)
	}
	select {
	case r := <-asked:
		t.Errorf("the proxy was asked for %s", r.Host)
	default:
	}
	s.Close()
}

func TestSenderRefusesAConfigurationItCannotUse(t *testing.T) {
	t.Parallel()
	if _, err := webhook.NewSender(webhook.SenderConfig{}); err == nil {
		t.Error("a sender without a guard")
	}
	for _, proxy := range []string{"socks5://127.0.0.1:1080", "https://p.example", "http://"} {
		if _, err := webhook.NewSender(webhook.SenderConfig{Guard: newGuard(t, guard.Config{}),
			Proxy: must(url.Parse(proxy))(t)}); err == nil {
			t.Errorf("proxy %s", proxy)
		}
	}
	if _, err := webhook.LoadRoots([]byte("no PEM")); err == nil {
		t.Error("a CA file without a certificate")
	}
}

func TestCertificatesAreCheckedAgainstTheConfiguredCA(t *testing.T) {
	t.Parallel()
	ca, stranger := must(newAuthority())(t), must(newAuthority())(t)
	server := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request arrived")
	}), "other.example")
	server.Config.ErrorLog = discardLog()
	guard := newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for name, config := range map[string]webhook.SenderConfig{
		"wrong name": {Guard: guard, Roots: roots(t, ca)}, "wrong CA": {Guard: guard, Roots: roots(t, stranger)},
		"system roots": {Guard: guard},
	} {
		if try := newSender(t, config).Send(t.Context(), server.URL, parcel(t)); try.Class != webhook.ClassTLS {
			t.Errorf("%s: %+v", name, try)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	ca := must(newAuthority())(b)
	server := serveTLS(b, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(204)
	}), "127.0.0.1")
	s := newSender(b, webhook.SenderConfig{Guard: newGuard(b, guard.Config{Demo: true}), Roots: roots(b, ca)})
	n, keys := notification(time.Now()), webhook.Keys{Current: key("k1")}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := webhook.Pack(n, keys)
			if err != nil {
				b.Fatal(err)
			}
			if try := s.Send(b.Context(), server.URL, p); !try.Delivered() {
				b.Fatal(try.Detail)
			}
		}
	})
}
