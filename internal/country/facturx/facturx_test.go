package facturx_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country/facturx"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
)

// invoice is what our own packs put into a PDF.
func invoice(t testing.TB) []byte {
	t.Helper()
	document, err := os.ReadFile("../en16931/testdata/golden/de-zugferd-invoice.xml")
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func deflated(data []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// object is a number with what it is; data make it a stream.
type object struct {
	number int
	text   string
	data   []byte
}

func (o object) bytes() []byte {
	if o.data == nil {
		return fmt.Appendf(nil, "%d 0 obj\n%s\nendobj\n", o.number, o.text)
	}
	head := fmt.Appendf(nil, "%d 0 obj\n<<%s /Length %d>>\nstream\n", o.number, o.text, len(o.data))
	return append(append(head, o.data...), "\nendstream\nendobj\n"...)
}

// plainPDF has a table of objects as PDF 1.4 has it.
func plainPDF(trailer string, objects ...object) []byte {
	out := []byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	var rows []string
	for _, o := range objects {
		rows = append(rows, fmt.Sprintf("%d 1\n%010d 00000 n \n", o.number, len(out)))
		out = append(out, o.bytes()...)
	}
	return fmt.Appendf(out, "xref\n0 1\n0000000000 65535 f \n%strailer\n<</Root 1 0 R /Size %d %s>>\nstartxref\n%d\n%%%%EOF\n",
		strings.Join(rows, ""), len(objects)+1, trailer, len(out))
}

// packedPDF has its objects in a stream, and a table that is a stream, with a
// predictor: what most writers make today.
func packedPDF(file object, inside ...object) []byte {
	out := []byte("%PDF-1.7\n")
	var heads, bodies []byte
	for _, o := range inside {
		heads = fmt.Appendf(heads, "%d %d ", o.number, len(bodies))
		bodies = append(bodies, o.text+" "...)
	}
	at := map[int][3]int{}
	at[file.number] = [3]int{1, len(out), 0}
	out = append(out, file.bytes()...)
	const pack, table = 50, 51
	at[pack] = [3]int{1, len(out), 0}
	out = append(out, object{pack, fmt.Sprintf("/Type /ObjStm /N %d /First %d /Filter /FlateDecode", len(inside), len(heads)),
		deflated(append(heads, bodies...))}.bytes()...)
	for i, o := range inside {
		at[o.number] = [3]int{2, pack, i}
	}
	var rows []byte
	before := make([]byte, 4)
	for n := range table {
		row := []byte{byte(at[n][0]), byte(at[n][1] >> 8), byte(at[n][1]), byte(at[n][2])}
		rows = append(rows, 2)
		for i := range row {
			rows = append(rows, row[i]-before[i])
		}
		before = row
	}
	begin := len(out)
	out = append(out, object{table, fmt.Sprintf("/Type /XRef /W [1 2 1] /Size %d /Root 1 0 R /Filter [/FlateDecode] /DecodeParms [<</Predictor 12 /Columns 4>>]", table),
		deflated(rows)}.bytes()...)
	return fmt.Appendf(out, "startxref\n%d\n%%%%EOF\n", begin)
}

func objects(content []byte) (file object, others []object) {
	return object{5, "/Type /EmbeddedFile /Subtype /text#2Fxml /Filter /FlateDecode", deflated(content)}, []object{
		{number: 1, text: "<</Type /Catalog /Names 2 0 R /AF [4 0 R]>>"},
		{number: 2, text: "<</EmbeddedFiles <</Kids [3 0 R]>>>>"},
		{number: 3, text: "<</Names [(a.xml) 4 0 R (other) 6 0 R]>>"},
		{number: 4, text: "<</Type /Filespec /F (fact\\165r-x.xml) /EF <</F 5 0 R>> /AFRelationship /Data>>"},
		{number: 6, text: "<</Type /Filespec /F (notes.txt) /EF <</F 5 0 R>>>>"},
	}
}

func pdfs(t testing.TB, content []byte) map[string][]byte {
	file, others := objects(content)
	return map[string][]byte{"a table": plainPDF("", append(others, file)...), "streams": packedPDF(file, others...)}
}

func TestTheInvoiceInAPDFIsRead(t *testing.T) {
	t.Parallel()
	for name, pdf := range pdfs(t, invoice(t)) {
		d, err := facturx.Read(pdf)
		if err != nil || d.Format != incoming.CII || d.Number == "" || d.Gross == 0 {
			t.Errorf("%s: %v %+v", name, err, d)
		}
		for cut := 0; cut < len(pdf)-10; cut += 11 {
			if _, err := facturx.Read(pdf[:cut]); err == nil {
				t.Errorf("%s: %d of %d bytes are read", name, cut, len(pdf))
			}
		}
	}
}

func TestOtherFilesInAPDFAreNamed(t *testing.T) {
	t.Parallel()
	file, others := objects(invoice(t))
	others[4].text = strings.Replace(others[4].text, "5 0 R", "7 0 R", 1)
	d, err := facturx.Read(plainPDF("", append(others, file, object{7, "", []byte("hello")})...))
	if err != nil || !slices.Contains(d.NotRead, "file in the PDF: notes.txt") {
		t.Errorf("%v %+v", err, d)
	}
}

func TestHostilePDFsAreRefused(t *testing.T) {
	t.Parallel()
	file, others := objects(invoice(t))
	with := func(change func(all []object)) []byte {
		all := append(slices.Clone(others), file)
		change(all)
		return plainPDF("", all...)
	}
	bomb := deflated(make([]byte, 80<<20))
	cases := map[string][]byte{
		"nothing":               {},
		"no PDF":                []byte("<a/>"),
		"no table":              []byte("%PDF-1.7\nstartxref\n9999\n%%EOF"),
		"a table in itself":     plainPDF("/Prev 0", others...),
		"encrypted":             plainPDF("/Encrypt 9 0 R", append(others, file)...),
		"too long":              append([]byte("%PDF-1.7"), make([]byte, incoming.BytesMax)...),
		"a bomb":                with(func(all []object) { all[5].data = bomb }),
		"no invoice":            with(func(all []object) { all[3].text = "<</F (a.txt) /EF <</F 5 0 R>>>>" }),
		"a tree in itself":      with(func(all []object) { all[2].text = "<</Kids [3 0 R 3 0 R 3 0 R]>>"; all[0].text = "<</Names 2 0 R>>" }),
		"deep":                  with(func(all []object) { all[0].text = strings.Repeat("[", 1<<20) }),
		"a reference to itself": with(func(all []object) { all[0].text = "1 0 R" }),
		"many values":           with(func(all []object) { all[0].text = "<</AF [" + strings.Repeat("1 ", 1_100_000) + "]>>" }),
		"much, again and again": with(func(all []object) {
			all[0].text = "<</AF [" + strings.Repeat("9 0 R ", 5000) + "]>>"
			all[4] = object{number: 9, text: "(" + strings.Repeat("x", 1<<20) + ")"}
		}),
	}
	for name, pdf := range cases {
		if d, err := facturx.Read(pdf); !errors.Is(err, incoming.ErrInvalid) || d != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, pdf := range pdfs(f, []byte("<a/>")) {
		f.Add(pdf)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, pdf []byte) {
		if d, err := facturx.Read(pdf); (d == nil) != (err != nil) {
			t.Errorf("%v and %v", d, err)
		}
	})
}
