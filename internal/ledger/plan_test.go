package ledger_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/transaction"
)

// wholeTable matches a plan that reads all of a table: SQLite says SCAN name
// without an index, PostgreSQL Seq Scan on name.
var wholeTable = regexp.MustCompile(
	`SCAN (operations|operation_terms|operation_parts|company_parts|companies|o|t|lanes)$|SCAN (operations|o) USING INDEX sqlite_autoindex_operations_1$|Seq Scan on (operations|operation_terms|operation_parts|company_parts|companies|lanes)`)

func planOf(t testing.TB, d *db.DB, s ledger.Statement) (lines []string) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) (err error) {
		if d.Engine() == "postgres" {
			// A small table is read as a whole whatever indexes it has; this asks whether it must be.
			if _, err := db.Collect(r, func(scan func(...any) error) (v string, err error) {
				return v, scan(&v)
			}, "SELECT set_config('enable_seqscan', 'off', true)"); err != nil {
				return err
			}
		}
		lines, err = dbtest.Plan(r, d, s.Text, s.Args...)
		return err
	}))
	return lines
}

func TestNoSearchReadsAWholeTable(t *testing.T) {
	t.Parallel()
	amount := int64(100)
	queries := map[string]ledger.Query{
		"everything":             {},
		"text":                   {Text: "INV-1"},
		"piece of an id":         {Text: "0190c1f0-00"},
		"amount as text":         {Text: "227.10"},
		"amount":                 {Amount: &amount},
		"text and amount":        {Text: "INV-1", Amount: &amount, Country: "XX"},
		"what waits":             {Reason: "authority_error", Country: "XX"},
		"failures":               {Status: filing.Failure},
		"failures of a country":  {Status: filing.Failure, Country: "XX", Kind: transaction.Credit},
		"client":                 {ClientID: client},
		"successes of a client":  {ClientID: client, Status: filing.Success},
		"country":                {Country: "XX"},
		"country, client, stage": {Country: "XX", ClientID: client, Stage: filing.Pending},
	}
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup())
		check := func(name string, s ledger.Statement) {
			for _, line := range planOf(t, d, s) {
				if line = strings.TrimSpace(line); wholeTable.MatchString(line) && !bounded(s.Text, line) {
					t.Errorf("%s: %s\n%s", name, line, s.Text)
				}
			}
		}
		for name, q := range queries {
			var list []ledger.Statement
			must(t, d.Read(t.Context(), func(r db.Reader) (err error) {
				list, err = n.SearchStatements(r, q)
				return err
			}))
			for _, s := range list {
				check(name, s)
			}
		}
		for _, s := range ledger.OverviewStatements() {
			check("overview", s)
		}
		for _, s := range ledger.PieceStatements() {
			check("pieces", s)
			// PostgreSQL sorts what is little
			if plan := strings.Join(planOf(t, d, s), "\n"); strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("pieces are sorted after they were read:\n%s\n%s", s.Text, plan)
			}
		}
	})
}

// bounded reports whether a walk along the primary key is what was asked for:
// the newest so many, of whatever kind.
func bounded(text, line string) bool {
	return strings.Contains(text, "WHERE 1 = 1") && strings.Contains(line, "autoindex")
}

func TestPlanCheckNoticesAWholeTable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		lines := planOf(t, d, ledger.Statement{Text: "SELECT operation_id FROM operations WHERE use_case = $1",
			Args: []any{"x"}})
		for _, line := range lines {
			if wholeTable.MatchString(strings.TrimSpace(line)) {
				return
			}
		}
		t.Errorf("the plan of a query without an index looks fine: %v", lines)
	})
}

func TestTheIndexerBeginsWhereItStopped(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	plan := strings.Join(planOf(t, d, ledger.NextStatement()), "\n")
	for _, table := range []string{"operations", "bodies"} {
		if !regexp.MustCompile(table + `_pkey[^\n]*\n *Index Cond:`).MatchString(plan) {
			t.Errorf("%s is read from its start:\n%s", table, plan)
		}
	}
}

// With another index SQLite would walk all operations of the client.
func TestCorrectionsAreReadByTheirReference(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if plan := strings.Join(planOf(t, d, ledger.CorrectionsStatement()), "\n"); !strings.Contains(plan,
			"operations_by_reference") {
			t.Error(plan)
		}
	})
}
