package console_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"tributary/internal/console"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// provider is an identity provider that knows one person.
type provider struct {
	*httptest.Server
	key   *rsa.PrivateKey
	email string
	nonce string // of the sign-in under way
}

func newProvider(t testing.TB, email string) *provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	p := &provider{key: key, email: email}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		must(t, json.NewEncoder(w).Encode(body))
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize",
			"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("code") != "the-code" || r.PostFormValue("code_verifier") == "" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.token(t)})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) token(t testing.TB) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		must(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]string{"alg": "RS256", "kid": "1"}) + "." + part(map[string]any{
		"iss": p.URL, "aud": "console", "sub": "person-1", "exp": time.Now().Add(time.Minute).Unix(),
		"iat": time.Now().Unix(), "nonce": p.nonce, "email": p.email, "email_verified": true,
	})
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	must(t, err)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestAnIdentityProviderLetsInWhoWasMadeAnOperator(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	h := build(t, d)
	p := newProvider(t, "grace@example.test")
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	x := operator.NewOIDC(h.operators, operator.OIDCConfig{Issuer: p.URL, ClientID: "console",
		ClientSecret: secret.New([]byte("s")), RedirectURL: h.url + "/console/oidc/finish",
		HTTP: &http.Client{Transport: transport}})
	c, err := console.New(console.Config{DB: d, Operators: h.operators, Accounts: h.accounts, OIDC: x})
	must(t, err)
	server := httptest.NewServer(c)
	t.Cleanup(func() { c.Close(); server.Close() })
	h.url = server.URL
	// begin goes to the provider and answers what the browser comes back with.
	begin := func(b *browser) url.Values {
		resp := b.do(http.MethodGet, "/oidc/begin?next="+url.QueryEscape("/console/account"), nil)
		to, err := url.Parse(resp.Header.Get("Location"))
		must(t, err)
		if !strings.HasPrefix(to.String(), p.URL+"/authorize") || to.Query().Get("code_challenge_method") != "S256" {
			t.Fatalf("it leads to %s", to)
		}
		if cookie := resp.Header.Get("Set-Cookie"); !strings.Contains(cookie, "Path=/console/oidc") ||
			!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
			t.Errorf("the ticket travels as %s", cookie)
		}
		p.nonce = to.Query().Get("nonce")
		return url.Values{"code": {"the-code"}, "state": {to.Query().Get("state")}}
	}
	refused := func(b *browser, back url.Values, why string) {
		t.Helper()
		resp := b.do(http.MethodGet, "/oidc/finish?"+back.Encode(), nil)
		if page := read(t, resp); why == "unknown operator grace@example.test" && !strings.Contains(strings.ToLower(page),
			why) {
			t.Errorf("the page does not say why:\n%s", gist(page))
		}
		if resp.StatusCode != http.StatusUnauthorized ||
			strings.Contains(strings.Join(resp.Header.Values("Set-Cookie"), " "), "tributary_console") {
			t.Errorf("%s: %d %v", why, resp.StatusCode, resp.Header.Values("Set-Cookie"))
		}
		if b.do(http.MethodGet, "/account", nil).StatusCode != http.StatusSeeOther {
			t.Errorf("%s: there is a session", why)
		}
	}
	b := h.browser()
	if page := b.get("/sign-in"); !strings.Contains(page, "/console/oidc/begin") {
		t.Errorf("the sign-in page does not offer the provider:\n%s", gist(page))
	}
	refused(b, begin(b), "unknown operator grace@example.test")
	admin := h.as(operator.Admin)
	admin.noticed(admin.post("/operators",
		url.Values{"name": {"grace@example.test"}, "role": {"viewer"}, "with": {"identity"}}), "operator")
	back := begin(b)
	back.Set("state", "another")
	refused(b, back, "another state")
	refused(h.browser(), back, "another browser")
	resp := b.do(http.MethodGet, "/oidc/finish?"+begin(b).Encode(), nil)
	if page := read(t, resp); resp.StatusCode != http.StatusOK ||
		!strings.Contains(page, `content="0; url=/console/account"`) {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	if page := b.get("/account"); !strings.Contains(page, "grace@example.test") {
		t.Error("somebody else is signed in")
	}
	if page := admin.get("/operators"); !strings.Contains(page, "/operators/grace@example.test/unbind") {
		t.Errorf("the operators' page offers no way to unbind:\n%s", gist(page))
	}
	admin.noticed(admin.post("/operators/grace@example.test/unbind", nil), "operator")
	if b.do(http.MethodGet, "/account", nil).StatusCode != http.StatusSeeOther {
		t.Error("the session of an unbound identity goes on")
	}
	if page := admin.get("/operators"); strings.Contains(page, "/unbind") {
		t.Error("there is still something to unbind")
	}
}

func TestAProviderThatIsAwayIsSaidOnTheSignInPage(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	h := build(t, d)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	x := operator.NewOIDC(h.operators, operator.OIDCConfig{Issuer: gone.URL, ClientID: "console",
		RedirectURL: h.url + console.OIDCFinish})
	c, err := console.New(console.Config{DB: d, Operators: h.operators, Accounts: h.accounts, OIDC: x})
	must(t, err)
	server := httptest.NewServer(c)
	t.Cleanup(func() { c.Close(); server.Close(); x.Close() })
	h.url = server.URL
	b := h.browser()
	resp := b.do(http.MethodGet, "/oidc/begin?next="+url.QueryEscape("/console/account"), nil)
	page := read(t, resp)
	if resp.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(page, "The identity provider is unreachable") || !strings.Contains(page, `id="password"`) ||
		!strings.Contains(page, "/console/account") {
		t.Errorf("%d\n%s", resp.StatusCode, gist(page))
	}
	if h.as(operator.Viewer).do(http.MethodGet, "/account", nil).StatusCode != http.StatusOK {
		t.Error("a password no longer signs in")
	}
}
