package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db/dbtest"
	"tributary/internal/secret"
)

// stage is a whole installation: a database, nodes that can be killed, the
// simulated authorities in a process of their own and a receiver that logs to
// disk before it answers.
type stage struct {
	t        *testing.T
	binary   string // of the nodes and the simulators
	dir      string
	database string
	sims     string
	simsProc *process
	nodes    []*node
	receiver *receiver
	client   *http.Client
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
		return newStageOn(t, binary, nodes, dbtest.PostgresURL(t))
	}
	return newStageOn(t, binary, nodes, "sqlite:"+filepath.Join(t.TempDir(), "tributary.db"))
}

// newStageOn does it on a database.
func newStageOn(t *testing.T, binary string, nodes int, database string) *stage {
	t.Helper()
	s := &stage{t: t, binary: binary, dir: t.TempDir(), database: database, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := secret.CreateMasterFile(filepath.Join(s.dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	s.receiver = newReceiver(t, filepath.Join(s.dir, "receiver.log"))
	s.startSimulators()
	s.command("migrate", "--database", s.database)
	s.command("client", "create", "crash", "--database", s.database, "--master-key", s.masterKey(), "--name", "Crash run", "--country", "*=BOTH",
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
	s.simsProc = begin(s.t, child(s.binary, "simulate", "--simulators", address, "--data", filepath.Join(s.dir, "authority")))
	s.eventually("the simulators", func() bool {
		answer, err := s.client.Get(s.sims + "/_control/xx/registrations")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// command runs a command line to its end.
func (s *stage) command(args ...string) {
	s.t.Helper()
	var out bytes.Buffer
	if code := run(s.t.Context(), args, streams{&out, &out, strings.NewReader("")}); code != 0 {
		s.t.Fatalf("tributary %s: exit %d\n%s", strings.Join(args, " "), code, out.String())
	}
}

// addNode starts a node, with more flags than every node has.
func (s *stage) addNode(more ...string) {
	address := freeAddress(s.t)
	n := &node{base: "http://" + address}
	n.args = []string{"serve", "--listen", address, "--admin", freeAddress(s.t), "--database", s.database, "--master-key", s.masterKey(),
		"--documents", "file://" + filepath.Join(s.dir, "documents"), "--data", s.dir, "--public-url", "https://api.example.test", // receivers may not stand on our own host
		"--simulators", s.sims, "--callbacks", freeAddress(s.t),
		"--webhook-ca", s.receiver.ca, "--webhook-allow", "127.0.0.0/8", "--webhook-retry-base", "200ms", "--authority-retry-base", "100ms", "--log-level", "warn"}
	n.args = append(n.args, more...)
	s.nodes = append(s.nodes, n)
	s.launch(n, "")
}

// launch starts a node; killAt names a place and a count at which it ends itself.
func (s *stage) launch(n *node, killAt string) {
	s.t.Helper()
	cmd := child(s.binary, n.args...)
	cmd.Env = append(cmd.Env, "TRIBUTARY_KILL_AT="+killAt)
	n.started = time.Now()
	n.process = begin(s.t, cmd)
}

// eventually waits for what other processes do; they have no signal to give.
func (s *stage) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(90 * time.Second); !done(); {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within 90 s\n%s", what, s.lastWords())
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
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json")
	return s.read(req)
}

func (s *stage) fetch(base, path string) (status int, answer []byte, err error) {
	req, err := http.NewRequest(http.MethodGet, base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	return s.read(req)
}

// patiently asks again where a busy service says 503, as its documentation tells clients to.
func patiently(ask func() (int, []byte, error)) (status int, answer []byte, err error) {
	for range 20 {
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
	of := c.Example.Company
	body := map[string]any{
		"meta": map[string]any{"country_code": c.Code, "external_id": "crash-" + c.Code}, "legal_name": of.LegalName, "address": of.Address,
		"tax_information": map[string]any{"tax_number": of.TaxNumber}, "settings": of.Settings,
	}
	if len(c.settings) > 0 {
		body["settings"] = c.settings
	}
	opened, err := c.Example.Open(time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	credentials := map[string]any{}
	for name, value := range opened.Named {
		credentials[name] = value
	}
	if len(opened.PKCS12) > 0 {
		credentials["certificate_base64"], credentials["certificate_password"] = base64.StdEncoding.EncodeToString(opened.PKCS12), opened.Password
	}
	if opened.Username != "" || opened.Secret != "" {
		credentials["username"], credentials["password"] = opened.Username, opened.Secret
	}
	body["tax_credentials"] = credentials
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	status, answer, err := patiently(func() (int, []byte, error) { return s.post(s.nodes[0].base, "/onboarding/v2/companies", text) })
	if err != nil || status != http.StatusAccepted {
		s.t.Fatalf("onboard in %s: %d %s %v", c.Code, status, answer, err)
	}
	var id string
	s.eventually("the company in "+c.Code, func() bool {
		status, answer, err := s.fetch(s.nodes[0].base, "/onboarding/v2/companies/crash-"+c.Code+"?external-id=true")
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
	flying atomic.Int64

	mu     sync.Mutex
	recent []time.Time    // of the answers of the last second
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
	r.flying.Add(1)
	defer r.flying.Add(-1)
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
	r.recent = append(r.since(time.Second), time.Now())
	r.times[n.ResourceID]++
	r.events[n.WebhookID]++
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) since(d time.Duration) []time.Time {
	for i, at := range r.recent {
		if time.Since(at) <= d {
			return r.recent[i:]
		}
	}
	return nil
}

// inFlight is how many deliveries a kill now can make come again: those under
// way, and those answered so lately that the answer may not be on disk.
func (r *receiver) inFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.flying.Load()) + len(r.since(time.Second))
}

// firstAfter waits for the first announcement after a time; clients submit all
// the while, so there is one.
func (r *receiver) firstAfter(start time.Time) time.Time {
	for ; time.Since(start) < time.Minute; pause(2 * time.Millisecond) {
		r.mu.Lock()
		recent := r.since(time.Minute)
		r.mu.Unlock()
		for _, at := range recent {
			if at.After(start) {
				return at
			}
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
// nothing has moved for a minute.
func (s *stage) awaitTold(ids []string) []string {
	missing := s.receiver.untold(ids)
	for last := time.Now(); len(missing) > 0 && time.Since(last) < time.Minute; pause(100 * time.Millisecond) {
		if now := s.receiver.untold(missing); len(now) < len(missing) {
			missing, last = now, time.Now() // as long as it goes on, it may take its time
		}
	}
	return missing
}

// repeated counts deliveries of an event after its first.
func (r *receiver) repeated() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.events {
		n += times - 1
	}
	return n
}
