package db_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
)

func TestABackupIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	d, err := db.Open(t.Context(), db.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // a test's
	if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("CREATE TABLE kept (n BIGINT)") }); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("INSERT INTO kept VALUES (42)") }); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	to := filepath.Join(dir, "copy.db")
	if err := os.WriteFile(to+".part", []byte("what a killed backup left"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), url, to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v %v", info, err)
	}
	copied, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + to})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	err = copied.Read(t.Context(), func(r db.Reader) error { return r.Row("SELECT n FROM kept").Scan(&n) })
	if err != nil || n != 42 {
		t.Errorf("the copy holds %d: %v", n, err)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Backup(t.Context(), url, to); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a second backup to the same file: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Backup(cancelled, url, filepath.Join(dir, "never.db")); err == nil {
		t.Error("a cancelled backup succeeded")
	}
	broken := filepath.Join(dir, "broken.db")
	if err := os.WriteFile(broken, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), "sqlite:"+broken, filepath.Join(dir, "of-broken.db")); err == nil {
		t.Error("a broken file was copied")
	}
	if err := db.Backup(t.Context(), "sqlite:"+filepath.Join(dir, "none.db"),
		filepath.Join(dir, "of-none.db")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a database that is not there: %v", err)
	}
	for _, pattern := range []string{"*.part", "never*", "of-*", "none*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}
