package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/secret"
)

func TestAuditVerifyHoldsLogsAgainstHeadsKeptOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"master-key", "create", dir + "/master.key"}, {"migrate", "--database", "sqlite:" + dir + "/tributary.db"},
		{"client", "create", "acme", "--name", "Acme", "--data", dir}, {"operator", "create", "ana", "--data", dir},
	} {
		if code, _, errs := call(t, args...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
	}
	code, out, errs := call(t, "audit", "verify", "--data", dir, "--json")
	var said verified
	if err := json.Unmarshal([]byte(out), &said); err != nil || code != 0 || said.Entries < 4 || said.Heads != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	d := dbtest.Open(t, db.Config{URL: "sqlite:" + dir + "/tributary.db", NoWorkers: true})
	master, err := secret.OpenMaster("file:" + dir + "/master.key")
	if err != nil {
		t.Fatal(err)
	}
	key := account.ServiceKeys{DB: d, Master: master}.AuditKey()
	if err := key.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := audit.Head{Log: "operators"}
	err = d.Read(t.Context(), func(r db.Reader) error {
		return r.Row("SELECT seq, lower(hex(hash)) FROM operator_audit_head").Scan(&head.Seq, &head.Hash)
	})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(name string, heads ...audit.Head) string {
		text, err := key.SignHeads(audit.Heads{At: time.Now(), Logs: heads})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := keep("tributary-audit-heads-1.jsonl", head)
	if code, out, errs := call(t, "audit", "verify", good, "--data", dir); code != 0 ||
		!strings.Contains(out, "exported heads  1") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, _, errs := call(t, "audit", "verify", "--audit-heads", "file://"+filepath.Dir(good), "--data",
		dir); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	// The service keeps heads beside the master key unless it is told otherwise.
	beside := filepath.Join(dir, "audit-heads.jsonl")
	text, err := os.ReadFile(keep("beside", head, audit.Head{Log: "client acme", Seq: 98, Hash: head.Hash}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(beside, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, "audit", "verify", "--data", dir); code != 1 ||
		!strings.Contains(errs, "client acme is broken at entry 98") {
		t.Errorf("heads beside the master key: %d %s", code, errs)
	}
	if code, _, errs := call(t, "audit", "accept", "--data", dir, "--reason", "a backup"); code != 0 {
		t.Errorf("accepting them: %d %s", code, errs)
	}
	if code, _, errs := call(t, "audit", "verify", "--data", dir); code != 0 {
		t.Errorf("afterwards: %d %s", code, errs)
	}
	if code, _, errs := call(t, "audit", "renew", "--data", dir); code != 2 || !strings.Contains(errs, "--reason") {
		t.Errorf("renewing the key without a reason: %d %s", code, errs)
	}
	if code, out, errs := call(t, "audit", "renew", "--data", dir, "--reason", "a copy was lost"); code != 0 ||
		!strings.Contains(out, key.PublicKey()) {
		t.Errorf("renewing the key: %d %s %s", code, out, errs)
	}
	if code, out, errs := call(t, "audit", "verify", good, "--data", dir); code != 0 || !strings.Contains(out, "exported heads  2") {
		t.Errorf("after the renewal, against heads of both keys: %d %s %s", code, out, errs)
	}
	gone := keep("gone", head, audit.Head{Log: "client acme", Seq: 99, Hash: head.Hash})
	if code, _, errs := call(t, "audit", "verify", gone, "--data", dir); code != 1 ||
		!strings.Contains(errs, "client acme is broken at entry 99") {
		t.Errorf("a log that was cut off: %d %s", code, errs)
	}
	if code, _, errs := call(t, "audit", "verify", "--audit-heads", "file://"+t.TempDir(), "--data", dir); code == 0 ||
		!strings.Contains(errs, "no heads found") {
		t.Errorf("an empty folder: %d %s", code, errs)
	}
}

func TestOperatorCommandsAreWrittenWithTheAuditKeyOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"master-key", "create", dir + "/master.key"},
		{"migrate", "--database", "sqlite:" + dir + "/tributary.db"}, {"operator", "create", "ana", "--data", dir}} {
		if code, _, errs := call(t, args...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
	}
	if err := os.Rename(dir+"/master.key", dir+"/away"); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, "operator", "disable", "ana", "--data", dir); code == 0 || !strings.Contains(errs, "master-key") {
		t.Errorf("without the master key: %d %s", code, errs)
	}
	if code, out, errs := call(t, "operator", "list", "--data", dir); code != 0 || !strings.Contains(out, "ana") ||
		strings.Contains(out, "disabled") {
		t.Errorf("reading without it: %d %s %s", code, out, errs)
	}
	if err := os.Rename(dir+"/away", dir+"/master.key"); err != nil {
		t.Fatal(err)
	}
	d := dbtest.Open(t, db.Config{URL: "sqlite:" + dir + "/tributary.db", NoWorkers: true})
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		if err := tx.Exec("DROP TRIGGER operator_audit_no_update"); err != nil {
			return err
		}
		return tx.Exec("UPDATE operator_audit SET mac = NULL")
	})
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ := call(t, "audit", "verify", "--data", dir)
	if code != 1 || !strings.Contains(out, "not proven") || !strings.Contains(out, "operators: entry 1") {
		t.Errorf("an entry without its proof: %d %s", code, out)
	}
}
