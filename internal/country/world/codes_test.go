package world_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/country/world"
	"tributary/internal/official/satwire"
)

// What a double can say, the tables explain: its codes are read from the source
// of the doubles and of the wires, so that a further one cannot be forgotten.
func TestEveryCodeThatADoubleAnswersIsExplained(t *testing.T) {
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{
		"ES": literals(t, "aeat", `^"[1-4][0-9]{3}"$`),
		"MX": slices.Concat(literals(t, "sat", `^"(CFDI|CRP)[0-9]+"$`), keys(t, "sat", "words"),
			constants(t, "satwire", "CodeNoAccess", "Code"), cancellations()),
		"PL": refusals(slices.Concat(constants(t, "ksefwire", "CodeUnreadable", "Code"),
			constants(t, "ksefwire", "CodePartSize", "Code"),
			constants(t, "ksefwire", "StatusProcessing", "Status"), constants(t, "ksefwire", "SessionOpen", "Session"))),
		"HU": slices.Concat(constants(t, "navwire", "InvalidRequest", ""), constants(t, "navwire", "SchemaViolation", "")),
		"XX": slices.Concat(constants(t, "xxwire", "CodeStructure", "Code"), constants(t, "xxwire", "CodeGrant", "Code"),
			constants(t, "xxwire", "CodePlatform", "Code")),
		"IT": slices.Concat(constants(t, "sdiwire", "NameWrong", ""), constants(t, "sdiwire", "FileEmpty", "FileEmpty"),
			constants(t, "sdiwire", "FileEmpty", "Unavailable"),
			constants(t, "sdiwire", "FileEmpty", "NotEnabled"), constants(t, "sdiwire", "EsitoAccepted", "Esito"),
			[]string{"MC", "AT", "DT"}),
		"FR": slices.Concat(literals(t, "pa", `^"2(0[0-9]|1[0-3])"$`), literals(t, "pa", `^"(REJ_[A-Z]+|DOUBLON|[A-Z]+_(ERR|INC))"$`), []string{"AlreadyExistingFlow", "ChecksumMismatch", "InvalidSchema", "EmptyFlow", "FlowTypeError"}),
		"RO": underscored(literals(t, "anaf", `^"BR-RO-[A-Z]*[0-9]+"$`)),
	}
	for _, p := range packs {
		said := known[p.Code]
		if p.Chosen() {
			said = []string{"AP", "AB", "RE", "IMR_AB", "IMR_IP", "IMR_UQ", "IMR_CA", "IMR_RE", "IMR_AP", "IMR_PD"} // Peppol's answers to an invoice
		}
		if p.Simulator != nil && len(said) < 3 {
			t.Errorf("%s: only %v was found", p.Code, said)
		}
		for _, one := range said {
			if found := p.Explain(one + ": text"); len(found) != 1 || found[0].Code != one {
				t.Errorf("%s: the code %s is not explained: %v", p.Code, one, found)
			}
		}
	}
}

// underscored are names of rules as the table of codes has them.
func underscored(rules []string) (list []string) {
	for _, rule := range rules {
		list = append(list, strings.ReplaceAll(rule, "-", "_"))
	}
	return list
}

// Our own words are short, and are sentences.
func TestTheTablesOfCodesAreSentences(t *testing.T) {
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packs {
		for _, c := range p.Codes {
			for _, text := range []string{c.Meaning, c.Do} {
				if len(text) > 200 || !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] {
					t.Errorf("%s %s: %q", p.Code, c.Code, text)
				}
			}
		}
	}
}

func sources(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v", folder, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// literals are the texts of a form in the source of a double.
func literals(t *testing.T, double, form string) (found []string) {
	t.Helper()
	like := regexp.MustCompile(form)
	for _, file := range sources(t, "../../authority/"+double) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && like.MatchString(lit.Value) {
				found = append(found, literal(lit))
			}
			return true
		})
	}
	return unique(found)
}

// keys are those of a map that a double has written out.
func keys(t *testing.T, double, name string) (found []string) {
	t.Helper()
	for _, file := range sources(t, "../../authority/"+double) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != name {
				return true
			}
			for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
				found = append(found, literal(e.(*ast.KeyValueExpr).Key))
			}
			return false
		})
	}
	return unique(found)
}

// constants are those of a wire whose names begin alike, of the group that one of them is in.
func constants(t *testing.T, wire, one, alike string) (found []string) {
	t.Helper()
	for _, file := range sources(t, "../../official/"+wire) {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST || !slices.ContainsFunc(group.Specs, func(s ast.Spec) bool {
				return s.(*ast.ValueSpec).Names[0].Name == one
			}) {
				continue
			}
			for _, s := range group.Specs {
				if v := s.(*ast.ValueSpec); strings.HasPrefix(v.Names[0].Name, alike) {
					found = append(found, literal(v.Values[0]))
				}
			}
		}
	}
	return unique(found)
}

func literal(n ast.Node) string {
	lit, ok := n.(*ast.BasicLit)
	if !ok {
		return ""
	}
	if lit.Kind != token.STRING {
		return lit.Value
	}
	text, _ := strconv.Unquote(lit.Value)
	return text
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// refusals leaves out statuses of work that goes on or went well.
func refusals(statuses []string) []string {
	return slices.DeleteFunc(statuses, func(s string) bool { return len(s) == 3 && s < "400" })
}

// cancellations are the codes that SAT's cancellation service has words for.
func cancellations() []string {
	known := []string{"201", "202", "NoCancelable", "no_cancelable"}
	for n := range 1000 {
		if code := fmt.Sprintf("%03d", n); satwire.CancelMeaning(code) != satwire.CancelMeaning("") {
			known = append(known, code)
		}
	}
	return known
}
