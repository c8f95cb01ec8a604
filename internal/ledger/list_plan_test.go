package ledger_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/needs"
)

// manyOf stores so many operations of one client, of 200 days that are not in
// the order of their ids: three of four are of one supplier, few failed, and the
// oldest are of another country. Those are open for which a condition holds; of
// the client "open" a quarter failed.
func manyOf(t testing.TB, d *db.DB, n int, client, open string) {
	t.Helper()
	execSQL(t, d, strings.ReplaceAll(`WITH RECURSIVE g(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < $1 - 1) INSERT INTO operations
		(operation_id, client_id, transaction_id, attempt, kind, country, live, use_case, supplier_id, number, dated_at, accepted_at, lane, stage, status, due_at, pack_version)
		SELECT $2 || substr(CAST(1000000000000 + i AS TEXT), 2), $3, 't' || i, 1, 'INVOICE',
			CASE WHEN i < 20 THEN 'YY' WHEN i % 10 = 0 THEN 'ZZ' ELSE 'XX' END, false, 'BOTH',
			CASE WHEN i % 4 > 0 THEN 'big' ELSE 's' || (i % 400) END, 'N-' || i, (20000 + i * 7919 % 200) * 86400000000 + i, i, $4,
			CASE WHEN (open) THEN 'received' ELSE 'settled' END,
			CASE WHEN (open) THEN 'PROCESSING' WHEN i % 50 = 0 OR $3 = 'open' AND i % 4 = 2 THEN 'FAILURE' ELSE 'SUCCESS' END,
			CASE WHEN (open) AND i % 2 = 0 THEN i END, '1' FROM g`, "(open)", "("+open+")"),
		n, map[string]string{"many": "0190c1f0-0000-7000-8000-", "open": "0190c1f1-0000-7000-8000-"}[client], client, client+"|XX|test|0|s")
}

// ofDay is an instant of one of the days of manyOf.
func ofDay(day int) time.Time { return db.FromMicros(int64(20000+day) * 86_400_000_000) }

// manyFilters are filters of lists, with the indexes that may answer them.
func manyFilters() map[string]struct {
	ledger.Filter
	indexes string
} {
	const supplier, days, open = "operations_by_supplier", "operations_by_day", "operations_idle_by_client operations_lane"
	return map[string]struct {
		ledger.Filter
		indexes string
	}{
		"everything":           {ledger.Filter{}, "operations_by_client"},
		"successes":            {ledger.Filter{Status: filing.Success}, "operations_by_client"},
		"failures":             {ledger.Filter{Status: filing.Failure}, "operations_failed_by_client"},
		"open":                 {ledger.Filter{Status: filing.Processing}, open},
		"number":               {ledger.Filter{Number: "N-17"}, "operations_by_number"},
		"supplier":             {ledger.Filter{SupplierID: "s4"}, supplier + " " + open},
		"a large supplier":     {ledger.Filter{SupplierID: "big"}, supplier + " " + open},
		"supplier's failures":  {ledger.Filter{SupplierID: "s0", Status: filing.Failure}, supplier},
		"supplier's open ones": {ledger.Filter{SupplierID: "s4", Status: filing.Processing}, open},
		"country":              {ledger.Filter{Country: "YY"}, days + " " + open},
		"failures of a country": {ledger.Filter{Country: "ZZ", Status: filing.Failure},
			days},
		"days":                {ledger.Filter{From: ofDay(3), To: ofDay(5)}, days + " " + open},
		"since":               {ledger.Filter{From: ofDay(198)}, days + " " + open},
		"until":               {ledger.Filter{To: ofDay(2)}, days + " " + open},
		"days of a country":   {ledger.Filter{From: ofDay(0), To: ofDay(90), Country: "YY"}, days + " " + open},
		"no such day":         {ledger.Filter{From: ofDay(900), To: ofDay(901)}, days + " " + open},
		"supplier's days":     {ledger.Filter{From: ofDay(3), To: ofDay(90), SupplierID: "s4"}, supplier + " " + open},
		"days of a large one": {ledger.Filter{From: ofDay(3), To: ofDay(5), SupplierID: "big"}, days + " " + open},
	}
}

var operationsIndex = regexp.MustCompile(`\b(operations_\w+|sqlite_autoindex_operations_1)\b`)

// However many operations a client has, each filter of a list has an index that
// finds the newest of what it names, and the planner takes it.
func TestEachFilterOfAListHasAnIndex(t *testing.T) {
	needs.NotRaced(t, "thousands of operations")
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup())
		manyOf(t, d, 20_000, "many", "i % 333 < 2")
		manyOf(t, d, 20_000, "open", "i % 4 < 2") // a neighbour of whom much is open, and much failed
		for _, known := range []string{"without statistics", "with statistics"} {
			if known == "with statistics" {
				execSQL(t, d, "ANALYZE operations")
			} else if d.Engine() == "postgres" {
				continue // autovacuum takes them
			}
			for name, c := range manyFilters() {
				for _, after := range []string{"", "0190c1f0-0000-7000-8000-000000009000"} {
					c.Limit, c.After = 100, after
					checkPlans(t, n, known+", "+name, c.Filter, strings.Fields(c.indexes))
				}
			}
		}
	})
}

func checkPlans(t *testing.T, n *node, name string, f ledger.Filter, indexes []string) {
	t.Helper()
	var sources []ledger.Statement
	var pick ledger.Statement
	must(t, n.DB.Read(t.Context(), func(r db.Reader) (err error) {
		sources, pick, err = n.ListStatements(r, "many", f)
		return err
	}))
	primary := map[string]string{"postgres": "operations_pkey", "sqlite": "sqlite_autoindex_operations_1"}[n.DB.Engine()]
	var used []string
	for _, s := range sources {
		found := indexesOf(t, n.DB, s, name)
		if strings.HasPrefix(s.Text, "WITH") { // it knows ids and looks up whose they are
			found = slices.DeleteFunc(found, func(index string) bool { return index == primary })
		}
		for i, index := range found {
			// Where PostgreSQL believes that a client's share of what is open is its share of all,
			// it may read what is open of everybody. That is bounded as well: nothing settled is among it.
			if own, alike := map[string]string{"operations_due": "operations_lane", "operations_idle": "operations_idle_by_client"}[index]; alike {
				found[i] = own
			}
		}
		used = append(used, found...)
	}
	if used = sorted(used); !slices.Equal(used, sorted(indexes)) {
		t.Errorf("%s: %v, want %v", name, used, indexes)
	}
	if used := indexesOf(t, n.DB, pick, name); !slices.Equal(used, []string{primary}) {
		t.Errorf("%s: ids are picked by %v, want %s", name, used, primary)
	}
}

// indexesOf are the indexes of operations in a plan, which reads nothing without one.
func indexesOf(t *testing.T, d *db.DB, s ledger.Statement, name string) []string {
	t.Helper()
	plan := planOf(t, d, s)
	for _, line := range plan {
		if line = strings.TrimSpace(line); regexp.MustCompile(`SCAN (operations|[ilx])\b|Seq Scan on operations`).MatchString(line) {
			t.Errorf("%s: %s\n%s\n%s", name, line, s.Text, strings.Join(plan, "\n"))
		}
	}
	return sorted(operationsIndex.FindAllString(strings.Join(plan, "\n"), -1))
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// Whatever a list is filtered by, its pages together hold what the filter names,
// each once and the newest first; and where one index has all of it, all pages
// but the last are full.
func TestPagesOfAListHoldWhatItsFilterNames(t *testing.T) {
	needs.NotRaced(t, "thousands of operations")
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup())
		manyOf(t, d, 6000, "many", "i % 333 < 2")
		manyOf(t, d, 6000, "open", "i > 100") // more than are sorted
		for name, c := range manyFilters() {
			for _, scope := range []string{"many", "open"} {
				checkPages(t, n, scope+", "+name, scope, c.Filter, !strings.Contains(c.indexes, "operations_lane") && scope == "many")
			}
		}
	})
}

// checkPages compares all pages with what one statement finds.
func checkPages(t *testing.T, n *node, name, scope string, f ledger.Filter, full bool) {
	t.Helper()
	where, args := "client_id = $1", []any{scope}
	narrow := func(condition string, value any, set bool) {
		if set {
			args = append(args, value)
			where += fmt.Sprintf(" AND %s $%d", condition, len(args))
		}
	}
	narrow("status =", string(f.Status), f.Status != "")
	narrow("number =", f.Number, f.Number != "")
	narrow("supplier_id =", f.SupplierID, f.SupplierID != "")
	narrow("country =", f.Country, f.Country != "")
	narrow("dated_at >=", db.Micros(f.From), !f.From.IsZero())
	narrow("dated_at <=", db.Micros(f.To), !f.To.IsZero())
	var want []string
	must(t, n.DB.Read(t.Context(), func(r db.Reader) (err error) {
		want, err = db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
			"SELECT operation_id FROM operations WHERE "+where+" ORDER BY operation_id DESC", args...)
		return err
	}))
	var ids []string
	for f.Limit = max(5, len(want)/7); ; {
		page, next, err := n.Listed(context.Background(), scope, f)
		must(t, err)
		ids = append(ids, page...)
		if len(page) < f.Limit && next != "" && full && f.Status != filing.Success {
			t.Errorf("%s: a page of %d of %d is not the last", name, len(page), f.Limit)
		}
		if next == "" || f.After != "" && next >= f.After {
			break
		}
		f.After = next
	}
	same(t, name, fmt.Sprint(ids), fmt.Sprint(want))
}
