package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tributary/internal/fault"
	"tributary/internal/secret"
)

// saying is a service that always answers the same.
type saying struct {
	status int
	body   []byte
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s.body)), Request: r}, nil
}

// Whatever stands behind the address, an entry has an operation, a reason why it
// was refused, or the run ends: one of the three.
func FuzzAnswersOfTheService(f *testing.F) {
	f.Add(202, []byte(`{"operation_id":"0197f0a0-0000-7000-8000-000000000001"}`))
	f.Add(400, []byte(`{"message":"no","errors":[{"code":"field_required","type":"VALIDATION","field":"a","message":"b"}]}`))
	f.Add(200, []byte(`{"status":"SUCCESS","total_amount":1e400,"errors":null}`))
	f.Add(404, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status >= 500 || status == http.StatusTooManyRequests {
			t.Skip("asked again until the time is over")
		}
		c := &submitClient{base: "http://service.test", path: "/v1/transactions", http: &http.Client{Transport: saying{status, body}, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
		operation, refused, err := c.submit(t.Context(), []byte("{}"))
		said := 0
		for _, is := range []bool{operation != "", refused != nil, err != nil} {
			if is {
				said++
			}
		}
		if said != 1 || operation != "" && status != http.StatusAccepted || refused != nil && refused.Message == "" {
			t.Fatalf("%d %q is %q, %+v, %v", status, body, operation, refused, err)
		}
		r, err := c.result(t.Context(), "../x?y")
		if (r == nil) == (err == nil) || err == nil && (status != http.StatusOK || r.Status == "") {
			t.Fatalf("%d %q is %+v, %v", status, body, r, err)
		}
	})
}

// Nothing that does not verify is shown, forwarded or called valid.
func FuzzNotification(f *testing.F) {
	body := `{"event_type":"transactions.transaction_completed","delivered_at":"2026-03-01T12:30:00Z","resource_id":"op-1","resource_url":"https://x/y","webhook_id":"` + strings.Repeat("ab", 20) + `"}`
	right := func(t testing.TB, text []byte) string {
		t.Helper()
		signature, err := secret.HMACHex(secret.FromText(testKey), text)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	f.Add([]byte(body), right(f, []byte(body)), "")
	f.Add([]byte(body), "", right(f, []byte(body)))
	f.Add([]byte(`{}`), strings.Repeat("0", 64), "\x00")
	f.Fuzz(func(t *testing.T, text []byte, signature, next string) {
		var out, errs bytes.Buffer
		c := &command{ctx: t.Context(), streams: streams{&out, &errs, bytes.NewReader(text)}, log: slog.New(slog.DiscardHandler)}
		genuine := func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), right(t, text)) }
		if err := (&verifyCommand{APIKey: testKey, Signature: signature}).Run(c); err == nil && !genuine(signature) {
			t.Fatalf("%q with %q is valid", text, signature)
		}
		if len(text) < receivedBytesMax && genuine(signature) == strings.HasPrefix(out.String(), "valid") {
			out.Reset()
		}
		if out.Len() > 0 {
			t.Fatalf("%q with %q says %q", text, signature, out.String())
		}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text))
		r.Header["X-Service-Hmac-Sha256"], r.Header["X-Service-Hmac-Sha256-Next"] = []string{signature}, []string{next}
		w := httptest.NewRecorder()
		(&listenCommand{APIKey: testKey}).handler(c).ServeHTTP(w, r)
		if shown := out.Len() > 0; shown != (w.Code == http.StatusNoContent) || shown && !genuine(signature) && !genuine(next) || !shown && w.Code != http.StatusUnauthorized {
			t.Fatalf("%q with %q and %q: %d, shown %q", text, signature, next, w.Code, out.String())
		}
	})
}

// The values of flags become a configuration, or a fault that names the flag.
func FuzzFlags(f *testing.F) {
	f.Add("10.1.0.0/16", "2026-03-01", true, "ES.live", "https://authority.example")
	f.Add("10.1.0.0", "2026-02-30", true, "es", "")
	f.Add("::ffff:10.0.0.0/104", "", false, "ES.", "x")
	f.Fuzz(func(t *testing.T, network, since string, restored bool, authority, address string) {
		flags := &commonFlags{WebhookAllow: []string{network}, Restored: restored, RestoredSince: since}
		cfg, err := flags.config(&command{log: slog.New(slog.DiscardHandler)})
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "--") {
				t.Fatal(err)
			}
		} else {
			if p, err := netip.ParsePrefix(network); err != nil || len(cfg.WebhookAllow) != 1 || cfg.WebhookAllow[0] != p {
				t.Fatalf("%q allows %v", network, cfg.WebhookAllow)
			}
			if day, err := time.Parse(time.DateOnly, since); since != "" && (err != nil || cfg.RestoredSince.String() != day.Format(time.DateOnly) || !restored) {
				t.Fatalf("%q is %s", since, cfg.RestoredSince)
			}
		}
		all, err := authorities(map[string]string{authority: address})
		code, environment, _ := strings.Cut(authority, ".")
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || environment == "live" || environment == "test" {
				t.Fatal(err)
			}
			return
		}
		at, ok := all[strings.ToUpper(code)]
		if !ok || at.Live+at.Test != address || at.Live != "" && environment != "live" {
			t.Fatalf("%q=%q becomes %v", authority, address, all)
		}
	})
}
