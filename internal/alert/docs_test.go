package alert_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/alert"
)

// The operations guide lists every alert; TRIBUTARY_UPDATE=1 writes the table anew.
func TestOperationsGuideListsEveryAlert(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "operations.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| Alert | Severity | Subject | Meaning | What to do |\n|---|---|---|---|---|\n")
	for _, m := range alert.Meanings() {
		if m.Severity != alert.Critical && m.Severity != alert.Warning && m.Severity != alert.Info {
			t.Errorf("%s has the severity %q", m.Name, m.Severity)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Severity, m.Subject, m.Meaning, m.Action)
	}
	head, rest, ok := strings.Cut(string(text), "until it is acknowledged.\n\n")
	_, tail, found := strings.Cut(rest, "\n## Why transactions wait")
	if !ok || !found {
		t.Fatal("the guide has no section of alerts")
	}
	want := head + "until it is acknowledged.\n\n" + b.String() + "\n## Why transactions wait" + tail
	if want == string(text) {
		return
	}
	if os.Getenv("TRIBUTARY_UPDATE") == "" {
		t.Fatal("docs/operations.md does not list the alerts as they are; run with TRIBUTARY_UPDATE=1")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
