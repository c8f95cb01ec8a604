package packtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"tributary/internal/needs"
)

// XSD is an official schema that xmllint can read.
type XSD struct {
	Path    string // of the schema, see needs.Schemas
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
	needs.Tool(t, "xmllint", "libxml2-utils")
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
