package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"tributary/internal/api"
	"tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// bare is the API without the slices behind it: what needs no key works.
func bare(t testing.TB, ready func(context.Context) error) *api.API {
	t.Helper()
	if ready == nil {
		ready = func(context.Context) error { return nil }
	}
	a, err := api.New(api.Config{BaseURL: "https://api.example.com/", Version: "1.2.3", Ready: ready,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
