package world_test

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
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
