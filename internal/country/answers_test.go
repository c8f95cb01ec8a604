package country_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/turnstile"
)

// Large answers of an authority share its part of a node's memory, over all suppliers:
// while a call holds it, another that has no time to wait is told so, one that has waits,
// and a small answer waits for nobody.
func TestLargeAnswersShareTheMemoryOfANode(t *testing.T) {
	t.Parallel()
	const small, large = country.AnswerSmall, 2 << 20
	if country.WeightOf(large) <= country.AnswersMax/4 {
		t.Fatal("two large answers fit: they prove nothing")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := map[string]int{"/small": small, "/past": small + 1, "/large": large}[strings.TrimSuffix(r.URL.Path, "/chunked")]
		if strings.HasSuffix(r.URL.Path, "/chunked") {
			w.(http.Flusher).Flush() // its length is not said
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), size)) // the client may go away
	}))
	defer server.Close()
	ask := func(ctx context.Context, path string) error {
		reply, err := country.Request{URL: server.URL + path, BytesMax: large}.Do(ctx, server.Client())
		if err == nil && strings.HasPrefix(path, "/large") && len(reply.Body) != large {
			t.Errorf("%s has %d bytes", path, len(reply.Body))
		}
		return err
	}
	call := func() (context.Context, context.CancelFunc) {
		return context.WithCancel(country.WithTraffic(t.Context()))
	}
	for _, path := range []string{"/large", "/large/chunked"} {
		holding, end := call()
		if err := ask(holding, path); err != nil {
			t.Fatal(err)
		}
		hurried, cancel := call()
		hurried = turnstile.AnswerBy(hurried, time.Now())
		for path, busy := range map[string]bool{"/small": false, "/small/chunked": false, "/past/chunked": true, "/large": true} {
			if err := ask(hurried, path); errors.Is(err, country.ErrBusy) != busy || !busy && err != nil {
				t.Errorf("%s beside a large answer: %v", path, err)
			}
		}
		waited := make(chan error, 1)
		patient, leave := call()
		go func() { waited <- ask(patient, "/large") }()
		end()
		if err := <-waited; err != nil {
			t.Errorf("a patient call: %v", err)
		}
		cancel()
		leave()
	}
	if err := ask(t.Context(), "/large"); err != nil { // of nobody who counts: it holds nothing afterwards
		t.Error(err)
	}
	again, cancel := call()
	defer cancel()
	if err := ask(again, "/large"); err != nil {
		t.Error(err)
	}
}
