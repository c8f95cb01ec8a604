package pl_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/pl"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// agrees compares an invoice with its file, read in another way.
func agrees(t *testing.T, name string, file []byte, d *incoming.Document) {
	t.Helper()
	s := packtest.Say(t, name, file)
	decimals, _ := transaction.CurrencyExponent(d.Currency)
	var net, tax int64
	for _, column := range []string{"1", "2", "3", "4", "5", "6_1", "6_2", "6_3", "7", "8", "9", "10", "11"} {
		net, tax = net+s.Sum("/Faktura/Fa/P_13_"+column, decimals), tax+s.Sum("/Faktura/Fa/P_14_"+column, decimals)
	}
	packtest.Equal(s, "net", d.Net, net)
	packtest.Equal(s, "tax", d.Tax, tax)
	packtest.Equal(s, "gross", d.Gross, s.Sum("/Faktura/Fa/P_15", decimals))
	packtest.Equal(s, "number", d.Number, s.Text("/Faktura/Fa/P_2"))
	packtest.Equal(s, "day", d.Day, s.Text("/Faktura/Fa/P_1"))
	packtest.Equal(s, "kind", d.TypeCode, s.Text("/Faktura/Fa/RodzajFaktury"))
	packtest.Equal(s, "lines", len(d.Lines), len(s.Texts("/Faktura/Fa/FaWiersz")))
	var lines int64
	for i := range d.Lines {
		lines += d.Lines[i].Net
	}
	packtest.Equal(s, "sum of the lines", lines, s.Sum("//FaWiersz/P_11", decimals)+s.Sum("//FaWiersz/P_11A", decimals))
	packtest.Equal(s, "seller", d.Sender.TaxNumber, s.Text("/Faktura/Podmiot1/DaneIdentyfikacyjne/NIP"))
	packtest.Equal(s, "seller's name", d.Sender.LegalName, s.Text("/Faktura/Podmiot1/DaneIdentyfikacyjne/Nazwa"))
	packtest.Equal(s, "buyer's name", d.Receiver.LegalName, s.Text("/Faktura/Podmiot2/DaneIdentyfikacyjne/Nazwa"))
	if nip := s.Text("/Faktura/Podmiot2/DaneIdentyfikacyjne/NIP"); nip != "" {
		packtest.Equal(s, "buyer", d.Receiver.TaxNumber, nip)
	}
	base, amount := packtest.SumOf(d.Taxes, transaction.VAT)
	packtest.Equal(s, "bases", base, net)
	packtest.Equal(s, "taxes", amount, tax)
}

func TestWhatWeFileIsReadBack(t *testing.T) {
	t.Parallel()
	seen := 0
	for name, file := range packtest.Filed(t, "testdata") {
		d, err := pl.Read(file)
		if !strings.Contains(string(file), "<Faktura") {
			continue // goldens of logins
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		seen++
		agrees(t, name, file, d)
		if strings.HasPrefix(d.TypeCode, "KOR") != (d.Kind == transaction.Adjustment) || d.Kind == transaction.Adjustment && len(d.Earlier) == 0 {
			t.Errorf("%s: %s is %s of %v", name, d.TypeCode, d.Kind, d.Earlier)
		}
	}
	if seen < 20 {
		t.Errorf("only %d were read", seen)
	}
}

func TestSamplesAreRead(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(needs.Schemas(t, "pl-ksef", "examples"), "invoice-*.xml"))
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d samples: %v", len(paths), err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(file), "#") && strings.Contains(filepath.Base(path), "template") {
			file = []byte(strings.NewReplacer("#nip#", "5265877635", "#invoice_number#", "F/1", "#subject2nip#", "1111111111").Replace(string(file)))
		}
		d, err := pl.Read(file)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
			continue
		}
		agrees(t, filepath.Base(path), file, d)
		if strings.Contains(path, "attachment") && !slices.ContainsFunc(d.NotRead, func(s string) bool { return strings.Contains(s, "Zalacznik") }) {
			t.Errorf("nobody says that the annex was not read: %v", d.NotRead)
		}
	}
}

func TestWhatAPolishInvoiceMaySay(t *testing.T) {
	t.Parallel()
	plain := string(packtest.Filed(t, "testdata")["B2B"])
	before := strings.Replace(plain, "<P_12>", "<P_12>", 1)
	marked := strings.Replace(before, "</FaWiersz>", "<StanPrzed>1</StanPrzed></FaWiersz>", 1)
	marked = strings.Replace(marked, "<P_18A>2<", "<P_18A>1<", 1)
	d, err := pl.Read([]byte(marked))
	if err != nil || !d.Lines[0].Before || !slices.ContainsFunc(d.NotRead, func(s string) bool { return strings.HasSuffix(s, "Adnotacje/P_18A") }) {
		t.Errorf("%v %+v", err, d)
	}
	for what, file := range map[string]string{
		"another root":  strings.ReplaceAll(plain, "Faktura", "Rachunek"),
		"a wrong day":   strings.Replace(plain, "<P_1>", "<P_1>x", 1),
		"a wrong sum":   strings.Replace(plain, "<P_15>", "<P_15>1e9", 1),
		"no currency":   strings.Replace(plain, "<KodWaluty>PLN", "<KodWaluty>", 1),
		"a large sum":   strings.Replace(plain, "<P_15>", "<P_15>9999999999999999", 1),
		"a broken file": plain[:len(plain)-5],
	} {
		if d, err := pl.Read([]byte(file)); !errors.Is(err, incoming.ErrInvalid) || d != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	typed := strings.Replace(plain, "<Faktura", "<!DOCTYPE Faktura><Faktura", 1)
	if _, err := pl.Read([]byte(typed)); !errors.Is(err, xmltree.ErrDoctype) {
		t.Errorf("a document type: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(packtest.Filed(f, "testdata")["several-payments"])
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		if d, err := pl.Read(file); (d == nil) != (err != nil) {
			t.Errorf("%v and %v", d, err)
		}
	})
}

// The lines of an invoice are read from the invoice; KSeF's limits of downloads are kept, and
// what cannot be compared is said to have none.
func TestLinesOfAnInvoiceThatKSeFHolds(t *testing.T) {
	m := newMinistry(t)
	d := invoice("FV/1")
	r, err := m.sendFiling(m.prepare(d), token())
	if err != nil || r.Outcome != country.Accepted {
		t.Fatalf("%+v %v", r, err)
	}
	reads, e := m.channel.(country.LineReader), country.Entry{Number: "FV/1", AuthorityID1: r.AuthorityID1}
	var ours []int64
	for _, l := range d.Totals.Lines {
		ours = append(ours, l.Net)
	}
	if lines, err := reads.Lines(t.Context(), supplier(), e, token()); err != nil || len(ours) == 0 || !slices.Equal(lines, ours) {
		t.Errorf("lines %v, want %v: %v", lines, ours, err)
	}
	call := "GET /invoices/ksef/*"
	m.answer(call, problem(http.StatusTooManyRequests, 0, "42"))
	_, err = reads.Lines(t.Context(), supplier(), e, token())
	var used *country.Exhausted
	if !errors.As(err, &used) || used.Until.Sub(m.clock()) != 42*time.Second {
		t.Errorf("after too many calls: %v", err)
	}
	m.answer(call, problem(http.StatusBadRequest, ksefwire.CodeInvoiceLater, ""))
	if lines, err := reads.Lines(t.Context(), supplier(), e, token()); err == nil {
		t.Errorf("an invoice that KSeF does not show yet has lines %v", lines)
	}
	fa := func(kind, line string) string {
		return `<Faktura xmlns="` + ksefwire.SpaceFA3 + `"><Fa><KodWaluty>PLN</KodWaluty><RodzajFaktury>` + kind + `</RodzajFaktury>` + line + `</Fa></Faktura>`
	}
	const gross = "<FaWiersz><P_11A>123.00</P_11A>%s<P_12>23</P_12></FaWiersz>"
	for body, want := range map[string][]int64{"<no/>": {}, fa("ZAL", ""): nil, fa("VAT", fmt.Sprintf(gross, "")): nil,
		fa("VAT", fmt.Sprintf(gross, "<P_11Vat>23.00</P_11Vat>")): {100_00}} {
		m.answer(call, text(http.StatusOK, "application/xml", body))
		lines, err := reads.Lines(t.Context(), supplier(), e, token())
		if err != nil || !slices.Equal(lines, want) || (lines == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v: %v", body, lines, want, err)
		}
	}
}
