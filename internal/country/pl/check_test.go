package pl_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
)

// found is what the pack finds in a draft, as "code field" each.
func found(d country.Draft) []string {
	pack := pl.Pack()
	in := country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both, Now: d.Now}
	var all []string
	for _, f := range append(country.CheckRates(pack.Facts, in), pack.Check(in)...) {
		all = append(all, string(f.Code)+" "+f.Field)
	}
	return all
}

// inYen makes a draft one in a currency without decimals.
func inYen(d *country.Draft) {
	rate := num.MakeAmount(25, 3)
	d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "JPY", &rate, "2025-10-06"
}

func TestWhatKSeFWouldRefuseIsRefusedAtOnce(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*country.Draft)
		want   string
	}{
		"nothing wrong": {func(*country.Draft) {}, ""},
		"a day to come": {func(d *country.Draft) {
			d.Transaction.Date = d.Now.Add(24 * time.Hour)
		}, "field_not_valid transaction_date"},
		"later today": {func(d *country.Draft) {
			d.Transaction.Date = time.Date(2025, 10, 7, 21, 59, 59, 0, time.UTC)
		}, ""},
		"tomorrow in Warsaw": {func(d *country.Draft) {
			d.Transaction.Date = time.Date(2025, 10, 7, 22, 0, 0, 0, time.UTC)
		}, "field_not_valid transaction_date"},
		"before 2006": {func(d *country.Draft) {
			d.Transaction.Date = time.Date(2005, 12, 30, 0, 0, 0, 0, time.UTC)
			set(d, "22")
		}, "field_not_valid transaction_date"},
		"a rate of before 2011": {func(d *country.Draft) { set(d, "22") }, "field_not_valid items.0.tax_breakdowns.0.rate"},
		"that rate in 2010": {func(d *country.Draft) {
			d.Transaction.Date = time.Date(2010, 5, 5, 0, 0, 0, 0, time.UTC)
			set(d, "22")
		}, ""},
		"a rate that is none": {func(d *country.Draft) { set(d, "19") }, "field_not_valid items.0.tax_breakdowns.0.rate"},
		"thousandths": {func(d *country.Draft) {
			d.Transaction.CurrencyCode = "KWD"
		}, "field_not_valid currency_code"},
		"a currency FA(3) lacks": {func(d *country.Draft) {
			d.Transaction.CurrencyCode = "zwg"
		}, "field_not_valid currency_code"},
		"a rate of exchange of zero": {func(d *country.Draft) {
			zero := num.MakeAmount(0, 0)
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "EUR", &zero, "2025-10-06"
		}, "field_not_valid exchange_rate"},
		"a price of 14 digits": {func(d *country.Draft) {
			inYen(d)
			d.Transaction.Items[0].UnitPrice = 99_999_999_999_999
		}, ""},
		"a price of 15 digits": {func(d *country.Draft) {
			inYen(d)
			d.Transaction.Items[0].UnitPrice = -100_000_000_000_000
		}, "field_not_valid items.0.unit_price"},
		"no NIP of a business": {func(d *country.Draft) {
			d.Transaction.Customer.TaxNumber = ""
		}, "field_required customer.tax_information.tax_number"},
		"a NIP that is none": {func(d *country.Draft) {
			d.Transaction.Customer.TaxNumber = "7740001455"
		}, "field_not_valid customer.tax_information.tax_number"},
		"a PESEL of a business": {func(d *country.Draft) {
			d.Transaction.Customer.TaxNumber = "44051401359"
		}, "field_not_valid customer.tax_information.tax_number"},
		"a PESEL of a person": {func(d *country.Draft) {
			d.Transaction.Customer.TaxNumber = "44051401359"
			d.Transaction.Customer.Type = transaction.Individual
		}, ""},
		"50 characters of a number": {func(d *country.Draft) {
			d.Transaction.Customer = foreignBuyer("US", strings.Repeat("7", 50), transaction.Business)
		}, ""},
		"51 characters of a number": {func(d *country.Draft) {
			d.Transaction.Customer = foreignBuyer("US", strings.Repeat("7", 51), transaction.Business)
		}, "field_not_valid customer.tax_information.tax_number"},
		"an issuer's NIP": {func(d *country.Draft) {
			d.Transaction.Issuer = &transaction.Party{LegalName: "X", TaxNumber: "PL7740001455"}
		}, "field_not_valid issuer.tax_information.tax_number"},
		"the reference country": {func(d *country.Draft) {
			d.Transaction.Customer = foreignBuyer("XX", "", transaction.Individual)
		}, "field_not_valid customer.address.country_code"},
		"a discouraged character": {func(d *country.Draft) {
			d.Transaction.Items[0].Name = "a\u0085b\u0086"
		}, "field_not_valid items.0.name"},
		"a character that is none": {func(d *country.Draft) {
			d.Transaction.Customer.Address.City = "\uFDD0"
		}, "field_not_valid customer.address.city"},
		"no VAT entry": {func(d *country.Draft) {
			d.Transaction.Items[0].Taxes = nil
		}, "field_required items.0.tax_breakdowns"},
		"two VAT entries": {func(d *country.Draft) {
			d.Transaction.Items[0].Taxes = append(d.Transaction.Items[0].Taxes, vat("23", transaction.Included))
		}, "field_not_valid items.0.tax_breakdowns"},
		"exempt with a rate": {func(d *country.Draft) {
			d.Transaction.Items[0].Taxes[0].Type = transaction.TaxExempt
		}, "validation_match_invalid items.0.tax_breakdowns.0.type"},
		"standard without a rate": {func(d *country.Draft) {
			set(d, "0")
			d.Transaction.Items[0].Taxes[0].Type = transaction.TaxStandard
		}, "validation_match_invalid items.0.tax_breakdowns.0.type"},
		"an unknown code": {func(d *country.Draft) {
			set(d, "0")
			d.Transaction.Items[0].Taxes[0].Code = "E5"
		}, "field_not_valid items.0.tax_breakdowns.0.code"},
		"a code of another type": {func(d *country.Draft) {
			set(d, "0")
			d.Transaction.Items[0].Taxes[0].Type = transaction.TaxZero
			d.Transaction.Items[0].Taxes[0].Code = "ZW"
		}, "validation_match_invalid items.0.tax_breakdowns.0.code"},
		"a point of the law": {func(d *country.Draft) {
			set(d, "0")
			d.Transaction.Items[0].Taxes[0].Code = "43.1.33a"
		}, ""},
		"a point that is none": {func(d *country.Draft) {
			set(d, "0")
			d.Transaction.Items[0].Taxes[0].Code = "43.1.0"
		}, "field_not_valid items.0.tax_breakdowns.0.code"},
	} {
		d := invoice("FV/1")
		c.change(&d)
		if got := strings.Join(found(d), ", "); got != c.want {
			t.Errorf("%s: %q instead of %q", what, got, c.want)
		}
	}
}

func set(d *country.Draft, rate string) {
	d.Transaction.Items[0].Taxes[0] = vat(rate, transaction.Included)
}

// long is an invoice of n lines with texts of the greatest length.
func long(n int) country.Draft {
	items := make([]transaction.Item, n)
	for i := range items {
		items[i] = item(strings.Repeat("ż", 200), one(), 100, vat("23", transaction.Included))
		items[i].Description = strings.Repeat("ó", 200)
	}
	return draft("FV/1", polishBuyer(), items...)
}

func TestDocumentUpToAMegabyteIsTakenAndALargerOneIsNot(t *testing.T) {
	ch := connect(t)
	size := func(n int) int {
		f, err := ch.Prepare(long(n))
		if err != nil {
			t.Fatal(err)
		}
		return len(f.Report)
	}
	each := size(101) - size(100) // row numbers of three digits
	most := 100 + (ksefwire.DocumentBytesMax-size(100))/each
	for n, want := range map[int]bool{most - 8: true, most: true, most + 1: false, 1500: false} {
		d := long(n)
		f, err := ch.Prepare(d)
		if (err == nil) != want || err != nil && fault.KindOf(err) != fault.Invalid ||
			len(f.Report) > ksefwire.DocumentBytesMax {
			t.Errorf("%d lines: %d bytes, %v", n, len(f.Report), err)
		}
		// The check does not know the supplier: near the limit it refuses a little early, never late.
		refused := strings.Join(found(d), ", ")
		if !want && refused != "field_not_valid items" || want && n < most && refused != "" {
			t.Errorf("%d lines: %q", n, refused)
		}
	}
}

func TestOriginalWithAMistypedKSeFNumberEndsTheCorrection(t *testing.T) {
	d := correctionCases()[0].Draft
	d.Original.AuthorityID1 = "5265877635-20250826-0100001AF629-AE"
	_, err := connect(t).Prepare(d)
	var known *fault.Error
	if !errors.As(err, &known) || known.Kind != fault.Invalid || known.Faults[0].Field != "reference_transaction_id" {
		t.Errorf("%v", err)
	}
}

func TestThereIsNoCancellation(t *testing.T) {
	if _, ok := pl.Pack().Facts.Correction(transaction.Cancellation); ok {
		t.Error("the facts offer a cancellation")
	}
	_, err := connect(t).Prepare(correct(transaction.Cancellation, invoice("FV/2"), invoice("FV/1")))
	var known *fault.Error
	if !errors.As(err, &known) || known.Faults[0].Code != fault.UnsupportedOperation {
		t.Errorf("%v", err)
	}
}

func TestCompanyNeedsOneWayToAuthenticate(t *testing.T) {
	check := pl.Pack().CheckCompany
	for what, c := range map[string]struct {
		change func(*country.Supplier)
		creds  country.Credentials
		want   string
	}{
		"a token":       {func(*country.Supplier) {}, token(), ""},
		"a certificate": {func(*country.Supplier) {}, certificate(), ""},
		"nothing":       {func(*country.Supplier) {}, country.Credentials{}, "tax_credentials.password"},
		"a token, though a signature is asked for": {func(s *country.Supplier) {
			s.Settings = country.Settings{"auth": "xades"}
		}, token(), ""},
		"a number that is no NIP": {func(s *country.Supplier) {
			s.TaxNumber = "5265877636"
		}, token(), "tax_information.tax_number"},
		"no address": {func(s *country.Supplier) {
			s.Address = transaction.Address{CountryCode: "PL"}
		}, token(), "address.address_line_1"},
		"an account of nine characters": {func(s *country.Supplier) {
			s.Settings = country.Settings{"bank_account": "123 456 789"}
		}, token(), "settings.bank_account"},
		"an account of ten": {func(s *country.Supplier) {
			s.Settings = country.Settings{"bank_account": "123 456 7890"}
		}, token(), ""},
	} {
		s := supplier()
		c.change(&s)
		var fields []string
		for _, f := range check(s, c.creds) {
			fields = append(fields, f.Field)
		}
		if got := strings.Join(fields, ", "); got != c.want {
			t.Errorf("%s: %q instead of %q", what, got, c.want)
		}
	}
}

func TestOnboardingTriesTheCredentials(t *testing.T) {
	m := newMinistry(t)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	enrol := func(base string, c country.Credentials) []fault.Fault {
		return pl.Pack().Enrol(t.Context(), country.Enrolment{At: country.Endpoint{BaseURL: base, HTTP: client},
			Supplier: supplier(), Credentials: c}).Faults
	}
	for what, c := range map[string]country.Credentials{"a token": token(), "a certificate": certificate()} {
		if faults := enrol(m.server.URL, c); len(faults) > 0 {
			t.Errorf("%s: %v", what, faults)
		}
	}
	faults := enrol(m.server.URL, country.Credentials{Secret: "x-REVOKED"})
	if len(faults) != 1 || faults[0].Code != fault.CredentialsInvalid || faults[0].Field != "tax_credentials.password" ||
		!strings.Contains(faults[0].Message, "Token unieważniony") {
		t.Errorf("a revoked token: %+v", faults)
	}
	if faults := enrol("http://127.0.0.1:1", token()); len(faults) > 0 {
		t.Errorf("KSeF out of reach: %v", faults)
	}
}

func offline(number string, c country.Credentials) country.Draft {
	d := invoice(number)
	d.Late, d.Credentials = true, c
	return d
}

func TestLateInvoiceIsDeclaredOfflineWithBothCodes(t *testing.T) {
	m := newMinistry(t)
	c := issued(t)
	d := offline("FV/1", c)
	d.Transaction.Date, d.Now = m.clock(), m.clock()
	f := m.prepare(d)
	m.advance(24 * time.Hour) // KSeF returns on the next day
	if !f.Late {
		t.Fatal("the filing does not say that it is late")
	}
	r, err := m.sendFiling(f, c)
	if err != nil || r.Outcome != country.Accepted ||
		!strings.Contains(string(r.Document), "<TrybWysylki>Offline</TrybWysylki>") {
		t.Fatalf("%+v %v\n%s", r, err, r.Document)
	}
	printed := pl.Pack().Printed(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Supplier: &d.Supplier,
		AuthorityID1: r.AuthorityID1, QRCode: f.QRCode, Filing: &f, Language: "PL"})
	if len(printed.Codes) != 2 || printed.Codes[0].Text != f.QRCode || printed.Codes[0].Title != "OFFLINE" ||
		printed.Codes[0].Caption != r.AuthorityID1 ||
		printed.Codes[1].Caption != "CERTYFIKAT" || !strings.Contains(printed.Codes[1].Text,
		"/certificate/Nip/"+supplierNIP+"/"+supplierNIP+"/") {
		t.Errorf("%+v", printed.Codes)
	}
	waiting := pl.Pack().Printed(country.Issue{QRCode: f.QRCode, Filing: &f})
	if len(waiting.Codes) != 2 || waiting.Codes[0].Caption != "OFFLINE" {
		t.Errorf("without a number: %+v", waiting.Codes)
	}
}

func TestInvoiceInTimeHasOneCode(t *testing.T) {
	m := newMinistry(t)
	d := invoice("FV/1")
	d.Transaction.Date = time.Now()
	f := m.prepare(d)
	r, err := m.sendFiling(f, token())
	if err != nil || !strings.Contains(string(r.Document), "<TrybWysylki>Online</TrybWysylki>") {
		t.Fatalf("%v\n%s", err, r.Document)
	}
	printed := pl.Pack().Printed(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Supplier: &d.Supplier,
		AuthorityID1: r.AuthorityID1, QRCode: f.QRCode, Filing: &f})
	if len(printed.Codes) != 1 || printed.Codes[0].Caption != r.AuthorityID1 ||
		printed.Identifiers[0].Value != r.AuthorityID1 {
		t.Errorf("%+v", printed)
	}
	late := m.prepare(offline("FV/2", token())) // nobody can sign the second code
	if late.Late {
		t.Error("declared offline without a certificate")
	}
	broken := certificate()
	broken.Password, broken.Secret = "wrong", "token"
	if f, err := m.channel.Prepare(offline("FV/3", broken)); err != nil || f.Late {
		t.Errorf("a certificate that does not open holds a token's invoice back: %v", err)
	}
}

func TestLegalTextsStandOnTheDocument(t *testing.T) {
	all := map[string]country.Draft{}
	for _, c := range cases() {
		all[c.Name] = c.Draft
	}
	for name, want := range map[string][]string{
		"split payment":      {"metoda kasowa", "mechanizm podzielonej płatności"},
		"self-billing":       {"samofakturowanie"},
		"reverse charge":     {"odwrotne obciążenie"},
		"services to the EU": {"odwrotne obciążenie"},
		"small taxpayer":     {"Zwolnienie od podatku: art. 113 ust. 1 i 9 ustawy o podatku od towarów i usług"},
		"adjustment": {"Korekta do faktury FV/1 z dnia 2025-10-07, numer KSeF 5265877635-20250826-0100001AF629-AF",
			"Przyczyna korekty: Zwrot jednej sztuki"},
		"foreign currency": {"Kwota podatku: 89.03 PLN, kurs 4.26789 2025-10-03"},
		"B2B":              nil,
	} {
		d := all[name]
		printed := pl.Pack().Printed(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Supplier: &d.Supplier,
			Original: d.Original, Location: d.Location, Language: "PL"})
		if got := strings.Join(printed.Texts, "|"); got != strings.Join(want, "|") {
			t.Errorf("%s: %q", name, got)
		}
		if (printed.Title != "") != (d.Original != nil) {
			t.Errorf("%s: title %q", name, printed.Title)
		}
	}
}

func TestLimitsOfTextsAreKeptAtThemAndPastThem(t *testing.T) {
	ch := connect(t)
	for _, length := range []int{511, 512, 513} {
		d := invoice("FV/1")
		d.Supplier.LegalName = strings.Repeat("Ż", length)
		f, err := ch.Prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("<Nazwa>%s</Nazwa>", strings.Repeat("Ż", min(length, 512)))
		if !strings.Contains(string(f.Report), want) || conforms(f.Report) != "" {
			t.Errorf("%d characters: %s", length, conforms(f.Report))
		}
	}
}

// The law wants a rate where tax is stated in zloty, and nowhere else (art. 106e sec. 11).
func TestARateIsWantedWhereTaxIsStated(t *testing.T) {
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pl.Pack()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	for name, c := range map[string]struct {
		rate string
		want bool
	}{"taxed": {`23`, true}, "taxed elsewhere": {`0, "type": "OUTSIDE"`, false}} {
		body := `{"country_code": "PL", "currency_code": "USD", "transaction_date": "2025-10-07T08:00:00Z", "transaction_id": "t", "transaction_number": "FV/1",
			"supplier": {"id": "s"}, "customer": {"legal_name": "Acme Inc.", "type": "BUSINESS", "address": {"country_code": "US", "city": "Boston", "address_line_1": "Main St 1"}},
			"items": [{"number": 1, "name": "A", "type": "SERVICES", "quantity": 1, "unit_price": 100, "tax_breakdowns": [{"regime": "VAT", "application_mode": "ADD_TO_UNIT_PRICE", "rate": ` + c.rate + `}]},
				{"number": 2, "name": "B", "type": "SERVICES", "quantity": 1, "unit_price": 100, "tax_breakdowns": [{"regime": "VAT", "application_mode": "ADD_TO_UNIT_PRICE", "rate": 0, "type": "OUTSIDE"}]}]}`
		_, err := country.Examine(transaction.Invoice, []byte(body), country.Terms{Atlas: atlas, Now: day,
			UseCase: func(string) (country.UseCase, bool) { return country.Both, true }})
		var refused *fault.Error
		asked := errors.As(err, &refused) && slices.ContainsFunc(refused.Faults, func(f fault.Fault) bool {
			return f.Field == "exchange_rate"
		})
		if asked != c.want || !c.want && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Paper says of what is paid what Platnosc says, and where the rest goes.
func TestPaperSaysWhatIsPaidAsItIsFiled(t *testing.T) {
	for name, c := range map[string]struct {
		payment transaction.Payment
		paid    int64
	}{"a transfer that is known": {transaction.Payment{Type: "TRANSFER", Amount: 22710, Reference: "P24-1"}, 22710},
		"a transfer to come": {transaction.Payment{Type: "TRANSFER", Amount: 22710}, 0},
		"another means":      {transaction.Payment{Type: "OTHER", Amount: 22710}, 22710}} {
		d := invoice("FV/1")
		d.Supplier.Settings = country.Settings{"bank_account": "PL61 1090 1014 0000 0712 1981 2874"}
		d.Transaction.Payments = []transaction.Payment{c.payment}
		said := pl.Pack().Printed(country.Issue{Transaction: &d.Transaction, Totals: d.Totals, Supplier: &d.Supplier,
			Location: warsaw(), At: d.Now}).Advice
		if said.Paid == nil || *said.Paid != c.paid || said.Account != "PL61109010140000071219812874" {
			t.Errorf("%s: %+v", name, said)
		}
	}
}
