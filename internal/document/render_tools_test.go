package document_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/document"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// What other people's programs make of the documents.

func output(t testing.TB, path string, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(path), err, out.String(), problems.String())
	}
	return out.String()
}

// written returns the path of a rendered document.
func written(t testing.TB, v document.Visual) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "document.pdf")
	if err := os.WriteFile(path, render(t, v), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func hardSamples(t testing.TB) []sample {
	return append(samples(t), sample{"widest", widest(t)}, sample{"hostile", hostile(t)})
}

func TestQPDFFindsNothingWrong(t *testing.T) {
	t.Parallel()
	qpdf := needs.Tool(t, "qpdf", "qpdf")
	for _, s := range hardSamples(t) {
		out := output(t, qpdf, "--check", written(t, s.visual))
		if !strings.Contains(out, "No syntax or stream encoding errors found") || strings.Contains(out, "WARNING") {
			t.Errorf("%s: %s", s.name, out)
		}
	}
}

func TestPDFToTextFindsEveryNameAndAmount(t *testing.T) {
	t.Parallel()
	pdftotext := needs.Tool(t, "pdftotext", "poppler-utils")
	for _, s := range samples(t) {
		text := output(t, pdftotext, "-layout", written(t, s.visual), "-")
		flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "\u00A0", " ")), " ")
		v := s.visual
		wanted := []string{v.Supplier.LegalName, v.Supplier.TaxNumber, v.Transaction.Number, v.UniqueNumber}
		for _, p := range []*transaction.Party{v.Transaction.Customer, v.Transaction.Issuer} {
			if p != nil {
				wanted = append(wanted, strings.Fields(p.LegalName)...) // a long name may be broken
				wanted = append(wanted, p.TaxNumber)
			}
		}
		for _, item := range v.Transaction.Items {
			wanted = append(wanted, strings.Fields(item.Name)...)
		}
		for _, id := range v.Imprint.Identifiers {
			wanted = append(wanted, id.Value)
		}
		for _, want := range wanted {
			if !strings.Contains(flat, want) {
				t.Errorf("%s: pdftotext does not find %q", s.name, want)
			}
		}
		digits := onlyDigits(flat)
		amounts := []int64{v.Totals.Gross, v.Totals.Net, v.Totals.Tax, v.Totals.Payable()}
		for _, line := range v.Totals.Lines {
			amounts = append(amounts, line.Gross, line.Net)
		}
		for _, a := range amounts {
			if want := fmt.Sprintf("%03d", max(a, -a)); !strings.Contains(digits, want) {
				t.Errorf("%s: pdftotext does not find the amount %d", s.name, a)
			}
		}
	}
}

// onlyDigits joins the digits of numbers however they are grouped.
func onlyDigits(s string) string {
	var out strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		separator := strings.ContainsRune(".,’ \u00A0\u202F", r) && i > 0 && i+1 < len(runes) && isDigit(runes[i-1]) &&
			isDigit(runes[i+1])
		switch {
		case isDigit(r):
			out.WriteRune(r)
		case !separator:
			out.WriteByte(' ')
		}
	}
	return out.String()
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func TestPDFFontsShowsEmbeddedSubsetsOnly(t *testing.T) {
	t.Parallel()
	pdffonts := needs.Tool(t, "pdffonts", "poppler-utils")
	for _, s := range hardSamples(t) {
		lines := strings.Split(strings.TrimSpace(output(t, pdffonts, written(t, s.visual))), "\n")[2:]
		if len(lines) < 2 {
			t.Errorf("%s: fonts are %q", s.name, lines)
		}
		for _, line := range lines {
			if !strings.Contains(line, "CID TrueType      Identity-H       yes yes yes") {
				t.Errorf("%s: %s", s.name, line)
			}
		}
	}
}

func TestZBarReadsTheCodeBack(t *testing.T) {
	t.Parallel()
	zbarimg, pdftoppm := needs.Tool(t, "zbarimg", "zbar-tools"), needs.Tool(t, "pdftoppm", "poppler-utils")
	texts := []string{spanishInvoice(t).Imprint.Codes[0].Text, polishCreditNote(t).Imprint.Codes[0].Text,
		greekInvoice(t).Imprint.Codes[0].Text,
		"0123456789012345678901234567890123456789", "HTTPS://EXAMPLE.COM/ALPHANUMERIC", "ñandú €uro",
		strings.Repeat("long text ", 60)}
	for _, text := range texts {
		v := spanishReceipt(t)
		v.Imprint.Codes[0].Text = text
		page := filepath.Join(t.TempDir(), "page")
		output(t, pdftoppm, "-r", "200", "-x", "1150", "-W", "504", "-y", "350", "-H", "500", "-gray", "-png", "-singlefile",
			written(t, v), page)
		if got := strings.TrimSuffix(output(t, zbarimg, "-q", "--raw", page+".png"), "\n"); got != text {
			t.Errorf("the code says %q, not %q", got, text)
		}
	}
}

func TestPDFDetachGivesTheAttachmentBack(t *testing.T) {
	t.Parallel()
	pdfdetach := needs.Tool(t, "pdfdetach", "poppler-utils")
	v := frenchFacturX(t)
	path := filepath.Join(t.TempDir(), "out.xml")
	output(t, pdfdetach, "-savefile", "factur-x.xml", "-o", path, written(t, v))
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, v.Files[0].Content) {
		t.Errorf("the attachment comes back as %q, %v", got, err)
	}
}

// The pictures of the golden set are what people looked at and approved.
func TestPagesLookLikeTheirPictures(t *testing.T) {
	t.Parallel()
	pdftoppm := needs.Tool(t, "pdftoppm", "poppler-utils")
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "page")
			output(t, pdftoppm, "-r", "50", "-gray", "-png", "-singlefile", written(t, s.visual), page)
			raw, err := os.ReadFile(page + ".png")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "golden", s.name+".png")
			if *update {
				if err := os.WriteFile(path, raw, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// Rasterisers differ at the edges of letters: a few levels on
			// average, but no region as a whole.
			if worst := worstTile(t, raw, golden); worst > 40 {
				t.Errorf("a part of the page differs by %d of 255 levels (-update accepts it)", worst)
			}
		})
	}
}

// worstTile returns the greatest mean difference of two pictures' tiles of 12 pixels.
func worstTile(t *testing.T, a, b []byte) int {
	t.Helper()
	first, err := png.Decode(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	second, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if first.Bounds() != second.Bounds() {
		t.Fatalf("the pictures are %v and %v", first.Bounds(), second.Bounds())
	}
	const side = 12
	worst := 0
	for y := 0; y+side <= first.Bounds().Dy(); y += side {
		for x := 0; x+side <= first.Bounds().Dx(); x += side {
			sum := 0
			for i := range side * side {
				d := gray(first, x+i%side, y+i/side) - gray(second, x+i%side, y+i/side)
				sum += max(d, -d)
			}
			worst = max(worst, sum/(side*side))
		}
	}
	return worst
}

func gray(img image.Image, x, y int) int {
	r, g, b, _ := img.At(x, y).RGBA()
	return int((r + g + b) / 3 >> 8)
}
