package official_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tributary/internal/official"
	"tributary/internal/xmltree"
)

// The schemas that we write ourselves, from the compact forms, judge documents
// as the official ones do: a double serves them to clients that want a schema.
func TestSchemasOfOurOwnMeanWhatTheOfficialOnesMean(t *testing.T) {
	for _, c := range samples {
		switch c.standard {
		case official.Verifactu, official.FatturaPA, official.FatturaSemplificata, official.SdIMessages:
		default:
			continue // nobody asks for them; NAV derives types across namespaces, UPO has a key
		}
		t.Run(string(c.standard), func(t *testing.T) {
			count, seed := mutantsOf(t)
			made := mutants(samplesOf(t, c.standard, c.globs), count/2, seed+1)
			texts := make([][]byte, 0, len(made))
			for i := range made {
				if doc, err := xmltree.Read(made[i].text); err == nil && !chooses(doc.Root) {
					texts = append(texts, made[i].text)
				}
			}
			theirs := newOracle(t, c.standard).judge(t, texts)
			ours := writtenOracle(t, c.standard).judge(t, texts)
			for i := range texts {
				if theirs[i] != ours[i] {
					t.Errorf("the official schema says valid=%v, ours %v\n%.1500s", theirs[i], ours[i], texts[i])
				}
			}
		})
	}
}

// chooses reports whether a document chooses a type, which our schemas cannot offer.
func chooses(root *xmltree.Element) bool {
	for e := range root.Walk() {
		if _, ok := e.Lookup(xmltree.SpaceXSI, "type"); ok {
			return true
		}
	}
	return false
}

// writtenOracle is xmllint with the schemas that we write.
func writtenOracle(t *testing.T, standard official.Standard) *oracle {
	t.Helper()
	o := &oracle{dir: t.TempDir(), env: os.Environ()}
	schema := standard.Schema()
	names := map[string]string{}
	for i, space := range schema.Spaces() {
		names[space] = fmt.Sprintf("%d.xsd", i)
	}
	w := xmltree.NewWriter(1 << 10)
	w.Start("xs:schema", "xmlns:xs", "http://www.w3.org/2001/XMLSchema")
	for space, name := range names {
		text, err := schema.XSD(space, func(space string) string { return names[space] })
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		w.Leaf("xs:import", "", "namespace", space, "schemaLocation", name)
	}
	w.End()
	o.wrapper = filepath.Join(o.dir, "wrapper.xsd")
	if err := os.WriteFile(o.wrapper, w.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}
