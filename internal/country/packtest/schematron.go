package packtest

import (
	"bytes"
	_ "embed" // the driver
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// Saxon's own archive and the one it needs, where the distribution has them.
const saxonPath = "/usr/share/java/Saxon-HE.jar:/usr/share/java/xml-resolver.jar"

//go:embed schematron.xsl
var schematronDriver []byte

// Trial is one document before one set of official rules, which are Schematron
// compiled to XSLT.
type Trial struct {
	Rules    string // path of the rules, see [Schemas]
	Document []byte
}

// Verdict is what a set of rules says of a document.
type Verdict struct {
	Fired    int      // rules that looked at anything; 0 means that the document is of another kind
	Errors   []string // names of broken rules that refuse the document
	Warnings []string // names of broken rules that only warn
	Texts    []string // their explanations, errors first
}

// Judge runs all trials in one Java virtual machine: it starts once and each
// set of rules is compiled once, which costs more than judging a hundred
// documents.
func Judge(t testing.TB, trials []Trial) []Verdict {
	t.Helper()
	needs.Tool(t, "java", "default-jdk-headless")
	needs.File(t, strings.Split(saxonPath, ":")[0], "libsaxonhe-java")
	dir := t.TempDir()
	driver, jobs := filepath.Join(dir, "driver.xsl"), filepath.Join(dir, "jobs.xml")
	var list bytes.Buffer
	list.WriteString("<jobs>")
	for _, rules := range inOrder(trials) {
		fmt.Fprintf(&list, "<rules href=%q>", "file://"+rules)
		for i := range trials {
			if trials[i].Rules != rules {
				continue
			}
			path := filepath.Join(dir, strconv.Itoa(i)+".xml")
			if err := os.WriteFile(path, trials[i].Document, 0o600); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&list, "<document number=\"%d\" href=%q/>", i, "file://"+path)
		}
		list.WriteString("</rules>")
	}
	list.WriteString("</jobs>")
	for path, text := range map[string][]byte{driver: schematronDriver, jobs: list.Bytes()} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A machine that lives for seconds: the optimizing compiler and collectors that
	// run beside it would cost more than they save.
	cmd := exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss8m", "-Xmx1g", "-cp", saxonPath,
		"net.sf.saxon.Transform", "-s:"+jobs, "-xsl:"+driver, "-warnings:silent")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("judging %d documents: %v\n%s", len(trials), err, problems.String())
	}
	return verdicts(t, out.String(), len(trials))
}

// inOrder lists the sets of rules, each once.
func inOrder(trials []Trial) (rules []string) {
	seen := map[string]bool{}
	for i := range trials {
		if !seen[trials[i].Rules] {
			seen[trials[i].Rules] = true
			rules = append(rules, trials[i].Rules)
		}
	}
	return rules
}

// verdicts reads what the driver wrote: a line for each document and, behind
// it, one for each broken rule.
func verdicts(t testing.TB, text string, count int) []Verdict {
	t.Helper()
	all, seen := make([]Verdict, count), 0
	current := -1
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		switch fields[0] {
		case "document":
			n, err := strconv.Atoi(fields[1])
			if err != nil || n >= count {
				t.Fatalf("the driver wrote %q", line)
			}
			fired, _ := strconv.Atoi(fields[2])
			current, seen = n, seen+1
			all[n].Fired = fired
		case "error", "warning":
			v := &all[current]
			if fields[0] == "error" {
				v.Errors = append(v.Errors, fields[1])
			} else {
				v.Warnings = append(v.Warnings, fields[1])
			}
			v.Texts = append(v.Texts, fields[1]+": "+fields[2])
		}
	}
	if seen != count {
		t.Fatalf("%d of %d documents were judged", seen, count)
	}
	return all
}
