package country_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/turnstile"
	"tributary/internal/xmltree"
)

// Large answers of an authority share its part of a node's memory, over all suppliers:
// while a call holds it, another that has no time to wait is told so, one that has waits,
// and a small answer waits for nobody.
func TestLargeAnswersShareTheMemoryOfANode(t *testing.T) {
	t.Parallel()
	const small, large = country.AnswerSmall, 8 << 20
	if country.WeightOf(large, large) <= country.AnswersMax/4 {
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

// An answer of many small parts is refused before it is parsed: eight suppliers whose
// authority answers with nothing else would fill a node's memory.
func TestAnswersOfManySmallPartsAreRefused(t *testing.T) {
	t.Parallel()
	const most, parts = 1 << 20, 1 << 20 / country.PartBytes
	pad := strings.Repeat(" ", country.AnswerSmall)
	read := func(text string) error {
		_, err := country.ReadBody(&http.Response{Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1,
			Request: httptest.NewRequest(http.MethodGet, "/", nil)}, most)
		return err
	}
	for name, of := range map[string]func(parts int) string{
		"elements":       func(n int) string { return "\ufeff<r>" + strings.Repeat("<a/>", n-1) + pad + "</r>" },
		"elements' ends": func(n int) string { return "<r>" + strings.Repeat("<a></a>", n-1) + pad + "</r>" },
		"values":         func(n int) string { return `{"a":[` + strings.Repeat("0,", n-2) + pad + "0]}" },
		"objects":        func(n int) string { return "[" + strings.Repeat("{},", n/2-1) + pad + strings.Repeat("[", n%2) + "{}]" },
	} {
		if err := read(of(parts)); err != nil {
			t.Errorf("%s, as many as may be: %v", name, err)
		}
		if err := read(of(parts + 1)); !errors.Is(err, country.ErrBodyTooLarge) {
			t.Errorf("%s, one more: %v", name, err)
		}
	}
	for _, text := range []string{strings.Repeat("<a/>", country.AnswerSmall/4), "PK" + strings.Repeat("<{,", most/4)} {
		if err := read(text); err != nil { // a small one, and a file
			t.Errorf("%.4s of %d bytes: %v", text, len(text), err)
		}
	}
}

// What the worst answer becomes is no more than it is weighed as. Not parallel: it
// measures the whole process.
func TestAnAnswerIsNoMoreThanItsWeight(t *testing.T) {
	const most = 1 << 20
	worst := "<r>" + strings.Repeat("<a/>", most/country.PartBytes-1) + strings.Repeat("x", most-most/8-7) + "</r>"
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	doc, err := xmltree.Read([]byte(worst))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	took, weight := int64(after.HeapAlloc-before.HeapAlloc)+int64(len(worst)), country.WeightOf(int64(len(worst)), most)
	if took > weight {
		t.Errorf("%d bytes become %d, weighed as %d", len(worst), took, weight)
	}
	runtime.KeepAlive(doc)
}
