package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
)

// A process that ends because its disk cannot be trusted is told of: by itself where the database still stands, else by
// the next one; and it stays in the metrics until somebody has acknowledged it.
func TestAFailedDiskIsToldOfUntilSomebodyAcknowledgesIt(t *testing.T) {
	t.Parallel()
	for _, documents := range []bool{false, true} {
		dir := t.TempDir()
		p := demoIn(t, dir, false)
		stop := p.run(t)
		if code := p.FailStorage(errors.New("input/output error"), documents); code != 1 {
			t.Errorf("documents %t: it ends with %d", documents, code)
		}
		_, err := os.Stat(filepath.Join(dir, "storage-failed"))
		if noted := err == nil; noted == documents {
			t.Errorf("documents %t: noted %t", documents, noted)
		}
		stop()
		p = demoIn(t, dir, false)
		p.run(t)
		if subjects := raised(t, p.DB(), alert.StorageFailed); len(subjects) != 1 {
			t.Errorf("documents %t: raised for %v", documents, subjects)
		}
		if _, err := os.Stat(filepath.Join(dir, "storage-failed")); !errors.Is(err, os.ErrNotExist) {
			t.Error("it would be told again")
		}
		if text := metrics(t, p); !strings.Contains(text, `tributary_alerts_open{name="storage_failed"} 1`) ||
			!strings.Contains(text, `tributary_alerts_open{name="clock_skew"} 0`) {
			t.Errorf("the metrics do not tell:\n%s", text)
		}
		must(t, p.DB().Write(t.Context(), func(tx *db.Tx) error {
			list, err := alert.List(tx, alert.Filter{Open: true, Name: alert.StorageFailed})
			if err != nil {
				return err
			}
			return alert.Acknowledge(tx, list[0].ID, "ana")
		}))
		if text := metrics(t, p); !strings.Contains(text, `tributary_alerts_open{name="storage_failed"} 0`) {
			t.Errorf("acknowledged, and still told:\n%s", text)
		}
	}
}

func metrics(t *testing.T, p *program) string {
	t.Helper()
	_, text := ask(t, strings.TrimPrefix(p.AdminURL(), "http://"), "/metrics", "localhost")
	return text
}

// A node that can store nothing still reads: only who asks for writes is told so.
func TestReadinessForWritesIsToldApart(t *testing.T) {
	t.Parallel()
	p := demoIn(t, t.TempDir(), false)
	p.run(t)
	c := p.as(demoKey)
	until := func(status int, gauge string) {
		t.Helper()
		for late := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
			got, said := c.do(t, "GET", "/readyz?write=1", nil).status, metrics(t, p)
			if got == status && strings.Contains(said, "tributary_writable "+gauge+"\n") {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("readiness for writes is %d, want %d and %s in the metrics", got, status, gauge)
			}
		}
		c.want(t, 200, "GET", "/readyz", nil)
		c.want(t, 200, "GET", "/v1/transactions", nil)
	}
	until(200, "1")
	refuse := func(sql string) {
		t.Helper()
		must(t, p.DB().Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(sql) }))
	}
	refuse("CREATE TRIGGER full BEFORE INSERT ON service_keys BEGIN SELECT RAISE(ABORT, 'nothing is stored any more'); END")
	until(503, "0")
	refuse("DROP TRIGGER full")
	until(200, "1")
	c.want(t, 400, "GET", "/readyz?write=maybe", nil)
}
