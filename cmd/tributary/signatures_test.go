package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tributary/internal/secret"
)

// arrival is one notification as it came.
type arrival struct {
	head http.Header
	body []byte
}

// signedBy tells whether a header holds the signature of a key.
func (a arrival) signedBy(t *testing.T, name, key string) bool {
	t.Helper()
	want, err := secret.HMACHex(secret.FromText(key), a.body)
	if err != nil {
		t.Fatal(err)
	}
	return a.head.Get(name) == want
}

// TestARunningProgramSignsAsTheClientIsConfigured: a name of the client's own
// for the signature, both keys through a whole rotation, and Standard Webhooks
// with a secret of its own.
func TestARunningProgramSignsAsTheClientIsConfigured(t *testing.T) {
	t.Parallel()
	s := newStage(t, inProcess, 1, false)
	arrivals := make(chan arrival, 1000)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		arrivals <- arrival{r.Header, body}
	}))
	defer hook.Close()
	book := []string{"--database", s.database, "--master-key", s.masterKey(), "--demo", "--json"}
	command := func(into any, args ...string) {
		t.Helper()
		code, out, errs := call(t, append(args, book...)...)
		if code != 0 || json.Unmarshal([]byte(out), into) != nil {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	var configured struct {
		Configuration struct {
			Header string `json:"webhook_signature_header"`
		}
	}
	command(&configured, "client", "configure", "crash", "--webhook-url", hook.URL, "--webhook-signature-header",
		"Acme-Signature")
	if configured.Configuration.Header != "Acme-Signature" {
		t.Errorf("%+v", configured)
	}
	node := s.nodes[0]
	node.process.waitReady()
	land := crashCountryOf(t, "XX")
	supplier := s.onboard(land)
	n := 0
	until := func(what string, fits func(arrival) bool) {
		t.Helper()
		s.eventually(what, func() bool {
			n++
			id := fmt.Sprintf("signed-%d", n)
			status, answer, err := patiently(func() (int, []byte, error) {
				return s.post(node.base, "/v1/transactions", land.body(id, id, supplier, time.Now()))
			})
			if err != nil || status != http.StatusAccepted {
				t.Fatalf("%d %s %v", status, answer, err)
			}
			select {
			case a := <-arrivals:
				return fits(a)
			case <-time.After(5 * time.Second):
				return false
			}
		})
	}
	const name, partner = "Acme-Signature", "Acme-Signature-Next"
	until("the client's own header", func(a arrival) bool {
		return a.signedBy(t, name, testKey) && a.head.Get(partner) == "" && a.head.Get("X-Service-Hmac-SHA256") == "" &&
			a.head.Get("webhook-id") == ""
	})

	var made struct {
		ID     string
		Secret string `json:"webhook_secret"`
	}
	command(&made, "webhook-secret", "create", "crash")
	verifier, err := standardwebhooks.NewWebhook(made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	until("Standard Webhooks", func(a arrival) bool {
		return verifier.Verify(a.body, a.head) == nil && a.signedBy(t, name, testKey)
	})

	var next struct {
		Kid string
		Key string `json:"api_key"`
	}
	command(&next, "key", "rotate", "crash")
	until("both keys before promote", func(a arrival) bool {
		return a.signedBy(t, name, testKey) && a.signedBy(t, partner, next.Key)
	})
	var moved struct{ State string }
	command(&moved, "key", "promote", next.Kid)
	until("both keys after promote", func(a arrival) bool {
		return a.signedBy(t, name, next.Key) && a.signedBy(t, partner, testKey)
	})

	var ended struct {
		RevokedAt string `json:"revoked_at"`
	}
	command(&ended, "webhook-secret", "revoke", "crash", made.ID)
	until("no more Standard Webhooks", func(a arrival) bool {
		return a.head.Get("webhook-signature") == "" && a.signedBy(t, partner, testKey)
	})
}
