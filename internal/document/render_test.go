package document_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

const examples = "../../docs/examples/documents"

// dump is a document as text: every run with its place, font and size.
func dump(t testing.TB, raw []byte) string {
	t.Helper()
	f := parsePDF(t, raw)
	var out strings.Builder
	for i, page := range f.pages() {
		fmt.Fprintf(&out, "page %d\n", i+1)
		for _, r := range f.text(page) {
			fmt.Fprintf(&out, "%7.2f %7.2f  %-18s %5.2f  %s\n", r.x, r.y, r.font, r.size, r.text)
		}
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	wants, gots := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wants), len(gots)) {
		if i >= len(wants) || i >= len(gots) || wants[i] != gots[i] {
			t.Fatalf("%s differs from line %d on (-update rewrites it)", path, i+1)
		}
	}
}

// The examples in docs are the golden set: what stands there is what is rendered today.
func TestExamplesAreWhatRenderMakes(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			raw := render(t, s.visual)
			golden(t, s.name+".txt", dump(t, raw))
			path := filepath.Join(examples, s.name+".pdf")
			if *update {
				if err := os.MkdirAll(examples, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, raw, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			shown, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// By content and not by bytes: another Go may deflate otherwise.
			if dump(t, shown) != dump(t, raw) {
				t.Error("the example in docs is not what is rendered (-update rewrites it)")
			}
		})
	}
}

func TestEqualVisualsGiveEqualBytes(t *testing.T) {
	t.Parallel()
	r := newRenderer(t)
	for _, s := range samples(t) {
		first, err := r.Render(t.Context(), s.visual)
		if err != nil {
			t.Fatal(err)
		}
		if again := render(t, s.visual); string(first.PDF) != string(again) {
			t.Errorf("%s: another renderer makes other bytes", s.name)
		}
	}
}

func TestRenderersAreSharedByManyAtOnce(t *testing.T) {
	t.Parallel()
	r, set := newRenderer(t), samples(t)[:3]
	want := make([]string, len(set))
	for i, s := range set {
		want[i] = string(render(t, s.visual))
	}
	var wait sync.WaitGroup
	for range 2 {
		for i, s := range set {
			wait.Go(func() {
				got, err := r.Render(t.Context(), s.visual)
				if err != nil || string(got.PDF) != want[i] {
					t.Errorf("%s: other bytes, error %v", s.name, err)
				}
			})
		}
	}
	wait.Wait()
}

func TestRenderLeavesTheVisualUntouched(t *testing.T) {
	t.Parallel()
	v := spanishInvoice(t)
	before := fmt.Sprintf("%#v %#v", v.Transaction, v.Totals)
	render(t, v)
	if after := fmt.Sprintf("%#v %#v", v.Transaction, v.Totals); after != before {
		t.Error("rendering changed what it was given")
	}
}

func TestDayOnTheDocumentIsTheSuppliers(t *testing.T) {
	t.Parallel()
	v := spanishInvoice(t) // 23:30 UTC on the 13th is the 14th in Madrid
	text := parsePDF(t, render(t, v)).allText()
	if !strings.Contains(text, "14/11/2025") || strings.Contains(text, "13/11/2025") {
		t.Error("the day is not that of the supplier's place")
	}
	v.Location = nil
	if text := parsePDF(t, render(t, v)).allText(); !strings.Contains(text, "13/11/2025") {
		t.Error("without a place the day is not UTC's")
	}
}

// Quantity, price and what was taken off are printed, so that the amount can be followed.
func TestDiscountsOfLinesArePrinted(t *testing.T) {
	t.Parallel()
	rate := num.MakeAmount(125, 1)
	plain := strings.NewReplacer("−", "-", "\u00a0", "", " %", "%")
	for _, c := range []struct {
		discount    transaction.LineDiscount
		sold, given string // what a sale and its credit print
	}{
		{transaction.LineDiscount{Amount: 1234}, "\nDiscount -12.34\n", "\nDiscount 12.34\n"},
		{transaction.LineDiscount{Rate: &rate}, "\nDiscount -12.5%: -12.50\n", "\nDiscount -12.5%: 12.50\n"},
	} {
		v := longInvoice(t, 1)
		item := &v.Transaction.Items[0]
		item.Quantity, item.UnitPrice, item.Discount = num.MakeAmount(1, 0), 10000, &c.discount
		v.Totals, _ = transaction.Calculate(v.Transaction.Items)
		if text := plain.Replace(parsePDF(t, render(t, v)).allText()); !strings.Contains(text, c.sold) {
			t.Errorf("a sale has no %q in %q", c.sold, text)
		}
		v.Transaction.Kind, v.Imprint.Negated = transaction.Credit, true
		if text := plain.Replace(parsePDF(t, render(t, v)).allText()); !strings.Contains(text, c.given) {
			t.Errorf("a credit has no %q in %q", c.given, text)
		}
	}
}

// A receipt that says nothing of payment was paid where it was given.
func TestAReceiptIsNotHeadedAmountDue(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Transaction.Payments, v.Transaction.DueDate, v.Imprint.Advice.DueDate = nil, "", ""
	for _, receipt := range []bool{false, true} {
		v.Simplified = receipt
		if text := parsePDF(t, render(t, v)).allText(); strings.Contains(text, "Amount due") == receipt {
			t.Errorf("receipt %t:\n%s", receipt, text)
		}
	}
}

func TestTitleTellsTheKind(t *testing.T) {
	t.Parallel()
	titles := map[string]bool{}
	for _, kind := range []transaction.Kind{transaction.Invoice, transaction.Credit, transaction.Adjustment,
		transaction.Cancellation} {
		for _, simplified := range []bool{false, true} {
			v := longInvoice(t, 1)
			v.Transaction.Kind, v.Simplified = kind, simplified
			titles[largest(t, render(t, v))] = true
		}
	}
	for _, want := range []string{"Invoice", "Receipt", "Credit note", "Adjustment note", "Cancellation"} {
		if !titles[want] {
			t.Errorf("no document is titled %s; titles are %v", want, titles)
		}
	}
	v := longInvoice(t, 1)
	v.Imprint.Title = "Self-billed invoice"
	if got := largest(t, render(t, v)); got != v.Imprint.Title {
		t.Errorf("the country's own title is drawn as %q", got)
	}
}

// largest returns the text in the largest type.
func largest(t testing.TB, raw []byte) string {
	t.Helper()
	f := parsePDF(t, raw)
	var most run
	for _, r := range f.text(f.pages()[0]) {
		if r.size > most.size {
			most = r
		}
	}
	return strings.TrimRight(most.text, " ")
}

func TestSpecimenIsMarkedOnEveryPage(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 60)
	v.Specimen = true
	f := parsePDF(t, render(t, v))
	if len(f.pages()) < 2 {
		t.Fatal("the sample has one page")
	}
	for i, page := range f.pages() {
		found := false
		for _, r := range f.text(page) {
			found = found || strings.HasPrefix(r.text, "Test document")
		}
		if !found {
			t.Errorf("page %d is not marked", i+1)
		}
	}
	v.Specimen = false
	if strings.Contains(parsePDF(t, render(t, v)).allText(), "Test document") {
		t.Error("a live document is marked as a specimen")
	}
}

func TestPagesAreNumberedAndSumsCarriedOver(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 137)
	f := parsePDF(t, render(t, v))
	var net, gross int64
	item := 0
	for i, page := range f.pages() {
		rows := byLine(f.text(page))
		if want := fmt.Sprintf("Page %d of %d", i+1, len(f.pages())); !strings.Contains(fmt.Sprint(rows), want) {
			t.Errorf("page %d does not say %q", i+1, want)
		}
		for _, row := range rows {
			line := strings.Join(row, "|")
			sums := english(net) + "|" + english(gross)
			switch {
			case strings.HasPrefix(line, "Brought forward|"), strings.HasPrefix(line, "Carried forward|"):
				if !strings.HasSuffix(line, sums) {
					t.Errorf("page %d: %q, but the items so far sum to %s", i+1, line, sums)
				}
			case item < len(v.Totals.Lines) && strings.HasPrefix(line, fmt.Sprintf("%d|", item+1)):
				net += v.Totals.Lines[item].Net
				gross += v.Totals.Lines[item].Gross
				item++
			}
		}
	}
	text := f.allText()
	turns := len(f.pages()) - 1
	if strings.Count(text, "Brought forward") != turns || strings.Count(text, "Carried forward") != turns {
		t.Error("not every page break carries the sums")
	}
	if item != 137 || net != v.Totals.Net || gross != v.Totals.Gross {
		t.Errorf("%d items of 137 stand on the pages", item)
	}
}

// byLine gathers runs that stand on one base line, from left to right.
func byLine(runs []run) [][]string {
	var out [][]string
	last := -1.0
	for _, r := range runs {
		if r.y != last {
			out, last = append(out, nil), r.y
		}
		out[len(out)-1] = append(out[len(out)-1], strings.TrimRight(r.text, " "))
	}
	return out
}

// english writes pence as the long sample shows them.
func english(minor int64) string {
	whole := fmt.Sprint(minor / 100)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return fmt.Sprintf("%s.%02d", whole, minor%100)
}

func TestNothingLeavesThePage(t *testing.T) {
	t.Parallel()
	for _, s := range append(samples(t), sample{"widest", widest(t)}) {
		f := parsePDF(t, render(t, s.visual))
		for i, page := range f.pages() {
			widths := fontWidths(f, page)
			runs := runsWithWidth(f, page, widths)
			lines := map[float64][]wideRun{}
			for _, r := range runs {
				for _, q := range lines[r.y] { // on one line, words stand beside each other
					if q.x < r.x+r.width-0.5 && r.x < q.x+q.width-0.5 {
						t.Errorf("%s, page %d: %q and %q overlap", s.name, i+1, q.text, r.text)
					}
				}
				lines[r.y] = append(lines[r.y], r)
				if r.x < 56 || r.x+r.width > 595.28-56 || r.y < 30 || r.y > 841.89-15 {
					t.Errorf("%s, page %d: %q at %.1f,%.1f is %.1f wide", s.name, i+1, r.text, r.x, r.y, r.width)
				}
			}
		}
	}
}

// widest has the largest amounts and the longest words the specification allows.
func widest(t testing.TB) document.Visual {
	v := longInvoice(t, 2)
	const most = 1<<53 - 1
	v.Transaction.CurrencyCode = "KWD"
	v.Transaction.Items[0].UnitPrice, v.Transaction.Items[0].Quantity = most, amount(t, "1")
	v.Transaction.Items[1].UnitPrice, v.Transaction.Items[1].Quantity = -1, amount(t, "999999999.999999")
	v.Transaction.Items[0].Number = 999999999
	v.Transaction.Items[0].Name = strings.Repeat("W", 200)
	v.Transaction.Items[0].Description = strings.Repeat("Ж", 200)
	v.Transaction.Items[0].Unit = strings.Repeat("W", 20)
	v.Transaction.Items[0].Code = strings.Repeat("W", 60)
	v.Transaction.Number = strings.Repeat("W", 50)
	v.Transaction.Customer.LegalName = strings.Repeat("W", 450)
	v.Transaction.Customer.TaxNumber = strings.Repeat("9", 60)
	v.Supplier.LegalName = strings.Repeat("M ", 225)
	v.Transaction.Payments = []transaction.Payment{{Type: "OTHER", Code: strings.Repeat("W", 32), Amount: most}}
	v.UniqueNumber = strings.Repeat("8", 90)
	v.Imprint.Identifiers = []country.Identifier{{Label: strings.Repeat("L", 40), Value: strings.Repeat("A", 500)}}
	return totalled(t, v)
}

func TestUnreadableColoursAreDarkened(t *testing.T) {
	t.Parallel()
	v := frenchFacturX(t) // a yellow accent
	f := parsePDF(t, render(t, v))
	for _, r := range f.text(f.pages()[0]) {
		if contrast(r.color) < 4.5 {
			t.Fatalf("%q is drawn in %v", r.text, r.color)
		}
	}
	for _, wrong := range []string{"", "red", "#12345", "#GGGGGG", "#1234567", "url(x)"} {
		v.Branding.Accent, v.Branding.Ink = wrong, wrong
		render(t, v)
	}
}

func TestUnknownFontAndLogoFallBack(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Branding = document.Branding{Font: "comic", Logo: []byte("GIF89a"), Placement: "diagonal"}
	raw := render(t, v)
	f := parsePDF(t, raw)
	if !strings.Contains(string(raw), "+Roboto-Regular") || strings.Contains(string(raw), "/Subtype/Image") {
		t.Error("the fallback is not the plain document")
	}
	if first := f.text(f.pages()[0])[0].text; first != v.Supplier.LegalName {
		t.Errorf("in place of the logo stands %q", first)
	}
}

func TestTotalsOfAnotherTransactionAreRefused(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 3)
	v.Totals.Lines = v.Totals.Lines[:2]
	refused(t, v)
	v = longInvoice(t, 3)
	v.Totals.Lines[1].Taxes = nil
	refused(t, v)
}

func refused(t *testing.T, v document.Visual) {
	t.Helper()
	out, err := sharedRenderer(t).Render(t.Context(), v)
	if fault.KindOf(err) != fault.Invalid || out.PDF != nil {
		t.Errorf("want an error of kind invalid and no bytes, got %d bytes and %v", len(out.PDF), err)
	}
}

func TestCancelledRenderingStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sharedRenderer(t).Render(ctx, longInvoice(t, 200)); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestExchangedTaxIsExact(t *testing.T) {
	t.Parallel()
	v := polishCreditNote(t)
	text := parsePDF(t, render(t, v)).allText()
	// −31.84 EUR × 4.2536 = −135.434624
	if !strings.Contains(text, "−135,43\u00A0PLN") && !strings.Contains(text, "−135,43 PLN") {
		t.Error("the tax in zloty is not drawn")
	}
	v.LocalCurrency = ""
	if strings.Contains(parsePDF(t, render(t, v)).allText(), "PLN") {
		t.Error("an exchange is shown without a currency to exchange into")
	}
}

func TestMetadataTimeIsTheVisualsAlone(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.IssuedAt = time.Date(2031, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600))
	raw := string(render(t, v))
	for _, want := range []string{"(D:20310203030506Z)", "2031-02-03T03:05:06Z"} {
		if !strings.Contains(raw, want) {
			t.Errorf("the metadata lacks %s", want)
		}
	}
	if year := time.Now().Format("2006"); strings.Contains(raw, "(D:"+year) {
		t.Error("the metadata has the time of rendering")
	}
}
