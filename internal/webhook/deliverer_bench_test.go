package webhook_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/webhook"
)

// eachEngine runs a benchmark on both.
func eachEngine(b *testing.B, fn func(b *testing.B, d *db.DB)) {
	b.Run("sqlite", func(b *testing.B) { fn(b, dbtest.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { fn(b, dbtest.Postgres(b)) })
}

// BenchmarkDeliveries measures signed deliveries over HTTPS, the receiver on the
// same cores: events are stored first, then the deliverer is opened.
func BenchmarkDeliveries(b *testing.B) {
	for _, clients := range []int{1, 20} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			eachEngine(b, func(b *testing.B, d *db.DB) {
				var count atomic.Int64
				all := make(chan struct{})
				o, _ := newTown(b, d, clients, func(int) http.Handler {
					return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
						if count.Add(1) == int64(b.N) {
							close(all)
						}
					})
				})
				fill(b, o, b.N, clients)
				b.ResetTimer()
				cpu := cpuTime()
				stop := o.open(b)
				<-all
				stop()
				b.StopTimer()
				b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-us/op")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			})
		})
	}
}

// cpuTime is what this process has used: a figure that other work on the machine does not blur.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newTown is an office with many clients, each with a receiver of its own.
func newTown(t testing.TB, d *db.DB, clients int, handler func(i int) http.Handler,
	options ...officeOption) (*office, []string) {
	t.Helper()
	ca := must(newAuthority())(t)
	o := newOffice(t, d, roots(t, ca), options...)
	urls := make([]string, clients)
	for i := range clients {
		s := serveTLS(t, ca, "127.0.0.1:0", handler(i), "127.0.0.1")
		urls[i] = s.URL + "/hook"
		o.change(func(targets map[string]string, keys map[string]webhook.Keys) {
			targets[clientNo(i)], keys[clientNo(i)] = urls[i], webhook.Keys{Current: key("k1")}
		})
	}
	return o, urls
}

func clientNo(i int) string { return fmt.Sprintf("c_%03d", i) }

func fill(b testing.TB, o *office, n, clients int) {
	for n > 0 {
		batch := make([]webhook.Event, min(n, 200))
		for i := range batch {
			id := fmt.Sprintf("op-%d", n-i)
			batch[i] = webhook.Event{ClientID: clientNo((n - i) % clients), Type: webhook.TransactionCompleted, ResourceID: id,
				ResourcePath: "/v1/transactions/" + id, Series: "s/" + id}
		}
		o.notify(b, batch...)
		n -= len(batch)
	}
}

// BenchmarkFirstTry measures event → first attempt at a steady 300 per second:
// alone, with 100,000 retries that wait for their instant, and with 100,000 that
// are due but held back by the open breaker of another client's receiver.
func BenchmarkFirstTry(b *testing.B) {
	for _, c := range []struct {
		name  string
		after time.Duration
		n     int
	}{{"alone", 0, 0}, {"waiting", 5 * time.Hour, 100_000}, {"paused", -time.Hour, 100_000}} {
		b.Run(c.name, func(b *testing.B) {
			eachEngine(b, func(b *testing.B, d *db.DB) {
				benchFirstTry(b, d, func(o *office) {
					o.change(func(targets map[string]string, keys map[string]webhook.Keys) {
						targets["c_dead"], keys["c_dead"] = "https://127.0.0.1:1/nobody", webhook.Keys{Current: key("k1")}
					})
					fillWaiting(b, d, c.n, c.after)
				})
			})
		})
	}
}

func benchFirstTry(b *testing.B, d *db.DB, before func(*office)) {
	const rate, clients = 300, 20
	var mu sync.Mutex
	begun, took := map[string]time.Time{}, []time.Duration(nil)
	all := make(chan struct{})
	inbox := newInbox()
	inbox.answer = func(_ int, r received, _ http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		took = append(took, r.at.Sub(begun[r.ResourceID]))
		if len(took) == b.N {
			close(all)
		}
	}
	o, _ := newTown(b, d, clients, func(int) http.Handler { return inbox }, func(c *webhook.Config) {
		c.Ladder.Base, c.Pace.ProbeEvery = time.Hour, time.Hour
	})
	before(o)
	stop := o.open(b)
	b.ResetTimer()
	cpu := cpuTime()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var writes sync.WaitGroup
	for i := range b.N {
		<-tick.C
		id := fmt.Sprintf("fresh-%d", i)
		writes.Go(func() {
			mu.Lock()
			begun[id] = time.Now()
			mu.Unlock()
			o.notify(b, webhook.Event{ClientID: clientNo(i % clients), Type: webhook.TransactionCompleted, ResourceID: id,
				ResourcePath: "/v1/transactions/" + id, Series: "s/" + id})
		})
	}
	<-all
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-us/op")
	writes.Wait()
	stop()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// fillWaiting stores events of one client whose fourth try is due after some time.
func fillWaiting(b testing.TB, d *db.DB, n int, after time.Duration) {
	b.Helper()
	created, due := d.Now(), db.Micros(d.Now().Add(after))
	for n > 0 {
		rows := make([][]any, min(n, 2000))
		for i := range rows {
			id := fmt.Sprintf("old-%d", n-i)
			rows[i] = []any{fmt.Sprintf("%012x%028x", created.UnixMilli(), n-i), "c_dead", webhook.TransactionCompleted, id,
				"/v1/transactions/" + id,
				"c_dead " + webhook.TransactionCompleted, "pending", int64(3), int64(3), db.Micros(created), due + int64(n-i)}
		}
		err := d.Write(b.Context(), func(tx *db.Tx) error {
			return tx.Insert("webhook_events",
				"webhook_id,client_id,event_type,resource_id,resource_path,lane,status,tries,rung,created_at,due_at", rows...)
		})
		if err != nil {
			b.Fatal(err)
		}
		n -= len(rows)
	}
}

// BenchmarkIsolation measures 99 receivers at a steady 300 events per second in
// all, alone and beside one that answers one byte per second.
func BenchmarkIsolation(b *testing.B) {
	for _, slow := range []bool{false, true} {
		b.Run(fmt.Sprintf("slow=%v", slow), func(b *testing.B) {
			eachEngine(b, func(b *testing.B, d *db.DB) { benchIsolation(b, d, slow) })
		})
	}
}

// dribble answers one byte per second until the benchmark is over: a hijacked
// connection is not ended by its server.
func dribble(over <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		for _, c := range "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" {
			if _, err := conn.Write([]byte(string(c))); err != nil {
				return
			}
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
		}
	}
}

func benchIsolation(b *testing.B, d *db.DB, slow bool) {
	const rate, clients = 300, 100
	var mu sync.Mutex
	begun, took := map[string]time.Time{}, []time.Duration(nil)
	all := make(chan struct{})
	want := 0
	for i := range b.N {
		if i%clients != 0 {
			want++
		}
	}
	if want == 0 {
		return // the trial run of one
	}
	o, _ := newTown(b, d, clients, func(i int) http.Handler {
		if i == 0 && slow {
			return dribble(b.Context().Done())
		}
		in := newInbox()
		in.answer = func(_ int, r received, _ http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, r.at.Sub(begun[r.ResourceID])); i != 0 && len(took) >= want {
				select {
				case <-all:
				default:
					close(all)
				}
			}
		}
		return in
	}, func(c *webhook.Config) { c.Grace = time.Millisecond })
	var backlog []webhook.Event
	for i := range 1000 {
		id := fmt.Sprint("backlog-", i)
		backlog = append(backlog, webhook.Event{ClientID: clientNo(0), Type: webhook.TransactionCompleted, ResourceID: id,
			ResourcePath: "/" + id})
	}
	if slow {
		o.notify(b, backlog...)
	}
	stop := o.open(b)
	b.ResetTimer()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var writes sync.WaitGroup
	for i := range b.N {
		<-tick.C
		id := fmt.Sprintf("fresh-%d", i)
		writes.Go(func() {
			mu.Lock()
			begun[id] = time.Now()
			mu.Unlock()
			o.notify(b, webhook.Event{ClientID: clientNo(i % clients), Type: webhook.TransactionCompleted, ResourceID: id,
				ResourcePath: "/" + id})
		})
	}
	<-all
	b.StopTimer()
	writes.Wait()
	stop()
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
