package schema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

// migrationCase is the before/after test of one version. Write runs on the
// schema of the version before, as a node of that version would write, and
// again on the new one and all later ones, because such a node may go on; {n}
// is another number each time. After holds what is stored against the schema
// of this version and all later ones.
type migrationCase struct {
	Write []string
	After map[string]string // query of one text value → wanted
}

// migrationCases has an entry for every version that touches tables of an
// earlier one. Versions that only add tables pass the generic checks. The one of
// the first version is written by every program that was ever released.
func migrationCases() map[int]migrationCase {
	return map[int]migrationCase{
		1: {
			Write: []string{
				`INSERT INTO operations (operation_id, client_id, transaction_id, attempt, kind, country, live, use_case, supplier_id, number, dated_at, accepted_at, lane, stage, status, due_at, pack_version)
					VALUES ('o{n}', 'c', 't{n}', 1, 'INVOICE', 'XX', false, 'BOTH', 's', 'N{n}', 1, 2, 'c|XX|live|0|Ü{n}', 'received', 'PROCESSING', 3, 'xx-1')`,
				"INSERT INTO bodies (operation_id, body, digest) VALUES ('o{n}', '{}', 'd')",
				"INSERT INTO lanes (lane, client_id, country, environment, shard, supplier_id, failures, trouble) VALUES ('c|XX|live|0|Ü{n}', 'c', 'XX', 'live', 0, 'Ü{n}', 3, 'kept')",
				"INSERT INTO chains (lane, position, link) VALUES ('c|XX|live|0|Ü{n}', 7, '{}')",
				"INSERT INTO exchanges (exchange_id, lane, verb, at, took, filings, outcome, bytes_out) VALUES ('01900000-0000-7000-8000-z{n}', 'c|XX|live|0|Ü{n}', 'send', 1, 2, 1, 'answered', 7)",
				"INSERT INTO exchange_operations (operation_id, exchange_id, said) VALUES ('o{n}', '01900000-0000-7000-8000-z{n}', 'z')",
				"UPDATE exchanges SET took = 3 WHERE exchange_id = '01900000-0000-7000-8000-z{n}'",
				"INSERT INTO webhook_events (webhook_id, client_id, event_type, resource_id, resource_path, lane, series, status, created_at, due_at) VALUES ('019000000000000000000000000000000000000{n}', 'z', 'e', 'r', '/r', 'z/e', 's', 'pending', 1, 2)",
				"INSERT INTO webhook_tries (webhook_id, try, record) VALUES ('019000000000000000000000000000000000000{n}', 2, 'z')",
				"UPDATE webhook_events SET status = 'delivered', closed_at = 3, due_at = NULL, series = NULL WHERE webhook_id = '019000000000000000000000000000000000000{n}'",
				"INSERT INTO companies (client_id, company_id, external_id, country, tax_key, live, profile, created_at, updated_at) VALUES ('c', 'co{n}', 'e{n}', 'XX', 'k{n}', false, '{}', 1, 2)",
			},
			After: map[string]string{
				`SELECT cast(count(*) AS text) FROM operations o JOIN bodies b ON b.operation_id = o.operation_id JOIN lanes l ON l.lane = o.lane JOIN chains c ON c.lane = l.lane
					JOIN exchanges x ON x.lane = l.lane JOIN exchange_operations e ON e.exchange_id = x.exchange_id AND e.operation_id = o.operation_id
					WHERE o.due_at = 3 AND l.trouble = 'kept' AND c.position = 7 AND x.took = 3 AND e.said = 'z'`: "{n}",
				"SELECT operation_id FROM operations WHERE lane = 'c|XX|live|0|Ü1' AND due_at <= 3":                                                                                                    "o1",
				"SELECT cast(count(*) AS text) FROM webhook_events e JOIN webhook_tries t ON t.webhook_id = e.webhook_id WHERE e.client_id = 'z' AND e.closed_at = 3 AND e.seq > 0 AND t.record = 'z'": "{n}",
				"SELECT cast(count(*) AS text) FROM companies WHERE updated_at = 2 AND NOT legal_hold":                                                                                                 "{n}",
			},
		},
	}
}

// future is a step as a later version may have it, behind those that there are.
func future(engine string, version int) schema.Step {
	index := map[string]string{"sqlite": "CREATE INDEX", "postgres": "CREATE INDEX CONCURRENTLY"}[engine]
	return schema.Step{Version: version, Name: "future", Script: `-- Owner: nobody.
		ALTER TABLE operations ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
		CREATE TABLE later (id TEXT PRIMARY KEY);
` + index + " operations_later ON operations (later, operation_id)"}
}

var (
	newTable = regexp.MustCompile(`(?is)create\s+table\s+(?:if\s+not\s+exists\s+)?([a-z_0-9]+)`)
	oldTable = regexp.MustCompile(
		`(?is)(?:alter\s+table|insert\s+into|delete\s+from|\bupdate|(?:create\s+(?:unique\s+)?index\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?[a-z_0-9]+\s+on)|trigger\s+[a-z_0-9]+\s+(?:before|after)\s+[a-z ,_]+?\s+on)\s+(?:only\s+)?([a-z_0-9]+)`)
	newIndex = regexp.MustCompile(
		`(?is)create\s+(?:unique\s+)?index\s+(concurrently\s+)?(?:if\s+not\s+exists\s+)?[a-z_0-9]+\s+on\s+([a-z_0-9]+)`)
	comments  = regexp.MustCompile(`--[^\n]*`)
	bodies    = regexp.MustCompile(`(?is)\$\$.*?\$\$|begin\s+select\s+raise.*?end`)
	forbidden = map[string]*regexp.Regexp{
		"drops something":   regexp.MustCompile(`(?i)\bdrop\b`),
		"renames something": regexp.MustCompile(`(?i)\brename\b`),
		"changes a column's type": regexp.MustCompile(
			`(?i)alter\s+(column\s+)?[a-z_0-9]+\s+(set\s+data\s+)?type\b`),
		"makes an old column NOT NULL": regexp.MustCompile(`(?i)set\s+not\s+null`),
		"takes a default away":         regexp.MustCompile(`(?i)drop\s+default`),
		"truncates":                    regexp.MustCompile(`(?i)(^|;)\s*truncate\b`),
		"begins or ends a transaction itself": regexp.MustCompile(
			`(?i)(^|;)\s*(begin|commit|rollback)\s*(transaction|work)?\s*(;|$)`),
	}
	dropTrigger = regexp.MustCompile(`(?i)drop\s+trigger\s+([a-z_0-9]+)\s*;`)
	addColumn   = regexp.MustCompile(`(?is)add\s+(?:column\s+)?[^;]*`)
)

// statements is a script without comments and without the bodies of triggers.
func statements(script string) string {
	return bodies.ReplaceAllString(comments.ReplaceAllString(script, ""), " ")
}

// withoutReplaced takes out triggers that are dropped to be made anew at once,
// which is how SQLite replaces one.
func withoutReplaced(text string) string {
	return dropTrigger.ReplaceAllStringFunc(text, func(drop string) string {
		name := dropTrigger.FindStringSubmatch(drop)[1]
		if strings.Contains(text, drop+"\nCREATE TRIGGER "+name+" ") {
			return ""
		}
		return drop
	})
}

// A node of the version before must go on working beside the new schema.
func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		steps, err := schema.Steps(engine)
		must(t, err)
		for _, step := range steps {
			name := fmt.Sprintf("%s/%04d_%s", engine, step.Version, step.Name)
			text := withoutReplaced(statements(step.Script))
			for what, pattern := range forbidden {
				if found := pattern.FindString(text); found != "" {
					t.Errorf("%s %s: %q. Steps are additive: a node of the version before goes on working", name, what,
						strings.TrimSpace(found))
				}
			}
			for _, add := range addColumn.FindAllString(text, -1) {
				lower := strings.ToLower(add)
				if strings.Contains(lower, "not null") && !strings.Contains(lower, "default") {
					t.Errorf("%s: %q is NOT NULL without a default: a node of the version before cannot insert any more", name,
						strings.TrimSpace(add))
				}
			}
			if !strings.Contains(step.Script, "-- Owner: ") {
				t.Errorf("%s does not say \"-- Owner:\": a table has exactly one owner", name)
			}
		}
	}
}

// An index on a table with rows keeps every writer out for as long as it is
// built, unless it is built concurrently.
func TestIndexesOnOldTablesAreBuiltConcurrently(t *testing.T) {
	t.Parallel()
	steps, err := schema.Steps("postgres")
	must(t, err)
	for _, s := range steps {
		for _, m := range newIndex.FindAllStringSubmatch(statements(s.Script), -1) {
			if table := strings.ToLower(m[2]); m[1] == "" && !slices.Contains(tablesOf(s), table) {
				t.Errorf("%04d_%s builds an index on %s, a table of an earlier step, and keeps writers out: use CREATE INDEX CONCURRENTLY, at the end", s.Version, s.Name, table)
			}
		}
	}
}

func TestAdditiveCheckCatches(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"drops something":              "ALTER TABLE a DROP COLUMN b",
		"renames something":            "ALTER TABLE a RENAME COLUMN b TO c",
		"makes an old column NOT NULL": "ALTER TABLE a ALTER COLUMN b SET NOT NULL",
		"changes a column's type":      "ALTER TABLE a ALTER b TYPE TEXT",
	} {
		if !forbidden[what].MatchString(statements("CREATE TABLE x (y TEXT); -- harmless\n" + text)) {
			t.Errorf("%q passes", text)
		}
	}
	if left := withoutReplaced(
		"DROP TRIGGER a;\nCREATE TRIGGER a BEFORE UPDATE ON x"); forbidden["drops something"].MatchString(left) {
		t.Errorf("a trigger that is replaced is dropped: %q", left)
	}
	if left := withoutReplaced(
		"DROP TRIGGER a;\nCREATE TRIGGER b BEFORE UPDATE ON x"); !forbidden["drops something"].MatchString(left) {
		t.Errorf("a trigger that is gone passes: %q", left)
	}
	if add := addColumn.FindString(
		"ALTER TABLE a ADD COLUMN b TEXT NOT NULL; CREATE TABLE c (d TEXT DEFAULT '')"); !strings.HasSuffix(add, "NOT NULL") {
		t.Errorf("the added column is read as %q", add)
	}
}

// Both engines have the same steps, numbered without gaps, with the same tables.
func TestEnginesHaveTheSameSteps(t *testing.T) {
	t.Parallel()
	lite, err := schema.Steps("sqlite")
	must(t, err)
	pg, err := schema.Steps("postgres")
	must(t, err)
	if len(lite) != len(pg) {
		t.Fatalf("%d steps for SQLite, %d for PostgreSQL", len(lite), len(pg))
	}
	for i := range lite {
		if lite[i].Version != i+1 {
			t.Errorf("step %d has number %d: numbers have no gaps", i+1, lite[i].Version)
		}
		if lite[i].Version != pg[i].Version || lite[i].Name != pg[i].Name {
			t.Errorf("%04d_%s for SQLite, %04d_%s for PostgreSQL", lite[i].Version, lite[i].Name, pg[i].Version, pg[i].Name)
		}
		// SQLite has neither roles nor partitions
		b := slices.DeleteFunc(tablesOf(pg[i]), func(table string) bool {
			return table == "schema_roles" || table == "partitioned"
		})
		if a := tablesOf(lite[i]); !slices.Equal(a, b) {
			t.Errorf("%04d_%s makes %v for SQLite and %v for PostgreSQL", lite[i].Version, lite[i].Name, a, b)
		}
	}
}

func tablesOf(s schema.Step) (tables []string) {
	for _, m := range newTable.FindAllStringSubmatch(statements(s.Script), -1) {
		tables = append(tables, strings.ToLower(m[1]))
	}
	slices.Sort(tables)
	return tables
}

func TestVersionsThatTouchOldTablesHaveACase(t *testing.T) {
	t.Parallel()
	steps, err := schema.Steps("postgres")
	must(t, err)
	cases := migrationCases()
	for _, s := range steps {
		made := tablesOf(s)
		for _, m := range oldTable.FindAllStringSubmatch(statements(s.Script), -1) {
			table := strings.ToLower(m[1])
			if _, ok := cases[s.Version]; !ok && !slices.Contains(made, table) {
				t.Errorf("%04d_%s touches %s of an earlier version: add its before/after test to migrationCases", s.Version,
					s.Name, table)
			}
		}
	}
}

// From the first version on, each on its own and one that is to come: what the
// version before wrote is there afterwards, and the version before can still write.
func TestEachVersionKeepsWhatWasThere(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		d, err := db.Open(ctx, db.Config{URL: url})
		must(t, err)
		defer func() { _ = d.Close() }() // tested elsewhere
		steps, err := schema.Steps(d.Engine())
		must(t, err)
		steps = append(steps, future(d.Engine(), len(steps)+1))
		must(t, second(schema.MigrateSteps(ctx, d, steps[0])))
		written := map[int]int{}
		number := func(version int, text string) string {
			return strings.ReplaceAll(text, "{n}", fmt.Sprint(written[version]))
		}
		play := func(versions ...schema.Step) { // in one commit: after each step all earlier versions write again
			t.Helper()
			must(t, d.Write(ctx, func(tx *db.Tx) error {
				for _, v := range versions {
					written[v.Version]++
					for _, text := range migrationCases()[v.Version].Write {
						if err := tx.Exec(number(v.Version, text)); err != nil {
							return fmt.Errorf("version %d: %w", v.Version, err)
						}
					}
				}
				return nil
			}))
		}
		play(steps[0])
		for i, s := range steps[1:] {
			before := tableColumns(t, d)
			n, err := schema.MigrateSteps(ctx, d, steps[:i+2]...)
			if err != nil || n != 1 {
				t.Fatalf("version %d took %d steps: %v", s.Version, n, err)
			}
			after := tableColumns(t, d)
			for column := range before {
				if !after[column] {
					t.Errorf("version %d took %s away", s.Version, column)
				}
			}
			play(steps[:i+2]...)
			must(t, d.Read(ctx, func(r db.Reader) error {
				for _, earlier := range steps[:i+2] {
					for query, want := range migrationCases()[earlier.Version].After {
						var got string
						if err := r.Row(query).Scan(&got); err != nil || got != number(earlier.Version, want) {
							t.Errorf("version %d: %s is %q, want %q: %v", s.Version, query, got, number(earlier.Version, want), err)
						}
					}
				}
				return nil
			}))
			if n, err := schema.MigrateSteps(ctx, d, steps[:i+2]...); n != 0 || err != nil {
				t.Errorf("version %d again took %d steps: %v", s.Version, n, err)
			}
		}
		if err := schema.Check(ctx, d); !errors.Is(err, schema.ErrNew) {
			t.Errorf("a schema of a later program: %v", err)
		}
	})
}

// tableColumns are table.column, with every unique index and constraint left out.
func tableColumns(t *testing.T, d *db.DB) map[string]bool {
	t.Helper()
	text := "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'"
	if d.Engine() == "sqlite" {
		text = "SELECT m.name || '.' || p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'"
	}
	all := map[string]bool{}
	must(t, d.Read(context.Background(), func(r db.Reader) error {
		names, err := db.Collect(r, func(s func(...any) error) (name string, err error) { return name, s(&name) }, text)
		for _, name := range names {
			all[name] = true
		}
		return err
	}))
	return all
}

func TestNodesMigrateAtTheSameTime(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		const nodes = 3
		var wg sync.WaitGroup
		total := make(chan int, nodes)
		for i := range nodes {
			d, err := db.Open(ctx, db.Config{URL: url, NoWorkers: i > 0})
			must(t, err)
			defer func() { _ = d.Close() }() // tested elsewhere
			wg.Go(func() {
				n, err := schema.Migrate(ctx, d)
				if err == nil {
					err = schema.Check(ctx, d)
				}
				if err != nil {
					t.Errorf("node %d: %v", i, err)
				}
				total <- n
			})
		}
		wg.Wait()
		steps, err := schema.Steps("sqlite")
		must(t, err)
		if taken := <-total + <-total + <-total; taken != len(steps) {
			t.Errorf("%d steps were taken by all nodes, want each of %d once", taken, len(steps))
		}
	})
}

func TestForeignSchemasAreRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		d, err := db.Open(ctx, db.Config{URL: url})
		must(t, err)
		defer func() { _ = d.Close() }() // tested elsewhere
		if err := schema.Check(ctx, d); !errors.Is(err, schema.ErrOld) ||
			!strings.Contains(err.Error(), "tributary migrate") {
			t.Errorf("an empty database passes: %v", err)
		}
		_, err = schema.Migrate(ctx, d)
		must(t, err)
		exec := func(text string) {
			must(t, d.Write(ctx, func(tx *db.Tx) error { return tx.Exec(text) }))
		}
		exec("INSERT INTO schema_version VALUES (9999, 'future', 'x', 0)")
		for name, err := range map[string]error{"check": schema.Check(ctx, d), "migrate": second(schema.Migrate(ctx, d))} {
			if !errors.Is(err, schema.ErrNew) || !strings.Contains(err.Error(), "9999") {
				t.Errorf("%s of a newer schema: %v", name, err)
			}
		}
		exec("DELETE FROM schema_version WHERE version = 9999")
		exec("UPDATE schema_version SET name = 'alerts' WHERE version = 1")
		for name, err := range map[string]error{"check": schema.Check(ctx, d), "migrate": second(schema.Migrate(ctx, d))} {
			if !errors.Is(err, schema.ErrUnreleased) {
				t.Errorf("%s of a schema from before the first release: %v", name, err)
			}
		}
		exec("UPDATE schema_version SET name = 'first', digest = 'edited' WHERE version = 1")
		if _, err := schema.Migrate(ctx, d); err == nil || !strings.Contains(err.Error(), "a published step was edited") ||
			!strings.Contains(err.Error(), "0001") {
			t.Errorf("an edited step: %v", err)
		}
		exec("DELETE FROM schema_version WHERE version = 1")
		if err := schema.Check(ctx, d); !errors.Is(err, schema.ErrOld) {
			t.Errorf("a missing step passes: %v", err)
		}
		if _, err := schema.Migrate(ctx, d); err == nil {
			t.Error("a step that cannot be applied was applied")
		}
		if err := schema.Check(ctx, d); !errors.Is(err, schema.ErrOld) {
			t.Errorf("a failed step is recorded as done: %v", err)
		}
	})
}

func second[A, B any](_ A, b B) B { return b }

// A step file that is not called as it must be is refused by the program itself.
func TestStepFilesAreNamedInOrder(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		files, err := filepath.Glob("migrations/" + engine + "/*")
		must(t, err)
		steps, err := schema.Steps(engine)
		must(t, err)
		if len(files) != len(steps) {
			t.Errorf("%d files and %d steps", len(files), len(steps))
		}
		for i, s := range steps {
			text, err := os.ReadFile(fmt.Sprintf("migrations/%s/%04d_%s.sql", engine, s.Version, s.Name))
			if err != nil || string(text) != s.Script {
				t.Errorf("step %d is not the file of its name: %v", i+1, err)
			}
		}
	}
}
