package document_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// owed is an invoice in euro that somebody is to pay by transfer.
func owed(t *testing.T) document.Visual {
	v := longInvoice(t, 2)
	v.Transaction.LanguageCode, v.Transaction.CurrencyCode, v.Transaction.Number = "DE", "EUR", "R-2026-17"
	v.Transaction.Payments, v.Imprint.Codes = nil, nil
	v.Supplier.LegalName = "Müller & Söhne GmbH"
	v.Imprint.Advice = country.Advice{Account: "DE89 3704 0044 0532 0130 00", BIC: "COBADEFFXXX", Reference: "R-2026-17",
		DueDate: "2026-12-15", Terms: "30 Tage netto"}
	return totalled(t, v)
}

// scanned are the codes that a camera finds on the first page.
func scanned(t *testing.T, v document.Visual) []string {
	t.Helper()
	zbarimg, pdftoppm := needs.Tool(t, "zbarimg", "zbar-tools"), needs.Tool(t, "pdftoppm", "poppler-utils")
	page := filepath.Join(t.TempDir(), "page")
	output(t, pdftoppm, "-r", "200", "-png", "-singlefile", written(t, v), page)
	found, _ := exec.CommandContext(t.Context(), zbarimg, "-q", page+".png").Output() // it fails where there is none
	var codes []string
	for _, part := range strings.Split(string(found), "QR-Code:") {
		if part = strings.TrimSpace(part); part != "" {
			codes = append(codes, part)
		}
	}
	return codes
}

// Whoever is to pay by transfer in euro finds how on the page, and a code for it.
func TestHowToPayIsOnThePage(t *testing.T) {
	t.Parallel()
	v := owed(t)
	text := parsePDF(t, render(t, v)).allText()
	for _, want := range []string{"DE89 3704 0044 0532 0130 00", "COBADEFFXXX", "R-2026-17", "15.12.2026",
		"30 Tage netto", "Zum Bezahlen scannen"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	amount := fmt.Sprintf("%d.%02d", v.Totals.Payable()/100, v.Totals.Payable()%100)
	want := "BCD\n002\n1\nSCT\nCOBADEFFXXX\nMüller & Söhne GmbH\nDE89370400440532013000\nEUR" + amount + "\n\n\nR-2026-17"
	if got := scanned(t, v); !slices.Equal(got, []string{want}) {
		t.Errorf("scanned %q instead of %q", got, want)
	}
	fiscal := v
	fiscal.Imprint.Codes = []country.Code{{Text: "https://authority.example/1", Title: "QR"}}
	if got := scanned(t, fiscal); len(got) != 2 || !slices.Contains(got, want) ||
		!slices.Contains(got, "https://authority.example/1") {
		t.Errorf("beside a fiscal code: %q", got)
	}
	other := v // the account of the payment is at another bank than the company's
	other.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: v.Totals.Payable(), IBAN: "DE02120300000000202051"}}
	if got := scanned(t, other); len(got) != 1 || strings.Contains(got[0], "COBADEFFXXX") || !strings.Contains(got[0], "\nDE02120300000000202051\n") {
		t.Errorf("another account: %q", got)
	}
	told := v // a payment that names a reference alone goes to the same account
	told.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: v.Totals.Payable(), Reference: "REF-77"}}
	if text := parsePDF(t, render(t, told)).allText(); !strings.Contains(text, "DE89 3704 0044 0532 0130 00") || !strings.Contains(text, "REF-77") {
		t.Errorf("a reference alone:\n%s", text)
	}
	paid, all := v, v.Totals.Payable() // as the data says it
	paid.Imprint.Advice.Paid, paid.Transaction.Payments = &all, told.Transaction.Payments
	if text := parsePDF(t, render(t, paid)).allText(); len(scanned(t, paid)) > 0 || strings.Contains(text, "Zahlbetrag") {
		t.Errorf("what is paid is asked for:\n%s", text)
	}
	reference := v
	reference.Imprint.Advice.Reference = "RF18 5390 0754 7034"
	if got := scanned(t, reference); len(got) != 1 || !strings.HasSuffix(got[0], "\n\nRF18539007547034") {
		t.Errorf("a structured reference: %q", got)
	}
	long := v
	long.Supplier.LegalName, long.Imprint.Advice.Reference = strings.Repeat("Ü", 100), strings.Repeat("ß", 200)
	if got := scanned(t, long); len(got) != 1 || len(got[0]) > 331 ||
		!strings.Contains(got[0], "\n"+strings.Repeat("Ü", 70)+"\n") {
		t.Errorf("long words: %d bytes %q", len(got[0]), got)
	}
}

// The code holds at most 70 letters of a name, 140 of a reference and 331 bytes in
// all (EPC069-12): each at the limit, and one past it.
func TestTheTransferCodeKeepsItsLimits(t *testing.T) {
	t.Parallel()
	code := func(name, reference string) string {
		t.Helper()
		v := owed(t)
		v.Supplier.LegalName, v.Imprint.Advice.Reference = name, reference
		codes := scanned(t, v)
		if len(codes) != 1 || strings.Count(codes[0], "\n") != 10 {
			t.Fatalf("%q", codes)
		}
		return codes[0]
	}
	wide := strings.Repeat("Ü", 70) // two bytes each
	room := 331 - len(code(wide, "R")) + 1
	for _, c := range []struct {
		name, reference string
		lost            int // letters of the reference
	}{{strings.Repeat("N", 70), "R", 0}, {strings.Repeat("N", 71), "R", 0}, {"N", strings.Repeat("R", 140), 0},
		{"N", strings.Repeat("R", 141), 1}, {wide, strings.Repeat("R", room), 0}, {wide, strings.Repeat("R", room+1), 1}} {
		got := code(c.name, c.reference)
		name := c.name
		if len([]rune(name)) > 70 {
			name = name[:70]
		}
		lines := strings.Split(got, "\n")
		if lines[5] != name || lines[10] != c.reference[c.lost:] || len(got) > 331 {
			t.Errorf("%d and %d bytes: %d bytes %q", len(c.name), len(c.reference), len(got), lines)
		}
	}
}

// There is no code where nothing is to be transferred, and a credit is owed to the buyer.
func TestNoCodeWhereNothingIsToBePaid(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*document.Visual){
		"credit":  func(v *document.Visual) { v.Transaction.Kind = transaction.Credit },
		"dollars": func(v *document.Visual) { v.Transaction.CurrencyCode = "USD" },
		"paid": func(v *document.Visual) {
			v.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: v.Totals.Payable()}}
		},
		"no account": func(v *document.Visual) { v.Imprint.Advice.Account = "" },
	} {
		v := owed(t)
		change(&v)
		if got := scanned(t, v); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
		text := parsePDF(t, render(t, v)).allText()
		if name == "credit" && (!strings.Contains(text, "\nZu Ihren Gunsten\n") || strings.Contains(text, "Zahlbetrag") ||
			strings.Contains(text, "DE89")) {
			t.Errorf("a credit asks for money:\n%s", text)
		}
	}
}

// Period, place of delivery, payee and mandate are printed; what is collected has
// no code to transfer it.
func TestHowItIsSuppliedAndPaidIsPrinted(t *testing.T) {
	t.Parallel()
	v := owed(t)
	v.Transaction.Period = &transaction.Span{From: "2026-11-01", To: "2026-11-30"}
	v.Transaction.Items[0].Period = &transaction.Span{From: "2026-11-03", To: "2026-11-05"}
	v.Transaction.Delivery = &transaction.Delivery{Name: "Lager 2",
		Address: &transaction.Address{CountryCode: "DE", City: "Hamm", AddressLine1: "Am Tor 4"}}
	v.Transaction.Payee = &transaction.Payee{Name: "Faktor AG", IBAN: "DE02120300000000202051"}
	text := strings.ReplaceAll(parsePDF(t, render(t, v)).allText(), "\u00A0", " ")
	for _, want := range []string{"Leistungszeitraum", "01.11.2026 – 30.11.2026",
		"Leistungszeitraum 03.11.2026 – 05.11.2026", "Lieferanschrift", "Lager 2", "Am Tor 4", "Zahlungsempfänger",
		"Faktor AG", "DE02 1203 0000 0000 2020 51"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := scanned(t, v); len(got) != 1 || !strings.Contains(got[0], "\nFaktor AG\nDE02120300000000202051\n") {
		t.Errorf("%q", got)
	}
	v.Transaction.Payments = []transaction.Payment{{Type: "OTHER", Amount: v.Totals.Payable(),
		Mandate: &transaction.Mandate{Reference: "M-1", CreditorID: "DE98ZZZ09999999999"}}}
	if text := parsePDF(t, render(t, v)).allText(); !strings.Contains(text, "Lastschriftmandat") ||
		!strings.Contains(text, "M-1 · DE98ZZZ09999999999") || len(scanned(t, v)) > 0 {
		t.Errorf("direct debit:\n%s", text)
	}
}

// A person's passport is no number of businesses, and tax is stated as it was filed.
func TestWordsOnPaperAreTrue(t *testing.T) {
	t.Parallel()
	v := owed(t)
	v.Transaction.LanguageCode = "EN"
	v.Transaction.Customer = &transaction.Party{LegalName: "Jo Doe", Type: transaction.Individual, TaxNumber: "C01X00T47",
		Address: &transaction.Address{CountryCode: "US", City: "Boston"}}
	rate, filed := amount(t, "395.12"), int64(66412)
	v.Transaction.ExchangeRate, v.LocalCurrency, v.Imprint.LocalTax = &rate, "HUF", &filed
	text := strings.ReplaceAll(parsePDF(t, render(t, v)).allText(), "\u00A0", " ")
	if strings.Contains(text, "EIN") || !strings.Contains(text, "C01X00T47") || strings.Count(text, "664.12") != 1 {
		t.Errorf("%s", text)
	}
}
