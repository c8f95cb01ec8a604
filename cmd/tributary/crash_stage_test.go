package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/schema"
	"tributary/internal/secret"
)

// inProcess instead of a binary: nodes that are not killed, but stopped.
const inProcess = ""

// stage is a whole installation: a database, nodes that can be killed, the
// simulated authorities in this process, which outlives them, and a receiver that
// logs to disk before it answers.
type stage struct {
	t        *testing.T
	binary   string // of the nodes
	dir      string
	database string
	sims     string
	opened   string // the network that is open to everybody's receivers
	nodes    []*node
	receiver *receiver
	client   *http.Client
	key      string // of whom post and fetch speak for; "": testKey
}

// node is one serving process and what starts it.
type node struct {
	args    []string
	base    string
	process *process
	started time.Time
}

// newStage sets everything up and starts it from a binary.
func newStage(t *testing.T, binary string, nodes int, postgres bool) *stage {
	t.Helper()
	if postgres {
		return newStageOn(t, binary, nodes, dbtest.MigratedURL(t))
	}
	return newStageOn(t, binary, nodes, migrated(t))
}

// eachMigrated runs fn once per engine with the address of a database that has its
// schema, and nothing in it.
func eachMigrated(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); fn(t, migrated(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); fn(t, dbtest.MigratedURL(t)) })
}

// migrated is the address of a SQLite database that has its schema: a copy, because
// the steps to it take longer than most tests.
func migrated(t *testing.T) string {
	t.Helper()
	file, err := schemaOnce()
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + write(t, filepath.Join(t.TempDir(), "tributary.db"), string(file))
}

var schemaOnce = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tributary-schema-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	path := filepath.Join(dir, "tributary.db")
	d, err := db.Open(context.Background(), db.Config{URL: "sqlite:" + path})
	if err != nil {
		return nil, err
	}
	_, err = schema.Migrate(context.Background(), d)
	if err := errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// newStageOn does it on a database that has its schema.
func newStageOn(t *testing.T, binary string, nodes int, database string) *stage {
	t.Helper()
	s := &stage{t: t, binary: binary, dir: t.TempDir(), database: database, opened: "127.0.0.0/8",
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := secret.CreateMasterFile(filepath.Join(s.dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	s.receiver = newReceiver(t, filepath.Join(s.dir, "receiver.log"))
	s.startSimulators()
	must(t, "client", "create", "crash", "--database", s.database, "--master-key", s.masterKey(), "--name", "Crash run",
		"--country", "*=BOTH",
		"--webhook-url", s.receiver.server.URL+"/hooks", "--rate=-1", "--key", testKey, "--demo")
	for range nodes {
		s.addNode()
	}
	return s
}

func (s *stage) masterKey() string { return "file:" + filepath.Join(s.dir, "master.key") }

func (s *stage) startSimulators() {
	address := freeAddress(s.t)
	s.sims = "http://" + address
	start(s.t, "simulate", "--simulators", address, "--data", filepath.Join(s.dir, "authority")).waitReady()
}

// addNode starts a node, with more flags than every node has.
func (s *stage) addNode(more ...string) {
	address := freeAddress(s.t)
	n := &node{base: "http://" + address}
	n.args = []string{"serve", "--listen", address, "--admin", freeAddress(s.t), "--database", s.database, "--master-key",
		s.masterKey(),
		// receivers may not stand on our own host
		"--documents", "file://" + filepath.Join(s.dir, "documents"), "--data", s.dir, "--public-url",
		"https://api.example.test",
		"--simulators", s.sims, "--callbacks", freeAddress(s.t),
		"--webhook-ca", s.receiver.ca, "--webhook-retry-base", "200ms", "--authority-retry-base", "100ms", "--log-level",
		"warn"}
	if s.opened != "" {
		n.args = append(n.args, "--webhook-allow", s.opened)
	}
	n.args = append(n.args, more...)
	s.nodes = append(s.nodes, n)
	s.launch(n, "")
}

// launch starts a node; killAt names a place and a count at which it ends itself.
func (s *stage) launch(n *node, killAt string) {
	s.t.Helper()
	n.started = time.Now()
	if s.binary == inProcess {
		n.process = start(s.t, n.args...)
		return
	}
	cmd := child(s.binary, n.args...)
	cmd.Env = append(cmd.Env, "TRIBUTARY_KILL_AT="+killAt)
	n.process = begin(s.t, cmd)
}

// eventually waits for what other processes do; they have no signal to give.
func (s *stage) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within %s\n%s", what, patience, s.lastWords())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *stage) lastWords() string {
	var out strings.Builder
	for i, n := range s.nodes {
		text := n.process.stderr()
		fmt.Fprintf(&out, "node %d said last:\n%s\n", i, text[max(0, len(text)-2000):])
	}
	return out.String()
}

// post sends a body to a node.
func (s *stage) post(base, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequest(http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+cmp.Or(s.key, testKey))
	req.Header.Set("Content-Type", "application/json")
	return s.read(req)
}

func (s *stage) fetch(base, path string) (status int, answer []byte, err error) {
	req, err := http.NewRequest(http.MethodGet, base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+cmp.Or(s.key, testKey))
	return s.read(req)
}

// patiently asks again where a busy service says 503, as its documentation tells clients to.
func patiently(ask func() (int, []byte, error)) (status int, answer []byte, err error) {
	for late := time.Now().Add(patience); time.Now().Before(late); {
		if status, answer, err = ask(); err != nil || status != http.StatusServiceUnavailable {
			break
		}
		pause(250 * time.Millisecond)
	}
	return status, answer, err
}

func (s *stage) read(req *http.Request) (int, []byte, error) {
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// onboard brings in a company of a country and answers its id.
func (s *stage) onboard(c crashCountry) string {
	s.t.Helper()
	name := "crash-" + c.Code + c.as
	text := exampleCompany(s.t, c.Pack, name, c.settings)
	status, answer, err := patiently(func() (int, []byte, error) {
		return s.post(s.nodes[0].base, "/onboarding/v2/companies", text)
	})
	if err != nil || status != http.StatusAccepted {
		s.t.Fatalf("onboard in %s: %d %s %v", c.Code, status, answer, err)
	}
	var id string
	s.eventually("the company in "+c.Code, func() bool {
		status, answer, err := s.fetch(s.nodes[0].base, "/onboarding/v2/companies/"+name+"?external-id=true")
		var company struct{ ID string }
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &company) != nil {
			return false
		}
		id = company.ID
		return true
	})
	return id
}

// receiver takes webhooks over TLS. What it answered 2xx to is on disk.
type receiver struct {
	t      *testing.T
	server *httptest.Server
	ca     string
	file   *os.File

	mu     sync.Mutex
	last   time.Time      // when it answered last
	times  map[string]int // by resource id
	events map[string]int // by webhook id
	wrong  []string
}

func newReceiver(t *testing.T, path string) *receiver {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, file: file, ca: path + ".pem", times: map[string]int{}, events: map[string]int{}}
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // a killed sender leaves half a handshake
	r.server.StartTLS()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(r.ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.server.Close(); _ = r.file.Close() }) // a test's own
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // it was cut off: no answer, it comes again
	}
	want, _ := secret.HMACHex(secret.FromText(testKey), body)
	var n struct {
		ResourceID string `json:"resource_id"`
		WebhookID  string `json:"webhook_id"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if json.Unmarshal(body, &n) != nil || req.Header.Get("X-Service-Hmac-SHA256") != want {
		r.wrong = append(r.wrong, string(body))
		return
	}
	_, err = fmt.Fprintf(r.file, "%s %s\n", n.WebhookID, n.ResourceID)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		r.t.Errorf("the receiver's log: %v", err)
		return
	}
	r.last = time.Now()
	r.times[n.ResourceID]++
	r.events[n.WebhookID]++
	w.WriteHeader(http.StatusNoContent)
}

// firstAfter waits for the first announcement after a time; clients submit all
// the while, so there is one.
func (r *receiver) firstAfter(start time.Time) time.Time {
	for ; time.Since(start) < patience; pause(2 * time.Millisecond) {
		r.mu.Lock()
		last := r.last
		r.mu.Unlock()
		if last.After(start) {
			return last
		}
	}
	return time.Now()
}

// told is how often a resource was announced.
func (r *receiver) told(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[id]
}

// untold are the resources that the receiver has not heard of.
func (r *receiver) untold(ids []string) (list []string) {
	for _, id := range ids {
		if r.told(id) == 0 {
			list = append(list, id)
		}
	}
	return list
}

// awaitTold waits until everything is announced, and answers what is not once
// nothing has moved for a long while.
func (s *stage) awaitTold(ids []string) []string {
	missing := s.receiver.untold(ids)
	for last := time.Now(); len(missing) > 0 && time.Since(last) < patience; pause(20 * time.Millisecond) {
		if now := s.receiver.untold(missing); len(now) < len(missing) {
			missing, last = now, time.Now() // as long as it goes on, it may take its time
		}
	}
	return missing
}

// repeated are the events that were delivered more than once.
func (r *receiver) repeated() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, times := range r.events {
		if times > 1 {
			ids = append(ids, id)
		}
	}
	return ids
}
