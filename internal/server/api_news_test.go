package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/country/xx"
	"tributary/internal/official/xxwire"
	"tributary/internal/secret"
	"tributary/internal/server"
	"tributary/internal/webhook"
)

// speaks leaves a notice at the simulated authority about its first document.
func (p *program) speaks(t *testing.T, code string, notice xxwire.Notice) {
	t.Helper()
	held := p.book(t, code)[0].(object)
	text, err := json.Marshal(xxwire.Said{Supplier: held["supplier"].(string), Number: held["number"].(string),
		Notice: notice})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(p.SimulatorsURL()+"/"+strings.ToLower(code)+xxwire.PathNotices, "application/json",
		bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("the authority answers %s", answer.Status)
	}
}

// lifecycle waits until a result has so many entries.
func (c *caller) lifecycle(t *testing.T, operation string, n int) []any {
	t.Helper()
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if all := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation,
			nil).json(t)["lifecycle"].([]any); len(all) >= n {
			return all
		}
	}
	t.Fatalf("no %d entries of %s", n, operation)
	return nil
}

// What a buyer says after SUCCESS is in the result, and arrives signed behind
// the completed event, but only at a client that asked for the event.
func TestNewsAfterSuccessReachesTheClient(t *testing.T) {
	t.Parallel()
	pack := world.ReferenceWith("IS", country.ByNumber,
		xx.Habits{Listen: country.Listening{First: 20 * time.Millisecond, Most: 50 * time.Millisecond, For: time.Hour}})
	p := &program{dir: t.TempDir(), inbox: newInbox(), ended: make(chan error, 1)}
	t.Cleanup(p.inbox.server.Close)
	p.inbox.trust(demoKey)
	seeded(t, p.dir, "")
	var err error
	p.Server, err = open(t.Context(), server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Data: p.dir, Version: "test",
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, Packs: []country.Pack{pack},
		WebhookRetryBase: 50 * time.Millisecond, AuthorityRetryBase: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	c := p.as(demoKey)
	id := c.submit(t, "/v1/transactions", p.abroad(t, realAuthority{pack}, "IS-1"))
	if got := c.outcome(t, id); got["status"] != "SUCCESS" || len(got["lifecycle"].([]any)) != 0 {
		t.Fatalf("%v %v", got["status"], got["lifecycle"])
	}
	p.inbox.await(t, id, 1)
	p.speaks(t, "IS", xxwire.Notice{Key: "m1", At: "2026-04-01T08:00:00Z", Code: "204", Name: "Received", Source: "BUYER",
		Severity: "INFO"})
	c.lifecycle(t, id, 1)

	if _, err := p.Accounts().Configure(t.Context(), audit.Actor{Name: "test"}, p.Demo().ClientID,
		func(c *account.Config) error {
			c.Webhooks.ByEvent = map[string]string{webhook.TransactionUpdated: account.WebhookCommon}
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	p.speaks(t, "IS", xxwire.Notice{Key: "m2", At: "2026-04-02T08:00:00Z", Code: "210", Name: "Refused", Source: "BUYER",
		Severity: "PROBLEM", Message: "never ordered"})
	got := p.inbox.await(t, id, 2)
	if got[0].EventType != webhook.TransactionCompleted || got[1].EventType != webhook.TransactionUpdated ||
		got[1].ResourceURL != got[0].ResourceURL || len(got) != 2 {
		t.Errorf("arrived: %+v", got)
	}
	all := c.lifecycle(t, id, 2)
	text, err := json.Marshal(all[1])
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != `{"at":"2026-04-02T08:00:00Z","code":"210","message":"never ordered","name":"Refused","severity":"PROBLEM","source":"BUYER"}` {
		t.Errorf("shown as %s", text)
	}
	if got := c.outcome(t, id); got["status"] != "SUCCESS" {
		t.Errorf("it is %v now", got["status"])
	}
}
