package client_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/client"
	"tributary/internal/secret"
)

// heard is what stands behind `listen --forward`.
type heard struct {
	status int
	bodies []string
	heads  []http.Header
}

func (h *heard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.bodies, h.heads = append(h.bodies, r.Method+" "+string(body)), append(h.heads, r.Header)
	if h.status >= 300 && h.status < 400 {
		w.Header().Set("Location", "/elsewhere")
	}
	w.WriteHeader(h.status)
}

func TestListenForwardsOnlyWhatVerifiesAndChangesNothing(t *testing.T) {
	t.Parallel()
	behind := &heard{status: http.StatusNoContent}
	target := httptest.NewServer(behind)
	defer target.Close()
	var out, errs bytes.Buffer
	l := client.Receiver{APIKey: testKey, Forward: target.URL + "/in"}
	front := httptest.NewServer(l.Handler(client.Streams{Out: &out, Err: &errs}))
	defer front.Close()

	body := `{ "event_type":"transactions.transaction_completed", "delivered_at":"` +
		time.Now().UTC().Format("2006-01-02T15:04:05Z") +
		`","resource_id":"op-1","resource_url":"http://127.0.0.1:1/y","webhook_id":"` + strings.Repeat("ab", 20) + `" }`
	signature, err := secret.HMACHex(secret.FromText(testKey), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	send := func(text, signature string) int {
		req, err := http.NewRequest(http.MethodPost, front.URL, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Service-Hmac-SHA256", signature)
		req.Header.Set("X-Service-Hmac-SHA256-Next", "next-one")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := send(body, signature); got != http.StatusNoContent {
		t.Errorf("verified: %d\n%s", got, errs.String())
	}
	if got := send(body+" ", signature); got != http.StatusUnauthorized {
		t.Errorf("changed on the way: %d", got)
	}
	if len(behind.bodies) != 1 || behind.bodies[0] != "POST "+body {
		t.Fatalf("forwarded %q, want the one that verifies, unchanged", behind.bodies)
	}
	if h := behind.heads[0]; h.Get("X-Service-Hmac-SHA256") != signature ||
		h.Get("X-Service-Hmac-SHA256-Next") != "next-one" || h.Get("Content-Type") != "application/json" {
		t.Errorf("forwarded headers %v", h)
	}
	if !strings.Contains(out.String(), "op-1") || !strings.Contains(errs.String(), "rejected") {
		t.Errorf("printed %q %q", out.String(), errs.String())
	}
	// What the receiver behind says decides whether it is sent again.
	for _, status := range []int{http.StatusInternalServerError, http.StatusFound} {
		behind.status = status
		if got := send(body, signature); got != status {
			t.Errorf("the receiver answers %d, listen %d", status, got)
		}
	}
	if n := len(behind.bodies); n != 3 {
		t.Errorf("%d requests arrived: a redirect was followed", n)
	}
	target.Close()
	if got := send(body, signature); got != http.StatusBadGateway {
		t.Errorf("nobody behind: %d", got)
	}
}

// What happened is what a developer wants to see: the result's status, sale and total, or why it failed.
func TestListenPrintsOutcomes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"status":"SUCCESS","transaction_id":"order-1","total_amount":22710,"currency_code":"EUR"}`:                                "SUCCESS order-1 227.10 EUR\n",
		`{"status":"FAILURE","transaction_id":"order-2","errors":[{"code":"authority_rejected","message":"The number is taken."}]}`: "FAILURE order-2: authority_rejected The number is taken.\n",
		`no JSON`: "/v1/transactions/op-1\n",
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+testKey {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, answer)
		}))
		defer service.Close()
		var out bytes.Buffer
		front := httptest.NewServer(client.Receiver{APIKey: testKey}.Handler(client.Streams{Out: &out, Err: io.Discard}))
		defer front.Close()
		body := `{"event_type":"transactions.transaction_completed","delivered_at":"` +
			time.Now().UTC().Format("2006-01-02T15:04:05Z") +
			`","resource_id":"op-1","resource_url":"` + service.URL + `/v1/transactions/op-1","webhook_id":"` +
			strings.Repeat("ab", 20) + `"}`
		signature, err := secret.HMACHex(secret.FromText(testKey), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest(http.MethodPost, front.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Service-Hmac-SHA256", signature)
		got, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != http.StatusNoContent || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%d, printed %q, want %q at its end", got.StatusCode, out.String(), want)
		}
	}
}
