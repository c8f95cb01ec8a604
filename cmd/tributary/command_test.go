package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/doctor"
	"tributary/internal/secret"
)

// book gives a migrated database a master key and returns the flags that name it.
func book(t *testing.T, url string) []string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "master.key")
	if err := secret.CreateMasterFile(key); err != nil {
		t.Fatal(err)
	}
	return []string{"--database", url, "--master-key", "file:" + key, "--json"}
}

func TestMigrateSaysOnceThatASchemaIsMade(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Parallel()
		if code, out, errs := call(t, "migrate", "--database",
			url); code != 0 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "Created the database schema") ||
			strings.Contains(out, "(0 steps") {
			t.Fatalf("%d %s%s", code, out, errs)
		}
		if code, out, errs := call(t, "migrate", "--database", url); code != 0 || errs != "" ||
			!strings.Contains(out, "(0 steps applied)") {
			t.Errorf("a second time: %d %s%s", code, out, errs)
		}
	})
}

func TestClientsAndKeysFromTheCommandLine(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string) {
		flags := book(t, url)
		do := func(into any, args ...string) {
			t.Helper()
			code, out, errs := call(t, append(args, flags...)...)
			if code != 0 {
				t.Fatalf("%v: %d %s", args, code, errs)
			}
			if err := json.Unmarshal([]byte(out), into); err != nil {
				t.Fatalf("%v printed no JSON: %v\n%s", args, err, out)
			}
		}
		var made struct {
			ID   string `json:"client_id"`
			Key  string `json:"api_key"`
			Keys []struct{ Kid, State string }
		}
		do(&made, "client", "create", "acme", "--name", "Acme", "--country", "ES=BOTH", "--webhook-url",
			"https://hooks.example.com/in")
		if made.ID != "acme" || !strings.HasPrefix(made.Key, "trb_test_") || len(made.Keys) != 1 ||
			made.Keys[0].State != "active" {
			t.Fatalf("created %+v", made)
		}
		var next struct {
			Kid, State string
			Key        string `json:"api_key"`
		}
		do(&next, "key", "rotate", "acme")
		if next.State != "next" || next.Key == made.Key {
			t.Fatalf("rotated %+v", next)
		}
		var key struct{ Kid, State string }
		if do(&key, "key", "promote", next.Kid); key.State != "active" {
			t.Fatalf("promoted %+v", key)
		}
		if do(&key, "key", "revoke", made.Keys[0].Kid); key.State != "revoked" {
			t.Fatalf("revoked %+v", key)
		}
		signs := next.Kid
		if code, out, errs := call(t, append([]string{"key", "revoke", signs}, flags...)...); code == 0 ||
			!strings.Contains(errs, "--stop-webhooks") {
			t.Fatalf("the signing key is revoked unasked: %d %s%s", code, out, errs)
		}
		if do(&key, "key", "revoke", signs, "--stop-webhooks"); key.State != "revoked" {
			t.Fatalf("revoked %+v", key)
		}
		var shown struct {
			Configuration struct {
				Colours struct{ Accent string }
				Totals  string
			}
		}
		do(&shown, "client", "configure", "acme", "--accent", "#225588", "--totals", "warn")
		do(&shown, "client", "show", "acme")
		if shown.Configuration.Colours.Accent != "#225588" || shown.Configuration.Totals != "warn" {
			t.Fatalf("configured %+v", shown)
		}
		var list []struct {
			ID string `json:"client_id"`
		}
		if do(&list, "client", "list"); len(list) != 1 {
			t.Fatalf("listed %+v", list)
		}
		var audit []map[string]any
		if do(&audit, "client", "audit", "acme"); len(audit) < 5 {
			t.Fatalf("the audit log has %d entries", len(audit))
		}
		for _, text := range []string{made.Key, next.Key} {
			if _, out, _ := call(t, append([]string{"client", "show", "acme"}, flags...)...); strings.Contains(out, text) {
				t.Fatal("a key is shown again")
			}
		}
	})
}

func TestWrongCallsNameTheFlagAndTheFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no database":  {[]string{"serve"}, "--database"},
		"bad database": {[]string{"serve", "--database", "mysql://x"}, "sqlite:PATH"},
		"bad listen": {[]string{"serve", "--database", "sqlite:" + filepath.Join(t.TempDir(), "x.db"), "--listen",
			"8080"}, "--listen"},
		"bad role": {[]string{"serve", "--database", "sqlite:x", "--role", "cook"}, "--role"},
		"bad network": {[]string{"serve", "--database", "sqlite:x", "--webhook-allow", "10.0.0.0/99"},
			"--webhook-allow"},
		"bad duration":    {[]string{"demo", "--document-ttl", "soon"}, "document-ttl"},
		"worker's URL":    {[]string{"serve", "--database", "sqlite:x", "--role", "worker"}, "--public-url"},
		"unknown flag":    {[]string{"demo", "--colour", "red"}, "--colour"},
		"unknown command": {[]string{"dance"}, "dance"},
		"half a TLS pair": {[]string{"serve", "--database", "sqlite:x", "--tls-cert", "x.pem"}, "--tls-key"},
		"webhook without": {[]string{"client", "list"}, "--database"},
		"bad client's URL": {append([]string{"client", "create", "x", "--webhook-url", "http://127.0.0.1/"},
			book(t, migrated(t))...), "webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := call(t, c.args...)
			if code != exitUsage || !strings.Contains(errs, c.says) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, exitUsage, c.says, errs, out)
			}
		})
	}
}

func TestServeRefusesASchemaThatDoesNotFit(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "old.db")
	code, _, errs := call(t, "serve", "--database", url, "--listen", "127.0.0.1:0", "--admin", "")
	if code != exitFailed || !strings.Contains(errs, "tributary migrate") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
}

func TestServeGivesUpOnADatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	code, _, errs := call(t, "serve", "--database", "postgres://nobody@127.0.0.1:1/none?sslmode=disable", "--listen",
		"127.0.0.1:0", "--admin", "")
	if code != exitFailed || errs == "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
}

// TestDemoGoesOnWhereItStopped is about processes: one ends by a signal, the next
// goes on, and a third is told that the database is served.
func TestDemoGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := spawn(t, demoArgs(t, dir)...)
	url := first.waitReady()
	var before struct{ ID string }
	if status := get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &before); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	first.stop()
	second := spawn(t, demoArgs(t, dir)...)
	url = second.waitReady()
	var after struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &after)
	if before.ID == "" || before.ID != after.ID {
		t.Fatalf("the supplier was %q and is %q", before.ID, after.ID)
	}
	if !strings.Contains(second.output(), testKey) || !strings.Contains(second.output(), "curl -sS") {
		t.Fatalf("the demo does not say how to begin:\n%s", second.output())
	}
	third := spawn(t, demoArgs(t, dir)...)
	<-third.ended
	if err := third.how; err == nil || !strings.Contains(third.stderr(), "serves it") {
		t.Fatalf("a second process on the same file: %v\n%s", err, third.stderr())
	}
}

func TestVerifyTellsRightFromWrong(t *testing.T) {
	body := `{"event_type":"transactions.transaction_completed","delivered_at":"2026-01-31T10:00:00Z","resource_id":"x","resource_url":"https://x/y","webhook_id":"` + strings.Repeat("ab", 20) + `"}`
	key := secret.FromText(testKey)
	signature, err := secret.HMACHex(key, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	good := run(t.Context(), []string{"verify", "--api-key", testKey, "--signature", signature},
		streams{&out, &errs, strings.NewReader(body)})
	bad := run(t.Context(), []string{"verify", "--api-key", testKey, "--signature", signature},
		streams{&out, &errs, strings.NewReader(body + " ")})
	if good != 0 || bad != exitFailed {
		t.Fatalf("exit codes %d and %d\n%s%s", good, bad, out.String(), errs.String())
	}
}

func TestTheMasterKeyIsMadeOnceAndRotatedWhileKeysKeepOpening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "master.key")
	if code, out, errs := call(t, "master-key", "create", key); code != 0 || !strings.Contains(out, "Keep a copy") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	before, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs := call(t, "master-key", "create", key)
	after, _ := os.ReadFile(key)
	if code != exitUsage || string(before) != string(after) || strings.Contains(errs, string(before)) {
		t.Fatalf("a second time: exit code %d\n%s", code, errs)
	}
	if code, _, errs := call(t, "migrate", "--database", "sqlite:"+filepath.Join(dir, "tributary.db")); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := call(t, "client", "create", "acme", "--name", "Acme", "--data", dir); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := call(t, "master-key", "rotate", "--data", dir, "--json")
	var got rotated
	// the client's, and that of the audit logs
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.KeyID == "" || got.Moved != 2 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	// In two steps, for nodes with copies of the file: nothing moves before it is asked for.
	var second, moved rotated
	if code, out, errs := call(t, "master-key", "rotate", "--file-only", "--data", dir, "--json"); code != 0 ||
		json.Unmarshal([]byte(out), &second) != nil {
		t.Fatalf("rotate: exit code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := call(t, "master-key", "rewrap", "--data", dir, "--json"); code != 0 ||
		json.Unmarshal([]byte(out), &moved) != nil {
		t.Fatalf("rewrap: exit code %d\n%s%s", code, out, errs)
	}
	if second.KeyID == got.KeyID || second.Moved != 0 || moved.KeyID != second.KeyID || moved.Moved != 2 {
		t.Errorf("rotated %+v, then moved %+v", second, moved)
	}
	got = moved
	_, findings := diagnose(t, "--data", dir)
	expect(t, findings, doctor.OK, "master key", got.KeyID)
	expect(t, findings, doctor.OK, "signing keys")
	if code, _, errs := call(t, "master-key", "rotate", "--data", dir, "--master-key", "env:X"); code != exitUsage ||
		!strings.Contains(errs, "--master-key") {
		t.Fatalf("env: exit code %d\n%s", code, errs)
	}
}
