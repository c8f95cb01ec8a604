package operator_test

import (
	"context"
	"net/url"
	"strconv"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/operator"
)

// A text that is no token of a session speaks for nobody.
func FuzzToken(f *testing.F) {
	b := open(f, dbtest.SQLite(f))
	token, _ := b.enter("ana", b.hire("ana", operator.Viewer))
	f.Add("")
	f.Add(token[1:] + "A")
	f.Add(token + "=")
	f.Add("\x00' OR 1=1 --aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := b.Session(context.Background(), text)
		if (text == token) != (err == nil) || err != nil && fault.KindOf(err) != fault.Unauthenticated {
			t.Fatalf("%q: %v", text, err)
		}
		if s.CheckCSRF(text) {
			t.Fatalf("%q is the token of a form", text)
		}
	})
}

// An ID token that the provider did not sign lets nobody in.
func FuzzIdentity(f *testing.F) {
	d := newDeskFor(f, 1<<30)
	payload := b64([]byte(`{"iss":"x","aud":"tributary-console","sub":"1","email":"ana@example.test","email_verified":true,"exp":99999999999}`))
	f.Add(b64([]byte(`{"alg":"none"}`)) + "." + payload + ".")
	f.Add(b64([]byte(`{"alg":"HS256","kid":"r"}`)) + "." + payload + ".AAAA")
	f.Add("..")
	f.Add("")
	n := 0
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, identity string) {
		n++
		d.p.spoil(nil, func(string, string) string { return identity })
		redirect, ticket, err := d.x.Begin(t.Context(), "")
		must(t, err)
		back, err := url.Parse(redirect)
		must(t, err)
		code := "code-" + strconv.Itoa(n)
		q := back.Query()
		d.p.mu.Lock()
		d.p.codes[code] = grant{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
		d.p.mu.Unlock()
		_, _, _, err = d.x.Finish(context.Background(), ticket, url.Values{"state": {q.Get("state")}, "code": {code}},
			operator.Attempt{IP: "192.0.2.9"})
		kind(t, "an identity that nobody signed", err, fault.Unauthenticated)
	})
}
