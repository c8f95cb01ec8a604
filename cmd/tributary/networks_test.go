package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPrivateNetworksOpenToOneClient: what webhook_cidrs of a client's
// configuration names is where its notifications may go, and nobody else's; it
// counts when an address is saved and when it is called.
func TestPrivateNetworksOpenToOneClient(t *testing.T) {
	t.Parallel()
	s := newStage(t, inProcess, 0, false)
	book := []string{"--database", s.database, "--master-key", s.masterKey()}
	configure := func(more ...string) (int, string, string) {
		return call(t, append(append([]string{"client", "configure", "crash"}, book...), more...)...)
	}
	hook := s.receiver.server.URL + "/hooks"
	if code, _, errs := configure("--webhook-url", hook+"/new"); code != exitUsage || !strings.Contains(errs, "loopback") {
		t.Errorf("a private address without a network: exit code %d\n%s", code, errs)
	}
	if code, _, errs := configure("--webhook-url", "https://localhost:8443/"); code != exitUsage ||
		!strings.Contains(errs, "loopback") {
		t.Errorf("localhost: exit code %d\n%s", code, errs)
	}
	inside := map[string]any{"display_name": "Inside", "countries": map[string]string{"*": "BOTH"},
		"webhooks": map[string]string{"all": hook}, "webhook_cidrs": []string{"127.0.0.0/8"}}
	file := func(name string) string {
		text, err := json.Marshal(inside)
		if err != nil {
			t.Fatal(err)
		}
		return write(t, filepath.Join(s.dir, name), string(text))
	}
	code, out, errs := configure("--file", file("inside.json"), "--json")
	var shown struct {
		Configuration struct {
			WebhookCIDRs []string `json:"webhook_cidrs"`
		}
	}
	if code != 0 || json.Unmarshal([]byte(out), &shown) != nil || !slices.Equal(shown.Configuration.WebhookCIDRs,
		[]string{"127.0.0.0/8"}) {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if code, out, _ := call(t, append([]string{"client", "show", "crash"}, book...)...); code != 0 ||
		!strings.Contains(out, `"127.0.0.0/8"`) {
		t.Errorf("client show: exit code %d\n%s", code, out)
	}
	_, findings := diagnose(t, append(book, "--webhook-ca", s.receiver.ca, "--simulators", s.sims, "--public-url",
		"https://api.example.test")...)
	expect(t, findings, "ok", "webhooks", "crash", "reachable")

	s.opened = "" // the operator opened nothing to everybody
	s.addNode()
	node := s.nodes[0]
	node.process.waitReady()
	land := crashCountryOf(t, "XX")
	supplier := s.onboard(land)
	sell := func(id string) string {
		status, answer, err := patiently(func() (int, []byte, error) {
			return s.post(node.base, "/v1/transactions", land.body(id, strings.ToUpper(id), supplier, time.Now()))
		})
		var said struct {
			OperationID string `json:"operation_id"`
		}
		if err != nil || status != http.StatusAccepted || json.Unmarshal(answer, &said) != nil {
			t.Fatalf("%d %s %v", status, answer, err)
		}
		return said.OperationID
	}
	if missing := s.awaitTold([]string{sell("inside-1")}); len(missing) > 0 {
		t.Fatalf("the receiver in the client's own network was not told\n%s", s.lastWords())
	}

	// Another network is not this one: the running program hears of the change.
	inside["webhook_cidrs"] = []string{"10.0.0.0/8"}
	if code, out, errs := configure("--file", file("outside.json"), "--demo"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	n := 0
	var refused string
	s.eventually("a refused try", func() bool {
		n++
		refused = sell(fmt.Sprintf("outside-%d", n))
		var list struct {
			Data []struct {
				Resource string `json:"resource_id"`
				Status   string
				Tries    int
			}
		}
		_, answer, err := s.fetch(node.base, "/v1/webhooks/events?status=pending")
		if err != nil || json.Unmarshal(answer, &list) != nil {
			t.Fatalf("%s %v", answer, err)
		}
		for _, e := range list.Data {
			if e.Tries > 0 && s.receiver.told(e.Resource) == 0 {
				refused = e.Resource
				return true
			}
		}
		return false
	})
	if s.receiver.told(refused) != 0 {
		t.Errorf("%s was announced outside the client's networks", refused)
	}
}
