package client_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/client"
	"tributary/internal/mutate"
	"tributary/internal/secret"
)

// saying is a service that always answers the same.
type saying struct {
	status int
	body   []byte
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s.body)),
		Request: r}, nil
}

// Whatever stands behind the address, an entry has an operation, a reason why it
// was refused, or the run ends: one of the three.
func FuzzAnswersOfTheService(f *testing.F) {
	f.Add(202, []byte(`{"operation_id":"0197f0a0-0000-7000-8000-000000000001"}`))
	f.Add(400, []byte(`{"message":"no","errors":[{"code":"field_required","type":"VALIDATION","field":"a","message":"b"}]}`))
	f.Add(200, []byte(`{"status":"SUCCESS","total_amount":1e400,"errors":null}`))
	f.Add(404, []byte(`<html>`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status >= 500 || status == http.StatusTooManyRequests {
			t.Skip("asked again until the time is over")
		}
		c := client.NewService(saying{status, body})
		operation, refused, err := c.Submit(t.Context(), []byte("{}"))
		said := 0
		for _, is := range []bool{operation != "", refused != nil, err != nil} {
			if is {
				said++
			}
		}
		if said != 1 || operation != "" && status != http.StatusAccepted || refused != nil && refused.Message == "" {
			t.Fatalf("%d %q is %q, %+v, %v", status, body, operation, refused, err)
		}
		r, err := c.Result(t.Context(), "../x?y")
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
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte, signature, next string) {
		var out, errs bytes.Buffer
		genuine := func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), right(t, text)) }
		if err := (client.Verification{APIKey: testKey, Signature: signature}).Run(bytes.NewReader(text),
			&out); err == nil && !genuine(signature) {
			t.Fatalf("%q with %q is valid", text, signature)
		}
		if len(text) < client.ReceivedBytesMax && genuine(signature) == strings.HasPrefix(out.String(), "valid") {
			out.Reset()
		}
		if out.Len() > 0 {
			t.Fatalf("%q with %q says %q", text, signature, out.String())
		}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text))
		r.Header["X-Service-Hmac-Sha256"], r.Header["X-Service-Hmac-Sha256-Next"] = []string{signature}, []string{next}
		w := httptest.NewRecorder()
		client.Receiver{APIKey: testKey}.Handler(client.Streams{Out: &out, Err: &errs}).ServeHTTP(w, r)
		if shown := out.Len() > 0; shown != (w.Code == http.StatusNoContent) ||
			shown && !genuine(signature) && !genuine(next) || !shown && w.Code != http.StatusUnauthorized {
			t.Fatalf("%q with %q and %q: %d, shown %q", text, signature, next, w.Code, out.String())
		}
	})
}

func FuzzEntries(f *testing.F) {
	f.Add(".json", []byte(`[{"transaction_id":"x"}]`))
	f.Add(".jsonl", []byte("{\"transaction_id\":\"x\"}\n"))
	f.Add(".csv", client.CSVTemplate())
	f.Add(".csv", []byte("transaction_id;item_quantity\nx;1\n\"\n"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, extension string, text []byte) {
		if extension != ".json" && extension != ".jsonl" {
			extension = ".csv"
		}
		bodies, err := client.BodiesOf("x"+extension, bytes.NewReader(text))
		if err != nil {
			return
		}
		for id, body := range bodies {
			if id == "" || !json.Valid(body) {
				t.Fatalf("%q became %s", text, body)
			}
		}
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte("{\"tributary_submit\":1,\"url\":\"u\",\"operation\":\"transaction\"}\n{\"transaction_id\":\"x\",\"digest\":\"d\",\"operation_id\":\"o\"}\n"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		known, err := client.ParseState(text,
			client.StateHead{Version: client.StateVersion, URL: "u", Operation: "transaction"})
		if err != nil {
			return
		}
		for id, r := range known {
			if id == "" || r.OperationID == "" {
				t.Fatalf("%q was believed", text)
			}
		}
	})
}
