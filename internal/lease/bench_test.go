package lease_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
)

// BenchmarkLeases claims rows, works nothing and completes them, on an empty
// queue and with half a million rows that wait for later.
func BenchmarkLeases(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d := open(b)
				q := leaseTable(b, d)
				bestDrain(b, d, q, "warm")
				empty := bestDrain(b, d, q, "now")
				leaseRows(b, d, "later", 500_000, d.Now().Add(time.Hour))
				bestDrain(b, d, q, "warm again")
				loaded := bestDrain(b, d, q, "again")
				b.ReportMetric(empty, "rows/s")
				b.ReportMetric(loaded, "rows/s-500k-waiting")
				b.ReportMetric(loaded/empty, "x-loaded")
			}
		})
	}
}

// bestDrain is the best of three rates: other work on the machine makes some too low, none too high.
func bestDrain(b testing.TB, d *db.DB, q *lease.Queue[struct{}], prefix string) (best float64) {
	b.Helper()
	const n = 10_000
	for i := range 3 {
		leaseRows(b, d, prefix+strconv.Itoa(i), n, d.Now().Add(-time.Minute))
		best = max(best, drain(b, d, q, n))
	}
	return best
}

func drain(b testing.TB, d *db.DB, q *lease.Queue[struct{}], n int) float64 {
	b.Helper()
	start := time.Now()
	for done := 0; done < n; {
		leases, _, err := q.Due(context.Background(), d, lease.Claim{Max: 500})
		must(b, err)
		must(b, d.Write(context.Background(), func(tx *db.Tx) error { return finishAll(tx, leases, time.Time{}) }))
		done += len(leases)
	}
	return float64(n) / time.Since(start).Seconds()
}

func leaseTable(b testing.TB, d *db.DB) *lease.Queue[struct{}] {
	b.Helper()
	for _, text := range dbtest.LeaseTable("work") {
		must(b, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(text) }))
	}
	return &lease.Queue[struct{}]{Table: "work", ID: "id", Key: "fair"}
}

func leaseRows(b testing.TB, d *db.DB, prefix string, n int, due time.Time) {
	b.Helper()
	for from := 0; from < n; from += 5000 {
		rows := make([][]any, 0, 5000)
		for i := from; i < min(n, from+5000); i++ {
			rows = append(rows, []any{fmt.Sprintf("%s-%09d", prefix, i), "key" + strconv.Itoa(i%10), db.Micros(due) + int64(i)})
		}
		must(b, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Insert("work", "id,fair,due_at", rows...) }))
	}
}
