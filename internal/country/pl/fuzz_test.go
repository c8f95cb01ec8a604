package pl_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/authority/ksef"
	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/country/pl/wire"
	"tributary/internal/mutate"
)

// within is a server without a wire.
type within func(http.ResponseWriter, *http.Request)

func (h within) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	h(w, r)
	return w.Result(), nil
}

func openDouble(f *testing.F) (*authority.Desk, http.Handler) {
	f.Helper()
	desk, err := authority.OpenDesk(f.TempDir(), "PL")
	if err == nil {
		err = seed(desk, ministryKey())
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = desk.Close() })
	return desk, ksef.New(desk)
}

// A list is taken for whole only when it says that nothing follows, and asking
// for it ends whatever is answered.
func FuzzLists(f *testing.F) {
	_, double := openDouble(f)
	var answer []byte
	calls := 0
	ch, err := pl.Pack().Connect(country.Endpoint{BaseURL: "http://ksef.test",
		HTTP: &http.Client{Transport: within(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/invoices/query/metadata" {
				double.ServeHTTP(w, r)
				return
			}
			calls++
			w.Header().Set("Content-Type", "application/json")
			w.Write(answer)
		})}})
	if err != nil {
		f.Fatal(err)
	}
	filing, err := ch.Prepare(invoice("FV/1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"hasMore":false,"invoices":[{"ksefNumber":"5265877635-20250826-0100001AF629-AF","invoiceNumber":"FV/1","acquisitionDate":"2025-10-06T22:30:00Z"}]}`))
	f.Add([]byte(`{"hasMore":true,"invoices":[]}`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, calls = body, 0
		var said struct {
			HasMore  bool `json:"hasMore"`
			Invoices []struct {
				Number string `json:"invoiceNumber"`
			} `json:"invoices"`
		}
		readable := json.Unmarshal(body, &said) == nil
		entries, err := ch.(country.Register).Registered(t.Context(), supplier(), country.Day{Year: 2025, Month: 10, Day: 7},
			token())
		if calls > wire.PagesMax {
			t.Fatalf("%d calls for one list", calls)
		}
		if err == nil && (!readable || said.HasMore || len(entries) != len(said.Invoices)) {
			t.Fatalf("%d entries of %q", len(entries), body)
		}
		r, err := ch.Find(t.Context(), filing, token())
		if err == nil && r.Outcome == country.Accepted {
			for _, i := range said.Invoices {
				if i.Number == filing.Number {
					return
				}
			}
			t.Fatalf("found in %q", body)
		}
	})
}
