package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/secret"
)

// crashRun is a program that is killed again and again while clients submit.
type crashRun struct {
	t        *testing.T
	args     []string
	base     string
	sims     string
	supplier string
	client   *http.Client

	mu       sync.Mutex
	accepted map[string][]string // operation ids by transaction id
	received map[string]int      // notifications by resource id
	wrong    []string            // notifications that did not verify
}

// TestCrashRun kills the real program at random moments and audits what the
// authority, the receiver and the API say afterwards. TRIBUTARY_CRASH_KILLS
// makes it long; TRIBUTARY_CRASH_SEED repeats the moments of a run.
func TestCrashRun(t *testing.T) {
	kills, seed := 5, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_CRASH_KILLS")); err == nil {
		kills = n
	}
	if n, err := strconv.ParseUint(os.Getenv("TRIBUTARY_CRASH_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("%d kills, seed %d", kills, seed)
	c := &crashRun{t: t, client: &http.Client{Timeout: 5 * time.Second}, accepted: map[string][]string{}, received: map[string]int{}}
	receiver := httptest.NewServer(http.HandlerFunc(c.receive))
	defer receiver.Close()
	c.args = demoArgs(t, t.TempDir(), "--webhook-url", receiver.URL+"/hooks", "--webhook-retry-base", "200ms", "--authority-retry-base", "100ms")
	c.base, c.sims = "http://"+flag(c.args, "--listen"), "http://"+flag(c.args, "--simulators")
	random := rand.New(rand.NewPCG(seed, 1))

	program := start(t, c.args...)
	program.waitReady()
	var company struct{ ID string }
	get(t, c.base+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	c.supplier = company.ID

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		clients.Go(func() { c.submit(stop, &next) })
	}
	for range kills {
		wait := time.NewTimer(time.Duration(100+random.IntN(900)) * time.Millisecond)
		<-wait.C
		program.kill()
		program = start(t, c.args...)
		program.waitReady()
	}
	close(stop)
	clients.Wait()
	c.audit()
}

func flag(args []string, name string) string {
	for i, a := range args {
		if a == name {
			return args[i+1]
		}
	}
	return ""
}

// submit posts sales until told to stop; now and then one is posted again, as
// a client does that saw no answer.
func (c *crashRun) submit(stop <-chan struct{}, next *atomic.Int64) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		id := fmt.Sprintf("crash-%06d", next.Add(1))
		number := id
		if strings.HasSuffix(id, "7") {
			number += "-LOST"
		}
		for {
			operation, ok := c.post(id, number)
			if ok {
				c.mu.Lock()
				c.accepted[id] = append(c.accepted[id], operation)
				c.mu.Unlock()
				break
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond): // the program is down
			}
		}
	}
}

func (c *crashRun) post(id, number string) (operation string, ok bool) {
	body := `{"country_code":"XX","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"` + number + `","transaction_id":"` + id +
		`","supplier":{"id":"` + c.supplier + `"},"items":[{"number":1,"name":"Tea","quantity":1,"unit_price":100,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}]}`
	req, err := http.NewRequest(http.MethodPost, c.base+"/v1/transactions", strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return "", false
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(req)
	if err != nil {
		return "", false
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusAccepted {
		return "", false
	}
	var got struct {
		OperationID string `json:"operation_id"`
	}
	if json.Unmarshal(text, &got) != nil || got.OperationID == "" {
		return "", false
	}
	return got.OperationID, true
}

func (c *crashRun) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	want, _ := secret.HMACHex(secret.FromText(testKey), body)
	var n struct {
		ResourceID string `json:"resource_id"`
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if json.Unmarshal(body, &n) != nil || r.Header.Get("X-Service-Hmac-SHA256") != want {
		c.wrong = append(c.wrong, string(body))
	}
	c.received[n.ResourceID]++
	w.WriteHeader(http.StatusNoContent)
}

// audit: every 202 ends in SUCCESS, each transaction is registered once, and
// each operation that was answered has its notification.
func (c *crashRun) audit() {
	t := c.t
	deadline := time.Now().Add(60 * time.Second)
	open := c.open()
	for len(open) > 0 && time.Now().Before(deadline) {
		time.Sleep(200 * time.Millisecond) // another process works; it has no signal to give
		open = c.open()
	}
	for _, what := range open {
		t.Error(what)
	}
	var book struct {
		Registrations []struct{ Number string }
	}
	get(t, c.sims+"/_control/xx/registrations", &book)
	times := map[string]int{}
	for _, r := range book.Registrations {
		times[strings.TrimSuffix(r.Number, "-LOST")]++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.accepted {
		if times[id] != 1 {
			t.Errorf("%s was registered %d times", id, times[id])
		}
	}
	twice := 0
	for _, n := range c.received {
		twice += n - 1
	}
	if len(c.wrong) > 0 {
		t.Errorf("%d notifications did not verify, the first: %s", len(c.wrong), c.wrong[0])
	}
	t.Logf("%d transactions accepted, %d registered, %d notifications repeated", len(c.accepted), len(times), twice)
	if len(c.accepted) == 0 {
		t.Error("nothing was accepted: the run proves nothing")
	}
}

// open lists what has not ended well yet.
func (c *crashRun) open() (list []string) {
	c.mu.Lock()
	ids := make([]string, 0, len(c.accepted))
	for id := range c.accepted {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.mu.Lock()
		operations := c.accepted[id]
		told := true
		for _, op := range operations {
			told = told && c.received[op] > 0
		}
		c.mu.Unlock()
		if told {
			continue
		}
		var h struct {
			History []struct {
				OperationID string `json:"operation_id"`
				Status      string
			}
		}
		get(c.t, c.base+"/v1/transactions/history/"+id, &h)
		list = append(list, fmt.Sprintf("%s was answered %v, its history is %+v, and a notification is missing", id, operations, h.History))
		if len(list) == 10 {
			return list
		}
	}
	return list
}
