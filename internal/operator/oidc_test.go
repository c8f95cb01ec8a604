package operator_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
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
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// provider is an identity provider behind a real HTTP server.
type provider struct {
	t      testing.TB
	server *httptest.Server
	rsa    *rsa.PrivateKey
	ec     *ecdsa.PrivateKey

	mu     sync.Mutex
	codes  map[string]grant
	change func(claims map[string]any)         // spoils the next identities
	sign   func(header, payload string) string // spoils their signatures
	broken bool
	info   map[string]any // what UserInfo answers; nil: there is no such endpoint
	asked  int            // for the discovery document
}

type grant struct{ nonce, challenge, redirect string }

const (
	oidcClient = "tributary-console"
	oidcSecret = "the client's secret"
)

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{t: t, codes: map[string]grant{}}
	var err error
	p.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /me", p.userInfo)
	p.server = httptest.NewServer(mux)
	t.Cleanup(p.server.Close)
	return p
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the test's own server
}

func (p *provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.broken {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	said := map[string]any{"issuer": p.server.URL, "authorization_endpoint": p.server.URL + "/authorize",
		"token_endpoint": p.server.URL + "/token",
		"jwks_uri":       p.server.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "ES256"}}
	if p.info != nil {
		said["userinfo_endpoint"] = p.server.URL + "/me"
	}
	answer(w, said)
}

func (p *provider) userInfo(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer a" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	answer(w, p.info)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	point, err := p.ec.PublicKey.Bytes()
	sure(err)
	answer(w, map[string]any{"keys": []any{
		map[string]any{"kty": "RSA", "kid": "r", "alg": "RS256", "use": "sig", "n": b64(p.rsa.N.Bytes()),
			"e": b64(big.NewInt(int64(p.rsa.E)).Bytes())},
		map[string]any{"kty": "EC", "kid": "e", "alg": "ES256", "use": "sig", "crv": "P-256", "x": b64(point[1:33]),
			"y": b64(point[33:])},
	}})
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != oidcClient || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		!strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = grant{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(),
		http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	g, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	change, sign, broken := p.change, p.sign, p.broken
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, password, _ := r.BasicAuth()
	if id == "" {
		id, password = r.FormValue("client_id"), r.FormValue("client_secret")
	} else {
		password, _ = url.QueryUnescape(password)
	}
	switch {
	case broken:
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	case !known || b64(sum[:]) != g.challenge || r.FormValue("redirect_uri") != g.redirect || id != oidcClient ||
		password != oidcSecret:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	claims := map[string]any{"iss": p.server.URL, "aud": oidcClient, "sub": "subject-1", "nonce": g.nonce,
		"email": "ana@example.test", "email_verified": true,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	if change != nil {
		change(claims)
	}
	if sign == nil {
		sign = p.signRS256
	}
	body, err := json.Marshal(claims)
	sure(err)
	answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": sign("", b64(body))})
}

func (p *provider) signRS256(_, payload string) string {
	text := b64([]byte(`{"alg":"RS256","kid":"r"}`)) + "." + payload
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, p.rsa, crypto.SHA256, sum[:])
	sure(err)
	return text + "." + b64(sig)
}

func (p *provider) signES256(_, payload string) string {
	text := b64([]byte(`{"alg":"ES256","kid":"e"}`)) + "." + payload
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.ec, sum[:])
	sure(err)
	return text + "." + b64(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func (p *provider) spoil(change func(map[string]any), sign func(header, payload string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.sign = change, sign
}

func (p *provider) knows(info map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info = info
}

// desk is the console's side of it.
type desk struct {
	*book
	p *provider
	x *operator.OIDC
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	return newDeskFor(t, 100)
}

// newDeskFor is a desk that takes so many wrong identities before it slows down.
func newDeskFor(t testing.TB, guesses int) *desk {
	t.Helper()
	d := &desk{book: open(t, dbtest.SQLite(t), func(c *operator.Config) {
		c.Limit = operator.Limit{NameBurst: guesses, NameEvery: time.Second, AddressBurst: guesses, AddressEvery: time.Second}
	}), p: newProvider(t)}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	d.x = operator.NewOIDC(d.Operators, operator.OIDCConfig{Issuer: d.p.server.URL, ClientID: oidcClient,
		ClientSecret: secret.FromText(oidcSecret),
		RedirectURL:  "https://console.example.test/console/oidc", HTTP: client})
	_, _, err := d.Create(context.Background(), admin(),
		operator.NewOperator{Name: "ana@example.test", Role: operator.Acting, WithoutPassword: true})
	must(t, err)
	return d
}

// goThere follows the redirect to the provider and brings its answer back.
func (d *desk) goThere(redirect string) url.Values {
	d.t.Helper()
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	defer client.CloseIdleConnections()
	r, err := client.Get(redirect)
	must(d.t, err)
	must(d.t, r.Body.Close())
	back, err := url.Parse(r.Header.Get("Location"))
	must(d.t, err)
	return back.Query()
}

func (d *desk) signIn() (string, string, error) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	redirect, ticket, err := d.x.Begin(ctx, "/console/transactions?q=1")
	cancel() // the keys are fetched later: what was found must not need this context
	must(d.t, err)
	token, _, next, err := d.x.Finish(context.Background(), ticket, d.goThere(redirect), operator.Attempt{IP: "192.0.2.9"})
	return token.RevealText(), next, err
}

func TestAnIdentityProviderSignsOperatorsIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, sign := range map[string]func(string, string) string{"RS256": d.p.signRS256, "ES256": d.p.signES256} {
		d.p.spoil(nil, sign)
		token, next, err := d.signIn()
		if err != nil || next != "/console/transactions?q=1" {
			t.Fatalf("%s: %q, %v", name, next, err)
		}
		s, err := d.Session(t.Context(), token)
		must(t, err)
		if s.Name != "ana@example.test" || s.Role != operator.Acting {
			t.Errorf("%s: %+v", name, s)
		}
	}
	must(t, d.d.Read(t.Context(), func(r db.Reader) error {
		ana, err := d.Operator(r, "ana@example.test")
		if ana.Issuer != d.p.server.URL || ana.Password || ana.SignedInAt.IsZero() {
			t.Errorf("%+v", ana)
		}
		return err
	}))
}

// Whoever sends wrong answers of a provider slows down himself and nobody else.
func TestWrongAnswersFromOneAddressKeepNobodyElseOut(t *testing.T) {
	t.Parallel()
	d := newDeskFor(t, 3)
	refused := error(nil)
	for range 10 {
		_, _, _, refused = d.x.Finish(t.Context(), "no ticket", url.Values{}, operator.Attempt{IP: "198.51.100.7"})
	}
	if fault.KindOf(refused) != fault.Limited {
		t.Errorf("ten wrong answers end with %v", refused)
	}
	if _, _, err := d.signIn(); err != nil {
		t.Errorf("another address: %v", err)
	}
}

func TestAnIdentityThatDoesNotHoldIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	set := func(name string, value any) func(map[string]any) {
		return func(claims map[string]any) { claims[name] = value }
	}
	other := newProvider(t)
	for what, spoil := range map[string]struct {
		change func(map[string]any)
		sign   func(string, string) string
	}{
		"another nonce":         {change: set("nonce", "x")},
		"no nonce":              {change: func(c map[string]any) { delete(c, "nonce") }},
		"another audience":      {change: set("aud", "somebody-else")},
		"another issuer":        {change: set("iss", "https://elsewhere.example.test")},
		"an old identity":       {change: set("exp", time.Now().Add(-time.Hour).Unix())},
		"an unverified address": {change: set("email_verified", false)},
		"verified as a text":    {change: set("email_verified", "true")},
		"no address":            {change: func(c map[string]any) { delete(c, "email") }},
		"an unknown operator":   {change: set("email", "bea@example.test")},
		"another's key":         {sign: other.signRS256},
		"no signature": {sign: func(_, payload string) string {
			return b64([]byte(`{"alg":"none"}`)) + "." + payload + "."
		}},
		"a signature with the public key": {sign: func(_, payload string) string {
			text := b64([]byte(`{"alg":"HS256","kid":"r"}`)) + "." + payload
			mac := hmac.New(sha256.New, d.p.rsa.N.Bytes())
			mac.Write([]byte(text))
			return text + "." + b64(mac.Sum(nil))
		}},
		"no identity at all": {sign: func(string, string) string { return "" }},
	} {
		d.p.spoil(spoil.change, spoil.sign)
		token, _, err := d.signIn()
		kind(t, what, err, fault.Unauthenticated)
		if token != "" {
			t.Errorf("%s: a token was given", what)
		}
	}
	d.p.spoil(nil, nil)
	_, _, err := d.signIn()
	must(t, err)
	d.p.spoil(set("sub", "subject-2"), nil)
	_, _, err = d.signIn()
	kind(t, "the address in other hands", err, fault.Unauthenticated)
	d.p.spoil(nil, nil)
	d.hire("root", operator.Admin)
	_, err = d.Disable(t.Context(), admin(), "ana@example.test")
	must(t, err)
	_, _, err = d.signIn()
	kind(t, "a disabled operator", err, fault.Unauthenticated)
}

func TestASignInThatWasNotBegunHereIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	redirect, ticket, err := d.x.Begin(t.Context(), "")
	must(t, err)
	query := d.goThere(redirect)
	finish := func(ticket string, query url.Values) error {
		_, _, _, err := d.x.Finish(context.Background(), ticket, query, operator.Attempt{IP: "192.0.2.9"})
		return err
	}
	with := func(name, value string) url.Values {
		changed := url.Values{}
		for k, v := range query {
			changed[k] = v
		}
		changed.Set(name, value)
		return changed
	}
	_, another, err := d.x.Begin(t.Context(), "")
	must(t, err)
	kind(t, "no ticket", finish("", query), fault.Unauthenticated)
	kind(t, "a ticket that is none", finish("e30", query), fault.Unauthenticated)
	kind(t, "another's ticket", finish(another, query), fault.Unauthenticated)
	kind(t, "another state", finish(ticket, with("state", "x")), fault.Unauthenticated)
	kind(t, "a refusal of the provider", finish(ticket, with("error", "access_denied")), fault.Unauthenticated)
	kind(t, "another code", finish(ticket, with("code", "x")), fault.Unauthenticated)
	raw, err := base64.RawURLEncoding.DecodeString(another)
	must(t, err)
	var fields map[string]any
	must(t, json.Unmarshal(raw, &fields))
	fields["s"] = query.Get("state") // whoever steals a code has not its verifier
	raw, err = json.Marshal(fields)
	must(t, err)
	kind(t, "a stolen code", finish(b64(raw), query), fault.Unauthenticated)
	if len(d.actions()) != 1 {
		t.Errorf("somebody was let in: %v", d.actions())
	}
	d.p.mu.Lock()
	d.p.broken = true
	d.p.mu.Unlock()
	_, _, err = d.signIn()
	kind(t, "a provider out of order", err, fault.Unavailable)
}

func TestATicketEndsAfterTenMinutes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, ticket, err := d.x.Begin(t.Context(), strings.Repeat("n", 600))
	must(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	must(t, err)
	var fields map[string]any
	must(t, json.Unmarshal(raw, &fields))
	if fields["to"] != "" {
		t.Error("a long address to go on to was kept")
	}
	left := time.Until(time.Unix(int64(fields["u"].(float64)), 0))
	if left > 10*time.Minute || left < 9*time.Minute {
		t.Errorf("it holds for %s", left)
	}
	fields["u"] = time.Now().Add(-time.Second).Unix()
	raw, err = json.Marshal(fields)
	must(t, err)
	_, _, _, err = d.x.Finish(t.Context(), b64(raw), url.Values{"state": {fields["s"].(string)}, "code": {"x"}},
		operator.Attempt{})
	kind(t, "an old ticket", err, fault.Unauthenticated)
	if !strings.Contains(err.Error(), "expired") {
		t.Error(err)
	}
}

func TestAProviderThatIsAwayIsLookedForAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	broken := func(is bool) {
		d.p.mu.Lock()
		defer d.p.mu.Unlock()
		d.p.broken = is
	}
	broken(true)
	_, _, err := d.x.Begin(t.Context(), "")
	kind(t, "a provider that is away", err, fault.Unavailable)
	if !strings.Contains(err.Error(), "try again") {
		t.Errorf("a person cannot tell what to do: %v", err)
	}
	for range 10 {
		_, _, err := d.x.Begin(t.Context(), "")
		kind(t, "a moment later", err, fault.Unavailable)
	}
	if d.p.asked != 1 {
		t.Errorf("%d looks within a moment: requests queue up behind a provider that hangs", d.p.asked)
	}
	broken(false)
	operator.MomentPassed(d.x)
	for range 2 { // once found it is known
		if _, _, err := d.signIn(); err != nil || d.p.asked != 2 {
			t.Errorf("the provider is back: %v after %d looks", err, d.p.asked)
		}
	}
}

// npm's oidc-provider and others give the address at UserInfo only.
func TestTheAddressIsReadAtUserInfoWhereTheTokenHasNone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	without := func(c map[string]any) { delete(c, "email"); delete(c, "email_verified") }
	d.p.spoil(without, nil)
	for what, info := range map[string]map[string]any{
		"another subject":  {"sub": "subject-2", "email": "ana@example.test", "email_verified": true},
		"no subject":       {"email": "ana@example.test", "email_verified": true},
		"not verified":     {"sub": "subject-1", "email": "ana@example.test"},
		"said to be false": {"sub": "subject-1", "email": "ana@example.test", "email_verified": "false"},
		"true as a text":   {"sub": "subject-1", "email": "ana@example.test", "email_verified": "true"},
		"one":              {"sub": "subject-1", "email": "ana@example.test", "email_verified": 1},
		"no address":       {"sub": "subject-1", "email_verified": true},
	} {
		d.p.knows(info)
		_, _, err := d.signIn()
		kind(t, what, err, fault.Unauthenticated)
	}
	d.p.knows(map[string]any{"sub": "subject-1", "email": "Ana@Example.test", "email_verified": true})
	if _, _, err := d.signIn(); err != nil {
		t.Error(err)
	}
	// An address in the token is the token's word, and nobody else's.
	d.p.spoil(func(c map[string]any) { c["email_verified"] = false }, nil)
	_, _, err := d.signIn()
	kind(t, "an address in the token that is not verified", err, fault.Unauthenticated)
}

func TestWhoIsProvenButNotLetInHearsWhy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.hire("root", operator.Admin)
	says := func(what, text string) {
		t.Helper()
		_, _, err := d.signIn()
		kind(t, what, err, fault.Unauthenticated)
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.p.spoil(func(c map[string]any) { c["email"] = "bea@example.test" }, nil)
	says("nobody", "unknown operator bea@example.test")
	d.p.spoil(nil, nil)
	_, _, err := d.signIn()
	must(t, err)
	d.p.spoil(func(c map[string]any) { c["sub"] = "subject-2" }, nil)
	says("another identity", "bound to another identity")
	_, _, err = d.Create(t.Context(), admin(),
		operator.NewOperator{Name: "ana.new@example.test", Role: operator.Viewer, WithoutPassword: true})
	must(t, err)
	d.p.spoil(func(c map[string]any) { c["email"] = "ana.new@example.test" }, nil)
	says("an identity with a new address", "bound to the operator ana@example.test")
	d.p.spoil(nil, nil)
	_, err = d.Disable(t.Context(), admin(), "ana@example.test")
	must(t, err)
	says("a disabled operator", "disabled")
}

func TestAnUnboundOperatorTakesTheNextIdentity(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	token, _, err := d.signIn()
	must(t, err)
	one, err := d.Unbind(t.Context(), admin(), "Ana@example.test")
	must(t, err)
	if one.Issuer != "" {
		t.Errorf("%+v", one)
	}
	_, err = d.Session(t.Context(), token)
	kind(t, "a session of the identity that is gone", err, fault.Unauthenticated)
	d.p.spoil(func(c map[string]any) { c["sub"] = "subject-2" }, nil)
	_, _, err = d.signIn()
	must(t, err)
	d.p.spoil(nil, nil)
	_, _, err = d.signIn()
	kind(t, "the identity before it", err, fault.Unauthenticated)
	before := len(d.actions())
	_, err = d.Unbind(t.Context(), admin(), "nobody")
	kind(t, "an unknown operator", err, fault.NotFound)
	_, err = d.Unbind(t.Context(), admin(), "ana@example.test")
	must(t, err)
	_, err = d.Unbind(t.Context(), admin(), "ana@example.test")
	must(t, err)
	if after := d.actions(); len(after) != before+1 ||
		after[len(after)-1] != "operator.identity_unbound ana@example.test" {
		t.Errorf("the log says %v", after)
	}
}

func FuzzTicket(f *testing.F) {
	f.Add("e30")
	f.Add("")
	f.Add(b64([]byte(`{"s":"a","n":"b","v":"c","u":99999999999}`)))
	b := open(f, dbtest.SQLite(f))
	p := newProvider(f)
	x := operator.NewOIDC(b.Operators, operator.OIDCConfig{Issuer: p.server.URL, ClientID: "x", HTTP: p.server.Client()})
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, ticket string) {
		if _, _, _, err := x.Finish(context.Background(), ticket, url.Values{"state": {"another"}, "code": {"x"}},
			operator.Attempt{IP: ticket}); err == nil {
			t.Errorf("%q signs in", ticket)
		}
	})
}

// sure is must for a provider's handlers: a fuzz target calls them, where the
// test that made the provider may not be told anything.
func sure(err error) {
	if err != nil {
		panic(err)
	}
}
