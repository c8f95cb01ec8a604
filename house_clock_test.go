package tributary_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// An instant that went through a number (time.UnixMicro and its like) has lost
// its monotonic reading: time.Since and time.Until then measure on the wall
// clock, and whoever waits for the result waits for hours when that is set back.
func TestNothingWaitsForTheWallClock(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && calls(call, "time.Since", "time.Until") && fromNumber(call.Args[0]) {
				t.Errorf("%s measures on the wall clock", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fromNumber: the expression makes an instant of a number on its way.
func fromNumber(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && calls(call, "time.Unix", "time.UnixMilli", "time.UnixMicro", "db.FromMicros",
			"FromMicros") {
			found = true
		}
		return true
	})
	return found
}

func calls(call *ast.CallExpr, names ...string) bool {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok {
			name = pkg.Name + "." + fun.Sel.Name
		}
	}
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
