package lookup_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/lookup"
)

// Whatever is asked of the simulated register, it answers in JSON.
func FuzzVIESSimulatorCall(f *testing.F) {
	f.Add(true, "/check-vat-number", `{"countryCode":"IT","vatNumber":"00743110157"}`)
	f.Add(true, "/check-vat-number", `{"countryCode":"XX","vatNumber":1}`)
	f.Add(true, "/check-vat-test-service", `{"countryCode":"DE","vatNumber":"100"}`)
	f.Add(false, "/ms/IT/vat/00743110157", "")
	f.Add(false, "/check-status", "")
	f.Fuzz(func(t *testing.T, post bool, path, body string) {
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		r.URL.Path = lookup.VIESSimulatorPath + path
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		lookup.NewVIESSimulator(lookup.VIESSimulatorConfig{}).ServeHTTP(w, r)
		kind := w.Header().Get("Content-Type")
		if strings.HasPrefix(kind, "application/json") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q with %q answers %d %s", method, path, body, w.Code, w.Body)
		}
	})
}
