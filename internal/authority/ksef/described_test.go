package ksef_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
)

// caller talks to the double by hand.
type caller struct {
	office
	t       *testing.T
	access  string
	public  *rsa.PublicKey
	key, iv []byte
}

type said struct {
	status int
	code   int // KSeF's, of a refusal
	body   map[string]any
	text   string
	header http.Header
}

func (s said) at(names ...string) string {
	var v any = s.body
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return fmt.Sprint(v)
}

func (c *caller) call(method, path string, in any, header ...string) said {
	c.t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			c.t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.URL+"/pl/v2"+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("X-Error-Format", "problem-details")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.access != "" {
		r.Header.Set("Authorization", "Bearer "+c.access)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.do(r)
}

func (c *caller) do(r *http.Request) said {
	c.t.Helper()
	resp, err := c.Client().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	out := said{status: resp.StatusCode, text: string(text), header: resp.Header}
	if json.Unmarshal(text, &out.body) == nil {
		if all, ok := out.body["errors"].([]any); ok && len(all) > 0 {
			out.code = int(all[0].(map[string]any)["code"].(float64))
		}
	}
	return out
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	c := &caller{office: newOffice(t), t: t, key: bytes.Repeat([]byte{7}, 32), iv: bytes.Repeat([]byte{9}, 16)}
	var keys []struct{ Certificate []byte }
	if err := json.Unmarshal([]byte(c.call(http.MethodGet, "/security/public-key-certificates", nil).text),
		&keys); err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(keys[0].Certificate)
	if err != nil {
		t.Fatal(err)
	}
	c.public = cert.PublicKey.(*rsa.PublicKey)
	c.signIn("a-token")
	return c
}

func (c *caller) encrypted(text string) string {
	c.t.Helper()
	out, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, c.public, []byte(text), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out)
}

func (c *caller) signIn(token string) {
	c.t.Helper()
	c.access = ""
	challenge := c.call(http.MethodPost, "/auth/challenge", nil)
	begun := c.call(http.MethodPost, "/auth/ksef-token", map[string]any{
		"challenge": challenge.at("challenge"), "contextIdentifier": map[string]any{"type": "Nip", "value": nip},
		"encryptedToken": c.encrypted(fmt.Sprintf("%s|%.0f", token, challenge.body["timestampMs"])),
	})
	c.access = begun.at("authenticationToken", "token")
	c.access = c.call(http.MethodPost, "/auth/token/redeem", nil).at("accessToken", "token")
}

func (c *caller) open() string {
	c.t.Helper()
	got := c.call(http.MethodPost, "/sessions/online", map[string]any{
		"formCode":   map[string]any{"systemCode": "FA (3)", "schemaVersion": "1-0E", "value": "FA"},
		"encryption": map[string]any{"encryptedSymmetricKey": c.encrypted(string(c.key)), "initializationVector": c.iv},
	})
	if got.status != http.StatusCreated {
		c.t.Fatalf("%+v", got)
	}
	return got.at("referenceNumber")
}

func (c *caller) send(session, document string) string {
	c.t.Helper()
	content := sealed([]byte(document), c.key, c.iv)
	plain, hidden := sha256.Sum256([]byte(document)), sha256.Sum256(content)
	got := c.call(http.MethodPost, "/sessions/online/"+session+"/invoices", map[string]any{
		"invoiceHash": plain[:], "invoiceSize": len(document), "encryptedInvoiceHash": hidden[:],
		"encryptedInvoiceSize": len(content), "encryptedInvoiceContent": content,
	})
	if got.status != http.StatusAccepted {
		c.t.Fatalf("%+v", got)
	}
	return got.at("referenceNumber")
}

func (c *caller) close(session string) {
	c.t.Helper()
	if got := c.call(http.MethodPost, "/sessions/online/"+session+"/close", nil); got.status != http.StatusNoContent {
		c.t.Fatalf("%+v", got)
	}
}

// A session ends as its invoices do: cancelled without any, refused when none is
// good, closed while one waits, and processed, with its confirmation, after.
func TestClosedSessionComesToItsEnd(t *testing.T) {
	c := newCaller(t)
	state := func(session string) said { return c.call(http.MethodGet, "/sessions/"+session, nil) }
	empty := c.open()
	if got := state(empty); got.at("status", "code") != "100" || got.body["upo"] != nil {
		t.Errorf("open: %+v", got)
	}
	c.close(empty)
	if got := state(empty); got.at("status", "code") != "440" {
		t.Errorf("empty: %+v", got)
	}
	bad := c.open()
	c.send(bad, "<Faktura/>")
	c.close(bad)
	if got := state(bad); got.at("status", "code") != "445" || got.at("failedInvoiceCount") != "1" {
		t.Errorf("bad: %+v", got)
	}
	if err := c.desk.SetScript([]authority.Step{{Outcome: authority.Suspend, Delay: time.Nanosecond}}); err != nil {
		t.Fatal(err)
	}
	soon := c.open()
	c.send(soon, foreignInvoice("S/1"))
	c.close(soon)
	if got := state(soon); got.at("status", "code") != "200" || got.at("successfulInvoiceCount") != "1" {
		t.Errorf("decided by now: %+v", got)
	}
	mixed := c.open()
	if err := c.desk.SetScript([]authority.Step{{Outcome: authority.Accept},
		{Outcome: authority.Suspend, Delay: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	c.send(mixed, foreignInvoice("A/1"))
	late := c.send(mixed, foreignInvoice("A/2"))
	c.send(mixed, "<Faktura/>")
	c.close(mixed)
	got := state(mixed)
	if got.at("status", "code") != "170" || got.at("invoiceCount") != "3" || got.at("successfulInvoiceCount") != "1" ||
		got.body["upo"] != nil {
		t.Errorf("waiting: %+v", got)
	}
	if got := c.call(http.MethodGet, "/sessions/"+mixed+"/invoices/"+late, nil); got.at("status", "code") != "150" {
		t.Errorf("%+v", got)
	}
}

// A confirmation can be fetched by its address without a token, for as long as
// the address says, and by nobody who changes it.
func TestConfirmationsAreFetchedByTheirAddress(t *testing.T) {
	c := newCaller(t)
	session := c.open()
	for i := range 3 {
		c.send(session, foreignInvoice(fmt.Sprintf("B/%d", i)))
	}
	c.close(session)
	got := c.call(http.MethodGet, "/sessions/"+session, nil)
	page := got.body["upo"].(map[string]any)["pages"].([]any)[0].(map[string]any)
	address := page["downloadUrl"].(string)
	fetch := func(address string) said {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.do(r)
	}
	whole := fetch(address)
	if whole.status != http.StatusOK || strings.Count(whole.text, "<Dokument>") != 3 ||
		whole.header.Get("x-ms-meta-hash") == "" {
		t.Errorf("%+v", whole)
	}
	for _, wrong := range []string{strings.Replace(address, "sig=", "sig=00", 1),
		strings.Replace(address, "se=", "se=9", 1)} {
		if got := fetch(wrong); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", wrong, got.status)
		}
	}
	list := c.call(http.MethodGet, "/sessions/"+session+"/invoices?pageSize=10", nil)
	one := list.body["invoices"].([]any)[1].(map[string]any)
	if got := fetch(one["upoDownloadUrl"].(string)); strings.Count(got.text, "<Dokument>") != 1 ||
		!strings.Contains(got.text, one["ksefNumber"].(string)) {
		t.Errorf("%+v", got)
	}
}

// Lists come in pages, and whatever is asked wrongly is refused in KSeF's words,
// never in a parser's.
func TestListsAndTheirRefusalsAreThoseOfTheDescription(t *testing.T) {
	c := newCaller(t)
	session := c.open()
	for i := range 12 {
		c.send(session, foreignInvoice(fmt.Sprintf("C/%d", i)))
	}
	first := c.call(http.MethodGet, "/sessions/"+session+"/invoices", nil)
	second := c.call(http.MethodGet, "/sessions/"+session+"/invoices", nil, "x-continuation-token",
		first.at("continuationToken"))
	if len(first.body["invoices"].([]any)) != 10 || len(second.body["invoices"].([]any)) != 2 ||
		second.body["continuationToken"] != nil {
		t.Errorf("%+v\n%+v", first, second)
	}
	unknown := "5265877635-20250826-0100001AF629-AF"
	for _, w := range []struct {
		method, path string
		in           any
		code         int
		token        string
	}{
		{http.MethodGet, "/sessions/" + session + "/invoices", nil, 21418, "?"},
		{http.MethodGet, "/invoices/ksef/" + unknown, nil, 21164, ""},
		{http.MethodGet, "/sessions/" + session + "/upo/20250918-EU-2EBD6FA000-242EB9B66D-43", nil, 21178, ""},
		{http.MethodGet, "/tokens/20250918-EC-2EBD6FA000-242EB9B66D-43", nil, 21405, ""},
		{http.MethodDelete, "/tokens/20250918-EC-2EBD6FA000-242EB9B66D-43", nil, 21405, ""},
		{http.MethodDelete, "/auth/sessions/20250918-AU-2EBD6FA000-242EB9B66D-43", nil, 21405, ""},
	} {
		got := c.call(w.method, w.path, w.in, "x-continuation-token", w.token)
		if got.status != http.StatusBadRequest || got.code != w.code {
			t.Errorf("%s %s: %+v", w.method, w.path, got)
		}
	}
}
