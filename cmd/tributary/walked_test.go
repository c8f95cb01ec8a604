package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Procedures of docs/operations.md are walked as they are printed, with a process
// of the program and a server of PostgreSQL.

// walkedLines are the commands of the first indented block below a heading of the
// page: without the remarks at their ends, with the page's words replaced by those of a test.
func walkedLines(t *testing.T, heading string, words ...string) (commands []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, ok := strings.Cut(string(page), "\n### "+heading+"\n")
	if !ok {
		t.Fatalf("docs/operations.md has no heading %q", heading)
	}
	for line := range strings.Lines(below) {
		text, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !indented {
			if len(commands) > 0 {
				return commands
			}
			continue
		}
		text, _, _ = strings.Cut(text, "  (")
		text, _, _ = strings.Cut(text, " …")
		commands = append(commands, strings.NewReplacer(words...).Replace(text))
	}
	return commands
}

// query asks a database for one value.
func query(t *testing.T, database, question string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	if err := conn.QueryRow(t.Context(), question).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return answer
}

// alter runs a database's statement.
func alter(t *testing.T, database, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// succeeds is a command that ends well.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := call(t, args...)
	if code != 0 {
		t.Fatalf("tributary %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// serving checks that a node does what clients came for: it is ready, takes a sale and shows it.
func serving(t *testing.T, base, id string) {
	t.Helper()
	var company struct{ ID string }
	get(t, base+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	file := write(t, filepath.Join(t.TempDir(), "sale.json"), sale(company.ID, id, id))
	if out := succeeds(t, "submit", file, "--url", base, "--api-key", testKey, "--wait"); !strings.Contains(out,
		"SUCCESS") {
		t.Fatalf("%s: %s", id, out)
	}
	var list struct {
		Data []struct {
			ID string `json:"transaction_id"`
		}
	}
	status := get(t, base+"/v1/transactions", &list)
	if status != http.StatusOK || len(list.Data) == 0 || list.Data[0].ID != id {
		t.Fatalf("the list does not begin with %s: %d %+v", id, status, list)
	}
	for late := time.Now().Add(patience); ; pause(50 * time.Millisecond) { // a slow machine looks a second time
		status := readyz(t, base)
		if status == http.StatusOK {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("/readyz %d", status)
		}
	}
}

func readyz(t *testing.T, base string) int {
	t.Helper()
	answer, err := http.Get(base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // its status is all that counts
	return answer.StatusCode
}

// The password of the database is changed by a second serving role, and nothing pauses.
func TestTheDatabasesPasswordIsRotatedAsPrinted(t *testing.T) {
	owner := ownedDatabase(t)
	named := fmt.Sprintf("turn%d_serve", os.Getpid())
	succeeds(t, "migrate", "--database", owner, "--serve-role", named, "--serve-password", "first word")
	served := strings.Replace(owner, "://plain_owner@", "://"+named+":first%20word@", 1)
	dir := t.TempDir()
	first := spawn(t, demoArgs(t, dir, "--database", served)...)
	before := first.waitReady()
	serving(t, before, "turned-1")

	password := write(t, filepath.Join(t.TempDir(), "password"), "second word\n")
	lines := walkedLines(t, "Rotating the database's password", "tributary_serve", named,
		"postgres://tributary@HOST/tributary", owner,
		"postgres://tributary_serve2@HOST/tributary",
		strings.Replace(owner, "://plain_owner@", "://"+named+"2:second%20word@", 1), "FILE", password)
	var steps [][]string
	for _, line := range lines {
		steps = append(steps, strings.Fields(line))
	}
	if len(steps) != 3 || steps[0][1] != "migrate" || steps[1][1] != "serve" || steps[2][3] != owner {
		t.Fatalf("the page prints %q", steps)
	}
	succeeds(t, steps[0][1:]...)
	serving(t, before, "turned-2") // the first role goes on
	if code, _, errs := call(t, steps[2][1:]...); code == 0 ||
		!strings.Contains(errs, "sessions are connected as "+named) {
		t.Errorf("a role in use is dropped: %d %s", code, errs)
	}
	serving(t, before, "turned-3")
	first.kill()

	second := spawn(t, demoArgs(t, dir, steps[1][2:]...)...)
	after := second.waitReady()
	serving(t, after, "turned-4")
	succeeds(t, steps[2][1:]...)
	serving(t, after, "turned-5")
	left := query(t, owner,
		"SELECT coalesce(string_agg(rolname, ' ' ORDER BY rolname), '') FROM pg_roles WHERE rolname LIKE '"+named+"%'")
	if left != named+"2 "+named+"2_read" {
		t.Errorf("roles %q are left", left)
	}
	if code, _, errs := call(t, "migrate", "--database", owner, "--drop-role", named+"2"); code == 0 ||
		!strings.Contains(errs, "only serving role") {
		t.Errorf("the only serving role is dropped: %d %s", code, errs)
	}
	succeeds(t, "migrate", "--database", owner) // with the roles that are left
	serving(t, after, "turned-6")

	// A node whose role sees no rows is not ready, however well the server answers.
	alter(t, owner, "DROP POLICY tributary_serve ON intake")
	if status := readyz(t, after); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz of a role that sees nothing: %d", status)
	}
}
