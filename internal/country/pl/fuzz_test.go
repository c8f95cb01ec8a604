package pl_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/country/pl"
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

func openDouble(f *testing.F) (*country.Desk, http.Handler) {
	f.Helper()
	desk, err := country.OpenDesk(f.TempDir(), "PL")
	if err == nil {
		err = pl.Seed(desk, ministryKey())
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = desk.Close() })
	return desk, pl.NewDouble(desk, time.Now).Handler()
}

// A document is read as the standard library reads it, or refused: one root, no
// document type, no instructions, not too deep.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0" encoding="UTF-8"?><a xmlns="urn:x"><b c="d">e<!--f-->g</b></a>`))
	f.Add([]byte(`<a/><b/>`))
	f.Fuzz(func(t *testing.T, document []byte) {
		names, depth, err := pl.Names(document)
		if err != nil {
			return
		}
		if !utf8.Valid(document) || depth > pl.DepthMax {
			t.Fatalf("%d deep: %q", depth, document)
		}
		var want []xml.Name
		for dec := xml.NewDecoder(bytes.NewReader(document)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("taken although %v", err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				want = append(want, token.Name)
			case xml.Directive:
				t.Fatal("a document type is taken")
			case xml.ProcInst:
				if token.Target != "xml" {
					t.Fatalf("the instruction %s is taken", token.Target)
				}
			}
		}
		if !slices.Equal(names, want) {
			t.Fatalf("%v, the standard library reads %v", names, want)
		}
	})
}

// A number is valid only with the checksum of its parts, and can be taken apart.
func FuzzKSeFNumber(f *testing.F) {
	f.Add("5265877635-20250826-0100001AF629-AF")
	f.Add("5265877635-20250826-010000-1AF629-AF")
	f.Add("5265877635-20250826-0100001AF629-AE\n")
	f.Fuzz(func(t *testing.T, text string) {
		if !pl.ValidKSeF(text) {
			return
		}
		parts := strings.Split(text, "-")
		if len(text) != 35 && len(text) != 36 || len(parts[0]) != 10 || len(parts[1]) != 8 {
			t.Fatalf("%q is valid", text)
		}
		if len(text) == 35 && pl.KSeFNumber(parts[0], parts[1], parts[2]) != text {
			t.Errorf("%q is valid, its checksum is not", text)
		}
	})
}

// A list is taken for whole only when it says that nothing follows, and asking
// for it ends whatever is answered.
func FuzzLists(f *testing.F) {
	_, double := openDouble(f)
	var answer []byte
	calls := 0
	ch, err := pl.Pack().Connect(country.Endpoint{BaseURL: "http://ksef.test", HTTP: &http.Client{Transport: within(func(w http.ResponseWriter, r *http.Request) {
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
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, calls = body, 0
		var said struct {
			HasMore  bool `json:"hasMore"`
			Invoices []struct {
				Number string `json:"invoiceNumber"`
			} `json:"invoices"`
		}
		readable := json.Unmarshal(body, &said) == nil
		entries, err := ch.(country.Register).Registered(t.Context(), supplier(), country.Day{Year: 2025, Month: 10, Day: 7}, token())
		if calls > pl.PagesMax {
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

// The double answers every call as KSeF words it, and does nothing for a caller
// whose token it did not make.
func FuzzDouble(f *testing.F) {
	desk, double := openDouble(f)
	const open = 4 // of these paths need no token
	paths := []string{
		"/v2/auth/challenge", "/v2/auth/ksef-token", "/v2/auth/xades-signature", "/v2/security/public-key-certificates",
		"/v2/auth/20251006-CR-0123456789-ABCDEF0123-4A", "/v2/auth/token/redeem", "/v2/auth/token/refresh", "/v2/sessions/online", "/v2/sessions/online/x/invoices",
		"/v2/sessions/online/x/close", "/v2/sessions", "/v2/sessions/x", "/v2/sessions/x/invoices/y", "/v2/sessions/x/invoices/y/upo", "/v2/sessions/x/invoices/ksef/y/upo",
		"/v2/invoices/query/metadata",
	}
	f.Add(uint8(1), true, "", "", []byte(`{"challenge":"x","contextIdentifier":{"type":"Nip","value":"5265877635"},"encryptedToken":"AAAA"}`))
	f.Add(uint8(7), false, "Bearer e30.e30.AAAA", "", []byte(`{"formCode":{"systemCode":"FA (3)"}}`))
	f.Add(uint8(10), true, "Bearer ..", "pageSize=-1&dateCreatedFrom=%ff", []byte(nil))
	f.Fuzz(func(t *testing.T, path uint8, problems bool, bearer, query string, body []byte) {
		at := int(path) % len(paths)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequest(method, paths[at], bytes.NewReader(body))
			r.URL.RawQuery = query
			r.Header["Authorization"] = []string{bearer}
			if problems {
				r.Header.Set("X-Error-Format", "problem-details")
			}
			w := httptest.NewRecorder()
			double.ServeHTTP(w, r)
			if w.Code >= 500 || at >= open && w.Code < 400 {
				t.Fatalf("%s %s with %q answers %d %s", method, paths[at], bearer, w.Code, w.Body)
			}
			if strings.Contains(w.Header().Get("Content-Type"), "json") && !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s %s answers %q", method, paths[at], w.Body)
			}
		}
		if held, err := desk.Registrations(); err != nil || len(held) > 0 {
			t.Fatalf("%d invoices are registered, %v", len(held), err)
		}
	})
}
