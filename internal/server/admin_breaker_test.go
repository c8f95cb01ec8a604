package server_test

import (
	"fmt"
	"strings"
	"testing"

	"tributary/internal/secret"
	"tributary/internal/server"
)

// An authority that answers nobody is told by the metrics of the running
// program; of the others they say that they are reached.
func TestMetricsTellToWhomNothingGetsThrough(t *testing.T) {
	t.Parallel()
	p := &program{dir: t.TempDir(), inbox: newInbox(), ended: make(chan error, 1)}
	t.Cleanup(p.inbox.server.Close)
	seeded(t, p.dir, "")
	var err error
	p.Server, err = open(t.Context(), server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Simulators: "127.0.0.1:0",
		Data: p.dir, Version: "test",
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL,
	})
	must(t, err)
	p.run(t)
	suppliers, err := p.AddSuppliers(t.Context(), 12) // a breaker opens after ten calls for three suppliers
	must(t, err)
	p.script(t, `{"outcome":"unavailable","times":1000}`)
	state := func(at string) string {
		_, text := ask(t, strings.TrimPrefix(p.AdminURL(), "http://"), "/metrics", "localhost")
		_, rest, _ := strings.Cut(text, "tributary_authority_breaker_open{"+at+"} ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	const reference, spain = `country="XX",environment="test"`, `country="ES",environment="test"`
	if got := state(reference); got != "0" {
		t.Fatalf("before: %q", got)
	}
	for i, supplier := range suppliers {
		p.as(demoKey).submit(t, "/v1/transactions",
			p.sale(t, fmt.Sprint("away-", i), object{"supplier": object{"id": supplier}}))
	}
	eventually(t, "the metric tells it", func() bool { return state(reference) == "1" })
	if got := state(spain); got != "0" {
		t.Errorf("Spain is not away: %q", got)
	}
}
