package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// guest is a browser at the console of a running program.
type guest struct {
	t    *testing.T
	at   string // the console
	http *http.Client
}

func newGuest(t *testing.T, at string) *guest {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t, at, &http.Client{Jar: jar}}
}

// sends posts a form and answers where that led, with the page.
func (v *guest) sends(path string, form url.Values) (status int, at, page string) {
	v.t.Helper()
	answer, err := v.http.PostForm(v.at+path, form)
	if err != nil {
		v.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was read
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimPrefix(answer.Request.URL.Path, "/console"), string(text)
}

// field is a value in a page's form.
func (v *guest) field(page, pattern string) string {
	v.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if m == nil {
		v.t.Fatalf("no %s in\n%s", pattern, page)
	}
	return m[1]
}

// The keys of operators are renewed by one command while the console is in use: second factors
// work as before, and browsers that signed in before are no longer known.
func TestTheConsolesKeysAreRenewedByOneCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := start(t, append(demoArgs(t, dir), "--operator-mfa", "required")...)
	demo.waitReady()
	said := regexp.MustCompile(`console +(http://localhost:\d+/console)/ \(operator (\S+), password (\S+)\)`).FindStringSubmatch(demo.output())
	if said == nil {
		t.Fatalf("no console in\n%s", demo.output())
	}
	owner, half := newGuest(t, said[1]), url.Values{"name": {said[2]}, "password": {said[3]}}
	const csrf, ticket = `name="csrf" value="([^"]+)"`, `name="ticket" value="([^"]+)"`
	_, _, page := owner.sends("/sign-in", half)
	key := owner.field(page, `id="appkey">([A-Z2-7]+)<`)
	code := func(steps int) string {
		text, err := totp.GenerateCode(key, time.Now().Add(time.Duration(steps)*30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if status, _, page := owner.sends("/sign-in/second", url.Values{"csrf": {owner.field(page, csrf)},
		"ticket": {owner.field(page, ticket)}, "code": {code(-1)}}); status != http.StatusOK || !strings.Contains(page, "Your second factor is added") {
		t.Fatalf("a factor is added: %d\n%s", status, page)
	}
	renew := func() {
		succeeds(t, "master-key", "renew", "--data", dir, "--demo")
	}
	renew()
	_, at, page := owner.sends("/sign-in", half)
	if at != "/sign-in/second" {
		t.Fatalf("the password leads to %s\n%s", at, page)
	}
	if _, at, page = owner.sends("/sign-in/second", url.Values{"csrf": {owner.field(page, csrf)}, "code": {code(1)}}); strings.HasPrefix(at, "/sign-in") {
		t.Fatalf("the factor does not open any more: %s\n%s", at, page)
	}

	// Somebody guesses: only the owner's browser is let through, until it is forgotten.
	stranger, wrong := newGuest(t, said[1]), url.Values{"name": {said[2]}, "password": {"wrong"}}
	status := 0
	for n := 0; n < 100 && status != http.StatusTooManyRequests; n++ {
		status, _, _ = stranger.sends("/sign-in", wrong)
	}
	if status, _, _ := stranger.sends("/sign-in", half); status != http.StatusTooManyRequests {
		t.Fatalf("after many guesses a stranger gets %d", status)
	}
	if status, at, _ := owner.sends("/sign-in", half); status != http.StatusOK || at != "/sign-in/second" {
		t.Errorf("the owner's browser is not known: %d %s", status, at)
	}
	renew()
	if status, _, _ := owner.sends("/sign-in", half); status != http.StatusTooManyRequests {
		t.Errorf("a browser is known by a key that was renewed: %d", status)
	}
}
