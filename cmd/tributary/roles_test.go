package main

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db/dbtest"
	"tributary/internal/doctor"
)

// ownedDatabase is an empty database whose owner is no superuser, as its owner reaches it.
func ownedDatabase(t *testing.T) (owner string) {
	t.Helper()
	admin := dbtest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	for _, statement := range []string{
		"DO $$ BEGIN CREATE ROLE plain_owner LOGIN CREATEROLE; EXCEPTION WHEN duplicate_object THEN END $$",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO plain_owner', current_database()); END $$",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Replace(admin, "://tributary@", "://plain_owner@", 1)
}

// Where the owner may make no roles, an administrator makes them, and migrations give them their rights all the same.
func TestRolesMadeByAnAdministratorAreUsed(t *testing.T) {
	admin := dbtest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	for _, statement := range []string{
		"CREATE ROLE humble_owner LOGIN", "CREATE ROLE humble_serve LOGIN", "CREATE ROLE humble_serve_read NOLOGIN",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO humble_owner', current_database()); END $$",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	owner := strings.Replace(admin, "://tributary@", "://humble_owner@", 1)
	if code, _, errs := call(t, "migrate", "--database", owner, "--serve-role", "humble_serve"); code == 0 ||
		!strings.Contains(errs, "let humble_serve become humble_serve_read") {
		t.Errorf("%d %s", code, errs)
	}
	if _, err := conn.Exec(t.Context(), "GRANT humble_serve_read TO humble_serve"); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--serve-role", "humble_serve"}, nil} {
		if code, _, errs := call(t, append([]string{"migrate", "--database", owner}, flags...)...); code != 0 {
			t.Errorf("%d %s", code, errs)
		}
	}
	var rights string
	err = conn.QueryRow(t.Context(), `SELECT concat_ws(' ', has_table_privilege('humble_serve', 'account_audit', 'INSERT'), has_table_privilege('humble_serve', 'account_audit', 'DELETE'),
		has_table_privilege('humble_serve_read', 'operations', 'SELECT'), has_table_privilege('humble_serve_read', 'clients', 'SELECT'))`).Scan(&rights)
	if err != nil || rights != "t f t f" {
		t.Errorf("%q %v", rights, err)
	}
}

// The owner migrates, another role serves: everything a program does is done
// without the owner's rights.
func TestTheWholeProgramRunsWithoutTheOwnersRights(t *testing.T) {
	owner := ownedDatabase(t)
	if code, out, errs := call(t, "migrate", "--database", owner, "--serve-role", "plain_serve", "--serve-password",
		"open sesame"); code != 0 || !strings.Contains(out, "serving role plain_serve") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	served := strings.Replace(owner, "://plain_owner@", "://plain_serve:open%20sesame@", 1)
	told := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.URL.Path }))
	defer hook.Close()
	dir := t.TempDir()
	args := demoArgs(t, dir, "--database", served, "--webhook-url", hook.URL+"/heard")
	demo := start(t, args...)
	base := demo.waitReady()

	var company struct{ ID string }
	get(t, base+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	file := write(t, filepath.Join(t.TempDir(), "sale.json"), sale(company.ID, "walled-1", "W-1"))
	code, out, errs := call(t, "submit", file, "--url", base, "--api-key", testKey, "--wait")
	if code != 0 || !strings.Contains(out, "SUCCESS") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	for at := ""; at != "/heard"; {
		select {
		case at = <-told:
		case <-time.After(patience):
			t.Fatalf("nobody is told\n%s", demo.stderr())
		}
	}
	for _, path := range []string{
		"/v1/transactions", "/v1/transactions/history/walled-1", "/v1/me", "/v1/series", "/v1/countries",
		"/onboarding/v2/companies", "/v1/webhooks/events",
		"/v1/transactions?status=SUCCESS&country_code=XX",
	} {
		var answer any
		if status := get(t, base+path, &answer); status != http.StatusOK {
			t.Errorf("GET %s: %d %v", path, status, answer)
		}
	}
	lookAtTheConsole(t, demo.output())

	key := "file:" + filepath.Join(dir, "master.key")
	if code, out, errs := call(t, "audit", "verify", "--database", served, "--data", dir, "--master-key", key); code != 0 {
		t.Errorf("audit verify: %d %s%s", code, out, errs)
	}
	flags := []string{"--data", dir, "--simulators", "http://" + flagOf(args, "--simulators")}
	_, findings := diagnose(t, append(flags, "--database", served)...)
	expect(t, findings, doctor.OK, "database role", "clients read as plain_serve_read")
	expect(t, findings, doctor.OK, "schema")
	_, findings = diagnose(t, append(flags, "--database", owner)...)
	expect(t, findings, doctor.Warn, "database role", "owns the tables")
	if errs := demo.stderr(); strings.Contains(errs, "42501") || strings.Contains(errs, "permission denied") {
		t.Errorf("something was not allowed:\n%s", errs)
	}
	// The next start migrates nothing and needs no more rights than the first.
	demo.stop()
	start(t, args...).waitReady()
}

// lookAtTheConsole signs the demo's operator in and opens pages of everything.
func lookAtTheConsole(t *testing.T, printed string) {
	t.Helper()
	said := regexp.MustCompile(`console +(\S+)/ \(operator (\S+), password (\S+)\)`).FindStringSubmatch(printed)
	if said == nil {
		t.Fatalf("no console in\n%s", printed)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	if _, err := browser.PostForm(said[1]+"/sign-in", url.Values{"name": {said[2]}, "password": {said[3]}}); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"/", "/transactions", "/transactions?q=W-1", "/deliveries", "/clients", "/authorities",
		"/queues", "/audit", "/alerts"} {
		answer, err := browser.Get(said[1] + page)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // its status is all that counts
		if answer.StatusCode != http.StatusOK || strings.HasSuffix(answer.Request.URL.Path, "/sign-in") {
			t.Errorf("%s: %s at %s", page, answer.Status, answer.Request.URL)
		}
	}
}
