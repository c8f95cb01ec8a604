package console_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/endpoint"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// The page says who we are at an authority, never with what, and why what waits waits.
func TestAuthoritiesShowTheirIdentityAndWhatWaits(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	file, password, err := identity.Test("XX-1", "Gateway <Ltd>", time.Now())
	must(t, err)
	b := h.as(operator.Viewer)
	if page := b.get("/authorities"); !strings.Contains(page, `data-health="XX.test"`) || !strings.Contains(page, "not set") ||
		!strings.Contains(page, "not called in the last day") || strings.Contains(page, `class="state good"`) || strings.Contains(page, "XX.live") || strings.Contains(page, "documents only") {
		t.Errorf("before: %s", gist(page))
	}
	_, err = h.endpoints.Set(t.Context(), audit.Actor{Name: "ana"}, country.Environment{Code: "XX"}, endpoint.Change{
		Secrets:     map[string]secret.Secret{"platform_key": secret.FromText("canary-51")},
		Certificate: &identity.PKCS12{File: file, Password: password},
	})
	must(t, err)
	must(t, h.endpoints.Refresh(t.Context()))
	h.run()
	id := h.submit("INV-1")
	b.await("/transactions/"+id, "the settings of XX.test are incomplete") // the key is not the authority's
	page := b.get("/authorities")
	for _, want := range []string{"platform_key is set", "certificate until", "CN=Gateway &lt;Ltd&gt;",
		"authority not configured"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, gist(page))
		}
	}
	if strings.Contains(page, "canary-51") || strings.Contains(page, password) {
		t.Error("a secret is shown")
	}
	_, err = h.letters.Store(t.Context(), country.Environment{Code: "XX"},
		[]country.Message{{Key: "m-17", Handle: "nobody's", Raw: []byte("<as it came>")}})
	must(t, err)
	b.await("/authorities", "m-17")
	if page := b.get("/authorities"); !strings.Contains(page, "&lt;as it came&gt;") ||
		!strings.Contains(page, "Unmatched messages") {
		t.Errorf("%s", gist(page))
	}
	if log := h.as(operator.Admin).get("/audit"); !strings.Contains(log, "authority.set") ||
		strings.Contains(log, "canary-51") {
		t.Errorf("the log: %s", gist(log))
	}
}

// An authority that is unavailable shows since when, and when it is called next.
func TestAuthoritiesShowWhereNothingGetsThrough(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Viewer)
	if page := b.get("/authorities"); strings.Contains(page, "unavailable since") {
		t.Errorf("before: %s", gist(page))
	}
	row := func(node string, probe time.Time) {
		must(t, h.db.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Insert("authority_breakers", "country,environment,node,opened_at,probe_at,failures,trouble",
				[]any{"XX", "test", node, db.Micros(h.db.Now().Add(-time.Hour)), db.Micros(probe), 37, "no <route> to " + node})
		}))
	}
	row("a node that is gone", h.db.Now().Add(-time.Hour))
	if page := b.get("/authorities"); strings.Contains(page, "unavailable since") {
		t.Errorf("the word of a node that is gone counts: %s", gist(page))
	}
	row("here", h.db.Now().Add(time.Minute))
	page := b.get("/authorities")
	for _, want := range []string{"unavailable since", "37 failed calls", "no &lt;route&gt; to here"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, gist(page))
		}
	}
}
