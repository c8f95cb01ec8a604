package filing_test

import (
	"fmt"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/needs"
)

// In a store where nearly everything is settled a visit still finds its
// operations by their ids, and does not read whatever else is due.
func TestAVisitFindsItsOperationsByTheirIDs(t *testing.T) {
	needs.NotRaced(t, "thousands of operations")
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup())
		supplier := n.Supplier(byNumber, "s1")
		must(t, n.LoadSettled(t.Context(), caller(client), 3000, func(i int) []byte {
			return invoice(byNumber, supplier, fmt.Sprint("old", i)).Body(t)
		}))
		execSQL(t, d, "ANALYZE operations")
		var ids []string
		for i := range 100 {
			ids = append(ids, n.File(invoice(byNumber, supplier, fmt.Sprint("new", i))))
		}
		var lines []string
		must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
			s := filing.VisitStatement(d, ids)
			lines, err = dbtest.Plan(r, d, s.Text, s.Args...)
			return err
		}))
		plan := strings.Join(lines, "\n")
		index := map[string]string{"postgres": "operations_pkey", "sqlite": "sqlite_autoindex_operations_1"}[d.Engine()]
		if !strings.Contains(plan, index) {
			t.Errorf("the plan does not use %s:\n%s", index, plan)
		}
	})
}

// A lane's row has the parts of its name, and the lanes of a supplier or an
// authority are found among many others by an index.
func TestLanesAreFoundByTheirColumns(t *testing.T) {
	needs.NotRaced(t, "thousands of lanes")
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		n.Settled(n.File(invoice(byNumber, supplier, "first")))
		same(t, "the lane's columns", one[string](t, d,
			"SELECT client_id || '|' || country || '|' || environment || '|' || shard || '|' || supplier_id FROM lanes"),
			one[string](t, d, "SELECT lane FROM lanes"))
		execSQL(t, d, `WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < 5000) INSERT INTO lanes (lane, client_id, country, environment, shard, supplier_id)
			SELECT 'c' || (i % 7) || '|YY|test|0|s' || i, 'c' || (i % 7), 'YY', 'test', 0, 's' || i FROM g`)
		execSQL(t, d, "ANALYZE lanes")
		for index, s := range filing.LaneStatements(d) {
			var lines []string
			must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
				lines, err = dbtest.Plan(r, d, s.Text, s.Args...)
				return err
			}))
			if plan := strings.Join(lines, "\n"); !strings.Contains(plan, index) {
				t.Errorf("the plan does not use %s:\n%s", index, plan)
			}
		}
	})
}
