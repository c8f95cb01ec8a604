package packtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Schemas is a path below the folder of official schemas: TRIBUTARY_SCHEMAS, or
// shared/schemas beside the repository. Where the folder is absent the test is
// skipped with a line that says so; where it is named but lacks the path, or
// the tool that reads schemas is missing, the test fails: a check that is
// promised may not vanish.
func Schemas(t testing.TB, path ...string) string {
	t.Helper()
	dir := os.Getenv("TRIBUTARY_SCHEMAS")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared", "schemas")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no official schemas at %s: set TRIBUTARY_SCHEMAS to run this check", dir)
	}
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Fatal("xmllint is missing: run scripts/setup")
	}
	full := filepath.Join(append([]string{dir}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Fatalf("the folder of official schemas lacks %s", filepath.Join(path...))
	}
	return full
}

// root is the folder of go.mod.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// XSD is an official schema that xmllint can read.
type XSD struct {
	Path    string // of the schema, see [Schemas]
	Catalog string // XML catalogue that maps outside addresses to files; "" for none
}

// Check says what is wrong with a document by the schema; nil when nothing is.
// It never asks the network.
func (x XSD) Check(document []byte) error {
	cmd := exec.Command("xmllint", "--noout", "--nonet", "--schema", x.Path, "-")
	cmd.Stdin = bytes.NewReader(document)
	if x.Catalog != "" {
		cmd.Env = append(os.Environ(), "XML_CATALOG_FILES="+x.Catalog)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("xmllint: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Conforms fails the test unless the schema takes the document and refuses
// its broken copy, so that the check itself is known to work.
func (x XSD) Conforms(t testing.TB, document, broken []byte) {
	t.Helper()
	if bytes.Equal(document, broken) {
		t.Fatal("the broken copy is not broken")
	}
	if err := x.Check(document); err != nil {
		t.Errorf("the document is not valid: %v\n%s", err, document)
	}
	if err := x.Check(broken); err == nil {
		t.Error("the schema takes the broken copy as well")
	}
}
