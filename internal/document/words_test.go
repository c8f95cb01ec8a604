package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/document"
	"tributary/internal/document/words"
	"tributary/internal/transaction"
)

// in renders a small invoice in a language and returns its text, with plain blanks.
func in(t *testing.T, language, countryCode, currency string) string {
	t.Helper()
	v := longInvoice(t, 1)
	v.Transaction.LanguageCode, v.Transaction.CurrencyCode, v.Supplier.CountryCode = language, currency, countryCode
	v.Transaction.Date = time.Date(2025, 3, 4, 12, 0, 0, 0, time.UTC)
	v.Transaction.Items[0].UnitPrice, v.Transaction.Items[0].Quantity = 123456789, amount(t, "1.250")
	v.Transaction.Items[0].Taxes = []transaction.Tax{vat(t, "5.5", transaction.Added, transaction.TaxReduced)}
	return strings.ReplaceAll(parsePDF(t, render(t, totalled(t, v))).allText(), "\u00A0", " ")
}

func TestLanguagesWriteDatesNumbersAndMoneyTheirWay(t *testing.T) {
	t.Parallel()
	// Net is 1.25 × 1,234,567.89 = 1,543,209.86.
	for language, want := range map[string][5]string{ // title, day, net, rate, net with currency
		"EN": {"Invoice", "4 Mar 2025", "1,543,209.86", "VAT 5.5%", "€1,543,209.86"},
		"ES": {"Factura", "04/03/2025", "1.543.209,86", "IVA 5,5 %", "1.543.209,86 €"},
		"PT": {"Fatura", "04/03/2025", "1 543 209,86", "IVA 5,5%", "1 543 209,86 €"},
		"FR": {"Facture", "04/03/2025", "1 543 209,86", "TVA 5,5 %", "1 543 209,86 €"},
		"DE": {"Rechnung", "04.03.2025", "1.543.209,86", "USt 5,5 %", "1.543.209,86 €"},
		"IT": {"Fattura", "04/03/2025", "1.543.209,86", "IVA 5,5%", "1.543.209,86 €"},
		"PL": {"Faktura", "04.03.2025", "1 543 209,86", "VAT 5,5%", "1 543 209,86 €"},
		"NL": {"Factuur", "04-03-2025", "1.543.209,86", "btw 5,5%", "€ 1.543.209,86"},
		"RO": {"Factură", "04.03.2025", "1.543.209,86", "TVA 5,5 %", "1.543.209,86 €"},
		"HU": {"Számla", "2025. 03. 04.", "1 543 209,86", "ÁFA 5,5%", "1 543 209,86 €"},
		"EL": {"Τιμολόγιο", "04/03/2025", "1.543.209,86", "ΦΠΑ 5,5%", "1.543.209,86 €"},
		"HR": {"Račun", "04. 03. 2025.", "1.543.209,86", "PDV 5,5 %", "1.543.209,86 €"},
		"CS": {"Faktura", "4. 3. 2025", "1 543 209,86", "DPH 5,5 %", "1 543 209,86 €"},
		"SV": {"Faktura", "2025-03-04", "1 543 209,86", "Moms 5,5 %", "1 543 209,86 €"},
		"DA": {"Faktura", "04.03.2025", "1.543.209,86", "Moms 5,5 %", "1.543.209,86 €"},
		"NB": {"Faktura", "04.03.2025", "1 543 209,86", "Mva 5,5 %", "1 543 209,86 €"},
		"NN": {"Faktura", "04.03.2025", "1 543 209,86", "Mva 5,5 %", "1 543 209,86 €"},
		"FI": {"Lasku", "4.3.2025", "1 543 209,86", "ALV 5,5 %", "1 543 209,86 €"},
		"BG": {"Фактура", "04.03.2025", "1 543 209,86", "ДДС 5,5%", "1 543 209,86 €"},
		"ET": {"Arve", "04.03.2025", "1 543 209,86", "Käibemaks 5,5 %", "1 543 209,86 €"},
		"GA": {"Sonrasc", "04/03/2025", "1,543,209.86", "CBL 5.5%", "€1,543,209.86"},
		"LT": {"Sąskaita faktūra", "2025-03-04", "1 543 209,86", "PVM 5,5 %", "1 543 209,86 €"},
		"LV": {"Rēķins", "04.03.2025", "1 543 209,86", "PVN 5,5%", "1 543 209,86 €"},
		"MT": {"Fattura", "04/03/2025", "1,543,209.86", "VAT 5.5%", "€1,543,209.86"},
		"SK": {"Faktúra", "4. 3. 2025", "1 543 209,86", "DPH 5,5 %", "1 543 209,86 €"},
		"SL": {"Račun", "4. 3. 2025", "1.543.209,86", "DDV 5,5 %", "1.543.209,86 €"},
		"TR": {"Fatura", "04.03.2025", "1.543.209,86", "KDV %5,5", "€1.543.209,86"},
		"UK": {"Рахунок-фактура", "04.03.2025", "1 543 209,86", "ПДВ 5,5%", "1 543 209,86 €"},
		"VI": {"Hóa đơn", "04/03/2025", "1.543.209,86", "Thuế GTGT 5,5%", "1.543.209,86 €"},
		"ID": {"Faktur", "04/03/2025", "1.543.209,86", "PPN 5,5%", "€ 1.543.209,86"},
	} {
		text := "\n" + in(t, language, "XX", "EUR")
		for _, line := range want {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s: no line %q in\n%s", language, line, text)
			}
		}
		if !words.Speaks(language) || !words.Speaks(strings.ToLower(language)) ||
			!slices.Contains(words.Languages(), language) {
			t.Errorf("%s is not said to be spoken", language)
		}
	}
	if len(words.Languages()) != 37 {
		t.Errorf("languages are %v", words.Languages())
	}
}

func TestCountriesOfOneLanguageKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, country, currency, want string }{
		{"ES", "MX", "MXN", "MXN 1,543,209.86"},
		{"ES", "ES", "USD", "1.543.209,86 US$"},
		{"ES", "MX", "USD", "USD 1,543,209.86"},
		{"EN", "US", "USD", "$1,543,209.86"},
		{"EN", "CA", "USD", "US$1,543,209.86"},
		{"EN", "CA", "CAD", "CAD 1,543,209.86"},
		{"EN", "AU", "USD", "USD 1,543,209.86"},
		{"DE", "DE", "USD", "1.543.209,86 $"},
		{"FR", "FR", "USD", "1 543 209,86 $US"},
		{"PL", "PL", "USD", "1 543 209,86 USD"},
		{"DE", "DE", "JPY", "154.320.986 ¥"},
		{"PT", "BR", "BRL", "R$ 1.543.209,86"},
		{"DE", "CH", "CHF", "CHF 1’543’209.86"},
		{"EN", "GB", "GBP", "£1,543,209.86"},
		{"EN", "IE", "KWD", "KWD 154,320.986"},
		{"EN", "GB", "JPY", "¥154,320,986"},
		{"HU", "HU", "HUF", "1 543 209,86 Ft"},
		{"EN", "XX", "???", "??? 1,543,209.86"},
		{"EN", "IN", "INR", "₹15,43,209.86"},
		{"NL", "BE", "EUR", "1.543.209,86 €"},
	} {
		if text := "\n" + in(t, c.language, c.country, c.currency); !strings.Contains(text, "\n"+c.want+"\n") {
			t.Errorf("%s in %s: no %q in\n%s", c.language, c.country, c.want, text)
		}
	}
}

// Norwegian has two written forms; who says neither gets the common one.
func TestNorwegianIsBokmålUnlessSaid(t *testing.T) {
	t.Parallel()
	if !words.Speaks("NO") || in(t, "NO", "NO", "NOK") != in(t, "NB", "NO", "NOK") ||
		in(t, "NN", "NO", "NOK") == in(t, "NB", "NO", "NOK") {
		t.Error("NO, NB and NN")
	}
}

func TestUnknownLanguageFallsBackToEnglish(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ZU", "", "xx", "english"} {
		if words.Speaks(code) {
			t.Errorf("%q is said to be spoken", code)
		}
		if got, want := in(t, code, "XX", "EUR"), in(t, "EN", "XX", "EUR"); got != want {
			t.Errorf("%q is not written in English", code)
		}
	}
}

// A word missing from a table would leave an empty place on the document.
func TestEveryLanguageHasEveryWord(t *testing.T) {
	t.Parallel()
	full := func(language string) document.Visual {
		v := mexicanCancellation(t)
		v.Supplier.CountryCode = "XX"
		v.Transaction.LanguageCode, v.Transaction.CurrencyCode = language, "EUR"
		rate := amount(t, "1.5")
		v.Transaction.ExchangeRate, v.LocalCurrency = &rate, "USD"
		v.Transaction.Note = "note"
		v.Transaction.Issuer = v.Transaction.Customer
		v.Supplier.CompanyNumber = "1"
		for _, kind := range []string{"CREDIT", "CARD", "CASH", "TRANSFER", "CHECK", "OTHER"} {
			v.Transaction.Payments = append(v.Transaction.Payments, transaction.Payment{Type: kind, Amount: 1})
		}
		item := v.Transaction.Items[0]
		v.Transaction.Items = nil
		for i := range 60 { // over a page, so that sums are carried
			item.Number = int64(i + 1)
			v.Transaction.Items = append(v.Transaction.Items, item)
		}
		for i, kind := range []string{transaction.TaxZero, transaction.TaxExempt, transaction.TaxReverse,
			transaction.TaxExport, transaction.TaxIntraEU, transaction.TaxOutside} {
			v.Transaction.Items[i].Taxes = []transaction.Tax{vat(t, "0", transaction.Included, kind)}
		}
		v.Transaction.Items[7].Taxes = []transaction.Tax{vat(t, "7", transaction.Included, ""),
			{Rate: amount(t, "3"), Regime: transaction.Withholding}}
		return totalled(t, v)
	}
	count := func(language string) (lines int, text string) {
		f := parsePDF(t, render(t, full(language)))
		for _, page := range f.pages() {
			for _, row := range byLine(f.text(page)) {
				for _, cell := range row {
					if strings.TrimSpace(cell) != "" {
						lines++
					}
				}
			}
		}
		return lines, f.allText()
	}
	_, english := count("EN")
	for _, language := range words.Languages() {
		_, text := count(language)
		if strings.Contains(text, "%!") || strings.Contains(text, "\uFFFD") {
			t.Errorf("%s: a text is malformed", language)
		}
		if language == "EN" {
			continue
		}
		// Of the English words none may remain but those that languages share.
		for _, word := range []string{"Description", "Unit price", "Carried forward", "Tax summary", "Amount due",
			"Bank transfer", "Tax authority", "Reverse charge", "Exchange rate", "Test document", "Page 1"} {
			if strings.Contains(text, word) && strings.Contains(english, word) && !(word == "Page 1" && language == "FR") {
				t.Errorf("%s still says %q", language, word)
			}
		}
		if got, want := strings.Count(text, "\n"), strings.Count(english, "\n"); got < want-25 {
			t.Errorf("%s has %d texts, English has %d", language, got, want)
		}
	}
}

func TestCountriesAreNamedInTheLanguage(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]string{"DE": "Vereinigtes Königreich", "FR": "Royaume-Uni",
		"PL": "Wielka Brytania", "EL": "Ηνωμένο Βασίλειο"} {
		if text := in(t, language, "GB", "GBP"); !strings.Contains(text, want) {
			t.Errorf("%s does not say %s", language, want)
		}
	}
	v := longInvoice(t, 1)
	v.Transaction.Customer.Address.CountryCode = "XX"
	if text := parsePDF(t, render(t, v)).allText(); !strings.Contains(text, "\nXX\n") {
		t.Error("the country of tests is not shown by its code")
	}
}

func TestPartiesShowTheirNumbersOnce(t *testing.T) {
	t.Parallel()
	v := marketplaceInvoice(t)
	text := parsePDF(t, render(t, v)).allText()
	for _, want := range []string{"Northwind Supplies plc", "VAT no. GB123456782", "Company no. 01234567", "Issued by",
		"Agora Marketplace Ireland DAC", "VAT no. IE6388047V", "Harbour & Vale Outfitters Ltd", "VAT no. GB980780684"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no line %q", want)
		}
	}
	v.Transaction.Customer.Address = &transaction.Address{City: "Madrid", Province: "Madrid", CountryCode: "ES"}
	if text := parsePDF(t, render(t, v)).allText(); strings.Count(text, "Madrid") != 1 {
		t.Error("a province of its capital's name is shown twice")
	}
}

func TestQuantitiesAlignOnTheirDecimalSign(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 5) // 1, 12, 2.5, 0.125, 1,200
	f := parsePDF(t, render(t, v))
	page := f.pages()[0]
	places := map[string]float64{}
	for _, r := range runsWithWidth(f, page, fontWidths(f, page)) {
		r.text = strings.TrimRight(r.text, " ")
		if slices.Contains([]string{"2.5", "0.125"}, r.text) {
			whole, _, _ := strings.Cut(r.text, ".")
			places[r.text] = r.x + float64(len(whole))*digitWidth(r.size)
		}
		if r.text == "12" || r.text == "1,200" {
			places[r.text] = r.x + r.width
		}
	}
	if len(places) != 4 {
		t.Fatalf("quantities found: %v", places)
	}
	for text, x := range places {
		if d := x - places["12"]; d > 0.05 || d < -0.05 {
			t.Errorf("the decimal sign of %s is %.2f points off", text, d)
		}
	}
}

// digitWidth is that of Roboto's figures.
func digitWidth(size float64) float64 { return 562 * size / 1000 }

func TestNumbersShowNoFloatingPoint(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Transaction.Items[0].Quantity = amount(t, "3.000000")
	v.Transaction.Items[0].UnitPrice = 1<<53 - 1 - 2
	v.Transaction.Items[0].Quantity = amount(t, "1")
	text := parsePDF(t, render(t, totalled(t, v))).allText()
	if want := "90,071,992,547,409.89"; !strings.Contains(text, want) {
		t.Errorf("no %s in %s", want, fmt.Sprint(text))
	}
}
