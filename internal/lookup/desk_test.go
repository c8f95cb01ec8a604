package lookup_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/authority/vies"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/guard"
	"tributary/internal/lookup"
	"tributary/internal/webhook"
)

const (
	base   = "https://api.example.test"
	client = "c_ab12"
)

// gate is a simulated register that lets a number of questions through and
// holds the others until it is opened.
type gate struct {
	*httptest.Server
	sim     *vies.Register
	pass    int64
	asked   atomic.Int64
	reached chan struct{} // closed when the first question is held
	open    chan struct{}
	once    sync.Once
	opened  sync.Once
}

func newGate(t testing.TB, pass int64) *gate {
	g := &gate{sim: vies.New(vies.Config{Parallel: 100, ParallelPerState: 100}),
		pass: pass, reached: make(chan struct{}), open: make(chan struct{})}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	t.Cleanup(g.release)
	return g
}

func (g *gate) release() { g.opened.Do(func() { close(g.open) }) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.asked.Add(1) > g.pass {
		g.once.Do(func() { close(g.reached) })
		<-g.open
	}
	g.sim.ServeHTTP(w, r)
}

// register returns a client of the gate.
func (g *gate) register(t testing.TB) *lookup.VIES {
	return newVIES(t, lookup.VIESConfig{BaseURL: g.URL + vies.Path})
}

// newLookups makes the slice as a server composes it, with nobody subscribed to events.
func newLookups(d *db.DB, vies *lookup.VIES) (*lookup.Lookups, error) {
	alerts, err := alert.New(d, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	strict, err := guard.New(guard.Config{})
	if err != nil {
		return nil, err
	}
	sender, err := webhook.NewSender(webhook.SenderConfig{Guard: strict})
	if err != nil {
		return nil, err
	}
	hooks, err := webhook.New(webhook.Config{
		DB: d, Alerts: alerts, BaseURL: base, Sender: sender,
		Target: func(context.Context, string, string) (webhook.Target, bool, error) {
			return webhook.Target{}, false, nil
		},
		Keys: func(context.Context, string) (webhook.Keys, error) { return webhook.Keys{}, webhook.ErrNoKey },
	})
	if err != nil {
		return nil, err
	}
	return lookup.New(lookup.Config{DB: d, Hooks: hooks, Validator: lookup.NewValidator(vies, true), BaseURL: base + "/",
		Grace: time.Nanosecond}), nil
}

// desk is the slice on a database, with what a test asks of it.
type desk struct {
	*lookup.Lookups
	t    testing.TB
	d    *db.DB
	stop func()
}

func newDesk(t testing.TB, d *db.DB, vies *lookup.VIES) *desk {
	t.Helper()
	l, err := newLookups(d, vies)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{Lookups: l, t: t, d: d}
}

// start works lookups until the test ends.
func (k *desk) start() *desk {
	k.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := k.Run(ctx); err != nil {
			k.t.Errorf("work lookups: %v", err)
		}
	}()
	k.stop = func() {
		stop()
		<-done
	}
	k.t.Cleanup(k.stop)
	return k
}

// halt stops the work as a server that has no time left does.
func (k *desk) halt() { k.stop() }

func (k *desk) create(entries []lookup.Entry) lookup.Batch {
	k.t.Helper()
	return k.createFor(client, entries)
}

func (k *desk) createFor(clientID string, entries []lookup.Entry) lookup.Batch {
	k.t.Helper()
	batch, err := k.CreateBatch(context.Background(), clientID, batchBody("", entries))
	if err != nil {
		k.t.Fatal(err)
	}
	return batch
}

func batchBody(name string, entries []lookup.Entry) []byte {
	type entry struct {
		Country string `json:"country_iso_code"`
		Number  string `json:"tax_identification_number"`
	}
	body := struct {
		Name    string  `json:"batch_name,omitempty"`
		Entries []entry `json:"validations"`
	}{Name: name}
	for _, e := range entries {
		body.Entries = append(body.Entries, entry(e))
	}
	text, _ := json.Marshal(body)
	return text
}

// all reads a batch by its pages.
func (k *desk) all(id string) (lookup.Batch, []lookup.Validation) {
	k.t.Helper()
	var entries []lookup.Validation
	cursor := ""
	for {
		page, err := k.Batch(context.Background(), client, id, 100, cursor)
		if err != nil {
			k.t.Fatal(err)
		}
		entries = append(entries, page.Validations...)
		if *page.NextCursor == "" {
			return page, entries
		}
		cursor = string(*page.NextCursor)
	}
}

// finished waits until a batch is no longer running.
func (k *desk) finished(clientID, id string) lookup.Progress {
	k.t.Helper()
	var status lookup.Progress
	k.until("batch "+id+" ends", func() bool {
		b, err := k.Batch(context.Background(), clientID, id, 1, "")
		if err != nil {
			k.t.Fatal(err)
		}
		status = b.Status
		return status != lookup.Running
	})
	return status
}

// until waits for another goroutine or process to make a condition true.
func (k *desk) until(what string, ok func() bool) {
	k.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-look.C:
		case <-late:
			k.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (k *desk) number(sql string, args ...any) (n int) {
	k.t.Helper()
	if err := k.d.Read(context.Background(), func(r db.Reader) error { return r.Row(sql, args...).Scan(&n) }); err != nil {
		k.t.Fatal(err)
	}
	return n
}

func (k *desk) answers(id string) int {
	k.t.Helper()
	return k.number("SELECT count(*) FROM lookup_answers WHERE lookup_id = $1", id)
}

func (k *desk) exec(sql string, args ...any) {
	k.t.Helper()
	if err := k.d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(sql, args...) }); err != nil {
		k.t.Fatal(err)
	}
}

// events are the stored events of a resource as type and path.
func (k *desk) events(id string) (all []string) {
	k.t.Helper()
	err := k.d.Read(context.Background(), func(r db.Reader) (err error) {
		all, err = db.Collect(r, func(scan func(...any) error) (string, error) {
			var kind, path, owner string
			err := scan(&kind, &path, &owner)
			return kind + " " + path + " " + owner, err
		}, "SELECT event_type, resource_path, client_id FROM webhook_events WHERE resource_id = $1", id)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}

func (k *desk) wantOneEvent(id string) {
	k.t.Helper()
	want := "lookup.batch_validation_completed /lookup/v2/batch-validations/" + id + " " + client
	if got := k.events(id); len(got) != 1 || got[0] != want {
		k.t.Errorf("events %q, want one %q", got, want)
	}
}

func wantKind(t testing.TB, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("%v is %v, want %v", err, fault.KindOf(err), want)
	}
}
