package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/endpoint"
	"tributary/internal/inbox"
	"tributary/internal/leaks"
	"tributary/internal/official/xxwire"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) {
	leaks.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is an inbox with its listener, and with a filing that knows some handles.
type house struct {
	*inbox.Inbox
	t      *testing.T
	d      *db.DB
	url    string
	reg    *prometheus.Registry
	log    *bytes.Buffer
	mu     sync.Mutex
	known  map[string]bool // handles
	heard  []country.Message
	broken bool
	told   chan struct{}
}

func build(t *testing.T, d *db.DB, change ...func(*inbox.Config)) *house {
	t.Helper()
	h := &house{t: t, d: d, reg: prometheus.NewRegistry(), log: &bytes.Buffer{}, known: map[string]bool{},
		told: make(chan struct{}, 100)}
	atlas, err := country.NewAtlas(country.AtlasConfig{
		Packs:      []country.Pack{world.Reference(transaction.ReferenceCode, country.ByNumber)},
		Simulators: "http://127.0.0.1:1"})
	must(t, err)
	t.Cleanup(atlas.Close)
	log := slog.New(slog.NewTextHandler(h.log, nil))
	cfg := inbox.Config{DB: d, Atlas: atlas, Endpoints: endpoint.New(endpoint.Config{DB: d, Atlas: atlas}), Log: log,
		Metrics: h.reg, HandleMessage: h.hear}
	for _, fn := range change {
		fn(&cfg)
	}
	h.Inbox, err = inbox.New(cfg)
	must(t, err)
	server := httptest.NewServer(h.Inbox)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *house) hear(tx *db.Tx, _ country.Environment, of country.Mailbox, m country.Message) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer tx.OnCommit(func() { h.told <- struct{}{} }) // behind what it tells of
	if !h.known[m.Handle] {
		return "", nil
	}
	if h.broken {
		return "", errors.New("not now")
	}
	tx.OnCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.heard = append(h.heard, m)
	})
	return "op-" + m.Handle, nil
}

func (h *house) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	h.t.Cleanup(func() { cancel(); <-done })
}

// post makes a call as the authority would.
func (h *house) post(path string, body []byte, key string) int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, bytes.NewReader(body))
	must(h.t, err)
	r.Header.Set(xxwire.HeaderPlatform, xxwire.PlatformMAC(key, body))
	resp, err := http.DefaultClient.Do(r)
	must(h.t, err)
	_, _ = io.Copy(io.Discard, resp.Body) // only the status is looked at
	must(h.t, resp.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode
}

func callback(t *testing.T, id, key string) []byte {
	t.Helper()
	text, err := json.Marshal(xxwire.Callback{ID: id, Key: key,
		Receipt: xxwire.Receipt{Number: "A-1", Outcome: xxwire.OutcomeAccepted, AuthorityID: "XX-1", SHA256: "ab"}})
	must(t, err)
	return text
}

const receipts = "/authorities/xx/test/receipts"

func (h *house) count(sql string) (n int) {
	h.t.Helper()
	must(h.t, h.d.Read(h.t.Context(), func(r db.Reader) error { return r.Row(sql).Scan(&n) }))
	return n
}

func TestAMessageIsStoredBeforeItIsAnsweredAndTakenOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := build(t, d)
		h.known["k1"] = true
		ours := xxwire.PlatformKey("")
		if status := h.post(receipts, callback(t, "m1", "k1"), ours); status != http.StatusNoContent {
			t.Fatalf("answered %d", status)
		}
		if n := h.count("SELECT count(*) FROM inbox_messages WHERE name = 'm1' AND taken_at IS NULL"); n != 1 {
			t.Fatalf("%d stored when it was answered", n)
		}
		// Nobody hands on yet, as if the process had died: the authority repeats.
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if status := h.post(receipts, callback(t, "m1", "k1"), ours); status != http.StatusNoContent {
					t.Errorf("the repetition is answered %d", status)
				}
			})
		}
		all.Wait()
		h.run()
		<-h.told
		h.post(receipts, callback(t, "m1", "k1"), ours)
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.heard) != 1 || h.heard[0].Receipt.Outcome != country.Accepted ||
			h.heard[0].Receipt.AuthorityID1 != "XX-1" || len(h.heard[0].Raw) == 0 {
			t.Errorf("heard %+v", h.heard)
		}
		if n := h.count("SELECT count(*) FROM inbox_messages"); n != 1 {
			t.Errorf("%d stored", n)
		}
		if n := h.counter("repeated"); n != 9 {
			t.Errorf("%v repeated", n)
		}
	})
}

// counter is how many calls of XX ended so.
func (h *house) counter(outcome string) (n float64) {
	h.t.Helper()
	families, err := h.reg.Gather()
	must(h.t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "tributary_callbacks_total" && labels["country"] == "XX" && labels["outcome"] == outcome {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestAMessageForAnUnknownDocumentIsKeptAndShown(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	if status := h.post(receipts, callback(t, "early", "k9"), xxwire.PlatformKey("")); status != http.StatusNoContent {
		t.Fatalf("answered %d", status)
	}
	<-h.told
	must(t, h.d.Read(t.Context(), func(r db.Reader) error {
		list, err := inbox.Unknown(r, 10)
		must(t, err)
		if len(list) != 1 || list[0].Key != "early" || list[0].Handle != "k9" || list[0].At.String() != "XX.test" ||
			!strings.Contains(list[0].Raw, "k9") {
			t.Errorf("%+v", list)
		}
		if _, err := inbox.Unknown(r, 501); err == nil {
			t.Error("a list without an end")
		}
		return nil
	}))
	h.mu.Lock()
	h.known["k9"] = true // our own call was answered meanwhile
	h.mu.Unlock()
	<-h.told
	must(t, h.d.Read(t.Context(), func(r db.Reader) error {
		list, err := inbox.Unknown(r, 10)
		if err != nil || len(list) != 0 || len(h.heard) != 1 {
			t.Errorf("%+v %v", list, err)
		}
		return nil
	}))
}

func TestStrangersAndWhatCannotBeReadLeaveNothing(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	ours := xxwire.PlatformKey("")
	large := append(callback(t, "m1", "k1"), bytes.Repeat([]byte(" "), inbox.BodyBytesMax)...)
	for name, c := range map[string]struct {
		path string
		body []byte
		key  string
		want int
	}{
		"a stranger": {receipts, callback(t, "m1", "k1"), "guessed", http.StatusUnauthorized},
		"no JSON":    {receipts, []byte("{"), ours, http.StatusBadRequest},
		"no id":      {receipts, callback(t, "", "k1"), ours, http.StatusBadRequest},
		"an unknown outcome": {receipts, []byte(`{"id":"a","key":"b","receipt":{"number":"1","outcome":"maybe"}}`),
			ours, http.StatusBadRequest},
		"past the limit of bytes":   {receipts, large, ours, http.StatusRequestEntityTooLarge},
		"another path of the pack":  {"/authorities/xx/test/else", callback(t, "m1", "k1"), ours, http.StatusNotFound},
		"no path at all":            {"/authorities/xx", nil, ours, http.StatusNotFound},
		"another country":           {"/authorities/qq/test/receipts", nil, ours, http.StatusNotFound},
		"an upper-case country":     {"/authorities/XX/test/receipts", nil, ours, http.StatusNotFound},
		"no environment":            {"/authorities/xx/prod/receipts", nil, ours, http.StatusNotFound},
		"live where there is none":  {"/authorities/xx/live/receipts", nil, ours, http.StatusNotFound},
		"elsewhere on the listener": {"/v1/transactions", nil, ours, http.StatusNotFound},
	} {
		if status := h.post(c.path, c.body, c.key); status != c.want {
			t.Errorf("%s: %d, want %d", name, status, c.want)
		}
	}
	if n := h.count("SELECT count(*) FROM inbox_messages"); n != 0 {
		t.Errorf("%d stored", n)
	}
	if n := h.counter("refused"); n != 1 {
		t.Errorf("%v strangers counted", n)
	}
	if !strings.Contains(h.log.String(), "was rejected") {
		t.Error("nobody is told of the stranger")
	}
}

// What cannot be handed on now is neither lost nor done twice.
func TestAFilingThatCannotTakeAMessageGetsItAgain(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.known["k1"], h.broken = true, true
	h.run()
	h.post(receipts, callback(t, "m1", "k1"), xxwire.PlatformKey(""))
	late := time.Now().Add(2 * time.Minute)
	for h.count("SELECT count(*) FROM inbox_messages WHERE lease_until IS NULL AND due_at IS NOT NULL") == 0 {
		if time.Now().After(late) {
			t.Fatal("it is not given back")
		}
		<-time.After(10 * time.Millisecond)
	}
	if len(h.heard) != 0 || h.count("SELECT count(*) FROM inbox_messages WHERE taken_at IS NULL") != 1 {
		t.Errorf("heard %v", h.heard)
	}
}
