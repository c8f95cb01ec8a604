package bench

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/db/dbtest"
)

// Documents that wait for a company are brought, read and announced, and how fast is told; nothing else is measured.
func TestWaitingDocumentsAreReceived(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLiteURL, "postgres": dbtest.PostgresURL} {
		t.Run(name, func(t *testing.T) {
			at := database(t)
			var out, progress bytes.Buffer
			if err := Run(t.Context(), Config{Database: at, Received: true, JSON: true, Quick: true, Out: &out, Err: &progress}); err != nil {
				t.Fatalf("%v\n%s", err, progress.String())
			}
			var report Report
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"received_per_second", "resident_memory_received", "resident_memory_received_second_half_to_first"} {
				if value, ok := report.find(name); !ok || value <= 0 {
					t.Errorf("%s is %v", name, value)
				}
			}
			if len(report.Figures) != 3 || report.Engine != name || !strings.Contains(progress.String(), "received_per_second") {
				t.Errorf("%+v\n%s", report, progress.String())
			}
			if left, _ := filepath.Glob(strings.TrimPrefix(at, "sqlite:") + "*"); len(left) > 0 {
				t.Errorf("the run left %v behind", left)
			}
		})
	}
}

func TestReceivedIsMeasuredAlone(t *testing.T) {
	for name, c := range map[string]Config{"--stored": {Received: true, Stored: 1}, "--nodes": {Received: true, Nodes: 2}} {
		c.Out, c.Err = new(bytes.Buffer), new(bytes.Buffer)
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := Config{Received: true, Pair: filepath.Join(t.TempDir(), "other"), Rounds: RoundsMin, Out: new(bytes.Buffer), Err: new(bytes.Buffer)}
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "--pair and --received") {
		t.Errorf("--pair: %v", err)
	}
}
