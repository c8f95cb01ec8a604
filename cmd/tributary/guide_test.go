package main

import (
	"errors"
	stdflag "flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tributary/internal/client"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

var update = stdflag.Bool("update", false, "rewrite generated files and the generated parts of the guide")

const guideFolder = "../../docs/guide"

// TestTheGuideSaysWhatTheProgramDoes compares the generated parts of the guide.
func TestTheGuideSaysWhatTheProgramDoes(t *testing.T) {
	for page, generated := range map[string]string{
		"errors.md codes": codesTable(), "files.md columns": columnsTable(),
		"corrections.md corrections": correctionsTable(t),
	} {
		name, part, _ := strings.Cut(page, " ")
		replacePart(t, filepath.Join(guideFolder, name), part, generated)
	}
}

// replacePart compares what stands between the marks of a page, or rewrites it.
func replacePart(t *testing.T, path, part, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- generated: "+part+" -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(string(text), begin)
	got, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no part %q", path, part)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s, part %s, is not what the program does; rewrite it with -update\ngot\n%s\nwant\n%s", path, part, got,
			want)
	}
}

func codesTable() string {
	out := "| Code | Meaning | What to do |\n|---|---|---|\n"
	for _, c := range fault.Codes() {
		out += fmt.Sprintf("| `%s` | %s | %s |\n", c.Code, c.Meaning, c.Action)
	}
	return out
}

func TestTheGuideSaysOfEveryCodeWhereItAppears(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(guideFolder, "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Where codes appear")
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(section, -1) {
		named[m[1]] = true
	}
	for _, c := range fault.Codes() {
		if !named[string(c.Code)] {
			t.Errorf("%s is missing in the table of where codes appear", c.Code)
		}
		delete(named, string(c.Code))
	}
	for code := range named {
		t.Errorf("%s is not a code", code)
	}
}

func columnsTable() string {
	out := "| Column | Goes to | Example |\n|---|---|---|\n"
	for _, c := range client.CSVColumns() {
		example := ""
		if c.Example != "" {
			example = "`" + c.Example + "`"
		}
		out += fmt.Sprintf("| `%s` | %s | %s |\n", c.Name, c.Target, example)
	}
	return out
}

// correctionsTable lists the countries with an authority of their own; all
// others share one line.
func correctionsTable(t *testing.T) string {
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []transaction.Kind{transaction.Adjustment, transaction.Credit, transaction.Cancellation}
	out := "| Country | Adjustment, until | Credit, until | Cancellation, until |\n|---|---|---|---|\n"
	line := func(name string, f country.Facts) string {
		row := "| " + name
		for _, k := range kinds {
			c, ok := f.Correction(k)
			switch {
			case !ok:
				row += " | –"
			case c.Deadline != "":
				row += " | " + c.Deadline
			default:
				row += " | no deadline"
			}
			if c.ReasonRequired {
				row += " (needs a `reason`)"
			}
		}
		return row + " |\n"
	}
	others := 0
	var documents country.Facts
	for _, p := range packs {
		if !p.Reports() {
			others, documents = others+1, p.Facts
			continue
		}
		out += line(p.Name+" (`"+p.Code+"`)", p.Facts)
	}
	return out + line(fmt.Sprintf("%d countries with documents only", others), documents)
}

// block is a piece of shell that a page promises to work.
type block struct {
	terminal string // "1" and "2" run beside, "setup" before every page, "" in order
	text     string
}

func testedBlocks(t *testing.T, page string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```sh tested ?([a-z0-9=]*)\n(.*?)```").FindAllStringSubmatch(string(text),
		-1) {
		blocks = append(blocks, block{strings.TrimPrefix(m[1], "terminal="), m[2]})
	}
	return blocks
}

// TestTheGuidesLinesWork runs the pages' tested blocks as a reader would: two
// terminals with the service and the receiver, a third for each page.
func TestTheGuidesLinesWork(t *testing.T) {
	t.Parallel()
	needs.Tool(t, "curl", "curl")
	needs.Tool(t, "openssl", "openssl")
	var setup string
	var terminals = map[string]string{}
	for _, b := range testedBlocks(t, filepath.Join(guideFolder, "first-integration.md")) {
		switch b.terminal {
		case "setup":
			setup = b.text
		case "1", "2":
			terminals[b.terminal] = b.text
		}
	}
	if setup == "" || len(terminals) != 2 {
		t.Fatal("first-integration.md has no set-up or lacks a terminal")
	}
	place := newCheckout(t)
	listening := place.background(terminals["2"], "TRIBUTARY_LISTEN_LISTEN="+place.at["8085"])
	demo := place.background(terminals["1"], "TRIBUTARY_LISTEN="+place.at["8080"], "TRIBUTARY_ADMIN="+place.at["8081"],
		"TRIBUTARY_SIMULATORS="+place.at["8090"], "TRIBUTARY_CALLBACKS=127.0.0.1:0",
		"TRIBUTARY_AUTHORITY_RETRY_BASE=50ms", "TRIBUTARY_LOG_LEVEL=warn")
	demo.waitReady()
	pages, err := filepath.Glob(filepath.Join(guideFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The README's third terminal has shorter names for the same.
	setup += "BASE=$TRIBUTARY_URL KEY=$TRIBUTARY_API_KEY\n"
	ran := 0
	for _, page := range append(pages, "../../README.md") {
		script := setup
		for _, b := range testedBlocks(t, page) {
			if b.terminal == "" {
				script += b.text
				ran++
			}
		}
		if script == setup {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", place.placed(script)) // the blocks say sh, and mean it
			cmd.Dir, cmd.Env = place.dir, place.env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d blocks were run: the marks have changed", ran)
	}
	// Terminal 2 has heard and verified what terminal 3 caused.
	for deadline := time.Now().Add(patience); strings.Count(listening.output(), "transactions.transaction_completed") < 8 ||
		strings.Count(listening.output(), "transactions.transaction_received") < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("the receiver heard\n%s%s", listening.output(), listening.stderr())
		}
		time.Sleep(20 * time.Millisecond) // another process; it has no signal to give
	}
}

// checkout is a folder like a checkout, with the program on the path and ports of its own.
type checkout struct {
	t   *testing.T
	dir string
	env []string
	at  map[string]string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	s := &checkout{t: t, dir: t.TempDir(), at: map[string]string{}}
	for _, port := range []string{"8080", "8081", "8085", "8090"} {
		s.at[port] = freeAddress(t)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	shim := "#!/bin/sh\n" + childEnv + "=1 exec '" + fastBinary(t) + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(s.dir, "bin", "tributary"), []byte(shim), 0o700); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(s.dir, "docs")); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"))
	return s
}

// placed moves the guide's ports to free ones.
func (s *checkout) placed(script string) string {
	for port, at := range s.at {
		script = strings.ReplaceAll(script, "127.0.0.1:"+port, at)
	}
	return script
}

// background runs a terminal's block until the test ends.
func (s *checkout) background(script string, env ...string) *process {
	s.t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+strings.TrimSpace(s.placed(script)))
	cmd.Dir, cmd.Env = s.dir, append(s.env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return begin(s.t, cmd)
}

// TestTheREADMEsTerminalsAreTheGuides: the guide's are run by a test, so the
// README's work as well. Its lines for production are run by a test of their own.
func TestTheREADMEsTerminalsAreTheGuides(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.ReplaceAll(string(readme), "go run ./cmd/tributary", "tributary")
	for _, b := range testedBlocks(t, filepath.Join(guideFolder, "first-integration.md")) {
		if (b.terminal == "1" || b.terminal == "2") && !strings.Contains(plain, "```sh\n"+b.text+"```") {
			t.Errorf("the README's terminal %s is not the guide's:\n%s", b.terminal, b.text)
		}
	}
}

// TestLinksBetweenDocumentsLeadSomewhere follows every relative link and its heading.
func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	const root = "../.."
	var pages []string
	for _, pattern := range []string{"*.md", "llms.txt", "docs/*.md", "docs/*/*.md", "packaging/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 15 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInName := regexp.MustCompile(`[^a-z0-9 -]`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				target = page
			}
			body, err := os.ReadFile(target)
			if info, missing := os.Stat(target); missing != nil || err != nil && !info.IsDir() {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			found := heading == ""
			for _, line := range strings.Split(string(body), "\n") {
				if strings.HasPrefix(line, "#") {
					name := notInName.ReplaceAllString(strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#"))), "")
					found = found || strings.ReplaceAll(name, " ", "-") == heading
				}
			}
			if !found {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
}
