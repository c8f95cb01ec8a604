package document_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
)

// hostile is hard case 23: whatever a client can put into accepted data.
func hostile(t testing.TB) document.Visual {
	v := spanishInvoice(t)
	attack := ")>> endstream endobj \\ ( <script>alert(1)</script> ]]> &lt; %PDF-1.4 /JS (x) \x00\x01\uFFFE \u202Egpj.exe\u202C \u2066x\u2069"
	v.Transaction.Note = `<script>app.alert("x")</script><img src="http://169.254.169.254/latest"><iframe src="file:///etc/passwd"></iframe>` +
		`<style>@import url(http://evil.example/x.css)</style><svg onload=alert(1)><text>svg</text></svg><a href="javascript:alert(1)">link</a>` +
		`<p style="position:absolute;left:-9999px" onclick="x()">styled</p><b>bold` + attack
	v.Transaction.Number = attack
	v.Transaction.Customer.LegalName = attack
	v.Supplier.LegalName = attack
	v.Transaction.Items[0].Name, v.Transaction.Items[0].Unit = attack, attack
	v.Imprint.Title, v.UniqueNumber, v.Imprint.Texts = attack, attack, []string{attack}
	v.Imprint.Codes[0].Caption, v.Imprint.Codes[0].Title = attack, attack
	v.Imprint.Identifiers = []country.Identifier{{Label: attack, Value: attack}}
	v.Original = &document.Reference{Number: attack, AuthorityID: attack}
	return v
}

func TestContentAttacksStayText(t *testing.T) {
	t.Parallel()
	raw := render(t, hostile(t))
	f := parsePDF(t, raw)
	checkForbiddenKeys(t, f, false)
	text := f.allText()
	for _, r := range text {
		if r != '\n' && r != '\u00AD' && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r)) {
			t.Errorf("the document shows the control %U", r)
		}
	}
	for _, gone := range []string{"app.alert", "@import", "169.254", "etc/passwd", "javascript:", "-9999px"} {
		if strings.Contains(text, gone) {
			t.Errorf("of the note's markup remains %q", gone)
		}
	}
	for _, kept := range []string{"styled", "link", "gpj.exe"} {
		if !strings.Contains(text, kept) {
			t.Errorf("the words %q are lost", kept)
		}
	}
}

// Whatever stands in the fields, the file is whole and its text on the page.
func TestAnyTextMakesAWholeDocument(t *testing.T) {
	t.Parallel()
	r := sharedRenderer(t)
	base := spanishInvoice(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom(nil, unicode.Latin, unicode.Greek,
			unicode.Cyrillic, unicode.Arabic, unicode.Han), 0, 60, -1),
			rapid.SampledFrom([]string{"", "\xff\xfe", strings.Repeat("a", 500), strings.Repeat("a ", 250), "<b><i><u><ul><li>",
				strings.Repeat("<ul><li>x", 30)}))
		v := base
		v.Transaction.Note = text.Draw(rt, "note")
		v.Transaction.Number = text.Draw(rt, "number")
		v.Transaction.Items = append([]transaction.Item(nil), base.Transaction.Items...)
		for i := range v.Transaction.Items {
			v.Transaction.Items[i].Name = text.Draw(rt, "name")
			v.Transaction.Items[i].Unit = text.Draw(rt, "unit")
		}
		customer := *base.Transaction.Customer
		customer.LegalName, customer.TaxNumber = text.Draw(rt, "customer"), text.Draw(rt, "tax number")
		address := *customer.Address
		address.City, address.CountryCode = text.Draw(rt, "city"), text.Draw(rt, "country")
		customer.Address = &address
		v.Transaction.Customer = &customer
		v.Language = text.Draw(rt, "language")
		v.Imprint.Texts = []string{text.Draw(rt, "legal")}
		v.Branding.Logo = nil
		raw, err := r.Render(t.Context(), v)
		if err != nil {
			rt.Fatal(err)
		}
		f := parsePDF(t, raw.PDF)
		for _, page := range f.pages() {
			for _, run := range runsWithWidth(f, page, fontWidths(f, page)) {
				if run.x < 50 || run.x+run.width > 595.28-50 || run.y < 30 || run.y > 841.89 {
					rt.Fatalf("%q stands at %.1f,%.1f and is %.1f wide", run.text, run.x, run.y, run.width)
				}
			}
		}
	})
}

func TestEveryLatinGreekAndCyrillicLetterIsDrawn(t *testing.T) {
	t.Parallel()
	for _, font := range document.Fonts() {
		v := longInvoice(t, 1)
		v.Branding.Font = font
		v.Transaction.Items = nil
		item := longInvoice(t, 1).Transaction.Items[0]
		var wanted []rune
		for _, block := range [][2]rune{{0x20, 0x24F}, {0x370, 0x3FF}, {0x400, 0x52F}, {0x1E00, 0x1EFF}, {0x1F00, 0x1FFF}} {
			for c := block[0]; c <= block[1]; c++ {
				if unicode.IsLetter(c) && unicode.In(c, unicode.Latin, unicode.Greek, unicode.Cyrillic) && !obsolete(c) {
					wanted = append(wanted, c)
				}
			}
		}
		for i := 0; i < len(wanted); i += 40 {
			item.Number, item.Name = int64(i+1), string(wanted[i:min(i+40, len(wanted))])
			v.Transaction.Items = append(v.Transaction.Items, item)
		}
		text := parsePDF(t, render(t, totalled(t, v))).allText()
		if strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("%s: a letter is drawn as a replacement", font)
		}
		for _, c := range wanted {
			if !strings.Contains(text, norm.NFC.String(string(c))) {
				t.Errorf("%s: %U %c is not drawn as itself", font, c, c)
			}
		}
	}
}

// obsolete letters of Komi, Abkhaz and Chuvash spellings and medievalist marks
// that the fallback face lacks too. Roboto has them all; Liberation Serif does not.
func obsolete(c rune) bool {
	return c >= 0x526 && c <= 0x52F || c >= 0x1E9C && c <= 0x1E9D || c >= 0x1EFA && c <= 0x1EFF || c == 0x1E9F ||
		c >= 0x510 && c <= 0x525
}

func TestFiveThousandItemsStayWithinMemory(t *testing.T) {
	r := sharedRenderer(t)
	v := longInvoice(t, 5000)
	for i := range v.Transaction.Items {
		v.Transaction.Items[i].Name = strings.Repeat("long name ", 20)
		v.Transaction.Items[i].Description = strings.Repeat("and a description ", 11)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	raw, err := r.Render(t.Context(), v)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// Everything ever allocated is more than what was ever held at once.
	if used := after.TotalAlloc - before.TotalAlloc; used > 120<<20 && !raceDetector {
		t.Errorf("5,000 items allocate %d MiB", used>>20)
	}
	if len(raw.PDF) > 8<<20 {
		t.Errorf("5,000 items make %d bytes", len(raw.PDF))
	}
	f := parsePDF(t, raw.PDF)
	end := f.pages()[len(f.pages())-2:]
	if text := fmt.Sprint(f.text(end[0]), f.text(end[1])); !strings.Contains(text, "5,000") {
		t.Error("the last item is not drawn")
	}
}

func TestHundredPagesStayWithinMemory(t *testing.T) {
	r := sharedRenderer(t)
	v := longInvoice(t, 3000)
	if _, err := r.Render(t.Context(), v); err != nil { // fonts and logo
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	raw, err := r.Render(t.Context(), v)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	pages := len(parsePDF(t, raw.PDF).pages())
	if pages < 100 {
		t.Fatalf("the sample has %d pages", pages)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 && !raceDetector {
		t.Errorf("%d pages allocate %d MiB", pages, used>>20)
	}
}

// checkLogo is what configuration asks before a logo reaches the renderer.
func checkLogo(raw []byte) error {
	_, err := account.ReadLogo(context.Background(), "", raw)
	return err
}

func TestLogoLimits(t *testing.T) {
	t.Parallel()
	pixels := func(w, h int) []byte {
		var out bytes.Buffer
		if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	padded := func(size int) []byte { // what follows a PNG's last chunk is ignored
		raw := pixels(10, 10)
		return append(raw, make([]byte, size-len(raw))...)
	}
	for title, raw := range map[string][]byte{
		"a long side":       pixels(account.LogoSideMax, 10),
		"many pixels":       pixels(2048, account.LogoPixelsMax/2048),
		"many bytes":        padded(account.LogoBytesMax),
		"one pixel":         pixels(1, 1),
		"a JPEG":            logoJPEG(t, "x", color.RGBA{A: 0xFF}),
		"transparent":       logoPNG(t, "x", color.RGBA{A: 0xFF}),
		"an extreme ribbon": pixels(4000, 1),
	} {
		if err := checkLogo(raw); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		if title == "many pixels" { // a second of scaling under the race detector
			continue
		}
		v := longInvoice(t, 1)
		v.Branding.Logo = raw
		if !bytes.Contains(render(t, v), []byte("/Subtype/Image")) {
			t.Errorf("%s is not drawn", title)
		}
	}
	var cmyk bytes.Buffer
	if err := jpeg.Encode(&cmyk, image.NewCMYK(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	if err := checkLogo(cmyk.Bytes()); err != nil {
		t.Errorf("a JPEG made from CMYK: %v", err)
	}
	for title, raw := range map[string][]byte{
		"nothing":          nil,
		"a side too long":  pixels(account.LogoSideMax+1, 10),
		"too many pixels":  pixels(2049, account.LogoPixelsMax/2048),
		"too many bytes":   padded(account.LogoBytesMax + 1),
		"a bomb":           bomb(),
		"half a file":      pixels(64, 64)[:60],
		"another format":   []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00"),
		"a web page":       []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"),
		"a JPEG's head":    []byte("\xFF\xD8\xFF\xE0\x00\x10JFIF"),
		"a JPEG in pieces": logoJPEG(t, "x", color.RGBA{A: 0xFF})[:400],
	} {
		if err := checkLogo(raw); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", title, err)
		}
		v := longInvoice(t, 1)
		v.Branding.Logo = raw
		if bytes.Contains(render(t, v), []byte("/Subtype/Image")) {
			t.Errorf("%s is drawn", title)
		}
	}
}

// bomb is a PNG of a few bytes that claims 60,000 by 60,000 pixels.
func bomb() []byte {
	head := make([]byte, 17)
	copy(head, "IHDR")
	binary.BigEndian.PutUint32(head[4:], 60000)
	binary.BigEndian.PutUint32(head[8:], 60000)
	head[12], head[13] = 8, 2
	out := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0D")
	out = append(out, head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

func TestQRCodeLimits(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Imprint.Codes = []country.Code{{Text: strings.Repeat("x", 2331)}}
	render(t, v)
	v.Imprint.Codes = []country.Code{{Text: strings.Repeat("x", 2332)}}
	refused(t, v)
}

func TestLongTextsFlowOverPages(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Transaction.Items[0].Name = strings.Repeat("word ", 4000) // no contract lets this in
	v.Transaction.Customer.LegalName = strings.Repeat("name ", 2000)
	v.Imprint.Texts = []string{strings.Repeat("law ", 5000)}
	text := parsePDF(t, render(t, v)).allText()
	if strings.Count(text, "word") != 4000 || strings.Count(text, "name") != 2000 || strings.Count(text, "law") != 5000 {
		t.Error("words are lost between pages")
	}
}

func TestManyTaxRatesFlowOverPages(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 300)
	for i := range v.Transaction.Items {
		v.Transaction.Items[i].Taxes = []transaction.Tax{vat(t, fmt.Sprintf("%d.%02d", i/100, i%100), transaction.Included,
			"")}
	}
	v = totalled(t, v)
	text := parsePDF(t, render(t, v)).allText()
	if got := strings.Count(text, "VAT\u00A0") + strings.Count(text, "VAT "); got < 300 {
		t.Errorf("the summary has %d rates of 300", got)
	}
}

func FuzzNote(f *testing.F) {
	for _, s := range []string{"plain", "<b>x</b>", "<ul><li>a<li>b</ul>", "a<br>b", "&#0;&#x202E;", "<p><i><b>x",
		"</ul></li></p>", "\xff<"} {
		f.Add(s)
	}
	r, err := document.NewRenderer(typeset.WithSystem())
	if err != nil {
		f.Fatal(err)
	}
	v := document.Visual{Transaction: transaction.Transaction{Kind: transaction.Invoice, CurrencyCode: "EUR",
		Date: time.Unix(0, 0)}}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, note string) {
		v := v
		v.Transaction.Note = note
		raw, err := r.Render(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		parsePDF(t, raw.PDF)
	})
}

func FuzzLogo(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add(bomb())
	f.Add([]byte("\xFF\xD8\xFF\xE0\x00\x10JFIF"))
	r, err := document.NewRenderer(typeset.WithSystem())
	if err != nil {
		f.Fatal(err)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, logo []byte) {
		valid := checkLogo(logo) == nil
		raw, err := r.Render(t.Context(), document.Visual{Branding: document.Branding{Logo: logo}})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw.PDF, []byte("/Subtype/Image")) != valid {
			t.Error("what is checked and what is drawn differ")
		}
	})
}
