package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/console"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
)

// A supplier has a page: what its queues wait for, its credentials, its newest
// transactions. It is found by a piece of its name.
func TestASupplierCanBeOpened(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 100_000, On: authority.OnAny})
	h.run()
	id := h.submit("INV-1")
	b := h.as(operator.Viewer)
	page := b.await("/transactions/"+id, "authority_error", "What to do:", "files/filing")
	at := upTo(t, page, `href="/console/suppliers/`)
	b.await("/suppliers/"+at, "authority error", "Newest transactions", "INV-1", "in progress")
	// names are indexed behind the onboarding
	for late := time.Now().Add(patience); !strings.Contains(b.get("/suppliers?q=trading"),
		at); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the supplier is not found by its name")
		}
	}
	if resp := b.do(http.MethodGet, "/suppliers/acme/nobody", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown supplier: %d", resp.StatusCode)
	}
	for what, status := range map[string]int{"request": 200, "filing": 200, "other": 404} {
		resp := b.do(http.MethodGet, "/transactions/"+id+"/files/"+what, nil)
		if text := read(t, resp); resp.StatusCode != status || status == 200 && !strings.Contains(text, "INV-1") {
			t.Errorf("%s: %d %.80s", what, resp.StatusCode, text)
		}
	}
	if n := len(h.audited("document.fetched")); n != 2 {
		t.Errorf("%d of 2 downloads are recorded", n)
	}
}

// The page of an event has what was sent, where to, and how the receiver is; the
// newest event of an address can be sent again.
func TestAnEventShowsWhatWasSent(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id := h.submit("INV-1")
	b := h.as(operator.Acting)
	b.await("/transactions/"+id, "delivered")
	page := b.get("/deliveries")
	event := upTo(t, page, `href="/console/deliveries/events/`)
	b.await("/deliveries/events/"+event, "Request, as sent", "Content-Type: application", "X-Service-Hmac-SHA256",
		"Delivered: 200", `&#34;webhook_id&#34;</span>: <span class="hl-text">&#34;`+event)
	address := upTo(t, page, `name="address" value="`)
	sent := h.got.Load()
	b.noticed(b.post("/deliveries/latest", url.Values{"client": {"acme"}, "address": {address}}), "redelivered")
	b.await("/deliveries/events/"+event, "2 attempts")
	if h.got.Load() <= sent {
		t.Error("nothing was sent again")
	}
	if resp := b.post("/deliveries/latest",
		url.Values{"client": {"acme"}, "address": {"https://elsewhere.example.com/"}}); resp.StatusCode !=
		http.StatusNotFound {
		t.Errorf("an address that gets nothing: %d", resp.StatusCode)
	}
}

func TestXMLIsIndentedForEyes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`<?xml version="1.0"?><a x="1"><b>t</b><c/></a>`: "<?xml version=\"1.0\"?>\n<a x=\"1\">\n  <b>t</b>\n  <c/>\n</a>",
		"</a></a>": "</a>\n</a>",
		"<a":       "<a",
	} {
		if got := console.IndentXML(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
