package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
	"tributary/internal/webhook"
)

// Settings are fields: they are saved, and what cannot be saved is shown again as
// it was typed, with the reason beside its field.
func TestSettingsAreFields(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	event := webhook.EventTypes()[0]
	page := b.get("/clients/acme")
	for _, wanted := range []string{`name="country" value="*"`, `name="per_second"`, `name="at-` + event + `"`,
		`id="save-settings"`} {
		if !strings.Contains(page, wanted) {
			t.Fatalf("the form lacks %q:\n%s", wanted, gist(page))
		}
	}
	form := url.Values{"country": {"xx", "ie", ""}, "use": {"REPORTING", "INVOICING", "BOTH"},
		"all": {"https://hooks.example/all"}, "word-" + event: {"own"}, "at-" + event: {"https://hooks.example/own"},
		"networks": {"10.1.0.0/16"}, "header": {"X-Signed"}, "per_second": {"7"}, "burst": {"9"}, "years": {"12"},
		"days": {"30"}, "totals": {"warn"}, "hold": {"1"}}
	b.noticed(b.post("/clients/acme/settings", form), "saved")
	stored, err := h.accounts.Profile(t.Context(), clientID)
	must(t, err)
	c := stored.Config
	if c.Countries["XX"] != country.Reporting || c.Countries["IE"] != country.Invoicing || len(c.Countries) != 2 ||
		c.Webhooks.All != "https://hooks.example/all" || c.Webhooks.ByEvent[event] != "https://hooks.example/own" ||
		len(c.WebhookCIDRs) != 1 || c.SignatureHeader != "X-Signed" || c.Rate.PerSecond != 7 || c.Rate.Burst != 9 ||
		c.Retention.Years != 12 || c.Retention.DiagnosticDays != 30 || c.Totals != "warn" || !c.LegalHold ||
		c.DisplayName == "" {
		t.Errorf("stored is %+v", c)
	}
	if len(h.audited("client.configured")) != 1 {
		t.Error("the change is not in the log")
	}

	form["country"], form["all"], form["per_second"], form["burst"] = []string{"ZZ", "ie", ""},
		[]string{"ftp://hooks.example"}, []string{"many"}, []string{"9"}
	form["at-"+event], form["networks"], form["years"] = []string{""}, []string{"10.1.0.0/99"}, []string{"1000"}
	resp := b.post("/clients/acme/settings", form)
	page = read(t, resp)
	if resp.StatusCode != http.StatusBadRequest {
		t.Fatalf("a form that is not valid answers %d", resp.StatusCode)
	}
	for _, wanted := range []string{`name="country" value="ZZ"`, `value="ftp://hooks.example"`,
		`name="per_second" inputmode="numeric" value="many"`, `aria-describedby="wrong-per_second"`, "must be a whole number",
		`id="wrong-` + event + `">needs a URL`, `id="wrong-networks">10.1.0.0/99 is not a network`, "10.1.0.0/99</textarea>",
		`value="1000"`} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the form that comes back lacks %q", wanted)
		}
	}
	form["per_second"], form["at-"+event], form["networks"] = []string{"7"}, []string{"https://hooks.example/own"}, nil
	page = read(t, b.post("/clients/acme/settings", form)) // now by the rules of the configuration
	for _, wanted := range []string{`id="wrong-country-0">`, `id="wrong-all">cannot be used`,
		`id="wrong-years">must be between`} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the form that comes back lacks %q:\n%s", wanted, gist(page))
		}
	}
	after, err := h.accounts.Profile(t.Context(), clientID)
	must(t, err)
	if after.Config.Webhooks.All != "https://hooks.example/all" || after.Config.Countries["XX"] != country.Reporting {
		t.Errorf("a refused form has changed %+v", after.Config)
	}
	if resp := h.as(operator.Acting).post("/clients/acme/settings", form); resp.StatusCode != http.StatusForbidden {
		t.Errorf("an operator who is no admin: %d", resp.StatusCode)
	}
}

// The look keeps what was typed as well.
func TestALookThatCannotBeSavedIsShownAgain(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	resp := b.post("/clients/acme/look", url.Values{"display_name": {"Acme again"}, "accent": {"red"},
		"footer": {"thanks"}})
	page := read(t, resp)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(page, `value="Acme again"`) ||
		!strings.Contains(page, `value="red"`) || !strings.Contains(page, "colours.accent") {
		t.Errorf("%d:\n%s", resp.StatusCode, gist(page))
	}
}

// The PDF stands beside the timeline when it is asked for, and reading it is recorded.
func TestTheDocumentStandsBesideTheTimeline(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id := h.submit("INV-1")
	b := h.as(operator.Viewer)
	page := b.await("/transactions/"+id, "Succeeded after", "show here")
	if strings.Contains(page, "<object") {
		t.Error("a document is read before anybody asked")
	}
	resource := upTo(t, page, `?paper=`)
	if page := b.get("/transactions/" + id + "?paper=" + resource); !strings.Contains(page,
		`data="/console/transactions/`+id+`/paper/`+resource) {
		t.Errorf("the page does not show it:\n%s", gist(page))
	}
	resp := b.do(http.MethodGet, "/transactions/"+id+"/paper/"+resource, nil)
	if text := read(t, resp); resp.StatusCode != 200 || !strings.HasPrefix(text, "%PDF") ||
		resp.Header.Get("Content-Disposition") != "inline" || !strings.Contains(resp.Header.Get("Content-Security-Policy"),
		"frame-ancestors 'self'") {
		t.Errorf("%d %v %.20q", resp.StatusCode, resp.Header, text)
	}
	if n := len(h.audited("document.fetched")); n != 1 {
		t.Errorf("%d entries of 1 reading", n)
	}
	if page := b.get("/transactions/" + id); !strings.Contains(page, `<span class="hl-name">`) ||
		!strings.Contains(page, `data-within="request"`) {
		t.Error("bodies are not in colours, or cannot be searched")
	}
}
