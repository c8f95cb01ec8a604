package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// signsIn reports whether a password opens the console of a database.
func signsIn(o *operator.Operators, name, password string) bool {
	_, _, err := o.SignIn(context.Background(),
		operator.Attempt{Name: name, Password: secret.FromText(password)})
	return err == nil
}

// givesPasskey stores one, so that the password alone opens nothing.
func givesPasskey(t *testing.T, d *db.DB, o *operator.Operators, name string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("INSERT INTO operator_passkeys (credential_id, name, label, public_key, sign_count, created_at) VALUES ($1, $2, 'laptop', $1, 0, 0)", []byte(name), name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if signsIn(o, name, "a pass phrase of mine") {
		t.Fatal("a password alone signs in who has a passkey")
	}
}

func TestOperatorsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string) {
		master := newMaster(t, t.TempDir())
		d := dbtest.Open(t, db.Config{URL: url, NoWorkers: true})
		opened, err := secret.OpenMaster(master)
		if err != nil {
			t.Fatal(err)
		}
		key := account.ServiceKeys{DB: d, Master: opened}.AuditKey()
		if err := key.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		console := operator.New(operator.Config{DB: d, Audit: key})
		do := func(into any, input string, args ...string) {
			t.Helper()
			code, out, errs := tell(t, input, append(args, "--database", url, "--master-key", master, "--json")...)
			if code != 0 {
				t.Fatalf("%v: %d %s", args, code, errs)
			}
			if err := json.Unmarshal([]byte(out), into); err != nil {
				t.Fatalf("%v printed no JSON: %v\n%s", args, err, out)
			}
		}
		var made struct {
			Name, Role string
			Password   bool
			New        string `json:"new_password"`
			Disabled   string `json:"disabled_at"`
		}
		do(&made, "", "operator", "create", "Root", "--role", "admin")
		if made.Name != "root" || made.Role != "admin" || !made.Password || !signsIn(console, "root", made.New) {
			t.Fatalf("created %+v", made)
		}
		first := made.New
		made.New = ""
		do(&made, "a pass phrase of mine\n", "operator", "create", "ana", "--password-stdin")
		if made.Role != "viewer" || made.New != "" || !signsIn(console, "ana", "a pass phrase of mine") {
			t.Fatalf("created %+v", made)
		}
		do(&made, "", "operator", "create", "bea@example.test", "--oidc")
		if made.Password || made.New != "" {
			t.Fatalf("created %+v", made)
		}
		if do(&made, "", "operator", "role", "ana", "operator"); made.Role != "operator" {
			t.Fatalf("changed %+v", made)
		}
		if do(&made, "", "operator", "disable", "ana"); made.Disabled == "" || signsIn(console, "ana", "a pass phrase of mine") {
			t.Fatalf("disabled %+v", made)
		}
		made.Disabled = ""
		if do(&made, "", "operator", "enable", "ana"); made.Disabled != "" || !signsIn(console, "ana", "a pass phrase of mine") {
			t.Fatalf("enabled %+v", made)
		}
		givesPasskey(t, d, console, "ana")
		var held struct{ Passkeys int }
		if do(&held, "", "operator", "reset-mfa", "ana"); held.Passkeys != 0 || !signsIn(console, "ana", "a pass phrase of mine") {
			t.Fatalf("reset %+v", held)
		}
		do(&made, "", "operator", "password", "root")
		if signsIn(console, "root", first) || !signsIn(console, "root", made.New) {
			t.Fatal("a new password replaces the old one")
		}
		var list []struct{ Name string }
		if do(&list, "", "operator", "list"); len(list) != 3 || list[0].Name != "ana" {
			t.Fatalf("listed %+v", list)
		}
		var log []struct{ Action, Subject string }
		if do(&log, "", "operator", "audit"); len(log) < 7 || log[len(log)-1].Action != "operator.created" {
			t.Fatalf("the log: %+v", log)
		}
	})
}

func TestOperatorCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	newMaster(t, filepath.Dir(strings.TrimPrefix(url, "sqlite:")))
	for _, args := range [][]string{{"operator", "create", "root", "--role", "admin"}, {"operator", "create", "ana"}} {
		if code, _, errs := call(t, append(args, "--database", url)...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
	}
	for what, args := range map[string][]string{
		"the last admin":   {"operator", "disable", "root"},
		"an unknown one":   {"operator", "disable", "nobody"},
		"another role":     {"operator", "create", "x", "--role", "owner"},
		"an empty line":    {"operator", "create", "x", "--password-stdin"},
		"a short password": {"operator", "password", "ana", "--password-stdin"},
	} {
		input := "\n"
		if what == "a short password" {
			input = "short\n"
		}
		if code, out, errs := tell(t, input, append(args, "--database", url)...); code == 0 ||
			out != "" && !strings.Contains(out, "Usage") || errs == "" {
			t.Errorf("%s: %d %q %q", what, code, out, errs)
		}
	}
}

func TestOperatorListForPeople(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(strings.TrimPrefix(migrated(t), "sqlite:"))
	newMaster(t, dir)
	code, out, errs := call(t, "operator", "create", "ana", "--data", dir)
	if code != 0 || !strings.Contains(out, "password") || !strings.Contains(out, "only once") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if code, out, errs = call(t, "operator", "list", "--data", dir); code != 0 || !strings.Contains(out, "ana") ||
		!strings.Contains(out, "enabled") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if code, out, errs = call(t, "operator", "audit", "--data", dir); code != 0 ||
		!strings.Contains(out, "the log is intact; entries: 1") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if code, _, _ = call(t, "operator", "list"); code != 2 {
		t.Errorf("without a database: %d", code)
	}
}

// newMaster makes the master key of a folder.
func newMaster(t *testing.T, dir string) (address string) {
	t.Helper()
	address = "file:" + filepath.Join(dir, "master.key")
	if err := secret.CreateMasterFile(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	return address
}
