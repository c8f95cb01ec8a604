package world_test

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/xmltree"
)

func formats(t testing.TB) []country.Format {
	t.Helper()
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	return world.Formats(packs)
}

func TestFormatsAreToldByTheBeginning(t *testing.T) {
	t.Parallel()
	all := formats(t)
	ubl, err := os.ReadFile("../en16931/testdata/golden/be-peppol_ubl-invoice.xml")
	if err != nil {
		t.Fatal(err)
	}
	credit, err := os.ReadFile("../en16931/testdata/golden/be-peppol_ubl-credit.xml")
	if err != nil {
		t.Fatal(err)
	}
	cii, err := os.ReadFile("../en16931/testdata/golden/de-zugferd-invoice.xml")
	if err != nil {
		t.Fatal(err)
	}
	marked := append([]byte("\ufeff<!-- a > b --><?xml-stylesheet href='x'?>\n"), ubl[bytes.Index(ubl, []byte("<Invoice")):]...)
	for want, files := range map[string][][]byte{
		incoming.UBL: {ubl, credit, marked}, incoming.CII: {cii, []byte("%PDF-1.7\n")},
		incoming.FatturaPA: {packtest.Filed(t, "../it/testdata")["business"], []byte("-----BEGIN PKCS7-----\n"),
			[]byte("\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\xa0\x80"), []byte("MIAGCSqGSIb3DQEHAqCAMIACAQExDzANBglg")},
		incoming.FA: {packtest.Filed(t, "../pl/testdata")["B2B"]}, incoming.NAV: {packtest.Filed(t, "../hu/testdata")["business"]},
		incoming.CFDI: {packtest.Filed(t, "../mx/testdata")["rest-invoice"]},
		"": {nil, []byte("{}"), []byte("<a/>"), []byte("<!DOCTYPE Invoice><Invoice/>"), []byte("MZ\x90"), []byte("PK\x03\x04"), []byte("<Invoice"),
			[]byte(strings.Repeat("<!-- -->", 1<<15) + "<a/>")},
	} {
		for i, file := range files {
			if f, known := world.Sniff(all, file); f.Name != want || known != (want != "") {
				t.Errorf("%s %d: is told as %q", want, i, f.Name)
			}
		}
	}
	if all, err := world.Read(all, ubl); err != nil || len(all) != 1 || all[0].Format != incoming.UBL {
		t.Errorf("%v", err)
	}
}

func TestEveryFormatRefusesWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	for _, f := range formats(t) {
		if f.Root == "" {
			continue
		}
		open, end := `<x:`+f.Root+` xmlns:x="`+f.Space+`">`, "</x:"+f.Root+">"
		for what, c := range map[string]struct {
			file string
			want error
		}{
			"a document type": {"<!DOCTYPE a>" + open + end, xmltree.ErrDoctype},
			"an entity":       {open + "&lol;" + end, xmltree.ErrSyntax},
			"depth":           {open + strings.Repeat("<a>", 32) + strings.Repeat("</a>", 32) + end, xmltree.ErrLimit},
			"bytes":           {open + strings.Repeat(" ", incoming.BytesMax) + end, xmltree.ErrLimit},
			"elements":        {open + strings.Repeat("<a/>", xmltree.ElementsMax) + end, xmltree.ErrLimit},
		} {
			if all, err := f.Read([]byte(c.file)); !errors.Is(err, c.want) || len(all) > 0 {
				t.Errorf("%s, %s: %v", f.Root, what, err)
			}
		}
	}
}

// TestTinyElementsTakeBoundedMemory runs alone, so that nobody else's memory counts.
func TestTinyElementsTakeBoundedMemory(t *testing.T) {
	for _, tiny := range []string{"<a/>", `<a b="" c="" d="" e="" f="" g="" h="" i="" j="" k="" l="" m="" n="" o="" p="" q=""/>`} {
		count := min(incoming.BytesMax/len(tiny)-100, xmltree.ElementsMax-10)
		file := []byte(`<Faktura xmlns="http://crd.gov.pl/wzor/2025/06/25/13775/"><Fa><KodWaluty>PLN</KodWaluty>` +
			strings.Repeat(tiny, count) + strings.Repeat(" ", incoming.BytesMax-count*len(tiny)-200) + `</Fa></Faktura>`)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := incoming.Parse(file)
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 300 {
			t.Errorf("%d of %s take %d MiB (%v)", count, tiny, used, err)
		}
		runtime.KeepAlive(s)
	}
}

// corpus is a document of each format: what packs write, and what their fuzz targets begin with.
func corpus(t testing.TB) (files [][]byte) {
	t.Helper()
	for _, code := range []string{"it", "pl", "hu", "mx"} {
		all := packtest.Filed(t, "../"+code+"/testdata")
		for _, name := range slices.Sorted(maps.Keys(all)) {
			files = append(files, all[name])
		}
	}
	paths, err := filepath.Glob("../en16931/testdata/golden/*.xml")
	if err != nil || len(paths) == 0 {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// 100,000 in make long, and a part of them in the gate: documents that were changed are read or refused. Equal runs
// change them equally.
func TestChangedDocumentsAreReadOrRefused(t *testing.T) {
	t.Parallel()
	count := 2000
	if needs.IsLong() {
		count = 100_000
	}
	all, files, random := formats(t), corpus(t), rand.New(rand.NewPCG(14, 34))
	read := 0
	for i := range count {
		file := retold(random, files[random.IntN(len(files))])
		if i%2 == 0 {
			file = mutate.Bytes(random, file, files[random.IntN(len(files))])
		}
		err := country.Safely("read a changed document", func() error {
			list, err := world.Read(all, file)
			if (len(list) == 0) != (err != nil) {
				t.Errorf("change %d: %d documents and %v", i, len(list), err)
			}
			return err
		})
		if errors.Is(err, country.ErrPanic) {
			t.Fatalf("change %d: %v\n%q", i, err, file)
		}
		if err == nil {
			read++
		}
	}
	if read < count/20 || read > count/2 {
		t.Errorf("%d of %d are read: the changes are too hard, or too soft", read, count)
	}
}

// retold is a document of which some texts and attributes say something else: it stays XML, and readers get far into it.
func retold(random *rand.Rand, file []byte) []byte {
	values := regexp.MustCompile(`>[^<>]+<|"[^"<>]*"`)
	said := []string{"", "-1", "0", "99999999999999999999", "0.000000001", "1e9", "NaN", "2026-13-45", "XXX", "é", "&#10;", "9007199254740992", "-0.005"}
	for range 1 + random.IntN(3) {
		all := values.FindAllIndex(file, -1)
		at := all[random.IntN(len(all))]
		out := append(slices.Clone(file[:at[0]+1]), said[random.IntN(len(said))]...)
		file = append(out, file[at[1]-1:]...)
	}
	return file
}

func FuzzReceived(f *testing.F) {
	all := formats(f)
	f.Add(packtest.Filed(f, "../it/testdata")["business"])
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		if got, err := world.Read(all, file); (len(got) == 0) != (err != nil) {
			t.Errorf("%d and %v", len(got), err)
		}
	})
}
