package needs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// listener is a test that is told to skip or to fail, and goes on listening.
type listener struct {
	testing.TB
	said string
}

func (l *listener) Helper() {}

func (l *listener) Skipf(format string, args ...any) {
	l.said = "skip: " + fmt.Sprintf(format, args...)
	panic(l)
}

func (l *listener) Fatalf(format string, args ...any) {
	l.said = "fail: " + fmt.Sprintf(format, args...)
	panic(l)
}

// told is what a test would be told.
func told(t *testing.T, need func(t testing.TB)) string {
	t.Helper()
	l := &listener{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != l {
				panic(p)
			}
		}()
		need(l)
	}()
	return l.said
}

func TestWhatIsMissingSkipsUnlessEverythingIsRequired(t *testing.T) {
	tool := func(t testing.TB) { needs.Tool(t, "no-such-program", "no-such-package") }
	file := func(t testing.TB) { needs.File(t, "/no/such/file", "no-such-package") }
	schemas := func(t testing.TB) { needs.Schemas(t, "es-verifactu") }
	t.Setenv("TRIBUTARY_SCHEMAS", filepath.Join(t.TempDir(), "none"))
	for required, want := range map[string]string{"": "skip: ", "1": "fail: "} {
		t.Setenv("TRIBUTARY_TEST_REQUIRED", required)
		for _, need := range []func(testing.TB){tool, file, schemas} {
			if said := told(t, need); !strings.HasPrefix(said, want) || strings.Contains(said, "\n") {
				t.Errorf("required %q: %q", required, said)
			}
		}
	}
}

func TestWhatIsThereIsUsed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "xx"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRIBUTARY_SCHEMAS", dir)
	if needs.Tool(t, "go", "golang") == "" || needs.Schemas(t, "xx") != filepath.Join(dir, "xx") || !needs.HasSchemas(t) {
		t.Error("something that is there is not found")
	}
	// A folder that is there and lacks what is asked for is no reason to skip.
	if said := told(t, func(t testing.TB) { needs.Schemas(t, "yy") }); !strings.HasPrefix(said, "fail: ") {
		t.Errorf("half a folder of schemas: %q", said)
	}
}

func TestProgramsOfNpmAndLongTestsAreLeftToTheirTargets(t *testing.T) {
	t.Setenv("TRIBUTARY_CONFORMANCE", "")
	t.Setenv("TRIBUTARY_LONG", "")
	npm := func(t testing.TB) { needs.Npm(t, "no-such-package") }
	long := func(t testing.TB) { needs.Long(t, "it takes hours") }
	if said := told(t, npm); !strings.HasPrefix(said, "skip: ") || !strings.Contains(said, "make conformance") {
		t.Errorf("npm: %q", said)
	}
	if said := told(t, long); said != "skip: left to make long: it takes hours" {
		t.Errorf("long: %q", said)
	}
	t.Setenv("TRIBUTARY_CONFORMANCE", "1000")
	t.Setenv("TRIBUTARY_LONG", "1")
	if said := told(t, npm); !strings.HasPrefix(said, "fail: ") {
		t.Errorf("npm in make conformance: %q", said)
	}
	if said := told(t, long); said != "" {
		t.Errorf("make long: %q", said)
	}
}
