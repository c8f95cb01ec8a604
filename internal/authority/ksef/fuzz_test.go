package ksef_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/authority/ksef"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func FuzzInvoice(f *testing.F) {
	f.Add([]byte(`<Faktura xmlns="http://crd.gov.pl/wzor/2025/06/25/13775/"><Naglowek/></Faktura>`))
	f.Add([]byte("\xEF\xBB\xBF<a/>"))
	f.Add([]byte("<?xml version='1.0' encoding='x'?><a/>"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		if ksef.Conforms(document) && !bytes.Contains(document, []byte("RodzajFaktury")) {
			t.Error("a document without a kind conforms")
		}
	})
}

func FuzzSignedRequestsThatAreNoneAreRefused(f *testing.F) {
	f.Add([]byte(`<AuthTokenRequest xmlns="http://ksef.mf.gov.pl/auth/token/2.1"><ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"/></AuthTokenRequest>`))
	f.Add([]byte(`<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo/><ds:Object Id="x"/></ds:Signature>`))
	f.Add([]byte("<a>"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, _, code := ksef.VerifySigned(body); code == 0 {
			t.Error("nobody signed it")
		}
	})
}

// sealed is AES-256-CBC with PKCS#7 padding, as ksef-docs describes it.
func sealed(text, key, iv []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	padding := aes.BlockSize - len(text)%aes.BlockSize
	out := append(bytes.Clone(text), bytes.Repeat([]byte{byte(padding)}, padding)...)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
	return out
}

func FuzzUnsealing(f *testing.F) {
	key, iv := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 16)
	f.Add([]byte("x"))
	f.Add([]byte{})
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if back, ok := ksef.Unseal(sealed(text, key, iv), key, iv); !ok || !bytes.Equal(back, text) {
			t.Errorf("%q comes back as %q", text, back)
		}
		ksef.Unseal(text, key, iv)
	})
}

// The double answers every call as KSeF words it, and does nothing for a caller
// whose token it did not make.
func FuzzDouble(f *testing.F) {
	desk, err := authority.OpenDesk(f.TempDir(), "PL")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = desk.Close() })
	double := ksef.New(desk)
	const open = 4 // of these paths need no token
	paths := []string{
		"/v2/auth/challenge", "/v2/auth/ksef-token", "/v2/auth/xades-signature", "/v2/security/public-key-certificates",
		"/v2/auth/20251006-CR-0123456789-ABCDEF0123-4A", "/v2/auth/token/redeem", "/v2/auth/token/refresh",
		"/v2/sessions/online", "/v2/sessions/online/x/invoices",
		"/v2/sessions/online/x/close", "/v2/sessions", "/v2/sessions/x", "/v2/sessions/x/invoices/y",
		"/v2/sessions/x/invoices/y/upo", "/v2/sessions/x/invoices/ksef/y/upo",
		"/v2/invoices/query/metadata", "/v2/invoices/ksef/x", "/v2/sessions/x/invoices", "/v2/sessions/x/invoices/failed",
		"/v2/sessions/x/upo/y", "/v2/tokens", "/v2/tokens/x",
		"/v2/limits/context", "/v2/limits/subject", "/v2/rate-limits", "/v2/auth/sessions", "/v2/auth/sessions/current",
		"/storage/x/y",
	}
	f.Add(uint8(1), true, "", "",
		[]byte(`{"challenge":"x","contextIdentifier":{"type":"Nip","value":"5265877635"},"encryptedToken":"AAAA"}`))
	f.Add(uint8(7), false, "Bearer e30.e30.AAAA", "", []byte(`{"formCode":{"systemCode":"FA (3)"}}`))
	f.Add(uint8(10), true, "Bearer ..", "pageSize=-1&dateCreatedFrom=%ff", []byte(nil))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, path uint8, problems bool, bearer, query string, body []byte) {
		at := int(path) % len(paths)
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
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
