package schema_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

func refusedAs(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
		t.Errorf("%s: %v, want permission denied", statement, err)
	}
}

// refused runs a statement that a rule of the database refuses.
func refused(t *testing.T, conn *pgx.Conn, statement, why string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v", statement, err)
	}
}

func TestTheServingRoleChangesNeitherSchemaNorLogs(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, owner := dbtest.ServedURL(t)
	conn := dbtest.Connect(t, served)
	for _, statement := range []string{
		"CREATE TABLE mine (a BIGINT)",
		"CREATE FUNCTION mine() RETURNS BIGINT LANGUAGE sql AS 'SELECT 1'",
		"DROP TABLE operations",
		"ALTER TABLE account_audit DISABLE TRIGGER ALL",
		"ALTER TABLE operations DISABLE ROW LEVEL SECURITY",
		"DROP POLICY tributary_client ON operations",
		"DROP TRIGGER account_audit_no_delete ON account_audit",
		"DROP TRIGGER operations_success_stays ON operations",
		"CREATE OR REPLACE FUNCTION account_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
		"CREATE INDEX mine ON operations (number)",
		"UPDATE account_audit SET actor = 'nobody'",
		"DELETE FROM account_audit",
		"TRUNCATE account_audit",
		"UPDATE operator_audit SET actor = 'nobody'",
		"DELETE FROM operator_audit",
		"TRUNCATE operator_audit",
		"UPDATE operator_audit_head SET seq = 0",
		"DELETE FROM operator_audit_head",
		"INSERT INTO operator_audit_head VALUES (2, 0, '')",
		"UPDATE clients SET audit_seq = 0",
		"UPDATE clients SET audit_hash = NULL",
		"UPDATE clients SET live = NOT live",
		"UPDATE bodies SET body = ''",
		"DELETE FROM bodies",
		"UPDATE lifecycle SET message = ''",
		"DELETE FROM lifecycle",
		"TRUNCATE lifecycle",
		"UPDATE schema_version SET digest = ''",
		"DELETE FROM schema_roles",
		"SET ROLE tributary",
	} {
		refusedAs(t, conn, statement)
	}
	// What was said of a document goes with its record, and never before.
	life := "INSERT INTO lifecycle (operation_id, source, message_key, client_id, at, code, name, severity, message, learned_at) VALUES ('%s', 'authority', 'm', 'c', 1, '1', 'n', 'info', '', 1)"
	for _, id := range []string{"kept", "retired"} {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(life, id))
		must(t, err)
	}
	_, err := conn.Exec(t.Context(), "INSERT INTO retired_operations VALUES ('retired', 1)")
	must(t, err)
	refused(t, conn, `SELECT forget_lifecycle('["kept"]')`, "append-only")
	_, err = conn.Exec(t.Context(), `SELECT forget_lifecycle('["retired"]')`)
	must(t, err)
	// Who serves can retire what is young, and what was said of it stays all the same.
	d := dbtest.Open(t, db.Config{URL: served})
	oneOfEach(t, d)
	refused(t, conn, "UPDATE filings SET receipt = 'x'", "never changes")
	refused(t, conn, "DELETE FROM filings", "never changes")
	for _, statement := range []string{
		"UPDATE operations SET accepted_at = (extract(epoch FROM now() - interval '5 years') * 1000000)::bigint WHERE operation_id = 'oa'", "INSERT INTO retired_operations VALUES ('oa', 1)", fmt.Sprintf(life, "oa"),
	} {
		_, err := conn.Exec(t.Context(), statement)
		must(t, err)
	}
	refused(t, conn, `SELECT forget_lifecycle('["oa"]')`, "six years")
	const forget = `SELECT forget_records('["oa"]', '{"oa":"{\"left\":1}","ob":"{}"}')`
	refused(t, conn, forget, "six years")
	refused(t, conn, "UPDATE filings SET receipt = 'x' WHERE operation_id = 'oa'", "never changes") // retired, and not by its owner
	dbtest.Ahead(t, d, 2*365)
	_, err = conn.Exec(t.Context(), `SELECT forget_lifecycle('["oa"]')`)
	must(t, err)
	_, err = conn.Exec(t.Context(), forget)
	must(t, err)
	var records string
	must(t, conn.QueryRow(t.Context(), `SELECT string_agg(f.operation_id || ' ' || f.filing || ' ' || coalesce(convert_from(b.body, 'UTF8'), 'gone'), ',' ORDER BY f.operation_id)
		FROM filings f LEFT JOIN bodies b ON b.operation_id = f.operation_id`).Scan(&records))
	if records != `oa {"left":1} gone,ob {} text` {
		t.Errorf("records are %s", records)
	}
	var left string
	must(t, dbtest.Connect(t, owner).QueryRow(t.Context(),
		"SELECT string_agg(operation_id, ',') FROM lifecycle").Scan(&left))
	if left != "kept" {
		t.Errorf("%q is left", left)
	}
}

// oneOfEach is a row of each of two clients in a table, so that seeing the other's would show.
func oneOfEach(t *testing.T, d *db.DB) {
	t.Helper()
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		for _, client := range []string{"a", "b"} {
			for _, statement := range []string{
				`INSERT INTO operations (operation_id, client_id, transaction_id, attempt, kind, country, live, use_case, supplier_id, number, dated_at, accepted_at, lane, stage, status, pack_version)
					VALUES ('o{c}', '{c}', 't', 1, 'INVOICE', 'XX', false, 'BOTH', 's', 'N', 1, 2, '{c}|XX|test|0|s', 'settled', 'FAILURE', 'xx-1')`,
				"INSERT INTO transactions (client_id, transaction_id, attempts, open) VALUES ('{c}', 't', 1, 0)",
				"INSERT INTO bodies (operation_id, body) VALUES ('o{c}', 'text')",
				"INSERT INTO filings (operation_id, report, sha256, filing) VALUES ('o{c}', 'text', '', '{}')",
				"INSERT INTO lanes (lane, client_id, country, environment, shard, supplier_id) VALUES ('{c}|XX|test|0|s', '{c}', 'XX', 'test', 0, 's')",
				"INSERT INTO lookups (lookup_id, client_id, kind, status, entries, requested_at, lane) VALUES ('l{c}', '{c}', 'batch', 'running', 1, 1, '{c}')",
				"INSERT INTO lookup_entries (lookup_id, first, entries) VALUES ('l{c}', 0, '[]')",
				"INSERT INTO companies (client_id, company_id, external_id, country, tax_key, live, profile, created_at, updated_at) VALUES ('{c}', 'c{c}', 'e', 'XX', 'k', false, '{}', 1, 2)",
				"INSERT INTO received (operation_id, client_id, live, source, authority_id, company_id, dated_at, accepted_at, status, media, bytes, sha256) VALUES ('o{c}', '{c}', false, 'upload', '', '', 1, 1, 'PROCESSING', 'XML', 1, 's')",
				"INSERT INTO received_references (client_id, operation_id, company_id, sender_key, number) VALUES ('{c}', 'o{c}', 'c', 'k', 'n')",
				"INSERT INTO responses (client_id, document_id, operation_id, transaction_id) VALUES ('{c}', 'd', 'o{c}', 't')",
				"INSERT INTO webhook_events (webhook_id, client_id, event_type, resource_id, resource_path, lane, status, created_at) VALUES ('w{c}', '{c}', 'x', 'r', '/r', '{c}|x', 'pending', 1)",
				"INSERT INTO webhook_tries (webhook_id, try, record) VALUES ('w{c}', 1, '{}')",
				"INSERT INTO number_series (series_id, client_id, supplier_id, country, kind, pattern, yearly, created_at) VALUES ('s{c}', '{c}', 's', 'XX', 'INVOICE', '{N:6}', false, 1)",
				"INSERT INTO series_counters (series_id, year, next, room, at) VALUES ('s{c}', 0, 1, 1, 1)",
			} {
				if err := tx.Exec(strings.ReplaceAll(statement, "{c}", client)); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// whose are the tables with rows of oneOfEach, and the column that tells them apart.
var whose = map[string]string{
	"operations": "operation_id", "transactions": "client_id", "bodies": "operation_id", "filings": "operation_id",
	"lanes": "lane", "lookups": "lookup_id", "received": "operation_id", "received_references": "operation_id", "responses": "operation_id",
	"lookup_entries": "lookup_id", "companies": "company_id", "webhook_events": "webhook_id",
	"webhook_tries": "webhook_id", "number_series": "series_id", "series_counters": "series_id",
}

func TestAReadForAClientThatForgetsItsConditionSeesItsRowsOnly(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, _ := dbtest.ServedURL(t)
	t.Run("direct", func(t *testing.T) { seesItsRowsOnly(t, served) })
	pooled, _ := dbtest.ServedURL(t)
	t.Run("pooled", func(t *testing.T) { seesItsRowsOnly(t, dbtest.Bouncer(t, "session", pooled)) })
}

func seesItsRowsOnly(t *testing.T, served string) {
	t.Helper()
	d := dbtest.Open(t, db.Config{URL: served})
	oneOfEach(t, d)
	seen := func(ctx context.Context, table string) (ids string) {
		var alone string
		for text, read := range map[*string]func(context.Context, func(db.Reader) error) error{&ids: d.Read,
			&alone: d.ReadEach} {
			must(t, read(ctx, func(r db.Reader) error {
				return r.Row("SELECT coalesce(string_agg(" + whose[table] + ", ' ' ORDER BY " + whose[table] + "), '') FROM " +
					table).Scan(text)
			}))
		}
		if alone != ids {
			t.Fatalf("%q of %s on a snapshot, %q without one", ids, table, alone)
		}
		return ids
	}
	for table := range whose {
		for range 7 { // prepared once, planned for good after five times, on connections that are used again
			for _, client := range []string{"a", "b"} {
				ctx := db.ForClient(db.WithReadBudget(t.Context(), db.ReadBudget), client)
				if ids := seen(ctx, table); strings.Contains(ids, " ") || !strings.HasPrefix(strings.TrimLeft(ids, "olcws"),
					client) {
					t.Fatalf("client %s sees %q of %s", client, ids, table)
				}
				if ids := seen(db.AsService(ctx), table); strings.Count(ids, " ") != 1 {
					t.Fatalf("the service sees %q of %s", ids, table)
				}
			}
		}
		for _, nobody := range []string{"", "c", `a' OR 'a' = 'a`, `a'; RESET ROLE; --`} {
			if ids := seen(db.ForClient(t.Context(), nobody), table); ids != "" {
				t.Errorf("a read for %q sees %q of %s", nobody, ids, table)
			}
		}
	}
}

func TestAReadWithoutAClientSeesNothing(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, _ := dbtest.ServedURL(t)
	oneOfEach(t, dbtest.Open(t, db.Config{URL: served}))
	conn := dbtest.Connect(t, served)
	_, err := conn.Exec(t.Context(), "SET ROLE "+dbtest.ReadRole)
	must(t, err)
	for table := range whose {
		var n int
		must(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		if n != 0 {
			t.Errorf("%d rows of %s", n, table)
		}
	}
	for _, statement := range []string{
		"SELECT sealed FROM api_keys", "SELECT wrapped FROM client_data_keys", "SELECT sealed FROM service_keys",
		"SELECT sealed FROM company_credentials",
		"SELECT sealed FROM onboarding_jobs", "SELECT config FROM clients", "SELECT name FROM operators",
		"SELECT actor FROM operator_audit", "SELECT actor FROM account_audit",
		"INSERT INTO transactions (client_id, transaction_id, attempts, open) VALUES ('a', 'x', 1, 0)",
		"UPDATE operations SET number = ''", "DELETE FROM bodies",
	} {
		refusedAs(t, conn, statement)
	}
}

func TestRolesThatNothingWouldBeKeptFromAreRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Open(t, db.Config{URL: dbtest.MigratedURL(t), NoWorkers: true})
	for name, roles := range map[string]schema.Roles{
		"the owner itself":                {Serve: "tributary"},
		"one role for both":               {Serve: "t_one", Read: "t_one"},
		"a reader who is the serving one": {Serve: "pg_read_all_stats", Read: "pg_monitor"}, // a member of the former
	} {
		if err := schema.Grant(t.Context(), d, roles); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := schema.Grant(t.Context(), dbtest.SQLite(t), schema.Roles{Serve: "a"}); err == nil {
		t.Error("a SQLite file took roles")
	}
}

// A later migration gives the roles what it adds, and one without news takes no table for itself.
func TestRolesAreRememberedByMigrations(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, owner := dbtest.ServedURL(t)
	conn := dbtest.Connect(t, owner)
	_, err := conn.Exec(t.Context(), "CREATE TABLE newer (a BIGINT); DROP POLICY tributary_client ON bodies")
	must(t, err)
	d := dbtest.Open(t, db.Config{URL: owner, NoWorkers: true}) // migrates
	var n int
	must(t, dbtest.Connect(t, served).QueryRow(t.Context(), "SELECT count(*) FROM newer").Scan(&n))
	oneOfEach(t, d)
	must(t, d.Read(db.ForClient(t.Context(), "a"), func(r db.Reader) error {
		return r.Row("SELECT count(*) FROM bodies").Scan(&n)
	}))
	if n != 1 {
		t.Errorf("%d bodies are seen", n)
	}
	holder, err := conn.Begin(t.Context())
	must(t, err)
	defer func() { _ = holder.Rollback(context.Background()) }() // a test's own
	_, err = holder.Exec(t.Context(), "SELECT * FROM operations")
	must(t, err)
	steps, err := schema.Migrate(t.Context(), d)
	if must(t, err); steps != 0 {
		t.Errorf("%d steps", steps)
	}
	if standing, err := schema.RightsOf(t.Context(), d); err != nil || !standing.Owner ||
		standing.Read != dbtest.ReadRole {
		t.Errorf("the owner is %+v, %v", standing, err)
	}
	node := dbtest.Open(t, db.Config{URL: served}) // with nothing to add, a role without rights migrates too
	if standing, err := schema.RightsOf(t.Context(),
		node); err != nil || standing.Owner || standing.Role != dbtest.ServeRole || standing.Read != dbtest.ReadRole {
		t.Errorf("who serves is %+v, %v", standing, err)
	}
}

// Behind the second wall the statements of the API go by the same indexes.
func TestReadsForAClientGoByIndex(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, owner := dbtest.ServedURL(t)
	d := dbtest.Open(t, db.Config{URL: served})
	conn := dbtest.Connect(t, owner)
	for _, statement := range []string{
		strings.Replace(benchOperation, "100000", "20000", 1),
		"INSERT INTO bodies (operation_id, body) SELECT operation_id, 'body' FROM operations",
		"INSERT INTO period_documents (operation_id, period_id, transaction_id, number, state, sales, gross, made_at) SELECT operation_id, 'p', 't', 'n', 'accepted', 1, 1, 1 FROM operations WHERE attempt = 1 LIMIT 5000",
		"INSERT INTO webhook_events (webhook_id, client_id, event_type, resource_id, resource_path, lane, status, created_at) SELECT 'w' || n, 'c' || n % 50, 'x', 'r', '/r', 'l', 'delivered', 1 FROM generate_series(1, 20000) AS n",
		"INSERT INTO lookups (lookup_id, client_id, kind, status, entries, requested_at, lane) SELECT 'l' || n, 'c' || n % 50, 'batch', 'completed', 1, 1, '' FROM generate_series(1, 20000) AS n",
		"INSERT INTO lookup_entries (lookup_id, first, entries) SELECT lookup_id, 0, '[]' FROM lookups",
		"ANALYZE",
	} {
		_, err := conn.Exec(t.Context(), statement)
		must(t, err)
	}
	for _, q := range []struct {
		text string
		args []any
	}{
		{"SELECT result FROM operations WHERE operation_id = $1 AND client_id = $2", []any{"o00000051", "c1"}},
		{"SELECT result FROM operations WHERE operation_id = $1", []any{"o00000051"}},
		{"SELECT operation_id FROM operations WHERE client_id = $1 AND transaction_id = $2 ORDER BY attempt",
			[]any{"c1", "t51"}},
		{"SELECT operation_id FROM operations WHERE client_id = $1 AND number = $2 ORDER BY operation_id DESC LIMIT 101",
			[]any{"c1", "N51"}},
		{`SELECT operation_id FROM operations WHERE client_id = $1 AND NOT EXISTS (SELECT 1 FROM period_documents d WHERE d.operation_id = operations.operation_id)
			AND operation_id < $2 ORDER BY operation_id DESC LIMIT 101`, []any{"c1", "o00010000"}},
		{"SELECT body FROM bodies WHERE operation_id = $1", []any{"o00000051"}},
		{"SELECT webhook_id FROM webhook_events WHERE client_id = $1 AND webhook_id < $2 ORDER BY webhook_id DESC LIMIT 101",
			[]any{"c1", "w5"}},
		{"SELECT entries FROM lookup_entries WHERE lookup_id = $1 AND first > $2 AND first < $3 ORDER BY first",
			[]any{"l51", -1, 10}},
	} {
		var lines []string
		must(t, d.Read(db.ForClient(t.Context(), "c1"), func(r db.Reader) (err error) {
			lines, err = db.Collect(r, func(scan func(...any) error) (line string, err error) {
				return line, scan(&line)
			}, "EXPLAIN "+q.text, q.args...)
			return err
		}))
		if plan := strings.Join(lines, "\n"); strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\n%s", q.text, plan)
		}
	}
}
