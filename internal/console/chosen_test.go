package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
)

// Rows of a list are ticked, looked at together and retried: without a script,
// with a preview, and with one entry in the log. What cannot be retried is told
// and left alone.
func TestChosenTransactionsAreRetriedTogether(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	ended := h.submit("INV-0")
	b := h.as(operator.Acting)
	b.await("/transactions/"+ended, "Succeeded after", "delivered")
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 100_000, On: authority.OnAny})
	stuck := h.submit("INV-1")
	b.await("/transactions/"+stuck, "1 failed call", "Retry now") // not while a call is under way
	list := b.get("/transactions")
	for _, id := range []string{ended, stuck} {
		if !strings.Contains(list, `name="o" value="`+id+`" form="choose"`) {
			t.Fatalf("%s cannot be chosen:\n%s", id, gist(list))
		}
	}
	if strings.Contains(h.as(operator.Viewer).get("/transactions"), `form="choose"`) {
		t.Error("a viewer can choose rows")
	}
	query := url.Values{"act": {"retry"}, "o": {ended, stuck, stuck, "no-such-operation"},
		"back": {"/console/transactions?status=PROCESSING"}}
	preview := b.get("/chosen?" + query.Encode())
	for _, wanted := range []string{"1 of 3 selected can be retried", "It has finished.", "It no longer exists.",
		`name="o" value="` + stuck + `"`, "INV-1"} {
		if !strings.Contains(preview, wanted) {
			t.Errorf("the preview lacks %q:\n%s", wanted, gist(preview))
		}
	}
	if n := len(h.audited("transactions.retried")); n != 0 {
		t.Fatalf("looking made %d entries", n)
	}
	h.script()
	resp := b.post("/chosen", url.Values{"act": {"retry"}, "o": {ended, stuck},
		"back": {"/console/transactions?status=PROCESSING"}})
	if at := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther ||
		at != "/console/transactions?notice=retried-together&status=PROCESSING" {
		t.Fatalf("%d to %s", resp.StatusCode, at)
	}
	b.await("/transactions/"+stuck, "Succeeded after")
	log := h.audited("transactions.retried")
	if len(log) != 1 || !strings.Contains(string(log[0].After), `"done":1`) || !strings.Contains(string(log[0].Before),
		ended) || !strings.Contains(string(log[0].Before), stuck) {
		t.Errorf("the log has %+v", log)
	}
}

func TestChosenEventsAreRedelivered(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id := h.submit("INV-1")
	b := h.as(operator.Acting)
	b.await("/transactions/"+id, "delivered")
	sent := h.got.Load()
	event := upTo(t, b.get("/deliveries"), `name="e" value="`)
	for _, chosen := range []url.Values{{"act": {"redeliver"}, "e": {event}}, {"act": {"redeliver"}, "o": {id}}} {
		if page := b.get("/chosen?" + chosen.Encode()); !strings.Contains(page, "1 of 1 selected can be redelivered") {
			t.Fatalf("the preview is\n%s", gist(page))
		}
		b.noticed(b.post("/chosen", chosen), "redelivered-together")
		sent++
		b.await("/deliveries/events/"+event, "delivered")
		for h.got.Load() < sent {
			b.await("/deliveries/events/"+event, "Delivered: 200")
		}
	}
	if log := h.audited("events.redelivered"); len(log) != 2 || !strings.Contains(string(log[0].After), `"done":1`) {
		t.Errorf("the log has %+v", log)
	}
}

func TestWhatCanBeChosenHasLimits(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Acting)
	many := url.Values{"act": {"retry"}}
	for i := range 200 {
		many.Add("o", fmt.Sprintf("operation-%d", i))
	}
	if page := b.get("/chosen?" + many.Encode()); !strings.Contains(page, "0 of 200 selected") {
		t.Errorf("200 rows:\n%s", gist(page))
	}
	many.Add("o", "one-more")
	for path, form := range map[string]url.Values{"201 rows": many, "another verb": {"act": {"delete"}, "o": {"x"}}} {
		if resp := b.do(http.MethodGet, "/chosen?"+form.Encode(), nil); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: looking answers %d", path, resp.StatusCode)
		}
		if resp := b.post("/chosen", form); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: acting answers %d", path, resp.StatusCode)
		}
	}
	if resp := b.post("/chosen", url.Values{"act": {"retry"}}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("no row: %d", resp.StatusCode)
	}
	if resp := h.as(operator.Viewer).post("/chosen",
		url.Values{"act": {"retry"}, "o": {"x"}}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a viewer: %d", resp.StatusCode)
	}
}
