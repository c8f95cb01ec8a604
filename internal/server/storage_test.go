package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
