package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// A run at a fraction of the load gives every figure that the
// report has, in each of the forms in which it can be asked for.
func TestARunGivesEveryFigure(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { givesEveryFigure(t, dbtest.SQLiteURL(t), 1000) })
	t.Run("postgres", func(t *testing.T) {
		needs.Long(t, "the same run again; what differs is in TestAPhaseHasADatabaseOfItsOwn")
		givesEveryFigure(t, dbtest.PostgresURL(t), 0) // growth is the same code on both
	})
}

func givesEveryFigure(t *testing.T, database string, stored int) {
	t.Helper()
	engine, _, _ := strings.Cut(database, ":")
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	write(t, old, `{"engine":"`+engine+`","figures":[{"name":"submits_per_second","value":1,"unit":"1/s"}]}`)
	var out, progress bytes.Buffer
	picture := filepath.Join(dir, "figures.svg")
	err := Run(t.Context(), Config{Database: database, Stored: stored, JSON: true, Compare: old, Plot: picture,
		Quick: true, Out: &out, Err: &progress})
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var report Report
	decode := json.NewDecoder(&out)
	if err := decode.Decode(&report); err != nil {
		t.Fatal(err)
	}
	if _, err := decode.Token(); !errors.Is(err, io.EOF) {
		t.Error("standard output has more than one JSON object")
	}
	if report.Engine != engine {
		t.Errorf("engine is %q, want %q", report.Engine, engine)
	}
	hasEveryFigure(t, &report, stored > 0)
	if !strings.Contains(progress.String(), " %") {
		t.Errorf("no change against the earlier report is shown:\n%s", progress.String())
	}
	if text, err := os.ReadFile(picture); err != nil || xml.Unmarshal(text, new(struct {
		XMLName xml.Name `xml:"svg"`
	})) != nil {
		t.Errorf("the plot is not an SVG: %v", err)
	}
	if left, _ := filepath.Glob(strings.TrimPrefix(database, "sqlite:") + "*"); len(left) > 0 {
		t.Errorf("the run left %v behind", left)
	}
}

func hasEveryFigure(t *testing.T, report *Report, stored bool) {
	t.Helper()
	for _, name := range []string{
		"submits_per_second", "decode_only_per_second", "submits_to_decode_only", "one_commit_per_request_per_second",
		"submit_p50_half_load", "submit_p99_half_load", "submit_p99_2500_per_second", "submits_per_second_stored",
		"submits_stored_to_empty", "list_p99_stored", "history_p99_stored", "search_p99_stored",
		"burst_submits_per_second", "burst_submit_p99", "settled_per_second", "settled_per_second_stored",
		"settled_stored_to_empty", "submit_to_webhook_per_second",
		"submit_to_webhook_p50", "submit_to_webhook_p99", "webhook_first_try_p99_half_load", "webhook_first_try_p99_burst", "deliveries_per_second", "pdf_per_second",
		"filings_prepared_per_second", "resident_memory_full_load", "resident_memory_peak",
		"large_documents_per_second", "resident_memory_large_documents",
	} {
		if !stored && strings.Contains(name, "_stored") {
			continue
		}
		if value, ok := report.find(name); !ok || value <= 0 {
			t.Errorf("%s is %v, want a measured value", name, value)
		}
	}
	// What is worked off behind a burst may be nothing: this one is short.
	if value, ok := report.find("burst_worked_off_per_second"); !ok || value < 0 {
		t.Errorf("burst_worked_off_per_second is %v, %v", value, ok)
	}
}

// On a server each phase begins with an empty database and leaves none behind.
func TestAPhaseHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	server := dbtest.PostgresURL(t)
	own, drop, err := ownDatabase(t.Context(), server, "a-phase")
	if err != nil || own == server {
		t.Fatalf("%q: %v", own, err)
	}
	other, dropOther, err := ownDatabase(t.Context(), server, "a-phase")
	if err != nil || other == own {
		t.Fatalf("%q beside %q: %v", other, own, err)
	}
	for _, address := range []string{own, other} {
		if err := command(t.Context(), address, "CREATE TABLE things (id TEXT)"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := errors.Join(drop(), dropOther()); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{own, other} {
		if err := command(t.Context(), address, "SELECT 1"); err == nil {
			t.Errorf("%s is still there", address)
		}
	}
}

// An earlier report that cannot be read is told and does not cost the figures.
func TestAnUnreadableComparisonIsTold(t *testing.T) {
	var told bytes.Buffer
	table(&told, &Report{Figures: []Figure{{"submits_per_second", 10, "1/s"}}}, filepath.Join(t.TempDir(), "none.json"))
	if !strings.Contains(told.String(), "--compare") || !strings.Contains(told.String(), "submits_per_second") {
		t.Errorf("told %q", told.String())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
