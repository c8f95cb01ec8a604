package es_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/aeat"
	"tributary/internal/country"
	"tributary/internal/country/es"
)

// office is a channel to a double of AEAT over real HTTP.
type office struct {
	t       testing.TB
	server  *httptest.Server
	channel country.Channel
	desk    *authority.Desk
	close   func()
}

// patient is Spain with a double that states another wait and page size, so
// that tests need not wait.
func patient(wait time.Duration, page int) country.Pack {
	p := es.Pack()
	p.Simulator = aeat.Habits{Wait: wait, Page: page}.New
	return p
}

func open(t *testing.T, pack country.Pack) *office { return openAt(t, pack, t.TempDir()) }

func openAt(t *testing.T, pack country.Pack, dir string) *office { return openFor(t, pack, dir) }

func openFor(t testing.TB, pack country.Pack, dir string) *office {
	t.Helper()
	if pack.Simulator == nil {
		pack.Simulator = aeat.New // as the list of countries pairs them
	}
	simulators, err := country.NewSimulators(dir, pack)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(simulators)
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack}, Simulators: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	channel, err := atlas.Channel("ES", false)
	if err != nil {
		t.Fatal(err)
	}
	desk, _ := simulators.Desk("ES")
	closed := false
	o := &office{t: t, server: server, channel: channel, desk: desk, close: func() {
		if closed {
			return
		}
		closed = true
		atlas.Close()
		server.Close()
		if err := simulators.Close(); err != nil {
			t.Errorf("closing the simulators: %v", err)
		}
	}}
	t.Cleanup(o.close)
	return o
}

func (o *office) script(steps string) {
	o.t.Helper()
	r, err := http.NewRequest(http.MethodPut, o.server.URL+"/_control/es/script", strings.NewReader(`{"steps":`+steps+`}`))
	if err != nil {
		o.t.Fatal(err)
	}
	resp, err := o.server.Client().Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		o.t.Fatalf("script %s: %s", steps, text)
	}
}

func (o *office) registrations() []authority.Registration {
	o.t.Helper()
	all, err := o.desk.Registrations()
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}

// prepare links the draft to the record before.
func (o *office) prepare(d country.Draft, last country.Link) country.Filing {
	o.t.Helper()
	d.Previous = last
	f, err := o.channel.Prepare(d)
	if err != nil {
		o.t.Fatal(err)
	}
	return f
}

func (o *office) send(filings ...country.Filing) []country.Receipt {
	o.t.Helper()
	receipts, err := o.channel.Send(o.t.Context(), filings, credentials())
	if err != nil {
		o.t.Fatal(err)
	}
	return receipts
}

func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func isNotTaken(err error) bool { return errors.Is(err, country.ErrNotTaken) }
