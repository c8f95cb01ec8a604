package tributary_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/country/packtest"
)

// Documents that name tests as proof may name only tests that exist: a promise
// whose proof was renamed or removed is a promise without proof.
func TestTestsNamedInDocumentsExist(t *testing.T) {
	defined := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	walk(t, ".go", func(_ string, text []byte) {
		for _, m := range definition.FindAllSubmatch(text, -1) {
			defined[string(m[1])] = true
		}
	})
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`")
	count := 0
	walk(t, ".md", func(path string, text []byte) {
		for _, m := range named.FindAllSubmatch(text, -1) {
			count++
			if !defined[string(m[1])] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	})
	if count < 50 {
		t.Errorf("only %d tests are named in documents: the search finds nothing", count)
	}
}

// The ways of hostile authorities are listed where security is described, all of them.
func TestHostileWaysAreDescribed(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	described := strings.Join(strings.Fields(string(text)), " ")
	ways := packtest.Hostilities()
	for _, way := range ways {
		if !strings.Contains(described, way) {
			t.Errorf("docs/security.md does not name %q", way)
		}
	}
	if len(ways) < 18 {
		t.Errorf("%d ways, want 18", len(ways))
	}
}

func walk(t *testing.T, suffix string, visit func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
