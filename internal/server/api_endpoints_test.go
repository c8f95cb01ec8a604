package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/endpoint"
	"tributary/internal/official/xxwire"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// demoAt runs a program of its own on a database.
func demoAt(t *testing.T, database string, changes func(*server.Config)) *program {
	t.Helper()
	p := &program{dir: t.TempDir(), inbox: newInbox(), ended: make(chan error, 1)}
	t.Cleanup(p.inbox.server.Close)
	p.inbox.trust(demoKey)
	cfg := server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Data: p.dir,
		Database: database, Version: "test",
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, WebhookRetryBase: 50 * time.Millisecond,
		AuthorityRetryBase: 50 * time.Millisecond,
	}
	if changes != nil {
		changes(&cfg)
	}
	seeded(t, p.dir, database)
	var err error
	if p.Server, err = open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	p.run(t)
	return p
}

// besides is what the command line opens beside a running program.
func (p *program) besides(t *testing.T, database string) (*endpoint.Endpoints, *db.DB) {
	t.Helper()
	d := dbtest.Open(t, db.Config{URL: database, NoWorkers: true})
	master, err := secret.OpenMaster("file:" + p.dir + "/master.key")
	if err != nil {
		t.Fatal(err)
	}
	e, err := server.OpenEndpoints(t.Context(), server.Config{}, d, master)
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

// What another process sets for an authority is used by a running program
// without a restart, and what waited for it goes on at once.
func TestAnIdentitySetBesideARunningProgramIsUsed(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.AuthorityRetryBase = time.Minute }) // what waits must be woken
		c := p.as(demoKey)
		e, _ := p.besides(t, url)
		set := func(key string) {
			t.Helper()
			if _, err := e.Set(t.Context(), audit.Actor{Name: "test"}, country.Environment{Code: "XX"},
				endpoint.Change{Secrets: map[string]secret.Secret{"platform_key": secret.FromText(key)}}); err != nil {
				t.Fatal(err)
			}
		}
		set("a key that the authority does not know")
		// Until the program has looked, it files without a key: that one succeeds.
		var waiting string
		late := time.Now().Add(patience)
		for n := 0; waiting == ""; n++ {
			id := c.submit(t, "/v1/transactions", p.sale(t, fmt.Sprintf("ID-%d", n), nil))
			for {
				got := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+id, nil)
				if strings.Contains(string(got.body), `"authority_not_configured"`) && got.json(t)["status"] == "PROCESSING" {
					waiting = id
					break
				}
				if got.json(t)["status"] == "SUCCESS" {
					break
				}
				if time.Now().After(late) {
					t.Fatalf("after %d sales: %s", n+1, got.body)
				}
				<-time.After(20 * time.Millisecond)
			}
		}
		alerts := false
		for _, a := range p.openAlerts(t) {
			alerts = alerts || a == "authority_not_configured XX test"
		}
		if !alerts {
			t.Errorf("nobody is told: %v", p.openAlerts(t))
		}
		set(xxwire.PlatformKey(""))
		if got := c.outcome(t, waiting); got["status"] != "SUCCESS" {
			t.Errorf("%v", got)
		}
	})
}

// openAlerts are the alerts that nobody acknowledged, with their subjects.
func (p *program) openAlerts(t *testing.T) (list []string) {
	t.Helper()
	err := p.DB().Read(t.Context(), func(r db.Reader) error {
		all, err := alert.List(r, alert.Filter{Open: true, Limit: 100})
		for _, a := range all {
			list = append(list, string(a.Name)+" "+a.Subject)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
