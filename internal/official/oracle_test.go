package official_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/needs"
	"tributary/internal/official"
	"tributary/internal/xmltree"
)

// oracle is xmllint with the official files of a standard.
type oracle struct {
	dir     string
	wrapper string
	env     []string
}

// newOracle writes a schema that imports the files of a compact form.
func newOracle(t testing.TB, standard official.Standard) *oracle {
	t.Helper()
	needs.Tool(t, "xmllint", "libxml2-utils")
	source := sourceOf(t, standard)
	o := &oracle{dir: t.TempDir()}
	w := xmltree.NewWriter(1 << 10)
	w.Declare()
	w.Start("xs:schema", "xmlns:xs", "http://www.w3.org/2001/XMLSchema")
	for _, file := range source.Files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), `targetNamespace="`)
		target, _, _ := strings.Cut(rest, `"`)
		w.Leaf("xs:import", "", "namespace", target, "schemaLocation", file)
	}
	w.End()
	o.wrapper = filepath.Join(o.dir, "wrapper.xsd")
	if err := os.WriteFile(o.wrapper, w.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = append(os.Environ(),
		"XML_CATALOG_FILES="+filepath.Join(needs.Schemas(t), "pl-ksef", "catalog.xml")+" "+
			filepath.Join(needs.Schemas(t), "it-fatturapa", "catalog.xml"))
	return o
}

// judge says of each document whether it is valid.
func (o *oracle) judge(t testing.TB, documents [][]byte) []bool {
	t.Helper()
	args := []string{"--noout", "--nonet", "--schema", o.wrapper}
	folder, err := os.MkdirTemp(o.dir, "batch")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range documents {
		path := filepath.Join(folder, fmt.Sprintf("%d.xml", i))
		if err := os.WriteFile(path, d, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.Command("xmllint", args...)
	cmd.Env = o.env
	out, _ := cmd.CombinedOutput() // its status says that some document is not valid
	valid, said := make([]bool, len(documents)), make([]bool, len(documents))
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		path, good := strings.CutSuffix(line, " validates")
		if !good {
			bad := false
			if path, bad = strings.CutSuffix(line, " fails to validate"); !bad {
				continue
			}
		}
		var i int
		if _, err := fmt.Sscanf(filepath.Base(path), "%d.xml", &i); err == nil {
			valid[i], said[i] = good, true
		}
	}
	for i := range said {
		if !said[i] && !strings.Contains(string(out), fmt.Sprintf("%d.xml:", i)) {
			t.Fatalf("xmllint said nothing about document %d:\n%.2000s", i, out)
		}
	}
	return valid
}
