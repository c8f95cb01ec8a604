package official_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"tributary/internal/needs"
	"tributary/internal/official"
	"tributary/internal/official/xsd"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// sourceOf is what a compact form is made of.
func sourceOf(t testing.TB, s official.Standard) xsd.Source {
	t.Helper()
	folder, name := filepath.Split(string(s))
	forms, err := xsd.Manifest(filepath.Clean(folder), needs.Schemas(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range forms {
		if f.Name == name {
			return f.Source
		}
	}
	t.Fatalf("%smade.txt does not say what %s is made of", folder, name)
	return xsd.Source{}
}

func TestEmbeddedFormsAreMadeOfTheOfficialFiles(t *testing.T) {
	for _, s := range official.Standards() {
		t.Run(string(s), func(t *testing.T) {
			made, err := xsd.Compile(sourceOf(t, s))
			if err != nil {
				t.Fatal(err)
			}
			kept, err := s.Form()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(made, kept) {
				t.Errorf("the embedded form has %d bytes, the official files give %d: run go run ./internal/official/compile",
					len(kept), len(made))
			}
		})
	}
}

func TestEveryEmbeddedFormIsListedAndSmall(t *testing.T) {
	found, err := filepath.Glob("*/*.structure.gz")
	if err != nil {
		t.Fatal(err)
	}
	known, bytesAll := map[string]bool{}, int64(0)
	for _, s := range official.Standards() {
		known[string(s)+".structure.gz"] = true
		if size := s.Schema().Size(); size < 10 {
			t.Errorf("%s has only %d declarations", s, size)
		}
		if err := s.Schema().Verify(); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, path := range found {
		if !known[filepath.ToSlash(path)] {
			t.Errorf("%s is embedded and not listed", path)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytesAll += info.Size()
	}
	const bytesMax = 600 << 10
	if len(found) != len(known) || bytesAll > bytesMax {
		t.Errorf("%d of %d forms, %d bytes", len(found), len(known), bytesAll)
	}
}

// samples says where official and public examples of a standard are, and how
// many of them at least must be valid.
var samples = []struct {
	standard official.Standard
	globs    []string
	valid    int
}{
	{official.Verifactu, []string{"es-verifactu/*.xml", "es-verifactu/examples/*.xml"}, 9},
	{official.CFDI, []string{"mx-cfdi/examples/*.xml"}, 4},
	{official.FA3, []string{"pl-ksef/examples/*.xml"}, 3},
	{official.UPO, []string{"pl-ksef/examples/*.xml", "pl-ksef/upo/przyklady/*/*/*.xml"}, 1},
	{official.FatturaPA, []string{"it-fatturapa/examples/*.xml", "it-fatturapa/tests/samples/invoices/*.xml"}, 22},
	{official.FatturaSemplificata, []string{"it-fatturapa/examples/*.xml"}, 0},
	{official.SdIMessages, []string{"it-fatturapa/examples/*.xml", "it-fatturapa/tests/samples/*.xml",
		"it-fatturapa/tests/samples/notifications/*.xml"}, 3},
	{official.NAV, []string{"hu-nav/sample/*/*.xml", "hu-nav/responses/*.xml"}, 44},
	{official.UBL, []string{"en16931/ubl/examples/*.xml", "peppol-bis3/examples*/*.xml",
		"peppol-bis3/national-examples/*/*.xml", "xrechnung/testsuite/*/*_ubl.xml"}, 65},
	{official.CII, []string{"en16931/cii/examples/*.xml", "xrechnung/testsuite/*/*_uncefact.xml"}, 40},
}

// sample is a document of a standard, out of its envelope.
type sample struct {
	path string
	text []byte
	root *xmltree.Element
}

func samplesOf(t testing.TB, standard official.Standard, globs []string) []sample {
	t.Helper()
	var all []sample
	for _, glob := range globs {
		paths, err := filepath.Glob(filepath.Join(needs.Schemas(t), filepath.FromSlash(glob)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := extract(inUTF8(source), standard); ok {
				s.path = path
				all = append(all, s)
			}
		}
	}
	return all
}

// inUTF8 turns an example in ISO 8859-1 into UTF-8, which is all that is read.
func inUTF8(source []byte) []byte {
	const latin = ` encoding="ISO-8859-1"`
	if !bytes.Contains(source[:min(100, len(source))], []byte(latin)) {
		return source
	}
	var out []byte
	for _, c := range bytes.Replace(source, []byte(latin), nil, 1) {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

// extract takes the document of the standard out of what was read, with the
// namespaces of the envelope around it.
func extract(source []byte, standard official.Standard) (sample, bool) {
	doc, err := xmltree.Limits{Instructions: true}.Read(source)
	if err != nil {
		return sample{}, false
	}
	root := doc.Root
	if m, err := soap.Read(source, xmltree.Limits{Instructions: true}); err == nil && m.Content != nil {
		root = m.Content
	}
	if !standard.Schema().Has(root.Space, root.Local) {
		return sample{}, false
	}
	text := xmltree.Canonical{Inclusive: true}.Bytes(root)
	alone, err := xmltree.Read(text)
	if err != nil {
		panic(fmt.Sprintf("a canonical form cannot be read: %v", err))
	}
	return sample{text: text, root: alone.Root}, true
}

func TestOfficialSamplesAreJudgedAsXmllintJudgesThem(t *testing.T) {
	for _, c := range samples {
		t.Run(string(c.standard), func(t *testing.T) {
			all := samplesOf(t, c.standard, c.globs)
			texts := make([][]byte, len(all))
			for i := range all {
				texts[i] = all[i].text
			}
			valid := newOracle(t, c.standard).judge(t, texts)
			accepted := 0
			for i, s := range all {
				flaw := c.standard.Schema().First(s.root)
				switch {
				case valid[i] && flaw != nil:
					t.Errorf("%s is valid and is refused: %v", s.path, flaw)
				case !valid[i] && flaw == nil:
					t.Errorf("%s is not valid and is accepted", s.path)
				case valid[i]:
					accepted++
				default:
					t.Logf("%s is not valid: %v", filepath.Base(s.path), flaw)
				}
			}
			if accepted < c.valid {
				t.Errorf("%d samples are valid, at least %d are known", accepted, c.valid)
			}
			t.Logf("%d of %d samples are valid", accepted, len(all))
		})
	}
}
