package peppol_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

var day = time.Date(2026, 11, 15, 22, 30, 0, 0, time.UTC)

func packOf(t testing.TB, code string) country.Pack {
	t.Helper()
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	return packs[slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == code })]
}

// company is a seller of a country, and buyer a business there.
func company(code string) country.Supplier {
	s := country.Supplier{ID: "s1", CountryCode: code, LegalName: "Voorbeeld NV", CompanyNumber: "0202239951",
		TaxNumber: "BE0202239951",
		Address: transaction.Address{CountryCode: code, City: "Brussel", PostalCode: "1000",
			AddressLine1: "Voorbeeldstraat 3"},
		Settings: country.Settings{"format": "AUTO", "payment_days": int64(30)}}
	if code == "DE" {
		s.LegalName, s.CompanyNumber, s.TaxNumber = "Muster GmbH", "", "DE111111125"
		s.Address.City, s.Address.PostalCode = "Berlin", "10115"
		s.Settings["delivery"], s.Settings["contact_name"], s.Settings["contact_phone"],
			s.Settings["contact_email"] = "peppol", "Rechnungen", "+49 30 123456", "rechnung@example.com"
		s.Settings["iban"] = "DE89370400440532013000"
	}
	return s
}

func draft(t testing.TB, code, number string, change func(*transaction.Transaction)) country.Draft {
	t.Helper()
	tx := transaction.Transaction{Kind: transaction.Invoice, CountryCode: code, LanguageCode: "EN", CurrencyCode: "EUR",
		Date: day, Number: number, ID: "order-" + number,
		Items: []transaction.Item{{Number: 1, Name: "Thee, 100 g", Quantity: num.MakeAmount(3, 0), UnitPrice: 7570,
			Type:  transaction.Goods,
			Taxes: []transaction.Tax{{Rate: num.MakeAmount(21, 0), Regime: transaction.VAT, Mode: transaction.Included}}}},
		Customer: &transaction.Party{LegalName: "Exemple SA", Type: transaction.Business, EntityNumber: "0403170701",
			TaxNumber: "BE0403170701",
			Address: &transaction.Address{CountryCode: "BE", City: "Liège", PostalCode: "4000",
				AddressLine1: "Rue de l'Exemple 1"}}}
	if change != nil {
		change(&tx)
	}
	totals, faults := transaction.Calculate(tx.Items)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	d := country.Draft{OperationID: "018f6b2e-0000-7000-8000-" + number, UniqueNumber: "U-" + number, Transaction: tx,
		Totals: totals, Supplier: company(code), Location: time.UTC, Now: day.Add(time.Minute)}
	if tx.Kind != transaction.Invoice {
		d.Original = &country.Original{Transaction: transaction.Transaction{Number: "R-1", Date: day.AddDate(0, -1, 0)}}
	}
	return d
}

func belgian(t testing.TB) []packtest.Case {
	return []packtest.Case{
		{Name: "invoice", Draft: draft(t, "BE", "R-2026-1", nil)},
		{Name: "credit", Draft: draft(t, "BE", "R-2026-2", func(tx *transaction.Transaction) {
			tx.Kind = transaction.Credit
		})},
		{Name: "adjustment", Draft: draft(t, "BE", "R-2026-3", func(tx *transaction.Transaction) {
			tx.Kind = transaction.Adjustment
			tx.Items[0].UnitPrice = -tx.Items[0].UnitPrice
		})},
		{Name: "address of the client's own", Draft: draft(t, "BE", "R-2026-4", func(tx *transaction.Transaction) {
			tx.Customer.Electronic = &transaction.ElectronicAddress{Scheme: "0088", ID: "5412345000013"}
		})},
	}
}

var token = country.Credentials{Named: map[string]string{"api_token": "a token"}}

// say lets the receiver's access point refuse what it was sent.
func say(t *testing.T, address string, f country.Filing) {
	t.Helper()
	put(t, address+"/mls/"+f.DedupeKey, `{"status":"received_re"}`)
}

func put(t *testing.T, address, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil || resp.StatusCode != http.StatusNoContent || resp.Body.Close() != nil {
		t.Fatalf("%s: %v %v", address, resp, err)
	}
}

// ubl asks the official schemas about reports.
func ubl(t *testing.T, reports [][]byte) {
	t.Helper()
	of := map[string][][]byte{}
	for _, r := range reports {
		name := "UBL-Invoice-2.1.xsd"
		if bytes.Contains(r, []byte("<CreditNote")) {
			name = "UBL-CreditNote-2.1.xsd"
		}
		of[name] = append(of[name], r)
	}
	for name, list := range of {
		for _, err := range (packtest.XSD{Path: needs.Schemas(t, "ubl21", "maindoc", name)}).CheckAll(t, list) {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func TestBelgiumPassesTheSuite(t *testing.T) {
	packtest.Exercise(t, packOf(t, "BE"), packtest.Options{Name: "be", Cases: belgian(t), Credentials: token, Schema: ubl,
		Abilities: packtest.Abilities{Say: say}})
}

func TestGermanyPassesTheSuite(t *testing.T) {
	german := func(tx *transaction.Transaction) {
		tx.Customer = &transaction.Party{LegalName: "Bundesamt", Type: transaction.Business,
			EntityNumber: "04011000-1234512345-06",
			Address:      &transaction.Address{CountryCode: "DE", City: "Bonn", PostalCode: "53111", AddressLine1: "Am Markt 2"}}
	}
	business := func(tx *transaction.Transaction) {
		german(tx)
		tx.Customer.EntityNumber, tx.Customer.TaxNumber = "", "DE129273398"
	}
	packtest.Exercise(t, packOf(t, "DE"), packtest.Options{Name: "de", Credentials: token, Schema: ubl,
		Abilities: packtest.Abilities{Say: say}, Cases: []packtest.Case{
			{Name: "to a public buyer", Draft: draft(t, "DE", "R-2026-1", german)},
			{Name: "to a business", Draft: draft(t, "DE", "R-2026-2", business)},
		}})
}

// Every country that has the way sends the sale of its own example.
func TestEveryCountryOfTheFamilySends(t *testing.T) {
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	var reports [][]byte
	for _, p := range packs {
		if !p.Chosen() {
			continue
		}
		sent++
		t.Run(p.Code, func(t *testing.T) {
			s := p.Example.Company
			s.CountryCode, s.Settings = p.Code, country.Settings{"format": "AUTO", "delivery": "peppol",
				"payment_days": int64(30), "iban": "DE89370400440532013000",
				"contact_name": "Billing", "contact_phone": "+49 30 123456", "contact_email": "billing@example.com"}
			body, err := p.ExampleSale(country.SaleID{Transaction: "t-1", Number: "R-1", Supplier: "s1", Date: day})
			if err != nil {
				t.Fatal(err)
			}
			tx, _, err := transaction.Decode(transaction.Invoice, body)
			if err != nil {
				t.Fatal(err)
			}
			totals, _ := transaction.Calculate(tx.Items)
			if !p.Filed(country.Both, &s, tx) || p.Keeps(&s) {
				t.Fatal("the settings want it sent, and it is not")
			}
			s.Settings["delivery"] = "none"
			if p.Filed(country.Both, &s, tx) || !p.Keeps(&s) {
				t.Error("the settings want it kept, and it is sent")
			}
			s.Settings["delivery"] = ""
			if p.Filed(country.Both, &s, tx) != (p.Code == "BE") {
				t.Error("only Belgium's law wants its invoices sent")
			}
			s.Settings["delivery"] = "peppol"
			w := wireTo(t, p, nil)
			f, err := w.channel.Prepare(country.Draft{OperationID: "018f6b2e-0000-7000-8000-000000000001", UniqueNumber: "U-1",
				Transaction: *tx, Totals: totals, Supplier: s, Location: time.UTC, Now: day})
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, f.Report)
			r, err := w.channel.Send(t.Context(), []country.Filing{f}, token)
			if err != nil || r[0].Outcome != country.Accepted || w.held(t) != 1 {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	if sent < 10 {
		t.Errorf("%d countries have the way", sent)
	}
	ubl(t, reports)
}

// An access point that is no more than an address passes the suite as one of which
// nothing can be asked: what is unclear is never sent again.
func TestAddressAlonePassesTheSuite(t *testing.T) {
	pack := packOf(t, "BE")
	connect := pack.Connect
	pack.Connect = func(at country.Endpoint) (country.Channel, error) {
		at.BaseURL += "/sbd"
		return connect(at)
	}
	packtest.Exercise(t, pack, packtest.Options{Name: "plain", Cases: belgian(t), Credentials: token, Immediate: true,
		StatusAlone: true,
		Identity:    country.Identity{Secrets: map[string]string{"driver": "plain"}}})
}

// With an address alone only the access point's own word proves that nothing was
// taken: a proxy's 503 may come after the document went through.
func TestOnlyAnAnswerWithATimeProvesThatNothingWasTaken(t *testing.T) {
	for _, c := range []struct {
		status int
		after  string
		taken  bool // perhaps
	}{{503, "1", false}, {503, "", true}, {429, "", false}, {502, "1", true}, {504, "", true}} {
		pack := packOf(t, "BE")
		connect := pack.Connect
		pack.Connect = func(at country.Endpoint) (country.Channel, error) {
			below := at.HTTP.Transport
			at.BaseURL += "/sbd"
			at.Identity.Secrets = map[string]string{"driver": "plain"}
			at.HTTP = &http.Client{Transport: answering(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodPost {
					return below.RoundTrip(r)
				}
				w := httptest.NewRecorder()
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.status)
				return w.Result(), nil
			})}
			return connect(at)
		}
		channel := wireTo(t, pack, nil).channel
		f, err := channel.Prepare(draft(t, "BE", "R-1", nil))
		if err != nil {
			t.Fatal(err)
		}
		r, err := channel.Send(t.Context(), []country.Filing{f}, token)
		switch {
		case c.taken && (err == nil || errors.Is(err, country.ErrNotTaken)):
			t.Errorf("%d, Retry-After %q: %+v %v, want an unclear outcome", c.status, c.after, r, err)
		case !c.taken && (err != nil || r[0].Outcome != country.NotTaken):
			t.Errorf("%d, Retry-After %q: %+v %v, want that nothing was taken", c.status, c.after, r, err)
		}
	}
}

// answering is a transport made of a function.
type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// A company that wants its invoices sent in a form that does not travel is told
// when it is onboarded.
func TestFormatsThatDoNotTravelAreRefusedAtOnboarding(t *testing.T) {
	for format, refused := range map[string]bool{"AUTO": false, "PEPPOL_UBL": false, "XRECHNUNG_UBL": false,
		"XRECHNUNG_CII": false, "ZUGFERD": true, "NONE": true} {
		s := company("DE")
		s.Settings["format"] = format
		found := slices.ContainsFunc(packOf(t, "DE").CheckCompany(s, country.Credentials{}), func(f fault.Fault) bool {
			return f.Field == "settings.delivery" && f.Code == fault.ValidationMatchInvalid
		})
		if found != refused {
			t.Errorf("%s: %v", format, found)
		}
		s.Settings["delivery"] = "none"
		if faults := packOf(t, "DE").CheckCompany(s, country.Credentials{}); len(faults) > 0 {
			t.Errorf("%s without delivery: %v", format, faults)
		}
	}
}

// XRechnung in CII travels as well, under a type of its own.
func TestCrossIndustryInvoicesTravel(t *testing.T) {
	pack := packOf(t, "DE")
	w := wireTo(t, pack, nil)
	d := draft(t, "DE", "R-1", func(tx *transaction.Transaction) {
		tx.Customer = &transaction.Party{LegalName: "Bundesamt", Type: transaction.Business,
			EntityNumber: "04011000-1234512345-06",
			Address:      &transaction.Address{CountryCode: "DE", City: "Bonn", PostalCode: "53111", AddressLine1: "Am Markt 2"}}
	})
	d.Supplier.Settings["format"] = "XRECHNUNG_CII"
	f, err := w.channel.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.channel.Send(t.Context(), []country.Filing{f}, token)
	if err != nil || r[0].Outcome != country.Accepted || w.held(t) != 1 ||
		!bytes.Contains(f.Extra, []byte("CrossIndustryInvoice")) {
		t.Errorf("%+v %v", r, err)
	}
}
