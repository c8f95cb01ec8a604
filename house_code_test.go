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
	commandImportsMax = 14 // of our own packages
)

// exceptions are functions past a limit, each with the reason. The list only
// gets shorter: an entry whose function is within the limits fails the test.
var exceptions = map[string]string{
	"internal/db/dbtest/dbtest.go assigns template": "one server and one template serve all tests of a process",
	"internal/db/dbtest/postgres.go assigns shared": "as template",
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
		file, err := parser.ParseFile(at, path, text, 0)
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
		check := func(target ast.Expr) {
			id := root(target)
			if id == nil || !own[id.Name] || id.Obj != nil && !packageLevel(s.file, id.Obj) {
				return
			}
			found[s.path+" assigns "+id.Name] = "which is declared at package level"
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch st := n.(type) {
			case *ast.AssignStmt:
				for _, target := range st.Lhs {
					if st.Tok != token.DEFINE {
						check(target)
					}
				}
			case *ast.IncDecStmt:
				check(st.X)
			}
			return true
		})
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

//lint:ignore SA1019 within one file the parser's own resolution is enough
func packageLevel(f *ast.File, o *ast.Object) bool { return f.Scope.Lookup(o.Name) == o }

// TestCommandLineHasNoLogicOfItsOwn: flags in, one call, exit code out. What
// speaks HTTP or SQL, runs beside something else or does arithmetic on bytes has
// a package where it can be tested and used without a process.
func TestCommandLineHasNoLogicOfItsOwn(t *testing.T) {
	forbidden := []string{"net/http", "database/sql", "sync/atomic", "crypto/", "encoding/csv", "math/rand", "golang.org/x/", "github.com/jackc/", "modernc.org/"}
	sql := regexp.MustCompile(`(?i)\b(select .* from|insert into|update \w+ set|delete from)\b`)
	seen, ours := 0, map[string]bool{}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "cmd/") {
			continue
		}
		seen++
		for _, imported := range s.file.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			if slices.ContainsFunc(forbidden, func(f string) bool { return path == strings.TrimSuffix(f, "/") || strings.HasPrefix(path, f) }) {
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
