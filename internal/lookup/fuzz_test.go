package lookup_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/vies"
	"tributary/internal/fault"
	"tributary/internal/lookup"
	"tributary/internal/mutate"
)

// Whatever is asked of the simulated register, it answers in JSON.
func FuzzVIESSimulatorCall(f *testing.F) {
	f.Add(true, "/check-vat-number", `{"countryCode":"IT","vatNumber":"00743110157"}`)
	f.Add(true, "/check-vat-number", `{"countryCode":"XX","vatNumber":1}`)
	f.Add(true, "/check-vat-test-service", `{"countryCode":"DE","vatNumber":"100"}`)
	f.Add(false, "/ms/IT/vat/00743110157", "")
	f.Add(false, "/check-status", "")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, post bool, path, body string) {
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		r.URL.Path = vies.Path + path
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		vies.New(vies.Config{}).ServeHTTP(w, r)
		kind := w.Header().Get("Content-Type")
		if strings.HasPrefix(kind, "application/json") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q with %q answers %d %s", method, path, body, w.Code, w.Body)
		}
	})
}

// A cursor leads to an entry of its list, or it is refused.
func FuzzCursor(f *testing.F) {
	f.Add("v3", 10)
	f.Add("v-0", 1)
	f.Add("MTc3NTEyNDAwMDAwMDAwMC4wMDExMjIzMzQ0NTU2Njc3ODg5OWFhYmJjY2RkZWVmZg", 0)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string, entries int) {
		at, err := lookup.Cursor(text).Position(entries)
		switch {
		case err != nil:
			if at != 0 || fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: %d %v", text, at, err)
			}
		case text != "" && (at < 0 || at > entries || text[1:] != strconv.Itoa(at)):
			t.Fatalf("%q of %d leads to %d", text, entries, at)
		}
	})
}

// However long the register asks to wait, nobody waits longer than an hour.
func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"", "120", "-1", "9223372036854775807", "1e9", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		if wait := lookup.RetryAfter(text); wait < 0 || wait > time.Hour {
			t.Errorf("%q is a wait of %s", text, wait)
		}
	})
}
