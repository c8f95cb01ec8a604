package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"tributary/internal/api"
	"tributary/internal/fault"
)

type refusal struct {
	Message string        `json:"message"`
	Errors  []fault.Fault `json:"errors"`
}

// wantRefusal checks the one shape of every refusal.
func wantRefusal(t testing.TB, w *httptest.ResponseRecorder, status int, code fault.Code) refusal {
	t.Helper()
	var body refusal
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		t.Fatalf("status %d with %q: %v", w.Code, w.Body, err)
	}
	if w.Code != status || len(body.Errors) == 0 || body.Errors[0].Code != code || body.Message == "" ||
		body.Errors[0].Message == "" || body.Errors[0].Type == "" {
		t.Errorf("got %d %+v, want %d %s", w.Code, body, status, code)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("X-Request-Id") == "" ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", w.Header())
	}
	return body
}

func TestUnknownPathsAre404WithoutAKey(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	for _, path := range []string{"/", "/v2/transactions", "/v1", "/v1/transactions/", "/v1//transactions",
		"/v1/./transactions", "/v1/transactions/../transactions", "//", "/docs/../v1/transactions",
		"/docs/index", "/docs/index.html.gz", "/docs/nothing", "/metrics", "/debug/pprof/", "/console", "/%00", "/%ff"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if w := ask(a, method, path); method == http.MethodGet || !strings.HasPrefix(path, "/docs/") ||
				strings.Contains(path, "..") {
				wantRefusal(t, w, http.StatusNotFound, fault.CodeNotFound)
			}
		}
	}
}

func TestAnUnknownParameterIsRefusedWithTheSupportedOnes(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"colour unknown query parameter; supported: limit, cursor": api.RefusedQuery("colour=red", "limit", "cursor"),
		"colour unknown query parameter; this endpoint takes none": api.RefusedQuery("colour=red"),
		"limit must appear only once":                              api.RefusedQuery("limit=1&limit=2", "limit"),
		"the query string is not valid percent-encoding":           api.RefusedQuery("limit=%zz", "limit"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAWrongMethodIs405WithAllowOnEveryPath(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	known := map[string]map[string]bool{}
	for _, r := range a.Routes() {
		method, path, _ := strings.Cut(r, " ")
		path = regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(path, "x")
		if known[path] == nil {
			known[path] = map[string]bool{}
		}
		known[path][method] = true
		if method == http.MethodGet {
			known[path][http.MethodHead] = true
		}
	}
	for path, methods := range known {
		if path == "/v1/transactions/x" { // the fixed paths beside it answer for themselves
			methods = map[string]bool{"GET": true, "HEAD": true}
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if methods[method] {
				continue
			}
			w := ask(a, method, path)
			wantRefusal(t, w, http.StatusMethodNotAllowed, fault.MethodNotAllowed)
			allowed := map[string]bool{}
			for _, m := range strings.Split(w.Header().Get("Allow"), ", ") {
				allowed[m] = true
			}
			if len(allowed) != len(methods) {
				t.Errorf("%s %s allows %v, want %v", method, path, allowed, methods)
			}
		}
	}
}

func TestTheRequestIDIsTheClientsWhenItIsHarmless(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	own := regexp.MustCompile(`^[0-9a-f]{24}$`)
	for _, c := range []struct {
		sent string
		kept bool
	}{
		{"order-17/retry:2", true}, {strings.Repeat("a", 128), true}, {strings.Repeat("a", 129), false}, {"", false},
		{"two words", false}, {"tab\tbed", false}, {"naïve", false}, {"x\x7f", false},
	} {
		w := ask(a, http.MethodGet, "/healthz", "X-Request-Id", c.sent)
		got := w.Header().Get("X-Request-Id")
		if c.kept && got != c.sent || !c.kept && !own.MatchString(got) {
			t.Errorf("sent %q, answered %q", c.sent, got)
		}
	}
	one, two := ask(a, "GET", "/healthz"), ask(a, "GET", "/healthz")
	if one.Header().Get("X-Request-Id") == two.Header().Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
}

func TestHEADIsGETWithoutABody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(bare(t, nil))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/docs/index.html"} {
		got, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		got.Body.Close()
		head, err := client.Head(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		none, _ := io.ReadAll(head.Body)
		head.Body.Close()
		if head.StatusCode != got.StatusCode || head.ContentLength != int64(len(body)) || len(none) != 0 ||
			head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d, %d bytes announced and %d sent; GET %d, %d bytes", path, head.StatusCode, head.ContentLength,
				len(none), got.StatusCode, len(body))
		}
	}
}

func TestAPanicIs500AndTellsNothing(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	a, err := api.New(api.Config{BaseURL: "https://x", Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Ready: func(context.Context) error {
			panic("the secret plan")
		}})
	if err != nil {
		t.Fatal(err)
	}
	w := ask(a, http.MethodGet, "/readyz", "X-Request-Id", "req-9")
	body := wantRefusal(t, w, http.StatusInternalServerError, fault.InternalError)
	if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "panic") ||
		strings.Contains(w.Body.String(), ".go") {
		t.Errorf("the answer tells %s", w.Body)
	}
	if !strings.Contains(body.Message, "req-9") {
		t.Errorf("the answer has no request id to quote: %s", body.Message)
	}
	if !strings.Contains(logged.String(), "the secret plan") || !strings.Contains(logged.String(), "req-9") ||
		!strings.Contains(logged.String(), "stack=") {
		t.Errorf("the operator sees only %s", logged.String())
	}
}

func TestAnUnexpectedErrorIs500AndTellsNothing(t *testing.T) {
	t.Parallel()
	a := bare(t, func(context.Context) error { return errors.New("dial tcp 10.1.2.3: no route") })
	w := ask(a, http.MethodGet, "/readyz")
	wantRefusal(t, w, http.StatusInternalServerError, fault.InternalError)
	if strings.Contains(w.Body.String(), "10.1.2.3") {
		t.Errorf("the answer tells %s", w.Body)
	}
}

func TestOverloadIs503WithRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait time.Duration
		want string
	}{{0, "1"}, {time.Millisecond, "1"}, {1500 * time.Millisecond, "2"}, {time.Minute, "60"}} {
		a := bare(t, func(context.Context) error {
			e := fault.Overloaded("the write queue")
			e.RetryAfter = c.wait
			return e
		})
		w := ask(a, http.MethodGet, "/readyz")
		wantRefusal(t, w, http.StatusServiceUnavailable, fault.CodeOverloaded)
		if got := w.Header().Get("Retry-After"); got != c.want {
			t.Errorf("Retry-After %s after %s, want %s", got, c.wait, c.want)
		}
	}
}

func TestAtMostAHundredFaultsAreListed(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 101, 5000} {
		a := bare(t, func(context.Context) error {
			e := fault.New(fault.Invalid, "wrong")
			for range n {
				e.Faults = append(e.Faults, fault.At("x", fault.FieldNotValid, "is wrong"))
			}
			return e
		})
		w := ask(a, http.MethodGet, "/readyz")
		body := wantRefusal(t, w, http.StatusBadRequest, fault.FieldNotValid)
		if len(body.Errors) != 100 {
			t.Errorf("%d of %d faults listed", len(body.Errors), n)
		}
		if told := strings.Contains(body.Message, "the first 100"); told != (n > 100) {
			t.Errorf("message with %d faults: %s", n, body.Message)
		}
	}
}
