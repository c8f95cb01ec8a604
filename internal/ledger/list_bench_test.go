package ledger_test

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// listMax is what a page of a list may take at the 99th percentile.
const listMax = 50 * time.Millisecond

// BenchmarkListsOfAClient finds the pages of each filter's list, of a client with
// TRIBUTARY_BENCH_STORED operations (default 10,000; 1,000,000 is the promise), and
// fails where the 99th percentile is more than listMax.
//
//	TRIBUTARY_BENCH_STORED=1000000 go test -run '^$' -bench ListsOfAClient -benchtime 200x -timeout 2h ./internal/ledger
func BenchmarkListsOfAClient(b *testing.B) {
	stored, err := strconv.Atoi(cmp.Or(os.Getenv("TRIBUTARY_BENCH_STORED"), "10000"))
	must(b, err)
	for _, engine := range []struct {
		name string
		open func(testing.TB) *db.DB
	}{{"sqlite", dbtest.SQLite}, {"postgres", dbtest.Postgres}} {
		b.Run(engine.name, func(b *testing.B) {
			n := newNode(b, engine.open(b), newAuthorities(b).Setup())
			manyOf(b, n.DB, stored, "many", "i % 3333 < 2")
			execSQL(b, n.DB, "ANALYZE operations")
			for name, c := range manyFilters() {
				b.Run(name, func(b *testing.B) {
					var took []time.Duration
					c.Limit = 100
					for b.Loop() {
						began := time.Now()
						_, _, err := n.Ledger.Listed(db.WithReadBudget(b.Context(), db.ReadBudget), "many", c.Filter)
						must(b, err)
						took = append(took, time.Since(began))
					}
					slices.Sort(took)
					p99 := took[len(took)*99/100]
					b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
					if p99 > listMax {
						b.Errorf("%s at the 99th percentile, more than %s", p99, listMax)
					}
				})
			}
		})
	}
}
