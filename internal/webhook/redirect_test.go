package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tributary/internal/guard"
	"tributary/internal/guard/guardtest"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

// step is one answer of a chain. In a Location {a} and {b} are the two receivers,
// {plain} is a receiver without TLS, {forbidden} the listener that must see
// nothing, {case} the chain's path and {n} the number of the next step.
type step struct {
	code     int
	location string
}

type chain struct {
	name  string
	steps []step // after the last step the receiver answers 204
	class webhook.Class
	// what the record of the try says
	status, hops int
	posts        int          // requests the receivers saw
	host         string       // of the last URL asked, where it matters
	refused      guard.Reason // where the guard spoke
}

func to(location string) []step { return []step{{302, location}} }

func repeat(n int, s step) (list []step) {
	for range n {
		list = append(list, s)
	}
	return list
}

func chains() []chain {
	next := "https://{a}/{case}/{n}"
	list := []chain{
		{name: "no redirect", status: 204, posts: 1},
		{name: "two hops", steps: repeat(2, step{302, next}), status: 204, hops: 2, posts: 3},
		{name: "three hops", steps: repeat(3, step{307, next}), status: 204, hops: 3, posts: 4},
		{name: "four hops", steps: repeat(4, step{308, next}), class: webhook.ClassRedirectDepth, status: 308, hops: 3,
			posts: 4},
		{name: "endless chain", steps: repeat(50, step{301, next}), class: webhook.ClassRedirectDepth, status: 301, hops: 3,
			posts: 4},
		{name: "loop to itself", steps: to("https://{a}/{case}/0"), class: webhook.ClassRedirectDepth, status: 302, hops: 3,
			posts: 4},
		{name: "loop between two hosts", steps: []step{{302, "https://{b}/{case}/1"}, {302, "https://{a}/{case}/0"}},
			class: webhook.ClassRedirectDepth, status: 302, hops: 3, posts: 4},
		{name: "four different codes", steps: []step{{301, next}, {302, next}, {303, next}, {307, next}},
			class: webhook.ClassRedirectDepth, status: 307, hops: 3, posts: 4},
		{name: "other host", steps: to("https://{b}/{case}/{n}"), status: 204, hops: 1, posts: 2, host: "b.example"},
		{name: "there and back", steps: []step{{302, "https://{b}/{case}/{n}"}, {302, next}}, status: 204, hops: 2, posts: 3,
			host: "a.example"},
		{name: "scheme-relative", steps: to("//{b}/{case}/{n}"), status: 204, hops: 1, posts: 2, host: "b.example"},
		{name: "absolute path", steps: to("/{case}/{n}"), status: 204, hops: 1, posts: 2, host: "a.example"},
		{name: "relative path", steps: to("{n}"), status: 204, hops: 1, posts: 2},
		{name: "relative path with dots", steps: to("../{case}/./{n}"), status: 204, hops: 1, posts: 2},
		{name: "relative after another host", steps: []step{{302, "https://{b}/{case}/{n}"}, {302, "{n}"}}, status: 204,
			hops: 2, posts: 3, host: "b.example"},
		{name: "query only", steps: to("?step={n}"), status: 204, hops: 1, posts: 2},
		{name: "fragment is dropped", steps: to(next + "#top"), status: 204, hops: 1, posts: 2},
		{name: "upper-case scheme and host", steps: to("HTTPS://{A}/{case}/{n}"), status: 204, hops: 1, posts: 2,
			host: "a.example"},
		{name: "trailing dot", steps: to("https://{a.}/{case}/{n}"), status: 204, hops: 1, posts: 2, host: "a.example"},
		{name: "international name", steps: to("https://{idn}/{case}/{n}"), status: 204, hops: 1, posts: 2,
			host: "xn--bcher-kva.example"},
		{name: "raw UTF-8 in the path", steps: to("https://{a}/{case}/{n}?x=ü"), status: 204, hops: 1, posts: 2},
		{name: "allowed address", steps: to("https://{ip}/{case}/{n}"), status: 204, hops: 1, posts: 2},

		{name: "plain http", steps: to("http://{plain}/{case}/{n}"), class: webhook.ClassRedirectInsecure, status: 302,
			posts: 1, refused: guard.ReasonScheme},
		{name: "plain http at the second hop", steps: []step{{302, next}, {302, "http://{plain}/"}},
			class: webhook.ClassRedirectInsecure, status: 302, hops: 1, posts: 2},
		{name: "plain http to the same host", steps: to("http://{a}/{case}/{n}"), class: webhook.ClassRedirectInsecure,
			status: 302, posts: 1},
		{name: "upper-case HTTP", steps: to("HTTP://{plain}/"), class: webhook.ClassRedirectInsecure, status: 302, posts: 1},
		{name: "ftp", steps: to("ftp://{a}/"), class: webhook.ClassRedirectInsecure, status: 302, posts: 1},
		{name: "file", steps: to("file:///etc/passwd"), class: webhook.ClassRedirectInsecure, status: 302, posts: 1},
		{name: "javascript", steps: to("javascript:alert(1)"), class: webhook.ClassRedirectInsecure, status: 302, posts: 1},
		{name: "data", steps: to("data:,x"), class: webhook.ClassRedirectInsecure, status: 302, posts: 1},
		{name: "userinfo", steps: to("https://u:p@{a}/{case}/{n}"), class: webhook.ClassRedirectRefused, status: 302,
			posts: 1, refused: guard.ReasonUserinfo},
		{name: "empty userinfo", steps: to("https://@{a}/{case}/{n}"), class: webhook.ClassRedirectRefused, status: 302,
			posts: 1, refused: guard.ReasonUserinfo},
		{name: "scheme-relative userinfo", steps: to("//u@{a}/{case}/{n}"), class: webhook.ClassRedirectRefused, status: 302,
			posts: 1, refused: guard.ReasonUserinfo},
		{name: "port of another service", steps: to("https://a.example:22/"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonPort},
		{name: "our own host", steps: to("https://own.example/v1/transactions"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonOwnHost},
		{name: "loopback", steps: to("https://127.0.0.1:{forbidden}/"), class: webhook.ClassRedirectRefused, status: 302,
			posts: 1, refused: guard.ReasonLoopback},
		{name: "loopback, IPv6", steps: to("https://[::1]:{forbidden}/"), class: webhook.ClassRedirectRefused, status: 302,
			posts: 1, refused: guard.ReasonLoopback},
		{name: "unspecified", steps: to("https://0.0.0.0:{forbidden}/"), class: webhook.ClassRedirectRefused, status: 302,
			posts: 1, refused: guard.ReasonUnspecified},
		{name: "metadata", steps: to("https://169.254.169.254/latest/meta-data/"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonMetadata},
		{name: "mapped metadata", steps: to("https://[::ffff:169.254.169.254]/"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonMapped},
		{name: "hexadecimal loopback", steps: to("https://0x7f.1:{forbidden}/"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonHost},
		{name: "decimal loopback", steps: to("https://2130706433:{forbidden}/"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonHost},
		{name: "localhost by name", steps: to("https://localhost:{forbidden}/"), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonLoopback},
		{name: "name of a loopback address", steps: to("https://loop.example:{forbidden}/"),
			class: webhook.ClassAddressRefused, hops: 1, posts: 1, refused: guard.ReasonLoopback},
		{name: "name of a private address", steps: to("https://private.example/"), class: webhook.ClassAddressRefused,
			hops: 1, posts: 1, refused: guard.ReasonPrivate},
		{name: "name of a forbidden address at the third hop",
			steps: []step{{302, next}, {302, next}, {302, "https://loop.example:{forbidden}/"}},
			class: webhook.ClassAddressRefused, hops: 3, posts: 3, refused: guard.ReasonLoopback},
		{name: "broken URL", steps: to("https://[::1"), class: webhook.ClassRedirectRefused, status: 302, posts: 1,
			refused: guard.ReasonURL},
		{name: "backslashes", steps: to(`https:\\evil.example\`), class: webhook.ClassRedirectRefused, status: 302, posts: 1,
			refused: guard.ReasonURL},
		{name: "no host", steps: to("https:///x"), class: webhook.ClassRedirectRefused, status: 302, posts: 1,
			refused: guard.ReasonURL},
		{name: "too long", steps: to("https://{a}/" + strings.Repeat("x", 2048)), class: webhook.ClassRedirectRefused,
			status: 302, posts: 1, refused: guard.ReasonLength},

		{name: "no Location", steps: []step{{302, ""}}, class: webhook.ClassNoLocation, status: 302, posts: 1},
		{name: "304 without Location", steps: []step{{304, ""}}, class: webhook.ClassNoLocation, status: 304, posts: 1},
		{name: "no Location at the second hop", steps: []step{{302, next}, {301, ""}}, class: webhook.ClassNoLocation,
			status: 301, hops: 1, posts: 2},
		{name: "to a 404", steps: []step{{302, next}, {404, ""}}, class: webhook.ClassStatus, status: 404, hops: 1, posts: 2},
		{name: "to a 503", steps: []step{{302, next}, {302, next}, {503, ""}}, class: webhook.ClassStatus, status: 503,
			hops: 2, posts: 3},
		{name: "to a closed port", steps: to("https://{closed}/"), class: webhook.ClassConnect, hops: 1, posts: 1},
		{name: "to a wrong certificate", steps: to("https://{wrong}/{case}/{n}"), class: webhook.ClassTLS, hops: 1, posts: 1},
		{name: "to an unknown name", steps: to("https://nowhere.example/"), class: webhook.ClassDNS, hops: 1, posts: 1},
		{name: "200 with Location", steps: []step{{200, next}}, status: 200, posts: 1},
		{name: "201 with Location", steps: []step{{201, next}}, status: 201, posts: 1},
		{name: "299 is a success", steps: []step{{299, ""}}, status: 299, posts: 1},
		{name: "404 with Location", steps: []step{{404, next}}, class: webhook.ClassStatus, status: 404, posts: 1},
		{name: "500 with Location", steps: []step{{500, next}}, class: webhook.ClassStatus, status: 500, posts: 1},
		{name: "400", steps: []step{{400, ""}}, class: webhook.ClassStatus, status: 400, posts: 1},
		{name: "600", steps: []step{{600, ""}}, class: webhook.ClassStatus, status: 600, posts: 1},
	}
	for _, code := range []int{300, 301, 302, 303, 304, 305, 306, 307, 308, 399} {
		list = append(list, chain{name: fmt.Sprint(code), steps: []step{{code, next}}, status: 204, hops: 1, posts: 2})
	}
	return list
}

// chainServer answers /{case}/{step} as the chain says and records what it saw.
type chainServer struct {
	mu     sync.Mutex
	chains map[string]chain
	places *strings.Replacer
	seen   map[string][]seenPost
}

type seenPost struct {
	method, body string
	header       http.Header
}

func (s *chainServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[parts[1]] = append(s.seen[parts[1]], seenPost{r.Method, string(body), r.Header.Clone()})
	text := parts[len(parts)-1]
	if q := r.URL.Query().Get("step"); q != "" {
		text = q
	}
	i, _ := strconv.Atoi(text)
	steps := s.chains[parts[1]].steps
	if i >= len(steps) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if location := steps[i].location; location != "" {
		location = strings.NewReplacer("{case}", parts[1], "{n}", strconv.Itoa(i+1)).Replace(location)
		w.Header()["Location"] = []string{s.places.Replace(location)}
	}
	w.WriteHeader(steps[i].code)
	if steps[i].code != http.StatusNotModified {
		io.WriteString(w, "step "+text)
	}
}

func TestRedirectChains(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	ca, other := must(newAuthority())(t), must(newAuthority())(t)
	h := &chainServer{chains: map[string]chain{}, seen: map[string][]seenPost{}}
	names := []string{"a.example", "b.example", "xn--bcher-kva.example", "127.0.0.2"}
	a := serveTLS(t, ca, "127.0.0.2:0", h, names...)
	b := serveTLS(t, ca, "127.0.0.2:0", h, names...)
	wrong := serveTLS(t, other, "127.0.0.2:0", h, names...)
	wrong.Config.ErrorLog = discardLog()
	plain := httptest.NewServer(h)
	t.Cleanup(plain.Close)
	f := guardtest.NewForbidden(t, ":0")
	closed := httptest.NewServer(h)
	closedPort := portOf(closed)
	closed.Close()

	z := guardtest.NewZone(t)
	for _, name := range names[:3] {
		z.Set(name, guardtest.Addrs("127.0.0.2"))
	}
	z.Set("loop.example", guardtest.Addrs("127.0.0.1"))
	z.Set("private.example", guardtest.Addrs("10.0.0.1"))
	h.places = strings.NewReplacer("{a}", "a.example:"+portOf(a), "{A}", "A.EXAMPLE:"+portOf(a), "{a.}",
		"a.example.:"+portOf(a), "{b}", "b.example:"+portOf(b),
		"{idn}", "bücher.example:"+portOf(b), "{ip}", "127.0.0.2:"+portOf(b), "{plain}", "a.example:"+portOf(plain),
		"{forbidden}", f.Port(), "{closed}", "a.example:"+closedPort, "{wrong}", "a.example:"+portOf(wrong))
	s := newSender(t, webhook.SenderConfig{
		Guard: newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
			Own: []string{"https://own.example"}}),
		Roots: roots(t, ca), Resolver: z.Resolver(),
	})

	list := chains()
	if len(list) < 40 {
		t.Fatalf("only %d chains", len(list))
	}
	for i, c := range list {
		id := fmt.Sprintf("c%d", i)
		h.mu.Lock()
		h.chains[id] = c
		h.mu.Unlock()
		t.Run(c.name, func(t *testing.T) {
			p := parcel(t)
			try := s.Send(t.Context(), "https://a.example:"+portOf(a)+"/"+id+"/0", p)
			checkChain(t, c, try)
			h.mu.Lock()
			defer h.mu.Unlock()
			checkPosts(t, h.seen[id], c.posts, p)
		})
	}
	if n := f.Seen.Load(); n != 0 {
		t.Errorf("the forbidden listener saw %d connections", n)
	}
}

func checkChain(t *testing.T, c chain, try webhook.Try) {
	t.Helper()
	if try.Class != c.class || try.Status != c.status || try.Hops != c.hops || try.Delivered() != (c.class == "") {
		t.Errorf("class %q status %d hops %d, want %q %d %d: %s", try.Class, try.Status, try.Hops, c.class, c.status, c.hops,
			try.Detail)
	}
	if c.host != "" && !strings.HasPrefix(try.URL, "https://"+c.host+":") {
		t.Errorf("ended at %s", try.URL)
	}
	if c.refused != "" && (try.Refusal == nil || try.Refusal.Reason != c.refused) {
		t.Errorf("refusal %v, want %s", try.Refusal, c.refused)
	}
	if try.KeyID != "k1" || try.Latency <= 0 || try.At.IsZero() || strings.Contains(try.Detail, "u:p") {
		t.Errorf("record %+v", try)
	}
}

// checkPosts proves that a notification never becomes anything else on its way.
func checkPosts(t *testing.T, seen []seenPost, want int, p webhook.Parcel) {
	t.Helper()
	if len(seen) != want {
		t.Errorf("%d requests, want %d", len(seen), want)
	}
	for i, r := range seen {
		if r.method != http.MethodPost || r.body != string(p.Body) {
			t.Errorf("request %d: %s %s", i, r.method, r.body)
		}
		if _, err := webhook.VerifyHeaders([]byte(r.body), webhook.Signed{Header: r.header}, keyText("k1"),
			webhook.Freshness{}); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
		want := map[string]string{"Content-Type": "application/json", "Content-Length": fmt.Sprint(len(p.Body)),
			"User-Agent": "Tributary-Webhook/1", http.CanonicalHeaderKey(webhook.HeaderSignature): p.Signature}
		for name, values := range r.header {
			if len(values) != 1 || want[name] != values[0] {
				t.Errorf("request %d: header %s: %q", i, name, values)
			}
			delete(want, name)
		}
		if len(want) != 0 {
			t.Errorf("request %d: missing %v", i, want)
		}
	}
}

func TestRetryAfterAFailedRedirectTargetBeginsAtTheConfiguredURL(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	var paths []string
	a := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		if r.URL.Path == "/configured" {
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
			return
		}
		w.Header().Set("Retry-After", "120")
		http.Error(w, "down", http.StatusServiceUnavailable)
	}), "127.0.0.1")
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	for range 2 {
		try := s.Send(t.Context(), a.URL+"/configured", parcel(t))
		if try.Status != 503 || try.RetryAfter.Seconds() != 120 || string(try.Reply) != "down\n" ||
			try.URL != a.URL+"/moved" {
			t.Errorf("try %+v", try)
		}
	}
	if got := strings.Join(paths, " "); got != "/configured /moved /configured /moved" {
		t.Errorf("asked %s", got)
	}
}

func TestDemoStartsOnPlainHTTPButFollowsOnlyToHTTPS(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	secure := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(202)
	}), "127.0.0.1")
	targets := map[string]string{"/up": secure.URL + "/", "/plain": "/ok", "/ok": ""}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l := targets[r.URL.Path]; l != "" {
			http.Redirect(w, r, l, http.StatusFound)
		}
	}))
	t.Cleanup(plain.Close)
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	for path, want := range map[string]webhook.Class{"/ok": "", "/up": "", "/plain": webhook.ClassRedirectInsecure} {
		if try := s.Send(t.Context(), plain.URL+path, parcel(t)); try.Class != want {
			t.Errorf("%s: %+v", path, try)
		}
	}
	strict := newSender(t, webhook.SenderConfig{
		Guard: newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), Roots: roots(t, ca)})
	if try := strict.Send(t.Context(), plain.URL+"/ok", parcel(t)); try.Class != webhook.ClassURLRefused ||
		try.Refusal.Reason != guard.ReasonScheme {
		t.Errorf("serve sent to plain http: %+v", try)
	}
}
