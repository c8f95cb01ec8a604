package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/needs"
)

// TestOverloadIsRefusedQuicklyAndNothingAcceptedIsLost asks for far more than
// the program can store: whoever is not served hears so at once and when to
// come back, and every 202 is kept.
func TestOverloadIsRefusedQuicklyAndNothingAcceptedIsLost(t *testing.T) {
	needs.Long(t, "it asks for far more than the machine can do")
	s := newStage(t, fastBinary(t), 1, false)
	s.nodes[0].process.waitReady()
	land := crashCountryOf(t, "XX")
	supplier := s.onboard(land)
	// patience is not what is tested
	s.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}
	const callers, each = 2700, 1 // more at a time than the intake lets wait
	var accepted sync.Map
	var taken, refused atomic.Int64
	var slowest atomic.Int64
	full := make(chan struct{}) // somebody was refused
	first := sync.OnceFunc(func() { close(full) })
	var wg sync.WaitGroup
	release := s.hold(full)
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				id := fmt.Sprintf("over-%d-%d", i, n)
				began := time.Now()
				status, answer, err := s.post(s.nodes[0].base, "/v1/transactions", land.body(id, id, supplier, time.Now()))
				switch {
				case err != nil:
					t.Errorf("%s: %v", id, err)
				case status == http.StatusAccepted:
					var got struct {
						OperationID string `json:"operation_id"`
					}
					if json.Unmarshal(answer, &got) != nil {
						t.Errorf("%s: %s", id, answer)
					}
					accepted.Store(got.OperationID, id)
					taken.Add(1)
				case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
					refused.Add(1)
					first()
					slowest.Store(max(slowest.Load(), int64(time.Since(began))))
				default:
					t.Errorf("%s: %d %s", id, status, answer)
				}
			}
		})
	}
	wg.Wait()
	release()
	t.Logf("%d accepted, %d refused, the slowest refusal after %s", taken.Load(), refused.Load(),
		time.Duration(slowest.Load()).Round(time.Millisecond))
	if taken.Load() == 0 {
		t.Error("nothing was accepted")
	}
	if refused.Load() == 0 {
		t.Error("nobody was refused: the run proves nothing")
	}
	var ids []string
	accepted.Range(func(op, _ any) bool { ids = append(ids, op.(string)); return true })
	if left := s.awaitTold(ids); len(left) > 0 {
		t.Errorf("%d of %d accepted sales were never announced, the first: %s", len(left), len(ids), left[0])
	}
}

// hold keeps the database's write lock, as a slow disk would, until the intake
// is full: what waits behind a lock cannot answer, so whoever is refused
// meanwhile was refused at once. It lets go for a moment before anybody's
// patience ends. The answer ends it in any case.
func (s *stage) hold(full <-chan struct{}) (release func()) {
	s.t.Helper()
	ctx := s.t.Context()
	guest, err := db.Open(ctx, db.Config{URL: s.database, NoWorkers: true})
	if err != nil {
		s.t.Fatal(err)
	}
	held, over := make(chan struct{}), make(chan struct{})
	take := sync.OnceFunc(func() { close(held) })
	var holder sync.WaitGroup
	holder.Go(func() {
		defer take()
		for waiting := true; waiting; {
			err := guest.Write(ctx, func(*db.Tx) error {
				take()
				select {
				case <-full:
					waiting = false
				case <-over:
					waiting = false
				case <-time.After(4 * time.Second):
				}
				return nil
			})
			if err != nil {
				s.t.Errorf("hold the write lock: %v", err)
				return
			}
		}
	})
	<-held
	return func() {
		close(over)
		holder.Wait()
		if err := guest.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// TestSoak submits at half of what the program settles, for TRIBUTARY_SOAK
// (make soak: ten minutes), and wants memory, goroutines and file descriptors
// to stay flat. make long runs it for a minute.
func TestSoak(t *testing.T) {
	lasts := time.Minute
	if text := os.Getenv("TRIBUTARY_SOAK"); text == "" {
		needs.Long(t, "a minute of load; make soak takes ten")
	} else {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newStage(t, os.Args[0], 1, false)
	n := s.nodes[0]
	n.process.waitReady()
	land := crashCountryOf(t, "XX")
	supplier := s.onboard(land)
	var next atomic.Int64
	one := func() {
		id := fmt.Sprintf("soak-%07d", next.Add(1))
		status, answer, err := s.post(n.base, "/v1/transactions", land.body(id, id, supplier, time.Now()))
		if err != nil || status != http.StatusAccepted {
			t.Errorf("%s: %d %s %v", id, status, answer, err)
		}
	}
	every := 2 * s.pace(one, &next)
	t.Logf("one sale every %s for %s", every.Round(10*time.Microsecond), lasts)
	samples := s.sample(lasts, every, one)
	if len(samples) < 9 {
		t.Logf("%d samples: too short to judge", len(samples))
		return
	}
	warm, third := len(samples)/10, len(samples)/3
	for _, name := range []string{"process_resident_memory_bytes", "go_goroutines", "process_open_fds"} {
		early, late := middle(samples[warm:warm+third], name), middle(samples[len(samples)-third:], name)
		t.Logf("%s: %.0f at first, %.0f at last", name, early, late)
		if lasts < time.Minute && name == "process_resident_memory_bytes" {
			continue // seconds after its start a process still fills its caches and the heap up to its floor
		}
		if late > early*1.15+16 {
			t.Errorf("%s grows: %.0f at first, %.0f at last", name, early, late)
		}
	}
}

// pace measures how fast sales are settled and told, and answers the time for one.
func (s *stage) pace(one func(), next *atomic.Int64) time.Duration {
	const sample = 400
	began := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range sample / 8 {
				one()
			}
		})
	}
	wg.Wait()
	s.eventually("the sample settled", func() bool { return s.receiver.count() >= int(next.Load()) })
	return time.Since(began) / sample
}

// sample submits at a pace and reads the program's own figures meanwhile.
func (s *stage) sample(lasts, every time.Duration, one func()) (list []map[string]float64) {
	stop := time.After(lasts)
	submit, look := time.NewTicker(every), time.NewTicker(max(lasts/60, 500*time.Millisecond))
	defer submit.Stop()
	defer look.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, 64)
	for {
		select {
		case <-stop:
			return list
		case <-submit.C:
			slots <- struct{}{}
			wg.Go(func() { one(); <-slots })
		case <-look.C:
			list = append(list, s.metrics())
		}
	}
}

// metrics reads the plain figures of the admin listener.
func (s *stage) metrics() map[string]float64 {
	answer, err := s.client.Get("http://" + flag(s.nodes[0].args, "--admin") + "/metrics")
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer answer.Body.Close()
	all := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if f, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = f
		}
	}
	return all
}

// middle is the median of a figure.
func middle(samples []map[string]float64, name string) float64 {
	var list []float64
	for _, s := range samples {
		list = append(list, s[name])
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// count is how many resources were announced.
func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

func flag(args []string, name string) string {
	for i, a := range args {
		if a == name {
			return args[i+1]
		}
	}
	return ""
}
