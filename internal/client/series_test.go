package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/client"
)

// Whoever keeps the books asks why numbers are missing.
func TestSeriesAreListedWithWhatTheyLeftOut(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"s1","supplier_id":"c1","kind":"INVOICE","country_code":"XX","pattern":"F{N:6}","next":905,
			"gaps":[{"from":"F000005","to":"F000904","reason":"restored","at":"2026-11-18T10:00:00Z"}]}],"next_cursor":null}`)
	}))
	defer service.Close()
	var out strings.Builder
	if err := (client.Series{URL: service.URL, APIKey: testKey}).Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"s1      c1        XX       INVOICE  F{N:6}   905",
		"s1 left out F000005 to F000904: restored, 2026-11-18T10:00:00Z\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}
