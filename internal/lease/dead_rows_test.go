package lease_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// deadRiders lets rows become due and be worked while somebody holds an old
// snapshot, so that the server cannot remove what they were.
func deadRiders(t testing.TB, url string, d *db.DB, dead int) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // a test's own connection
	_, err = conn.Exec(context.Background(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM test_riders")
	must(t, err)
	const step = 20_000
	for from := 0; from < dead; from += step {
		must(t, d.Write(context.Background(), func(tx *db.Tx) error {
			return tx.Exec(fmt.Sprintf("INSERT INTO test_riders (id, lane, due_at) SELECT 'dead' || i, 'c' || (i %% 20) || '|lane' || (i %% 500), %d + i FROM generate_series(%d, %d) AS n(i)",
				db.Micros(tx.Now().Add(-time.Minute)), from+1, min(from+step, dead)))
		}))
		must(t, d.Write(context.Background(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE test_riders SET due_at = NULL WHERE due_at IS NOT NULL")
		}))
	}
	_, err = conn.Exec(context.Background(), "SELECT 1") // it is still there
	must(t, err)
}

// A claim must not read everything that was ever due. p99 is what counts: every
// sale waits for a claim.
func BenchmarkClaimsBesideDeadRows(b *testing.B) {
	for _, dead := range []int{0, 500_000} {
		b.Run(fmt.Sprint(dead, " dead"), func(b *testing.B) {
			url := dbtest.MigratedURL(b)
			d := dbtest.Open(b, db.Config{URL: url})
			q := lanes(b, d)
			deadRiders(b, url, d, dead)
			pump := lease.NewClaims(q)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				addRiders(b, d, []any{fmt.Sprint("live", i), fmt.Sprintf("c%d|lane%d", i%20, i%500), db.Micros(d.Now())})
				asked := time.Now()
				leases, err := pump.Claim(context.Background(), d, 32)
				took = append(took, time.Since(asked))
				must(b, err)
				if len(leases) != 1 {
					b.Fatalf("%d lanes were claimed, want the one that is due", len(leases))
				}
				must(b, d.Write(context.Background(), func(tx *db.Tx) error {
					if err := tx.ExecOne("UPDATE test_riders SET due_at = NULL WHERE id = $1", fmt.Sprint("live", i)); err != nil {
						return err
					}
					return leases[0].Finish(tx, time.Time{})
				}))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
		})
	}
}

// What becomes due about now is claimed at once, what somebody set back by hand a little later.
func TestClaimsLookAtEverythingNowAndThen(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := lanes(t, d)
		db.StopClock(d)
		claims := lease.NewClaims(q)
		claim := func() (names []string) {
			t.Helper()
			leases, err := claims.Claim(t.Context(), d, 32)
			must(t, err)
			for _, l := range leases {
				names = append(names, l.ID)
			}
			slices.Sort(names)
			return names
		}
		if got := claim(); len(got) != 0 {
			t.Fatalf("claimed %v of nothing", got)
		}
		now := d.Now()
		addRiders(t, d, []any{"late", "late", db.Micros(now.Add(-db.WriteTimeout))}, []any{"now", "now", db.Micros(now)},
			[]any{"later", "later", db.Micros(now.Add(time.Hour))})
		if got := fmt.Sprint(claim()); got != "[late now]" {
			t.Errorf("claimed %s, want what a slow commit brought and what is due now", got)
		}
		addRiders(t, d, []any{"old", "old", db.Micros(now.Add(-time.Hour))})
		first := claim()
		if d.Engine() == "postgres" {
			if len(first) != 0 {
				t.Errorf("claimed %v: the claim looked at everything again at once", first)
			}
			db.ShiftClock(d, lease.LowWaterWhole+time.Second)
			first = claim()
		}
		if !slices.Contains(first, "old") {
			t.Errorf("claimed %v, want what is due for an hour", first)
		}
	})
}
