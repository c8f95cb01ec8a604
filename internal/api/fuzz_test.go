package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tributary/internal/api"
	"tributary/internal/fault"
	"tributary/internal/mutate"
)

// A query is taken with every parameter in its bounds, or refused with faults
// that name parameters; a cursor comes back as it was given out.
func FuzzQuery(f *testing.F) {
	for _, raw := range []string{
		"", "limit=20&cursor=MDE5N2YwYTA&from=2026-01-31&to=2026-01-31T23:59:59Z&status=SUCCESS&country_code=es",
		"limit=101", "limit=1&limit=2", "cursor=%00", "%zz;&&=",
		"from=2026-02-30", "to=9999-12-31", "\xff=\xfe",
	} {
		f.Add(raw)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := api.ReadQuery(raw)
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Kind != fault.Invalid || len(e.Faults) == 0 {
				t.Fatal(err)
			}
			for _, one := range e.Faults {
				if !utf8.ValidString(one.Field) || !utf8.ValidString(one.Message) || len(one.Field) > 3*64 {
					t.Fatalf("%+v", one)
				}
			}
			return
		}
		values, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("%q is taken although %v", raw, err)
		}
		known := []string{"limit", "cursor", "from", "to", "status", "country_code"}
		for name, list := range values {
			if len(list) != 1 || !utf8.ValidString(list[0]) || strings.Contains(list[0], "\x00") ||
				!slices.Contains(known, name) {
				t.Fatalf("%q is taken with %q twice, unknown or not to be stored", raw, name)
			}
		}
		if q.Limit < 1 || q.Limit > 100 || len(q.Cursor) > 200 || q.Status != values.Get("status") ||
			q.Country != values.Get("country_code") || len(q.Country) != 0 && len(q.Country) != 2 {
			t.Fatalf("%q is %+v", raw, q)
		}
		for name, at := range map[string]time.Time{"from": q.From, "to": q.To} {
			if at.IsZero() && values.Get(name) != "" && !strings.HasPrefix(values.Get(name), "0001-01-01") {
				t.Fatalf("%q loses %s", raw, name)
			}
		}
		if again, err := api.ReadQuery("cursor=" + api.NextCursor(q.Cursor)); err != nil || again.Cursor != q.Cursor {
			t.Fatalf("the cursor %q comes back as %q, %v", q.Cursor, again.Cursor, err)
		}
	})
}

// What is taken from the head of a request goes into logs and answers: it is
// short and harmless whatever a client or a proxy wrote.
func FuzzHead(f *testing.F) {
	f.Add("id-1", "Bearer trb_test_a_b", "", "203.0.113.9, 198.51.100.7", "192.0.2.1:40000")
	f.Add("a\r\nSet-Cookie: x", "bearer", "key", ",", "[::1]:1")
	f.Add(strings.Repeat("x", 129), "Basic eDp5", "", "::ffff:10.0.0.1%eth0", "@")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, id, authorization, key, forwarded, remote string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = http.Header{"X-Request-Id": {id}, "Authorization": {authorization}, "X-Api-Key": {key},
			"X-Forwarded-For": {forwarded}}
		r.RemoteAddr = remote
		got := api.RequestID(r)
		if got == "" || len(got) > 128 || strings.ContainsFunc(got, func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Fatalf("%q becomes %q", id, got)
		}
		if got := api.KeyOf(r); got != key && !strings.Contains(authorization, got) {
			t.Fatalf("%q and %q become %q", authorization, key, got)
		}
		addr := api.AddressOf(r)
		if addr.IsValid() && !strings.Contains(forwarded, addr.String()) {
			// Another spelling of an address in the headers, or the peer; zones are of no use to anybody else.
			last := strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:])
			said, err := netip.ParseAddr(last)
			peer, _ := netip.ParseAddrPort(remote)
			if err == nil && said.WithZone("") != addr.WithZone("") ||
				err != nil && peer.Addr().WithZone("") != addr.WithZone("") {
				t.Fatalf("%q from %q is %s", forwarded, remote, addr)
			}
		}
	})
}
