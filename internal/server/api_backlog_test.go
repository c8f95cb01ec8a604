package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// --backlog counts what could be worked: at it submits are refused with the
// time after which to come again, and what waits for an authority is no part
// of it.
func TestAFullBacklogIsToldAndOutagesDoNotCount(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		dir := t.TempDir()
		seeded(t, dir, database)
		// A process counts at its first submit, and then every ten seconds.
		begin := func(backlog int) (*program, func()) {
			p := &program{dir: dir, inbox: newInbox(), ended: make(chan error, 1)}
			t.Cleanup(p.inbox.server.Close)
			var err error
			p.Server, err = open(t.Context(), server.Config{
				Demo: true, API: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Data: dir, Database: database,
				Version: "test",
				APIKey:  secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, Backlog: backlog,
			})
			if err != nil {
				t.Fatal(err)
			}
			return p, p.run(t)
		}
		p, stop := begin(0)
		for i := range 2 {
			p.as(demoKey).submit(t, "/v1/transactions", p.sale(t, fmt.Sprint("waits-", i), nil))
		}
		stop()
		p, stop = begin(3)
		p.as(demoKey).submit(t, "/v1/transactions", p.sale(t, "waits-2", nil))
		stop()
		p, stop = begin(3)
		refused := p.as(demoKey).want(t, http.StatusServiceUnavailable, http.MethodPost, "/v1/transactions",
			p.sale(t, "waits-3", nil))
		if refused.header.Get("Retry-After") != "10" {
			t.Errorf("Retry-After %q", refused.header.Get("Retry-After"))
		}
		p.as(demoKey).want(t, http.StatusOK, http.MethodGet, "/v1/transactions", nil)
		err := p.DB().Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec(`INSERT INTO lanes (lane, client_id, country, environment, shard, supplier_id, due_at, reason)
				SELECT DISTINCT lane, client_id, country, CASE WHEN live THEN 'live' ELSE 'test' END, 0, supplier_id, CAST($1 AS BIGINT), 'authority_unreachable'
				FROM operations WHERE true ON CONFLICT (lane) DO UPDATE SET due_at = excluded.due_at`, db.Micros(tx.Now().Add(time.Hour)))
		})
		if err != nil {
			t.Fatal(err)
		}
		if p.count(t, "SELECT count(*) FROM operations WHERE due_at IS NOT NULL") != 3 {
			t.Error("the refused submit was stored")
		}
		stop()
		p, _ = begin(3)
		p.as(demoKey).submit(t, "/v1/transactions", p.sale(t, "waits-3", nil))
	})
}

func TestABacklogIsNotNegative(t *testing.T) {
	t.Parallel()
	_, err := server.Open(t.Context(), server.Config{Demo: true, API: true, Listen: "127.0.0.1:0",
		Simulators: "127.0.0.1:0", Data: t.TempDir(), Version: "test", Backlog: -1})
	if err == nil {
		t.Error("a negative backlog was taken")
	}
}
