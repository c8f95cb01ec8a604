// Package tributary_test holds the rules of the house that no single package can see.
package tributary_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// staircase lists the packages from left to right: a package imports only
// packages that stand to its left. A new package must be put on it. Packages
// on one step do not import each other.
var staircase = [][]string{
	{"fault", "freeport", "needs", "killpoint", "web", "minisign"},
	{"turnstile", "mutate", "leaks", "ids"},
	{"secret"},
	{"guard"},
	{"guard/guardtest"},
	{"strictjson", "official/xxwire", "official/satwire", "official/ksefwire", "official/navwire", "xmltree"},
	{"xmltree/soap", "xmltree/structure", "official/aeatwire", "official/sdiwire"},
	{"official", "official/xsd"},
	{"official/compile"},
	{"transaction", "authority"},
	{"transaction/transactiontest"},
	{"country/taxid", "country/amount", "country/text", "country/workday"},
	{"country/identity", "country/territory", "incoming"},
	{"country"},
	{"country/sale"},
	{"country/en16931"},
	{"country/peppol", "country/facturx", "country/??/wire", "country/??/ereport"}, // what an authority takes, below its country's law
	{"country/??", "country/generic", "authority/*"},                               // a country is a folder of two letters
	{"country/world"},
	{"country/packtest"},
	{"db"},
	{"schema"},
	{"db/dbtest"},
	{"lease"},
	{"simulation", "audit"},
	{"alert"},
	{"account"},
	{"operator"},
	{"document/typeset", "document/qr"},
	{"document/words"},
	{"endpoint"},
	{"document", "files"},
	{"files/filestest"},
	{"webhook"},
	{"onboarding"},
	{"lookup"},
	{"inbox"},
	{"operation"},
	{"result", "exchange", "quota", "hold", "chain", "adoption", "admission"},
	{"breaker", "series", "correction", "lifecycle"},
	{"period"},
	{"filing", "received"},
	{"ledger", "recovery"},
	{"retention"},
	{"filing/filingtest"},
	{"site"},
	{"api", "console"},
	{"server"},
	{"client", "doctor", "bench"},
}

type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestPackagesImportOnlyToTheirLeft(t *testing.T) {
	step := map[string]int{}
	for i, names := range staircase {
		for _, name := range names {
			folders, err := filepath.Glob("internal/" + name)
			if err != nil || len(folders) == 0 {
				t.Errorf("%s is on the staircase but does not exist", name)
			}
			for _, folder := range folders {
				files, _ := filepath.Glob(folder + "/*.go")
				if len(files) > 0 { // authority has doubles and files of its own; a country's folder may begin with what is below it
					step["tributary/"+filepath.ToSlash(folder)] = i
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath, "tributary/internal/") {
			continue
		}
		seen[p.ImportPath] = true
		at, ok := step[p.ImportPath]
		if !ok {
			t.Errorf("%s is not on the staircase: put it where it belongs", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if left, ours := step[imported]; ours && left >= at {
				t.Errorf("%s imports %s, which does not stand to its left", p.ImportPath, imported)
			}
		}
	}
	for name := range step {
		if !seen[name] {
			t.Errorf("%s is on the staircase but does not exist", name)
		}
	}
}

// A pack and the double that judges its filings never import each other: one
// misreading of a law or a protocol must not hide on both sides. They stand on
// one step, which proves it for those of today; this holds for every later one.
func TestPacksAndDoublesDoNotKnowEachOther(t *testing.T) {
	const doubles, packs = "tributary/internal/authority/", "tributary/internal/country/"
	below := map[string]bool{packs + "taxid": true, packs + "identity": true}
	seen := 0
	for _, p := range packages(t) {
		double, pack := strings.HasPrefix(p.ImportPath, doubles), strings.HasPrefix(p.ImportPath, packs)
		if p.ImportPath == packs+"world" { // pairs them
			continue
		}
		for _, imported := range p.Imports {
			if double && strings.HasPrefix(imported+"/", packs) && !below[imported] {
				t.Errorf("the double %s imports %s", p.ImportPath, imported)
			}
			if pack && strings.HasPrefix(imported, doubles) {
				t.Errorf("the pack %s imports %s", p.ImportPath, imported)
			}
		}
		if double {
			seen++
		}
	}
	if seen == 0 {
		t.Error("no double was found")
	}
}

// A new country touches its folder, its double's, and one line: of the program
// nothing but the list of the world knows a pack or a double, and nobody else asks
// whether a country is this one or that one.
func TestACountryIsOneFolderAndOneLine(t *testing.T) {
	// VIES is no country's
	pack := regexp.MustCompile(`^tributary/internal/(country/[a-z]{2}|authority/(?:[a-uw-z]|v[^i])[a-z]*)$`)
	owners, countries, codes := map[string][]string{}, 0, map[string]bool{}
	for _, p := range packages(t) {
		if pack.MatchString(p.ImportPath) {
			countries++
			codes[`"`+strings.ToUpper(path.Base(p.ImportPath))+`"`] = true // a double's name is no code, and does no harm
		}
		for _, imported := range p.Imports {
			if pack.MatchString(imported) {
				owners[imported] = append(owners[imported], p.ImportPath)
			}
		}
	}
	for name, known := range owners {
		if name == "tributary/internal/country/xx" { // the reference authority is also what bench and tests file with
			continue
		}
		if len(known) != 1 || known[0] != "tributary/internal/country/world" {
			t.Errorf("%s is known to %v", name, known)
		}
	}
	if countries < 18 || len(owners) != countries {
		t.Errorf("%d packs and doubles, %d in the world", countries, len(owners))
	}
	for _, s := range sources(t) {
		if regexp.MustCompile(`^internal/(country|authority|official)/`).MatchString(s.path) {
			continue
		}
		asks := func(at token.Pos, sides ...ast.Expr) {
			for _, side := range sides {
				if l, ok := side.(*ast.BasicLit); ok && codes[l.Value] {
					t.Errorf("%s asks whether a country is %s", s.at.Position(at), l.Value)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch c := n.(type) {
			case *ast.BinaryExpr:
				if c.Op == token.EQL || c.Op == token.NEQ {
					asks(c.Pos(), c.X, c.Y)
				}
			case *ast.CaseClause:
				if len(c.List) < len(codes) { // the list of the whole world asks for none of them
					asks(c.Pos(), c.List...)
				}
			}
			return true
		})
	}
}

var forbiddenNames = regexp.MustCompile(
	`^(util|utils|common|helpers?|models?|types|services?|repository|repositories|mocks?)$`)

func TestHouseStyle(t *testing.T) {
	const linesMax = 600
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if strings.HasPrefix(e.Name(), ".") && path != "." {
				return fs.SkipDir
			}
			if forbiddenNames.MatchString(e.Name()) {
				t.Errorf("%s: a package name must say what it owns", path)
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(text, []byte("\n")); n > linesMax && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines, more than %d", path, n, linesMax)
		}
		if regexp.MustCompile(`(?m)^func init\(\)`).Match(text) {
			t.Errorf("%s has an init function", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The short fuzzing of CI mutates what the corpora hold: a target without one is
// hardly fuzzed at all, and a corpus without its target is one whose name changed.
func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	wanted := map[string]bool{}
	target := regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)
	walk(t, "_test.go", func(path string, text []byte) {
		for _, m := range target.FindAllSubmatch(text, -1) {
			wanted[filepath.Join(filepath.Dir(path), "testdata", "fuzz", string(m[1]))] = true
		}
	})
	for folder := range wanted {
		if inputs, err := os.ReadDir(folder); err != nil || len(inputs) == 0 {
			t.Errorf("%s has no inputs: %v", folder, err)
		}
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasSuffix(filepath.Dir(path), filepath.Join("testdata", "fuzz")) &&
			!wanted[path] {
			t.Errorf("%s belongs to no fuzz target", path)
		}
		return err
	})
	if err != nil || len(wanted) < 50 {
		t.Errorf("only %d targets were found: %v", len(wanted), err)
	}
}
