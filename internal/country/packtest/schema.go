package packtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// XSD is an official schema that xmllint can read.
type XSD struct {
	Path    string // of the schema, see needs.Schemas
	Catalog string // XML catalogue that maps outside addresses to files; "" for none
}

// Conforms fails the test unless the schema takes the document and refuses
// its broken copy, so that the check itself is known to work.
func (x XSD) Conforms(t testing.TB, document, broken []byte) {
	t.Helper()
	x.AllConform(t, [][]byte{document}, func([]byte) []byte { return broken })
}

// AllConform is Conforms for many documents in one run of xmllint: reading a
// schema costs more than judging a hundred documents.
func (x XSD) AllConform(t testing.TB, documents [][]byte, broken func([]byte) []byte) {
	t.Helper()
	list := slices.Clone(documents)
	for _, d := range documents {
		b := broken(d)
		if bytes.Equal(d, b) {
			t.Fatalf("the broken copy is not broken:\n%s", d)
		}
		list = append(list, b)
	}
	found := x.CheckAll(t, list)
	for i, d := range documents {
		if found[i] != nil {
			t.Errorf("the document is not valid: %v\n%s", found[i], d)
		}
		if found[len(documents)+i] == nil {
			t.Errorf("the schema takes the broken copy as well:\n%s", list[len(documents)+i])
		}
	}
}

// CheckAll says what is wrong with each document by the schema, in one run of
// xmllint; nil where nothing is. It never asks the network.
func (x XSD) CheckAll(t testing.TB, documents [][]byte) []error {
	t.Helper()
	needs.Tool(t, "xmllint", "libxml2-utils")
	dir := t.TempDir()
	args := []string{"--noout", "--nonet", "--schema", x.Path}
	for i, d := range documents {
		path := filepath.Join(dir, strconv.Itoa(i)+".xml")
		if err := os.WriteFile(path, d, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.Command("xmllint", args...)
	if x.Catalog != "" {
		cmd.Env = append(os.Environ(), "XML_CATALOG_FILES="+x.Catalog)
	}
	out, _ := cmd.CombinedOutput() // it fails when any document does
	found := make([]error, len(documents))
	valid := 0
	for line := range strings.Lines(string(out)) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, dir+"/"), ".xml")
		n, err := strconv.Atoi(name)
		if !ok || err != nil || n >= len(documents) {
			continue
		}
		if strings.HasPrefix(rest, " validates") {
			valid++
		} else if found[n] == nil {
			found[n] = fmt.Errorf("xmllint: %s", strings.TrimSpace(rest))
		}
	}
	for _, err := range found {
		if err != nil {
			valid++
		}
	}
	if valid != len(documents) {
		t.Fatalf("xmllint spoke of %d of %d documents:\n%.2000s", valid, len(documents), out)
	}
	return found
}
