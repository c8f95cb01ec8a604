package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
)

// What a quiet client's neighbours do.
const (
	neighbourHands = 16     // connections of one that reads
	neighbourLarge = 8      // sales of 5,000 lines that it has
	neighbourSales = 22_000 // small sales of ten that submit
	quietSales     = 200    // of the quiet client, before anything begins
	quietEvery     = 200 * time.Millisecond
)

// neighbour is what takes the machine from a quiet client: arm prepares it and answers
// what is done until stop.
type neighbour struct {
	name string
	arm  func(s *stage, land crashCountry) (rage func(stop <-chan struct{}))
}

// TestAQuietClientBesideNeighbours prints what a quiet client waits for its reads, its
// submits and its settled sales, alone and beside each kind of neighbour, on both
// engines (make hostile). It judges nothing: a machine that others use has no figures
// of its own. With TRIBUTARY_HOSTILE_AGAINST each is done by that program as well, in
// turns with this one.
func TestAQuietClientBesideNeighbours(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("TRIBUTARY_HOSTILE"))
	if err != nil {
		t.Skip("figures of a quiet client: make hostile")
	}
	programs := [][2]string{{"", fastBinary(t)}}
	if other := os.Getenv("TRIBUTARY_HOSTILE_AGAINST"); other != "" {
		programs = [][2]string{{"before", other}, {"now", fastBinary(t)}}
	}
	land := crashCountryOf(t, "XX")
	for _, engine := range []string{"sqlite", "postgres"} {
		for _, kind := range neighbourKinds() {
			t.Run(engine+"/"+kind.name, func(t *testing.T) {
				for _, program := range programs {
					q := besides(t, newStage(t, program[1], 1, engine == "postgres"), land, kind, lasts)
					t.Logf("%-8s beside %-14s %-6s %s", engine, kind.name, program[0], q.String())
					t.Logf("%-8s of a settled sale %s", engine, q.stages())
				}
			})
		}
	}
}

func neighbourKinds() []neighbour {
	reading := func(paths ...string) func(*stage, crashCountry) func(<-chan struct{}) {
		return func(s *stage, land crashCountry) func(<-chan struct{}) { return readLarge(s, land, paths) }
	}
	return []neighbour{
		{"alone", func(*stage, crashCountry) func(<-chan struct{}) { return func(<-chan struct{}) {} }},
		{"reads by id", reading()},
		{"lists", reading("/v1/transactions?limit=100")},
		{"searches", reading("/v1/transactions?limit=100&status=SUCCESS&country_code=XX&from=2020-01-01",
			"/v1/transactions?limit=100&transaction_number=none")},
		{"large submits", func(s *stage, land crashCountry) func(<-chan struct{}) {
			return submitting(s, land, func(id, supplier string) []byte { return []byte(largeSale(id, supplier)) })
		}},
		{"small submits", func(s *stage, land crashCountry) func(<-chan struct{}) {
			return submitting(s, land, func(id, supplier string) []byte { return land.body(id, id, supplier, time.Now()) })
		}},
	}
}

// besides is what a quiet client found beside a neighbour.
func besides(t *testing.T, s *stage, land crashCountry, kind neighbour, lasts time.Duration) *quiet {
	s.nodes[0].process.waitReady()
	q := newQuiet(s, land)
	rage := kind.arm(s, land)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { rage(stop) })
	q.goesOn(lasts)
	close(stop)
	wg.Wait()
	for _, n := range s.nodes {
		n.process.stop()
	}
	return q
}

// as is the stage of another client, who has a company.
func (s *stage) as(name string, land crashCountry) (other *stage, supplier string) {
	copied := *s
	copied.key = s.newClient(name, "--rate=-1")
	copied.client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return &copied, copied.onboard(land)
}

// readLarge has a client with large sales read: these paths, or each sale by its id.
func readLarge(s *stage, land crashCountry, paths []string) func(stop <-chan struct{}) {
	other, supplier := s.as("reader", land)
	byID := paths == nil
	for i := range neighbourLarge {
		id := other.submitOne([]byte(largeSale(fmt.Sprint("large-", i), supplier)))
		if byID {
			paths = append(paths, "/v1/transactions/"+id)
		}
		other.eventually("a large sale", func() bool {
			_, answer, err := other.fetch(s.nodes[0].base, "/v1/transactions/"+id)
			var r struct{ Status string }
			return err == nil && json.Unmarshal(answer, &r) == nil && r.Status == "SUCCESS"
		})
	}
	return func(stop <-chan struct{}) {
		hands(neighbourHands, stop, func(n int) {
			other.drain(s.nodes[0].base + paths[n%len(paths)])
		})
	}
}

// drain reads an answer and keeps nothing of it: what the quiet client waits for is
// measured in this process. Refused or not, who rages asks again.
func (s *stage) drain(url string) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := s.client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body) // as above
	_ = answer.Body.Close()                 // only read
}

// submitting has ten clients submit sales, as many as there are.
func submitting(s *stage, land crashCountry, body func(id, supplier string) []byte) func(stop <-chan struct{}) {
	others, suppliers := make([]*stage, hostileTenants), make([]string, hostileTenants)
	for i := range others {
		others[i], suppliers[i] = s.as(fmt.Sprint("submitter-", i), land)
	}
	return func(stop <-chan struct{}) {
		hands(hostileTenants*hostileHands, stop, func(n int) {
			if n < neighbourSales {
				who := n % hostileTenants
				id := fmt.Sprint("sale-", n)
				_, _, _ = others[who].post(s.nodes[0].base, "/v1/transactions", body(id, suppliers[who])) // as above
				return
			}
			pause(politeEvery)
		})
	}
}

// hands does one thing after another with so many hands until stop.
func hands(many int, stop <-chan struct{}, do func(n int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					do(int(next.Add(1)))
				}
			}
		})
	}
	wg.Wait()
}

// quiet is a client who asks now and then, each question in its own time.
type quiet struct {
	*stage
	land     crashCountry
	supplier string
	ids      []string // operations that are settled
	next     int

	mu      sync.Mutex
	took    map[string][]time.Duration
	refused int
}

var quietAsks = []string{"read", "list", "search", "submit", "settled"}

func newQuiet(s *stage, land crashCountry) *quiet {
	q := &quiet{stage: s, land: land, supplier: s.onboard(land), took: map[string][]time.Duration{}}
	for range quietSales {
		q.ids = append(q.ids, s.submitOne(q.sale()))
	}
	s.eventually("the quiet client's sales", func() bool { return len(s.receiver.untold(q.ids)) == 0 })
	return q
}

func (q *quiet) sale() []byte {
	q.next++
	id := fmt.Sprint("quiet-", q.next)
	return q.land.body(id, id, q.supplier, time.Now())
}

// goesOn asks everything at an even pace.
func (q *quiet) goesOn(lasts time.Duration) {
	end := time.Now().Add(lasts)
	var wg, told sync.WaitGroup
	asking := func(name string, every time.Duration, ask func(n int) (int, error)) {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				began := time.Now()
				status, err := ask(n)
				q.note(name, time.Since(began), err == nil && status < 300)
				pause(every)
			}
		})
	}
	get := func(path string) (int, error) {
		status, _, err := q.fetch(q.nodes[0].base, path)
		return status, err
	}
	asking("read", politeEvery, func(n int) (int, error) { return get("/v1/transactions/" + q.ids[n%len(q.ids)]) })
	asking("list", politeEvery, func(int) (int, error) { return get("/v1/transactions") })
	asking("search", politeEvery, func(int) (int, error) { return get("/v1/transactions?status=SUCCESS&country_code=XX") })
	asking("submit", quietEvery, func(int) (int, error) {
		body, began := q.sale(), time.Now()
		status, answer, err := q.post(q.nodes[0].base, "/v1/transactions", body)
		var accepted struct {
			ID string `json:"operation_id"`
		}
		if err == nil && status == http.StatusAccepted && json.Unmarshal(answer, &accepted) == nil {
			told.Go(func() {
				for time.Since(began) < patience && q.receiver.told(accepted.ID) == 0 {
					pause(5 * time.Millisecond)
				}
				q.note("settled", time.Since(began), q.receiver.told(accepted.ID) > 0)
			})
		}
		return status, err
	})
	wg.Wait()
	told.Wait()
}

func (q *quiet) note(name string, took time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.took[name] = append(q.took[name], took); !ok {
		q.refused++
	}
}

// stages says where settled sales spent their time: until a lane took them, until they
// were sent, until they ended, and the rest until the receiver was told.
func (q *quiet) stages() string {
	d, err := db.Open(q.t.Context(), db.Config{URL: q.database, NoWorkers: true})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = d.Close() }() // only read
	var parts [3][]time.Duration
	err = d.Read(q.t.Context(), func(r db.Reader) error {
		rows, err := r.Query(`SELECT started_at - accepted_at, sent_at - started_at, settled_at - sent_at FROM operations
			WHERE transaction_id LIKE 'quiet-%' AND settled_at IS NOT NULL AND sent_at IS NOT NULL ORDER BY operation_id`)
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var us [3]int64
			err := scan(&us[0], &us[1], &us[2])
			for i := range us {
				parts[i] = append(parts[i], time.Duration(us[i])*time.Microsecond)
			}
			return err
		})
	})
	if err != nil || len(parts[0]) <= quietSales {
		return fmt.Sprint("nothing is known ", err)
	}
	line := ""
	for i, name := range []string{"taken", "sent", "ended"} {
		sorted := slices.Sorted(slices.Values(parts[i][quietSales:]))
		line += fmt.Sprintf("%s %s/%s  ", name, sorted[len(sorted)/2].Round(time.Millisecond),
			sorted[len(sorted)*99/100].Round(time.Millisecond))
	}
	return line
}

// String is the figures in one line.
func (q *quiet) String() (line string) {
	for _, name := range quietAsks {
		sorted := slices.Sorted(slices.Values(q.took[name]))
		if len(sorted) == 0 {
			continue
		}
		line += fmt.Sprintf("%s %s/%s  ", name, sorted[len(sorted)/2].Round(time.Millisecond),
			sorted[len(sorted)*99/100].Round(time.Millisecond))
	}
	return line + fmt.Sprintf("(p50/p99; %d not answered with success)", q.refused)
}
