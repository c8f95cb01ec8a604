package tributary_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
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

// The specification is complete: it names every code, every event and every
// member that a request may have.
func TestTheSpecificationNamesEverything(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, code := range fault.Codes() {
		names = append(names, string(code.Code))
	}
	names = append(names, webhook.EventTypes()...)
	for _, path := range transaction.FieldPaths() {
		names = append(names, strings.Split(path, ".")...)
	}
	for _, name := range names {
		if name != "*" && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).Match(text) {
			t.Errorf("docs/specification.md does not name %s", name)
		}
	}
}

const decisionsMax = 45

// decisions reads the records, in order; index is the page that lists them.
func decisions(t *testing.T) (records []string, index string) {
	t.Helper()
	paths, err := filepath.Glob("docs/decisions/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.Base(path); name == "README.md" {
			index = string(text)
		} else {
			records = append(records, name+"\n"+string(text))
		}
	}
	return records, index
}

// A newcomer reads the records from the first to the last: few, without holes,
// each with its status and date, all of them in the index.
func TestDecisionsAreFewNumberedAndListed(t *testing.T) {
	t.Parallel()
	records, index := decisions(t)
	if n := len(records); n > decisionsMax || n < decisionsMax/2 {
		t.Errorf("%d records, want at most %d", n, decisionsMax)
	}
	form := regexp.MustCompile(`^(\d{4}-[a-z0-9-]+\.md)\n# (\d+)\. (.+)\n\n` +
		`Status: (accepted|superseded by \d+)\nDate: 20\d\d-\d\d-\d\d\n\n`)
	for i, record := range records {
		m := form.FindStringSubmatch(record)
		if m == nil || !strings.HasPrefix(m[1], fmt.Sprintf("%04d-", i+1)) || m[2] != fmt.Sprint(i+1) {
			t.Errorf("record %d wants its number, a title, a status and a date: %.80q", i+1, record)
			continue
		}
		if line := fmt.Sprintf("| %d | [%s](%s) | ", i+1, m[3], m[1]); !strings.Contains(index, line) {
			t.Errorf("docs/decisions/README.md has no line %q", line)
		}
	}
	if lines := strings.Count(index, "\n| "); lines != len(records)+1 { // and the head of the table
		t.Errorf("docs/decisions/README.md lists %d records of %d", lines-1, len(records))
	}
}

// Comments and documents that name a record name one that exists.
func TestDecisionsThatAreNamedExist(t *testing.T) {
	t.Parallel()
	records, _ := decisions(t)
	named := regexp.MustCompile(`decisions/(\d{4})[a-z0-9-]*(\.md)?|[Dd]ecisions? (\d{1,3}|0\d{3})\b`)
	count := 0
	for _, suffix := range []string{".go", ".md", ".txt", ".sql", ".html", "Makefile"} {
		walk(t, suffix, func(path string, text []byte) {
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				count++
				var number int
				if _, err := fmt.Sscanf(m[1]+m[3], "%d", &number); err != nil || number < 1 || number > len(records) {
					t.Errorf("%s names %s, which does not exist", path, m[0])
				} else if m[2] != "" && !strings.HasPrefix(records[number-1], filepath.Base(m[0])+"\n") {
					t.Errorf("%s names %s: that record has another title", path, m[0])
				}
			}
		})
	}
	if count < 20 {
		t.Errorf("only %d records are named: the search finds nothing", count)
	}
}

func walk(t *testing.T, suffix string, visit func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".cache" {
			return fs.SkipDir // programs of others
		}
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

// Phrases in which readers stumbled, told better since: none comes back, in texts
// of the program or in its pages.
func TestPhrasesInWhichReadersStumbledAreGone(t *testing.T) {
	t.Parallel()
	gone := strings.Split("has no address for this kind|filing goes on with|could not be prepared or was not taken"+
		"|failed calls in a row\"|the document is made again when|is set aside until|\"taken by|exact bytes were made"+
		"|\": not taken|what the client was told.|an event follows|does not say what became|or the beginning of a word of one\""+
		"|the chosen\"|retry all that|found by number|open breaker, probed|window of time\"|in the foot\"|logo stands|\"at once\""+
		"|requests a second|years that records|differ from ours:|\"its own address|of a country to take it|on their way\""+
		"|a supplier of some countries|is not right.\"|minutes of rest|goes again by itself|lane paused"+
		"|did not end well|the service does not take it|given up after %|call is not valid|its schema is made|forget nothing of"+
		"|is not there\"|filed when it no longer|make a document known|without storing it\"|alone in work when|brought nothing;", "|")
	for _, ending := range []string{".go", ".html", ".txt"} {
		walk(t, ending, func(path string, text []byte) {
			if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return
			}
			said := strings.ToLower(string(text))
			for _, phrase := range gone {
				if !strings.Contains(said, phrase) {
					continue
				}
				for line := range strings.Lines(said) {
					if line = strings.TrimSpace(line); strings.Contains(line, phrase) && !strings.HasPrefix(line, "//") {
						t.Errorf("%s says %q again: %s", path, phrase, line)
					}
				}
			}
		})
	}
}
