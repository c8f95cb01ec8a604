package console_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
	"tributary/internal/series"
)

// keyAndSeries gives the client a key with limits and a number series.
func (h *house) keyAndSeries() account.LimitedKey {
	h.t.Helper()
	key, _, err := h.accounts.CreateLimitedKey(h.t.Context(), audit.Actor{Name: "test"}, clientID, account.Limits{
		Name: "till <7>", Scopes: []account.Scope{account.ScopeSubmit},
		Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	must(h.t, err)
	_, err = h.service.Series.Create(h.t.Context(), clientID,
		series.Series{SupplierID: h.supplier, Pattern: "A-{YYYY}-{N:6}", Next: 42, Yearly: true})
	must(h.t, err)
	must(h.t, h.db.Write(h.t.Context(), func(tx *db.Tx) error { // as a restored backup leaves them out
		return tx.Exec(`INSERT INTO series_gaps (series_id, year, first, last, reason, at)
			SELECT series_id, 2026, 7, 41, $1, $2 FROM number_series`, series.GapRestored, db.Micros(tx.Now()))
	}))
	return key
}

// A client's page has its keys with limits, which can be revoked there, and its
// number series with the number that comes next.
func TestAClientShowsLimitedKeysAndSeries(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	admin := h.as(operator.Admin)
	if page := admin.get("/clients/" + clientID); strings.Contains(page, "Restricted keys") ||
		strings.Contains(page, "Number series") {
		t.Error("what a client does not have is shown")
	}
	key := h.keyAndSeries()
	page := admin.get("/clients/" + clientID)
	for _, text := range []string{"Numbers left out", "A-2026-000007", "A-2026-000041", "a backup was restored", key.Kid, "till &lt;7&gt;", "submit", "192.0.2.0/24", "A-{YYYY}-{N:6}", `>42<`,
		"every year", "/suppliers/" + clientID + "/" + h.supplier} {
		if !strings.Contains(page, text) {
			t.Errorf("the page has no %q", text)
		}
	}
	if reader := h.as(operator.Viewer).get("/clients/" + clientID); strings.Contains(reader, key.Kid+"/revoke") {
		t.Error("who may only read is offered to revoke")
	}
	admin.noticed(admin.post("/clients/"+clientID+"/keys/"+key.Kid+"/revoke", url.Values{}), "revoked")
	if page := admin.get("/clients/" + clientID); strings.Contains(page, key.Kid+"/revoke") {
		t.Error("a revoked key can be revoked again")
	}
}
