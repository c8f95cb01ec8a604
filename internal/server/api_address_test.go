package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/mutate"
)

// FuzzTheAddress asks for any path with any query, cursors and filters among
// them, with or without a key, in process. See FuzzTheHandler for how to run it.
func FuzzTheAddress(f *testing.F) {
	p := quiet(f)
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodPut,
		http.MethodHead, http.MethodOptions}
	for path := range describedBy(f, p).doc["paths"].(object) {
		f.Add(uint8(0), path, "limit=1&cursor=AAAA", demoKey)
		f.Add(uint8(1), replaceParams(path, "x"), "", demoKey)
	}
	f.Add(uint8(0), "/v1/transactions", "status=SUCCESS&from=2026-02-30&to=9999-12-31T23:59:60Z&limit=-1&cursor=%ff",
		demoKey)
	f.Add(uint8(0), "/v1/webhooks/events", "cursor=ZmZmZg&status=x&limit=100000000000000000000", demoKey)
	f.Add(uint8(0), "/onboarding/v2/companies", "cursor=MTIzOmFiYw&limit=0", demoKey)
	f.Add(uint8(0), "/invoicing/v1/invoices/../x/pdf", "exp=-1&kid=%00&sig=AA", "")
	f.Add(uint8(0), "//v1//transactions/%2e%2e", "a=b;c=d&%zz", "trb_test_demo_short")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, method uint8, path, query, key string) {
		if !strings.HasPrefix(path, "/") || strings.Contains(path, "/docs") || strings.ContainsAny(key, "\r\n\x00") {
			t.Skip("no address of the API, or no header")
		}
		request := httptest.NewRequest(methods[int(method)%len(methods)], "/", strings.NewReader("{}"))
		request.URL = &url.URL{Path: path, RawQuery: query}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, request)
		if w.Code >= 500 && (w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "") {
			t.Errorf("%s %q ? %q answers %d %.300s", request.Method, path, query, w.Code, w.Body)
		}
		if body := w.Body.String(); strings.Contains(body, "goroutine ") || strings.Contains(body, ".go:") {
			t.Errorf("internals are shown: %.300q", body)
		}
	})
}
