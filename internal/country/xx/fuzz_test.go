package xx_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
)

// Whoever calls the authority without a supplier's key, with whatever: it
// answers in its own words and registers nothing.
func FuzzAuthority(f *testing.F) {
	simulators, err := country.NewSimulators(f.TempDir(), world.Reference(transaction.ReferenceCode, country.ByNumber))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = simulators.Close() })
	desk, _ := simulators.Desk("XX")
	methods := []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete}
	paths := []string{"/v1/documents", "/v1/documents/status", "/v1/documents/list", "/v1/suppliers", "/v1/else"}
	f.Add(uint8(0), uint8(0), "", "XX-1", "0123", `{"number":"A-1"}`+"\n")
	f.Add(uint8(1), uint8(1), "number=A-1", "%zz", "", "")
	f.Add(uint8(1), uint8(2), "after=-1&from=2026-02-30", "XX-1", "00", "")
	f.Add(uint8(2), uint8(3), "", "", "", `{"supplier":"XX-2","key":"AAAA","replace":true}`)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, method, path uint8, query, supplier, signature, body string) {
		r := httptest.NewRequest(methods[int(method)%len(methods)], "/xx"+paths[int(path)%len(paths)],
			strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("XX-Supplier", supplier)
		r.Header.Set("XX-Date", time.Now().UTC().Format(time.RFC3339))
		digest := sha256.Sum256([]byte(body))
		r.Header.Set("XX-Digest", hex.EncodeToString(digest[:]))
		r.Header.Set("XX-Signature", url.QueryEscape(signature))
		w := httptest.NewRecorder()
		simulators.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %s answers %d %s", r.Method, r.URL, w.Code, w.Body)
		}
		if n := count(t, desk); n > 0 {
			t.Errorf("%d registrations without a signature", n)
		}
	})
}
