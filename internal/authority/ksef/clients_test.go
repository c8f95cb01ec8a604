package ksef_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/ksef"
	"tributary/internal/country/identity"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
	"tributary/internal/official"
	"tributary/internal/official/ksefwire"
	"tributary/internal/xmltree"
)

//go:embed testdata/clients/invoice.xml
var foreign string

// foreignInvoice is an invoice as another program writes it: with prefixes,
// comments and lines.
func foreignInvoice(number string) string {
	return strings.NewReplacer("@DAY@", time.Now().Format(time.DateOnly), "@NUMBER@", number, "@SELLER@", nip,
		"@BUYER@", "7740001454").Replace(foreign)
}

// office is a double over real HTTP, behind a prefix as the service has it, with
// KSeF's own description between it and its callers.
type office struct {
	*httptest.Server
	desk      *authority.Desk
	described *packtest.Description
}

func newOffice(t *testing.T, exempt ...string) office {
	t.Helper()
	desk, err := authority.OpenDesk(t.TempDir(), "PL")
	if err != nil {
		t.Fatal(err)
	}
	o := office{desk: desk, described: packtest.Describe(t, needs.Schemas(t, "pl-ksef", "open-api.json"), "/v2")}
	stored := func(r *http.Request) bool { // addresses of KSeF's storage are not described
		return strings.HasPrefix(r.URL.Path, "/storage/") || slices.Contains(exempt, r.URL.Path)
	}
	o.Server = httptest.NewServer(http.StripPrefix("/pl", o.described.Watch(t, ksef.New(desk), stored)))
	t.Cleanup(func() {
		o.Close()
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// account is what a client printed.
type account struct {
	Enveloped, Enveloping *bool
	Open, Status, Good    int
	Failed                int
	Number                string
	Listed, Found         []string
	UPO, Page, Single     string
	Sessions              *bool
	XML                   string
	Invoices              int
	Certificates          int
	PerHour               int
	Tokens                int
	Revoked, Refused      string
	Active                *int
}

// Public clients go the whole way: they sign in with a token and with a
// certificate, open a session, send, close it, wait until it is processed, fetch
// its confirmation, list it, find the invoice and fetch it by its number, and
// ask for limits and tokens. Each of their calls, and each answer, is one of
// KSeF's description.
func TestPublicClientsWorkWithTheDouble(t *testing.T) {
	folder := needs.Npm(t, "ksef-clients")
	for _, script := range []string{"ts.mjs", "client.mjs"} {
		t.Run(script, func(t *testing.T) {
			var undescribed []string
			if script == "client.mjs" { // asks for days without a time, which the description does not foresee
				undescribed = append(undescribed, "/v2/invoices/query/metadata")
			}
			o := newOffice(t, undescribed...)
			dir := t.TempDir()
			p12, password, err := identity.Test(nip, "Obca Spółka", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			text := foreignInvoice("OBCA/1")
			for name, content := range map[string][]byte{"cert.p12": p12, "invoice.xml": []byte(text)} {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			token := ""
			if script == "client.mjs" { // the other makes one itself
				token = "20251006-EC-0123456789-ABCDEF0123-4A|nip-" + nip + "|" + strings.Repeat("ab", 32)
			}
			cmd := exec.CommandContext(ctx, "node", "testdata/clients/"+script, folder, o.URL+"/pl", nip,
				filepath.Join(dir, "cert.p12"), password, filepath.Join(dir, "invoice.xml"), token)
			var told strings.Builder
			cmd.Stderr = &told
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, told.String())
			}
			var got account
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got.check(t, text)
			for _, operation := range []string{"GET /sessions/{referenceNumber}", "GET /sessions/{referenceNumber}/invoices",
				"GET /invoices/ksef/{ksefNumber}",
				"POST /tokens", "GET /tokens", "GET /tokens/{referenceNumber}", "DELETE /tokens/{referenceNumber}",
				"GET /limits/context", "GET /limits/subject", "GET /rate-limits",
				"POST /auth/xades-signature", "POST /auth/ksef-token"} {
				if !o.described.Seen()[operation] {
					t.Errorf("%s did not call %s", script, operation)
				}
			}
			if held, err := o.desk.Registrations(); err != nil || len(held) != 1 || held[0].AuthorityID != got.Number {
				t.Errorf("%+v %v", held, err)
			}
		})
	}
}

func (a *account) check(t *testing.T, invoice string) {
	t.Helper()
	if a.Open != 100 || a.Status != 200 || a.Good != 1 || a.Failed != 0 {
		t.Errorf("the session: %d, then %d with %d good and %d failed", a.Open, a.Status, a.Good, a.Failed)
	}
	if !ksefwire.ValidNumber(a.Number) || !slices.Equal(a.Listed, []string{a.Number}) ||
		!slices.Equal(a.Found, []string{a.Number}) {
		t.Errorf("%q is listed as %v and found as %v", a.Number, a.Listed, a.Found)
	}
	if !strings.Contains(a.UPO, a.Number) ||
		a.Page != "" && (!strings.Contains(a.Page, a.Number) || !strings.Contains(a.Single, a.Number)) {
		t.Errorf("the UPO: %.300s\n%.300s\n%.300s", a.UPO, a.Page, a.Single)
	}
	if doc, err := xmltree.Read([]byte(a.UPO)); err == nil {
		if flaw := official.UPO.Schema().First(doc.Root); flaw != nil {
			t.Errorf("the UPO: %v", flaw)
		}
	}
	if a.XML != invoice {
		t.Errorf("the invoice comes back as %.500s", a.XML)
	}
	if a.Invoices != 10_000 || a.Certificates != 100 || a.PerHour != 180_000 { // the double's are a thousand times KSeF's
		t.Errorf("limits: %d, %d, %d", a.Invoices, a.Certificates, a.PerHour)
	}
	if a.Tokens != 1 || a.Revoked != "Revoked" {
		t.Errorf("%d tokens, the one is %s", a.Tokens, a.Revoked)
	}
	for what, ok := range map[string]*bool{"an enveloped signature": a.Enveloped, "an enveloping signature": a.Enveloping,
		"the session in the list": a.Sessions} {
		if ok != nil && !*ok {
			t.Errorf("%s: no", what)
		}
	}
	if a.Active != nil && (*a.Active != 2 || !strings.Contains(a.Refused, "450")) {
		t.Errorf("%d authentications are active; a revoked token is refused with %q", *a.Active, a.Refused)
	}
}
