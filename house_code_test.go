package tributary_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The limits of a function. They keep it on one screen and its call readable.
const (
	functionLinesMax  = 70
	parametersMax     = 4 // after a context
	commandLinesMax   = 60
	commandImportsMax = 16 // of our own packages
)

// exceptions are functions past a limit, each with the reason. The list only
// gets shorter: an entry whose function is within the limits fails the test.
var exceptions = map[string]string{
	"internal/db/dbtest/dbtest.go assigns template": "one server and one template serve all tests of a process",
	"internal/db/dbtest/shared.go assigns shared":   "as template",
	"internal/freeport/freeport.go assigns locks":   "a port is locked as long as its process lives",
}

// source is one parsed file of the program itself.
type source struct {
	path string // with slashes
	file *ast.File
	at   *token.FileSet
}

// sources parses everything but tests.
func sources(t *testing.T) (all []source) {
	t.Helper()
	at := token.NewFileSet()
	walk(t, ".go", func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, ".") {
			return
		}
		file, err := parser.ParseFile(at, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{filepath.ToSlash(path), file, at})
	})
	return all
}

// breaches collects what is past a limit, by place.
type breaches map[string]string

func (b breaches) compare(t *testing.T, kind func(place string) bool) {
	t.Helper()
	for place, what := range b {
		if _, known := exceptions[place]; !known {
			t.Errorf("%s %s", place, what)
		}
	}
	for place := range exceptions {
		if _, still := b[place]; !still && kind(place) {
			t.Errorf("%s is among the exceptions, but within the limits or gone: strike it out", place)
		}
	}
}

func TestFunctionsAreShortAndTakeFewParameters(t *testing.T) {
	found, seen := breaches{}, 0
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			name, typ := "a function literal", (*ast.FuncType)(nil)
			switch f := n.(type) {
			case *ast.FuncDecl:
				name, typ = f.Name.Name, f.Type
			case *ast.FuncLit:
				typ = f.Type
			default:
				return true
			}
			seen++
			if lines := s.at.Position(n.End()).Line - s.at.Position(n.Pos()).Line + 1; lines > functionLinesMax {
				found[s.path+" "+name] = fmt.Sprintf("has %d lines, at most %d are allowed", lines, functionLinesMax)
			}
			if count := parameters(typ); count > parametersMax {
				found[s.path+" "+name] = fmt.Sprintf("takes %d parameters, at most %d are allowed", count, parametersMax)
			}
			return true
		})
	}
	if seen < 1000 {
		t.Errorf("only %d functions were looked at", seen)
	}
	found.compare(t, func(place string) bool { return !strings.Contains(place, " assigns ") })
}

// parameters counts them without a leading context.
func parameters(f *ast.FuncType) (n int) {
	for i, field := range f.Params.List {
		if s, ok := field.Type.(*ast.SelectorExpr); ok && i == 0 && s.Sel.Name == "Context" {
			continue
		}
		n += max(1, len(field.Names))
	}
	return n
}

// TestPackageVariablesAreNeverAssigned: a table, an error or a compiled template
// may stand at package level, state may not.
func TestPackageVariablesAreNeverAssigned(t *testing.T) {
	all := sources(t)
	variables := map[string]map[string]bool{} // by folder, then name
	for _, s := range all {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					folder := filepath.Dir(s.path)
					if variables[folder] == nil {
						variables[folder] = map[string]bool{}
					}
					variables[folder][name.Name] = true
				}
			}
		}
	}
	found := breaches{}
	for _, s := range all {
		own := variables[filepath.Dir(s.path)]
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			local := declared(f)
			for _, target := range assigned(f.Body) {
				if id := root(target); id != nil && own[id.Name] && !local[id.Name] {
					found[s.path+" assigns "+id.Name] = "which is declared at package level"
				}
			}
		}
	}
	if len(variables) < 10 {
		t.Errorf("only %d packages have variables: the search finds nothing", len(variables))
	}
	found.compare(t, func(place string) bool { return strings.Contains(place, " assigns ") })
}

// root is the variable that an assignment changes, or part of.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// assigned lists what a body assigns to or counts.
func assigned(body ast.Node) (targets []ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch st := n.(type) {
		case *ast.AssignStmt:
			if st.Tok != token.DEFINE {
				targets = append(targets, st.Lhs...)
			}
		case *ast.IncDecStmt:
			targets = append(targets, st.X)
		}
		return true
	})
	return targets
}

// declared are the names that a function declares anywhere: what it assigns
// under one of them is its own.
func declared(f *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			for _, id := range x.Names {
				names[id.Name] = true
			}
		case *ast.ValueSpec:
			for _, id := range x.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				add(x.Lhs...)
			}
		case *ast.RangeStmt:
			if x.Tok == token.DEFINE {
				add(x.Key, x.Value)
			}
		}
		return true
	})
	return names
}

// TestDroppedErrorsSayWhy: errcheck lets whatever is assigned to _ pass, so the
// reason beside it is what a reviewer has. And a comment that silences a linter
// nobody runs silences nothing.
func TestDroppedErrorsSayWhy(t *testing.T) {
	dropped := 0
	for _, s := range sources(t) {
		if strings.HasSuffix(filepath.Dir(s.path), "test") {
			continue // suites for tests
		}
		told := map[int]bool{} // lines with a comment
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				told[s.at.Position(c.Pos()).Line] = true
				if strings.HasPrefix(c.Text, "//nolint") || strings.HasPrefix(c.Text, "//lint:") {
					t.Errorf("%s: %s is read by nobody", s.at.Position(c.Pos()), c.Text)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || len(a.Rhs) != 1 || slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool {
				id, ok := e.(*ast.Ident)
				return !ok || id.Name != "_"
			}) {
				return true
			}
			call, ok := a.Rhs[0].(*ast.CallExpr)
			if !ok || answers(call) {
				return true
			}
			dropped++
			at := s.at.Position(a.Pos())
			if !told[at.Line] && !told[at.Line-1] && !told[s.at.Position(a.End()).Line] {
				t.Errorf("%s drops what a call answers and does not say why", at)
			}
			return true
		})
	}
	if dropped < 20 {
		t.Errorf("only %d were looked at", dropped)
	}
}

// answers reports whether a call writes an answer to a caller, who may be gone:
// the list of errcheck has the reason for all of them.
func answers(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	to := f.X
	if f.Sel.Name == "WriteString" && len(call.Args) > 0 {
		to = call.Args[0]
	}
	w, ok := to.(*ast.Ident)
	return ok && w.Name == "w" && strings.HasPrefix(f.Sel.Name, "Write")
}

// TestCommandLineHasNoLogicOfItsOwn: flags in, one call, exit code out. What
// speaks HTTP or SQL, runs beside something else or does arithmetic on bytes has
// a package where it can be tested and used without a process.
func TestCommandLineHasNoLogicOfItsOwn(t *testing.T) {
	forbidden := []string{"net/http", "database/sql", "sync/atomic", "crypto/", "encoding/csv", "math/rand",
		"golang.org/x/", "github.com/jackc/", "modernc.org/"}
	sql := regexp.MustCompile(`(?i)\b(select .* from|insert into|update \w+ set|delete from)\b`)
	seen, ours := 0, map[string]bool{}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "cmd/") {
			continue
		}
		seen++
		for _, imported := range s.file.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			if slices.ContainsFunc(forbidden, func(f string) bool {
				return path == strings.TrimSuffix(f, "/") || strings.HasPrefix(path, f)
			}) {
				t.Errorf("%s imports %s", s.path, path)
			}
			if strings.HasPrefix(path, "tributary/internal/") {
				ours[path] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BasicLit:
				if x.Kind == token.STRING && sql.MatchString(x.Value) {
					t.Errorf("%s speaks SQL: %s", s.path, x.Value)
				}
			case *ast.FuncDecl:
				if lines := s.at.Position(x.End()).Line - s.at.Position(x.Pos()).Line + 1; lines > commandLinesMax {
					t.Errorf("%s %s has %d lines, at most %d are allowed in a command", s.path, x.Name.Name, lines, commandLinesMax)
				}
			}
			return true
		})
	}
	if seen < 5 {
		t.Errorf("only %d files of the command line were looked at", seen)
	}
	if len(ours) > commandImportsMax {
		t.Errorf("the command line imports %d of our packages, at most %d: %v", len(ours), commandImportsMax, ours)
	}
}
