package console_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
)

// The search on every page opens a single hit, lists several, and says what it
// looked for where there is none; the list can be taken along as a file.
func TestFindAndExport(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id, other := h.submit("INV-2026-0815"), h.submit("INV-2026-0816")
	b := h.as(operator.Viewer)
	b.await("/transactions/"+id, "Succeeded after")
	b.await("/transactions/"+other, "Succeeded after")
	b.await("/transactions?q=0816", other)
	leads := func(text string) string {
		resp := b.do(http.MethodGet, "/find?q="+url.QueryEscape(text), nil)
		_ = read(t, resp)
		return strings.TrimPrefix(resp.Header.Get("Location"), "/console")
	}
	for text, to := range map[string]string{
		"0815": "/transactions/" + id, "inv 2026-08": "/transactions?q=inv+2026-08", "": "/transactions",
		"reference tr": "/transactions?q=reference+tr", "nobody": "/transactions?q=nobody",
	} {
		if got := leads(text); got != to {
			t.Errorf("%q leads to %q, want %q", text, got, to)
		}
	}
	page := b.get("/transactions?q=nobody")
	for _, want := range []string{"Nothing found for “nobody”", `id="find"`, "tax numbers of customers"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, gist(page))
		}
	}
	for _, want := range []string{"227.10 EUR", "Reference Trading Ltd", `class="ago"`} {
		if page := b.get("/transactions"); !strings.Contains(page, want) {
			t.Errorf("the list has no %q:\n%s", want, gist(page))
		}
	}
	resp := b.do(http.MethodGet, "/transactions.csv?q=0815", nil)
	rows, err := csv.NewReader(strings.NewReader(read(t, resp))).ReadAll()
	if must(t, err); len(rows) != 2 || rows[1][0] != id || rows[1][12] != "22710" ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("%v", rows)
	}
	if list := h.audited("transactions.exported"); len(list) != 1 || !strings.Contains(list[0].After, "0815") {
		t.Errorf("the export is recorded as %+v", list)
	}
}

// All that wait for one reason are counted, shown and retried together, with one
// entry in the log.
func TestAllThatWaitForOneReasonAreRetriedTogether(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 100_000, On: authority.OnAny})
	h.run()
	first, second := h.submit("INV-1"), h.submit("INV-2")
	b := h.as(operator.Acting)
	b.await("/transactions/"+first, "1 other transaction waits for the same reason")
	b.await("/transactions?reason=authority_error", first, second, "authority error 2")
	page := b.get("/retry?reason=authority_error&country=XX")
	if !strings.Contains(page, "2 transactions wait for authority error") ||
		!strings.Contains(page, "What to do first") || !strings.Contains(page, "INV-1") {
		t.Errorf("the preview:\n%s", gist(page))
	}
	if page := b.get("/retry?reason=chain_stopped"); !strings.Contains(page, "0 transactions wait") ||
		strings.Contains(page, `id="together"`) {
		t.Errorf("nothing can be retried:\n%s", gist(page))
	}
	h.script()
	b.noticed(b.post("/retry", url.Values{"reason": {"authority_error"}}), "retried-together")
	b.await("/transactions/"+first, "Succeeded after")
	b.await("/transactions/"+second, "Succeeded after")
	if list := h.audited("transactions.retried"); len(list) != 1 || list[0].Subject != "authority_error" ||
		!strings.Contains(list[0].Before, "2") {
		t.Errorf("recorded as %+v", list)
	}
	if resp := b.post("/retry", url.Values{}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: %d", resp.StatusCode)
	}
}
