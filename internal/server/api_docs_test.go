package server_test

import (
	"bytes"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/needs"
)

var (
	shownExample = regexp.MustCompile(
		`(?s)data-language="(\w+)"[^>]*><summary>\w+</summary><pre tabindex="0"><code>(.*?)</code></pre>`)
	anyTag = regexp.MustCompile(`<[^>]*>`)
)

// runners say how an example is run as it was pasted. TypeScript of these pages
// has no types, so that any Node can run it.
var runners = map[string]struct {
	file, pkg string
	command   []string
}{
	"curl": {"example.sh", "bash", []string{"bash"}}, "Go": {"example.go", "golang", []string{"go", "run"}},
	"TypeScript": {"example.mjs", "nodejs", []string{"node"}}, "Python": {"example.py", "python3", []string{"python3"}},
}

// TestTheExamplesOfTheDocumentationRun pastes what the demo's pages show.
func TestTheExamplesOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	p := busy(t)
	for page, want := range map[string]string{"postV1Transactions": `"operation_id"`,
		"getV1CountriesCode": `"country_code":"XX"`, "getOnboardingV2CompaniesId": `"legal_name"`} {
		shown := shownExample.FindAllSubmatch(p.as("").want(t, 200, "GET", "/docs/"+page+".html", nil).body, -1)
		if len(shown) != len(runners) {
			t.Fatalf("%s shows %d examples", page, len(shown))
		}
		for _, e := range shown {
			language := string(e[1])
			run := runners[language]
			needs.Tool(t, run.command[0], run.pkg)
			at := filepath.Join(t.TempDir(), run.file)
			if err := os.WriteFile(at, []byte(html.UnescapeString(string(anyTag.ReplaceAll(e[2], nil)))), 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), run.command[0], append(run.command[1:], at)...)
			command.Dir = filepath.Dir(at)
			out, err := command.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte(want)) || language != "curl" && !strings.HasPrefix(string(out), "20") {
				t.Errorf("%s in %s: %v\n%s", page, language, err, out)
			}
		}
	}
}
