package schema_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

const benchOperation = `INSERT INTO operations (operation_id, client_id, transaction_id, attempt, kind, country, live, use_case, supplier_id, number, dated_at, accepted_at, lane, stage, status, pack_version, result)
	SELECT 'o' || lpad(n::text, 8, '0'), 'c' || n % 50, 't' || n, 1, 'INVOICE', 'XX', false, 'BOTH', 's', 'N' || n, n, n, 'c' || n % 50 || '|XX|test|0|s', 'settled', 'FAILURE', 'xx-1', repeat('x', 1000)
	FROM generate_series(1, 100000) AS n`

// BenchmarkRowSecurity is the price of the second wall: the same statements, which name their client, with and without
// the role and its policies; and a write as the owner and as the role that serves.
func BenchmarkRowSecurity(b *testing.B) {
	served, owner := dbtest.ServedURL(b)
	d, mine := dbtest.Open(b, db.Config{URL: served}), dbtest.Open(b, db.Config{URL: owner, NoWorkers: true})
	for _, statement := range []string{benchOperation,
		"INSERT INTO bodies (operation_id, body) SELECT operation_id, 'body' FROM operations", "ANALYZE"} {
		if err := mine.Write(b.Context(), func(tx *db.Tx) error { return tx.Exec(statement) }); err != nil {
			b.Fatal(err)
		}
	}
	ids := func(r db.Reader, text string, args ...any) error {
		_, err := db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) }, text, args...)
		return err
	}
	reads := map[string]func(r db.Reader, n int) error{
		"operation": func(r db.Reader, n int) error {
			return ids(r, "SELECT result FROM operations WHERE operation_id = $1 AND client_id = $2", fmt.Sprintf("o%08d", n),
				fmt.Sprint("c", n%50))
		},
		"body": func(r db.Reader, n int) error {
			return ids(r, "SELECT operation_id FROM bodies WHERE operation_id = $1", fmt.Sprintf("o%08d", n))
		},
		"page": func(r db.Reader, n int) error {
			return ids(r, `SELECT operation_id FROM operations WHERE client_id = $1 AND NOT EXISTS (SELECT 1 FROM period_documents d WHERE d.operation_id = operations.operation_id)
				AND operation_id < $2 ORDER BY operation_id DESC LIMIT 101`, fmt.Sprint("c", n%50), fmt.Sprintf("o%08d", n))
		},
	}
	for name, read := range reads {
		b.Run("read="+name, func(b *testing.B) {
			compare(b, "without", "with", func(walled bool, n int) error {
				ctx := db.WithReadBudget(b.Context(), db.ReadBudget)
				if walled {
					ctx = db.ForClient(ctx, fmt.Sprint("c", n%50))
				}
				return d.Read(ctx, func(r db.Reader) error { return read(r, n) })
			})
		})
	}
	b.Run("write", func(b *testing.B) {
		next := 0
		compare(b, "owner", "serve", func(serving bool, _ int) error {
			on := mine
			if serving {
				on = d
			}
			next++
			id := fmt.Sprintf("w%08d-%d", next, b.N)
			return on.Write(b.Context(), func(tx *db.Tx) error {
				if err := tx.Insert("transactions", "client_id,transaction_id,attempts,open", []any{"c1", id, 1, 1}); err != nil {
					return err
				}
				return tx.Insert("bodies", "operation_id,body", []any{id, []byte("body")})
			})
		})
	})
}

// compare takes turns of fifty with two ways to do the same and reports the median of each: whatever else the machine
// does meets both.
func compare(b *testing.B, one, other string, do func(second bool, n int) error) {
	b.Helper()
	var took [2][]time.Duration
	for i := 0; b.Loop(); i++ {
		which := i / 50 % 2
		began := time.Now()
		if err := do(which == 1, 1+(i*7919)%100000); err != nil {
			b.Fatal(err)
		}
		took[which] = append(took[which], time.Since(began))
	}
	for i, name := range []string{one, other} {
		if slices.Sort(took[i]); len(took[i]) > 0 {
			b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds()), name+"-µs")
		}
	}
}
