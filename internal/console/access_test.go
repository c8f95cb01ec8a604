package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/audit"
	"tributary/internal/console"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// at is a path of the table with something in place of its parameters.
func at(rt console.Route) string {
	return parameter.ReplaceAllString(strings.Replace(rt.Path, "{$}", "", 1), "something")
}

func TestNothingIsReachedWithoutASession(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.browser()
	for _, rt := range h.console.Routes() {
		var form url.Values
		if rt.Method == http.MethodPost {
			form = url.Values{"csrf": {"guessed"}}
		}
		resp := b.do(rt.Method, at(rt), form)
		if resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(resp.Header.Get("Location"), "/console/sign-in") {
			t.Errorf("%s %s: %d %s", rt.Method, rt.Path, resp.StatusCode, resp.Header.Get("Location"))
		}
		if rt.Live {
			if text := read(t, b.do(http.MethodGet, "/live"+at(rt), nil)); !strings.Contains(text, "event: over") ||
				strings.Contains(text, "event: page") {
				t.Errorf("the updates of %s: %q", rt.Path, text)
			}
		}
	}
	if resp := b.do(http.MethodGet, "/no/such/page", nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("an unknown page tells a stranger that it is unknown: %d", resp.StatusCode)
	}
}

func TestEveryRouteRefusesRolesBelowItsOwn(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	for _, role := range []operator.Role{operator.Viewer, operator.Acting, operator.Admin} {
		b := h.as(role)
		token := b.token()
		for _, rt := range h.console.Routes() {
			if rt.Path == "/sign-out" {
				continue
			}
			var form url.Values
			if rt.Method == http.MethodPost {
				form = url.Values{"csrf": {token}}
			}
			status := b.do(rt.Method, at(rt), form).StatusCode
			if refused := status == http.StatusForbidden; refused == role.Allows(rt.Role) {
				t.Errorf("%s %s %s: %d", role, rt.Method, rt.Path, status)
			}
		}
	}
}

func TestWhatIsRefusedIsInTheLog(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	viewer, admin := h.as(operator.Viewer), h.as(operator.Admin)
	viewer.do(http.MethodPost, "/operators", url.Values{"csrf": {viewer.token()}})
	admin.do(http.MethodPost, "/operators", url.Values{"csrf": {"of another site"}})
	var found []string
	err := h.db.Read(t.Context(), func(r db.Reader) error {
		list, _, err := h.operators.Audit(r, operator.AuditFilter{Subject: "POST /operators"})
		for _, e := range list {
			found = append(found, e.Action+" "+e.Outcome)
		}
		return err
	})
	all := strings.Join(found, "\n")
	if err != nil || len(found) != 2 || !strings.Contains(all, "needs the role admin") ||
		!strings.Contains(all, "does not belong to your session") || strings.Count(all, "console.refused") != 2 {
		t.Errorf("%q %v", found, err)
	}
}

func TestEveryChangeNeedsTheTokenOfItsSession(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b, other := h.as(operator.Admin), h.as(operator.Admin)
	for _, rt := range h.console.Routes() {
		if rt.Method != http.MethodPost {
			continue
		}
		for name, token := range map[string]string{"none": "", "wrong": "x", "another session's": other.token()} {
			resp := b.do(rt.Method, at(rt), url.Values{"csrf": {token}})
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s with a token that is %s: %d", rt.Path, name, resp.StatusCode)
			}
		}
	}
	if b.do(http.MethodGet, "/account", nil).StatusCode != http.StatusOK {
		t.Error("a refused form ended the session")
	}
}

func TestAFormOfAnotherSiteIsRefusedWhateverItCarries(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	for name, header := range map[string][2]string{"fetch metadata": {"Sec-Fetch-Site", "cross-site"},
		"origin": {"Origin", "https://evil.example"}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/console/clients",
			strings.NewReader(url.Values{"csrf": {b.token()}, "display_name": {"Evil"}}.Encode()))
		must(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set(header[0], header[1])
		resp, err := b.http.Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if page := b.get("/clients"); strings.Contains(page, "Evil") {
		t.Error("a client was made")
	}
}

func TestPagesTellTheBrowserToBeStrict(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	for _, path := range []string{"/sign-in", "/", "/no-such-page", "/clients/" + clientID, "/live/alerts"} {
		ctxless := b.do(http.MethodGet, path, nil)
		header := ctxless.Header
		ctxless.Body.Close()
		policy := header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
			"connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy lacks %s: %s", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

func TestPagesHaveNothingInline(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	inline := regexp.MustCompile(
		`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script(?: [^>]*)?>[^<]|(?:src|href|action)="(?:https?:)?//`)
	for _, rt := range h.console.Routes() {
		// that leads on
		if rt.Method != http.MethodGet || strings.Contains(rt.Path, "{") && rt.Path != "/{$}" || rt.Path == "/find" {
			continue
		}
		if found := inline.FindString(b.get(at(rt))); found != "" {
			t.Errorf("%s has %q", rt.Path, found)
		}
	}
}

func TestTheCookieIsForThisSiteAloneAndOutOfReachOfScripts(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	resp := h.browser().do(http.MethodPost, "/sign-in",
		url.Values{"name": {"admin"}, "password": {password}, "next": {"//evil.example"}})
	if to := resp.Header.Get("Location"); to != "/console/" {
		t.Errorf("signing in leads to %s", to)
	}
	cookie := resp.Header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/console"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie lacks %s: %s", part, cookie)
		}
	}
}

func TestSigningInSaysNothingAboutWhatWasWrong(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.browser()
	unknown := read(t, b.do(http.MethodPost, "/sign-in", url.Values{"name": {"nobody"}, "password": {password}}))
	wrong := b.do(http.MethodPost, "/sign-in", url.Values{"name": {"admin"}, "password": {"not this one at all"}})
	if wrong.StatusCode != http.StatusUnauthorized || len(wrong.Cookies()) != 0 {
		t.Errorf("a wrong password: %d %v", wrong.StatusCode, wrong.Cookies())
	}
	if text := read(t, wrong); strings.ReplaceAll(text, "admin", "nobody") != unknown ||
		strings.Contains(text, "not this one") {
		t.Errorf("an unknown name and a wrong password are told apart, or the password comes back:\n%s", text)
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.browser()
	for range 30 {
		resp := b.do(http.MethodPost, "/sign-in", url.Values{"name": {"admin"}, "password": {"a guess that is wrong"}})
		if resp.StatusCode == http.StatusTooManyRequests {
			if resp.Header.Get("Retry-After") == "" || !strings.Contains(read(t, resp), "Try again in") {
				t.Error("the answer does not say when to come back")
			}
			return
		}
		resp.Body.Close()
	}
	t.Error("30 guesses were let through")
}

func TestSigningOutAndBeingDisabledEndTheSession(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Viewer)
	if resp := b.post("/sign-out", nil); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign out: %d", resp.StatusCode)
	}
	if b.do(http.MethodGet, "/", nil).StatusCode != http.StatusSeeOther {
		t.Error("the session lives on after signing out")
	}
	b = h.as(operator.Viewer)
	if resp := h.as(operator.Admin).post("/operators/viewer/disable", nil); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("disable: %d %s", resp.StatusCode, gist(read(t, resp)))
	}
	if b.do(http.MethodGet, "/", nil).StatusCode != http.StatusSeeOther {
		t.Error("the session lives on after its operator was disabled")
	}
}

func TestOperatorsAreMadeAndChangedByAdminsAlone(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	admin := h.as(operator.Admin)
	page := read(t, admin.post("/operators", url.Values{"name": {"grace"}, "role": {"operator"}}))
	found := regexp.MustCompile(`id="secret">([^<]+)<`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no password was shown:\n%s", gist(page))
	}
	if strings.Contains(admin.get("/operators"), found[1]) || strings.Contains(admin.get("/audit"), found[1]) {
		t.Error("the password is shown again")
	}
	grace := h.browser()
	if resp := grace.do(http.MethodPost, "/sign-in",
		url.Values{"name": {"grace"}, "password": {found[1]}}); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign in with the password that was shown: %d", resp.StatusCode)
	}
	if resp := grace.do(http.MethodGet, "/operators", nil); resp.StatusCode != http.StatusForbidden {
		t.Errorf("an operator sees the operators: %d", resp.StatusCode)
	}
	if resp := grace.post("/account/password",
		url.Values{"old": {found[1]}, "new": {"a new one for her 777"}, "again": {"another"}}); resp.StatusCode !=
		http.StatusBadRequest {
		t.Errorf("two different new passwords: %d", resp.StatusCode)
	}
	if resp := grace.post("/account/password",
		url.Values{"old": {found[1]}, "new": {"a new one for her 777"},
			"again": {"a new one for her 777"}}); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("change the own password: %d %s", resp.StatusCode, gist(read(t, resp)))
	}
	if resp := admin.post("/operators/admin/disable", nil); resp.StatusCode != http.StatusConflict {
		t.Errorf("the last admin was disabled: %d", resp.StatusCode)
	}
	if resp := admin.post("/operators/grace/explode", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a change nobody knows: %d", resp.StatusCode)
	}
}

func TestAnExpiredSessionComesBackToItsPage(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	resp := h.browser().do(http.MethodGet, "/transactions?q=INV-1", nil)
	if got, want := resp.Header.Get("Location"),
		"/console/sign-in?next="+url.QueryEscape("/console/transactions?q=INV-1"); got != want {
		t.Errorf("leads to %s, want %s", got, want)
	}
}

func TestBehindHTTPSTheCookieNeverTravelsWithoutIt(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	h := build(t, d)
	secure, err := console.New(console.Config{DB: d, Operators: h.operators, Accounts: h.accounts, Secure: true,
		TrustProxy: true})
	must(t, err)
	t.Cleanup(secure.Close)
	req, err := http.NewRequest(http.MethodPost, "/console/sign-in",
		strings.NewReader(url.Values{"name": {"admin"}, "password": {password}}.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Forwarded-For", "203.0.113.9, 198.51.100.7")
	req.RemoteAddr = "127.0.0.1:1"
	w := &memory{header: http.Header{}}
	secure.ServeHTTP(w, req)
	if cookie := w.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-") ||
		!strings.Contains(cookie, "Secure;") || !strings.Contains(cookie, "Path=/;") || strings.Contains(cookie, "Domain") {
		t.Errorf("the cookie is %s", cookie)
	}
	if w.header.Get("Strict-Transport-Security") == "" {
		t.Error("there is no Strict-Transport-Security")
	}
	must(t, d.Read(t.Context(), func(r db.Reader) error {
		sessions, err := h.operators.Sessions(r)
		if err == nil && (len(sessions) != 1 || sessions[0].IP != "198.51.100.7") {
			t.Errorf("the session is from %+v, want the address our proxy names", sessions)
		}
		return err
	}))
}

// memory is a response that stays here.
type memory struct {
	header http.Header
	status int
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) WriteHeader(s int)           { m.status = s }
func (m *memory) Write(b []byte) (int, error) { return len(b), nil }

func TestAPasswordIsNeverInALog(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.browser()
	b.do(http.MethodPost, "/sign-in", url.Values{"name": {"admin"}, "password": {"canary-wrong-password"}}).Body.Close()
	h.as(operator.Admin)
	_, err := h.operators.SetPassword(t.Context(), audit.Actor{Name: "test"}, "viewer",
		secret.New([]byte("canary-new-password 99")))
	must(t, err)
	if text := h.log.String(); strings.Contains(text, "canary") || strings.Contains(text, password) {
		t.Error("a password is in the log")
	}
}
