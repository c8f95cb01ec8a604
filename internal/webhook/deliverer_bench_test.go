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
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) //nolint:errcheck // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// newTown is an office with many clients, each with a receiver of its own.
func newTown(t testing.TB, d *db.DB, clients int, handler func(i int) http.Handler, options ...officeOption) (*office, []string) {
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
			batch[i] = webhook.Event{ClientID: clientNo((n - i) % clients), Type: webhook.TransactionCompleted, ResourceID: id, ResourcePath: "/v1/transactions/" + id, Series: "s/" + id}
		}
		o.notify(b, batch...)
		n -= len(batch)
	}
}

// BenchmarkFirstTry measures event → first attempt at a steady 300 per second,
// without and with 100,000 retries that wait.
func BenchmarkFirstTry(b *testing.B) {
	for _, waiting := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			eachEngine(b, func(b *testing.B, d *db.DB) { benchFirstTry(b, d, waiting) })
		})
	}
}

func benchFirstTry(b *testing.B, d *db.DB, waiting int) {
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
	o, _ := newTown(b, d, clients, func(int) http.Handler { return inbox })
	fillWaiting(b, d, waiting, clients)
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
			o.notify(b, webhook.Event{ClientID: clientNo(i % clients), Type: webhook.TransactionCompleted, ResourceID: id, ResourcePath: "/v1/transactions/" + id, Series: "s/" + id})
		})
	}
	<-all
	b.StopTimer()
	writes.Wait()
	stop()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// fillWaiting stores events whose fourth try is hours away.
func fillWaiting(b testing.TB, d *db.DB, n, clients int) {
	b.Helper()
	created, later := d.Now(), db.Micros(d.Now().Add(5*time.Hour))
	for n > 0 {
		rows := make([][]any, min(n, 2000))
		for i := range rows {
			id, lane := fmt.Sprintf("old-%d", n-i), clientNo(i%clients)
			rows[i] = []any{fmt.Sprintf("%012x%028x", created.UnixMilli(), n-i), lane, webhook.TransactionCompleted, id, "/v1/transactions/" + id,
				lane + " " + webhook.TransactionCompleted, "pending", int64(3), int64(3), db.Micros(created), later + int64(n-i)}
		}
		err := d.Write(b.Context(), func(tx *db.Tx) error {
			return tx.Insert("webhook_events", "webhook_id,client_id,event_type,resource_id,resource_path,lane,status,tries,rung,created_at,due_at", rows...)
		})
		if err != nil {
			b.Fatal(err)
		}
		n -= len(rows)
	}
}
