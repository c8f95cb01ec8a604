package inbox_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/inbox"
	"tributary/internal/official/xxwire"
)

// from makes a call of the simulated authority as it comes from an address.
func (h *house) from(address string, body []byte, headers ...string) int {
	r := httptest.NewRequest(http.MethodPost, receipts, bytes.NewReader(body))
	r.RemoteAddr = address
	r.Header.Set(xxwire.HeaderPlatform, xxwire.PlatformMAC(xxwire.PlatformKey(""), body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// What a simulated authority signs with everybody can derive: it is believed on
// this machine, and elsewhere only where the operator said so.
func TestSimulatedAuthoritiesAreHeardFromNearbyOnly(t *testing.T) {
	t.Parallel()
	alone := build(t, dbtest.SQLite(t))
	named := build(t, dbtest.SQLite(t), func(c *inbox.Config) { c.SimulatorsFrom = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	behind := build(t, dbtest.SQLite(t), func(c *inbox.Config) { c.TrustProxy = true })
	for n, c := range []struct {
		h       *house
		address string
		headers []string
		want    int
	}{
		{alone, "127.0.0.1:1000", nil, 204}, {alone, "[::1]:1000", nil, 204}, {alone, "192.0.2.9:1000", nil, 401},
		{alone, "127.0.0.1:1000", []string{"X-Forwarded-For", "127.0.0.1"}, 401},
		{alone, "127.0.0.1:1000", []string{"Forwarded", "for=127.0.0.1"}, 401},
		{named, "192.0.2.9:1000", nil, 204}, {named, "192.0.3.9:1000", nil, 401},
		{behind, "127.0.0.1:1000", []string{"X-Forwarded-For", "192.0.2.9"}, 401},
		{behind, "127.0.0.1:1000", []string{"X-Forwarded-For", "192.0.2.9, 127.0.0.1"}, 204},
	} {
		if got := c.h.from(c.address, callback(t, fmt.Sprint("m", n), "k"), c.headers...); got != c.want {
			t.Errorf("from %s with %v: %d, want %d", c.address, c.headers, got, c.want)
		}
	}
}

func TestOneAddressCallsSoOftenAndNoMore(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	get := func(address string) int {
		r := httptest.NewRequest(http.MethodGet, receipts, nil)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	calls := 0
	for ; get(fmt.Sprintf("[2001:db8::%x]:1", calls%9+1)) != http.StatusServiceUnavailable; calls++ {
		if calls > 50_000 {
			t.Fatal("a network calls without an end")
		}
	}
	if calls < 1000 {
		t.Errorf("refused after %d calls", calls)
	}
	if got := get("[2001:db8:0:1::1]:1"); got == http.StatusServiceUnavailable {
		t.Error("its neighbour is refused, too")
	}
}

func TestMessagesThatMatchNothingAreBoundedPerAddress(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := build(t, d)
		if got := h.from("127.0.0.1:1", callback(t, "first", "k")); got != http.StatusNoContent {
			t.Fatalf("the first: %d", got)
		}
		set := func(sql string) {
			t.Helper()
			must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(sql) }))
		}
		if h.count("SELECT count(*) FROM inbox_messages WHERE caller = '127.0.0.1' AND bytes > 100") != 1 {
			t.Error("nobody knows who brought it, or how much it is")
		}
		set(fmt.Sprintf("UPDATE inbox_messages SET bytes = %d", inbox.UnmatchedBytesMax-10))
		if got := h.from("127.0.0.1:1", callback(t, "second", "k")); got != http.StatusServiceUnavailable {
			t.Errorf("past the limit: %d", got)
		}
		if got := h.from("[::1]:1", callback(t, "third", "k")); got != http.StatusNoContent {
			t.Errorf("another caller: %d", got)
		}
		set("UPDATE inbox_messages SET taken_at = 1 WHERE name = 'first'")
		if got := h.from("127.0.0.1:1", callback(t, "second", "k")); got != http.StatusNoContent {
			t.Errorf("once its filing is known: %d", got)
		}
	})
}

func TestMessagesThatMatchNothingAreForgottenAfterTheirDays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		row := func(name, at string, client, taken, due any) []any {
			return []any{at + name, "XX.test", "XX", false, name, "k", "{}", []byte("x"), 1, 1, client, taken, due}
		}
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Insert("inbox_messages", "message_id,endpoint,country,live,name,handle,receipt,raw,received_at,tries,client_id,taken_at,due_at",
				row("old", "01", nil, nil, nil), row("taken", "01", nil, 5, nil), row("young", "03", nil, nil, nil),
				row("due", "01", nil, nil, 7), row("of a client", "01", "acme", nil, nil), row("held", "01", "kept", nil, nil))
		}))
		gone, err := inbox.Forget(t.Context(), d, []string{"kept"}, "02")
		must(t, err)
		var left []string
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			left, err = db.Collect(r, func(scan func(...any) error) (n string, err error) { return n, scan(&n) },
				"SELECT name FROM inbox_messages ORDER BY name")
			return err
		}))
		if gone != 2 || fmt.Sprint(left) != "[due held taken young]" {
			t.Errorf("%d are gone, left %v", gone, left)
		}
	})
}
