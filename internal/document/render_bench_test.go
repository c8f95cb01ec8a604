package document_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/needs"
)

// cpuTime is what the process has used of its processors: on a machine that
// others use too the clock on the wall says little.
func cpuTime(b *testing.B, who int) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchmarkRender(b *testing.B, v document.Visual, change func(*document.Visual)) {
	b.Helper()
	r := newRenderer(b)
	if change != nil {
		change(&v)
	}
	made, err := r.Render(b.Context(), v) // cut the fonts, read the logo
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	begin, n := cpuTime(b, syscall.RUSAGE_SELF), 0
	for b.Loop() {
		if _, err := r.Render(b.Context(), v); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric((cpuTime(b, syscall.RUSAGE_SELF)-begin).Seconds()*1000/float64(n), "cpu-ms/op")
	b.ReportMetric(float64(len(made.PDF)), "bytes")
}

// BenchmarkOnePage is the figure of the house: fonts, logo, code and note on a
// page. Its variants show what the parts cost.
func BenchmarkOnePage(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*document.Visual)
	}{
		{"full", nil},
		{"untagged", func(v *document.Visual) { v.Untagged = true }},
		{"without-code", func(v *document.Visual) { v.Imprint.Codes = nil }},
		{"without-logo", func(v *document.Visual) { v.Branding.Logo = nil }},
		{"without-note", func(v *document.Visual) { v.Transaction.Note = "" }},
		{"hybrid", func(v *document.Visual) { // what the data inside costs: at most 1 ms more than full
			v.Files = []document.EmbeddedFile{{Name: "factur-x.xml", MIME: "text/xml", Relationship: document.Alternative,
				Content: bytes.Repeat([]byte("<ram:ID>4711</ram:ID>\n"), 500)}}
			v.FacturX = &document.FacturX{FileName: "factur-x.xml", Level: "EN 16931"}
		}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkRender(b, spanishInvoice(b), c.change) })
	}
}

// BenchmarkPagesThatDiffer is the page with a number, a code and a note of its
// own each time: what cannot be kept from the one before.
func BenchmarkPagesThatDiffer(b *testing.B) {
	r, v, n := newRenderer(b), spanishInvoice(b), 0
	code, note := v.Imprint.Codes[0], v.Transaction.Note
	b.ReportAllocs()
	begin := cpuTime(b, syscall.RUSAGE_SELF)
	for b.Loop() {
		number := strconv.Itoa(10000 + n)
		v.Transaction.Number = "F-2025-" + number
		code.Text = v.Imprint.Codes[0].Text[:len(v.Imprint.Codes[0].Text)-5] + number
		v.Imprint.Codes = []country.Code{code}
		v.Transaction.Note = strings.Replace(note, "15", number, 1)
		if _, err := r.Render(b.Context(), v); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric((cpuTime(b, syscall.RUSAGE_SELF)-begin).Seconds()*1000/float64(n), "cpu-ms/op")
}

// BenchmarkTemplates is the page in the other looks.
func BenchmarkTemplates(b *testing.B) {
	for _, template := range []document.Template{document.Modern, document.Receipt} {
		b.Run(string(template), func(b *testing.B) {
			benchmarkRender(b, spanishInvoice(b), func(v *document.Visual) {
				v.Branding.Template, v.Simplified = template, template == document.Receipt
			})
		})
	}
}

// BenchmarkScripts is a page in letters that need shaping or fonts of folders.
func BenchmarkScripts(b *testing.B) {
	for _, l := range locals() {
		switch l.language {
		case "AR", "HE", "HI", "JA", "KO", "TH", "ZH":
			b.Run(l.name(), func(b *testing.B) { benchmarkRender(b, l.visual(b), nil) })
		}
	}
}

// BenchmarkFirstPage is a page whose fonts and logo nobody used before.
func BenchmarkFirstPage(b *testing.B) {
	v := spanishInvoice(b)
	for b.Loop() {
		b.StopTimer()
		r := newRenderer(b)
		b.StartTimer()
		if _, err := r.Render(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewRenderer(b *testing.B) {
	for b.Loop() {
		newRenderer(b)
	}
}

func BenchmarkHundredPages(b *testing.B) { benchmarkRender(b, longInvoice(b, 3000), nil) }

func BenchmarkFiveThousandItems(b *testing.B) { benchmarkRender(b, longInvoice(b, 5000), nil) }

// BenchmarkYardsticks renders one page with this package, WeasyPrint and
// wkhtmltopdf in one run. WeasyPrint's time is taken inside a running
// interpreter, without its start; wkhtmltopdf has no such mode.
func BenchmarkYardsticks(b *testing.B) {
	v := spanishInvoice(b)
	page := filepath.Join(b.TempDir(), "page.html")
	if err := os.WriteFile(page, []byte(asHTML(v)), 0o600); err != nil {
		b.Fatal(err)
	}
	ours := 0.0
	b.Run("tributary", func(b *testing.B) {
		benchmarkRender(b, v, nil)
		ours = b.Elapsed().Seconds() / float64(b.N)
	})
	b.Run("weasyprint", func(b *testing.B) {
		python := "/usr/bin/python3"
		if exec.CommandContext(b.Context(), python, "-c", "import weasyprint").Run() != nil {
			b.Skip("WeasyPrint is not installed (Debian package weasyprint)")
		}
		const script = "import sys,time,weasyprint\nweasyprint.HTML(sys.argv[1]).write_pdf()\n" +
			"t=time.perf_counter()\nfor i in range(5): weasyprint.HTML(sys.argv[1]).write_pdf()\nprint((time.perf_counter()-t)/5)"
		var theirs float64
		for b.Loop() {
			out, err := exec.CommandContext(b.Context(), python, "-c", script, page).Output()
			if err != nil {
				b.Fatal(err)
			}
			if theirs, err = strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(theirs*1000, "ms/document")
		b.ReportMetric(theirs/ours, "times-slower")
	})
	b.Run("wkhtmltopdf", func(b *testing.B) {
		path := needs.Tool(b, "wkhtmltopdf", "wkhtmltopdf")
		n := 0
		begin := time.Now()
		for b.Loop() {
			cmd := exec.CommandContext(b.Context(), path, "-q", "--enable-local-file-access", page,
				filepath.Join(b.TempDir(), "out.pdf"))
			cmd.Env = append(os.Environ(), "QT_QPA_PLATFORM=offscreen", "XDG_RUNTIME_DIR="+b.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			n++
		}
		theirs := time.Since(begin).Seconds() / float64(n)
		b.ReportMetric(theirs*1000, "ms/document")
		b.ReportMetric(theirs/ours, "times-slower")
	})
}

// asHTML is the sample as a plain web page: the same words, a table, the logo inline.
func asHTML(v document.Visual) string {
	var out bytes.Buffer
	e := html.EscapeString
	fmt.Fprintf(&out, "<!doctype html><meta charset=utf-8><style>body{font:9pt sans-serif}td{border-bottom:1px solid #ccc;text-align:right}</style>"+
		"<img width=200 src='data:image/png;base64,%s'><h1>Factura</h1><p>%s</p><p>%s<br>%s</p><p>%s<br>%s</p><table>",
		base64.StdEncoding.EncodeToString(v.Branding.Logo), e(v.Transaction.Number), e(v.Supplier.LegalName),
		e(v.Supplier.TaxNumber),
		e(v.Transaction.Customer.LegalName), e(v.Transaction.Customer.TaxNumber))
	for i, item := range v.Transaction.Items {
		line := v.Totals.Lines[i]
		fmt.Fprintf(&out, "<tr><td>%d<td>%s<td>%s<td>%s<td>%d<td>%d<td>%d", item.Number, e(item.Name),
			item.Quantity.String(), e(item.Unit), item.UnitPrice, line.Net, line.Gross)
	}
	fmt.Fprintf(&out, "</table><p>%d %d %d</p>%s<p>%s</p>", v.Totals.Net, v.Totals.Tax, v.Totals.Gross,
		v.Transaction.Note, e(v.Imprint.Texts[0]))
	return out.String()
}
