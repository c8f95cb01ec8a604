package console_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
)

// strict builds a console on which second factors are required.
func strict(t testing.TB) *house {
	t.Helper()
	return buildWith(t, dbtest.SQLite(t), func(c *operator.Config) { c.Second.Required = true })
}

// appCode is what an authenticator app shows: RFC 6238, written a second time.
func appCode(t testing.TB, key string, at time.Time) string {
	t.Helper()
	raw, err := base32.StdEncoding.DecodeString(key)
	must(t, err)
	mac := hmac.New(sha1.New, raw)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(at.Unix()/30)))
	sum := mac.Sum(nil)
	n := binary.BigEndian.Uint32(sum[sum[19]&15:]) & (1<<31 - 1)
	return fmt.Sprintf("%06d", n%1000000)
}

var (
	appKeyText  = regexp.MustCompile(`id="appkey">([A-Z2-7]+)<`)
	ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
	codeLine    = regexp.MustCompile(`[a-z2-9]{4}(?:-[a-z2-9]{4}){3}`)
)

func found(t testing.TB, re *regexp.Regexp, page string) string {
	t.Helper()
	m := re.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no %s in\n%s", re, gist(page))
	}
	return html.UnescapeString(m[1])
}

// knock signs in with the password and answers the page of the second half.
func (b *browser) knock(name string) string {
	b.t.Helper()
	resp := b.do(http.MethodPost, "/sign-in",
		url.Values{"name": {name}, "password": {password}, "next": {"/console/queues"}})
	if at := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther ||
		at != "/console/sign-in/second?next="+url.QueryEscape("/console/queues") {
		b.t.Fatalf("after the password: %d %s", resp.StatusCode, at)
	}
	return b.get("/sign-in/second?next=" + url.QueryEscape("/console/queues"))
}

func TestAnAppIsEnrolledAndUsedWithoutScripts(t *testing.T) {
	t.Parallel()
	h := strict(t)
	b := h.browser()
	page := b.knock("admin")
	if b.do(http.MethodGet, "/queues", nil).StatusCode != http.StatusSeeOther {
		t.Error("half a sign-in opens a page")
	}
	key := found(t, appKeyText, page)
	form := url.Values{"csrf": {found(t, csrfField, page)}, "ticket": {found(t, ticketField, page)},
		"next": {"/console/queues"}, "code": {"000000"}}
	if resp := b.do(http.MethodPost, "/sign-in/second", form); resp.StatusCode != http.StatusBadRequest ||
		!strings.Contains(read(t, resp), "Check the phone&#39;s clock") {
		t.Errorf("a wrong first code: %d", resp.StatusCode)
	}
	code := appCode(t, key, h.db.Now())
	form.Set("code", code)
	shown := read(t, b.do(http.MethodPost, "/sign-in/second", form))
	codes := codeLine.FindAllString(shown, -1)
	if len(codes) != operator.RecoveryCodes || !strings.Contains(shown, `href="/console/queues"`) {
		t.Fatalf("recovery codes %q in\n%s", codes, gist(shown))
	}
	if !strings.Contains(b.get("/account/second"), "10 recovery codes left") {
		t.Error("the account page does not count the recovery codes")
	}
	other := h.browser()
	page = other.knock("admin")
	// the same one, however late it is by now
	form = url.Values{"csrf": {found(t, csrfField, page)}, "next": {"/console/queues"}, "code": {code}}
	if resp := other.do(http.MethodPost, "/sign-in/second", form); resp.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(read(t, resp), "already used") {
		t.Errorf("the code of the enrolment again: %d", resp.StatusCode)
	}
	forged := url.Values{"csrf": {"forged"}, "code": {codes[0]}}
	if resp := other.do(http.MethodPost, "/sign-in/second", forged); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: %d", resp.StatusCode)
	}
	page = other.knock("admin")
	form.Set("csrf", found(t, csrfField, page))
	form.Set("code", codes[0])
	if resp := other.do(http.MethodPost, "/sign-in/second", form); resp.StatusCode != http.StatusSeeOther ||
		resp.Header.Get("Location") != "/console/queues" {
		t.Errorf("a recovery code: %d %s", resp.StatusCode, gist(read(t, resp)))
	}
	if !strings.Contains(other.get("/queues"), "Operations by stage") || !strings.Contains(other.get("/operators"),
		"authenticator app") {
		t.Error("a recovery code opens the console")
	}
	if resp := other.post("/account/second/remove", nil); resp.StatusCode != http.StatusConflict {
		t.Errorf("the last factor is removed: %d", resp.StatusCode)
	}
	if fresh := codeLine.FindAllString(read(t, other.post("/account/second/codes", nil)),
		-1); len(fresh) != operator.RecoveryCodes || fresh[0] == codes[0] {
		t.Errorf("new recovery codes: %q", fresh)
	}
	if resp := other.post("/operators/admin/reset-mfa", nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("reset: %d", resp.StatusCode)
	}
	if resp := other.do(http.MethodGet, "/queues", nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("after a reset the sessions live: %d", resp.StatusCode)
	}
}

// TestPasskeysInABrowser enrols and uses passkeys of Chromium's own virtual authenticator.
func TestPasskeysInABrowser(t *testing.T) {
	t.Parallel()
	h := strict(t)
	c := h.chromium()
	_, err := chromedp.Call(c.ctx, webauthn.Enable, webauthn.EnableParams{})
	must(t, err)
	_, err = chromedp.Call(c.ctx, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: "ctap2", Transport: "internal", HasResidentKey: true, HasUserVerification: true, IsUserVerified: true,
			AutomaticPresenceSimulation: true,
		}})
	must(t, err)
	c.open("/queues")
	password := func() {
		c.types("#name", "admin")
		c.types("#password", password+"\r")
	}
	password()
	c.shows("#makepasskey")
	c.axe("/sign-in/second (enrol)")
	c.click("#makepasskey")
	c.sees("Recovery codes")
	c.axe("/sign-in/second (codes)")
	c.click("a.button")
	c.sees("Operations by stage")
	c.open("/account/second")
	c.sees("first passkey")
	c.fair("/account/second")
	c.axe("/account/second")
	c.open("/account")
	c.click("form[action='/console/sign-out'] button")
	password()
	c.shows("#usepasskey")
	c.axe("/sign-in/second")
	c.click("#usepasskey")
	c.sees("In progress now")
	c.content()
}
