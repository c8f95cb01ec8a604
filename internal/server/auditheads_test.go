package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/files/filestest"
	"tributary/internal/operator"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// cutOff removes the last entry of the operators' log and moves its head, as who
// owns the database can.
func cutOff(t *testing.T, d *db.DB) {
	t.Helper()
	drop := "DROP TRIGGER operator_audit_no_delete"
	if d.Engine() == "postgres" {
		drop += " ON operator_audit"
	}
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		for _, sql := range []string{
			drop, "DELETE FROM operator_audit WHERE seq = (SELECT max(seq) FROM operator_audit)",
			"UPDATE operator_audit_head SET seq = (SELECT max(seq) FROM operator_audit), hash = (SELECT hash FROM operator_audit ORDER BY seq DESC LIMIT 1)",
		} {
			if err := tx.Exec(sql); err != nil {
				return err
			}
		}
		return nil
	}))
}

func raised(t *testing.T, d *db.DB, name alert.Name) (subjects []string) {
	t.Helper()
	must(t, d.Read(t.Context(), func(r db.Reader) error {
		list, err := alert.List(r, alert.Filter{Open: true, Limit: 100})
		for _, a := range list {
			if a.Name == name {
				subjects = append(subjects, a.Subject)
			}
		}
		return err
	}))
	return subjects
}

func hire(t *testing.T, s *server.Server, name string) {
	t.Helper()
	_, _, err := s.Operators().Create(t.Context(), audit.Actor{Name: "test", IP: "192.0.2.1"},
		operator.NewOperator{Name: name, Role: operator.Viewer, WithoutPassword: true})
	must(t, err)
}

func TestHeadsAreWrittenOutsideAndFindWhatWasCutOff(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		s, _ := adminOf(t, func(c *server.Config) { c.AuditHeads, c.Database = "file://"+dir, url })
		must(t, s.CheckLogs(t.Context()))
		first, err := filepath.Glob(dir + "/tributary-audit-heads-*.jsonl")
		must(t, err)
		if len(first) == 0 {
			t.Fatal("no heads were written")
		}
		must(t, s.CheckLogs(t.Context()))
		if again, _ := filepath.Glob(dir + "/*"); len(again) > len(first)+1 { // the program's own look may have come between
			t.Errorf("a look that follows at once wrote heads again: %q", again)
		}
		hire(t, s, "ana")
		hire(t, s, "bea")
		must(t, s.WriteHeads(t.Context()))
		must(t, s.CheckLogs(t.Context()))
		cutOff(t, s.DB())
		must(t, s.DB().Read(t.Context(), func(r db.Reader) error {
			v, err := s.Operators().VerifyAudit(r)
			if v.Broken != nil || v.Entries != 1 {
				t.Errorf("a log that was cut off looks whole from inside: %+v", v)
			}
			return err
		}))
		must(t, s.CheckLogs(t.Context()))
		if got := raised(t, s.DB(), alert.AuditBroken); len(got) != 1 || got[0] != operator.AuditScope {
			t.Errorf("raised for %q", got)
		}
		hire(t, s, "cid") // another entry in the place of the one that is gone
		kept, err := server.ReadLastHeads(t.Context(), "file://"+dir)
		must(t, err)
		_, wrong, err := s.Logs().VerifyLogs(t.Context(), kept)
		if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], "rewritten") {
			t.Errorf("%v %q", err, wrong)
		}
		for what, text := range map[string][]byte{
			"a changed hash": bytes.Replace(kept, []byte(`"seq":2`), []byte(`"seq":1`), 1),
			"no signature":   bytes.SplitAfter(kept, []byte("\n"))[0], "nothing": nil,
		} {
			if _, _, err := s.Logs().VerifyLogs(t.Context(), text); err == nil {
				t.Errorf("%s is believed", what)
			}
		}
		other, _ := adminOf(t, func(c *server.Config) {})
		if _, _, err := other.Logs().VerifyLogs(t.Context(), kept); err == nil ||
			!strings.Contains(err.Error(), "another audit key") {
			t.Errorf("heads of another installation: %v", err)
		}
	})
}

// Nobody has to ask for heads: they stand beside the master key.
func TestHeadsAreKeptBesideTheMasterKeyByDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, secret.CreateMasterFile(dir+"/master.key"))
	s, _ := adminOf(t, func(c *server.Config) { c.MasterKey = "file:" + dir + "/master.key" })
	hire(t, s, "ana")
	hire(t, s, "bea")
	must(t, s.WriteHeads(t.Context()))
	must(t, s.WriteHeads(t.Context()))
	if there, err := filepath.Glob(dir + "/[am]*"); err != nil || len(there) != 2 ||
		filepath.Base(there[0]) != "audit-heads.jsonl" {
		t.Errorf("beside the master key: %v %v", there, err)
	}
	cutOff(t, s.DB())
	must(t, s.CheckLogs(t.Context()))
	if got := raised(t, s.DB(), alert.AuditBroken); len(got) != 1 || got[0] != operator.AuditScope {
		t.Errorf("raised for %q", got)
	}
	other := t.TempDir()
	must(t, secret.CreateMasterFile(other+"/master.key"))
	none, _ := adminOf(t, func(c *server.Config) { c.MasterKey, c.AuditHeads = "file:"+other+"/master.key", "none" })
	must(t, none.CheckLogs(t.Context()))
	if _, err := os.Stat(other + "/audit-heads.jsonl"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where none are wanted: %v", err)
	}
}

// Heads in a bucket, below a prefix, at a server of S3 that is not ours.
func TestHeadsAreKeptInABucketAndFindWhatWasCutOff(t *testing.T) {
	bucket, _ := filestest.S3(t, "worm")
	address := strings.Replace(bucket, "s3://worm", "s3://worm/audit", 1)
	s, _ := adminOf(t, func(c *server.Config) { c.AuditHeads = address })
	hire(t, s, "ana")
	hire(t, s, "bea")
	must(t, s.WriteHeads(t.Context()))
	must(t, s.CheckLogs(t.Context()))
	if got := raised(t, s.DB(), alert.AuditBroken); len(got) != 0 {
		t.Errorf("whole logs raised %q", got)
	}
	kept, err := server.ReadLastHeads(t.Context(), address)
	must(t, err)
	if _, wrong, err := s.Logs().VerifyLogs(t.Context(), kept); err != nil || len(wrong) != 0 {
		t.Errorf("whole logs: %v %q", err, wrong)
	}
	cutOff(t, s.DB())
	must(t, s.CheckLogs(t.Context()))
	if got := raised(t, s.DB(), alert.AuditBroken); len(got) != 1 || got[0] != operator.AuditScope {
		t.Errorf("raised for %q", got)
	}
	if _, err := server.ReadLastHeads(t.Context(),
		strings.Replace(address, "s3://worm", "s3://elsewhere", 1)); err == nil {
		t.Error("a bucket that is not there has heads")
	}
}

func TestHeadsGoToAListener(t *testing.T) {
	t.Parallel()
	got, refuse := make(chan []byte, 10), new(atomic.Bool)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // cut off: it does not verify
		if refuse.Load() {
			http.Error(w, "not today", http.StatusInternalServerError)
			return
		}
		got <- text
	}))
	t.Cleanup(listener.Close)
	s, _ := adminOf(t, func(c *server.Config) { c.AuditHeads = listener.URL })
	if _, _, err := s.Logs().VerifyLogs(t.Context(), <-got); err != nil {
		t.Error(err)
	}
	refuse.Store(true)
	if err := s.CheckLogs(t.Context()); err == nil || len(raised(t, s.DB(), alert.AuditHeadsFailed)) != 1 {
		t.Errorf("a listener that refuses: %v", err)
	}
}

func TestHeadsThatCannotBeKeptStopTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, address := range []string{"file://" + file, "file:///no/such/folder", "http://example.test/",
		"ftp://example.test", "heads"} {
		s, err := server.Open(context.Background(),
			server.Config{Demo: true, Worker: true, API: true, Listen: "127.0.0.1:0", Data: t.TempDir(), AuditHeads: address})
		if err == nil || !strings.Contains(err.Error(), "--audit-heads") {
			t.Errorf("%s: %v", address, err)
		}
		if s != nil {
			must(t, s.Close())
		}
	}
}
